/* SPDX-License-Identifier: BSD-3-Clause */
/* The state machine of queue pairs against a table of its own, written from the specification
 * (InfiniBand 1.3, 11.2.5.2, and what Linux's verbs accept): for each transport, each pair of
 * states and each attribute bit, whether ibv_modify_qp takes it; and that a refused call changes
 * nothing. Then that ibv_query_qp returns what was set. */
#include "config.h"

#include "harness.h"

#define N_STATES 7
#define BITS     26 /* IBV_QP_RATE_LIMIT is the last */

struct line {
    int type, from, to;
    int required, optional;
};

#define STATE   IBV_QP_STATE
#define CUR     IBV_QP_CUR_STATE
#define EN_SQD  IBV_QP_EN_SQD_ASYNC_NOTIFY
#define ACCESS  IBV_QP_ACCESS_FLAGS
#define PKEY    IBV_QP_PKEY_INDEX
#define PORT    IBV_QP_PORT
#define QKEY    IBV_QP_QKEY
#define AV      IBV_QP_AV
#define MTU     IBV_QP_PATH_MTU
#define TIMEOUT IBV_QP_TIMEOUT
#define RETRY   IBV_QP_RETRY_CNT
#define RNR     IBV_QP_RNR_RETRY
#define RQ_PSN  IBV_QP_RQ_PSN
#define SQ_PSN  IBV_QP_SQ_PSN
#define ORD     IBV_QP_MAX_QP_RD_ATOMIC
#define IRD     IBV_QP_MAX_DEST_RD_ATOMIC
#define ALT     IBV_QP_ALT_PATH
#define MIN_RNR IBV_QP_MIN_RNR_TIMER
#define MIG     IBV_QP_PATH_MIG_STATE
#define DEST    IBV_QP_DEST_QPN

static const struct line table[] = {
    {IBV_QPT_RC, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACCESS, 0},
    {IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | ACCESS},
    {IBV_QPT_RC, IBV_QPS_INIT, IBV_QPS_RTR, AV | MTU | DEST | RQ_PSN | IRD | MIN_RNR,
     ALT | ACCESS | PKEY},
    {IBV_QPT_RC, IBV_QPS_RTR, IBV_QPS_RTS, TIMEOUT | RETRY | RNR | SQ_PSN | ORD,
     CUR | ALT | ACCESS | MIN_RNR | MIG},
    {IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACCESS | ALT | MIG | MIN_RNR},
    {IBV_QPT_RC, IBV_QPS_RTS, IBV_QPS_SQD, 0, EN_SQD},
    {IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ACCESS | ALT | MIG | MIN_RNR},
    {IBV_QPT_RC, IBV_QPS_SQD, IBV_QPS_SQD, 0,
     PORT | AV | TIMEOUT | RETRY | RNR | ORD | IRD | ALT | ACCESS | PKEY | MIN_RNR | MIG},

    {IBV_QPT_UC, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACCESS, 0},
    {IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | ACCESS},
    {IBV_QPT_UC, IBV_QPS_INIT, IBV_QPS_RTR, AV | MTU | DEST | RQ_PSN, ALT | ACCESS | PKEY},
    {IBV_QPT_UC, IBV_QPS_RTR, IBV_QPS_RTS, SQ_PSN, CUR | ALT | ACCESS | MIG},
    {IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACCESS | ALT | MIG},
    {IBV_QPT_UC, IBV_QPS_RTS, IBV_QPS_SQD, 0, EN_SQD},
    {IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ACCESS | ALT | MIG},
    {IBV_QPT_UC, IBV_QPS_SQD, IBV_QPS_SQD, 0, AV | ALT | ACCESS | PKEY | MIG},
    {IBV_QPT_UC, IBV_QPS_SQE, IBV_QPS_RTS, 0, CUR | ACCESS},

    {IBV_QPT_UD, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | QKEY, 0},
    {IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | QKEY},
    {IBV_QPT_UD, IBV_QPS_INIT, IBV_QPS_RTR, 0, PKEY | QKEY},
    {IBV_QPT_UD, IBV_QPS_RTR, IBV_QPS_RTS, SQ_PSN, CUR | QKEY},
    {IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | QKEY},
    {IBV_QPT_UD, IBV_QPS_RTS, IBV_QPS_SQD, 0, EN_SQD},
    {IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | QKEY},
    {IBV_QPT_UD, IBV_QPS_SQD, IBV_QPS_SQD, 0, PKEY | QKEY},
    {IBV_QPT_UD, IBV_QPS_SQE, IBV_QPS_RTS, 0, CUR | QKEY},

    {IBV_QPT_XRC_SEND, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACCESS, 0},
    {IBV_QPT_XRC_SEND, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | ACCESS},
    {IBV_QPT_XRC_SEND, IBV_QPS_INIT, IBV_QPS_RTR, AV | MTU | DEST | RQ_PSN, ALT | ACCESS | PKEY},
    {IBV_QPT_XRC_SEND, IBV_QPS_RTR, IBV_QPS_RTS, TIMEOUT | RETRY | RNR | SQ_PSN | ORD,
     CUR | ALT | ACCESS | MIG},
    {IBV_QPT_XRC_SEND, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACCESS | ALT | MIG},
    {IBV_QPT_XRC_SEND, IBV_QPS_RTS, IBV_QPS_SQD, 0, EN_SQD},
    {IBV_QPT_XRC_SEND, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ACCESS | ALT | MIG},
    {IBV_QPT_XRC_SEND, IBV_QPS_SQD, IBV_QPS_SQD, 0,
     PORT | AV | TIMEOUT | RETRY | RNR | ORD | ALT | ACCESS | PKEY | MIG},

    {IBV_QPT_XRC_RECV, IBV_QPS_RESET, IBV_QPS_INIT, PKEY | PORT | ACCESS, 0},
    {IBV_QPT_XRC_RECV, IBV_QPS_INIT, IBV_QPS_INIT, 0, PKEY | PORT | ACCESS},
    {IBV_QPT_XRC_RECV, IBV_QPS_INIT, IBV_QPS_RTR, AV | MTU | DEST | RQ_PSN | IRD | MIN_RNR,
     ALT | ACCESS | PKEY},
    {IBV_QPT_XRC_RECV, IBV_QPS_RTR, IBV_QPS_RTS, TIMEOUT | SQ_PSN,
     CUR | ALT | ACCESS | MIN_RNR | MIG},
    {IBV_QPT_XRC_RECV, IBV_QPS_RTS, IBV_QPS_RTS, 0, CUR | ACCESS | ALT | MIG | MIN_RNR},
    {IBV_QPT_XRC_RECV, IBV_QPS_RTS, IBV_QPS_SQD, 0, EN_SQD},
    {IBV_QPT_XRC_RECV, IBV_QPS_SQD, IBV_QPS_RTS, 0, CUR | ACCESS | ALT | MIG | MIN_RNR},
    {IBV_QPT_XRC_RECV, IBV_QPS_SQD, IBV_QPS_SQD, 0,
     PORT | AV | TIMEOUT | IRD | ALT | ACCESS | PKEY | MIN_RNR | MIG},
};

/* Anything may be reset or, once it has left RESET, broken, with no attribute at all. */
static const struct line to_reset = {0, 0, IBV_QPS_RESET, 0, 0};
static const struct line to_error = {0, 0, IBV_QPS_ERR, 0, 0};

static const struct line *line_of(int type, int from, int to)
{
    if (to == IBV_QPS_RESET)
        return &to_reset;
    if (to == IBV_QPS_ERR)
        return from == IBV_QPS_RESET ? NULL : &to_error;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].type == type && table[i].from == from && table[i].to == to)
            return &table[i];
    return NULL;
}

static struct end here;

/* Good values for everything. */
static struct ibv_qp_attr good(int from, int to)
{
    struct ibv_port_attr port;
    struct ibv_qp_attr a = {.qp_state = (enum ibv_qp_state)to,
                            .cur_qp_state = (enum ibv_qp_state)from,
                            .path_mtu = IBV_MTU_1024,
                            .path_mig_state = IBV_MIG_MIGRATED,
                            .qkey = 7,
                            .dest_qp_num = 0x123456,
                            .qp_access_flags = IBV_ACCESS_REMOTE_WRITE,
                            .cap = {16, 16, 1, 1, 0},
                            .max_rd_atomic = 1,
                            .max_dest_rd_atomic = 1,
                            .min_rnr_timer = 12,
                            .port_num = 1,
                            .timeout = 14,
                            .retry_cnt = 7,
                            .rnr_retry = 7,
                            .alt_port_num = 1,
                            .alt_timeout = 14};

    CHECK_EQ(ibv_query_port(here.ctx, 1, &port), 0);
    a.ah_attr.dlid = a.alt_ah_attr.dlid = port.lid;
    a.ah_attr.port_num = a.alt_ah_attr.port_num = 1;
    return a;
}

static int state_of(struct ibv_qp *qp)
{
    struct ibv_qp_attr a;
    struct ibv_qp_init_attr i;

    CHECK_EQ(ibv_query_qp(qp, &a, IBV_QP_STATE, &i), 0);
    return (int)a.qp_state;
}

static void must_go(struct ibv_qp *qp, int to)
{
    int from = state_of(qp);
    const struct line *l = line_of((int)qp->qp_type, from, to);
    struct ibv_qp_attr a = good(from, to);

    CHECK(l != NULL);
    CHECK_EQ(ibv_modify_qp(qp, &a, STATE | l->required), 0);
    CHECK_EQ(state_of(qp), to);
}

/* A request with a bad key breaks the send queue of an unreliable transport. */
static void break_sends(struct ibv_qp *qp)
{
    struct ibv_ah_attr path = good(0, 0).ah_attr;
    struct ibv_ah *ah = ibv_create_ah(here.pd, &path);
    struct ibv_sge sge = {(uintptr_t)here.buf, 8, here.mr->lkey ^ 0x100};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND}, *bad;

    wr.wr.ud.ah = ah;
    CHECK_EQ(ibv_post_send(qp, &wr, &bad), 0);
    CHECK_EQ(wait_wc(here.scq).status, IBV_WC_LOC_PROT_ERR);
    CHECK_EQ(ibv_destroy_ah(ah), 0);
}

/* Brings a queue pair from anywhere to a state; false: its transport does not know that state. */
static bool bring(struct ibv_qp *qp, int state)
{
    must_go(qp, IBV_QPS_RESET);
    if (state == IBV_QPS_ERR) {
        must_go(qp, IBV_QPS_INIT);
        must_go(qp, IBV_QPS_ERR);
        return true;
    }
    for (int s = IBV_QPS_INIT; s <= state && s <= IBV_QPS_SQD; s++)
        if (s != IBV_QPS_SQD || state == IBV_QPS_SQD)
            must_go(qp, s);
    if (state == IBV_QPS_SQE) {
        if (qp->qp_type != IBV_QPT_UC && qp->qp_type != IBV_QPT_UD)
            return false;
        break_sends(qp);
    }
    CHECK_EQ(state_of(qp), state);
    return true;
}

static void expect(struct ibv_qp *qp, int from, int to, int mask, int status)
{
    struct ibv_qp_attr a = good(from, to);
    int got = ibv_modify_qp(qp, &a, mask);

    if (got != status)
        fprintf(stderr, "type %d, %d -> %d, mask %#x: %d, not %d\n", (int)qp->qp_type, from, to,
                (unsigned)mask, got, status);
    CHECK_EQ(got, status);
    CHECK_EQ(state_of(qp), status == 0 ? to : from);
}

/* Attributes that one half of an XRC connection does not use are ignored, as in Linux: programs
 * give both halves the attributes of an RC queue pair. */
static int ignored(int type)
{
    return type == IBV_QPT_XRC_SEND   ? IRD | MIN_RNR
           : type == IBV_QPT_XRC_RECV ? ORD | RETRY | RNR
                                      : 0;
}

static void try_pair(struct ibv_qp *qp, int from, int to)
{
    const struct line *l = line_of((int)qp->qp_type, from, to);

    if (!bring(qp, from))
        return;
    if (!l) {
        expect(qp, from, to, STATE, EINVAL);
        return;
    }
    for (int i = 0; i < BITS; i++) {
        int bit = 1 << i;

        if (bit == STATE)
            continue;
        if (l->required & bit) {
            expect(qp, from, to, STATE | (l->required & ~bit), EINVAL);
        } else if ((l->optional | ignored((int)qp->qp_type)) & bit) {
            expect(qp, from, to, STATE | l->required | bit, 0);
            bring(qp, from);
        } else {
            expect(qp, from, to, STATE | l->required | bit, EINVAL);
        }
    }
    expect(qp, from, to, STATE | l->required, 0);
    bring(qp, from);
    expect(qp, from, to, STATE | l->required | l->optional, 0);
}

static void all_pairs(struct ibv_qp *qp)
{
    for (int from = 0; from < N_STATES; from++)
        for (int to = 0; to < N_STATES; to++)
            try_pair(qp, from, to);
    CHECK_EQ(ibv_destroy_qp(qp), 0);
}

static void of_type(enum ibv_qp_type type)
{
    end_open(&here, &(struct end_options){.type = (int)type});
    all_pairs(here.qp);
    here.qp = NULL;
    end_close(&here);
}

static void rc(void)
{
    of_type(IBV_QPT_RC);
}

static void uc(void)
{
    of_type(IBV_QPT_UC);
}

static void ud(void)
{
    of_type(IBV_QPT_UD);
}

static void xrc(void)
{
    struct ibv_xrcd_init_attr domain = {.comp_mask =
                                            IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS,
                                        .fd = -1,
                                        .oflags = O_CREAT};
    struct ibv_qp_init_attr_ex init = {.comp_mask = IBV_QP_INIT_ATTR_XRCD,
                                       .qp_type = IBV_QPT_XRC_RECV};
    struct ibv_xrcd *xrcd;
    struct ibv_qp *qp;

    end_open(&here, &(struct end_options){.no_qp = true});
    xrcd = init.xrcd = ibv_open_xrcd(here.ctx, &domain);
    CHECK(xrcd != NULL);
    CHECK((qp = ibv_create_qp_ex(here.ctx, &init)) != NULL);
    all_pairs(qp);
    init = (struct ibv_qp_init_attr_ex){.comp_mask = IBV_QP_INIT_ATTR_PD,
                                        .pd = here.pd,
                                        .send_cq = here.scq,
                                        .qp_type = IBV_QPT_XRC_SEND,
                                        .cap = {.max_send_wr = 4, .max_send_sge = 1}};
    CHECK((qp = ibv_create_qp_ex(here.ctx, &init)) != NULL);
    all_pairs(qp);
    CHECK_EQ(ibv_close_xrcd(xrcd), 0);
    end_close(&here);
}

/* Values out of range are refused wherever their bit is allowed. */
static void bad_values(void)
{
    const int to_rtr = STATE | AV | MTU | DEST | RQ_PSN | IRD | MIN_RNR;
    const int to_rts = STATE | TIMEOUT | RETRY | RNR | SQ_PSN | ORD;
    struct ibv_qp_attr a, g = good(IBV_QPS_INIT, IBV_QPS_RTR);

#define REFUSED(mask, field, value)                                                                \
    do {                                                                                           \
        a = g;                                                                                     \
        a.field = (value);                                                                         \
        CHECK_EQ(ibv_modify_qp(here.qp, &a, mask), EINVAL);                                        \
    } while (0)
    bring(here.qp, IBV_QPS_INIT);
    REFUSED(to_rtr, path_mtu, (enum ibv_mtu)0);
    REFUSED(to_rtr, path_mtu, (enum ibv_mtu)6);
    REFUSED(to_rtr, min_rnr_timer, 32);
    REFUSED(to_rtr, max_dest_rd_atomic, 17);
    REFUSED(to_rtr, ah_attr.port_num, 2);
    REFUSED(to_rtr | PKEY, pkey_index, 2);
    REFUSED(to_rtr | ALT, alt_port_num, 2);
    bring(here.qp, IBV_QPS_RTR);
    g = good(IBV_QPS_RTR, IBV_QPS_RTS);
    REFUSED(to_rts, timeout, 32);
    REFUSED(to_rts, retry_cnt, 8);
    REFUSED(to_rts, rnr_retry, 8);
    REFUSED(to_rts, max_rd_atomic, 17);
    REFUSED(to_rts | CUR, cur_qp_state, IBV_QPS_SQD);
    CHECK_EQ(state_of(here.qp), IBV_QPS_RTR);
#undef REFUSED
}

static void values(void)
{
    end_open(&here, NULL);
    bad_values();
    end_close(&here);
}

static void query_reports(void)
{
    struct ibv_qp_attr a, g;
    struct ibv_qp_init_attr i;

    end_open(&here, NULL);
    g = good(0, 0);
    bring(here.qp, IBV_QPS_SQD);
    CHECK_EQ(ibv_query_qp(here.qp, &a, (1 << BITS) - 1, &i), 0);
    CHECK_EQ(a.qp_state, IBV_QPS_SQD);
    CHECK_EQ(a.cur_qp_state, IBV_QPS_SQD);
    CHECK_EQ(here.qp->state, IBV_QPS_SQD);
    CHECK_EQ(a.path_mtu, g.path_mtu);
    CHECK_EQ(a.dest_qp_num, g.dest_qp_num);
    CHECK_EQ(a.qp_access_flags, g.qp_access_flags);
    CHECK_EQ(a.max_rd_atomic, g.max_rd_atomic);
    CHECK_EQ(a.max_dest_rd_atomic, g.max_dest_rd_atomic);
    CHECK_EQ(a.min_rnr_timer, g.min_rnr_timer);
    CHECK_EQ(a.port_num, 1);
    CHECK_EQ(a.timeout, g.timeout);
    CHECK_EQ(a.retry_cnt, g.retry_cnt);
    CHECK_EQ(a.rnr_retry, g.rnr_retry);
    CHECK_EQ(a.ah_attr.dlid, g.ah_attr.dlid);
    g.alt_timeout = 9;
    g.timeout = 3;
    CHECK_EQ(ibv_modify_qp(here.qp, &g, ALT | TIMEOUT), 0); /* without IBV_QP_STATE: it stays */
    CHECK_EQ(ibv_query_qp(here.qp, &a, (1 << BITS) - 1, &i), 0);
    CHECK_EQ(a.qp_state, IBV_QPS_SQD);
    CHECK_EQ(a.alt_timeout, 9);
    CHECK_EQ(a.alt_port_num, 1);
    CHECK_EQ(a.timeout, 3);
    CHECK(i.send_cq == here.scq && i.recv_cq == here.rcq && i.qp_type == IBV_QPT_RC);
    CHECK(i.cap.max_send_wr >= 64 && i.cap.max_inline_data >= 220);
    bring(here.qp, IBV_QPS_RESET);
    CHECK_EQ(ibv_query_qp(here.qp, &a, (1 << BITS) - 1, &i), 0);
    CHECK_EQ(a.dest_qp_num, 0);
    end_close(&here);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"rc", rc},   {"uc", uc},         {"ud", ud},
        {"xrc", xrc}, {"values", values}, {"query_reports", query_reports},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
