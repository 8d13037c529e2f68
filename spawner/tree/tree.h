/* SPDX-License-Identifier: BSD-3-Clause */
/* The branches of one process (the head, or a guard): the guards that it has started, and
 * everything below them. Starts them, gives each the job, carries frames down, hands frames from
 * below to the owner, asks whether each guard is alive, and notices when a branch is lost. Owns the
 * agents and both sockets of each; driven by the owner's loop, never waits. One thread, no lock. */
#ifndef TRUNKLINE_SPAWNER_TREE_H
#define TRUNKLINE_SPAWNER_TREE_H

#include "spawner/agent/agent.h"
#include "spawner/wire/wire.h"

/* Intervals without a sign of life. */
enum { TREE_SILENT_MAX = 4 };

/* For the answer to the order to end. A guard's loop blocks only in poll(); its longest step is to
 * start a thousand ranks. */
enum { TREE_ANSWER_MS = 5000 };

struct tree_branch {
    uint32_t host, end; /* the hosts host .. end - 1; the guard of the first is our child */
    struct agent *agent;
    struct wire_channel control, output;
    bool is_open;      /* the channels exist */
    bool said_hello;   /* and has been given the job */
    bool left;         /* everything below is over, and the guard has exited in order */
    bool lost;         /* reported to the owner */
    bool answered;     /* the guard has taken the order to end the job */
    bool abandoned;    /* it was killed because it did not take the order */
    int64_t answer_by; /* when it counts as stuck */
    unsigned silent;   /* intervals since anything came from it */
    char why[300];     /* why it was killed, if we did it */
};

/* Callbacks to the owner. A frame names the host that it comes from; a payload is valid during the
 * call. */
struct tree_events {
    void (*control)(void *owner, const struct wire_frame *frame);
    void (*output)(void *owner, const struct wire_frame *frame);
    /* The hosts of a branch are lost; `why` is a sentence. Called at most once for each branch. */
    void (*lost)(void *owner, uint32_t host, const char *why);
    /* A guard on this host, process `guard`, survives SIGKILL. */
    void (*stuck)(void *owner, uint32_t host, pid_t guard);
    /* A line for the user. */
    void (*note)(void *owner, const char *text);
};

struct tree {
    const struct job *job;
    const struct tree_events *events;
    void *owner;
    struct agent_set agents;
    struct tree_branch *branches;
    uint32_t count;
    struct bytes job_frame;
    int64_t tick_at; /* when the guards are asked next */
    bool ending;     /* the order to end the job has gone out */
};

/* Begins to start the guards for the hosts first .. end - 1. False without memory. */
bool tree_grow(struct tree *t, const struct job *job, uint32_t first, uint32_t end,
               agent_guard *guard, const struct tree_events *events, void *owner);

/* Frames downward, to one host or WIRE_ALL. */
void tree_send(struct tree *t, uint32_t host, enum wire_type type, uint16_t aux, uint32_t rank,
               const void *payload, size_t length);
void tree_send_number(struct tree *t, enum wire_type type, uint32_t number);

/* The order to end the job: each guard must show that it has taken it. */
void tree_kill(struct tree *t, uint32_t grace_ms);

void tree_flush(struct tree *t);

/* The descriptors that the tree waits for, for poll(2); then call tree_serve() with the same
 * entries. Output is read only if the owner has space for it. */
size_t tree_poll_max(const struct tree *t);
size_t tree_poll(struct tree *t, struct pollfd *p, bool want_output);
void tree_serve(struct tree *t, const struct pollfd *p, size_t count);

/* Does the work that is due; and the time at which to call it again. */
void tree_watch(struct tree *t);
int64_t tree_deadline(const struct tree *t);

/* The owner has reaped a child; true if that child represented a guard. */
bool tree_reaped(struct tree *t, pid_t pid, int status);

/* Writes the pids of the processes that represent guards, at most t->count, and returns their
 * number. */
size_t tree_pids(const struct tree *t, pid_t *pids);

/* Whether no guard below takes orders any more; and whether no guard below will send output any
 * more. */
bool tree_is_over(const struct tree *t);
bool tree_is_silent(const struct tree *t);

/* The channel for standard input: to host 0, in the head. NULL while it is not open. */
struct wire_channel *tree_input_channel(struct tree *t);

/* Messages on control channels so far, and their bytes. */
void tree_count(const struct tree *t, uint64_t *frames, uint64_t *bytes);
void tree_count_kind(const struct tree *t, enum wire_type type, uint64_t *frames, uint64_t *bytes);

void tree_free(struct tree *t);

#endif
