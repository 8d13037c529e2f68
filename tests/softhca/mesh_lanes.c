/* SPDX-License-Identifier: BSD-3-Clause */
/* The unreliable and the XRC traffic of mesh_random (mesh_lanes.h). Owns the queue pairs, the two
 * shared receive queues, their CQs and the memory of this process's lanes; one thread uses it. */
#include "config.h"

#include "mesh_lanes.h"
#include "srq.h"
#include "xrc.h"

#define GRH        40
#define SLOT       2112 /* a message, and the header before a datagram */
#define PLAIN      64   /* receives for UC and UD, */
#define QUEUED     16   /* and for XRC */
#define IN_FLIGHT  2    /* unseen messages of a lane: PLAIN is enough for 2 kinds of 16 ranks */
#define SOURCES    ((size_t)(PLAIN + QUEUED) * SLOT)
#define LARGEST_UD 1024 /* the MTU of the path */

struct message {
    uint32_t kind, from, to, number;
};

/* The connections between this rank and another. */
struct lane {
    struct ibv_qp *uc, *sender, *target;
    struct ibv_ah *ah;
    bool busy[LANE_KINDS], lost;
    uint32_t sent[LANE_KINDS];
};

static struct lanes_board *board;
static int ranks, me;
static bool lossless;
static struct side side; /* XRC: the domain and the queue; all lanes use its end */
static struct end plain; /* the same end with the queue for UC and UD; its QP is for UD */
static struct lane lanes[LANES_RANKS];

bool lanes_of_packets(void)
{
    return over_packets();
}

int lanes_timeout(void)
{
    return lanes_of_packets() ? 17 : 8;
}

/* ---- opening ---- */

static struct end with_qp(struct ibv_qp *qp)
{
    struct end one = plain;

    one.qp = qp;
    return one;
}

static struct ibv_qp *new_qp(int type)
{
    struct end one = with_qp(NULL);

    end_qp(&one, &(struct end_options){.type = type});
    return one.qp;
}

static struct ibv_qp *new_sender(void)
{
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_XRC_SEND,
                                    .send_cq = plain.scq,
                                    .cap = {.max_send_wr = 4, .max_send_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(plain.pd, &init);

    CHECK(qp != NULL);
    return qp;
}

static void post_slot(uint64_t slot)
{
    if (slot < PLAIN)
        CHECK_EQ(post_srq(&plain, slot, slot * SLOT, SLOT), 0);
    else
        CHECK_EQ(post_queue(&side, slot, slot * SLOT, SLOT), 0);
}

static struct address publish(struct ibv_qp *qp)
{
    struct end one = with_qp(qp);

    return address_of(&one);
}

static void open_queues(int domain)
{
    end_open(&side.e, &(struct end_options){.no_qp = true, .private = me % 2, .cqe = 512});
    side.e.psn = 7;
    plain = side.e;
    plain.srq = new_srq(&plain, PLAIN);
    side.xrcd = open_domain(side.e.ctx, domain, O_CREAT);
    CHECK(side.xrcd != NULL);
    make_queue(&side, side.e.pd);
    board->srqn[me] = side.srqn;
    for (uint64_t i = 0; i < PLAIN + QUEUED; i++)
        post_slot(i);
}

void lanes_open(struct lanes_board *shared, int number, int rank, int domain)
{
    board = shared;
    ranks = number;
    me = rank;
    lossless = getenv("SOFTHCA_FAULT") == NULL && !lanes_of_packets();
    open_queues(domain);
    plain.qp = new_qp(IBV_QPT_UD);
    board->ud[me] = publish(plain.qp);
    for (int p = 0; p < ranks; p++) {
        struct lane *l = &lanes[p];

        l->uc = new_qp(IBV_QPT_UC);
        l->sender = new_sender();
        l->target = make_target(&side);
        board->uc[me][p] = publish(l->uc);
        board->sender[me][p] = publish(l->sender);
        board->target[me][p] = publish(l->target);
    }
}

static void datagrams_to_rts(void)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR};

    to_init(plain.qp);
    CHECK_EQ(ibv_modify_qp(plain.qp, &a, IBV_QP_STATE), 0);
    a.qp_state = IBV_QPS_RTS;
    CHECK_EQ(ibv_modify_qp(plain.qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

void lanes_connect(void)
{
    datagrams_to_rts();
    for (int p = 0; p < ranks; p++) {
        struct ibv_ah_attr path = path_to(&board->ud[p]);
        struct end uc = with_qp(lanes[p].uc), sender = with_qp(lanes[p].sender);

        connect_target(lanes[p].target, &board->sender[p][me]);
        connect_to(&uc, &board->uc[p][me]);
        to_init(sender.qp);
        to_rtr(sender.qp, &board->target[p][me]);
        to_rts(&sender, lanes_timeout(), 7);
        CHECK((lanes[p].ah = ibv_create_ah(plain.pd, &path)) != NULL);
    }
}

/* ---- sending ---- */

static unsigned seed_of(const struct message *m)
{
    return (m->from * 7919 + m->to * 104729) * LANE_KINDS + m->kind + m->number * 31;
}

static size_t source(enum lane_kind kind, int p)
{
    return SOURCES + ((size_t)kind * LANES_RANKS + (size_t)p) * SLOT;
}

static bool may_send(enum lane_kind kind, int p)
{
    if (lanes[p].busy[kind] || (kind == LANE_XRC && lanes[p].lost))
        return false;
    return kind == LANE_XRC || !lossless ||
           lanes[p].sent[kind] - board->next[kind][p][me] < IN_FLIGHT;
}

static void post_message(enum lane_kind kind, int p, size_t length)
{
    struct ibv_qp *const qp[] = {lanes[p].uc, plain.qp, lanes[p].sender};
    struct ibv_sge sge = sge_of(&plain, source(kind, p), length);
    struct ibv_send_wr wr = {.wr_id = (uint64_t)kind * LANES_RANKS + (uint64_t)p,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;

    if (kind == LANE_UD) {
        wr.wr.ud.ah = lanes[p].ah;
        wr.wr.ud.remote_qpn = board->ud[p].qpn;
        wr.wr.ud.remote_qkey = 0x11111;
    } else if (kind == LANE_XRC) {
        wr.qp_type.xrc.remote_srqn = board->srqn[p];
    }
    CHECK_EQ(ibv_post_send(qp[kind], &wr, &bad), 0);
}

void lanes_begin(enum lane_kind kind, int p, size_t length)
{
    struct message m = {kind, (uint32_t)me, (uint32_t)p, lanes[p].sent[kind]};
    char *at = plain.buf + source(kind, p);

    if (!may_send(kind, p))
        return;
    if (kind == LANE_UD && length > LARGEST_UD - sizeof m)
        length = LARGEST_UD - sizeof m;
    memcpy(at, &m, sizeof m);
    fill(at + sizeof m, length, seed_of(&m));
    lanes[p].busy[kind] = true;
    lanes[p].sent[kind]++;
    post_message(kind, p, sizeof m + length);
}

static void take_result(const struct ibv_wc *wc, int victim)
{
    struct lane *l = &lanes[wc->wr_id % LANES_RANKS];
    enum lane_kind kind = (enum lane_kind)(wc->wr_id / LANES_RANKS);

    CHECK(l->busy[kind]);
    l->busy[kind] = false;
    if (wc->status == IBV_WC_SUCCESS)
        return;
    CHECK(kind == LANE_XRC && victim == (int)(wc->wr_id % LANES_RANKS));
    CHECK(wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_WR_FLUSH_ERR);
    l->lost = true;
}

/* ---- receiving ---- */

static void check_origin(const struct message *m, const struct ibv_wc *wc)
{
    const struct lane *l = &lanes[m->from];

    CHECK(m->from < (uint32_t)ranks);
    CHECK_EQ(m->to, me);
    if (m->kind == LANE_UD)
        CHECK_EQ(wc->src_qp, board->ud[m->from].qpn);
    else
        CHECK_EQ(wc->qp_num, (m->kind == LANE_UC ? l->uc : l->target)->qp_num);
    CHECK_EQ(wc->wr_id >= PLAIN, m->kind == LANE_XRC);
}

static void take_message(const struct ibv_wc *wc)
{
    size_t header = wc->qp_num == plain.qp->qp_num ? GRH : 0;
    const char *at = plain.buf + wc->wr_id * SLOT + header;
    _Atomic uint32_t *next;
    struct message m;

    CHECK_EQ(wc->status, IBV_WC_SUCCESS);
    CHECK_EQ(wc->opcode, IBV_WC_RECV);
    CHECK(wc->byte_len >= header + sizeof m);
    memcpy(&m, at, sizeof m);
    CHECK_EQ(m.kind == LANE_UD, header == GRH);
    CHECK(m.kind < LANE_KINDS);
    check_origin(&m, wc);
    next = &board->next[m.kind][me][m.from];
    if (lossless || m.kind == LANE_XRC)
        CHECK_EQ(m.number, *next);
    else if (!lanes_of_packets()) /* packets overtake each other */
        CHECK(m.number >= *next);
    CHECK(filled(at + sizeof m, wc->byte_len - header - sizeof m, seed_of(&m)));
    post_slot(wc->wr_id);
    board->came[me]++;
    *next = m.number + 1;
}

void lanes_serve(int victim)
{
    struct ibv_wc wc[8];
    int n = ibv_poll_cq(plain.rcq, 8, wc);

    CHECK(n >= 0);
    for (int i = 0; i < n; i++)
        take_message(&wc[i]);
    n = ibv_poll_cq(plain.scq, 8, wc);
    CHECK(n >= 0);
    for (int i = 0; i < n; i++)
        take_result(&wc[i], victim);
}

/* ---- the end ---- */

bool lanes_settled(void)
{
    for (int p = 0; p < ranks; p++)
        for (int k = 0; k < LANE_KINDS; k++)
            if (lanes[p].busy[k])
                return false;
    return true;
}

void lanes_publish(void)
{
    for (int p = 0; p < ranks; p++)
        for (int k = 0; k < LANE_KINDS; k++)
            board->sent[k][me][p] = lanes[p].sent[k];
}

bool lanes_all_came(int victim)
{
    for (int p = 0; p < ranks; p++)
        for (int k = lossless ? 0 : LANE_XRC; k < LANE_KINDS; k++)
            if (p != victim && board->next[k][me][p] != board->sent[k][p][me])
                return false;
    return true;
}

void lanes_close(void)
{
    for (int p = 0; p < ranks; p++) {
        CHECK_EQ(ibv_destroy_ah(lanes[p].ah), 0);
        CHECK_EQ(ibv_destroy_qp(lanes[p].uc), 0);
        CHECK_EQ(ibv_destroy_qp(lanes[p].sender), 0);
        CHECK_EQ(ibv_destroy_qp(lanes[p].target), 0);
    }
    CHECK_EQ(ibv_destroy_qp(plain.qp), 0);
    CHECK_EQ(ibv_destroy_srq(plain.srq), 0);
    close_side(&side);
}
