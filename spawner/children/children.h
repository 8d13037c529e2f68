/* SPDX-License-Identifier: BSD-3-Clause */
/* The ranks of this host as processes: starting one, and reaching all of them with a signal. The
 * guard, a process of one thread, owns the table; no lock. No libpmix in this room: code that kills
 * and reaps must never block. */
#ifndef TRUNKLINE_SPAWNER_CHILDREN_H
#define TRUNKLINE_SPAWNER_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct bind_plan;

/* The parameters of a rank's start, in addition to its environment. */
struct child_image {
    const char *program;          /* path of the executable, with a slash */
    char *const *argv;            /* NULL-terminated */
    struct rlimit files;          /* RLIMIT_NOFILE as the user gave it to us */
    const int *ignored;           /* signals that were ignored when we were started, 0-terminated */
    const struct bind_plan *bind; /* NULL: not bound */
    uint32_t bind_index;
    int exec_report;    /* where a child reports that it can't be started: its rank and errno */
    int last_inherited; /* child_last_inherited() */
};

/* The highest file that a program is to inherit: files of the user, which are not close-on-exec. */
int child_last_inherited(void);

struct child_report {
    uint32_t rank;
    uint32_t error;
};

/* Starts one rank with its standard files on `fds[3]`, in a process group of its own, killed when
 * the calling process dies. `env` is NULL-terminated. Returns its pid, -1 with errno when there can
 * be no process. */
pid_t child_start(const struct child_image *image, uint32_t rank, char *const *env,
                  const int fds[3]);

/* Sends `signal` to a child of the calling process. False, and nobody gets it, if that is no pid of
 * a child (0, or reaped: then another process may have the pid by now). */
bool child_signal(pid_t pid, int signal);

/* Sends `signal` to the process group of each live rank; pids[r] is 0 for one that is gone, and one
 * that is no child of the calling process is passed over as in child_signal(). */
void children_signal(const pid_t *pids, uint32_t count, int signal);

/* Sends `signal` to the process group of a process that is a child of `parent`, another process,
 * which does not reap any more. False if it is no child of it. */
bool grandchild_signal(pid_t pid, pid_t parent, int signal);

/* Sends `signal` to every child of the calling process (orphans of the ranks, when it is a
 * sub-reaper) but the `count` of `except`. Returns how many there were; signal 0 only counts. */
unsigned children_signal_all(int signal, const pid_t *except, size_t count);

/* The first `max` of these children. Returns how many there are. */
unsigned children_list(pid_t *list, size_t max, const pid_t *except, size_t count);

/* Kills with SIGKILL and reaps children until no child is left or `deadline` (clock_ms) passes. */
bool children_sweep(int64_t deadline);

#endif
