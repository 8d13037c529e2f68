/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Creates and destroys teams: the part in which the members of the parent communicate. Collective
 * and blocking; not in handlers. Thread-safe in PAR for different teams. If members disagree on an
 * argument, the job ends with a line that names two of them. */
#ifndef TK_TEAM_CREATE_H
#define TK_TEAM_CREATE_H

#include "team/team.h"

/* Ours if `is_member`; otherwise this process only takes part and the result is NULL. */
struct trunkline_tm *tk_team_split(struct trunkline_tm *parent, bool is_member, int color, int key,
                                   gex_Memvec_t scratch, gex_Flags_t flags);

/* A team of `count` members, each of whose processes is in the parent; count 0: this process only
 * takes part. */
struct tk_team_list {
    const uint32_t *jobranks;  /* by rank */
    const uint32_t *endpoints; /* by rank */
    const uint32_t *parents;   /* by rank: ranks in the parent */
    uint32_t count;
    uint32_t count_ours;         /* members that are endpoints of this process */
    const uint32_t *ours;        /* their ranks, ascending */
    const gex_Memvec_t *scratch; /* their memory */
};

/* Fills in `count_ours` teams. */
void tk_team_create(struct trunkline_tm **tms, struct trunkline_tm *parent,
                    const struct tk_team_list *list, gex_Flags_t flags);

/* Waits for all members unless the caller guarantees that all have finished with the team. Does not
 * wait in a team in which a process has several members: a process would wait for itself. */
void tk_team_destroy(struct trunkline_tm *tm, bool is_quiesced);

#endif
