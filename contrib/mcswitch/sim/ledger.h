/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ledger of broadcasts: records what each root sends to which receivers and what has arrived,
 * and checks what must not arrive. Independent of switches and packets. Invariants
 * (doc/multicast.md):
 *
 *     I1  each receiver gets each message once, in order, whole
 *     I2  a root's completion means that all receivers have the message
 *     I3  a member outside of the set gets nothing
 *     I5  one root sends at a time
 *
 * controller.c, which sees the switches, checks I4, of sequence numbers. */
#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

#include "sim/options.h"
#include "sim/queue.h"

enum { SIM_MESSAGES_MAX = 8, SIM_WORDS = SIM_MEMBERS_MAX / 64 };

struct sim_set {
    uint64_t word[SIM_WORDS];
};

static inline bool sim_set_has(const struct sim_set *s, uint32_t i)
{
    return s->word[i / 64] >> (i % 64) & 1;
}

static inline void sim_set_add(struct sim_set *s, uint32_t i)
{
    s->word[i / 64] |= UINT64_C(1) << (i % 64);
}

struct sim_message {
    bool send, with_imm;
    uint32_t length;
    uint64_t offset; /* of a write: in the receivers' regions */
};

struct sim_broadcast {
    uint32_t id, root;
    struct sim_set to;
    uint32_t receivers, messages;
    struct sim_message message[SIM_MESSAGES_MAX];
    bool addresses;     /* its control gives new bases */
    uint32_t life;      /* of the root when it began */
    bool closed;        /* the root is done with it */
    uint32_t order;     /* order of the first arrivals; 0: not yet */
    uint32_t missing;   /* deliveries */
    uint8_t *delivered; /* of each member: messages */
    uint8_t *control;   /* the payloads of its control packet and, behind it, of its release */
    uint32_t control_bytes, release_bytes;
    roce_time began;
};

struct sim_ledger {
    const struct sim_options *o;
    struct sim_queue *q;
    struct sim_broadcast **book; /* the newest ones */
    uint32_t begun, done, failed;
    struct sim_broadcast *now; /* the one that began to arrive last */
    uint32_t orders, *order;   /* of the newest broadcast that reached each member */
    uint32_t *life;            /* of each member: how often it was expelled or restarted */
    uint64_t violations, deliveries, time; /* time: sum over finished broadcasts */
    char first[240];
};

void sim_ledger_start(struct sim_ledger *l, const struct sim_options *o, struct sim_queue *q);
void sim_ledger_end(struct sim_ledger *l);

/* Counts a violation, and keeps the text of the first. */
__attribute__((format(printf, 2, 3))) void sim_violation(struct sim_ledger *l, const char *format,
                                                         ...);

/* Makes a broadcast with an empty set and no messages. */
struct sim_broadcast *sim_ledger_begin(struct sim_ledger *l, uint32_t root);
/* Call it when its messages and its set are final. */
void sim_ledger_posted(struct sim_ledger *l, struct sim_broadcast *b);
/* The number that a message carries. */
static inline uint32_t sim_serial(const struct sim_broadcast *b, uint32_t index)
{
    return b->id * SIM_MESSAGES_MAX + index;
}
/* NULL: there is none, or it ended long ago. */
struct sim_broadcast *sim_ledger_find(struct sim_ledger *l, uint32_t serial);

/* A member has received a whole message. */
void sim_ledger_deliver(struct sim_ledger *l, uint32_t member, uint32_t serial);
/* A completion at the root says that all receivers have message `index`. */
void sim_ledger_complete(struct sim_ledger *l, struct sim_broadcast *b, uint32_t index);
/* The root is done with it. */
void sim_ledger_close(struct sim_ledger *l, struct sim_broadcast *b, bool failed);

/* Writes the bytes of a message: the serial, then a pattern that depends on it. */
void sim_pattern(uint32_t serial, uint32_t at, uint8_t *to, uint32_t length);
bool sim_is_pattern(uint32_t serial, uint32_t at, const uint8_t *bytes, uint32_t length);
/* The region that the control of broadcast `id` gives a member. */
uint64_t sim_base(uint32_t id, uint32_t member);
uint32_t sim_rkey(uint32_t id, uint32_t member);
/* The first packet of a write arrives: did a control give this member that address? */
void sim_ledger_address(struct sim_ledger *l, uint32_t member, uint32_t serial, uint64_t va,
                        uint32_t rkey);

#endif
