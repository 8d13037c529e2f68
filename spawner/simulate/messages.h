/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between leaders: each takes a credit, or waits for one, and returns those that its
 * sender holds back; acknowledgements return what no message carries. Shared receive queues lend
 * credits. The decisions are those of conduit/transport/verbs/data. */
#ifndef TRUNKLINE_SPAWNER_SIMULATE_MESSAGES_H
#define TRUNKLINE_SPAWNER_SIMULATE_MESSAGES_H

#include "simulation.h"

/* Events of messages: `a` receives from `b`; `c` is the sender's key. Kinds of owners are below. */
enum { SIM_KINDS_OF_OWNERS = 64 };

/* Of an owner whose protocol bounds its messages: they take no credit where shared receive queues
 * have buffers for all of them (TK_BOUNDED). */
enum { SIM_BOUNDED = SIM_KINDS_OF_OWNERS - 1 };

struct sim_message {
    uint32_t from, to;
    uint32_t what; /* the kind of its event */
    uint32_t head; /* bytes in front of the payload */
    uint64_t key;
    uint64_t
        nbytes; /* payload; a large one travels in several messages, of which the last counts */
};

/* The credits of each connection. */
void sim_messages_open(struct simulation *s);
void sim_messages_close(struct simulation *s);

/* Both ends of a new connection have their credits. */
struct sim_end;
void sim_messages_connect(struct simulation *s, uint32_t nbrhd, struct sim_end *end);

/* Sends now, in the time of its sender's CPU. False: it waits for a credit, and s->sent() tells its
 * sender when it is gone. */
bool sim_message_send(struct simulation *s, const struct sim_message *m, uint64_t now);

/* The messages of this leader that wait are tried again, in the order in which they began to
 * wait. */
void sim_messages_retry(struct simulation *s, uint32_t nbrhd, uint64_t now);

/* Takes an event of a message. True: the message is its owner's, and `event` has its kind, and the
 * time at which it is handled. */
bool sim_message_came(struct simulation *s, struct sim_event *event);

#endif
