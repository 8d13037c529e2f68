/* SPDX-License-Identifier: BSD-3-Clause */
/* Where a job runs and what starts it there: the spawner, the hosts, and the ranks on each. Decided
 * once, before anything is started; owns its list of hosts; no lock. */
#ifndef TRUNKLINE_SPAWNER_PLACE_H
#define TRUNKLINE_SPAWNER_PLACE_H

#include "host_list.h"
#include "options.h"
#include "settings/settings.h"
#include "spawner/util/job.h"

enum place_spawner { PLACE_LOCAL, PLACE_SSH, PLACE_MPI, PLACE_PMI };

struct place {
    enum place_spawner spawner;
    struct host_list list; /* empty: this host, or mpirun's or srun's choice */
    uint32_t *counts;      /* ranks on each host of the list */
    uint32_t nodes;        /* hosts that get ranks, as far as is known; 0: it is not */
    bool is_allocated;     /* we are in the job of a batch system */
    bool is_here;          /* all ranks are known to run on this host */
    char origin[4200];     /* what named the hosts; empty when nothing did */
};

/* False: the options, the settings or the batch system ask for something impossible, and why. */
bool place_decide(struct place *p, const struct options *o, const struct tk_settings *s, char *why,
                  size_t size);

/* Whether another program starts the ranks. */
bool place_is_foreign(const struct place *p);

/* Fills the table of hosts of a job that this launcher starts. False without memory. */
bool place_fill(const struct place *p, struct job *job);

#endif
