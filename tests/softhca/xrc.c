/* SPDX-License-Identifier: BSD-3-Clause */
/* The promises about XRC: a request names the shared receive queue it is for, of any process that
 * has the domain open; the completion comes to the queue's CQ; the queue's protection domain
 * decides about remote memory; a target exists as long as a process holds it; and how ibv_open_xrcd
 * treats files. */
#include "config.h"

#include "harness.h"
#include "xrc.h"

static void sends(void)
{
    struct end a;
    struct side b;

    open_pair(&a, &b, -1);
    for (unsigned i = 0; i < 40; i++) {
        size_t n = 1 + i * 900;

        CHECK_EQ(post_queue(&b, i, 4096, 65536), 0);
        fill(a.buf, n, i);
        CHECK_EQ(post_xrc(&a, IBV_WR_SEND, b.srqn, n, NULL), 0);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
        expect_message(&b, i, b.e.qp->qp_num, n);
        CHECK(filled(b.e.buf + 4096, n, i));
    }
    /* RNR until something is posted */
    CHECK_EQ(post_xrc(&a, IBV_WR_SEND, b.srqn, 8, NULL), 0);
    usleep(3000);
    no_wc(a.scq);
    CHECK_EQ(post_queue(&b, 99, 0, 64), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    expect_message(&b, 99, b.e.qp->qp_num, 8);
    close_side(&b);
    end_close(&a);
}

/* One connection, two queues; the second one's PD is another. */
static void two_queues(void)
{
    struct ibv_pd *pd;
    struct ibv_mr *mr;
    struct ibv_wc wc;
    struct address first, second;
    struct side b, c;
    struct end a;

    open_pair(&a, &b, -1);
    c = b;
    pd = ibv_alloc_pd(b.e.ctx);
    mr = ibv_reg_mr(pd, b.e.buf + 8192, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    make_queue(&c, pd);
    CHECK(c.srqn != b.srqn);
    first = address_of(&b.e);
    second = first;
    second.rkey = mr->rkey;
    second.addr += 8192;
    fill(a.buf, 100, 1);
    CHECK_EQ(post_xrc(&a, IBV_WR_RDMA_WRITE, b.srqn, 100, &first), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK(filled(b.e.buf, 100, 1));
    CHECK_EQ(post_queue(&b, 1, 300, 64), 0);
    CHECK_EQ(post_xrc(&a, IBV_WR_RDMA_WRITE_WITH_IMM, b.srqn, 100, &first), 0);
    wc = wait_wc(b.e.rcq);
    CHECK_EQ(wc.opcode, IBV_WC_RECV_RDMA_WITH_IMM);
    CHECK_EQ(wc.imm_data, 7);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(post_xrc(&a, IBV_WR_RDMA_READ, b.srqn, 50, &first), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(post_xrc(&a, IBV_WR_RDMA_WRITE, c.srqn, 100, &second), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK(filled(b.e.buf + 8192, 100, 1));
    /* a key of the one with the queue of the other */
    CHECK_EQ(post_xrc(&a, IBV_WR_RDMA_WRITE, b.srqn, 100, &second), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_REM_ACCESS_ERR);
    CHECK_EQ(ibv_destroy_srq(c.e.srq), 0);
    CHECK_EQ(ibv_dereg_mr(mr), 0);
    CHECK_EQ(ibv_dealloc_pd(pd), 0);
    close_side(&b);
    end_close(&a);
}

static void refused(uint32_t (*srqn_for)(struct side *))
{
    struct ibv_async_event ev;
    struct side b;
    struct end a;

    open_pair(&a, &b, -1);
    CHECK_EQ(post_queue(&b, 1, 0, 64), 0);
    CHECK_EQ(post_xrc(&a, IBV_WR_SEND, srqn_for(&b), 8, NULL), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_REM_INV_REQ_ERR);
    CHECK_EQ(ibv_get_async_event(b.e.ctx, &ev), 0);
    CHECK_EQ(ev.event_type, IBV_EVENT_QP_REQ_ERR);
    CHECK(ev.element.qp == b.e.qp);
    ibv_ack_async_event(&ev);
    CHECK_EQ(ibv_get_async_event(b.e.ctx, &ev), 0);
    CHECK_EQ(ev.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
    ibv_ack_async_event(&ev);
    no_wc(b.e.rcq);
    close_side(&b);
    end_close(&a);
}

static uint32_t no_number(struct side *b)
{
    (void)b;
    return 0;
}

static uint32_t unused_number(struct side *b)
{
    return b->srqn + 1;
}

static uint32_t absent_process(struct side *b)
{
    return b->srqn ^ 0x200000;
}

static void wrong_number(void)
{
    refused(no_number);
    refused(unused_number);
    refused(absent_process);
}

static void wrong_domain(void)
{
    struct side b, c;
    struct end a;

    open_pair(&a, &b, -1);
    open_side(&c, -1, false);
    CHECK_EQ(post_queue(&c, 1, 0, 64), 0);
    CHECK_EQ(post_xrc(&a, IBV_WR_SEND, c.srqn, 8, NULL), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_REM_INV_REQ_ERR);
    no_wc(c.e.rcq);
    close_side(&c);
    close_side(&b);
    end_close(&a);
}

static void bad_attributes(void)
{
    struct ibv_srq_init_attr_ex srq = {.attr = {.max_wr = 1, .max_sge = 1},
                                       .comp_mask = IBV_SRQ_INIT_ATTR_TYPE |
                                                    IBV_SRQ_INIT_ATTR_XRCD | IBV_SRQ_INIT_ATTR_PD,
                                       .srq_type = IBV_SRQT_XRC};
    struct ibv_qp_init_attr_ex qp = {.comp_mask = IBV_QP_INIT_ATTR_XRCD, .qp_type = IBV_QPT_RC};
    struct ibv_xrcd_init_attr one = {.comp_mask = IBV_XRCD_INIT_ATTR_FD, .fd = -1};
    struct ibv_send_wr wr = {.opcode = IBV_WR_SEND}, *bad;
    struct ibv_qp_init_attr plain = {.qp_type = IBV_QPT_RC, .cap = {1, 1, 1, 1, 0}};
    struct side s;

    open_side(&s, -1, false);
    srq.xrcd = qp.xrcd = s.xrcd;
    srq.pd = s.e.pd;
    CHECK(!ibv_create_srq_ex(s.e.ctx, &srq) && errno == EINVAL); /* no CQ */
    srq.comp_mask = IBV_SRQ_INIT_ATTR_TYPE | IBV_SRQ_INIT_ATTR_PD;
    srq.srq_type = IBV_SRQT_TM;
    CHECK(!ibv_create_srq_ex(s.e.ctx, &srq) && errno == EOPNOTSUPP);
    CHECK(!ibv_create_qp_ex(s.e.ctx, &qp) && errno == EINVAL); /* only targets have a domain */
    CHECK(!ibv_open_xrcd(s.e.ctx, &one) && errno == EINVAL);
    CHECK(!open_domain(s.e.ctx, 9999, O_CREAT) && errno == EBADF);
    /* an ordinary queue pair cannot receive from an XRC queue */
    plain.send_cq = plain.recv_cq = s.e.rcq;
    plain.srq = s.e.srq;
    CHECK(!ibv_create_qp(s.e.pd, &plain) && errno == EINVAL);
    s.e.qp = make_target(&s);
    CHECK(ibv_post_send(s.e.qp, &wr, &bad) != 0);
    close_side(&s);
}

static int domain_file;

static void first_opener(int fd, pid_t other)
{
    struct ibv_xrcd *one, *two;
    siginfo_t how;
    struct end e;

    end_open(&e, NULL);
    CHECK(!open_domain(e.ctx, domain_file, 0) && errno == EAGAIN);
    one = open_domain(e.ctx, domain_file, O_CREAT | O_EXCL);
    CHECK(one != NULL);
    CHECK(!open_domain(e.ctx, domain_file, O_CREAT | O_EXCL) && errno == EINVAL);
    two = open_domain(e.ctx, domain_file, 0);
    CHECK(two != NULL);
    CHECK_EQ(ibv_close_xrcd(one), 0);
    meet(fd);
    /* The other one was killed with the domain open. */
    CHECK_EQ(waitid(P_PID, (id_t)other, &how, WEXITED | WNOWAIT), 0);
    CHECK_EQ(how.si_code, CLD_KILLED);
    CHECK_EQ(ibv_close_xrcd(two), 0);
    CHECK(!open_domain(e.ctx, domain_file, 0) && errno == EAGAIN);
    end_close(&e);
}

static void second_opener(int fd, pid_t other)
{
    struct end e;

    (void)other;
    end_open(&e, NULL);
    meet(fd);
    CHECK(!open_domain(e.ctx, domain_file, O_CREAT | O_EXCL) && errno == EINVAL);
    CHECK(open_domain(e.ctx, domain_file, 0) != NULL);
    raise(SIGKILL);
}

static void open_flags(void)
{
    domain_file = memfd_create("domain", 0);
    in_two(first_opener, second_opener);
}

/* ---- three processes: sender, creator of the target, owner of the queue ---- */

static void queue_holder(int fd, pid_t other)
{
    struct side s;
    uint32_t target;

    (void)other;
    open_side(&s, domain_file, true);
    for (unsigned i = 0; i < 16; i++)
        CHECK_EQ(post_queue(&s, i, (size_t)i * 4096, 4096), 0);
    CHECK_EQ(write(fd, &s.srqn, sizeof s.srqn), sizeof s.srqn);
    CHECK_EQ(read(fd, &target, sizeof target), sizeof target);
    for (unsigned i = 0; i < 200; i++) {
        size_t n = 1 + i * 20;

        expect_message(&s, i % 16, target, n);
        CHECK(filled(s.e.buf + i % 16 * 4096, n, i));
        CHECK_EQ(post_queue(&s, i % 16, (size_t)(i % 16) * 4096, 4096), 0);
    }
    close_side(&s);
}

static void target_maker(int fd, pid_t other)
{
    struct side s;
    struct end a;
    struct address to_a, to_b;
    uint32_t srqn;

    (void)other;
    open_sender(&a);
    open_side(&s, domain_file, false);
    s.e.qp = make_target(&s);
    to_a = address_of(&a);
    to_b = address_of(&s.e);
    connect_to(&a, &to_b);
    connect_target(s.e.qp, &to_a);
    CHECK_EQ(read(fd, &srqn, sizeof srqn), sizeof srqn);
    CHECK_EQ(write(fd, &s.e.qp->qp_num, sizeof srqn), sizeof srqn);
    for (unsigned i = 0; i < 200; i++) {
        size_t n = 1 + i * 20;

        fill(a.buf, n, i);
        CHECK_EQ(post_xrc(&a, IBV_WR_SEND, srqn, n, NULL), 0);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    }
    no_wc(s.e.rcq);
    close_side(&s);
    end_close(&a);
}

static void other_process(void)
{
    domain_file = memfd_create("domain", 0);
    in_two(target_maker, queue_holder);
}

/* ---- targets with several holders ---- */

static struct ibv_qp *open_target(struct side *s, uint32_t qpn)
{
    struct ibv_qp_open_attr a = {.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD |
                                              IBV_QP_OPEN_ATTR_TYPE,
                                 .qp_num = qpn,
                                 .xrcd = s->xrcd,
                                 .qp_type = IBV_QPT_XRC_RECV};

    return ibv_open_qp(s->e.ctx, &a);
}

/* Takes a handle, waits until the maker has closed its own, connects through it, receives, closes:
 * the target ends with that. */
static void second_holder(int fd, pid_t other)
{
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    struct address from;
    uint32_t qpn;
    struct side s;

    (void)other;
    open_side(&s, domain_file, false);
    CHECK_EQ(recv(fd, &qpn, sizeof qpn, MSG_WAITALL), sizeof qpn);
    CHECK(!open_target(&s, qpn + 1) && errno == EINVAL);
    s.e.qp = open_target(&s, qpn);
    CHECK(s.e.qp && s.e.qp->qp_num == qpn);
    CHECK_EQ(ibv_query_qp(s.e.qp, &attr, IBV_QP_STATE, &init), 0);
    CHECK_EQ(attr.qp_state, IBV_QPS_INIT);
    meet(fd);
    CHECK_EQ(recv(fd, &from, sizeof from, MSG_WAITALL), sizeof from);
    to_rtr(s.e.qp, &from);
    target_to_rts(s.e.qp);
    CHECK_EQ(post_queue(&s, 5, 0, 64), 0);
    CHECK_EQ(write(fd, &s.srqn, sizeof s.srqn), sizeof s.srqn);
    expect_message(&s, 5, qpn, 8);
    CHECK_EQ(ibv_destroy_qp(s.e.qp), 0);
    s.e.qp = NULL;
    meet(fd);
    meet(fd);
    close_side(&s);
}

static void first_holder(int fd, pid_t other)
{
    struct address to_a, to_b;
    uint32_t srqn, qpn;
    struct side s;
    struct end a;

    (void)other;
    open_sender(&a);
    open_side(&s, domain_file, false);
    s.e.qp = make_target(&s);
    to_init(s.e.qp);
    qpn = s.e.qp->qp_num;
    to_a = address_of(&a);
    to_b = address_of(&s.e);
    CHECK_EQ(write(fd, &qpn, sizeof qpn), sizeof qpn);
    meet(fd);
    CHECK_EQ(ibv_destroy_qp(s.e.qp), 0);
    for (int i = 0; i < 20000; i++) { /* all numbers there are; this one is still in use */
        s.e.qp = make_target(&s);
        CHECK(s.e.qp->qp_num != qpn);
        CHECK_EQ(ibv_destroy_qp(s.e.qp), 0);
    }
    s.e.qp = NULL;
    to_init(a.qp);
    to_rtr(a.qp, &to_b);
    to_rts(&a, 8, 7);
    CHECK_EQ(write(fd, &to_a, sizeof to_a), sizeof to_a);
    CHECK_EQ(recv(fd, &srqn, sizeof srqn, MSG_WAITALL), sizeof srqn);
    CHECK_EQ(post_xrc(&a, IBV_WR_SEND, srqn, 8, NULL), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    meet(fd);
    CHECK_EQ(post_xrc(&a, IBV_WR_SEND, srqn, 8, NULL), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_RETRY_EXC_ERR);
    meet(fd);
    close_side(&s);
    end_close(&a);
}

static void shared_target(void)
{
    domain_file = memfd_create("domain", 0);
    in_two(first_holder, second_holder);
}

/* Senders in processes of their own fill one queue at the same time and are killed one by one; what
 * arrives is whole, and the queue goes on with those that are left. */
#define VICTIMS 4

static size_t size_of(int sender)
{
    return 6000 + (size_t)sender;
}

static void endless_sender(int fd, int me)
{
    struct address to;
    uint32_t srqn;
    struct end a;

    deadline(ALARM);
    CHECK_EQ(recv(fd, &srqn, sizeof srqn, MSG_WAITALL), sizeof srqn);
    open_sender(&a);
    to = swap_addresses(fd, &a);
    connect_to(&a, &to);
    meet(fd);
    fill(a.buf, size_of(me), (unsigned)me);
    for (;;) {
        CHECK_EQ(post_xrc(&a, IBV_WR_SEND, srqn, size_of(me), NULL), 0);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    }
}

static struct ibv_qp *welcome(struct side *s, int fd)
{
    struct end one = s->e;
    struct address from;

    CHECK_EQ(write(fd, &s->srqn, sizeof s->srqn), sizeof s->srqn);
    one.qp = make_target(s);
    from = swap_addresses(fd, &one);
    connect_target(one.qp, &from);
    return one.qp;
}

static void receive_whole(struct side *s, struct ibv_qp *const *target)
{
    struct ibv_wc wc = wait_wc(s->e.rcq);
    int from = 0;

    CHECK_EQ(wc.status, IBV_WC_SUCCESS);
    while (from < VICTIMS && target[from]->qp_num != wc.qp_num)
        from++;
    CHECK(from < VICTIMS);
    CHECK_EQ(wc.byte_len, size_of(from));
    CHECK(filled(s->e.buf + wc.wr_id * 8192, wc.byte_len, (unsigned)from));
    CHECK_EQ(post_queue(s, wc.wr_id, wc.wr_id * 8192, 8192), 0);
}

static void killed_sender(void)
{
    struct ibv_qp *target[VICTIMS];
    const int messages = over_packets() ? 100 : 500;
    int fd[VICTIMS];
    pid_t pid[VICTIMS];
    struct side s;

    for (int i = 0; i < VICTIMS; i++) {
        int fds[2];

        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        fd[i] = fds[0];
        pid[i] = fork();
        CHECK(pid[i] >= 0);
        if (pid[i] == 0)
            endless_sender(fds[1], i);
        close(fds[1]);
    }
    open_side(&s, -1, true);
    for (unsigned i = 0; i < 16; i++)
        CHECK_EQ(post_queue(&s, i, (size_t)i * 8192, 8192), 0);
    for (int i = 0; i < VICTIMS; i++)
        target[i] = welcome(&s, fd[i]);
    for (int i = 0; i < VICTIMS; i++)
        meet(fd[i]);
    for (int i = 0; i < VICTIMS; i++) {
        for (int n = 0; n < messages; n++)
            receive_whole(&s, target);
        kill(pid[i], SIGKILL);
        CHECK_EQ(waitpid(pid[i], NULL, 0), pid[i]);
    }
    for (int i = 0; i < VICTIMS; i++)
        CHECK_EQ(ibv_destroy_qp(target[i]), 0);
    close_side(&s);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"sends", sends},
        {"two_queues", two_queues},
        {"wrong_number", wrong_number},
        {"wrong_domain", wrong_domain},
        {"bad_attributes", bad_attributes},
        {"open_flags", open_flags},
        {"other_process", other_process},
        {"shared_target", shared_target},
        {"killed_sender", killed_sender},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
