/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ingress of the lock: a sender takes it with a new set, gives it back, or steals it from a
 * holder that is silent for longer than the lease. Each function is one pass. A sender that lost a
 * race between two passes sees that at REG_HOLD. */
#include "config.h"

#include "core/ingress.h"

/* In the holder's numbers everything before the control is acknowledged. */
bool mcsw_pass_lock(struct mcsw *w, struct group *g, struct work *k)
{
    struct ingress *in = mcsw_ingress(w, g);
    struct ingress_sender *s = &in->sender[k->b.rank];
    /* Versions are odd, so never 0, the version of receivers that were never linked. */
    uint32_t version = ((k->b.topo >> 8) + 2) & ROCE_PSN_MASK;
    uint32_t links = (uint32_t)__builtin_popcount(k->b.mask);
    struct access hold, topo, epsn;
    uint8_t set;
    bool good, twice;

    hold = mcsw_access(w, REG_HOLD, &in->hold,
                       (struct program){.a = {ZERO, {1, 0, 0u - k->b.holder}},
                                        .lo = {IF_A, false, {0, 0, k->b.rank}, 0},
                                        .hi = {IF_A, false, {0, 0, mcsw_ticks(w)}, 0}});
    set = hold.a ? IF_A : KEEP;
    topo = mcsw_access(w, REG_TOPO, &in->topo,
                       (struct program){.a = {ZERO, {1, 0, 0u - k->b.topo}},
                                        .lo = {set, false, {0, 0, version << 8 | links}, 0},
                                        .hi = {set, false, {0, 0, k->b.mask}, 0}});
    good = hold.a && topo.a;
    set = good ? SET : KEEP;
    mcsw_access(w, REG_AGG, &in->agg,
                (struct program){.lo = {set, true, {0, 0, k->p.psn - 1}, 0},
                                 .hi = {set, true, {0, 0, k->b.messages}, 0}});
    mcsw_access(w, REG_REL, &in->rel,
                (struct program){.lo = {set, true, {0, 0, 0}, 0}, .hi = {set, true, {0, 0, 0}, 0}});
    epsn = mcsw_access(w, REG_EPSN, &s->epsn,
                       (struct program){.a = {good ? SEQ_ZERO : NEVER, {1, 0, 0u - k->p.psn}},
                                        .lo = {IF_A, true, {1, 0, 1}, 0}});
    mcsw_access(w, REG_INSIDE, &in->inside, (struct program){.lo = {set, false, {0, 0, 0}, 0}});
    /* The same control arrived twice between two passes: the second one does nothing. */
    twice = !good && hold.was.lo == k->b.rank;
    mcsw_access(w, REG_FLAG, &s->flag,
                (struct program){.hi = {twice ? KEEP : SET, false, {0, 0, !good}, 0}});
    if (twice)
        return false;
    if (!good) {
        w->count.refused++;
        mcsw_answer(w, g, k, k->b.rank, epsn.was.lo, (uint8_t)(ROCE_SYNDROME_RNR | w->c.rnr_timer),
                    epsn.was.hi);
        return false;
    }
    w->count.controls++;
    k->b.version = version;
    k->b.k = 0;
    k->b.n = (uint8_t)links;
    k->b.rest = k->b.mask;
    k->b.pass = PASS_LINK;
    return mcsw_pass_link(w, g, k);
}

bool mcsw_pass_release(struct mcsw *w, struct group *g, struct work *k)
{
    struct ingress *in = mcsw_ingress(w, g);
    struct ingress_sender *s = &in->sender[k->b.rank];
    struct pair hold = mcsw_read(w, REG_HOLD, &in->hold), agg;
    bool complete;

    if (hold.lo != k->b.rank)
        return false;
    /* A RELEASE of an earlier set. */
    if (mcsw_read(w, REG_TOPO, &in->topo).lo >> 8 != k->b.version)
        return false;
    agg = mcsw_read(w, REG_AGG, &in->agg);
    complete = roce_psn_diff(agg.lo, k->p.psn) >= -1 || MCSW_MUTANT(5);
    mcsw_access(w, REG_REL, &in->rel,
                (struct program){.lo = {SET, true, {0, 0, k->p.psn}, 0},
                                 .hi = {SET, true, {0, 0, complete ? UNLOCKING : WAITING}, 0}});
    mcsw_access(
        w, REG_EPSN, &s->epsn,
        (struct program){.a = {SEQ_ZERO, {1, 0, 0u - k->p.psn}}, .lo = {IF_A, true, {1, 0, 1}, 0}});
    mcsw_access(w, REG_FLAG, &s->flag, (struct program){.hi = {SET, false, {0, 0, 0}, 0}});
    k->b.holder = k->b.rank;
    k->b.pass = PASS_UNLOCK;
    return complete;
}

/* The expected PSN is behind the RELEASE since the RELEASE arrived. */
bool mcsw_pass_unlock(struct mcsw *w, struct group *g, struct work *k)
{
    struct ingress *in = mcsw_ingress(w, g);
    struct access hold, epsn;
    struct pair agg;

    hold = mcsw_access(w, REG_HOLD, &in->hold,
                       (struct program){.a = {ZERO, {1, 0, 0u - k->b.holder}},
                                        .lo = {IF_A, false, {0, 0, NOBODY}, 0}});
    if (!hold.a)
        return false;
    agg = mcsw_read(w, REG_AGG, &in->agg);
    mcsw_write(w, REG_REL, &in->rel, 0, NO_RELEASE);
    epsn = mcsw_access(w, REG_EPSN, &in->sender[k->b.holder].epsn,
                       (struct program){.hi = {SET, true, {0, 0, agg.hi + 1}, 0}});
    w->count.releases++;
    mcsw_answer(w, g, k, k->b.holder, roce_psn_add(epsn.is.lo, ROCE_PSN_MASK), ROCE_CREDITS_NONE,
                epsn.is.hi);
    return false;
}

/* Resets the old holder's numbers to what all receivers have: otherwise its repeats would count as
 * finished. */
bool mcsw_pass_steal(struct mcsw *w, struct group *g, struct work *k)
{
    struct ingress *in = mcsw_ingress(w, g);
    struct ingress_sender *old = &in->sender[k->b.holder];
    uint8_t back = MCSW_MUTANT(13) ? KEEP : SET;
    struct pair topo, agg, rel;
    struct access hold, epsn;

    k->b.pass = PASS_REQUEST;
    hold = mcsw_access(w, REG_HOLD, &in->hold,
                       (struct program){.a = {ZERO, {1, 0, 0u - k->b.holder}},
                                        .b = {ZERO, {0, 1, 0u - k->b.seen}},
                                        .lo = {IF_BOTH, false, {0, 0, STEALING}, 0}});
    if (!hold.a || !hold.b)
        return true;
    topo = mcsw_read(w, REG_TOPO, &in->topo);
    agg = mcsw_read(w, REG_AGG, &in->agg);
    rel = mcsw_read(w, REG_REL, &in->rel);
    epsn = mcsw_access(w, REG_EPSN, &old->epsn,
                       (struct program){.lo = {back, true, {0, 0, agg.lo + 1}, 0},
                                        .hi = {back, true, {0, 0, agg.hi}, 0}});
    k->b.cut = mcsw_read(w, REG_INSIDE, &in->inside).lo;
    mcsw_access(w, REG_FLAG, &old->flag, (struct program){.lo = {back, false, {0, 0, 1}, 0}});
    k->b.limit = roce_psn_add(rel.hi ? rel.lo : epsn.was.lo, ROCE_PSN_MASK);
    k->b.version = topo.lo >> 8;
    k->b.k = 0;
    k->b.n = topo.lo & 255;
    k->b.was = 0;
    w->count.steals++;
    mcsw_notify(w, g, k->b.group, k->b.holder, MCSW_FENCED);
    k->b.pass = PASS_LOSS;
    return mcsw_pass_loss(w, g, k);
}

bool mcsw_pass_free(struct mcsw *w, struct group *g, struct work *k)
{
    struct ingress *in = mcsw_ingress(w, g);
    struct access dirty;

    mcsw_access(w, REG_HOLD, &in->hold,
                (struct program){.a = {ZERO, {1, 0, 0u - STEALING}},
                                 .lo = {IF_A, false, {0, 0, NOBODY}, 0}});
    dirty = mcsw_access(w, REG_DIRTY, &in->dirty,
                        (struct program){.lo = {SET, false, {1, 0, 0}, k->b.was}});
    for (unsigned r = 0; r < g->receivers; r++)
        if ((dirty.is.lo & ~dirty.was.lo) >> r & 1) {
            w->count.dirtied++;
            mcsw_notify(w, g, k->b.group, r, MCSW_DIRTY);
        }
    k->b.pass = PASS_REQUEST;
    return true;
}
