/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests after successful ones, when a connection uses the fast path of wire/plain.c: every
 * unusual property of a request must still be detected. errors.c runs all of its cases like this
 * too. */
#include "config.h"

#include "ask.h"

/* A word is in a's buffer, which is not in b's. */
static void open_with_traffic(struct end *a, struct end *b, struct address *to)
{
    open_two(a, b, NULL);
    traffic_between(a, b);
    traffic_between(b, a);
    *to = address_of(b);
    fill(a->buf, 8, 5);
    memset(b->buf, 0, 8);
}

static int write_word(struct end *from, uint64_t id, size_t length, const struct address *to,
                      size_t at)
{
    return post(from, IBV_WR_RDMA_WRITE, id, 0, length, IBV_SEND_SIGNALED, to, at);
}

static void go_to(struct end *e, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};

    CHECK_EQ(ibv_modify_qp(e->qp, &attr, IBV_QP_STATE), 0);
}

/* Both kinds, of each length up to some hundred bytes, at each alignment in a word. */
static void every_length(void)
{
    struct end a, b;
    struct address to;

    open_with_traffic(&a, &b, &to);
    for (size_t n = 1; n < 600; n += n < 70 ? 1 : 53) {
        size_t at = 1024 + n % 8;

        fill(a.buf, n, (unsigned)n);
        memset(b.buf, 0, 8192);
        CHECK_EQ(write_word(&a, n, n, &to, at), 0);
        CHECK_EQ(wait_wc(a.scq).wr_id, n);
        CHECK(filled(b.buf + at, n, (unsigned)n));
        CHECK(b.buf[at - 1] == 0 && b.buf[at + n] == 0);
        CHECK_EQ(post_recv(&b, 1000 + n, at + 2048, n), 0);
        CHECK_EQ(post_send(&a, n, 0, n, n % 2 && n < 70 ? IBV_SEND_INLINE : 0), 0);
        CHECK_EQ(wait_wc(b.rcq).byte_len, n);
        CHECK_EQ(wait_wc(a.scq).byte_len, n);
        CHECK(filled(b.buf + at + 2048, n, (unsigned)n));
        CHECK(b.buf[at + 2048 - 1] == 0 && b.buf[at + 2048 + n] == 0);
    }
    close_two(&a, &b);
}

/* The immediate and the sender arrive; a request that is not signaled leaves no entry. */
static void fields(void)
{
    struct end a, b;
    struct address to;
    struct ibv_wc wc;

    open_with_traffic(&a, &b, &to);
    CHECK_EQ(post_recv(&b, 7, 0, 64), 0);
    CHECK_EQ(post_recv(&b, 8, 0, 64), 0);
    CHECK_EQ(post(&a, IBV_WR_SEND_WITH_IMM, 1, 0, 8, 0, NULL, 0), 0);
    CHECK_EQ(post_send(&a, 2, 0, 9, 0), 0);
    wc = wait_wc(b.rcq);
    CHECK(wc.wr_id == 7 && wc.opcode == IBV_WC_RECV && wc.wc_flags == IBV_WC_WITH_IMM);
    CHECK(wc.imm_data == 0x12345678 && wc.src_qp == a.qp->qp_num && wc.qp_num == b.qp->qp_num);
    wc = wait_wc(b.rcq);
    CHECK(wc.wr_id == 8 && wc.wc_flags == 0 && wc.byte_len == 9);
    wc = wait_wc(a.scq);
    CHECK(wc.wr_id == 2 && wc.opcode == IBV_WC_SEND && wc.byte_len == 9);
    no_wc(a.scq);
    close_two(&a, &b);
}

/* The region allows writes, the queue pair never did. */
static void writes_not_accepted(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS, .qp_access_flags = IBV_ACCESS_REMOTE_READ};
    struct end a, b;
    struct address to;

    open_two(&a, &b, NULL);
    CHECK_EQ(ibv_modify_qp(b.qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS), 0);
    traffic_between(&a, &b);
    to = address_of(&b);
    CHECK_EQ(write_word(&a, 1, 8, &to, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_REM_INV_REQ_ERR);
    close_two(&a, &b);
}

/* The responder was connected to another peer since: it does not answer, and nothing is written. */
static void connected_elsewhere(void)
{
    struct end a, b, c;
    struct address to, to_c;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};

    open_with_traffic(&a, &b, &to);
    end_open(&c, NULL);
    to_c = address_of(&c);
    CHECK_EQ(ibv_modify_qp(b.qp, &attr, IBV_QP_STATE), 0);
    connect_to(&b, &to_c);
    CHECK_EQ(write_word(&a, 1, 8, &to, 0), 0);
    no_wc(a.scq);
    go_to(&a, IBV_QPS_ERR);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_WR_FLUSH_ERR);
    CHECK(b.buf[0] == 0);
    end_close(&c);
    close_two(&a, &b);
}

static void responder_in_error(void)
{
    struct end a, b;
    struct address to;

    open_with_traffic(&a, &b, &to);
    go_to(&b, IBV_QPS_ERR);
    CHECK_EQ(write_word(&a, 1, 8, &to, 0), 0);
    no_wc(a.scq);
    go_to(&a, IBV_QPS_ERR);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_WR_FLUSH_ERR);
    CHECK(b.buf[0] == 0);
    close_two(&a, &b);
}

/* The peer's bad request breaks this end too. */
static void broken_by_peer(void)
{
    struct end a, b;
    struct address to, to_a;

    open_with_traffic(&a, &b, &to);
    to_a = address_of(&a);
    to_a.rkey++;
    CHECK_EQ(write_word(&b, 1, 8, &to_a, 0), 0);
    CHECK_EQ(wait_wc(b.scq).status, IBV_WC_REM_ACCESS_ERR);
    CHECK_EQ(write_word(&a, 1, 8, &to, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_WR_FLUSH_ERR);
    CHECK(b.buf[0] == 0);
    close_two(&a, &b);
}

/* Unpolled completions still occupy the send queue. */
static void queue_is_full(void)
{
    struct end a, b;
    struct address to;

    open_with_traffic(&a, &b, &to);
    for (uint64_t i = 0; i < 64; i++)
        CHECK_EQ(write_word(&a, i, 8, &to, 0), 0);
    CHECK_EQ(write_word(&a, 64, 8, &to, 0), ENOMEM);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(write_word(&a, 64, 8, &to, 0), 0);
    close_two(&a, &b);
}

/* A write behind a message that waits for its receiver waits as well. */
static void order(void)
{
    struct end a, b;
    struct address to;

    open_with_traffic(&a, &b, &to);
    CHECK_EQ(post_send(&a, 1, 0, 8, 0), 0);
    CHECK_EQ(write_word(&a, 2, 8, &to, 0), 0);
    no_wc(a.scq);
    CHECK(b.buf[0] == 0);
    CHECK_EQ(post_recv(&b, 7, 64, 64), 0);
    CHECK_EQ(wait_wc(a.scq).wr_id, 1);
    CHECK_EQ(wait_wc(a.scq).wr_id, 2);
    CHECK(filled(b.buf, 8, 5));
    close_two(&a, &b);
}

/* A drained queue keeps its requests until it is to send again. */
static void drained(void)
{
    struct end a, b;
    struct address to;

    open_with_traffic(&a, &b, &to);
    go_to(&a, IBV_QPS_SQD);
    CHECK_EQ(write_word(&a, 1, 8, &to, 0), 0);
    no_wc(a.scq);
    CHECK(b.buf[0] == 0);
    go_to(&a, IBV_QPS_RTS);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK(filled(b.buf, 8, 5));
    close_two(&a, &b);
}

static void too_long(void)
{
    struct end a, b;
    struct address to;

    setenv("SOFTHCA_MAX_MSG", "4096", 1);
    open_with_traffic(&a, &b, &to);
    CHECK_EQ(write_word(&a, 1, 4096, &to, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(write_word(&a, 1, 4097, &to, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_LOC_LEN_ERR);
    close_two(&a, &b);
}

/* A list of one buffer takes the fast path; lists of two, of none and of an empty one must work as
 * well. */
static void lists(void)
{
    struct end a, b;
    struct address to;
    struct ibv_sge sge[2];
    struct ibv_send_wr wr = {
        .sg_list = sge, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;

    open_with_traffic(&a, &b, &to);
    fill(a.buf, 64, 3);
    for (int n = 0; n <= 3; n++) {
        CHECK_EQ(post_recv(&b, 7, 4096, 64), 0);
        sge[0] = sge_of(&a, 0, n == 3 ? 0 : 10);
        sge[1] = sge_of(&a, 10, 20);
        wr.num_sge = n == 3 ? 1 : n;
        CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), 0);
        CHECK_EQ(wait_wc(b.rcq).byte_len, n == 1 ? 10 : n == 2 ? 30 : 0);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    }
    CHECK(filled(b.buf + 4096, 30, 3));
    close_two(&a, &b);
}

/* A head, and what lies apart from it in a region of its own. */
static int post_pair(struct end *a, size_t head, struct ibv_mr *region, size_t n)
{
    struct ibv_sge sge[2] = {sge_of(a, 0, (uint32_t)head),
                             {(uintptr_t)region->addr, (uint32_t)n, region->lkey}};
    struct ibv_send_wr wr = {
        .sg_list = sge, .num_sge = 2, .opcode = IBV_WR_SEND, .send_flags = IBV_SEND_SIGNALED};
    struct ibv_send_wr *bad;

    return ibv_post_send(a->qp, &wr, &bad);
}

static void pairs(void)
{
    static char apart[8192];
    struct end a, b;
    struct address to;
    struct ibv_mr *region, gone;

    open_with_traffic(&a, &b, &to);
    region = ibv_reg_mr(a.pd, apart, sizeof apart, 0);
    CHECK(region != NULL);
    fill(apart, sizeof apart, 9);
    for (size_t n = 1; n < 5000; n += n < 70 ? 1 : 531) {
        size_t head = 1 + n % 300;

        fill(a.buf, head, (unsigned)n);
        memset(b.buf, 0, 8192);
        CHECK_EQ(post_recv(&b, n, 1024, head + n), 0);
        CHECK_EQ(post_pair(&a, head, region, n), 0);
        CHECK_EQ(wait_wc(b.rcq).byte_len, head + n);
        CHECK_EQ(wait_wc(a.scq).byte_len, head + n);
        CHECK(filled(b.buf + 1024, head, (unsigned)n));
        CHECK(memcmp(b.buf + 1024 + head, apart, n) == 0);
        CHECK(b.buf[1023] == 0 && b.buf[1024 + head + n] == 0);
    }
    CHECK_EQ(post_recv(&b, 7, 1024, 64), 0);
    gone = *region; /* its key is used once more */
    CHECK_EQ(ibv_dereg_mr(region), 0);
    CHECK_EQ(post_pair(&a, 8, &gone, 8), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_LOC_PROT_ERR);
    close_two(&a, &b);
}

/* Together they are longer than the buffer that waits for them. */
static void pair_too_long(void)
{
    struct end a, b;
    struct address to;

    open_with_traffic(&a, &b, &to);
    memset(b.buf, 0, 128);
    CHECK_EQ(post_recv(&b, 7, 0, 64), 0);
    CHECK_EQ(post_pair(&a, 40, a.mr, 25), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_REM_INV_REQ_ERR);
    CHECK_EQ(wait_wc(b.rcq).status, IBV_WC_LOC_LEN_ERR);
    CHECK(b.buf[64] == 0);
    close_two(&a, &b);
}

/* ---- what makes a request unusual ---- */

static int request(struct end *from, enum ibv_wr_opcode op, const struct address *to, size_t at)
{
    return post(from, op, 1, 0, 8, IBV_SEND_SIGNALED, to, at);
}

static void succeeds(struct end *a, enum ibv_wr_opcode op, const struct address *to)
{
    CHECK_EQ(request(a, op, to, 0), 0);
    CHECK_EQ(wait_wc(a->scq).status, IBV_WC_SUCCESS);
}

static void fails(struct end *a, enum ibv_wr_opcode op, const struct address *to,
                  enum ibv_wc_status why)
{
    CHECK_EQ(request(a, op, to, 0), 0);
    CHECK_EQ(wait_wc(a->scq).status, why);
}

static const enum ibv_wr_opcode each_op[] = {IBV_WR_RDMA_WRITE, IBV_WR_RDMA_READ, IBV_WR_SEND};
enum { OPS = sizeof each_op / sizeof *each_op };

/* For each operation: one succeeds, then something changes, then the next one fails. */
static void after(void (*change)(struct end *a, struct end *b), const enum ibv_wc_status why[OPS])
{
    for (int i = 0; i < OPS; i++) {
        struct end a, b;
        struct address to;

        open_with_traffic(&a, &b, &to);
        for (int j = 0; j < 2; j++)
            CHECK_EQ(post_recv(&b, 7, 64, 64), 0);
        succeeds(&a, each_op[i], &to);
        change(&a, &b);
        fails(&a, each_op[i], &to, why[i]);
    }
}

static void dereg_peer(struct end *a, struct end *b)
{
    (void)a;
    CHECK_EQ(ibv_dereg_mr(b->mr), 0);
}

static void dereg_own(struct end *a, struct end *b)
{
    static struct ibv_mr gone;

    (void)b;
    gone = *a->mr; /* its key is used once more */
    CHECK_EQ(ibv_dereg_mr(a->mr), 0);
    a->mr = &gone;
}

/* The same key, with fewer rights. */
static void restrict_region(struct end *e, int access)
{
    CHECK_EQ(ibv_rereg_mr(e->mr, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, access), 0);
}

static void restrict_peer(struct end *a, struct end *b)
{
    uint32_t key = b->mr->rkey;

    (void)a;
    restrict_region(b, 0);
    CHECK_EQ(b->mr->rkey, key);
}

static void restrict_own(struct end *a, struct end *b)
{
    (void)b;
    restrict_region(a, 0);
}

static void move_domain(struct end *a, struct end *b)
{
    struct ibv_pd *pd = ibv_alloc_pd(b->ctx);

    (void)a;
    CHECK(pd != NULL);
    CHECK_EQ(ibv_rereg_mr(b->mr, IBV_REREG_MR_CHANGE_PD, pd, NULL, 0, 0), 0);
}

static void regions_change(void)
{
    static const enum ibv_wc_status peers[] = {IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR,
                                               IBV_WC_REM_OP_ERR},
                                    own[] = {IBV_WC_LOC_PROT_ERR, IBV_WC_LOC_PROT_ERR,
                                             IBV_WC_LOC_PROT_ERR},
                                    fewer[] = {IBV_WC_SUCCESS, IBV_WC_LOC_PROT_ERR, IBV_WC_SUCCESS};

    after(dereg_peer, peers);
    after(dereg_own, own);
    after(restrict_peer, peers);
    after(restrict_own, fewer);
    after(move_domain, peers);
}

/* A queue pair stops allowing what it allowed. */
static void forbid(struct end *a, struct end *b)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};

    (void)a;
    CHECK_EQ(ibv_modify_qp(b->qp, &attr, IBV_QP_STATE | IBV_QP_ACCESS_FLAGS), 0);
}

static void rights_change(void)
{
    static const enum ibv_wc_status why[] = {IBV_WC_REM_INV_REQ_ERR, IBV_WC_REM_INV_REQ_ERR,
                                             IBV_WC_SUCCESS};

    after(forbid, why);
}

/* A region that was used a moment ago ends where it ends. */
static void ends_of_regions(void)
{
    for (int i = 0; i < 2; i++) {
        struct end a, b;
        struct address to;

        open_with_traffic(&a, &b, &to);
        CHECK_EQ(request(&a, each_op[i], &to, BUF_BYTES - 8), 0);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
        CHECK_EQ(request(&a, each_op[i], &to, BUF_BYTES - 7), 0);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_REM_ACCESS_ERR);
        close_two(&a, &b);
        open_with_traffic(&a, &b, &to);
        succeeds(&a, each_op[i], &to);
        CHECK_EQ(request(&a, each_op[i], &to, (size_t)0 - 1), 0);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_REM_ACCESS_ERR);
        close_two(&a, &b);
        open_with_traffic(&a, &b, &to);
        succeeds(&a, each_op[i], &to);
        CHECK_EQ(post(&a, each_op[i], 1, BUF_BYTES - 7, 8, IBV_SEND_SIGNALED, &to, 0), 0);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_LOC_PROT_ERR);
        close_two(&a, &b);
    }
}

/* ---- attributes of the two ends ---- */

struct attributes {
    enum ibv_mtu mtu;
    unsigned access;
    uint8_t reads_in, reads_out;
};

static const struct attributes usual = {IBV_MTU_1024,
                                        IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ, 1, 1};

static void connect_with(struct end *e, const struct address *to, const struct attributes *with)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_INIT,
                               .port_num = 1,
                               .qp_access_flags = with->access,
                               .path_mtu = with->mtu,
                               .dest_qp_num = to->qpn,
                               .rq_psn = to->psn,
                               .sq_psn = (uint32_t)e->psn,
                               .max_dest_rd_atomic = with->reads_in,
                               .max_rd_atomic = with->reads_out,
                               .min_rnr_timer = 12,
                               .timeout = 14,
                               .retry_cnt = 7,
                               .rnr_retry = 7,
                               .ah_attr = path_to(to)};

    CHECK_EQ(ibv_modify_qp(e->qp, &attr,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS),
             0);
    attr.qp_state = IBV_QPS_RTR;
    CHECK_EQ(ibv_modify_qp(e->qp, &attr,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                               IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
             0);
    attr.qp_state = IBV_QPS_RTS;
    CHECK_EQ(ibv_modify_qp(e->qp, &attr,
                           IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                               IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
             0);
}

static struct address open_with(struct end *a, const struct attributes *of_a, struct end *b,
                                const struct attributes *of_b)
{
    struct address to_a, to_b;

    end_open(a, NULL);
    end_open(b, NULL);
    to_a = address_of(a);
    to_b = address_of(b);
    connect_with(a, &to_b, of_a);
    connect_with(b, &to_a, of_b);
    return to_b;
}

/* A short message is one packet for both ends, whatever their MTUs; longer ones are refused. */
static void other_mtu(void)
{
    static const enum ibv_wc_status why[OPS] = {IBV_WC_REM_INV_REQ_ERR, IBV_WC_BAD_RESP_ERR,
                                                IBV_WC_REM_INV_REQ_ERR};
    struct attributes smaller = usual;

    smaller.mtu = IBV_MTU_256;
    for (int i = 0; i < OPS; i++) {
        struct end a, b;
        struct address to = open_with(&a, &usual, &b, &smaller);

        for (int j = 0; j < 3; j++) {
            CHECK_EQ(post_recv(&b, 7, 0, 1024), 0);
            succeeds(&a, each_op[i], &to);
        }
        CHECK_EQ(post_recv(&b, 7, 0, 1024), 0);
        CHECK_EQ(post(&a, each_op[i], 1, 0, 257, IBV_SEND_SIGNALED, &to, 0), 0);
        CHECK_EQ(wait_wc(a.scq).status, why[i]);
        close_two(&a, &b);
    }
}

/* Writes go well, reads are not for these two. */
static void no_reads(const struct attributes *of_a, const struct attributes *of_b,
                     enum ibv_wc_status why)
{
    struct end a, b;
    struct address to = open_with(&a, of_a, &b, of_b);

    for (int i = 0; i < 3; i++)
        succeeds(&a, IBV_WR_RDMA_WRITE, &to);
    CHECK_EQ(post(&a, IBV_WR_RDMA_READ, 1, 0, 8, IBV_SEND_INLINE, &to, 0), EINVAL);
    fails(&a, IBV_WR_RDMA_READ, &to, why);
    close_two(&a, &b);
}

static void reads_not_accepted(void)
{
    struct attributes forbidden = usual, none_in = usual, none_out = usual;

    forbidden.access = IBV_ACCESS_REMOTE_WRITE;
    none_in.reads_in = 0;
    none_out.reads_out = 0;
    no_reads(&usual, &usual, IBV_WC_SUCCESS);
    no_reads(&usual, &forbidden, IBV_WC_REM_INV_REQ_ERR);
    no_reads(&usual, &none_in, IBV_WC_REM_INV_REQ_ERR);
    no_reads(&none_out, &usual, IBV_WC_LOC_QP_OP_ERR);
}

/* The right place in memory, with a key that is not its. */
static void other_keys(void)
{
    for (int i = 0; i < 2; i++) {
        struct end a, b;
        struct address to, wrong;

        open_with_traffic(&a, &b, &to);
        wrong = to;
        wrong.rkey++;
        succeeds(&a, each_op[i], &to);
        fails(&a, each_op[i], &wrong, IBV_WC_REM_ACCESS_ERR);
        close_two(&a, &b);
        open_with_traffic(&a, &b, &to);
        succeeds(&a, each_op[i], &to);
        a.mr->lkey++;
        fails(&a, each_op[i], &to, IBV_WC_LOC_PROT_ERR);
        a.mr->lkey--;
        close_two(&a, &b);
    }
}

/* A receive without a buffer, in the place of one that had one. */
static void receive_without_buffer(void)
{
    struct end_options one = {.recv_wr = 1};
    struct ibv_recv_wr none = {.wr_id = 8}, *bad;
    struct end a, b;

    open_two(&a, &b, &one);
    traffic_between(&a, &b);
    CHECK_EQ(ibv_post_recv(b.qp, &none, &bad), 0);
    fails(&a, IBV_WR_SEND, NULL, IBV_WC_REM_INV_REQ_ERR);
    CHECK_EQ(wait_wc(b.rcq).status, IBV_WC_LOC_LEN_ERR);
    close_two(&a, &b);
}

/* With on-demand paging pages may be gone at the next request. */
static void paged_on_demand(void)
{
    struct ibv_sge sge = {.length = 8};
    struct ibv_send_wr wr = {.sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    struct address to;
    struct ibv_mr *mr;
    struct end a, b;
    char *page;

    setenv("SOFTHCA_ODP", "1", 1);
    open_with_traffic(&a, &b, &to);
    page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    mr = ibv_reg_mr(a.pd, page, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND);
    CHECK(mr != NULL);
    sge.addr = (uintptr_t)page;
    sge.lkey = mr->lkey;
    wr.wr.rdma.remote_addr = to.addr;
    wr.wr.rdma.rkey = to.rkey;
    for (int i = 0; i < 2; i++) {
        CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), 0);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    }
    munmap(page, 4096);
    CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_LOC_PROT_ERR);
}

/* Empty requests need no region: keys and addresses are not checked. */
static void nothing_at_all(void)
{
    for (int i = 0; i < OPS; i++) {
        struct end a, b;
        struct address to;
        struct ibv_sge none = {0, 0, 0};
        struct ibv_send_wr wr = {.sg_list = &none,
                                 .num_sge = 1,
                                 .opcode = each_op[i],
                                 .send_flags = IBV_SEND_SIGNALED},
                           *bad;

        open_with_traffic(&a, &b, &to);
        /* Inline, so that no region of this end is looked for before one of the other end. */
        if (each_op[i] != IBV_WR_RDMA_READ) {
            wr.send_flags |= IBV_SEND_INLINE;
            none.addr = (uintptr_t)a.buf;
        }
        CHECK_EQ(post_recv(&b, 7, 64, 64), 0);
        CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), 0);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
        close_two(&a, &b);
    }
}

/* After an overrun this end is broken, and the other one is not told. */
static void own_queue_overrun(void)
{
    struct end_options few = {.cqe = 2};
    struct end a, b;
    struct address to, to_a;

    end_open(&a, &few);
    end_open(&b, NULL);
    to = address_of(&b);
    to_a = address_of(&a);
    connect_to(&a, &to);
    connect_to(&b, &to_a);
    for (int i = 0; i < 2; i++)
        succeeds(&a, IBV_WR_RDMA_WRITE, &to);
    for (int i = 0; i < 3; i++)
        CHECK_EQ(request(&a, IBV_WR_RDMA_WRITE, &to, 0), 0);
    for (int i = 0; i < 2; i++)
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    memset(b.buf, 0, 8);
    fill(a.buf, 8, 5);
    fails(&a, IBV_WR_RDMA_WRITE, &to, IBV_WC_WR_FLUSH_ERR);
    CHECK(b.buf[0] == 0);
}

static void port_down(void)
{
    for (int i = 0; i < OPS; i++) {
        struct end a, b;
        struct address to;

        open_with_traffic(&a, &b, &to);
        CHECK_EQ(post_recv(&b, 7, 0, 64), 0);
        good("link softhca0:1 down");
        CHECK_EQ(request(&a, each_op[i], &to, 0), 0);
        no_wc(a.scq);
        CHECK(b.buf[0] == 0);
        good("link softhca0:1 up");
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
        close_two(&a, &b);
    }
}

static void fault_while_running(void)
{
    for (int i = 0; i < OPS; i++) {
        struct end a, b;
        struct address to;

        open_with_traffic(&a, &b, &to);
        CHECK_EQ(post_recv(&b, 7, 64, 64), 0);
        good("fault set error:status=retry_exc,count=1");
        fails(&a, each_op[i], &to, IBV_WC_RETRY_EXC_ERR);
        CHECK(b.buf[0] == 0);
        good("fault clear");
    }
}

/* ---- in another process: changes that this one learns a moment later ---- */

static struct address join(struct end *e, int fd)
{
    struct address to;

    end_open(e, NULL);
    to = swap_addresses(fd, e);
    connect_to(e, &to);
    meet(fd);
    return to;
}

/* Writes succeed until the other process is gone or has unplugged its cable. */
static void until_silent(struct end *e, const struct address *to)
{
    double until = seconds() + HANG / 2;
    enum ibv_wc_status status;

    do {
        CHECK(seconds() < until);
        CHECK_EQ(request(e, IBV_WR_RDMA_WRITE, to, 0), 0);
        status = wait_wc(e->scq).status;
    } while (status == IBV_WC_SUCCESS);
    CHECK_EQ(status, IBV_WC_RETRY_EXC_ERR);
}

static void kills(int fd, pid_t other)
{
    struct end e;
    struct address to = join(&e, fd);

    for (int i = 0; i < 3; i++)
        succeeds(&e, IBV_WR_RDMA_WRITE, &to);
    CHECK_EQ(kill(other, SIGKILL), 0);
    until_silent(&e, &to);
}

static void is_killed(int fd, pid_t other)
{
    struct end e;

    (void)other;
    join(&e, fd);
    pause();
}

static void dead_peer(void)
{
    in_two(kills, is_killed);
}

static void stays(int fd, pid_t other)
{
    struct end e;
    struct address to = join(&e, fd);

    (void)other;
    for (int i = 0; i < 3; i++)
        succeeds(&e, IBV_WR_RDMA_WRITE, &to);
    meet(fd);
    until_silent(&e, &to);
    meet(fd);
}

static void pulls(int fd, pid_t other)
{
    struct end e;

    (void)other;
    join(&e, fd);
    meet(fd);
    good("plug softhca0:1 out");
    meet(fd);
}

static void cable_of_peer(void)
{
    in_two(stays, pulls);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"every_length", every_length},
        {"fields", fields},
        {"writes_not_accepted", writes_not_accepted},
        {"connected_elsewhere", connected_elsewhere},
        {"responder_in_error", responder_in_error},
        {"broken_by_peer", broken_by_peer},
        {"queue_is_full", queue_is_full},
        {"order", order},
        {"drained", drained},
        {"too_long", too_long},
        {"lists", lists},
        {"pairs", pairs},
        {"pair_too_long", pair_too_long},
        {"regions_change", regions_change},
        {"rights_change", rights_change},
        {"ends_of_regions", ends_of_regions},
        {"other_mtu", other_mtu},
        {"reads_not_accepted", reads_not_accepted},
        {"other_keys", other_keys},
        {"receive_without_buffer", receive_without_buffer},
        {"paged_on_demand", paged_on_demand},
        {"nothing_at_all", nothing_at_all},
        {"own_queue_overrun", own_queue_overrun},
        {"port_down", port_down},
        {"fault_while_running", fault_while_running},
        {"dead_peer", dead_peer},
        {"cable_of_peer", cable_of_peer},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
