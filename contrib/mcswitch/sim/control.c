/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See control.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "packet/bytes.h"
#include "packet/psn.h"
#include "sim/control.h"

enum {
    magic = 0x4d43,
    version = 1,
    ACQUIRE = 1,
    TOPOLOGY = 2,
    ADDRESS = 4,
    RELEASE = 8,
    BITMAP = 16,
    SECTIONS = 32,
    header = 32,
    entry = 16,
};

static void put_header(uint32_t group, uint64_t key, uint8_t *to, uint8_t flags, uint32_t psn)
{
    memset(to, 0, header);
    roce_put16(to, magic);
    to[2] = version;
    to[3] = flags;
    roce_put32(to + 4, group);
    roce_put64(to + 8, key);
    roce_put32(to + 16, psn);
    roce_put32(to + 20, UINT32_MAX);
}

static void put_entry(uint8_t *to, uint32_t vsqpn, uint32_t rkey, uint64_t va)
{
    roce_put32(to, vsqpn);
    roce_put32(to + 4, rkey);
    roce_put64(to + 8, va);
}

/* Writes the set of receivers first .. first + n - 1, which are ranks 0 .. n - 1 of a switch.
 * Returns its bytes. */
static uint32_t put_set(uint32_t group, uint8_t *to, const struct sim_broadcast *b, uint32_t first,
                        uint32_t n)
{
    uint32_t bitmap = 0, bytes = header;
    uint16_t links = 0;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t member = first + i;

        if (!sim_set_has(&b->to, member))
            continue;
        bitmap |= 1u << i;
        if (!b->addresses)
            continue;
        put_entry(to + bytes, group << 8 | i, sim_rkey(b->id, member), sim_base(b->id, member));
        bytes += entry;
        links++;
    }
    roce_put16(to + 26, links);
    roce_put32(to + 28, b->addresses ? 0 : bitmap);
    return bytes;
}

static bool any_of(const struct sim_broadcast *b, uint32_t first, uint32_t n)
{
    for (uint32_t i = first; i < first + n; i++)
        if (sim_set_has(&b->to, i))
            return true;
    return false;
}

static uint32_t part_of(const struct sim_group *g, uint32_t members, uint32_t first)
{
    return members - first < g->leaf ? members - first : g->leaf;
}

/* Writes the entries of the leaves that have a receiver, then their sections. */
static uint32_t put_sections(const struct sim_group *g, uint8_t *to, struct sim_broadcast *b,
                             uint32_t members)
{
    uint8_t flags = TOPOLOGY | (b->addresses ? ADDRESS : BITMAP);
    uint32_t at = header, bytes = header;
    uint16_t links = 0;

    for (uint32_t first = 0; first < members; first += g->leaf)
        links += any_of(b, first, part_of(g, members, first));
    roce_put16(to + 26, links);
    bytes += links * entry;
    for (uint32_t first = 0; first < members; first += g->leaf) {
        uint32_t n = part_of(g, members, first), section;

        if (!any_of(b, first, n))
            continue;
        put_header(g->leaf_id, g->key, to + bytes, flags, UINT32_MAX);
        section = put_set(g->leaf_id, to + bytes, b, first, n);
        put_entry(to + at, g->id << 8 | first / g->leaf, section, bytes);
        at += entry;
        bytes += section;
    }
    return bytes;
}

void sim_control_build(const struct sim_group *g, struct sim_broadcast *b,
                       const struct sim_member *m, bool acquire)
{
    uint32_t members = m->net->o->members, psn = m->side[SIM_SQP].a.send_psn;
    uint32_t most = header + entry * b->receivers;
    uint8_t flags = TOPOLOGY | (acquire ? ACQUIRE : 0);

    if (g->leaf)
        most += (members + g->leaf - 1) / g->leaf * (header + entry);
    if (b->addresses && most > m->net->o->mtu)
        b->addresses = false;
    psn = (psn + (uint32_t)m->packets + 1) & ROCE_PSN_MASK;
    b->control = calloc(1, most + header);
    if (!b->control)
        abort();
    flags |= g->leaf ? SECTIONS : b->addresses ? ADDRESS : BITMAP;
    put_header(g->id, g->key, b->control, flags, psn);
    b->control_bytes = g->leaf ? put_sections(g, b->control, b, members)
                               : put_set(g->id, b->control, b, 0, members);
    b->release_bytes = header;
    put_header(g->id, g->key, b->control + b->control_bytes, RELEASE, UINT32_MAX);
}
