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

/* Makes the memory in which neighbours leave their messages for us, and fills in card->rings. */
enum tk_status tk_shm_open(struct tk_card *card);

/* After the cards came and the topology is known: neighbours are reached this way from now on. The
 * memory of one of them is mapped here and now, so that what prevents it is found at start; that of
 * the others when they are first spoken to. */
enum tk_status tk_shm_connect(void);

void tk_shm_close(void);

/* Where an endpoint's segment, a neighbour's, lies in this process: its shift, or tk_far when it is
 * the client's own memory, when it cannot be mapped (and why was told), or when there is none.
 * Thread-safe. */
uintptr_t tk_shm_shift(struct tk_peer *peer, uint32_t endpoint);

/* Looks whether a segment of a neighbour's that is no file can be read and written all the same.
 * Tells why not. Thread-safe. */
enum tk_status tk_shm_try_segment(struct tk_peer *peer, const struct tk_bound *bound);

/* Before a segment of the client's own memory is published: neighbours will reach into this
 * process. */
void tk_shm_admit_neighbours(void);

/* For people. */
void tk_shm_describe(char *text, size_t size);

#endif
