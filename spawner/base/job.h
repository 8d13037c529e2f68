/* SPDX-License-Identifier: BSD-3-Clause */
/* The job as decided before anything is started: passed from run/ to head, agent and guard. Written
 * once by run/, read-only for all others; no lock. */
#ifndef TRUNKLINE_SPAWNER_JOB_H
#define TRUNKLINE_SPAWNER_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

enum job_stream { JOB_STDIN, JOB_STDOUT, JOB_STDERR };

struct job {
    uint32_t ranks;
    const char *program; /* path with a slash */
    char **argv;         /* what the program sees, NULL-terminated */
    char **env;          /* environment of every rank, without PMIx's part, NULL-terminated */
    bool label;          /* lines carry their rank */
    bool keep;           /* leave the session directory */
    char nspace[64];     /* name of the job for PMIx */
    char host[256];      /* name of this host */
    char session[4096];  /* directory for libpmix's files; made by the guard */
    uint32_t grace_ms;   /* between SIGTERM and SIGKILL */
    int64_t began;       /* when the launcher was started, clock_ms */
    uint32_t start_ms;   /* from then, for all ranks to join; 0 = for ever */
    uint32_t reader_ms;  /* for the reader of the output, once no rank lives; 0 = for ever */
    struct rlimit files; /* RLIMIT_NOFILE for the ranks, as the user set it */
    int ignored[10];     /* signals ignored when we were started, 0-terminated */
};

#endif
