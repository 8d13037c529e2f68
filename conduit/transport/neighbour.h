/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Neighbours are ranks of this host with which we share memory. This is how the rooms above see
 * them, whichever transport shares the memory: the functions here call its table. */
#ifndef TK_NEIGHBOUR_H
#define TK_NEIGHBOUR_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "peer/peer.h"

/* A piece of a neighbour's memory, or of our own, for flags of the rooms above; by index in the
 * neighbourhood. It is zeroed at start and aligned to a cache line. NULL: it can't be mapped; the
 * cause was logged. Thread-safe. */
enum {
    tk_flags_size = 4096,
    tk_flags_of_exit = tk_flags_size / 2 /* from here on; below: flags of collective/ */
};
void *tk_neighbour_flags(uint32_t neighbour);

/* Another piece of a neighbour's memory, for collectives, in GASNET_COLL_CHANNELS parts. It is
 * zeroed at start and page-aligned; untouched pages cost nothing. NULL: it can't be mapped; the
 * cause was logged and the job ends. Thread-safe. */
enum { tk_scratch_channel = 4096 + 16 * 16384 };
void *tk_neighbour_scratch(uint32_t neighbour);

/* Call after writing anything, other than a message, that a neighbour waits for: wakes it if it
 * sleeps. Our own rank: wakes our other threads. Thread-safe. */
void tk_neighbour_wake(uint32_t rank);

/* Where the segment of a neighbour's endpoint lies in this process: its offset; tk_unmapped if it
 * is the client's own memory, if it cannot be mapped (the cause was logged), or if the endpoint has
 * no segment. Thread-safe. */
uintptr_t tk_neighbour_addr_offset(struct tk_peer *peer, uint32_t endpoint);

/* Checks whether a neighbour's segment that is not a file can be read and written all the same.
 * Logs the cause if not. Thread-safe. */
enum tk_status tk_neighbour_try_segment(struct tk_peer *peer, const struct tk_bound *bound);

/* Call before a segment of the client's own memory is published: lets neighbours access this
 * process. */
void tk_neighbours_admit(void);

/* How a rank ends: a word that its neighbours read after its death. */
enum tk_rank_liveness {
    TK_LIVENESS_RUNS,     /* it died without logging why */
    TK_LIVENESS_LEAVING,  /* it was leaving, or had asked for the end of the job */
    TK_LIVENESS_REPORTED, /* it died and has logged the cause */
    TK_LIVENESS_LEFT      /* it left in order: its end does not end the job */
};

/* Sets our word. Async-signal-safe. REPORTED and LEFT are final. */
void tk_liveness_set(enum tk_rank_liveness liveness);

/* The word of a neighbour, by index in the neighbourhood; NULL: it can't be reached any more.
 * Readable until the process ends. */
const _Atomic uint32_t *tk_liveness_of(uint32_t index);

/* The table of a transport that shares memory. Each member implements the function above that has
 * its name, and is called by the same threads. */
struct tk_doorbell;
struct tk_transport_neighbour {
    void *(*flags)(uint32_t neighbour);
    void *(*scratch)(uint32_t neighbour);
    void (*wake)(uint32_t rank);
    /* The doorbell that neighbours ring; progress/ sleeps on it. At start-up, one thread. */
    struct tk_doorbell *(*bell)(void);
    uintptr_t (*offset)(struct tk_peer *peer, uint32_t endpoint);
    enum tk_status (*try_segment)(struct tk_peer *peer, const struct tk_bound *bound);
    void (*admit)(void);
    void (*set_liveness)(enum tk_rank_liveness liveness); /* async-signal-safe */
    const _Atomic uint32_t *(*liveness_of)(uint32_t index);
};

#endif
