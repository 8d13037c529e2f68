/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The payload of control packets: its legal contents, and how a host writes it. Owns nothing. */
#include "config.h"

#include "core/private.h"
#include "packet/bytes.h"

enum {
    with_set = MCSW_ACQUIRE | MCSW_TOPOLOGY | MCSW_ADDRESS,
    known_flags = with_set | MCSW_RELEASE | MCSW_BITMAP | MCSW_SECTIONS,
};

/* A list and a bitmap exclude each other; a release has neither. */
static bool good_flags(const struct packet *p)
{
    if (p->flags & ~known_flags)
        return false;
    if (p->flags & MCSW_RELEASE)
        return p->flags == MCSW_RELEASE && p->links == 0;
    if (!(p->flags & with_set))
        return false;
    if (p->flags & MCSW_BITMAP)
        return p->links == 0 && p->bitmap != 0 && !(p->flags & (MCSW_ADDRESS | MCSW_SECTIONS));
    if ((p->flags & MCSW_SECTIONS) && (p->flags & MCSW_ADDRESS))
        return false;
    return p->links != 0;
}

uint8_t mcsw_control_form(const struct group *g, const struct packet *p)
{
    if (p->malformed || !good_flags(p))
        return ROCE_NAK_INVALID;
    if (p->lock != p->qpn >> 8)
        return ROCE_NAK_INVALID;
    if (p->first_psn != MCSW_UNCHECKED && p->first_psn != roce_psn_add(p->psn, 1))
        return ROCE_NAK_INVALID;
    if (p->key != g->key)
        return ROCE_NAK_ACCESS;
    if ((p->flags & MCSW_BITMAP) && (p->bitmap & ~g->present))
        return ROCE_NAK_ACCESS;
    return 0;
}

struct mcsw_entry mcsw_entry_at(const struct work *k, unsigned i)
{
    const uint8_t *e =
        k->frame + k->p.payload_at + MCSW_CONTROL_BYTES + (size_t)i * MCSW_ENTRY_BYTES;

    return (struct mcsw_entry){roce_get32(e), roce_get32(e + 4), roce_get64(e + 8)};
}

/* A section must lie behind the list, and consist of whole words. */
static bool good_section(const struct packet *p, const struct mcsw_entry *e)
{
    uint32_t from = MCSW_CONTROL_BYTES + (uint32_t)p->links * MCSW_ENTRY_BYTES;

    return e->rkey >= MCSW_CONTROL_BYTES && e->rkey % 4 == 0 && e->va >= from &&
           e->va <= p->payload_bytes && e->rkey <= p->payload_bytes - e->va;
}

uint8_t mcsw_control_entry(const struct work *k, const struct group *g, unsigned i, unsigned *rank)
{
    struct mcsw_entry e = mcsw_entry_at(k, i);

    *rank = e.vsqpn & 255;
    if (e.vsqpn >> 8 != k->b.group || *rank >= g->receivers || !(g->present >> *rank & 1))
        return ROCE_NAK_ACCESS;
    if (k->b.mask >> *rank & 1)
        return ROCE_NAK_INVALID;
    if (k->p.flags & MCSW_SECTIONS)
        return good_section(&k->p, &e) ? 0 : ROCE_NAK_INVALID;
    /* A base must not use the switch's own key, or a leaf would treat a copy as a control
     * message. */
    return (k->p.flags & MCSW_ADDRESS) && e.rkey == MCSW_CONTROL_RKEY ? ROCE_NAK_INVALID : 0;
}

size_t mcsw_control_build(const struct mcsw_control *c, uint8_t *out, size_t room)
{
    size_t bytes = MCSW_CONTROL_BYTES + (size_t)c->links * MCSW_ENTRY_BYTES;

    if (bytes > room)
        return 0;
    roce_put16(out, MCSW_MAGIC);
    out[2] = MCSW_VERSION;
    out[3] = c->flags;
    roce_put32(out + 4, c->group);
    roce_put64(out + 8, c->key);
    roce_put32(out + 16, c->psn);
    roce_put32(out + 20, c->msn);
    roce_put16(out + 24, 0);
    roce_put16(out + 26, c->links);
    roce_put32(out + 28, c->bitmap);
    for (unsigned i = 0; i < c->links; i++) {
        uint8_t *e = out + MCSW_CONTROL_BYTES + (size_t)i * MCSW_ENTRY_BYTES;

        roce_put32(e, c->entries[i].vsqpn);
        roce_put32(e + 4, c->entries[i].rkey);
        roce_put64(e + 8, c->entries[i].va);
    }
    return bytes;
}
