/* SPDX-License-Identifier: BSD-3-Clause */
/* A fabric that is disturbed while programs use it: ports go down and come
 * back, an HCA breaks, and the events that report it; and which users may request it. The tests
 * speak to the members' sockets themselves, as the softhca command does. Owns nothing. */
#include "ask.h"

static void bad(const char *request, const char *why)
{
    const char *reply = ask(request);

    if (strncmp(reply, "error ", 6) != 0 || !strstr(reply, why))
        fprintf(stderr, "%s: %s\n", request, reply);
    CHECK(strncmp(reply, "error ", 6) == 0 && strstr(reply, why));
}

static enum ibv_port_state state_of(struct ibv_context *ctx, uint8_t port)
{
    struct ibv_port_attr a;

    CHECK_EQ(ibv_query_port(ctx, port, &a), 0);
    return a.state;
}

/* The next event within a second, acknowledged. */
static struct ibv_async_event next_event(struct ibv_context *ctx)
{
    struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};
    struct ibv_async_event e;

    CHECK_EQ(poll(&p, 1, 1000), 1);
    CHECK_EQ(ibv_get_async_event(ctx, &e), 0);
    ibv_ack_async_event(&e);
    return e;
}

static void no_event(struct ibv_context *ctx)
{
    struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};

    CHECK_EQ(poll(&p, 1, 20), 0);
}

static void expect_event(struct ibv_context *ctx, enum ibv_event_type type, int port)
{
    struct ibv_async_event e = next_event(ctx);

    CHECK_EQ(e.event_type, type);
    CHECK_EQ(e.element.port_num, port);
}

/* ---- requests ---- */

static void requests_are_checked(void)
{
    char longest[5000];

    setenv("SOFTHCA_HCAS", "2", 1);
    setenv("SOFTHCA_PORTS", "2", 1);
    open_softhca(0);
    bad("", "none of");
    bad("lists", "none of");
    bad("list softhca0", "takes no argument");
    bad("link", "softhcaN:P");
    bad("link softhca0", "softhcaN:P");
    bad("link softhca2:1 up", "N below 2");
    bad("link softhca0:0 up", "P from 1 to 2");
    bad("link softhca0:3 up", "P from 1 to 2");
    bad("link softhca-1:1 up", "softhcaN:P");
    bad("link softhca0:1", "neither up nor down");
    bad("link softhca0:1 ", "neither up nor down");
    bad("link softhca0:1 upp", "neither up nor down");
    bad("link softhca0:1up", "softhcaN:P");
    bad("gid softhca2:1 remove 0", "N below 2");
    bad("gid softhca0:1", "neither remove ROW nor add ADDRESS ROW");
    bad("gid softhca0:1 add 0", "neither remove ROW nor add ADDRESS ROW");
    bad("gid softhca0:1 remove 1", "that row is empty");
    bad("gid softhca0:1 add 0 0", "that row is in use");
    bad("gid softhca0:1 add 1 0", "no address of that number");
    bad("gid softhca0:1 add 0 1", "no such row (SOFTHCA_GIDS)");
    bad("fatal", "is not softhcaN");
    bad("fatal softhca2", "N below 2");
    bad("fatal softhca0x", "is not softhcaN");
    bad("fault", "none of set");
    bad("fault set nonsense", "nonsense");
    memset(longest, 'x', sizeof longest);
    CHECK(strstr(ask_bytes(getpid(), longest, sizeof longest), "at most"));
    CHECK(strstr(ask_bytes(getpid(), "list\0x", 6), "printable"));
    CHECK(strstr(ask_bytes(getpid(), "list\n", 5), "printable"));
    good("list");
    good("link softhca1:2 down");
    good("fault list");
    good("fault clear");
}

static bool row_has(struct ibv_context *ctx, uint32_t row, const struct ibv_gid_entry *wanted)
{
    struct ibv_gid_entry e;
    union ibv_gid gid;
    int status = ibv_query_gid_ex(ctx, 1, row, &e, 0);

    CHECK_EQ(ibv_query_gid(ctx, 1, (int)row, &gid), 0);
    if (status == ENODATA)
        CHECK(gid.global.subnet_prefix == 0 && gid.global.interface_id == 0);
    else
        CHECK(status == 0 && memcmp(&gid, &e.gid, sizeof gid) == 0);
    return status == 0 && e.gid_type == wanted->gid_type &&
           memcmp(&e.gid, &wanted->gid, sizeof gid) == 0;
}

/* An address is removed and added again in another row, with an event each time. */
static void addresses_come_and_go(void)
{
    struct ibv_gid_entry before, all[8];
    struct ibv_context *ctx;
    struct ibv_port_attr port;

    setenv("SOFTHCA_LINK", "roce", 1);
    setenv("SOFTHCA_GIDS", "link+ipv4+-+-+-+-", 1);
    ctx = open_softhca(0);
    CHECK_EQ(ibv_query_port(ctx, 1, &port), 0);
    CHECK_EQ(port.gid_tbl_len, 8);
    CHECK_EQ(ibv_query_gid_ex(ctx, 1, 3, &before, 0), 0);
    CHECK_EQ(ibv_query_gid_table(ctx, all, 8, 0), 4);
    good("gid softhca0:1 remove 3");
    expect_event(ctx, IBV_EVENT_GID_CHANGE, 1);
    CHECK(!row_has(ctx, 3, &before));
    CHECK_EQ(ibv_query_gid_table(ctx, all, 8, 0), 3);
    good("gid softhca0:1 add 3 6");
    expect_event(ctx, IBV_EVENT_GID_CHANGE, 1);
    CHECK(!row_has(ctx, 3, &before) && row_has(ctx, 6, &before));
    bad("gid softhca0:1 add 3 3", "in the table already");
    bad("gid softhca0:1 add 7 3", "no address of that number"); /* empty at start */
    no_event(ctx);
}

static void ports_before_a_subnet_manager(void)
{
    struct ibv_context *ctx;
    struct ibv_port_attr port;

    setenv("SOFTHCA_PORTS", "3", 1);
    setenv("SOFTHCA_STATE", "softhca0:1=init,softhca0:2=armed,softhca0:3=no-lid", 1);
    setenv("SOFTHCA_MTU", "softhca0:1=1024", 1);
    setenv("SOFTHCA_PKEYS", "7fff,0,8001", 1);
    ctx = open_softhca(0);
    CHECK_EQ(ibv_query_port(ctx, 1, &port), 0);
    CHECK(port.state == IBV_PORT_INIT && port.lid == 0 && port.active_mtu == IBV_MTU_1024);
    CHECK_EQ(port.pkey_tbl_len, 3);
    CHECK_EQ(ibv_get_pkey_index(ctx, 1, htobe16(0x8001)), 2);
    CHECK_EQ(state_of(ctx, 2), IBV_PORT_ARMED);
    CHECK_EQ(ibv_query_port(ctx, 3, &port), 0);
    CHECK(port.state == IBV_PORT_ACTIVE && port.lid == 0 && port.active_mtu == IBV_MTU_4096);
    good("plug softhca0:1 in");
    expect_event(ctx, IBV_EVENT_PORT_ACTIVE, 1);
    CHECK_EQ(ibv_query_port(ctx, 1, &port), 0);
    CHECK(port.state == IBV_PORT_ACTIVE && port.lid != 0);
}

static void list_counts(void)
{
    struct end a, b;
    const char *reply;

    open_two(&a, &b, NULL);
    for (int i = 0; i < 3; i++) {
        CHECK_EQ(post_recv(&b, 1, 0, 100), 0);
        CHECK_EQ(post_send(&a, 1, 0, 100, 0), 0);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    }
    reply = ask("list");
    CHECK(strstr(reply, "\nqp softhca0 RC RTS 2\n"));
    CHECK(strstr(reply, "\nobjects 2 4 2 2\n"));
    CHECK(strstr(reply, "\ntraffic 3 300\n"));
    CHECK(strstr(reply, "\nport softhca0 1 active\n"));
    close_two(&a, &b);
    /* Messages of destroyed queue pairs still count. */
    reply = ask("list");
    CHECK(strstr(reply, "\nobjects 0 0 0 0\ntraffic 3 300\n"));
}

static void others_are_refused(void)
{
    struct ibv_context *ctx = open_softhca(0);
    pid_t member = getpid(), child;
    int status;

    if (geteuid() != 0) {
        puts("     (not root: cannot become another user; skipped)");
        return;
    }
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        static const char request[] = "link softhca0:1 down";

        CHECK_EQ(setuid(65534), 0);
        CHECK(strstr(ask_bytes(member, request, sizeof request - 1), "error uid 65534"));
        _exit(0);
    }
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    CHECK_EQ(state_of(ctx, 1), IBV_PORT_ACTIVE);
}

/* ---- links ---- */

static void port_state_and_events(void)
{
    struct ibv_context *first, *second, *other;

    setenv("SOFTHCA_HCAS", "2", 1);
    setenv("SOFTHCA_PORTS", "2", 1);
    setenv("SOFTHCA_DOWN", "softhca1:1", 1);
    first = open_softhca(0);
    second = open_softhca(0);
    other = open_softhca(1);
    CHECK_EQ(state_of(other, 1), IBV_PORT_DOWN);
    good("link softhca0:2 down");
    CHECK_EQ(state_of(first, 1), IBV_PORT_ACTIVE);
    CHECK_EQ(state_of(first, 2), IBV_PORT_DOWN);
    expect_event(first, IBV_EVENT_PORT_ERR, 2);
    expect_event(second, IBV_EVENT_PORT_ERR, 2);
    no_event(other);
    good("link softhca0:2 down"); /* no change, no event */
    no_event(first);
    good("link softhca0:2 up");
    CHECK_EQ(state_of(second, 2), IBV_PORT_ACTIVE);
    expect_event(first, IBV_EVENT_PORT_ACTIVE, 2);
    expect_event(second, IBV_EVENT_PORT_ACTIVE, 2);
    good("link softhca1:1 up");
    expect_event(other, IBV_EVENT_PORT_ACTIVE, 1);
    no_event(second);
}

/* A port that stays down: the sender gives up after its retries, and nothing was moved. */
static void down_exhausts_retries(void)
{
    struct end a, b;
    struct address to_b;
    double start;

    end_open(&a, NULL);
    end_open(&b, NULL);
    to_b = address_of(&b);
    to_init(a.qp);
    to_rtr(a.qp, &to_b);
    to_rts(&a, 11, 7); /* 8 * 8.4 ms */
    to_b = address_of(&a);
    connect_to(&b, &to_b);
    to_b = address_of(&b);
    fill(a.buf, 100, 1);
    good("link softhca0:1 down");
    start = seconds();
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 1, 0, 100, IBV_SEND_SIGNALED, &to_b, 0), 0);
    CHECK_EQ(post_send(&a, 2, 0, 100, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_RETRY_EXC_ERR);
    CHECK(seconds() - start > 0.05);
    CHECK(seconds() - start < HANG);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_WR_FLUSH_ERR);
    CHECK_EQ(b.buf[0], 0);
}

/* The port is back in time: nothing is lost or doubled, and order is kept; also without polls. */
static void back_in_time(void)
{
    struct end a, b;
    struct address to_b;

    open_two(&a, &b, NULL);
    to_b = address_of(&b);
    fill(a.buf, 4096, 7);
    good("link softhca0:1 down");
    for (int i = 0; i < 8; i++)
        CHECK_EQ(post_recv(&b, (uint64_t)i, (size_t)i * 512, 512), 0);
    for (int i = 0; i < 8; i++)
        CHECK_EQ(post_send(&a, (uint64_t)i, (size_t)i * 512, 512, 0), 0);
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 8, 0, 4096, IBV_SEND_SIGNALED, &to_b, 8192), 0);
    usleep(100000);
    no_wc(a.scq);
    no_wc(b.rcq);
    CHECK_EQ(b.buf[8192], 0);
    good("link softhca0:1 up");
    usleep(50000);
    CHECK(filled(b.buf + 8192, 4096, 7));
    for (int i = 0; i < 8; i++) {
        CHECK_EQ(wait_wc(b.rcq).wr_id, i);
        CHECK_EQ(wait_wc(a.scq).wr_id, i);
    }
    CHECK_EQ(wait_wc(a.scq).wr_id, 8);
    no_wc(b.rcq);
    CHECK(filled(b.buf, 4096, 7));
    CHECK_EQ(ibv_destroy_qp(a.qp), 0);
}

static void other_ports_go_on(void)
{
    struct end a, b;

    setenv("SOFTHCA_HCAS", "2", 1);
    setenv("SOFTHCA_PORTS", "2", 1);
    open_two(&a, &b, NULL);
    good("link softhca0:2 down");
    good("link softhca1:1 down");
    CHECK_EQ(post_recv(&b, 1, 0, 10), 0);
    CHECK_EQ(post_send(&a, 1, 0, 10, 0), 0);
    CHECK_EQ(wait_wc(b.rcq).status, IBV_WC_SUCCESS);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
}

static void to_ud(struct end *e)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR};

    to_init(e->qp);
    CHECK_EQ(ibv_modify_qp(e->qp, &a, IBV_QP_STATE), 0);
    a.qp_state = IBV_QPS_RTS;
    CHECK_EQ(ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

static void send_datagram(struct end *from, struct end *to, struct ibv_ah *ah, int id)
{
    struct ibv_sge sge = sge_of(from, 0, 32);
    struct ibv_send_wr wr = {.wr_id = (uint64_t)id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = IBV_WR_SEND,
                             .send_flags = IBV_SEND_SIGNALED},
                       *fail;

    wr.wr.ud.ah = ah;
    wr.wr.ud.remote_qpn = to->qp->qp_num;
    wr.wr.ud.remote_qkey = 0x11111;
    CHECK_EQ(ibv_post_send(from->qp, &wr, &fail), 0);
    CHECK_EQ(wait_wc(from->scq).status, IBV_WC_SUCCESS);
}

/* A datagram is not acknowledged: it is lost, and the sender's completion says success. */
static void datagrams_are_lost(void)
{
    struct end_options ud = {.type = IBV_QPT_UD};
    struct ibv_ah_attr path;
    struct end a, b;
    struct address to_b;
    struct ibv_ah *ah;

    end_open(&a, &ud);
    end_open(&b, &ud);
    to_ud(&a);
    to_ud(&b);
    to_b = address_of(&b);
    path = path_to(&to_b);
    CHECK((ah = ibv_create_ah(a.pd, &path)) != NULL);
    CHECK_EQ(post_recv(&b, 1, 0, 100), 0);
    good("link softhca0:1 down");
    send_datagram(&a, &b, ah, 1);
    no_wc(b.rcq);
    good("link softhca0:1 up");
    no_wc(b.rcq);
    send_datagram(&a, &b, ah, 2);
    CHECK_EQ(wait_wc(b.rcq).status, IBV_WC_SUCCESS);
}

static void to_uc(struct end *e, const struct address *to)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = IBV_MTU_1024,
                            .dest_qp_num = to->qpn,
                            .rq_psn = to->psn,
                            .ah_attr = path_to(to)};

    to_init(e->qp);
    CHECK_EQ(
        ibv_modify_qp(e->qp, &a,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN),
        0);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTS, .sq_psn = (uint32_t)e->psn};
    CHECK_EQ(ibv_modify_qp(e->qp, &a, IBV_QP_STATE | IBV_QP_SQ_PSN), 0);
}

/* Nor a message of an unreliable connection; what comes after the link is back arrives. */
static void unreliable_is_lost(void)
{
    struct end_options uc = {.type = IBV_QPT_UC};
    struct address to_a, to_b;
    struct end a, b;

    end_open(&a, &uc);
    end_open(&b, &uc);
    to_a = address_of(&a);
    to_b = address_of(&b);
    to_uc(&a, &to_b);
    to_uc(&b, &to_a);
    fill(a.buf, 64, 3);
    CHECK_EQ(post_recv(&b, 1, 128, 64), 0);
    good("link softhca0:1 down");
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 2, 0, 64, IBV_SEND_SIGNALED, &to_b, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    good("link softhca0:1 up");
    usleep(20000);
    no_wc(b.rcq);
    CHECK_EQ(b.buf[1], 0);
    CHECK_EQ(post_send(&a, 3, 0, 64, 0), 0);
    CHECK_EQ(wait_wc(b.rcq).status, IBV_WC_SUCCESS);
    CHECK(filled(b.buf + 128, 64, 3));
}

static void early(int fd, pid_t other)
{
    struct ibv_context *ctx = open_softhca(0);

    (void)other;
    good("link softhca0:1 down");
    expect_event(ctx, IBV_EVENT_PORT_ERR, 1);
    meet(fd);
    meet(fd);
}

static void late(int fd, pid_t other)
{
    struct ibv_context *ctx;

    (void)other;
    meet(fd);
    ctx = open_softhca(0);
    CHECK_EQ(state_of(ctx, 1), IBV_PORT_DOWN);
    no_event(ctx); /* it never saw it up */
    CHECK_EQ(strncmp(ask("link softhca0:1 up"), "ok", 2), 0);
    expect_event(ctx, IBV_EVENT_PORT_ACTIVE, 1);
    meet(fd);
}

static void late_joiner_sees_the_state(void)
{
    in_two(early, late);
}

/* ---- a broken HCA ---- */

static struct ibv_srq *make_srq(struct ibv_pd *pd)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 4, .max_sge = 1}};

    return ibv_create_srq(pd, &init);
}

static void fatal_breaks_everything(void)
{
    struct ibv_recv_wr wr = {.wr_id = 9}, *fail;
    struct ibv_srq *srq;
    struct end a, b;
    struct ibv_device **list;

    open_two(&a, &b, NULL);
    CHECK((srq = make_srq(a.pd)) != NULL);
    CHECK_EQ(post_recv(&a, 5, 0, 10), 0);
    CHECK_EQ(post_send(&a, 6, 0, 10, 0), 0); /* waits: b has no receive */
    good("fatal softhca0");
    expect_event(a.ctx, IBV_EVENT_DEVICE_FATAL, 0);
    expect_event(b.ctx, IBV_EVENT_DEVICE_FATAL, 0);
    CHECK_EQ(state_of(a.ctx, 1), IBV_PORT_DOWN);
    CHECK_EQ(wait_wc(a.rcq).status, IBV_WC_WR_FLUSH_ERR);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_WR_FLUSH_ERR);
    CHECK_EQ(post_send(&a, 7, 0, 10, 0), EIO);
    CHECK_EQ(post_recv(&a, 8, 0, 10), EIO);
    CHECK_EQ(ibv_post_srq_recv(srq, &wr, &fail), EIO);
    CHECK(make_srq(a.pd) == NULL && errno == EIO);
    CHECK(ibv_alloc_pd(a.ctx) == NULL && errno == EIO);
    CHECK(ibv_create_cq(a.ctx, 1, NULL, NULL, 0) == NULL && errno == EIO);
    CHECK(ibv_reg_mr(a.pd, a.buf, 10, 0) == NULL && errno == EIO);
    CHECK_EQ(ibv_modify_qp(a.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE),
             EIO);
    CHECK((list = ibv_get_device_list(NULL)) != NULL);
    CHECK(ibv_open_device(list[0]) == NULL && errno == EIO);
    ibv_free_device_list(list);
    /* Existing ports can be taken down. */
    CHECK_EQ(ibv_destroy_srq(srq), 0);
    close_two(&a, &b);
}

/* ---- events of queue pairs ---- */

static void drained(void)
{
    struct ibv_qp_attr sqd = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
    struct ibv_qp_attr rts = {.qp_state = IBV_QPS_RTS};
    struct ibv_async_event e;
    struct end a, b;

    open_two(&a, &b, NULL);
    CHECK_EQ(ibv_modify_qp(a.qp, &sqd, IBV_QP_STATE), 0);
    no_event(a.ctx);
    CHECK_EQ(ibv_modify_qp(a.qp, &rts, IBV_QP_STATE), 0);
    CHECK_EQ(ibv_modify_qp(a.qp, &sqd, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0);
    e = next_event(a.ctx);
    CHECK_EQ(e.event_type, IBV_EVENT_SQ_DRAINED);
    CHECK(e.element.qp == a.qp);
}

static void established(void)
{
    struct ibv_async_event e;
    struct address to_a, to_b;
    struct end a, b;

    end_open(&a, NULL);
    end_open(&b, NULL);
    to_a = address_of(&a);
    to_b = address_of(&b);
    connect_to(&a, &to_b);
    to_init(b.qp);
    to_rtr(b.qp, &to_a);
    CHECK_EQ(post_recv(&b, 1, 0, 10), 0);
    CHECK_EQ(post_recv(&b, 2, 0, 10), 0);
    CHECK_EQ(post_send(&a, 1, 0, 10, 0), 0);
    e = next_event(b.ctx);
    CHECK_EQ(e.event_type, IBV_EVENT_COMM_EST);
    CHECK(e.element.qp == b.qp);
    CHECK_EQ(wait_wc(b.rcq).status, IBV_WC_SUCCESS);
    CHECK_EQ(post_send(&a, 2, 0, 10, 0), 0); /* once is enough */
    CHECK_EQ(wait_wc(b.rcq).status, IBV_WC_SUCCESS);
    no_event(b.ctx);
}

static void seeker(int fd, pid_t other)
{
    struct end_options ud = {.type = IBV_QPT_UD};
    struct pollfd answer = {.fd = fd, .events = POLLIN};
    struct ibv_ah_attr path;
    struct address mine, theirs;
    struct ibv_ah *ah;
    struct ibv_qp nobody;
    struct end a, b = {.qp = &nobody};

    (void)other;
    end_open(&a, &ud);
    to_ud(&a);
    mine = address_of(&a);
    path = path_to(&mine);
    CHECK((ah = ibv_create_ah(a.pd, &path)) != NULL);
    meet(fd);
    /* Looks up a member that is not there, again and again, until the other one has joined. */
    nobody.qp_num = a.qp->qp_num ^ 1u << 20;
    while (poll(&answer, 1, 0) == 0)
        send_datagram(&a, &b, ah, 1);
    CHECK_EQ(recv(fd, &theirs, sizeof theirs, MSG_WAITALL), sizeof theirs);
    nobody.qp_num = theirs.qpn;
    send_datagram(&a, &b, ah, 2);
    meet(fd);
}

static void newcomer(int fd, pid_t other)
{
    struct end_options ud = {.type = IBV_QPT_UD};
    struct address mine;
    struct end e;

    (void)other;
    meet(fd);
    end_open(&e, &ud);
    to_ud(&e);
    CHECK_EQ(post_recv(&e, 1, 0, 100), 0);
    mine = address_of(&e);
    CHECK_EQ(write(fd, &mine, sizeof mine), sizeof mine);
    CHECK_EQ(wait_wc(e.rcq).status, IBV_WC_SUCCESS);
    meet(fd);
}

/* A datagram to a process that has just come is not lost, though the sender looked a moment ago. */
static void newcomer_is_found(void)
{
    in_two(seeker, newcomer);
}

/* A program may close descriptors that are not its own; then the helper thread only sleeps for
 * short times. */
static void descriptors_are_closed(void)
{
    struct timespec start, end;

    open_softhca(0);
    for (int fd = 3; fd < 64; fd++)
        close(fd);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    usleep(100000);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    CHECK((double)(end.tv_sec - start.tv_sec) + (double)(end.tv_nsec - start.tv_nsec) * 1e-9 <
          0.03);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"requests_are_checked", requests_are_checked},
        {"addresses_come_and_go", addresses_come_and_go},
        {"ports_before_a_subnet_manager", ports_before_a_subnet_manager},
        {"list_counts", list_counts},
        {"others_are_refused", others_are_refused},
        {"port_state_and_events", port_state_and_events},
        {"down_exhausts_retries", down_exhausts_retries},
        {"back_in_time", back_in_time},
        {"other_ports_go_on", other_ports_go_on},
        {"datagrams_are_lost", datagrams_are_lost},
        {"unreliable_is_lost", unreliable_is_lost},
        {"late_joiner_sees_the_state", late_joiner_sees_the_state},
        {"fatal_breaks_everything", fatal_breaks_everything},
        {"drained", drained},
        {"established", established},
        {"newcomer_is_found", newcomer_is_found},
        {"descriptors_are_closed", descriptors_are_closed},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
