/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Registers of a pipeline: pairs of 32-bit words, each in one stage. A pass accesses a register
 * once, by one program of at most two comparisons and two sums. Strict mode checks each access; in
 * fast mode the programs are constants that the compiler folds. Owns nothing. */
#ifndef MCSW_REGISTER_H
#define MCSW_REGISTER_H

#include "core/private.h"

enum reg {
    /* Ingress, in the order of their stages. */
    REG_HOLD,   /* group: holder, tick of its last packet */
    REG_TOPO,   /* group: version << 8 | links, mask of ranks */
    REG_AGG,    /* group: PSN that all receivers have, messages up to it */
    REG_REL,    /* group: PSN of the RELEASE, is there one */
    REG_EPSN,   /* sender: next PSN, messages completed */
    REG_INSIDE, /* group: the last packet was not the last of a message */
    REG_DIRTY,  /* group: mask of ranks */
    REG_FLAG,   /* sender: fenced, NAK sent */
    REG_CNP,    /* group: tick of the last one */
    /* Egress. */
    REG_LIST,  /* group, round: rank */
    REG_VER,   /* receiver: version of the set that linked it */
    REG_OFF,   /* receiver: PSN of its RQP minus the sender's, next PSN of its RQP */
    REG_MSN,   /* receiver: the same of messages */
    REG_VA,    /* receiver: base, low and high */
    REG_RKEY,  /* receiver */
    REG_ACKED, /* receiver: PSN in the sender's numbers, messages */
    REG_MINH,  /* group: a receiver that holds the minimum, version */
    REG_ROUND, /* group: receivers that acknowledged in this round, its minimum */
    REGS,
};

struct pair {
    uint32_t lo, hi;
};

enum compare {
    NEVER,
    ALWAYS,
    ZERO,     /* the sum is 0 */
    SEQ_ZERO, /* the lower 24 bits of the sum are 0 */
    SEQ_MORE, /* the sum as a signed 24-bit number is above 0 */
    MORE,     /* the sum as a signed 32-bit number is above 0 */
};

/* lo * the low word + hi * the high word + add; factors are -1, 0, 1. */
struct sum {
    int8_t lo, hi;
    uint32_t add;
};

struct condition {
    uint8_t compare;
    struct sum of;
};

enum when { KEEP, IF_A, IF_B, IF_BOTH, IF_ANY, SET };

/* The new word: (sum | with), of 24 bits if seq. */
struct update {
    uint8_t when;
    bool seq;
    struct sum to;
    uint32_t with;
};

struct program {
    struct condition a, b;
    struct update lo, hi;
};

struct access {
    struct pair was, is;
    bool a, b;
};

static inline uint32_t sum_of(struct sum s, struct pair p)
{
    uint32_t v = s.add;

    v += s.lo == 0 ? 0 : s.lo > 0 ? p.lo : 0u - p.lo;
    return v + (s.hi == 0 ? 0 : s.hi > 0 ? p.hi : 0u - p.hi);
}

static inline bool condition_holds(struct condition c, struct pair p)
{
    uint32_t v = sum_of(c.of, p);

    switch (c.compare) {
    case ALWAYS:
        return true;
    case ZERO:
        return v == 0;
    case SEQ_ZERO:
        return v << 8 == 0;
    case SEQ_MORE:
        return (int32_t)(v << 8) > 0;
    case MORE:
        return (int32_t)v > 0;
    default:
        return false;
    }
}

static inline uint32_t updated(struct update u, struct pair p, uint32_t old, bool a, bool b)
{
    uint32_t v;

    if (u.when == KEEP || (u.when == IF_A && !a) || (u.when == IF_B && !b) ||
        (u.when == IF_BOTH && !(a && b)) || (u.when == IF_ANY && !a && !b))
        return old;
    v = sum_of(u.to, p) | u.with;
    return u.seq ? v & ROCE_PSN_MASK : v;
}

/* strict.c: checks that each register is accessed once, in the order of stages, from its own
 * half. */
void mcsw_check_access(struct mcsw *w, enum reg reg, const struct program *p);

static inline struct access mcsw_access(struct mcsw *w, enum reg reg, struct pair *cell,
                                        const struct program p)
{
    struct access r = {.was = *cell};

    if (w->c.mode == MCSW_STRICT)
        mcsw_check_access(w, reg, &p);
    r.a = condition_holds(p.a, r.was);
    r.b = condition_holds(p.b, r.was);
    r.is.lo = updated(p.lo, r.was, r.was.lo, r.a, r.b);
    r.is.hi = updated(p.hi, r.was, r.was.hi, r.a, r.b);
    *cell = r.is;
    return r;
}

static inline struct pair mcsw_read(struct mcsw *w, enum reg reg, const struct pair *cell)
{
    if (w->c.mode == MCSW_STRICT)
        mcsw_check_access(w, reg, NULL);
    return *cell;
}

static inline void mcsw_write(struct mcsw *w, enum reg reg, struct pair *cell, uint32_t lo,
                              uint32_t hi)
{
    mcsw_access(
        w, reg, cell,
        (struct program){.lo = {SET, false, {0, 0, lo}, 0}, .hi = {SET, false, {0, 0, hi}, 0}});
}

#endif
