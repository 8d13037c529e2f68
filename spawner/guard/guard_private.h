/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a guard, shared by the files of guard/. One thread, no lock. */
#ifndef TRUNKLINE_SPAWNER_GUARD_PRIVATE_H
#define TRUNKLINE_SPAWNER_GUARD_PRIVATE_H

#include "guard.h"
#include "oom.h"
#include "session.h"
#include "spawner/util/job.h"
#include "spawner/children/bind.h"
#include "spawner/children/children.h"
#include "spawner/iof/pump.h"
#include "spawner/tree/tree.h"
#include "spawner/wire/report.h"
#include "spawner/wire/wire.h"

#include <sys/types.h>
#include <time.h>

enum guard_phase {
    GUARD_STARTING, /* the server is getting ready, or other hosts are */
    GUARD_RUNNING,  /* ranks live */
    GUARD_CLEANING, /* no rank lives; processes that they left behind are being ended */
    GUARD_DRAINING, /* no process is left; their last output is on its way */
    GUARD_SENDING,  /* what the ranks wrote for the report is on its way (files.c) */
    GUARD_RELAYING, /* this host is over; hosts below are not, or frames are on their way up */
};

/* Stacks that the head has requested. */
enum { STACKS_MAX = 16 };
struct guard_stacks {
    pid_t gdb;         /* 0: none runs */
    int file;          /* its output */
    pid_t pid;         /* else: the process that was asked to print them itself, */
    unsigned asked;    /* number of threads that were asked; 0: no rank is asked */
    int64_t own_until; /* no longer than that */
    uint32_t rank;
    int64_t deadline;
    uint32_t ranks[STACKS_MAX], waiting; /* those that follow it */
};

/* The file that is being sent. */
struct guard_files {
    time_t since; /* files that were not changed after this are of former jobs */
    int fd;       /* -1: the next one is to be opened */
    uint32_t next;
    struct bytes line; /* its end has not been read yet */
};

struct guard {
    const struct job *job;
    uint32_t first, count; /* the ranks of this host */
    uint32_t end;          /* the hosts job->host .. end - 1 are this one and those below */
    char session[SESSION_PATH_MAX]; /* directory of this host */
    char *session_copy; /* the same for the process that stays when the guard is killed; or NULL */
    enum guard_phase phase;
    struct wire_channel control, output, server;
    struct tree tree;  /* the hosts below */
    bool server_ready; /* ranks can be started */
    bool may_go;       /* all hosts have answered the head */
    pid_t server_pid;  /* 0 when gone */
    int lifeline; /* standard input, a pipe from the ssh that started this guard; -1: not started by
                     ssh */
    int signals;  /* signalfd */
    int exec_report[2];    /* pipe on which children report that exec failed */
    pid_t *pids;           /* one per rank of this host, 0 when gone or not started */
    char ***envs;          /* the same, from the server, until started */
    bool *finalized;       /* the same */
    struct bind_plan bind; /* where ranks are bound */
    uint32_t alive, connected_count, finalized_count;
    char **late_env;    /* settings that came with GO, NULL-terminated */
    struct pump *pumps; /* stdout and stderr of each rank */
    int input;          /* the launcher's standard input, for rank 0 itself; -1: it is relayed */
    struct feed feed;   /* the other way: a pipe to rank 0 */
    struct oom_watch memory;
    struct bytes reports; /* about ranks, not yet sent */
    int64_t reports_due, reports_latest;
    pid_t *apart; /* space for the children that are not part of this host's job */
    struct guard_stacks stack;
    struct guard_files files;
    bool killing;     /* the head has ordered the end */
    int64_t deadline; /* of the current phase: server start, KILL, end of draining */
    int64_t patience; /* when to give up processes that survive SIGKILL */
    bool left_some;   /* such processes were given up */
    int64_t tick_at;  /* when the silence of the process above is checked next */
    bool is_head_stopped;
    unsigned silent; /* intervals since anything came from above */
};

/* launch.c. Starts the PMIx server process; reports a failure to the head. */
void guard_start_server(struct guard *g);

/* Stores the environment that the server wants a rank to have. */
void guard_keep_env(struct guard *g, const struct wire_frame *frame);

/* Starts every rank and reports each pid, or the failure, to the head. */
void guard_start_ranks(struct guard *g);

/* binding.c. Decides where the ranks are bound; reports a failure to the head and returns false. */
bool guard_plan_binding(struct guard *g);
void guard_bind_rank(const struct guard *g, uint32_t rank, struct child_image *image);

/* files.c. Adds the settings by which a rank writes files for the report; `env` has space for
 * JOB_FILES more. Returns the number of entries. */
size_t guard_add_file_settings(const struct guard *g, char **env, size_t used);

/* Sends as much of these files as the channel should hold. True: all is sent. */
bool guard_send_files(struct guard *g);

/* Leaves out what is not sent yet. */
void guard_drop_files(struct guard *g);

/* report.c. Records an event of a rank. Reports are sent in batches: at once if others may wait for
 * the report, else when no further report has followed for a moment. */
void guard_report(struct guard *g, enum report_kind kind, uint32_t rank, uint32_t number);
void guard_hurry_reports(struct guard *g);

/* Reports a rank that has left in order, and all of these that live. */
void guard_take_mark(struct guard *g, uint32_t i);
void guard_take_marks(struct guard *g);
void guard_send_due_reports(struct guard *g);

/* Sends all reports, and then a frame of this host to the head. */
void guard_send(struct guard *g, enum wire_type type, uint32_t rank, const void *payload,
                size_t length);

/* Reports to the head that this host cannot go on. */
void guard_report_failure(struct guard *g, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same for what the user must know even if the job ends for another reason. */
void guard_show_failure(struct guard *g, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* end.c. The head, or the guard above, is gone: no grace period, and the output has no reader. */
void guard_abandon(struct guard *g) __attribute__((noreturn));

/* Ends this host's ranks. */
void guard_end_ranks(struct guard *g, uint32_t grace_ms);

/* Moves through the phases; each step depends on the present state only. */
void guard_advance(struct guard *g);

/* orders.c. Handles all frames that have arrived from above, from the server, and for rank 0. */
void guard_take_orders(struct guard *g);
void guard_read_server(struct guard *g);
void guard_take_input(struct guard *g);

/* counts.c. Sends the counters of each rank as the answer to that question. */
void guard_send_counts(struct guard *g, uint32_t question);

/* explain.c. Sends the waits of each rank; and, later, the stacks of one rank. */
void guard_send_waits(struct guard *g);
void guard_want_stack(struct guard *g, uint32_t rank);

/* Whether that child, which has ended, was the gdb that read stacks. */
bool guard_stack_ended(struct guard *g, pid_t pid);
void guard_watch_stack(struct guard *g);

/* Frames from below. */
extern const struct tree_events guard_tree_events;

#endif
