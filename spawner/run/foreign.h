/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting a job by mpirun or srun, whose PMIx servers the ranks then use: the command, and the
 * exec of it. Owns the memory of the command until exec; no lock. */
#ifndef TRUNKLINE_SPAWNER_FOREIGN_H
#define TRUNKLINE_SPAWNER_FOREIGN_H

#include "host_list.h"
#include "spawner/util/job.h"

enum foreign_kind { FOREIGN_MPI, FOREIGN_PMI };

struct foreign_job {
    enum foreign_kind kind;
    const char *pattern; /* of GASNET_MPIRUN_CMD or GASNET_PMIRUN_CMD; empty: none */
    const char *runner;  /* path of mpirun or srun, where there is no pattern */
    uint32_t ranks;
    uint32_t hosts; /* -N; 0 when not given */
    uint32_t nodes; /* how many hosts there will be, as far as is known; 0: it is not */
    const struct host_list *list; /* hosts that the user has named; NULL: none */
    const uint32_t *counts;       /* ranks on each of them */
    bool is_allocated; /* in the job of a batch system, which limits the ranks of a host */
    bool label;
    enum job_bind bind;
    bool bind_given; /* by --bind or -c */
    uint32_t cpus;   /* of each rank; 0 when not given */
    const char *program;
    char *const *argv;    /* of the program */
    char *const *env;     /* what the ranks inherit where they start on this host */
    const char *exported; /* -E; NULL when not given */
};

/* The command and its arguments, NULL-terminated, for foreign_free(). NULL: a pattern is wrong or
 * memory is short, and why. */
char **foreign_command(const struct foreign_job *job, char *why, size_t size);

void foreign_free(char **command);

/* Finds mpirun or srun in PATH. False: neither is there, or the one found has no PMIx server; `why`
 * has the reason. */
bool foreign_find(enum foreign_kind kind, char *path, size_t path_size, char *why, size_t size);

/* A command as a shell reads it, for people; cut where it is too long. */
void foreign_show(char *const *command, char *text, size_t size);

/* Does not return unless the command cannot be run; returns the exit status then. */
int foreign_exec(char *const *command);

#endif
