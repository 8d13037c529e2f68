/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The way to neighbours, ranks of this host with which we share memory, as the rooms above see it:
 * start-up, segments of neighbours, and what to tell people about it. */
#ifndef TK_SHM_H
#define TK_SHM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "peer/peer.h"

/* Makes the memory in which neighbours leave their messages for us, and fills in peer info->rings.
 */
enum tk_status tk_shm_open(struct tk_peer_info *info);

/* After the peer infos came and the topology is known: neighbours are reached this way from now on.
 * The memory of one of them is mapped here and now, so that what prevents it is found at start;
 * that of the others when they are first spoken to. */
enum tk_status tk_shm_connect(void);

void tk_shm_close(void);

/* Where an endpoint's segment, a neighbour's, lies in this process: its shift, or tk_unmapped when
 * it is the client's own memory, when it cannot be mapped (and why was told), or when there is
 * none. Thread-safe. */
uintptr_t tk_shm_addr_offset(struct tk_peer *peer, uint32_t endpoint);

/* Ours; NULL without neighbours. */
struct tk_doorbell *tk_shm_bell(void);

/* After anything is written that a neighbour waits for and that is no message: wakes it if it
 * sleeps. Our own rank: for our other threads. Thread-safe. */
void tk_shm_wake(uint32_t rank);

/* A piece of each neighbour's memory, by its index in the neighbourhood, for flags of the rooms
 * above: zeroed at start, at a multiple of a line. Ours is there too. NULL: it can't be mapped,
 * which was told. Thread-safe. */
enum {
    tk_shm_flags_size = 4096,
    tk_shm_flags_of_exit = tk_shm_flags_size / 2 /* from here on; before: of collective */
};
void *tk_shm_flags(uint32_t neighbour);

/* Looks whether a segment of a neighbour's that is no file can be read and written all the same.
 * Tells why not. Thread-safe. */
enum tk_status tk_shm_try_segment(struct tk_peer *peer, const struct tk_bound *bound);

/* Before a segment of the client's own memory is published: neighbours will reach into this
 * process. */
void tk_shm_admit_neighbours(void);

/* How a rank ends: a word in the file of its rings, which neighbours read after its death. */
enum tk_rank_liveness {
    TK_FATE_RUNS,    /* it died without a word */
    TK_FATE_LEAVING, /* it was on its way out, or had asked for the end of the job */
    TK_FATE_TOLD,    /* it said itself what it died of */
    TK_FATE_LEFT     /* it left in order, nobody need end for it */
};

/* Ours. Async-signal-safe. Nothing goes back from TOLD or LEFT. */
void tk_shm_set_fate(enum tk_rank_liveness fate);

/* The word of a neighbour, by index in the neighbourhood; NULL: it can't be reached any more. Good
 * to read until the process ends. */
const _Atomic uint32_t *tk_shm_fate_of(uint32_t index);

/* For people. */
void tk_shm_describe(char *text, size_t size);

#endif
