/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fault injection: parsed rules of SOFTHCA_FAULT (fault_parse.c), the rules in force and which of
 * them apply to an operation (fault.c), and what happens to a work request that a rule applies to
 * (wire/fault_run.c). The language is described in fault-language.txt. Owns nothing; fault.c has
 * the lock. */
#ifndef SHCA_FAULT_H
#define SHCA_FAULT_H

#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

enum {
    SHCA_FAULT_RULES = 32,  /* rules in force at once */
    SHCA_FAULT_TEXT = 1024, /* total length of their text */
};

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
    SHCA_FAULT_DUP,
    SHCA_FAULT_KINDS
};

enum shca_fault_op { SHCA_OP_SEND, SHCA_OP_WRITE, SHCA_OP_READ, SHCA_OP_ATOMIC, SHCA_OP_ANY };

/* What is lost: a request before it arrives, or the response to one that was executed. */
enum shca_lost { SHCA_LOST_NOTHING, SHCA_LOST_ACK, SHCA_LOST_REQUEST };

/* Calls that an "enomem" rule can make fail. */
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
    uint64_t for_ns;                   /* 0: unlimited */
    uint32_t over;                     /* only packets with more bytes than this; 0: all */
    uint32_t ppb;                      /* probability in parts of 10^9 */
    bool polls;                        /* low and high count empty polls, otherwise ns */
    uint64_t low, high;
    uint32_t at, length; /* position of its text */
    uint64_t seen, fired;
};

struct shca_fault_rules {
    unsigned n;
    struct shca_fault_rule rule[SHCA_FAULT_RULES];
    char text[SHCA_FAULT_TEXT];
};

/* Pure: parses "rule;rule;...". False: the reason is in why. */
bool shca_fault_parse(const char *text, struct shca_fault_rules *out, char *why, size_t n);

/* Replaces the rules in force. Returns 0, or EINVAL with the reason in why. */
int shca_fault_set(const char *spec, char *why, size_t n);
void shca_fault_clear(void);
/* One line for each rule in force: its text, how many operations it matched, how often it fired. */
void shca_fault_list(char *out, size_t n);
void shca_fault_inherited(void); /* after fork() */

/* ---- for the places where faults are injected ---- */

struct shca_fault_flags {
    /* Set with the first rule and never cleared: a request may still be in progress under a rule
     * that was removed. */
    _Atomic bool on;
    _Atomic bool dying; /* the current transfer stops half-way and kills this process */
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

/* Set with the first rule and by a rate limit on some port (rate.h), and never cleared: requests
 * then do not go straight to execution. Without rules and limits a process pays one load and a
 * branch that is not taken. */
extern _Atomic bool shca_detour;

static inline bool shca_detours(void)
{
    return __builtin_expect(atomic_load_explicit(&shca_detour, memory_order_relaxed), 0);
}

/* The operation that rules are matched against. */
struct shca_fault_subject {
    int dev;
    uint32_t port, qpn;
    enum shca_fault_op op;
    enum shca_fault_call call;
    uint32_t packet; /* bytes of its largest packet, where that is known */
};

/* The combined effect of all rules on one work request. */
struct shca_verdict {
    uint64_t delay, late, early, rnr; /* ns, 0: none */
    uint64_t late_polls;
    enum shca_lost
        unplug;         /* pull the cable of the port: before the request, or before its response */
    uint64_t unplug_ns; /* 0: until it is plugged in again */
    enum ibv_wc_status status; /* IBV_WC_SUCCESS: no error */
    bool kill, overrun;
};

/* The effect of rules on one packet of the packet wire. */
struct shca_packet_verdict {
    bool lost, twice;
    uint64_t delay;  /* ns; what follows it waits as well */
    uint64_t behind; /* ns; what follows it overtakes it, */
    uint64_t behind_polls;
    uint64_t again; /* ns until the second one */
};

/* Kinds of rules, for shca_fault_judge. */
#define SHCA_FAULT_BIT(kind) (1u << (kind))
enum {
    SHCA_FAULTS_OF_PACKETS = SHCA_FAULT_BIT(SHCA_FAULT_DROP) | SHCA_FAULT_BIT(SHCA_FAULT_DELAY) |
                             SHCA_FAULT_BIT(SHCA_FAULT_REORDER) | SHCA_FAULT_BIT(SHCA_FAULT_DUP),
    /* On the packet wire: kinds that affect a request, and kinds that its receiver applies. */
    SHCA_FAULTS_OF_REQUESTS = SHCA_FAULT_BIT(SHCA_FAULT_LATE) | SHCA_FAULT_BIT(SHCA_FAULT_ERROR) |
                              SHCA_FAULT_BIT(SHCA_FAULT_KILL) |
                              SHCA_FAULT_BIT(SHCA_FAULT_CQOVERRUN) |
                              SHCA_FAULT_BIT(SHCA_FAULT_UNPLUG),
    SHCA_FAULTS_OF_RECEIVERS = SHCA_FAULT_BIT(SHCA_FAULT_RNR) | SHCA_FAULT_BIT(SHCA_FAULT_EARLY),
    /* In shared memory all of these, except those that only packets can have. */
    SHCA_FAULTS_IN_MEMORY = SHCA_FAULTS_OF_REQUESTS | SHCA_FAULTS_OF_RECEIVERS |
                            SHCA_FAULT_BIT(SHCA_FAULT_DELAY) | SHCA_FAULT_BIT(SHCA_FAULT_REORDER),
};

/* Fault state of the work request at the head of a send queue; sq_lock protects it. */
struct shca_fault_state {
    int stage; /* 0: not yet matched against the rules */
    unsigned lost;
    bool ack_lost; /* the response to this transmission is lost */
    bool polls;
    uint32_t polls_until;
    enum ibv_wc_status status;
    uint64_t until, rnr_until;
    struct shca_verdict verdict;
    struct shca_held *held; /* of the request that is being executed (wire/early.c) */
};

/* Whether a rule of this kind fires on the operation. For kinds that are queried one by one. */
bool shca_fault_hits(enum shca_fault_kind kind, const struct shca_fault_subject *subject);
/* The effect of the "drop" rules on this transmission. */
enum shca_lost shca_fault_lost(const struct shca_fault_subject *subject);
/* The combined effect of the rules of these kinds (bits). */
void shca_fault_judge(const struct shca_fault_subject *subject, unsigned kinds,
                      struct shca_verdict *out);
/* The combined effect of all packet rules on this packet. */
void shca_fault_packet(const struct shca_fault_subject *subject, bool response,
                       struct shca_packet_verdict *out);

/* Ends this process as abruptly as a power failure; does not return. */
void shca_fault_die(void) __attribute__((noreturn));

/* Empty polls counted while a request waits for them. */
extern _Atomic uint32_t shca_fault_polls;
/* Whether the program has polled often enough for the late completion. */
static inline bool shca_fault_due(const struct shca_fault_state *f)
{
    return f->polls && (int32_t)(atomic_load_explicit(&shca_fault_polls, memory_order_relaxed) -
                                 f->polls_until) >= 0;
}

#endif
