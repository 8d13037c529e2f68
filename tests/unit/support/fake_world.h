/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Several ranks of a job in one process, over the fake device: the globals of transport/verbs and
 * below are exchanged when the test becomes another rank. For SEQ builds, where nothing holds a
 * lock across a change of rank. */
#ifndef FAKE_WORLD_H
#define FAKE_WORLD_H

#include "fake_verbs.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/data/rma_post.h"
#include "transport/verbs/verbs_state.h"

enum { world_max = 8 };

/* Where this thread runs: its distance to each device, its part of the machine, and the number of
 * queries. */
extern int world_distance[fake_devices_max];
extern unsigned world_parts; /* bits: sockets that this rank may run on */
extern unsigned world_looks;

/* This many consecutive ranks use another transport among themselves; 0: none. */
extern uint32_t world_group;

/* Ranks with the same number are on one host; from 0 on by rank unless a test says otherwise. */
extern uint32_t world_hosts[world_max];

/* Called before a rank is opened, to give it another machine; NULL: all have one of a kind. */
extern void (*world_machine)(uint32_t rank);

/* Ranks are not connected at start-up; of use with a fake of librdmacm. */
extern bool world_is_on_demand;

/* Opens and connects `size` ranks with the settings in force; each has a registered segment of
 * `segment` bytes (0: none). Leaves the test as rank 0. */
void world_open(uint32_t size, size_t segment);

/* The same in two steps, for start-ups that fail; and, while a rank waits, the next unconnected
 * rank, if any. */
void world_open_only(uint32_t size, size_t segment);
bool world_connect_next(void);

/* Fails the test unless all objects of the device are gone afterwards. */
void world_close(void);

void world_be(uint32_t rank);

/* Another rank's state, seen from outside; not for the rank that the test plays now. */
struct tk_conn *world_conn(uint32_t rank, uint32_t peer);
const struct tk_verbs *world_verbs(uint32_t rank);
void *world_segment(uint32_t rank);

/* All ranks poll and the network delivers until nothing is left to do. */
void world_settle(void);

/* A put or a get of the first bytes of rank 0's segment, to or from the same of rank 1's. */
enum tk_status world_start(struct tk_op *op, struct tk_rma *rma, struct tk_rma_state *state,
                           bool is_put, size_t nbytes);

/* Cards as peers would publish them: the fake of peer/peer_info.c. */
extern struct tk_peer_info *world_cards[world_max];

/* Makes tk_peers a job of `size` with this process as `rank`, without connections. */
void world_peers(uint32_t rank, uint32_t size);
struct tk_peer_info *world_info(uint32_t size);

#endif
