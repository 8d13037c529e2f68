/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which messages are pulled next (rendezvous.h): those that wait, in the order in which they came,
 * and those that are being read, as many at once as there are places. Pure, without a device; the
 * caller's lock protects it. */
#ifndef TK_VERBS_RENDEZVOUS_QUEUE_H
#define TK_VERBS_RENDEZVOUS_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "op/op.h"

struct tk_buffer;
struct tk_conn;

/* A message that a peer offered. */
struct tk_pull {
    struct tk_pull *next;
    struct tk_conn *conn; /* it came over */
    struct tk_op op;      /* its read */
    struct tk_buffer *buffer;
    uint64_t address, word;
    uint32_t key, size;
    bool is_stuck;         /* it found no room in a send queue */
    bool is_told;          /* the sender knows, or will, that it has been read */
    struct tk_pull *older; /* of all that were made */
};

struct tk_pull_list {
    struct tk_pull *first, *last;
};

struct tk_pull_queue {
    struct tk_pull_list waiting, reading;
    int places; /* free ones */
    int count;  /* that wait */
};

void tk_pull_list_add(struct tk_pull_list *list, struct tk_pull *pull);
struct tk_pull *tk_pull_list_take(struct tk_pull_list *list); /* the first; NULL: it is empty */

void tk_pull_queue_open(struct tk_pull_queue *queue, unsigned places);
void tk_pull_queue_add(struct tk_pull_queue *queue, struct tk_pull *pull);

/* The first that waits, with a place; NULL: none waits, or no place is free. Then one of the two:
 * it is being read, or it can't be now, and those behind it are not to wait for it. */
struct tk_pull *tk_pull_queue_next(struct tk_pull_queue *queue);
void tk_pull_queue_read(struct tk_pull_queue *queue, struct tk_pull *pull);
void tk_pull_queue_put_back(struct tk_pull_queue *queue, struct tk_pull *pull);

/* One whose read is complete, the oldest first. It keeps its place until that is given back. */
struct tk_pull *tk_pull_queue_take(struct tk_pull_queue *queue);
void tk_pull_queue_leave(struct tk_pull_queue *queue);

#endif
