/* SPDX-License-Identifier: BSD-3-Clause */
/* Behaviour of devices in a profile (SOFTHCA_PROFILE) other than the sizes of queue pairs: one case
 * each, on a device that has it. Owns nothing beyond each case. */
#include "config.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <rdma/rdma_cma.h>

#include "tests/softhca/ask.h"
#include "tests/softhca/profiles.h"

/* ---- completion queues and regions ---- */

static void queues_rounded(void)
{
    struct ibv_cq *cq;
    struct parts o;

    use_profile("connectx-5");
    o = open_parts();
    CHECK((cq = ibv_create_cq(o.ctx, 100, NULL, NULL, 0)) != NULL);
    CHECK_EQ(cq->cqe, 127);
    CHECK_EQ(ibv_resize_cq(cq, 128), 0);
    CHECK_EQ(cq->cqe, 255);
    CHECK(ibv_create_cq(o.ctx, 4194304, NULL, NULL, 0) == NULL);
    CHECK_EQ(errno, EINVAL);
}

static void no_resize(void)
{
    struct parts o;

    use_profile("cxgb4");
    o = open_parts();
    CHECK_EQ(o.cq->cqe, 16);
    CHECK_EQ(ibv_resize_cq(o.cq, 32), EOPNOTSUPP);
    CHECK_EQ(o.cq->cqe, 16);
}

static void region_too_large(void)
{
    const size_t most = 0xffffffff, page = 4096;
    struct parts o;
    char *at;

    use_profile("pvrdma");
    o = open_parts();
    at = mmap(NULL, most + page, PROT_READ | PROT_WRITE,
              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(at != MAP_FAILED);
    CHECK(ibv_reg_mr(o.pd, at, most + 1, IBV_ACCESS_LOCAL_WRITE) == NULL);
    CHECK_EQ(errno, EINVAL);
    CHECK(ibv_reg_mr(o.pd, at, most, IBV_ACCESS_LOCAL_WRITE) != NULL);
}

static void too_many_regions(void)
{
    static char memory[4096];
    const struct shca_profile *p = use_profile("hns");
    struct parts o = open_parts();

    for (uint32_t i = 0; i < p->max_mr; i++)
        CHECK(ibv_reg_mr(o.pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE) != NULL);
    CHECK(ibv_reg_mr(o.pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE) == NULL);
    CHECK_EQ(errno, ENOMEM);
}

static void paging(void)
{
    static char memory[4096];
    const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND;
    struct parts o;

    setenv("SOFTHCA_PROFILE", "connectx-4,connectx-3", 1);
    o = open_parts();
    CHECK(ibv_reg_mr(o.pd, memory, sizeof memory, access) != NULL);
    o.ctx = open_softhca(1);
    CHECK((o.pd = ibv_alloc_pd(o.ctx)) != NULL);
    CHECK(ibv_reg_mr(o.pd, memory, sizeof memory, access) == NULL);
    CHECK_EQ(errno, EOPNOTSUPP);
}

/* ---- operations ---- */

static const struct end_options small = {.small = true, .cqe = 200};

static void no_atomics(void)
{
    struct end a, b;
    struct address to;

    use_profile("qedr");
    open_two(&a, &b, &small);
    to = address_of(&b);
    CHECK_EQ(post(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8, IBV_SEND_SIGNALED, &to, 0), EINVAL);
    CHECK_EQ(post(&a, IBV_WR_RDMA_READ, 1, 0, 8, IBV_SEND_SIGNALED, &to, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
}

enum { adds = 20000 };

struct cpu_adder {
    uint64_t *word, added;
    bool stops;
};

static void *add_by_cpu(void *data)
{
    struct cpu_adder *c = data;

    for (; !__atomic_load_n(&c->stops, __ATOMIC_RELAXED); c->added++)
        __atomic_fetch_add(c->word, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

/* How many increments are lost when the CPU and the device add to one word concurrently. */
static uint64_t lost_of_both(void)
{
    struct cpu_adder cpu = {0};
    struct end a, b;
    struct address to;
    pthread_t thread;

    open_two(&a, &b, &small);
    to = address_of(&b);
    cpu.word = (uint64_t *)(void *)b.buf;
    CHECK_EQ(pthread_create(&thread, NULL, add_by_cpu, &cpu), 0);
    for (int i = 0; i < adds; i++) {
        struct ibv_sge sge = sge_of(&a, 64, 8);
        struct ibv_send_wr wr = {.sg_list = &sge,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                                 .send_flags = IBV_SEND_SIGNALED,
                                 .wr.atomic = {to.addr, 1, 0, to.rkey}},
                           *bad;

        CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), 0);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    }
    __atomic_store_n(&cpu.stops, true, __ATOMIC_RELAXED);
    CHECK_EQ(pthread_join(thread, NULL), 0);
    return adds + cpu.added - *cpu.word;
}

/* On one CPU the two may take turns. */
static void atomics_of_a_card(void)
{
    bool lost = false;

    use_profile("connectx-5");
    for (int i = 0; i < 50 && !lost; i++)
        lost = lost_of_both() > 0;
    CHECK(lost);
}

static void atomics_of_softhca(void)
{
    CHECK_EQ(lost_of_both(), 0);
}

static void few_reads(void)
{
    struct ibv_qp_attr more = {.max_rd_atomic = 9};
    struct end a, b;

    use_profile("e810-roce");
    open_two(&a, &b, &small);
    more.qp_state = IBV_QPS_RTS;
    more.retry_cnt = more.rnr_retry = 7;
    CHECK_EQ(ibv_modify_qp(a.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_RESET}, IBV_QP_STATE),
             0);
    to_init(a.qp);
    struct address to = address_of(&b);
    to_rtr(a.qp, &to);
    CHECK_EQ(ibv_modify_qp(a.qp, &more,
                           IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                               IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
             EINVAL);
    more.max_rd_atomic = 8;
    CHECK_EQ(ibv_modify_qp(a.qp, &more,
                           IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                               IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC),
             0);
}

/* Reads so many bytes. Returns whether the data was there before the poll; after the poll it always
 * is. */
static bool arrives_early(struct end *a, struct end *b, const struct address *to, size_t n)
{
    bool early;

    fill(b->buf, n, 7);
    memset(a->buf, 0, n + 1);
    CHECK_EQ(post(a, IBV_WR_RDMA_READ, 1, 0, n, IBV_SEND_SIGNALED, to, 0), 0);
    usleep(1000);
    early = filled(a->buf, n, 7);
    CHECK(early || a->buf[0] == 0);
    CHECK_EQ(wait_wc(a->scq).status, IBV_WC_SUCCESS);
    CHECK(filled(a->buf, n, 7) && a->buf[n] == 0);
    return early;
}

static void reads_in_completions(void)
{
    struct end a, b;
    struct address to;

    use_profile("connectx-5");
    traffic_first = true; /* the short path, too */
    open_two(&a, &b, &small);
    to = address_of(&b);
    for (int i = 0; i < 300; i++)
        CHECK(!arrives_early(&a, &b, &to, 64));
    CHECK(!arrives_early(&a, &b, &to, 1));
    CHECK(arrives_early(&a, &b, &to, 65));
}

/* Posts many reads at a time; in later rounds their requests wrap around the queue. */
static void reads_keep_apart(void)
{
    struct address to;
    struct end a, b;

    use_profile("connectx-5");
    open_two(&a, &b, &small);
    to = address_of(&b);
    for (int round = 0; round < 5; round++) {
        fill(b.buf, 4096, (unsigned)round);
        memset(a.buf, 0, 4096);
        for (size_t i = 0; i < 50; i++)
            CHECK_EQ(post(&a, IBV_WR_RDMA_READ, i, i * 64, 64, IBV_SEND_SIGNALED, &to, i * 64), 0);
        for (size_t i = 0; i < 50; i++)
            CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
        CHECK(filled(a.buf, 50 * 64, (unsigned)round));
    }
    /* The data of an unsignaled read is there at once. */
    CHECK_EQ(post(&a, IBV_WR_RDMA_READ, 1, 8192, 8, 0, &to, 0), 0);
    CHECK(memcmp(a.buf + 8192, b.buf, 8) == 0);
}

/* ---- events ---- */

static bool has_event(struct ibv_context *ctx, int ms, struct ibv_async_event *e)
{
    struct pollfd p = {.fd = ctx->async_fd, .events = POLLIN};

    if (poll(&p, 1, ms) != 1)
        return false;
    CHECK_EQ(ibv_get_async_event(ctx, e), 0);
    ibv_ack_async_event(e);
    return true;
}

static void late_port_events(void)
{
    const struct shca_profile *p = use_profile("pvrdma");
    struct ibv_context *ctx = open_softhca(0);
    struct ibv_async_event e;
    struct ibv_port_attr port;
    double began = seconds();

    ask("link softhca0:1 down");
    CHECK_EQ(ibv_query_port(ctx, 1, &port), 0);
    CHECK_EQ(port.state, IBV_PORT_DOWN);
    CHECK(has_event(ctx, HANG * 1000, &e));
    CHECK_EQ(e.event_type, IBV_EVENT_PORT_ERR);
    CHECK(seconds() - began >= p->event_delay * 1e-3);
}

static bool tells_the_last(const char *profile)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = 16, .max_sge = 1}};
    struct ibv_async_event e;
    struct end_options o = small;
    struct end a;

    use_profile(profile);
    o.no_qp = true;
    end_open(&a, &o);
    CHECK((a.srq = ibv_create_srq(a.pd, &init)) != NULL);
    end_qp(&a, &o);
    to_init(a.qp);
    CHECK_EQ(ibv_modify_qp(a.qp, &(struct ibv_qp_attr){.qp_state = IBV_QPS_ERR}, IBV_QP_STATE), 0);
    return has_event(a.ctx, 50, &e) && e.event_type == IBV_EVENT_QP_LAST_WQE_REACHED;
}

static void last_is_told(void)
{
    CHECK(tells_the_last("connectx-5"));
}

static void last_is_not_told(void)
{
    CHECK(!tells_the_last("rxe"));
}

/* ---- iWARP ---- */

static struct rdma_cm_event *next_cm(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
    struct rdma_cm_event *e;

    CHECK_EQ(rdma_get_cm_event(ch, &e), 0);
    CHECK_EQ(e->event, type);
    return e;
}

static void ack_cm(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
    CHECK_EQ(rdma_ack_cm_event(next_cm(ch, type)), 0);
}

static void begin_connecting(struct rdma_event_channel *ch, struct rdma_cm_id **l,
                             struct rdma_cm_id **id)
{
    struct sockaddr_in at = {.sin_family = AF_INET};

    CHECK_EQ(inet_pton(AF_INET, "10.83.0.1", &at.sin_addr), 1);
    CHECK_EQ(rdma_create_id(ch, l, NULL, RDMA_PS_TCP), 0);
    CHECK_EQ(rdma_bind_addr(*l, (struct sockaddr *)&at), 0);
    CHECK_EQ(rdma_listen(*l, 4), 0);
    at.sin_port = rdma_get_src_port(*l);
    CHECK_EQ(rdma_create_id(ch, id, NULL, RDMA_PS_TCP), 0);
    CHECK_EQ(rdma_resolve_addr(*id, NULL, (struct sockaddr *)&at, 2000), 0);
    ack_cm(ch, RDMA_CM_EVENT_ADDR_RESOLVED);
    CHECK_EQ(rdma_resolve_route(*id, 2000), 0);
    ack_cm(ch, RDMA_CM_EVENT_ROUTE_RESOLVED);
}

/* Connects two queue pairs without an identifier of librdmacm. */
static void connect_iwarp(struct end *active, struct end *passive)
{
    struct rdma_event_channel *ch = rdma_create_event_channel();
    struct rdma_conn_param p = {.responder_resources = 4, .initiator_depth = 4};
    struct rdma_cm_id *l, *id;
    struct rdma_cm_event *e;

    CHECK(ch != NULL);
    begin_connecting(ch, &l, &id);
    p.qp_num = active->qp->qp_num;
    CHECK_EQ(rdma_connect(id, &p), 0);
    e = next_cm(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
    p.qp_num = passive->qp->qp_num;
    CHECK_EQ(rdma_accept(e->id, &p), 0);
    CHECK_EQ(rdma_ack_cm_event(e), 0);
    ack_cm(ch, RDMA_CM_EVENT_ESTABLISHED);
    ack_cm(ch, RDMA_CM_EVENT_ESTABLISHED);
}

static void open_iwarp(struct end *a, struct end *b, int access)
{
    struct end_options o = small;

    use_profile("siw");
    o.access = access;
    end_open(a, &o);
    end_open(b, &o);
    connect_iwarp(a, b);
}

static void program_can_not_connect(void)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR, .path_mtu = IBV_MTU_1024};
    struct address to;
    struct end a, b;

    use_profile("cxgb4");
    end_open(&a, &small);
    end_open(&b, &small);
    to = address_of(&b);
    to.lid = 0; /* its LID can't be used to reach it */
    to_init(a.qp);
    attr.ah_attr = path_to(&to);
    attr.dest_qp_num = to.qpn;
    CHECK_EQ(ibv_modify_qp(a.qp, &attr,
                           IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                               IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER),
             EINVAL);
}

static void iwarp_operations(void)
{
    struct address to;
    struct end a, b;

    open_iwarp(&a, &b, 0);
    to = address_of(&b);
    CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE_WITH_IMM, 1, 0, 8, IBV_SEND_SIGNALED, &to, 0), EINVAL);
    CHECK_EQ(post(&a, IBV_WR_SEND_WITH_IMM, 1, 0, 8, IBV_SEND_SIGNALED, NULL, 0), EINVAL);
    CHECK_EQ(post(&a, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8, IBV_SEND_SIGNALED, &to, 0), EINVAL);
    fill(b.buf, 100, 3);
    CHECK_EQ(post(&a, IBV_WR_RDMA_READ, 1, 0, 100, IBV_SEND_SIGNALED, &to, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    CHECK(filled(a.buf, 100, 3));
}

static void reads_are_writes(void)
{
    struct address to;
    struct end a, b;

    open_iwarp(&a, &b, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
    to = address_of(&b);
    CHECK_EQ(post(&a, IBV_WR_RDMA_READ, 1, 0, 100, IBV_SEND_SIGNALED, &to, 0), 0);
    CHECK_EQ(wait_wc(a.scq).status, IBV_WC_LOC_PROT_ERR);
}

static void long_lists_of_reads(void)
{
    struct ibv_sge list[2];
    struct ibv_send_wr wr = {.sg_list = list, .num_sge = 2, .opcode = IBV_WR_RDMA_READ}, *bad;
    struct end_options o = {.cqe = 200, .no_qp = true};
    struct ibv_qp_init_attr init = {.qp_type = IBV_QPT_RC, .cap = {8, 8, 2, 1, 0}};
    struct address to;
    struct end a, b;

    use_profile("siw");
    end_open(&a, &o);
    init.send_cq = a.scq;
    init.recv_cq = a.rcq;
    CHECK((a.qp = ibv_create_qp(a.pd, &init)) != NULL);
    end_open(&b, &small);
    connect_iwarp(&a, &b);
    to = address_of(&b);
    list[0] = sge_of(&a, 0, 8);
    list[1] = sge_of(&a, 64, 8);
    wr.wr.rdma.remote_addr = to.addr;
    wr.wr.rdma.rkey = to.rkey;
    CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), EINVAL);
    wr.opcode = IBV_WR_RDMA_WRITE;
    CHECK_EQ(ibv_post_send(a.qp, &wr, &bad), 0);
}

static void accepting_end_waits(void)
{
    struct end a, b;

    open_iwarp(&a, &b, 0);
    CHECK_EQ(post_recv(&a, 1, 0, 64), 0);
    CHECK_EQ(post_send(&b, 2, 0, 8, 0), 0);
    CHECK_EQ(wait_wc(b.scq).status, IBV_WC_WR_FLUSH_ERR);
}

static void connecting_end_begins(void)
{
    struct end a, b;

    open_iwarp(&a, &b, 0);
    CHECK_EQ(post_recv(&a, 1, 0, 64), 0);
    CHECK_EQ(post_recv(&b, 1, 0, 64), 0);
    CHECK_EQ(post_send(&a, 2, 0, 8, 0), 0);
    CHECK_EQ(wait_wc(b.rcq).status, IBV_WC_SUCCESS);
    CHECK_EQ(post_send(&b, 2, 0, 8, 0), 0);
    CHECK_EQ(wait_wc(b.scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(wait_wc(a.rcq).status, IBV_WC_SUCCESS);
}

/* ---- main ---- */

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"queues_rounded", queues_rounded},
        {"no_resize", no_resize},
        {"region_too_large", region_too_large},
        {"too_many_regions", too_many_regions},
        {"paging", paging},
        {"no_atomics", no_atomics},
        {"atomics_of_a_card", atomics_of_a_card},
        {"atomics_of_softhca", atomics_of_softhca},
        {"few_reads", few_reads},
        {"reads_in_completions", reads_in_completions},
        {"reads_keep_apart", reads_keep_apart},
        {"late_port_events", late_port_events},
        {"last_is_told", last_is_told},
        {"last_is_not_told", last_is_not_told},
        {"program_can_not_connect", program_can_not_connect},
        {"iwarp_operations", iwarp_operations},
        {"reads_are_writes", reads_are_writes},
        {"long_lists_of_reads", long_lists_of_reads},
        {"accepting_end_waits", accepting_end_waits},
        {"connecting_end_begins", connecting_end_begins},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
