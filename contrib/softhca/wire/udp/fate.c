/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The fate of one packet between its end point and the network: rules drop it, delay it or
 * duplicate it, and a port with a rate limit delays it. Owns the clocks of such ports, which are
 * atomic; sq_lock is held. */
#include "config.h"

#include "packet/bytes.h"
#include "wire/udp/udp.h"

enum {
    slack_ns = 1000, /* as in shared memory: a packet that takes less time does not wait, but its
                        time counts */
    reth_length = ROCE_BTH_BYTES + 12,
    atomic_bytes = 8,
};
/* A packet that waits for polls must not wait for ever if the program does not poll. */
static const uint64_t polls_max_ns = UINT64_C(10000000);
static const uint64_t pause_ns = UINT64_C(10000000);

enum direction { OUT, IN };

/* The time from which the wire of a port is free. Packets from others, and answers to them, do not
 * count, as in shared memory. */
static _Atomic uint64_t free_at[SHCA_MAX_HCA][SHCA_MAX_PRT + 1][2];

static uint32_t rate_of(const struct shca_qp *qp)
{
    return shca_config.port[shca_ctx(qp->qp.context)->hca][qp->attr.port_num].rate;
}

bool shca_udp_limited(const struct shca_qp *qp)
{
    return rate_of(qp) != 0;
}

bool shca_udp_wire_busy(const struct shca_qp *qp, uint64_t now)
{
    return now + slack_ns < qp->udp->wire_until;
}

/* The time from which a queue pair could have used the wire: since it has had data to send, even if
 * no thread polled at the moment when the wire was free, or an answer had to arrive first. But a
 * pause in the network is not compensated. */
static uint64_t ready_at(const struct shca_udp *u, uint64_t now)
{
    uint64_t ready = u->begun > u->wire_until ? u->begun : u->wire_until;

    return now > pause_ns && ready < now - pause_ns ? now - pause_ns : ready;
}

/* The time at which the last byte of the packet, or of the answer that it requests, has passed. */
static uint64_t pass(struct shca_qp *qp, const struct roce_request *r, const uint8_t *packet,
                     uint64_t now)
{
    struct shca_udp *u = qp->udp;
    int hca = shca_ctx(qp->qp.context)->hca;
    enum direction way = r->kind >= ROCE_DO_READ ? IN : OUT;
    uint32_t bytes = r->kind == ROCE_DO_READ  ? roce_get32(packet + reth_length)
                     : r->kind > ROCE_DO_READ ? atomic_bytes
                                              : u->payload;
    _Atomic uint64_t *clock = &free_at[hca][qp->attr.port_num][way];
    uint64_t ready = ready_at(u, now), from = atomic_load(clock), end;

    do
        end = (from > ready ? from : ready) + (uint64_t)bytes * 1000 / rate_of(qp);
    while (!atomic_compare_exchange_weak(clock, &from, end));
    u->wire_until = end;
    return end;
}

/* ---- rules ---- */

struct shca_fault_subject shca_udp_subject(const struct shca_qp *qp, enum shca_fault_op op)
{
    return (struct shca_fault_subject){.dev = shca_ctx(qp->qp.context)->hca,
                                       .port = qp->attr.port_num,
                                       .qpn = qp->qp.qp_num,
                                       .op = op,
                                       .call = SHCA_CALL_ANY};
}

enum shca_fault_op shca_udp_op(const struct roce_request *r)
{
    return !r                         ? SHCA_OP_ANY
           : r->kind == ROCE_DO_SEND  ? SHCA_OP_SEND
           : r->kind == ROCE_DO_WRITE ? SHCA_OP_WRITE
           : r->kind == ROCE_DO_READ  ? SHCA_OP_READ
                                      : SHCA_OP_ATOMIC;
}

static bool keep(const struct shca_qp *qp, const struct shca_udp_to *to, const uint8_t *packet,
                 size_t n, struct shca_udp_wait wait)
{
    bool kept = shca_udp_hold(qp, to, packet, n, &wait);

    if (!kept)
        atomic_fetch_add_explicit(&shca_udp.lost, 1, memory_order_relaxed);
    return false;
}

/* Packets go in the order in which they were made: a packet does not overtake one that is held back
 * for a time. */
static bool in_turn(struct shca_qp *qp, const struct shca_udp_to *to, const uint8_t *packet,
                    size_t n, uint64_t now, uint64_t until)
{
    struct shca_udp *u = qp->udp;

    if (u->behind) {
        shca_udp_let_go(now);
        u->behind = u->behind > now ? u->behind : 0;
    }
    if (u->behind == 0 && until <= now + slack_ns)
        return true;
    u->behind = until > u->behind ? until : u->behind;
    return keep(qp, to, packet, n, (struct shca_udp_wait){u->behind, 0});
}

bool shca_udp_goes(struct shca_qp *qp, const struct roce_request *r, const struct shca_udp_to *to,
                   const uint8_t *packet, size_t n, uint64_t now)
{
    struct shca_fault_subject subject = shca_udp_subject(qp, shca_udp_op(r));
    struct shca_packet_verdict v = {0};
    uint64_t until = now, overtaken;

    subject.packet = (uint32_t)n;
    if (shca_faults())
        shca_fault_packet(&subject, r == NULL, &v);
    if (r && shca_udp_limited(qp))
        until = pass(qp, r, packet, now);
    until += v.delay;
    if (v.lost) {
        atomic_fetch_add_explicit(&shca_udp.lost, 1, memory_order_relaxed);
        return false;
    }
    if (v.twice)
        keep(qp, to, packet, n,
             (struct shca_udp_wait){(until > qp->udp->behind ? until : qp->udp->behind) + v.again,
                                    0});
    if (v.behind == 0 && v.behind_polls == 0)
        return in_turn(qp, to, packet, n, now, until);
    overtaken = until + v.behind + (v.behind_polls ? polls_max_ns : 0);
    return keep(qp, to, packet, n, (struct shca_udp_wait){overtaken, (uint32_t)v.behind_polls});
}
