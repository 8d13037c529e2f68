/* SPDX-License-Identifier: BSD-3-Clause */
/* Extended queue pairs: options that ibv_create_qp_ex accepts and refuses; and the builders
 * ibv_wr_*: each operation arrives, a batch is posted whole or not at all, and ibv_wr_complete
 * reports mistakes. Owns nothing beyond each case. */
#include "config.h"

#include <pthread.h>

#include "harness.h"

#define SENDS   (IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_SEND_WITH_IMM)
#define WRITES  (IBV_QP_EX_WITH_RDMA_WRITE | IBV_QP_EX_WITH_RDMA_WRITE_WITH_IMM)
#define SEND_WR 4

/* Gives an end without a queue pair an extended one; NULL leaves errno. */
static struct ibv_qp_ex *make_qp(struct end *e, enum ibv_qp_type type, uint64_t ops)
{
    struct ibv_qp_init_attr_ex init = {
        .send_cq = e->scq,
        .recv_cq = e->rcq,
        .qp_type = type,
        .cap = {.max_send_wr = SEND_WR,
                .max_recv_wr = 64,
                .max_send_sge = 2,
                .max_recv_sge = 2,
                .max_inline_data = 300},
        .comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
        .pd = e->pd,
        .send_ops_flags = ops,
    };

    e->qp = ibv_create_qp_ex(e->ctx, &init);
    if (!e->qp)
        return NULL;
    CHECK(init.cap.max_inline_data >= 300);
    CHECK(ibv_qp_to_qp_ex(e->qp) != NULL);
    return ibv_qp_to_qp_ex(e->qp);
}

/* A connected pair whose first end has the builders. */
static struct ibv_qp_ex *open_pair(struct end *a, struct end *b, uint64_t ops, struct address *to_b)
{
    static const struct end_options without = {.no_qp = true};
    struct ibv_qp_ex *x;
    struct address to_a;

    end_open(a, &without);
    x = make_qp(a, IBV_QPT_RC, ops);
    CHECK(x != NULL);
    end_open(b, NULL);
    to_a = address_of(a);
    *to_b = address_of(b);
    connect_to(a, to_b);
    connect_to(b, &to_a);
    return x;
}

static void refused(struct end *e, struct ibv_qp_init_attr_ex *init, int error)
{
    errno = 0;
    CHECK(ibv_create_qp_ex(e->ctx, init) == NULL);
    CHECK_EQ(errno, error);
}

static void creation(void)
{
    static const struct end_options without = {.no_qp = true};
    static const uint64_t never[] = {IBV_QP_EX_WITH_LOCAL_INV,     IBV_QP_EX_WITH_BIND_MW,
                                     IBV_QP_EX_WITH_SEND_WITH_INV, IBV_QP_EX_WITH_TSO,
                                     IBV_QP_EX_WITH_ATOMIC_WRITE,  UINT64_C(1) << 40};
    struct end e;

    end_open(&e, &without);
    struct ibv_qp_init_attr_ex init = {.send_cq = e.scq,
                                       .recv_cq = e.rcq,
                                       .qp_type = IBV_QPT_RC,
                                       .cap = {1, 1, 1, 1, 0},
                                       .comp_mask =
                                           IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS,
                                       .pd = e.pd};

    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        init.send_ops_flags = never[i];
        refused(&e, &init, EOPNOTSUPP);
    }
    init.send_ops_flags = IBV_QP_EX_WITH_SEND | IBV_QP_EX_WITH_RDMA_READ;
    init.qp_type = IBV_QPT_UD;
    refused(&e, &init, EOPNOTSUPP);
    init.qp_type = IBV_QPT_RAW_PACKET;
    init.send_ops_flags = 0;
    refused(&e, &init, EOPNOTSUPP);
    init.qp_type = IBV_QPT_RC;
    init.comp_mask = IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    refused(&e, &init, EINVAL);
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_MAX_TSO_HEADER;
    refused(&e, &init, EOPNOTSUPP);
    init.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_CREATE_FLAGS;
    init.create_flags = IBV_QP_CREATE_SCATTER_FCS;
    refused(&e, &init, EOPNOTSUPP);
    /* Without builders there is nothing to convert to. */
    init.create_flags = 0;
    e.qp = ibv_create_qp_ex(e.ctx, &init);
    CHECK(e.qp && ibv_qp_to_qp_ex(e.qp) == NULL);
    end_close(&e);
}

static void each_operation(void)
{
    struct end a, b;
    struct address to_b;
    struct ibv_qp_ex *x = open_pair(&a, &b, SENDS | WRITES | IBV_QP_EX_WITH_RDMA_READ, &to_b);
    struct ibv_sge two[2];
    struct ibv_wc wc;

    fill(a.buf, 4096, 1);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(post_recv(&b, 100 + (uint64_t)i, 65536 + (size_t)i * 4096, 4096), 0);
    ibv_wr_start(x);
    x->wr_id = 1;
    x->wr_flags = 0;
    ibv_wr_rdma_write(x, to_b.rkey, to_b.addr);
    ibv_wr_set_sge(x, a.mr->lkey, (uintptr_t)a.buf, 1000);
    x->wr_id = 2;
    ibv_wr_rdma_write_imm(x, to_b.rkey, to_b.addr + 1000, 0xabcd);
    two[0] = sge_of(&a, 1000, 500);
    two[1] = sge_of(&a, 1500, 2596);
    ibv_wr_set_sge_list(x, 2, two);
    x->wr_id = 3;
    x->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(x);
    ibv_wr_set_sge(x, a.mr->lkey, (uintptr_t)a.buf, 2000);
    x->wr_id = 4;
    ibv_wr_rdma_read(x, to_b.rkey, to_b.addr);
    ibv_wr_set_sge(x, a.mr->lkey, (uintptr_t)a.buf + 8192, 4096);
    no_wc(b.rcq); /* nothing leaves before the end of the batch */
    CHECK_EQ(ibv_wr_complete(x), 0);
    wc = wait_wc(a.scq);
    CHECK_EQ(wc.wr_id, 3);
    CHECK_EQ(wc.opcode, IBV_WC_SEND);
    wc = wait_wc(a.scq);
    CHECK_EQ(wc.wr_id, 4);
    CHECK_EQ(wc.opcode, IBV_WC_RDMA_READ);
    CHECK(filled(b.buf, 4096, 1) && filled(a.buf + 8192, 4096, 1));
    wc = wait_wc(b.rcq);
    CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    CHECK_EQ(wc.imm_data, 0xabcd);
    CHECK_EQ(wc.byte_len, 3096);
    wc = wait_wc(b.rcq);
    CHECK_EQ(wc.opcode, IBV_WC_RECV);
    CHECK(filled(b.buf + 65536 + 4096, 2000, 1));
    close_two(&a, &b);
}

static void atomics(void)
{
    struct end a, b;
    struct address to_b;
    struct ibv_qp_ex *x = open_pair(
        &a, &b, IBV_QP_EX_WITH_ATOMIC_CMP_AND_SWP | IBV_QP_EX_WITH_ATOMIC_FETCH_AND_ADD, &to_b);
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    uint64_t *there = (uint64_t *)(void *)b.buf, *here = (uint64_t *)(void *)a.buf;
    struct ibv_qp_attr attr = {.qp_access_flags = IBV_ACCESS_REMOTE_ATOMIC};

    CHECK_EQ(ibv_rereg_mr(b.mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, access), 0);
    CHECK_EQ(ibv_modify_qp(b.qp, &attr, IBV_QP_ACCESS_FLAGS), 0);
    *there = 40;
    ibv_wr_start(x);
    x->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_atomic_fetch_add(x, b.mr->rkey, to_b.addr, 2);
    ibv_wr_set_sge(x, a.mr->lkey, (uintptr_t)a.buf, 8);
    ibv_wr_atomic_cmp_swp(x, b.mr->rkey, to_b.addr, 42, 99);
    ibv_wr_set_sge(x, a.mr->lkey, (uintptr_t)a.buf + 8, 8);
    CHECK_EQ(ibv_wr_complete(x), 0);
    CHECK_EQ(wait_wc(a.scq).opcode, IBV_WC_FETCH_ADD);
    CHECK_EQ(wait_wc(a.scq).opcode, IBV_WC_COMP_SWAP);
    CHECK(here[0] == 40 && here[1] == 42 && *there == 99);
    ibv_wr_start(x);
    ibv_wr_atomic_fetch_add(x, b.mr->rkey, to_b.addr, 2);
    ibv_wr_set_inline_data(x, a.buf, 8);
    CHECK_EQ(ibv_wr_complete(x), EINVAL);
    close_two(&a, &b);
}

static void inline_data(void)
{
    struct end a, b;
    struct address to_b;
    struct ibv_qp_ex *x = open_pair(&a, &b, SENDS, &to_b);
    char local[300];
    struct ibv_data_buf parts[2] = {{local, 100}, {local + 100, 200}};
    struct ibv_wc wc;

    fill(local, sizeof local, 7);
    CHECK_EQ(post_recv(&b, 1, 0, 4096), 0);
    CHECK_EQ(post_recv(&b, 2, 4096, 4096), 0);
    ibv_wr_start(x);
    x->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send_imm(x, 5);
    ibv_wr_set_inline_data(x, local, 300);
    ibv_wr_send(x);
    ibv_wr_set_inline_data_list(x, 2, parts);
    memset(local, 0, sizeof local); /* it is the program's again */
    CHECK_EQ(ibv_wr_complete(x), 0);
    wc = wait_wc(b.rcq);
    CHECK_EQ(wc.imm_data, 5);
    CHECK_EQ(wc.byte_len, 300);
    wc = wait_wc(b.rcq);
    CHECK_EQ(wc.byte_len, 300);
    CHECK(filled(b.buf, 300, 7) && filled(b.buf + 4096, 300, 7));
    close_two(&a, &b);
}

static void send_empty(struct ibv_qp_ex *x, uint64_t id)
{
    x->wr_id = id;
    x->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(x);
}

static void all_or_nothing(void)
{
    struct end a, b;
    struct address to_b;
    struct ibv_qp_ex *x = open_pair(&a, &b, SENDS, &to_b);

    for (uint64_t i = 0; i < 16; i++)
        CHECK_EQ(post_recv(&b, i, 0, 64), 0);
    ibv_wr_start(x);
    for (uint64_t i = 0; i < SEND_WR + 1; i++)
        send_empty(x, i);
    CHECK_EQ(ibv_wr_complete(x), ENOMEM);
    no_wc(a.scq);
    no_wc(b.rcq);
    /* Abort forgets. */
    ibv_wr_start(x);
    send_empty(x, 50);
    ibv_wr_abort(x);
    no_wc(b.rcq);
    /* A full queue is exactly full, until its completions are polled. */
    for (int round = 0; round < 3; round++) {
        ibv_wr_start(x);
        for (uint64_t i = 0; i < SEND_WR; i++)
            send_empty(x, 100 + i);
        CHECK_EQ(ibv_wr_complete(x), 0);
        ibv_wr_start(x);
        send_empty(x, 1);
        CHECK_EQ(ibv_wr_complete(x), ENOMEM);
        for (uint64_t i = 0; i < SEND_WR; i++)
            CHECK_EQ(wait_wc(a.scq).wr_id, 100 + i);
    }
    for (int i = 0; i < 3 * SEND_WR; i++)
        CHECK_EQ(wait_wc(b.rcq).wr_id, i);
    no_wc(b.rcq);
    /* An empty batch is no mistake. */
    ibv_wr_start(x);
    CHECK_EQ(ibv_wr_complete(x), 0);
    close_two(&a, &b);
}

/* Each mistake alone, beside a good request that must not be posted either. */
static void mistakes(void)
{
    struct end a, b;
    struct address to_b;
    struct ibv_qp_ex *x = open_pair(&a, &b, SENDS, &to_b);
    struct ibv_sge three[3] = {{0}};
    char local[4096];

    CHECK_EQ(post_recv(&b, 1, 0, 64), 0);
    for (int what = 0; what < 8; what++) {
        ibv_wr_start(x);
        send_empty(x, 1);
        if (what == 0) /* not asked for at creation */
            ibv_wr_rdma_write(x, to_b.rkey, to_b.addr);
        else if (what == 1)
            ibv_wr_set_sge_list(x, 3, three); /* more than max_send_sge */
        else if (what == 2)
            ibv_wr_set_inline_data(x, local, sizeof local);
        else if (what == 3)
            ibv_wr_set_ud_addr(x, NULL, 1, 1);
        else if (what == 4)
            ibv_wr_local_inv(x, 1);
        else if (what == 5)
            ibv_wr_send_inv(x, 1);
        else if (what == 6)
            ibv_wr_send_tso(x, NULL, 0, 0);
        else
            ibv_wr_bind_mw(x, NULL, 0, NULL);
        CHECK_EQ(ibv_wr_complete(x), what == 0 || what >= 4 ? EOPNOTSUPP : EINVAL);
        no_wc(b.rcq);
    }
    ibv_wr_start(x);
    ibv_wr_set_sge(x, 0, 0, 0); /* before any request */
    CHECK_EQ(ibv_wr_complete(x), EINVAL);
    close_two(&a, &b);
}

/* Requests that cannot run yet keep their inline data, and leave in order. */
static void waits_for_receives(void)
{
    struct end a, b;
    struct address to_b;
    struct ibv_qp_ex *x = open_pair(&a, &b, SENDS, &to_b);
    char local[64];

    ibv_wr_start(x);
    for (unsigned i = 0; i < SEND_WR; i++) {
        x->wr_id = i;
        x->wr_flags = IBV_SEND_SIGNALED;
        ibv_wr_send(x);
        fill(local, sizeof local, i);
        ibv_wr_set_inline_data(x, local, sizeof local);
    }
    CHECK_EQ(ibv_wr_complete(x), 0);
    no_wc(a.scq);
    for (unsigned i = 0; i < SEND_WR; i++)
        CHECK_EQ(post_recv(&b, i, i * 64, 64), 0);
    for (unsigned i = 0; i < SEND_WR; i++) {
        CHECK_EQ(wait_wc(a.scq).wr_id, i);
        CHECK_EQ(wait_wc(b.rcq).wr_id, i);
        CHECK(filled(b.buf + i * 64, 64, i));
    }
    /* In error every request of a batch is flushed. */
    struct ibv_qp_attr err = {.qp_state = IBV_QPS_ERR};
    CHECK_EQ(ibv_modify_qp(a.qp, &err, IBV_QP_STATE), 0);
    ibv_wr_start(x);
    send_empty(x, 8);
    send_empty(x, 9);
    CHECK_EQ(ibv_wr_complete(x), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_WR_FLUSH_ERR);
    CHECK_EQ(wait_wc(a.scq).wr_id, 9);
    /* In INIT there is no sending. */
    err.qp_state = IBV_QPS_RESET;
    CHECK_EQ(ibv_modify_qp(a.qp, &err, IBV_QP_STATE), 0);
    ibv_wr_start(x);
    send_empty(x, 8);
    CHECK_EQ(ibv_wr_complete(x), EINVAL);
    close_two(&a, &b);
}

static void datagrams(void)
{
    static const struct end_options without = {.no_qp = true}, ud = {.type = IBV_QPT_UD};
    struct ibv_qp_attr up = {.qp_state = IBV_QPS_RTR};
    struct ibv_ah_attr path;
    struct address to_b;
    struct ibv_qp_ex *x;
    struct ibv_ah *ah;
    struct end a, b;

    end_open(&a, &without);
    end_open(&b, &ud);
    x = make_qp(&a, IBV_QPT_UD, SENDS);
    CHECK(x != NULL);
    to_init(a.qp);
    to_init(b.qp);
    CHECK_EQ(ibv_modify_qp(a.qp, &up, IBV_QP_STATE), 0);
    CHECK_EQ(ibv_modify_qp(b.qp, &up, IBV_QP_STATE), 0);
    up.qp_state = IBV_QPS_RTS;
    CHECK_EQ(ibv_modify_qp(a.qp, &up, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
    to_b = address_of(&b);
    path = path_to(&to_b);
    CHECK((ah = ibv_create_ah(a.pd, &path)) != NULL);
    CHECK_EQ(post_recv(&b, 1, 0, 4096), 0);
    fill(a.buf, 100, 3);
    /* Without an address: refused, whether it is the last of the batch or not. */
    for (int more = 0; more < 2; more++) {
        ibv_wr_start(x);
        send_empty(x, 1);
        if (more) {
            send_empty(x, 2);
            ibv_wr_set_ud_addr(x, ah, b.qp->qp_num, 0x11111);
        }
        CHECK_EQ(ibv_wr_complete(x), EINVAL);
        no_wc(b.rcq);
    }
    ibv_wr_start(x);
    x->wr_flags = IBV_SEND_SIGNALED;
    ibv_wr_send(x);
    ibv_wr_set_ud_addr(x, ah, b.qp->qp_num, 0x11111);
    ibv_wr_set_sge(x, a.mr->lkey, (uintptr_t)a.buf, 100);
    CHECK_EQ(ibv_wr_complete(x), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(wait_wc(b.rcq).byte_len, 140);
    CHECK(filled(b.buf + 40, 100, 3));
    CHECK_EQ(ibv_destroy_ah(ah), 0);
    close_two(&a, &b);
}

/* While a batch is open no other thread posts, so its requests stay consecutive. */
static void *post_plain(void *arg)
{
    CHECK_EQ(post_send(arg, 99, 0, 0, IBV_SEND_INLINE), 0);
    return NULL;
}

static void post_waits_for_batch(void)
{
    struct end a, b;
    struct address to_b;
    pthread_t thread;
    struct ibv_qp_ex *x = open_pair(&a, &b, SENDS, &to_b);

    for (int i = 0; i < 4; i++)
        CHECK_EQ(post_recv(&b, 0, 0, 0), 0);
    ibv_wr_start(x);
    send_empty(x, 1);
    pthread_create(&thread, NULL, post_plain, &a);
    usleep(20000);
    no_wc(b.rcq);
    send_empty(x, 2);
    CHECK_EQ(ibv_wr_complete(x), 0);
    pthread_join(thread, NULL);
    CHECK_EQ(wait_wc(a.scq).wr_id, 1);
    CHECK_EQ(wait_wc(a.scq).wr_id, 2);
    CHECK_EQ(wait_wc(a.scq).wr_id, 99);
    close_two(&a, &b);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"creation", creation},
        {"each_operation", each_operation},
        {"atomics", atomics},
        {"inline_data", inline_data},
        {"all_or_nothing", all_or_nothing},
        {"mistakes", mistakes},
        {"waits_for_receives", waits_for_receives},
        {"datagrams", datagrams},
        {"post_waits_for_batch", post_waits_for_batch},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
