/* SPDX-License-Identifier: BSD-3-Clause */
/* What mesh_random adds to its reliable connections: between each two ranks a UC connection, UD
 * datagrams and an XRC connection, whose messages come through shared receive queues. Each message
 * names its sender, number and receiver, and every byte is verified. XRC messages come once and in
 * order, as do UC and UD messages without injected loss. With loss those may be missing, but they
 * never come twice or overtake. Owned by mesh_lanes.c, one set for each process. */
#ifndef SOFTHCA_MESH_LANES_H
#define SOFTHCA_MESH_LANES_H

#include "harness.h"

#define LANES_RANKS 16

enum lane_kind { LANE_UC, LANE_UD, LANE_XRC, LANE_KINDS };

/* In memory of all ranks. */
struct lanes_board {
    struct address uc[LANES_RANKS][LANES_RANKS];
    struct address sender[LANES_RANKS][LANES_RANKS], target[LANES_RANKS][LANES_RANKS];
    struct address ud[LANES_RANKS];
    uint32_t srqn[LANES_RANKS];
    uint32_t sent[LANE_KINDS][LANES_RANKS][LANES_RANKS];         /* [from][to], at the end */
    _Atomic uint32_t next[LANE_KINDS][LANES_RANKS][LANES_RANKS]; /* [to][from]: expected number */
    uint64_t came[LANES_RANKS];
};

/* domain: a file that makes the XRC domain of all. */
void lanes_open(struct lanes_board *board, int ranks, int me, int domain);
void lanes_connect(void);

/* Do the processes reach each other by packets? Then the sender waits half a second for an
 * acknowledgement, because the processes share few CPUs and packets are repeated anyway; in shared
 * memory a packet that a rule loses costs this time, a millisecond. */
bool lanes_of_packets(void);
int lanes_timeout(void);

/* Sends one message of that kind and length to p, if it may. */
void lanes_begin(enum lane_kind kind, int p, size_t length);

/* victim: the process that was killed, or -1. */
void lanes_serve(int victim);
bool lanes_settled(void);

/* Call it when everything has settled: tells the others how many messages must come. */
void lanes_publish(void);
bool lanes_all_came(int victim);
void lanes_close(void);

#endif
