/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks of this user on this host that other launchers have started (mpirun, srun). They have no
 * guard to ask, but each rank has a socket whose name contains the address of its record
 * (base/rank_slot.h), and any process of the user can read what a guard reads, as far as the kernel
 * allows it. Only reads. */
#ifndef TRUNKLINE_SPAWNER_OTHERS_H
#define TRUNKLINE_SPAWNER_OTHERS_H

#include "top_table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* One such job: its ranks here. */
struct others_job {
    unsigned long long id;
    uint32_t size;  /* ranks on all hosts */
    uint32_t count; /* of them here */
    struct others_rank {
        pid_t pid;
        uint32_t rank;
        uint64_t address; /* of its record */
    } * ranks;            /* in order */
};

/* The first rank here of each job: writes at most `most` of them and returns the number of jobs. */
size_t others_find(pid_t *pids, size_t most);

/* Finds the job of which the process is a rank, or which the process (such as mpirun) has started.
 * False: there is no such job. */
bool others_open(pid_t pid, struct others_job *job);
void others_close(struct others_job *job);

/* Reads the current counters of its ranks into s->ranks, which it replaces. False: no rank is left.
 */
bool others_sample(const struct others_job *job, struct top_sample *s);

/* Prints what its ranks wait for. Returns the exit status. */
int others_explain(const struct others_job *job);

#endif
