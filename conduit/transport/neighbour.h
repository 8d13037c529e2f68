/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Neighbours, ranks of this host with which we share memory, as the rooms above see them, whichever
 * transport shares it (struct tk_transport). */
#ifndef TK_NEIGHBOUR_H
#define TK_NEIGHBOUR_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "peer/peer.h"

/* A piece of each neighbour's memory, by its index in the neighbourhood, for flags of the rooms
 * above: zeroed at start, at a multiple of a line. Ours is there too. NULL: it can't be mapped,
 * which was logged. Thread-safe. */
enum {
    tk_flags_size = 4096,
    tk_flags_of_exit = tk_flags_size / 2 /* from here on; before: of collective */
};
void *tk_neighbour_flags(uint32_t neighbour);

/* Another piece of each neighbour's memory, for collectives, in GASNET_COLL_CHANNELS parts: pages
 * that nobody has written to cost nothing. Zeroed at start, at a multiple of a page. NULL: it can't
 * be mapped, which was logged and ends the job. Thread-safe. */
enum { tk_scratch_channel = 4096 + 16 * 16384 };
void *tk_neighbour_scratch(uint32_t neighbour);

/* After anything is written that a neighbour waits for and that is no message: wakes it if it
 * sleeps. Our own rank: for our other threads. Thread-safe. */
void tk_neighbour_wake(uint32_t rank);

/* Where an endpoint's segment, a neighbour's, lies in this process: its offset, or tk_unmapped when
 * it is the client's own memory, when it cannot be mapped (and why was logged), or when there is
 * none. Thread-safe. */
uintptr_t tk_neighbour_addr_offset(struct tk_peer *peer, uint32_t endpoint);

/* Looks whether a segment of a neighbour's that is no file can be read and written all the same.
 * Logs why not. Thread-safe. */
enum tk_status tk_neighbour_try_segment(struct tk_peer *peer, const struct tk_bound *bound);

/* Before a segment of the client's own memory is published: neighbours will reach into this
 * process. */
void tk_neighbours_admit(void);

/* How a rank ends: a word that its neighbours read after its death. */
enum tk_rank_liveness {
    TK_LIVENESS_RUNS,     /* it died and logged nothing */
    TK_LIVENESS_LEAVING,  /* it was on its way out, or had asked for the end of the job */
    TK_LIVENESS_REPORTED, /* it has logged what it died of */
    TK_LIVENESS_LEFT      /* it left in order, nobody need end for it */
};

/* Ours. Async-signal-safe. Nothing goes back from REPORTED or LEFT. */
void tk_liveness_set(enum tk_rank_liveness liveness);

/* The word of a neighbour, by index in the neighbourhood; NULL: it can't be reached any more. Good
 * to read until the process ends. */
const _Atomic uint32_t *tk_liveness_of(uint32_t index);

#endif
