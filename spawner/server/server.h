/* SPDX-License-Identifier: BSD-3-Clause */
/* The PMIx server process. Only the files of this folder call libpmix: its threads, locks and
 * crashes stay in a process of their own, which the guard can kill at any time and never waits for.
 */
#ifndef TRUNKLINE_SPAWNER_SERVER_H
#define TRUNKLINE_SPAWNER_SERVER_H

#include "spawner/util/job.h"

#include <stdint.h>
#include <sys/types.h>

struct server_job {
    const struct job *job;
    const char *session; /* directory for libpmix's files, exists, mode 0700 */
    int64_t check_at;    /* when to see that libpmix still answers, clock_ms */
    uint32_t patience;   /* and how long it may take, ms */
};

/* Serves PMIx for the job, called in a freshly forked child of the process `guard`. Sends each
 * rank's PMIx environment and READY on the socket `fd`, then CONNECTED, FINALIZED and ABORT as the
 * ranks come and go, until it is killed or `fd` ends. Never returns. */
void server_run(const struct server_job *job, int fd, pid_t guard) __attribute__((noreturn));

/* The host of this server. */
static inline const struct job_host *server_host(const struct server_job *s)
{
    return &s->job->hosts[s->job->host];
}

#endif
