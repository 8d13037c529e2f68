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
struct tk_rndv {
    struct tk_rndv *next;
    struct tk_conn *conn; /* it came over */
    struct tk_op op;      /* its read */
    struct tk_buffer *buffer;
    uint64_t address, word;
    uint32_t key, size;
    bool is_stuck;         /* it found no room in a send queue */
    bool is_acked;         /* the sender knows, or will, that it has been read */
    struct tk_rndv *older; /* of all that were made */
};

struct tk_rndv_list {
    struct tk_rndv *first, *last;
};

struct tk_rndv_queue {
    struct tk_rndv_list waiting, reading;
    int places; /* free ones */
    int count;  /* that wait */
};

void tk_rndv_list_add(struct tk_rndv_list *list, struct tk_rndv *rndv);
struct tk_rndv *tk_rndv_list_take(struct tk_rndv_list *list); /* the first; NULL: it is empty */

void tk_rndv_queue_open(struct tk_rndv_queue *queue, unsigned places);
void tk_rndv_queue_add(struct tk_rndv_queue *queue, struct tk_rndv *rndv);

/* The first that waits, with a place; NULL: none waits, or no place is free. Then one of the two:
 * it is being read, or it can't be now, and those behind it are not to wait for it. */
struct tk_rndv *tk_rndv_queue_next(struct tk_rndv_queue *queue);
void tk_rndv_queue_read(struct tk_rndv_queue *queue, struct tk_rndv *rndv);
void tk_rndv_queue_put_back(struct tk_rndv_queue *queue, struct tk_rndv *rndv);

/* One whose read is complete, the oldest first. It keeps its place until that is given back. */
struct tk_rndv *tk_rndv_queue_take(struct tk_rndv_queue *queue);
void tk_rndv_queue_leave(struct tk_rndv_queue *queue);

#endif
