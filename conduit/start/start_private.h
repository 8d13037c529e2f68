/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files of start/ only. */
#ifndef TK_START_PRIVATE_H
#define TK_START_PRIVATE_H

#include "base/status.h"
#include "peer/peer.h"

/* ---- report.c */

/* Warns of GASNET_* names that are no settings; for rank 0. */
void tk_start_report_unknown(void);

/* GASNET_VERBOSEENV: logs the settings in force, those without effect, and the choices made; for
 * rank 0. */
void tk_start_report(void);

/* ---- phases.c: times of the steps of start-up */

void tk_phases_begin(void);

/* What was done since the last call, or since the beginning; `name` is a string constant. */
void tk_phase_over(const char *name);

/* For people. */
void tk_phases_describe(char *text, size_t size);

/* ---- limits.c */

/* Before the job's own rings and buffers are allocated: fills in what the peer info has of memory.
 */
void tk_limits_measure(struct tk_peer_info *info);

/* After the device is opened or known not to be needed. */
enum tk_status tk_limits_find_pinnable(struct tk_peer_info *info);

/* After the exchange of peer infos; and for a job of one process, which has none. */
enum tk_status tk_limits_find(void);
enum tk_status tk_limits_find_single(const struct tk_peer_info *info);

/* ---- tables.c: once it is known of each rank on which host it is */

static inline size_t tk_start_tables_bytes(size_t ranks)
{
    return tk_peers_unmapped_bytes(ranks) + tk_topology_map_bytes(ranks);
}

enum tk_status tk_start_tables(const struct tk_host_info *(*info_of)(uint32_t rank));

/* ---- connect_list.c */

/* Behind the last fence: connects the ranks that a connect file lists. */
enum tk_status tk_start_connect_listed(void);

#endif
