/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Start-up of the library and attaching of the segment: the order in which rooms open.
 * Single-threaded. */
#ifndef TK_START_H
#define TK_START_H

#include "base/status.h"
#include "gasnetex.h"

/* Everything up to a connected job, ending with a barrier. When that can't be had says why and ends
 * the job. */
void tk_start(void);
bool tk_is_started(void);

/* segments.c; all ranks together. */

/* Allocates, registers and publishes the segment of endpoint 0. Fails on all ranks when it does on
 * one; size 0: this rank can't. */
enum tk_status tk_attach(uintptr_t size);

/* Publishes the segments bound to at most GASNET_MAXEPS different endpoints. */
enum tk_status tk_publish(struct trunkline_ep *const *eps, size_t count);

/* Limits of the segment, and the least over the job. */
extern uint64_t tk_segment_limit_local, tk_segment_limit_global;

/* "verbs softhca0:1 (...)": how a peer is reached, for people. */
void tk_describe_peer(uint32_t rank, char *text, size_t size);

#endif
