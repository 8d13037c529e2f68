/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files of start/ only. */
#ifndef TK_START_PRIVATE_H
#define TK_START_PRIVATE_H

#include "base/status.h"
#include "peer/peer.h"

/* ---- report.c */

/* Warns about each GASNET_* variable that is not a setting. Called on rank 0. */
void tk_start_report_unknown(void);

/* GASNET_VERBOSEENV: logs the settings in force, those without effect, and the choices made. Called
 * on rank 0. */
void tk_start_report(void);

/* ---- phases.c: times of the steps of start-up */

void tk_phases_begin(void);

/* Ends the phase that began at the last call, or at tk_phases_begin(), and records its times under
 * `name`, a string constant. */
void tk_phase_over(const char *name);

/* Formats the recorded phases as readable text. */
void tk_phases_describe(char *text, size_t size);

/* ---- limits.c */

/* Fills in the memory fields of the peer info. Called before the job allocates its rings and
 * buffers. */
void tk_limits_measure(struct tk_peer_info *info);

/* Called after the device is opened, or after it turned out that no device is needed. */
enum tk_status tk_limits_find_pinnable(struct tk_peer_info *info);

/* tk_limits_find() is called after the exchange of peer infos. A job of one process exchanges
 * nothing and calls tk_limits_find_single(). */
enum tk_status tk_limits_find(void);
enum tk_status tk_limits_find_single(const struct tk_peer_info *info);

/* ---- tables.c: called once the host of each rank is known */

static inline size_t tk_start_tables_bytes(size_t ranks)
{
    return tk_peers_unmapped_bytes(ranks) + tk_topology_map_bytes(ranks);
}

enum tk_status tk_start_tables(const struct tk_host_info *(*info_of)(uint32_t rank));

/* ---- connect_list.c */

/* Connects the ranks that a connect file lists. Called after the last fence of start-up. */
enum tk_status tk_start_connect_listed(void);

#endif
