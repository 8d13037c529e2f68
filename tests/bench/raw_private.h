/* SPDX-License-Identifier: BSD-3-Clause */
/* The raw queue pair, shared by raw_open.c and raw_ops.c only. One thread; no locks. */
#ifndef BENCH_RAW_PRIVATE_H
#define BENCH_RAW_PRIVATE_H

#include <infiniband/verbs.h>

#include "bench.h"

enum {
    raw_inline = 72, /* the conduit's default GASNET_INLINESEND_LIMIT */
    raw_depth = 64   /* of the send queue */
};

/* The data that the peer needs. */
struct raw_card {
    union ibv_gid gid;
    uint32_t qp_num;
    uint32_t rkey;
    uint64_t base;
    uint16_t lid;
    uint8_t mtu;
    uint8_t reads;
};

struct raw {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *send_cq, *recv_cq;
    struct ibv_qp *qp;
    struct ibv_mr *mr;
    struct raw_card mine, theirs;
    size_t inline_limit;
    int gid_index;
    uint8_t port;
    bool by_gid;
    uint8_t reads_out;
    int access; /* of the peer; atomics where the device has them */
    char name[64];
};
extern struct raw raw;

void raw_post_recv(uint64_t slot);

#endif
