/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The memory that a process of a job takes, computed by the folders' own functions and the settings
 * in force, for a hypothetical job. Part of the launcher (gasnetrun_ibv --plan), not of the
 * library. No state. */
#ifndef TK_PLAN_H
#define TK_PLAN_H

#include "base/footprint.h"
#include "base/status.h"

/* Fills in the fields for a job of `ranks` processes, spread evenly over `hosts`, with as many
 * queue pairs to each peer as the settings say, or one if they do not say. */
void tk_plan_shape(struct tk_job_shape *shape, uint32_t ranks, uint32_t hosts);

/* TK_FAIL: a setting is wrong, which was reported. */
enum tk_status tk_plan(struct tk_footprint *total, const struct tk_job_shape *shape);

/* The part of it that one more rank of the job adds if this process is not connected to that rank.
 */
enum tk_status tk_plan_idle_peer(uint64_t *bytes, const struct tk_job_shape *shape);

#endif
