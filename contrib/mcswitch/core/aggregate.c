/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The egress of acknowledgements: translates an answer from the receiver's numbers to the sender's,
 * and computes the minimum of all receivers by one of three algorithms. */
#include "config.h"

#include "core/egress.h"

static bool to_result(struct work *k, bool minimum)
{
    k->b.has_minimum = minimum;
    k->b.pass = PASS_RESULT;
    return true;
}

/* One acknowledgement of each closes the round; the next pass opens another. */
static bool add_to_round(struct mcsw *w, struct egress *e, struct work *k, uint32_t x, uint32_t msn)
{
    struct access round;

    if ((k->b.code & ROCE_SYNDROME_KIND) != ROCE_SYNDROME_ACK)
        return to_result(k, false);
    round = mcsw_access(w, REG_ROUND, &e->round,
                        (struct program){.a = {ZERO, {1, 0, 0}},
                                         .b = {SEQ_MORE, {0, 1, 0u - x}},
                                         .lo = {SET, false, {1, 0, 0}, 1u << k->b.rank},
                                         .hi = {IF_ANY, true, {0, 0, x}, 0}});
    if (round.is.lo != k->b.mask)
        return false;
    k->b.least = round.is.hi;
    k->b.least_msn = msn;
    k->b.pass = PASS_PUBLISH;
    return true;
}

static bool aggregate(struct mcsw *w, struct egress *e, struct work *k, uint32_t x, uint32_t msn)
{
    k->b.k = 0;
    switch (w->c.aggregate) {
    case MCSW_ROUNDS:
        return add_to_round(w, e, k, x, msn);
    case MCSW_SCAN:
        k->b.pass = PASS_SCAN;
        /* Only the holder of the minimum can raise it. */
        if (mcsw_read(w, REG_MINH, &e->minh).lo == k->b.rank)
            return true;
        return (k->b.code & ROCE_SYNDROME_KIND) != ROCE_SYNDROME_ACK && to_result(k, false);
    default:
        k->b.pass = PASS_EXACT;
        return true;
    }
}

bool mcsw_egress_response(struct mcsw *w, struct group *g, struct work *k)
{
    struct egress *e = mcsw_egress(w, g);
    struct egress_receiver *v = &e->receiver[k->b.rank];
    bool nak = (k->p.syndrome & ROCE_SYNDROME_KIND) != ROCE_SYNDROME_ACK;
    struct access acked;
    uint32_t x, msn;

    if (mcsw_read(w, REG_VER, &v->version).lo != k->b.version && !MCSW_MUTANT(3)) {
        w->count.drop_version++;
        return false;
    }
    if (k->p.kind == IS_CNP) {
        mcsw_emit_cnp(w, g, k, k->b.holder);
        return false;
    }
    x = (k->p.psn - mcsw_read(w, REG_OFF, &v->off).lo - nak) & ROCE_PSN_MASK;
    msn = (k->p.msn - mcsw_read(w, REG_MSN, &v->msn).lo) & ROCE_PSN_MASK;
    if (roce_psn_diff(x, k->b.limit) >= 0 && !MCSW_MUTANT(9)) {
        w->count.drop_future++;
        return false;
    }
    acked = mcsw_access(w, REG_ACKED, &v->acked,
                        (struct program){.a = {SEQ_MORE, {-1, 0, x}},
                                         .lo = {IF_A, true, {0, 0, x}, 0},
                                         .hi = {IF_A, true, {0, 0, msn}, 0}});
    k->b.code = k->p.syndrome;
    k->b.was = roce_psn_add(x, 1);
    if (nak && k->b.code <= ROCE_NAK_SEQUENCE && roce_psn_diff(x, acked.was.lo) < 0) {
        w->count.drop_stale++;
        return false;
    }
    return aggregate(w, e, k, x, msn);
}

static void compare(struct work *k, unsigned rank, struct pair acked)
{
    if (k->b.k != 0 && roce_psn_diff(acked.lo, k->b.least) >= 0)
        return;
    k->b.least = acked.lo;
    k->b.least_msn = acked.hi;
    k->b.best = (uint8_t)rank;
}

bool mcsw_pass_exact(struct mcsw *w, struct group *g, struct work *k)
{
    struct egress *e = mcsw_egress(w, g);

    for (k->b.k = 0; k->b.k < k->b.n; k->b.k++)
        compare(k, e->list[k->b.k].lo, e->receiver[e->list[k->b.k].lo].acked);
    return to_result(k, true);
}

bool mcsw_pass_scan(struct mcsw *w, struct group *g, struct work *k)
{
    struct egress *e = mcsw_egress(w, g);
    unsigned rank = mcsw_read(w, REG_LIST, &e->list[k->b.k]).lo;

    w->count.scans++;
    compare(k, rank, mcsw_read(w, REG_ACKED, &e->receiver[rank].acked));
    if (++k->b.k == k->b.n)
        k->b.pass = PASS_PUBLISH;
    return true;
}

/* From here on an acknowledgement of the new holder starts a scan; the next pass finds one that
 * came before. */
bool mcsw_pass_publish(struct mcsw *w, struct group *g, struct work *k)
{
    struct egress *e = mcsw_egress(w, g);
    bool rounds = w->c.aggregate == MCSW_ROUNDS;
    /* A scan that is older than the set must not name a receiver of the old set. */
    bool same =
        mcsw_access(w, REG_MINH, &e->minh,
                    (struct program){.a = {ZERO, {0, 1, 0u - k->b.version}},
                                     .lo = {rounds ? KEEP : IF_A, false, {0, 0, k->b.best}, 0}})
            .a;

    if (!same) {
        w->count.drop_version++;
        return false;
    }
    if (rounds) {
        mcsw_write(w, REG_ROUND, &e->round, 0, 0);
        return to_result(k, true);
    }
    if (MCSW_MUTANT(10))
        return to_result(k, true);
    k->b.pass = PASS_VERIFY;
    return true;
}

bool mcsw_pass_verify(struct mcsw *w, struct group *g, struct work *k)
{
    struct egress *e = mcsw_egress(w, g);
    struct pair acked = mcsw_read(w, REG_ACKED, &e->receiver[k->b.best].acked);

    if (acked.lo == k->b.least)
        return to_result(k, true);
    k->b.k = 0;
    k->b.pass = PASS_SCAN;
    return true;
}
