/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a guard, shared by the files of guard/. One thread, no lock. */
#ifndef TRUNKLINE_SPAWNER_GUARD_PRIVATE_H
#define TRUNKLINE_SPAWNER_GUARD_PRIVATE_H

#include "guard.h"
#include "oom.h"
#include "spawner/base/job.h"
#include "spawner/iof/pump.h"
#include "spawner/wire/report.h"
#include "spawner/wire/wire.h"

#include <sys/types.h>

enum guard_phase {
    GUARD_STARTING, /* the server is getting ready */
    GUARD_RUNNING,  /* ranks live */
    GUARD_CLEANING, /* no rank lives; processes that they left behind are being ended */
    GUARD_DRAINING, /* no process is left; their last output is on its way */
};

struct guard {
    const struct job *job;
    uint32_t first, count; /* the ranks of this host */
    char session[4200];    /* directory of this host */
    enum guard_phase phase;
    struct wire_channel control, output, server;
    pid_t server_pid;   /* 0 when gone */
    int lifeline;       /* standard input of ssh, which has started us; -1: there is none */
    int signals;        /* signalfd */
    int exec_report[2]; /* pipe on which children report that exec failed */
    pid_t *pids;        /* one per rank of this host, 0 when gone or not started */
    char ***envs;       /* the same, from the server, until started */
    uint32_t alive;
    struct pump *pumps; /* stdout and stderr of each rank */
    struct feed feed;
    struct oom_watch memory;
    struct bytes reports; /* about ranks, not yet sent */
    bool killing;         /* the head has ordered the end */
    int64_t deadline;     /* of the current phase: server start, KILL, end of draining */
    int64_t patience;     /* when to give up processes that survive SIGKILL */
};

/* Starts the PMIx server process; reports a failure to the head. */
void guard_start_server(struct guard *g);

/* Stores the environment that the server wants a rank to have. */
void guard_keep_env(struct guard *g, const struct wire_frame *frame);

/* Starts every rank and reports each pid, or the failure, to the head. */
void guard_start_ranks(struct guard *g);

/* Notes what happened to a rank; guard_send_reports() sends all that was noted. */
void guard_report(struct guard *g, enum report_kind kind, uint32_t rank, uint32_t number);
void guard_send_reports(struct guard *g);

/* Reports to the head that this host cannot go on. */
void guard_report_failure(struct guard *g, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
