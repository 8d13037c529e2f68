/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of SOFTHCA_FAULT. */
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

/* Two ends, connected under these rules; the address of the second. */
static inline struct address open_with(const char *rules, struct end *a, struct end *b)
{
    faults(rules);
    open_two(a, b, NULL);
    return address_of(b);
}

/* Writes of 8 bytes, the second behind the first, of a pattern that begins with 1; when they were
 * posted. */
static inline double write_two(struct end *a, const struct address *to)
{
    double start = seconds();

    fill(a->buf, 16, 1);
    CHECK_EQ(write_8(a, to, 1, 0), 0);
    CHECK_EQ(write_8(a, to, 2, 8), 0);
    return start;
}

static inline void fetch_and_add(struct end *a, const struct address *to, size_t into,
                                 uint64_t value)
{
    struct ibv_sge sge = sge_of(a, into, 8);
    struct ibv_send_wr *bad,
        wr = {.sg_list = &sge,
              .num_sge = 1,
              .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
              .send_flags = IBV_SEND_SIGNALED,
              .wr.atomic = {.remote_addr = to->addr, .rkey = to->rkey, .compare_add = value}};

    CHECK_EQ(ibv_post_send(a->qp, &wr, &bad), 0);
}

/* ---- datagrams ---- */

static inline void open_ud(struct end *e)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR};

    end_open(e, &(struct end_options){.type = IBV_QPT_UD});
    to_init(e->qp);
    CHECK_EQ(ibv_modify_qp(e->qp, &a, IBV_QP_STATE), 0);
    a.qp_state = IBV_QPS_RTS;
    CHECK_EQ(ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

/* Two such ends; the way from the first to the second. */
static inline struct ibv_ah *open_two_ud(struct end *a, struct end *b)
{
    struct ibv_ah_attr path;
    struct address to;
    struct ibv_ah *ah;

    open_ud(a);
    open_ud(b);
    to = address_of(b);
    path = path_to(&to);
    CHECK((ah = ibv_create_ah(a->pd, &path)) != NULL);
    return ah;
}

static inline void post_datagram(struct end *a, const struct end *b, struct ibv_ah *ah, size_t from,
                                 unsigned flags)
{
    struct ibv_sge sge = sge_of(a, from, 8);
    struct ibv_send_wr *bad, wr = {.sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_SEND,
                                   .send_flags = flags,
                                   .wr.ud = {ah, b->qp->qp_num, 0x11111}};

    CHECK_EQ(ibv_post_send(a->qp, &wr, &bad), 0);
}

/* ---- errors on purpose ---- */

struct expected_error {
    const char *name;
    enum ibv_wc_status status;
    int event; /* at the other end; -1: it notices nothing */
};

/* Of three writes the second breaks the queue pair; it needs no signal, since errors always
 * complete. */
static inline void break_second(const struct expected_error *e, struct end *a, struct end *b)
{
    char rules[64];
    struct address to;
    struct ibv_wc wc;

    snprintf(rules, sizeof rules, "error:status=%s,nth=2", e->name);
    to = open_with(rules, a, b);
    fill(a->buf, 24, 1);
    for (uint64_t i = 0; i < 3; i++)
        CHECK_EQ(
            post(a, IBV_WR_RDMA_WRITE, i, i * 8, 8, i == 1 ? 0 : IBV_SEND_SIGNALED, &to, i * 8), 0);
    CHECK_EQ(wait_wc(a->scq).status, IBV_WC_SUCCESS);
    wc = wait_wc(a->scq);
    CHECK_EQ(wc.status, e->status);
    CHECK_EQ(wc.wr_id, 1);
    CHECK_EQ(wait_wc(a->scq).status, IBV_WC_WR_FLUSH_ERR);
    CHECK(filled(b->buf, 8, 1) && b->buf[8] == 0 && b->buf[16] == 0);
    CHECK_EQ(state_of(a), IBV_QPS_ERR);
    CHECK_EQ(state_of(b), e->event >= 0 ? IBV_QPS_ERR : IBV_QPS_RTS);
}

/* The rules are read once in a process, so each error has one of its own. */
static inline void in_children(void (*what)(const struct expected_error *),
                               const struct expected_error *errors, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        pid_t child = fork();
        int result;

        CHECK(child >= 0);
        if (child == 0) {
            what(&errors[i]);
            exit(0);
        }
        CHECK_EQ(waitpid(child, &result, 0), child);
        if (result != 0)
            fprintf(stderr, "with %s\n", errors[i].name);
        CHECK_EQ(result, 0);
    }
}

#define CASE(name)                                                                                 \
    {                                                                                              \
#        name, name                                                                                \
    }

#endif
