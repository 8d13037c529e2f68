/* SPDX-License-Identifier: BSD-3-Clause */
/* gasnetrun_ibv --top, in the head: asks the guards for the counters of their ranks, and passes
 * them to the caller unchanged; for --report it is a caller itself, at intervals. Callers are
 * served one after another: the next is accepted when the previous one has taken its answer. Driven
 * by the head's loop, never waits. One thread. */
#ifndef TRUNKLINE_SPAWNER_VIEW_H
#define TRUNKLINE_SPAWNER_VIEW_H

#include "spawner/util/byte_queue.h"
#include "spawner/tree/tree.h"

#include <poll.h>

enum view_phase { VIEW_IDLE, VIEW_ASKED, VIEW_GIVING };

struct view {
    const struct job *job;
    struct tree *tree;
    int listener, caller;
    enum view_phase phase;
    uint32_t question; /* number of the last one: an answer may come too late */
    uint32_t missing;  /* hosts that have not answered */
    int64_t deadline;
    struct bytes answer; /* of counts.h */
    /* Whether the guard of a host has its job and has not ended: only then may it be asked. */
    bool (*is_there)(void *owner, uint32_t host);
    void *owner;
    /* Takes an answer of counts.h for ourselves, and returns the ms until the next is due, or 0.
     * NULL: none is wanted. */
    int64_t (*sample)(void *samples, const uint8_t *answer);
    void *samples;
    int64_t sample_at;
};

/* Fills in the rest of `v`, which has job, tree and those functions. */
void view_open(struct view *v);
void view_close(struct view *v);

/* Takes a frame of a guard; false: the frame is for another purpose. */
bool view_take(struct view *v, const struct wire_frame *f);

/* Call it with poll's result for view_poll(); view_watch() does the work that is due. */
struct pollfd view_poll(const struct view *v);
void view_serve(struct view *v);
void view_watch(struct view *v);
int64_t view_deadline(const struct view *v);

#endif
