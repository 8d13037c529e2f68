/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Decides which rendezvous messages are read next (rendezvous.h). Has those that wait, in the order
 * in which they came, and those that are being read, at most one per place. Pure, without a device;
 * the caller's lock protects it. */
#ifndef TK_VERBS_RENDEZVOUS_QUEUE_H
#define TK_VERBS_RENDEZVOUS_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "op/op.h"

struct tk_buffer;
struct tk_conn;

/* A rendezvous request of a peer. */
struct tk_rndv {
    struct tk_rndv *next;
    struct tk_conn *conn; /* over which it came */
    struct tk_op op;      /* its read */
    struct tk_buffer *buffer;
    uint64_t address, word;
    uint32_t key, size;
    bool is_stuck;         /* it found no space in a send queue */
    bool is_acked;         /* the sender knows, or will learn, that it has been read */
    struct tk_rndv *older; /* links all that were ever made */
};

struct tk_rndv_list {
    struct tk_rndv *first, *last;
};

struct tk_rndv_queue {
    struct tk_rndv_list waiting, reading;
    int places; /* free places */
    int count;  /* waiting ones */
};

void tk_rndv_list_add(struct tk_rndv_list *list, struct tk_rndv *rndv);
struct tk_rndv *tk_rndv_list_take(struct tk_rndv_list *list); /* the first; NULL: empty */

void tk_rndv_queue_open(struct tk_rndv_queue *queue, unsigned places);
void tk_rndv_queue_add(struct tk_rndv_queue *queue, struct tk_rndv *rndv);

/* Takes the first waiting message and a place for it; NULL: none waits, or no place is free. The
 * caller then reports either that it is being read, or that it can't be read now: then those behind
 * it need not wait. */
struct tk_rndv *tk_rndv_queue_next(struct tk_rndv_queue *queue);
void tk_rndv_queue_read(struct tk_rndv_queue *queue, struct tk_rndv *rndv);
void tk_rndv_queue_put_back(struct tk_rndv_queue *queue, struct tk_rndv *rndv);

/* The oldest message whose read is complete. It keeps its place until tk_rndv_queue_leave(). */
struct tk_rndv *tk_rndv_queue_take(struct tk_rndv_queue *queue);
void tk_rndv_queue_leave(struct tk_rndv_queue *queue);

#endif
