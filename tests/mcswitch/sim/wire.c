/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See wire.h. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "packet/psn.h"
#include "wire.h"

enum { data_bytes = 8, first_source = 0xc000, align = 64 };

static const uint8_t requests[4] = {10, 9, 0, 1}, copies[4] = {10, 9, 0, 2}, mac[6] = {2, 9};

uint32_t wire_sq_psn(unsigned member)
{
    return (0xfffff8 + 1000 * member) & ROCE_PSN_MASK;
}

uint32_t wire_rq_psn(unsigned member)
{
    return (0xfffffa + 70000 * member) & ROCE_PSN_MASK;
}

static void emit(void *context, unsigned port, uint8_t *frame, size_t length)
{
    struct wire *w = context;
    struct wire_out *o = &w->sent[w->out];

    if (w->out == WIRE_OUT || length > sizeof o->bytes) {
        w->wrong++;
        return;
    }
    memcpy(o->bytes, frame, length);
    o->port = port;
    if (roce_frame_parse(o->bytes, length, &o->f) != ROCE_GOOD)
        w->wrong++;
    w->out++;
}

static void notify(void *context, uint32_t group, unsigned rank, enum mcsw_event event)
{
    struct wire *w = context;

    (void)group;
    *(event == MCSW_DIRTY ? &w->dirtied : &w->fenced) |= 1u << rank;
}

static void violation(void *context, const char *what)
{
    (void)what;
    ((struct wire *)context)->wrong++;
}

static void *some(size_t bytes)
{
    void *memory = aligned_alloc(align, (bytes + align - 1) / align * align);

    if (!memory)
        abort();
    return memory;
}

static void create(struct wire *w, unsigned members)
{
    struct mcsw_sender s[WIRE_MEMBERS] = {0};
    struct mcsw_receiver r[WIRE_MEMBERS] = {0};
    struct mcsw_group_config g = {.key = WIRE_KEY,
                                  .ip_version = 4,
                                  .senders = members,
                                  .receivers = members,
                                  .sender = s,
                                  .receiver = r};

    for (unsigned i = 0; i < members; i++) {
        const uint8_t ip[4] = {10, 1, 0, (uint8_t)i}, address[6] = {2, 1, 0, 0, 0, (uint8_t)i};

        s[i] = (struct mcsw_sender){.port = i, .qpn = 0x100 + i, .psn = wire_sq_psn(i)};
        r[i] = (struct mcsw_receiver){
            .port = i, .qpn = 0x200 + i, .psn = wire_rq_psn(i), .base = 0x10000 * i, .rkey = 9 + i};
        memcpy(s[i].ip, ip, 4);
        memcpy(r[i].ip, ip, 4);
        memcpy(s[i].mac, address, 6);
        memcpy(r[i].mac, address, 6);
    }
    if (!mcsw_create(w->w, WIRE_GROUP, &g))
        abort();
}

void wire_open(struct wire *w, unsigned members)
{
    struct mcsw_config c = {.mode = MCSW_FAST,
                            .aggregate = MCSW_EXACT,
                            .groups = WIRE_GROUP + 1,
                            .lease = WIRE_LEASE,
                            .rnr_timer = WIRE_RNR,
                            .calls = {w, emit, notify, violation}};

    memset(w, 0, sizeof *w);
    c.v4.on = true;
    memcpy(c.v4.requests, requests, 4);
    memcpy(c.v4.copies, copies, 4);
    memcpy(c.mac, mac, 6);
    w->cache = some(mcsw_cache_bytes());
    c.cache = mcsw_cache_open(w->cache);
    w->memory = some(mcsw_bytes(&c));
    w->w = mcsw_open(w->memory, &c);
    if (!w->w)
        abort();
    create(w, members);
}

void wire_close(struct wire *w)
{
    free(w->memory);
    free(w->cache);
}

static void put_in(struct wire *w, unsigned port, unsigned address, const uint8_t *to,
                   const struct roce_packet *p)
{
    struct roce_frame f = {.ip_version = 4,
                           .fragment = 0x4000,
                           .hops = 64,
                           .source = {10, 1, 0, (uint8_t)address},
                           .source_mac = {2, 1, 0, 0, 0, (uint8_t)address},
                           .source_port = (uint16_t)(first_source + address),
                           .destination_port = ROCE_UDP_PORT,
                           .packet = *p};
    uint8_t bytes[ROCE_FRAME_MAX];

    memcpy(f.destination, to, 4);
    memcpy(f.destination_mac, mac, 6);
    w->out = 0;
    w->now += 1000;
    mcsw_frame(w->w, port, w->now, bytes, roce_frame_build(&f, bytes, sizeof bytes));
}

void wire_request(struct wire *w, unsigned sender, const struct roce_packet *p, unsigned port,
                  unsigned address)
{
    struct roce_packet all = *p;

    all.pkey = 0xffff;
    all.migrated = true;
    all.dest_qpn = mcsw_qpn(WIRE_GROUP, sender);
    all.psn = roce_psn_add(wire_sq_psn(sender), p->psn);
    put_in(w, port, address, requests, &all);
}

void wire_control_as(struct wire *w, unsigned sender, uint32_t psn, const struct mcsw_control *c)
{
    uint8_t payload[MCSW_CONTROL_BYTES + MCSW_RECEIVERS * MCSW_ENTRY_BYTES];
    size_t bytes = mcsw_control_build(c, payload, sizeof payload);
    struct roce_packet p = {.opcode = ROCE_WRITE_ONLY,
                            .psn = psn,
                            .va = MCSW_CONTROL_VA,
                            .rkey = MCSW_CONTROL_RKEY,
                            .dma_length = (uint32_t)bytes,
                            .ack_request = true,
                            .payload = payload,
                            .payload_length = (uint32_t)bytes};

    wire_request(w, sender, &p, sender, sender);
}

void wire_control(struct wire *w, unsigned sender, uint32_t psn, uint8_t flags, uint32_t bitmap)
{
    struct mcsw_control c = {.flags = flags,
                             .group = WIRE_GROUP,
                             .key = WIRE_KEY,
                             .psn = MCSW_UNCHECKED,
                             .msn = MCSW_UNCHECKED,
                             .bitmap = bitmap};

    wire_control_as(w, sender, psn, &c);
}

void wire_data(struct wire *w, unsigned sender, uint32_t psn)
{
    static const uint8_t bytes[data_bytes];
    struct roce_packet p = {.opcode = ROCE_WRITE_ONLY,
                            .psn = psn,
                            .dma_length = data_bytes,
                            .ack_request = true,
                            .payload = bytes,
                            .payload_length = data_bytes};

    wire_request(w, sender, &p, sender, sender);
}

void wire_response(struct wire *w, unsigned receiver, uint8_t syndrome, uint32_t psn, uint32_t msn)
{
    struct roce_packet p = {.opcode = ROCE_ACKNOWLEDGE,
                            .pkey = 0xffff,
                            .migrated = true,
                            .dest_qpn = mcsw_qpn(WIRE_GROUP, receiver),
                            .psn = roce_psn_add(wire_rq_psn(receiver), psn),
                            .syndrome = syndrome,
                            .msn = msn};

    put_in(w, receiver, receiver, copies, &p);
}

void wire_ack(struct wire *w, unsigned receiver, uint32_t psn, uint32_t msn)
{
    wire_response(w, receiver, ROCE_SYNDROME_ACK | ROCE_CREDITS_NONE, psn, msn);
}

bool wire_answered(const struct wire *w, unsigned member, uint8_t syndrome, uint32_t psn)
{
    unsigned to_member = 0;
    bool found = false;

    for (unsigned i = 0; i < w->out; i++) {
        const struct roce_packet *p = &w->sent[i].f.packet;

        if (w->sent[i].port != member)
            continue;
        to_member++;
        found |= p->opcode == ROCE_ACKNOWLEDGE && p->dest_qpn == 0x100 + member &&
                 p->syndrome == syndrome && p->psn == roce_psn_add(wire_sq_psn(member), psn);
    }
    return found && to_member == 1;
}

unsigned wire_copies(const struct wire *w, unsigned member)
{
    unsigned n = 0;

    for (unsigned i = 0; i < w->out; i++)
        n += w->sent[i].port == member && w->sent[i].f.packet.dest_qpn == 0x200 + member;
    return n;
}

const struct mcsw_view *wire_view(struct wire *w)
{
    memset(&w->v, 0, sizeof w->v);
    if (!mcsw_view(w->w, WIRE_GROUP, &w->v))
        abort();
    return &w->v;
}
