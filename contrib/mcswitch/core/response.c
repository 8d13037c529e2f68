/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ingress of acknowledgements: handles those that arrive, and the minimum of all when it comes
 * back from the egress. */
#include "config.h"

#include <string.h>

#include "core/ingress.h"

/* A CNP's interval in units of 1024 ns. */
enum { cnp_tick = 10, cnp_interval = 48 };

static bool known_receiver(const struct group *g, const struct work *k)
{
    const struct address *r = &g->receiver[k->b.rank];
    const uint8_t *ip = k->head + k->p.ip_at + (k->p.v6 ? 8 : 12);

    return k->b.rank < g->receivers && r->valid && r->port == k->p.port && g->v6 == k->p.v6 &&
           memcmp(ip, r->ip, g->v6 ? 16 : 4) == 0;
}

bool mcsw_pass_response(struct mcsw *w, struct group *g, struct work *k)
{
    struct ingress *in = mcsw_ingress(w, g);
    uint32_t tick = (uint32_t)(w->now >> cnp_tick);
    struct pair hold, topo, rel, epsn;
    struct access cnp;

    if (!known_receiver(g, k)) {
        w->count.drop_stranger++;
        return false;
    }
    hold = mcsw_read(w, REG_HOLD, &in->hold);
    if (hold.lo >= NOBODY) {
        w->count.drop_version++;
        return false;
    }
    topo = mcsw_read(w, REG_TOPO, &in->topo);
    rel = mcsw_read(w, REG_REL, &in->rel);
    epsn = mcsw_read(w, REG_EPSN, &in->sender[hold.lo].epsn);
    if (k->p.kind == IS_CNP) {
        cnp = mcsw_access(w, REG_CNP, &in->cnp,
                          (struct program){.a = {MORE, {-1, 0, tick - cnp_interval}},
                                           .lo = {IF_A, false, {0, 0, tick}, 0}});
        if (!cnp.a) {
            w->count.drop_cnp++;
            return false;
        }
    }
    k->b.holder = (uint16_t)hold.lo;
    k->b.version = topo.lo >> 8;
    k->b.n = topo.lo & 255;
    k->b.mask = topo.hi;
    k->b.limit = rel.hi ? rel.lo : epsn.lo;
    return mcsw_egress_response(w, g, k);
}

static void mark_dirty(struct mcsw *w, struct group *g, struct work *k)
{
    struct access dirty =
        mcsw_access(w, REG_DIRTY, &mcsw_ingress(w, g)->dirty,
                    (struct program){.lo = {SET, false, {1, 0, 0}, 1u << k->b.rank}});

    if (dirty.is.lo == dirty.was.lo)
        return;
    w->count.dirtied++;
    mcsw_notify(w, g, k->b.group, k->b.rank, MCSW_DIRTY);
}

bool mcsw_pass_result(struct mcsw *w, struct group *g, struct work *k)
{
    struct ingress *in = mcsw_ingress(w, g);
    uint8_t kind = k->b.code & ROCE_SYNDROME_KIND;
    struct access agg, rel;

    if (mcsw_read(w, REG_HOLD, &in->hold).lo != k->b.holder ||
        mcsw_read(w, REG_TOPO, &in->topo).lo >> 8 != k->b.version) {
        w->count.drop_version++;
        return false;
    }
    agg = mcsw_access(
        w, REG_AGG, &in->agg,
        (struct program){.a = {k->b.has_minimum ? SEQ_MORE : NEVER, {-1, 0, k->b.least}},
                         .lo = {IF_A, true, {0, 0, k->b.least}, 0},
                         .hi = {IF_A, true, {0, 0, k->b.least_msn}, 0}});
    rel = mcsw_access(w, REG_REL, &in->rel,
                      (struct program){.a = {SEQ_MORE, {-1, 0, agg.is.lo + 2}},
                                       .b = {ZERO, {0, 1, UINT32_MAX}},
                                       .hi = {IF_BOTH, false, {0, 0, UNLOCKING}, 0}});
    if (kind == ROCE_SYNDROME_NAK && k->b.code != ROCE_NAK_SEQUENCE)
        mark_dirty(w, g, k);
    if (rel.a && rel.b) {
        k->b.pass = PASS_UNLOCK;
        return true;
    }
    if (kind != ROCE_SYNDROME_ACK)
        mcsw_answer(w, g, k, k->b.holder, MCSW_MUTANT(2) ? k->b.was : roce_psn_add(agg.is.lo, 1),
                    k->b.code, agg.is.hi);
    else if (agg.a)
        mcsw_answer(w, g, k, k->b.holder, agg.is.lo, ROCE_CREDITS_NONE, agg.is.hi);
    return false;
}
