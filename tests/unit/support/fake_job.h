/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A job for the rooms above the transports: a peer table and a transport that keeps messages,
 * refuses on request, and delivers messages for others to this process. Replaces peer/ and
 * transport/verbs. */
#ifndef FAKE_JOB_H
#define FAKE_JOB_H

#include "memory/memory.h"
#include "peer/peer.h"
#include "transport/transport.h"

enum { fake_sent_max = 256 };

/* A message or a put/get that the transport took. */
struct fake_sent {
    uint32_t to;
    bool is_rma, is_put, copy_source, sources_only, may_gather;
    struct tk_message_head *head; /* head and arguments, then the payload */
    size_t head_size, nbytes;     /* of the payload */
    uintptr_t remote;
    struct tk_op *op; /* counted until reaped */
    tk_counter_t *sources;
};

struct fake_job {
    unsigned busy_sends, busy_rmas, busy_rooms; /* how many of the next calls are refused */
    unsigned credits_held, places_held;         /* reserved, neither sent nor released */
    size_t rma_piece;                           /* maximum bytes of an rma call; 0: no limit */
    unsigned polls, reaps;
    struct fake_sent sent[fake_sent_max];
    unsigned count, delivered, reaped; /* sent; of those delivered; of those reaped */
    bool hold;                         /* polls deliver nothing */
    bool hold_ops;                     /* operations are not completed */
    bool never_copies;                 /* sources are read until reaped, even with copy_source */
    unsigned stalls_reported;
};

extern struct fake_job fake_job;
extern struct tk_transport fake_transport;

/* A job of `size`, this process rank 0; all peers over the fake transport. */
void fake_job_open(uint32_t size);
void fake_job_close(void);

/* Delivers the oldest message not yet delivered. False when there is none. */
bool fake_job_deliver(void);

#endif
