/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Transport to neighbours, ranks of this host with which we share memory, as the rooms above see
 * it: start-up, segments of neighbours, and its description. */
#ifndef TK_SHM_H
#define TK_SHM_H

#include <stddef.h>
#include <stdint.h>

#include "base/footprint.h"
#include "base/status.h"
#include "peer/peer.h"
#include "transport/neighbour.h"

extern const struct tk_transport tk_transport_shm;

/* Makes the memory in which neighbours leave messages for us, and fills in info->rings.
 */
enum tk_status tk_shm_open(struct tk_peer_info *info);

/* Call it when the peer infos and the topology are known: from now on this transport serves
 * neighbours. Maps the memory of one neighbour at once, so that errors show at start-up, and that
 * of each other neighbour with the first message to it. */
enum tk_status tk_shm_connect(void);

void tk_shm_close(void);

uintptr_t tk_shm_addr_offset(struct tk_peer *peer, uint32_t endpoint);

/* Our doorbell; NULL without neighbours. */
struct tk_doorbell *tk_shm_bell(void);

void tk_shm_wake(uint32_t rank);

/* See transport/neighbour.h for what these do. */
void *tk_shm_flags(uint32_t neighbour);
void *tk_shm_scratch(uint32_t neighbour);
enum tk_status tk_shm_try_segment(struct tk_peer *peer, const struct tk_bound *bound);
void tk_shm_admit_neighbours(void);
void tk_shm_set_liveness(enum tk_rank_liveness liveness);
const _Atomic uint32_t *tk_shm_liveness_of(uint32_t index);

/* Adds the memory that a rank with neighbours uses; adds nothing without neighbours. */
void tk_shm_footprint(struct tk_footprint *total, const struct tk_job_shape *shape);

/* For logs. */
void tk_shm_describe(char *text, size_t size);

#endif
