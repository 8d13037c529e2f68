/* SPDX-License-Identifier: BSD-3-Clause */
/* sharing over raw verbs: what connections and threads have. For sharing_raw.c and sharing.c. */
#ifndef SHARING_RAW_H
#define SHARING_RAW_H

#include <pthread.h>
#include <stdatomic.h>

#include "rails.h"
#include "sharing.h"

/* An operation as verbs want it. */
struct request {
    struct request *below; /* on a connection's pile */
    struct ibv_send_wr wr;
    struct ibv_sge sge;
};

/* An operation of a thread. Other threads check that it is still the one they found, and report its
 * completion. */
struct share_slot {
    _Alignas(64) _Atomic uint32_t posted, done; /* generations */
    _Atomic uint32_t connection;
    struct request request;
};

struct connection {
    _Alignas(64) _Atomic int credits;
    _Atomic int least_credits;
    trunkline_qp_t qp;
    struct rma_block block; /* its own, or that of its rail */
    uint64_t remote;
    uint32_t key, inline_size, number, group;
    unsigned rail;
    gex_Rank_t peer;
    pthread_mutex_t mutex;
    pthread_spinlock_t spin;
    _Atomic(struct request *) pile;
    _Atomic bool is_held;
};

struct sharer {
    uint32_t thread;
    struct share_slot *slots;
    struct sharing_cost cost;
    struct connection *chain; /* with requests that wait for the doorbell */
    struct ibv_send_wr *first, *last;
    uint64_t chained;
    bool is_armed;
};

#endif
