/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ingress of requests: the decision about a packet that a sender sent to the group. Each
 * function is one pass; registers are reached in the order of their stages. */
#include "config.h"

#include <string.h>

#include "core/ingress.h"
#include "packet/bytes.h"

enum verdict {
    V_DROP,
    V_COMPLETE, /* a repeat of a packet that all have */
    V_FINISHED, /* a repeat of a finished packet, without the lock */
    V_GAP,
    V_REPEAT,
    V_ACCEPT,
    V_READ,
    V_REFUSE, /* with a NAK's code */
    V_WAIT,
    V_LOCK,
    V_STEAL,
    V_RELEASE,
    V_FALSE_RELEASE, /* only with a mutant */
};

/* The values that one pass read. */
struct seen {
    struct access hold, epsn;
    struct pair topo, agg, rel, inside, dirty;
    bool mine;
    int32_t ahead; /* of the expected PSN */
    uint8_t code;
};

static bool known_sender(struct mcsw *w, struct group *g, const struct work *k)
{
    const struct address *s = mcsw_sender_address(w, g) + k->b.rank;
    const uint8_t *ip = k->head + k->p.ip_at + (k->p.v6 ? 8 : 12);

    if (k->b.rank < g->senders && s->valid && s->port == k->p.port && g->v6 == k->p.v6 &&
        memcmp(ip, s->ip, g->v6 ? 16 : 4) == 0)
        return true;
    w->count.drop_stranger++;
    return false;
}

bool mcsw_pass_check(struct mcsw *w, struct group *g, struct work *k)
{
    unsigned rank;

    if (k->b.k == 0) {
        if (!known_sender(w, g, k))
            return false;
        k->b.code = mcsw_control_form(g, &k->p);
        k->b.mask = k->p.bitmap;
        if (k->p.links && k->b.code == 0)
            k->b.mask = 0;
    }
    if (k->b.code || k->b.k >= k->p.links)
        return mcsw_pass_request(w, g, k);
    k->b.code = mcsw_control_entry(k, g, k->b.k, &rank);
    if (k->b.code == 0)
        k->b.mask |= 1u << rank;
    if (k->b.code == 0 && ++k->b.k < k->p.links)
        return true;
    return mcsw_pass_request(w, g, k);
}

static bool lease_over(const struct mcsw *w, const struct group *g, const struct seen *s)
{
    return !g->leaf && s->hold.was.lo < NOBODY &&
           (int32_t)(mcsw_ticks(w) - s->hold.was.hi) > (int32_t)w->lease_ticks;
}

static enum verdict refuse(struct seen *s, uint8_t code)
{
    s->code = code;
    return V_REFUSE;
}

/* The holder's control, in order. It is accepted only when everything before it is acknowledged,
 * because go-back-N would send old data to the new set. */
static enum verdict own_control(const struct group *g, const struct work *k, struct seen *s)
{
    uint32_t next_msn = roce_psn_add(s->agg.hi, 1);

    if (s->inside.lo)
        return refuse(s, ROCE_NAK_INVALID);
    if (k->p.flags & MCSW_RELEASE)
        return g->leaf ? refuse(s, ROCE_NAK_INVALID) : V_RELEASE;
    if (s->agg.lo != roce_psn_add(k->p.psn, ROCE_PSN_MASK))
        return V_WAIT;
    if (k->p.first_msn != MCSW_UNCHECKED && k->p.first_msn != next_msn)
        return refuse(s, ROCE_NAK_INVALID);
    return (s->dirty.lo & k->b.mask) && !MCSW_MUTANT(14) ? V_WAIT : V_LOCK;
}

static enum verdict others_control(const struct mcsw *w, const struct group *g,
                                   const struct work *k, struct seen *s)
{
    uint32_t next_msn = roce_psn_add(s->epsn.was.hi, 1);

    if (!(k->p.flags & MCSW_ACQUIRE) || g->leaf)
        return refuse(s, ROCE_NAK_INVALID);
    if (k->p.first_msn != MCSW_UNCHECKED && k->p.first_msn != next_msn)
        return refuse(s, ROCE_NAK_INVALID);
    if (s->hold.was.lo != NOBODY)
        return lease_over(w, g, s) ? V_STEAL : V_WAIT;
    return (s->dirty.lo & k->b.mask) && !MCSW_MUTANT(14) ? V_WAIT : V_LOCK;
}

static enum verdict in_order(const struct mcsw *w, const struct group *g, const struct work *k,
                             struct seen *s)
{
    if (s->mine && s->rel.hi)
        return V_WAIT;
    if (k->p.kind == IS_CONTROL) {
        if (k->b.code)
            return refuse(s, k->b.code);
        return s->mine ? own_control(g, k, s) : others_control(w, g, k, s);
    }
    if (k->p.kind == IS_STATUS_READ && !s->mine)
        return V_READ;
    if (k->p.kind == IS_DATA && s->mine && s->topo.lo & 255)
        return V_ACCEPT;
    return refuse(s, ROCE_NAK_INVALID);
}

static enum verdict behind(const struct work *k, const struct seen *s)
{
    if (!s->mine) {
        if (k->p.kind == IS_STATUS_READ)
            return V_READ;
        return MCSW_MUTANT(12) ? V_DROP : V_FINISHED;
    }
    if (roce_psn_diff(k->p.psn, s->agg.lo) <= 0)
        return MCSW_MUTANT(4) ? V_DROP : V_COMPLETE;
    if (k->p.kind == IS_CONTROL) {
        if (k->b.code)
            return V_DROP;
        /* The pass that unlocks may have been lost when too many packets recirculated. */
        if (k->p.flags & MCSW_RELEASE)
            return s->rel.hi == UNLOCKING && s->rel.lo == k->p.psn ? V_RELEASE : V_DROP;
        return MCSW_MUTANT(7) ? V_LOCK : V_REPEAT;
    }
    return k->p.kind == IS_DATA ? V_REPEAT : V_DROP;
}

static enum verdict decide(const struct mcsw *w, const struct group *g, const struct work *k,
                           struct seen *s)
{
    if (MCSW_MUTANT(6) && !s->mine && k->p.kind == IS_CONTROL && (k->p.flags & MCSW_RELEASE))
        return V_FALSE_RELEASE;
    if (s->ahead > 0)
        return V_GAP;
    return s->ahead == 0 ? in_order(w, g, k, s) : behind(k, s);
}

/* Registers of stages before the decision. */
static struct seen look(struct mcsw *w, struct group *g, const struct work *k)
{
    struct ingress *in = mcsw_ingress(w, g);
    struct seen s;
    bool bump;

    s.hold = mcsw_access(w, REG_HOLD, &in->hold,
                         (struct program){.a = {ZERO, {1, 0, 0u - k->b.rank}},
                                          .hi = {IF_A, false, {0, 0, mcsw_ticks(w)}, 0}});
    s.mine = s.hold.a;
    s.topo = mcsw_read(w, REG_TOPO, &in->topo);
    s.agg = mcsw_read(w, REG_AGG, &in->agg);
    s.rel = mcsw_read(w, REG_REL, &in->rel);
    /* A leaf has no set until its first control. */
    bump = s.mine ? k->p.kind == IS_DATA && !s.rel.hi && (s.topo.lo & 255)
                  : k->p.kind == IS_STATUS_READ;
    s.epsn = mcsw_access(w, REG_EPSN, &in->sender[k->b.rank].epsn,
                         (struct program){.a = {bump ? SEQ_ZERO : NEVER, {1, 0, 0u - k->p.psn}},
                                          .lo = {IF_A, true, {1, 0, 1}, 0},
                                          .hi = {IF_A, true, {0, 1, !s.mine}, 0}});
    s.ahead = roce_psn_diff(k->p.psn, s.epsn.was.lo);
    s.inside =
        mcsw_access(
            w, REG_INSIDE, &in->inside,
            (struct program){.lo = {s.epsn.a && s.mine ? SET : KEEP, false, {0, 0, !k->p.last}, 0}})
            .was;
    s.dirty = mcsw_read(w, REG_DIRTY, &in->dirty);
    s.code = 0;
    return s;
}

/* After a refusal that makes the sender wait, no gap is reported. */
static struct pair flag(struct mcsw *w, struct group *g, const struct work *k, enum verdict v)
{
    uint8_t when = v == V_ACCEPT || v == V_GAP || v == V_WAIT || v == V_READ ? SET : KEEP;

    return mcsw_access(w, REG_FLAG, &mcsw_ingress(w, g)->sender[k->b.rank].flag,
                       (struct program){.hi = {when, false, {0, 0, v == V_GAP || v == V_WAIT}, 0}})
        .was;
}

static void nak(struct mcsw *w, const struct group *g, struct work *k, const struct seen *s,
                uint8_t syndrome)
{
    uint32_t psn = s->mine ? roce_psn_add(s->agg.lo, 1) : s->epsn.was.lo;

    if (MCSW_MUTANT(1) && syndrome == ROCE_NAK_SEQUENCE)
        psn = s->epsn.was.lo;
    mcsw_answer(w, g, k, k->b.rank, psn, syndrome, s->mine ? s->agg.hi : s->epsn.was.hi);
}

static void read_status(struct mcsw *w, struct group *g, struct work *k, const struct seen *s)
{
    uint8_t b[MCSW_STATUS_BYTES] = {0};

    roce_put16(b, MCSW_MAGIC);
    b[2] = MCSW_VERSION;
    b[3] = 1; /* controls of two levels */
    roce_put32(b + 4, w->c.boot);
    roce_put32(b + 8, k->b.group);
    roce_put16(b + 12, g->receivers);
    roce_put16(b + 14, (uint16_t)s->hold.was.lo);
    roce_put32(b + 16, s->topo.lo >> 8);
    roce_put32(b + 20, s->topo.hi);
    roce_put32(b + 24, s->agg.lo);
    roce_put32(b + 28, s->epsn.is.lo);
    roce_put32(b + 32, s->dirty.lo);
    w->count.status_reads++;
    mcsw_answer_status(w, g, k, k->b.rank, s->epsn.is.hi, b);
}

static bool start_copies(struct mcsw *w, struct group *g, struct work *k, const struct seen *s,
                         bool repeat)
{
    k->b.k = 0;
    k->b.n = s->topo.lo & 255;
    k->b.version = s->topo.lo >> 8;
    k->b.repeat = repeat;
    k->b.pass = PASS_COPY;
    w->count.repeats += repeat;
    return mcsw_pass_copy(w, g, k);
}

static bool start_lock(struct work *k, const struct seen *s)
{
    k->b.holder = (uint16_t)s->hold.was.lo;
    k->b.topo = s->topo.lo;
    k->b.messages = s->mine ? s->agg.hi : s->epsn.was.hi;
    k->b.pass = PASS_LOCK;
    return true;
}

static bool start_theft(struct work *k, const struct seen *s)
{
    k->b.holder = (uint16_t)s->hold.was.lo;
    k->b.seen = s->hold.was.hi;
    k->b.pass = PASS_STEAL;
    return true;
}

static bool act(struct mcsw *w, struct group *g, struct work *k, const struct seen *s,
                enum verdict v)
{
    switch (v) {
    case V_ACCEPT:
        return start_copies(w, g, k, s, false);
    case V_REPEAT:
        return start_copies(w, g, k, s, true);
    case V_LOCK:
        return start_lock(k, s);
    case V_STEAL:
        return start_theft(k, s);
    case V_RELEASE:
        k->b.version = s->topo.lo >> 8;
        k->b.pass = PASS_RELEASE;
        return true;
    case V_COMPLETE:
        w->count.acks_local++;
        mcsw_answer(w, g, k, k->b.rank, s->agg.lo, ROCE_CREDITS_NONE, s->agg.hi);
        return false;
    case V_FINISHED:
        w->count.acks_local++;
        mcsw_answer(w, g, k, k->b.rank, roce_psn_add(s->epsn.was.lo, ROCE_PSN_MASK),
                    ROCE_CREDITS_NONE, s->epsn.was.hi);
        return false;
    case V_FALSE_RELEASE:
        mcsw_answer(w, g, k, k->b.rank, k->p.psn, ROCE_CREDITS_NONE, s->epsn.was.hi);
        return false;
    case V_READ:
        read_status(w, g, k, s);
        return false;
    case V_WAIT:
        w->count.refused++;
        nak(w, g, k, s, (uint8_t)(ROCE_SYNDROME_RNR | w->c.rnr_timer));
        return false;
    case V_REFUSE:
        nak(w, g, k, s, s->code);
        return false;
    default:
        return false;
    }
}

bool mcsw_pass_request(struct mcsw *w, struct group *g, struct work *k)
{
    struct seen s;
    struct pair f;
    enum verdict v;

    if (!known_sender(w, g, k))
        return false;
    s = look(w, g, k);
    v = decide(w, g, k, &s);
    f = flag(w, g, k, v);
    if (f.lo) {
        nak(w, g, k, &s, ROCE_NAK_OPERATION);
        return false;
    }
    if (v == V_GAP) {
        if (f.hi)
            w->count.drop_gap++;
        else
            nak(w, g, k, &s, ROCE_NAK_SEQUENCE);
        return false;
    }
    return act(w, g, k, &s, v);
}
