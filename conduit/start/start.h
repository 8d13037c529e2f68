/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Start-up of the library and attach: owns the order in which the folders' state is opened.
 * Single-threaded, no lock. */
#ifndef TK_START_H
#define TK_START_H

#include "base/status.h"
#include "gasnetex.h"

/* Everything up to a connected job, ending with a fence. On failure logs the reason and ends the
 * job. */
void tk_start(void);
bool tk_is_started(void);

/* segments.c; collective. */

/* Allocates, registers and publishes the segment of endpoint 0. Fails on all ranks if it fails on
 * one; size 0: this rank takes part but fails. */
enum tk_status tk_attach(uintptr_t size);

/* Publishes the segments bound to up to GASNET_MAXEPS different endpoints to all members of a team.
 */
enum tk_status tk_publish(struct trunkline_tm *tm, struct trunkline_ep *const *eps, size_t count);

/* Limit of the segment of this rank, and the smallest over the job. */
extern uint64_t tk_segment_limit_local, tk_segment_limit_global;

/* Describes the path to a peer for people: "verbs softhca0:1 (...)". */
void tk_describe_peer(uint32_t rank, char *text, size_t size);

#endif
