/* SPDX-License-Identifier: BSD-3-Clause */
/* Faults on purpose: what a rule of SOFTHCA_FAULT says (fault_parse.c), which rules are in force
 * and which of them an operation meets (fault.c), and what happens to a work request that met one
 * (fault_run.c). The language is described in fault-language.txt. */
#ifndef SHCA_FAULT_H
#define SHCA_FAULT_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define SHCA_FAULT_RULES 32   /* rules in force at once */
#define SHCA_FAULT_TEXT  1024 /* bytes of all of them */

enum shca_fault_kind {
    SHCA_FAULT_DELAY,
    SHCA_FAULT_LATE,
    SHCA_FAULT_REORDER,
    SHCA_FAULT_EARLY,
    SHCA_FAULT_DROP,
    SHCA_FAULT_RNR,
    SHCA_FAULT_ERROR,
    SHCA_FAULT_ENOMEM,
    SHCA_FAULT_SQFULL,
    SHCA_FAULT_KILL,
    SHCA_FAULT_CQOVERRUN,
    SHCA_FAULT_UNPLUG,
    SHCA_FAULT_KINDS
};

enum shca_fault_op { SHCA_OP_SEND, SHCA_OP_WRITE, SHCA_OP_READ, SHCA_OP_ATOMIC, SHCA_OP_ANY };

/* What the wire swallows: a request that never arrives, or the answer to one that was carried out.
 */
enum shca_lost { SHCA_LOST_NOTHING, SHCA_LOST_ACK, SHCA_LOST_REQUEST };

/* Calls that a rule "enomem" can make fail. */
enum shca_fault_call {
    SHCA_CALL_ALLOC_PD,
    SHCA_CALL_CREATE_AH,
    SHCA_CALL_CREATE_COMP_CHANNEL,
    SHCA_CALL_CREATE_CQ,
    SHCA_CALL_CREATE_QP,
    SHCA_CALL_CREATE_SRQ,
    SHCA_CALL_OPEN_XRCD,
    SHCA_CALL_REG_MR,
    SHCA_CALL_RESIZE_CQ,
    SHCA_CALL_ANY
};

struct shca_fault_rule {
    enum shca_fault_kind kind;
    int dev;            /* -1: any */
    uint32_t port, qpn; /* 0: any */
    enum shca_fault_op op;
    enum shca_fault_call call;
    enum ibv_wc_status status;
    enum shca_lost lost;
    uint64_t nth, every, after, count; /* 0: not given */
    uint64_t for_ns;                   /* 0: for ever */
    uint32_t ppb;                      /* probability in parts of 10^9 */
    bool polls;                        /* low and high are empty polls, otherwise ns */
    uint64_t low, high;
    uint32_t at, length; /* its text */
    uint64_t seen, fired;
};

struct shca_fault_rules {
    unsigned n;
    struct shca_fault_rule rule[SHCA_FAULT_RULES];
    char text[SHCA_FAULT_TEXT];
};

/* Pure: reads "rule;rule;..." without side effects. False: the reason is in why. */
bool shca_fault_parse(const char *text, struct shca_fault_rules *out, char *why, size_t n);

/* Puts these rules in force in place of those before; 0, or EINVAL with the reason in why. */
int shca_fault_set(const char *spec, char *why, size_t n);
void shca_fault_clear(void);
/* One line for each rule in force: its text, operations it matched, times it acted. */
void shca_fault_list(char *out, size_t n);
void shca_fault_inherited(void); /* after fork() */

/* ---- for the places where faults act ---- */

struct shca_fault_flags {
    /* Set with the first rule and never cleared: a request may still be under way under a rule that
     * is gone. */
    _Atomic bool on;
    _Atomic bool dying; /* the transfer under way ends half-way, and with it this process */
};
extern struct shca_fault_flags shca_fault_flags;

static inline bool shca_faults(void)
{
    return __builtin_expect(atomic_load_explicit(&shca_fault_flags.on, memory_order_relaxed), 0);
}

static inline bool shca_fault_dying(void)
{
    return __builtin_expect(atomic_load_explicit(&shca_fault_flags.dying, memory_order_relaxed), 0);
}

/* Set with the first rule and by a limit on some port (rate.h), and never cleared: requests do not
 * go straight to execution. A process without either pays one load and a branch that is not taken.
 */
extern _Atomic bool shca_detour;

static inline bool shca_detours(void)
{
    return __builtin_expect(atomic_load_explicit(&shca_detour, memory_order_relaxed), 0);
}

/* Who asks. */
struct shca_fault_subject {
    int dev;
    uint32_t port, qpn;
    enum shca_fault_op op;
    enum shca_fault_call call;
};

/* What the rules in force have for one work request, put together. */
struct shca_verdict {
    uint64_t delay, late, early, rnr; /* ns, 0: none */
    uint64_t late_polls;
    enum shca_lost
        unplug; /* the cable of the port goes out: before the request, or before its answer */
    uint64_t unplug_ns;        /* 0: for ever */
    enum ibv_wc_status status; /* IBV_WC_SUCCESS: none */
    bool kill, overrun;
};

/* The work request at the head of a send queue; sq_lock protects it. */
struct shca_fault_state {
    int stage; /* 0: no rule has been asked about it yet */
    unsigned lost;
    bool unheard; /* the answer to this sending is lost */
    bool polls;
    uint32_t polls_until;
    enum ibv_wc_status status;
    uint64_t until, rnr_until;
    struct shca_verdict verdict;
    struct shca_held *held; /* by the request that is being executed (early.c) */
};

/* Does a rule of this kind hit the operation? For the kinds that are asked for one by one. */
bool shca_fault_hits(enum shca_fault_kind kind, const struct shca_fault_subject *who);
/* What happens to the packet of this sending by the rules "drop". */
enum shca_lost shca_fault_lost(const struct shca_fault_subject *who);
void shca_fault_judge(const struct shca_fault_subject *who, struct shca_verdict *out);

/* Ends this process as a power failure would; does not return. */
void shca_fault_die(void) __attribute__((noreturn));

/* Empty polls since a request waited for them. */
extern _Atomic uint32_t shca_fault_polls;
/* Has the program polled often enough for a late completion? */
static inline bool shca_fault_due(const struct shca_fault_state *f)
{
    return f->polls && (int32_t)(atomic_load_explicit(&shca_fault_polls, memory_order_relaxed) -
                                 f->polls_until) >= 0;
}

#endif
