/* SPDX-License-Identifier: BSD-3-Clause */
/* The job as decided before anything is started: passed from run/ to head, agent and guard. Written
 * once, by run/ in the head and from the JOB frame in a guard, read-only for all others; no lock.
 */
#ifndef TRUNKLINE_SPAWNER_JOB_H
#define TRUNKLINE_SPAWNER_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>

enum job_stream { JOB_STDIN, JOB_STDOUT, JOB_STDERR };

/* How the guards of other hosts are started. */
enum job_agent { JOB_AGENT_FORK, JOB_AGENT_SSH };

enum job_bind { JOB_BIND_NONE, JOB_BIND_CORE, JOB_BIND_SOCKET };

/* GASNET_SOFTHCA */
enum job_softhca { JOB_SOFTHCA_AUTO, JOB_SOFTHCA_ALWAYS, JOB_SOFTHCA_NEVER };

/* Files that ranks write for --report. */
enum job_file { JOB_FILE_STATS, JOB_FILE_TRACE, JOB_FILES };

/* job.host where no host is meant: in the head. */
#define JOB_NO_HOST UINT32_MAX

/* Soft limits of resources by their number, RLIMIT_CPU = 0 and so on; Linux has 16. */
enum { JOB_LIMITS = 16 };

/* Ranks first .. first + count - 1. Blocks of ranks follow each other in the order of the hosts,
 * and no host is without ranks. */
struct job_host {
    const char *name; /* for PMIx and for messages, unique in the job */
    uint32_t first, count;
    bool is_virtual; /* a guard, server and ranks of its own on the launcher's host */
};

struct job {
    uint32_t ranks;
    struct job_host *hosts;
    uint32_t host_count;
    uint32_t host; /* index of the guard's own host; JOB_NO_HOST in the head */
    enum job_agent agent;
    uint32_t out_degree; /* hosts that one process starts; 0 = all */
    uint32_t heartbeat_ms;
    const char *program;   /* path with a slash */
    const char *directory; /* to run in; NULL: where the launcher is */
    char **argv;           /* what the program sees, NULL-terminated */
    char **env;            /* environment of every rank, without PMIx's part, NULL-terminated */
    bool label;            /* lines carry their rank */
    bool keep;             /* leave the session directory */
    bool report;           /* guards send what their ranks wrote (enum job_file) to the head */
    char nspace[64];       /* name of the job for PMIx */
    char session[4096];    /* directory for libpmix's files; see session_of_host() */
    uint32_t grace_ms;     /* between SIGTERM and SIGKILL */
    int64_t began;         /* when the launcher was started, clock_ms */
    uint32_t start_ms;     /* from then, for all ranks to join; 0 = for ever */
    uint32_t reader_ms;    /* for the reader of the output, once no rank lives; 0 = for ever */
    uint32_t stall_ms;     /* in one wait before a hang is explained; 0 = never; only in the head */
    uint32_t connect_ms;   /* for a guard to connect */
    struct rlimit files;   /* RLIMIT_NOFILE for the ranks, as the user set it */
    uint64_t
        soft_limits[JOB_LIMITS]; /* for hosts that do not inherit them; RLIM_INFINITY = leave */
    int ignored[10];             /* signals ignored when we were started, 0-terminated */
    enum job_bind bind;
    uint32_t cpus; /* of each rank, where it is bound; 0 = 1 */
    const char *ssh_command, *ssh_options, *remote_path,
        *master_address; /* NULL or empty: default */
    /* Only in the head, and only if other hosts take part: input to the decisions that it makes
     * once it knows those hosts. */
    enum job_softhca softhca;
    bool own_port;      /* the launcher's host has an active RDMA port */
    char **softhca_env; /* NAME=value for ranks that use softhca, NULL-terminated; NULL: there is no
                           softhca here */
};

/* The host of a rank below job->ranks. */
static inline uint32_t job_host_of(const struct job *job, uint32_t rank)
{
    uint32_t low = 0, high = job->host_count;
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (job->hosts[middle].first <= rank)
            low = middle;
        else
            high = middle;
    }
    return low;
}

#endif
