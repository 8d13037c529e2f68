/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of shared receive queues: creating one, posting to it, connecting. Owns
 * nothing. */
#ifndef SOFTHCA_SRQ_H
#define SOFTHCA_SRQ_H

#include "harness.h"

static inline struct ibv_srq *new_srq(struct end *e, uint32_t depth)
{
    struct ibv_srq_init_attr init = {.srq_context = e, .attr = {.max_wr = depth, .max_sge = 4}};
    struct ibv_srq *srq = ibv_create_srq(e->pd, &init);

    CHECK(srq != NULL);
    CHECK(init.attr.max_wr >= depth && init.attr.max_sge >= 4);
    return srq;
}

static inline int post_srq(struct end *e, uint64_t id, size_t offset, size_t length)
{
    struct ibv_sge sge = sge_of(e, offset, length);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

    return ibv_post_srq_recv(e->srq, &wr, &bad);
}

static inline void connect_pair(struct end *a, struct end *b)
{
    struct address to_a = address_of(a), to_b = address_of(b);

    connect_to(a, &to_b);
    connect_to(b, &to_a);
}

/* Every receive of a queue is free again: all of them can be posted. */
static inline void expect_all_free(struct end *e, uint32_t depth)
{
    for (uint32_t i = 0; i < depth; i++)
        CHECK_EQ(post_srq(e, i, 0, 64), 0);
    CHECK_EQ(post_srq(e, depth, 0, 64), ENOMEM);
}

#endif
