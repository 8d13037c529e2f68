/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the two files of the put/get test. Owned by the one client thread. */
#ifndef TESTS_JOB_PUTGET_H
#define TESTS_JOB_PUTGET_H

#include "job.h"

/* The peer of this round. */
extern gex_Rank_t peer;

/* Asks the peer whether `size` bytes at `offset` of its segment are the pattern with zeros around
 * it; the peer then clears them. */
void check_at_peer(size_t offset, size_t size, uint64_t seed);

/* Arrays of events over puts to `offset` (and on) of the peer's segment; `local` is memory of our
 * own segment that may be overwritten. */
void test_event_arrays(size_t offset, char *local);

#endif
