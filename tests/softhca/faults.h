/* SPDX-License-Identifier: BSD-3-Clause */
/* What the tests of SOFTHCA_FAULT share. */
#ifndef SOFTHCA_FAULTS_H
#define SOFTHCA_FAULTS_H

#include "harness.h"

#define MS 0.001

static inline void faults(const char *rules)
{
    setenv("SOFTHCA_FAULT", rules, 1);
}

static inline enum ibv_qp_state state_of(const struct end *e)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr i;

    CHECK_EQ(ibv_query_qp(e->qp, &a, IBV_QP_STATE, &i), 0);
    return a.qp_state;
}

/* Ends whose sender resends after 4.096 us << timeout, retry times (7 times for ever for RNR). */
static inline void open_patient(struct end *a, struct end *b, int timeout, int rnr_retry)
{
    struct address to_a, to_b;

    end_open(a, NULL);
    end_open(b, NULL);
    to_a = address_of(a);
    to_b = address_of(b);
    to_init(a->qp);
    to_rtr(a->qp, &to_b);
    to_rts(a, timeout, rnr_retry);
    connect_to(b, &to_a);
}

static inline int write_8(struct end *a, const struct address *to, uint64_t id, size_t from)
{
    return post(a, IBV_WR_RDMA_WRITE, id, from, 8, IBV_SEND_SIGNALED, to, from);
}

#define CASE(name)                                                                                 \
    {                                                                                              \
#        name, name                                                                                \
    }

#endif
