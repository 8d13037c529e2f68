/* SPDX-License-Identifier: BSD-3-Clause */
/* Explaining a hang, in the head: asks the guards for the waits of their ranks, combines the
 * answers (explain.h), asks for the stacks of the ranks at the ends of the chains, and gives the
 * text to those who asked: callers of gasnetrun_ibv --explain, a signal, or GASNET_STALL_SECONDS.
 * Driven by the head's loop, never waits. One thread. */
#ifndef TRUNKLINE_SPAWNER_HANG_H
#define TRUNKLINE_SPAWNER_HANG_H

#include "explain.h"
#include "spawner/tree/tree.h"

#include <poll.h>

enum { HANG_CALLERS = 4 };

enum hang_phase { HANG_IDLE, HANG_ASKED, HANG_STACKS };

struct hang {
    const struct job *job;
    struct tree *tree;
    int listener;
    int callers[HANG_CALLERS];
    unsigned caller_count;
    enum hang_phase phase;
    bool is_for_log;   /* the user's terminal gets it too */
    bool is_look;      /* it is a check for a stall, which prints nothing if there is no stall */
    uint32_t missing;  /* hosts, then stacks, that have not answered */
    int64_t deadline;  /* of the answers */
    int64_t look_at;   /* when to look for a stall; CLOCK_NEVER: not requested */
    uint64_t reported; /* the stall that was reported last, by its beginning */
    struct explain explain;
    /* Writes lines to standard error. */
    void (*log)(void *owner, const char *text, size_t length);
    /* Whether the guard of a host has its job and has not ended: only then may it be asked. */
    bool (*is_there)(void *owner, uint32_t host);
    void *owner;
};

/* Fills in the rest of `h`, which has job, tree and those three. */
void hang_open(struct hang *h);
void hang_close(struct hang *h);

/* The user's signal. */
void hang_ask(struct hang *h);

/* Takes a frame of a guard; false: the frame is for another purpose. */
bool hang_take(struct hang *h, const struct wire_frame *f);

/* Call it with poll's result for hang_poll(); hang_watch() does the work that is due. */
struct pollfd hang_poll(const struct hang *h);
void hang_serve(struct hang *h);
void hang_watch(struct hang *h);
int64_t hang_deadline(const struct hang *h);

#endif
