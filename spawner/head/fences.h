/* SPDX-License-Identifier: BSD-3-Clause */
/* Exchanges of PMIx servers of several hosts through the head: the parts of a fence are collected
 * until each host that takes part has sent its own; requests for the data of a rank are recorded
 * until they are answered. Owns open fences and requests; makes no system call; one thread, no
 * lock. */
#ifndef TRUNKLINE_SPAWNER_FENCES_H
#define TRUNKLINE_SPAWNER_FENCES_H

#include "spawner/util/byte_queue.h"
#include "spawner/util/job.h"

#include <stddef.h>

struct fence;
struct question;

struct fences {
    const struct job *job;
    struct fence *open;
    struct question *questions;
};

/* A fence that is complete. */
struct fence_result {
    struct bytes payload; /* of FENCE_DONE; the receiver frees it */
    bool everywhere;      /* all hosts take part */
    bool *takes_part;     /* by host; the receiver frees it */
};

/* A host's part of a fence. True when it was the last one. Invalid parts are dropped: the job's
 * start timeout handles a server that sends them. */
bool fences_add(struct fences *t, uint32_t host, const uint8_t *payload, size_t length,
                struct fence_result *result);

/* Host `asker` requests data of a rank of host `target`; and the reply has passed through. */
void fences_ask(struct fences *t, uint32_t asker, uint32_t target, uint32_t id);
void fences_answered(struct fences *t, uint32_t asker, uint32_t id);

/* Removes and returns the next request to `target`, which has left the job. False if no request is
 * left. */
bool fences_unanswered(struct fences *t, uint32_t target, uint32_t *asker, uint32_t *id);

void fences_free(struct fences *t);

#endif
