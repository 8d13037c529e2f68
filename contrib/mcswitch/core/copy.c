/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The egress of requests, one receiver a pass: the pass links it, sends it a copy, or checks it
 * when the lock is stolen. */
#include "config.h"

#include "core/egress.h"

static bool next_round(struct work *k)
{
    return ++k->b.k < k->b.n;
}

/* The rank of this round: from the bitmap in ascending order, or from the list. */
static unsigned rank_of_round(struct work *k)
{
    unsigned rank = (unsigned)__builtin_ctz(k->b.rest);

    if (k->p.links)
        rank = mcsw_entry_at(k, k->b.k).vsqpn & 255;
    k->b.rest &= ~(1u << rank);
    return rank;
}

static void link_address(struct mcsw *w, struct egress_receiver *v, const struct work *k,
                         struct target *t)
{
    bool given = k->p.links && (k->p.flags & MCSW_ADDRESS);
    struct mcsw_entry e = given ? mcsw_entry_at(k, k->b.k) : (struct mcsw_entry){0, 0, 0};
    uint8_t when = given ? SET : KEEP;
    struct pair va, rkey;

    va = mcsw_access(w, REG_VA, &v->va[0],
                     (struct program){.lo = {when, false, {0, 0, (uint32_t)e.va}, 0},
                                      .hi = {when, false, {0, 0, (uint32_t)(e.va >> 32)}, 0}})
             .is;
    rkey = mcsw_access(w, REG_RKEY, &v->rkey[0],
                       (struct program){.lo = {when, false, {0, 0, e.rkey}, 0}})
               .is;
    t->base = (uint64_t)va.hi << 32 | va.lo;
    t->rkey = rkey.lo;
}

/* Sets the offset between the two numberings, which stays constant until the next control. */
bool mcsw_pass_link(struct mcsw *w, struct group *g, struct work *k)
{
    struct egress *e = mcsw_egress(w, g);
    unsigned rank = rank_of_round(k), round = k->b.k;
    struct egress_receiver *v = &e->receiver[rank];
    struct target t = {.to = &g->receiver[rank]};

    mcsw_write(w, REG_LIST, &e->list[round], rank, 0);
    mcsw_write(w, REG_VER, &v->version, k->b.version, 0);
    t.psn = mcsw_access(w, REG_OFF, &v->off,
                        (struct program){
                            .lo = {MCSW_MUTANT(8) ? KEEP : SET, true, {0, 1, 0u - k->p.psn}, 0},
                            .hi = {SET, true, {0, 1, 1}, 0}})
                .was.hi;
    mcsw_access(w, REG_MSN, &v->msn,
                (struct program){.lo = {SET, true, {0, 1, 0u - k->b.messages}, 0},
                                 .hi = {SET, true, {0, 1, 1}, 0}});
    link_address(w, v, k, &t);
    mcsw_write(w, REG_ACKED, &v->acked, roce_psn_add(k->p.psn, ROCE_PSN_MASK), k->b.messages);
    if (round == 0) {
        mcsw_write(w, REG_MINH, &e->minh, rank, k->b.version);
        mcsw_write(w, REG_ROUND, &e->round, 0, 0);
    }
    w->count.controls_forwarded++;
    mcsw_emit_control(w, k, &t, round);
    return next_round(k);
}

/* Counts copies without repeats: their number is exactly what the sets require, whatever was
 * lost. */
static void count_copy(struct mcsw *w, const struct work *k)
{
    if (k->p.kind == IS_CONTROL) {
        w->count.controls_forwarded++;
        return;
    }
    w->count.copies++;
    w->count.repeat_copies += k->b.repeat;
}

bool mcsw_pass_copy(struct mcsw *w, struct group *g, struct work *k)
{
    struct egress *e = mcsw_egress(w, g);
    unsigned round = k->b.k, rank = mcsw_read(w, REG_LIST, &e->list[round]).lo;
    struct egress_receiver *v = &e->receiver[rank];
    struct target t = {.to = &g->receiver[rank]};
    struct access off;
    struct pair va;
    uint32_t acked;

    if (mcsw_read(w, REG_VER, &v->version).lo != k->b.version) {
        w->count.drop_version++;
        return next_round(k);
    }
    off = mcsw_access(w, REG_OFF, &v->off,
                      (struct program){.a = {SEQ_MORE, {1, -1, k->p.psn + 1}},
                                       .hi = {IF_A, true, {1, 0, k->p.psn + 1}, 0}});
    mcsw_access(w, REG_MSN, &v->msn,
                (struct program){.hi = {off.a && k->p.last ? SET : KEEP, true, {0, 1, 1}, 0}});
    va = mcsw_read(w, REG_VA, &v->va[k->p.window]);
    t.rkey = mcsw_read(w, REG_RKEY, &v->rkey[k->p.window]).lo;
    acked = mcsw_read(w, REG_ACKED, &v->acked).lo;
    /* With rounds all receivers get repeats, because a round needs an acknowledgement of each. */
    if (k->b.repeat && roce_psn_diff(acked, k->p.psn) >= 0 && w->c.aggregate != MCSW_ROUNDS)
        return next_round(k);
    t.psn = roce_psn_add(k->p.psn, off.was.lo);
    t.base = (uint64_t)va.hi << 32 | va.lo;
    count_copy(w, k);
    if (k->p.kind == IS_CONTROL)
        mcsw_emit_control(w, k, &t, round);
    else
        mcsw_emit_copy(w, k, &t);
    return next_round(k);
}

/* A receiver that lacks the last packet, or is inside a message, can't be linked again until it is
 * reset. */
bool mcsw_pass_loss(struct mcsw *w, struct group *g, struct work *k)
{
    struct egress *e = mcsw_egress(w, g);
    unsigned rank = mcsw_read(w, REG_LIST, &e->list[k->b.k]).lo;
    struct egress_receiver *v = &e->receiver[rank];

    if (mcsw_read(w, REG_VER, &v->version).lo == k->b.version) {
        uint32_t acked = mcsw_read(w, REG_ACKED, &v->acked).lo;

        if (k->b.cut || acked != k->b.limit)
            k->b.was |= 1u << rank;
    }
    if (!next_round(k))
        k->b.pass = PASS_FREE;
    return true;
}
