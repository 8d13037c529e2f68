/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the tests of softhca: checks that name the line, a watchdog that ends the process
 * group, an "end" (context, PD, CQs, one QP, one registered buffer) and ways to connect two of
 * them, in one process or across a socketpair. Owns nothing; a test program runs its cases in one
 * thread. */
#ifndef SOFTHCA_HARNESS_H
#define SOFTHCA_HARNESS_H

#include <errno.h>
#include <fcntl.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BUF_BYTES (1 << 20)

/* Seconds. Work that takes longer counts as hanging, even on a loaded machine; it is no limit of
 * speed. The alarm comes later, so that the failing line is printed. */
#define HANG  60
#define ALARM 90

/* Code under a sanitizer is several times slower: the numbers of the long tests are smaller. */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
#    define SANITIZED true
#else
#    define SANITIZED false
#endif

/* With packets each message or atomic is an exchange between processes, which may wait for a CPU
 * each time: on a busy machine the long tests would take minutes. */
static inline bool over_packets(void)
{
    const char *wire = getenv("SOFTHCA_WIRE");

    return wire && strcmp(wire, "udp") == 0;
}

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s (errno %d)\n", __FILE__, __LINE__, #condition,    \
                    errno);                                                                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define CHECK_EQ(got, expected)                                                                    \
    do {                                                                                           \
        long long got_ = (long long)(got), expected_ = (long long)(expected);                      \
        if (got_ != expected_) {                                                                   \
            fprintf(stderr, "%s:%d: %s is %lld, not %lld (%s)\n", __FILE__, __LINE__, #got, got_,  \
                    expected_, #expected);                                                         \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

struct end {
    struct ibv_context *ctx;
    struct ibv_pd *pd;
    struct ibv_comp_channel *channel;
    struct ibv_cq *scq, *rcq;
    struct ibv_qp *qp;
    struct ibv_srq *srq; /* given by the test: queue pairs made later receive from it */
    char *buf;
    struct ibv_mr *mr;
    int fd; /* of the shared buffer, -1: private memory */
    int psn;
    uint8_t port;
};

struct address {
    uint32_t qpn, psn, rkey;
    uint16_t lid;
    union ibv_gid gid;
    uint64_t addr;
};

struct end_options {
    int cqe;      /* 0: 256 */
    int send_wr;  /* 0: 64 */
    int recv_wr;  /* 0: 64 */
    int type;     /* 0: RC */
    bool private; /* malloc instead of shared memory */
    bool channel;
    bool no_qp;
    int access; /* 0: all */
    bool small; /* a list of one entry and no inline data, which all devices have */
    int hca;
    int port; /* 0: 1 */
};

static inline void deadline(int seconds)
{
    /* SIGALRM's default action ends this process; children die with it (PR_SET_PDEATHSIG is not
     * inherited, so each arms its own alarm). */
    alarm((unsigned)seconds);
}

static inline double seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static inline struct ibv_context *open_softhca(int number)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = NULL;
    char name[32];

    CHECK(list != NULL);
    /* Not by its name, which a profile changes. */
    snprintf(name, sizeof name, "softhca-uverbs%d", number);
    for (int i = 0; list[i]; i++)
        if (strcmp(list[i]->dev_name, name) == 0)
            ctx = ibv_open_device(list[i]);
    ibv_free_device_list(list);
    CHECK(ctx != NULL);
    return ctx;
}

static inline void end_buffer(struct end *e, bool private)
{
    e->fd = private ? -1 : memfd_create("test", MFD_CLOEXEC);
    if (!private)
        CHECK(e->fd >= 0 && ftruncate(e->fd, BUF_BYTES) == 0);
    e->buf = mmap(NULL, BUF_BYTES, PROT_READ | PROT_WRITE,
                  private ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, e->fd, 0);
    CHECK(e->buf != MAP_FAILED);
}

static inline void end_qp(struct end *e, const struct end_options *o)
{
    struct ibv_qp_init_attr init = {
        .send_cq = e->scq,
        .recv_cq = e->rcq,
        .srq = e->srq,
        .qp_type = o->type ? (enum ibv_qp_type)o->type : IBV_QPT_RC,
        .cap = {.max_send_wr = o->send_wr ? (uint32_t)o->send_wr : 64,
                .max_recv_wr = o->recv_wr ? (uint32_t)o->recv_wr : 64,
                .max_send_sge = o->small ? 1 : 4,
                .max_recv_sge = o->small ? 1 : 4,
                .max_inline_data = o->small ? 0 : 220},
    };

    e->qp = ibv_create_qp(e->pd, &init);
    CHECK(e->qp != NULL);
    CHECK(o->small || init.cap.max_inline_data >= 220);
}

static inline void end_open(struct end *e, const struct end_options *o)
{
    static const struct end_options standard;
    int access;

    o = o ? o : &standard;
    access = o->access ? o->access
                       : IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                             IBV_ACCESS_REMOTE_ATOMIC;
    memset(e, 0, sizeof *e);
    e->port = o->port ? (uint8_t)o->port : 1;
    e->ctx = open_softhca(o->hca);
    e->pd = ibv_alloc_pd(e->ctx);
    CHECK(e->pd != NULL);
    if (o->channel)
        CHECK((e->channel = ibv_create_comp_channel(e->ctx)) != NULL);
    e->scq = ibv_create_cq(e->ctx, o->cqe ? o->cqe : 256, NULL, NULL, 0);
    e->rcq = ibv_create_cq(e->ctx, o->cqe ? o->cqe : 256, e, e->channel, 0);
    CHECK(e->scq && e->rcq);
    end_buffer(e, o->private);
    e->mr = ibv_reg_mr(e->pd, e->buf, BUF_BYTES, access);
    CHECK(e->mr != NULL);
    e->psn = 0x1234 + getpid() % 1000;
    if (!o->no_qp)
        end_qp(e, o);
}

/* Destroying must succeed: handles that are still used would give EBUSY. */
static inline void end_close(struct end *e)
{
    if (e->qp)
        CHECK_EQ(ibv_destroy_qp(e->qp), 0);
    CHECK_EQ(ibv_dereg_mr(e->mr), 0);
    munmap(e->buf, BUF_BYTES);
    if (e->fd >= 0)
        close(e->fd);
    CHECK_EQ(ibv_destroy_cq(e->scq), 0);
    CHECK_EQ(ibv_destroy_cq(e->rcq), 0);
    if (e->channel)
        CHECK_EQ(ibv_destroy_comp_channel(e->channel), 0);
    CHECK_EQ(ibv_dealloc_pd(e->pd), 0);
    CHECK_EQ(ibv_close_device(e->ctx), 0);
}

static inline struct address address_of(const struct end *e)
{
    struct ibv_port_attr port;
    struct address a = {.qpn = e->qp->qp_num,
                        .psn = (uint32_t)e->psn,
                        .rkey = e->mr->rkey,
                        .addr = (uintptr_t)e->buf};

    CHECK_EQ(ibv_query_port(e->ctx, e->port, &port), 0);
    a.lid = port.lid;
    CHECK_EQ(ibv_query_gid(e->ctx, e->port, 0, &a.gid), 0);
    return a;
}

static inline void to_init_at(struct ibv_qp *qp, uint8_t port)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .port_num = port,
                            .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                               IBV_ACCESS_REMOTE_ATOMIC,
                            .qkey = 0x11111};

    CHECK_EQ(ibv_modify_qp(qp, &a,
                           IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                               (qp->qp_type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS)),
             0);
}

static inline void to_init(struct ibv_qp *qp)
{
    to_init_at(qp, 1);
}

static inline struct ibv_ah_attr path_to(const struct address *to)
{
    struct ibv_ah_attr a = {.dlid = to->lid, .port_num = 1};

    if (to->lid == 0) { /* a RoCE port */
        a.is_global = 1;
        a.grh.dgid = to->gid;
        a.grh.hop_limit = 1;
    }
    return a;
}

static inline void to_rtr_at(struct ibv_qp *qp, const struct address *to, uint8_t port)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTR,
                            .path_mtu = IBV_MTU_1024,
                            .dest_qp_num = to->qpn,
                            .rq_psn = to->psn,
                            .max_dest_rd_atomic = 1,
                            .min_rnr_timer = 12,
                            .ah_attr = path_to(to)};

    a.ah_attr.port_num = port;
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;

    if (qp->qp_type != IBV_QPT_UC)
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    CHECK_EQ(ibv_modify_qp(qp, &a, mask), 0);
}

static inline void to_rtr(struct ibv_qp *qp, const struct address *to)
{
    to_rtr_at(qp, to, 1);
}

/* timeout: 4.096 us << timeout, eight times. */
static inline void to_rts(struct end *e, int timeout, int rnr_retry)
{
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_RTS,
                            .timeout = (uint8_t)timeout,
                            .retry_cnt = 7,
                            .rnr_retry = (uint8_t)rnr_retry,
                            .sq_psn = (uint32_t)e->psn,
                            .max_rd_atomic = 1};

    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;

    if (e->qp->qp_type != IBV_QPT_UC)
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
    CHECK_EQ(ibv_modify_qp(e->qp, &a, mask), 0);
}

static inline void connect_to(struct end *e, const struct address *to)
{
    to_init_at(e->qp, e->port);
    to_rtr_at(e->qp, to, e->port);
    to_rts(e, 14, 7);
}

static inline void close_two(struct end *a, struct end *b)
{
    end_close(a);
    end_close(b);
}

/* Waits for one completion. */
static inline struct ibv_wc wait_wc(struct ibv_cq *cq)
{
    double until = seconds() + HANG;
    struct ibv_wc wc;
    int n;

    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
        CHECK(seconds() < until);
    CHECK_EQ(n, 1);
    return wc;
}

/* Twice: one poll may find nothing although something is there (SOFTHCA_SEED). */
static inline void no_wc(struct ibv_cq *cq)
{
    struct ibv_wc wc;

    CHECK_EQ(ibv_poll_cq(cq, 1, &wc), 0);
    CHECK_EQ(ibv_poll_cq(cq, 1, &wc), 0);
}

static inline struct ibv_sge sge_of(const struct end *e, size_t offset, size_t length)
{
    return (struct ibv_sge){(uintptr_t)e->buf + offset, (uint32_t)length, e->mr->lkey};
}

static inline int post_recv(struct end *e, uint64_t id, size_t offset, size_t length)
{
    struct ibv_sge sge = sge_of(e, offset, length);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

    return ibv_post_recv(e->qp, &wr, &bad);
}

static inline int post(struct end *e, enum ibv_wr_opcode op, uint64_t id, size_t offset,
                       size_t length, unsigned flags, const struct address *remote, size_t at)
{
    struct ibv_sge sge = sge_of(e, offset, length);
    struct ibv_send_wr wr = {.wr_id = id,
                             .sg_list = &sge,
                             .num_sge = 1,
                             .opcode = op,
                             .send_flags = flags,
                             .imm_data = 0x12345678},
                       *bad;

    if (remote && op >= IBV_WR_ATOMIC_CMP_AND_SWP) {
        wr.wr.atomic.remote_addr = remote->addr + at;
        wr.wr.atomic.rkey = remote->rkey;
    } else if (remote) {
        wr.wr.rdma.remote_addr = remote->addr + at;
        wr.wr.rdma.rkey = remote->rkey;
    }
    return ibv_post_send(e->qp, &wr, &bad);
}

static inline int post_send(struct end *e, uint64_t id, size_t offset, size_t length,
                            unsigned flags)
{
    return post(e, IBV_WR_SEND, id, offset, length, flags | IBV_SEND_SIGNALED, NULL, 0);
}

/* After a successful message and a write a connection takes a faster path (wire/plain.c). */
static inline void traffic_between(struct end *from, struct end *to)
{
    struct address at = address_of(to);

    for (int i = 0; i < 2; i++) {
        CHECK_EQ(post_recv(to, 0, 64, 64), 0);
        CHECK_EQ(post_send(from, 0, 64, 8, 0), 0);
        CHECK_EQ(wait_wc(from->scq).status, IBV_WC_SUCCESS);
        CHECK_EQ(wait_wc(to->rcq).status, IBV_WC_SUCCESS);
        CHECK_EQ(post(from, IBV_WR_RDMA_READ, 0, 64, 8, IBV_SEND_SIGNALED, &at, 64), 0);
        CHECK_EQ(wait_wc(from->scq).status, IBV_WC_SUCCESS);
    }
}

/* Set: two ends that open_two connects have exchanged messages before the test begins. */
static bool traffic_first;

/* Two connected ends in this process. */
static inline void open_two(struct end *a, struct end *b, const struct end_options *o)
{
    struct address to_a, to_b;

    end_open(a, o);
    end_open(b, o);
    b->psn++;
    to_a = address_of(a);
    to_b = address_of(b);
    connect_to(a, &to_b);
    connect_to(b, &to_a);
    if (traffic_first) {
        traffic_between(a, b);
        traffic_between(b, a);
    }
}

static inline void fill(char *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (char)(seed * 131 + i * 7 + (i >> 8));
}

static inline bool filled(const char *p, size_t n, unsigned seed)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] != (char)(seed * 131 + i * 7 + (i >> 8)))
            return false;
    return true;
}

/* ---- two processes ---- */

static inline void exchange(int fd, const void *mine, void *theirs, size_t n)
{
    CHECK_EQ(write(fd, mine, n), n);
    CHECK_EQ(recv(fd, theirs, n, MSG_WAITALL), n);
}

static inline void meet(int fd)
{
    char out = 1, in;

    exchange(fd, &out, &in, 1);
}

/* Runs two processes that can talk over a socket; returns when both succeeded. The fork comes
 * before any device is opened, so each is a member of the fabric of its own. */
static inline void in_two(void (*left)(int fd, pid_t other), void (*right)(int fd, pid_t other))
{
    int fds[2], status;
    pid_t child;

    CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        deadline(ALARM);
        close(fds[0]);
        right(fds[1], getppid());
        exit(0);
    }
    close(fds[1]);
    left(fds[0], child);
    CHECK_EQ(waitpid(child, &status, 0), child);
    /* A test may kill its child on purpose. */
    CHECK(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL);
    close(fds[0]);
}

static inline struct address swap_addresses(int fd, const struct end *e)
{
    struct address mine = address_of(e), theirs;

    exchange(fd, &mine, &theirs, sizeof mine);
    return theirs;
}

/* Counts the fabric's names in the kernel's table of sockets. Other processes find members only by
 * these, so dead members must leave none. */
static inline int names_left(void)
{
    FILE *f = fopen("/proc/self/net/unix", "r");
    char line[512], fabric[80];
    int n = 0;

    CHECK(f != NULL);
    snprintf(fabric, sizeof fabric, ".%s~", getenv("SOFTHCA_FABRIC"));
    while (fgets(line, sizeof line, f))
        n += strstr(line, fabric) != NULL;
    fclose(f);
    return n;
}

/* ---- cases ---- */

struct test_case {
    const char *name;
    void (*run)(void);
};

/* Each case runs in a process of its own: one that breaks cannot spoil the next, and pair tests
 * fork before anything is opened. */
static inline int run_cases(const struct test_case *c, int argc, char **argv)
{
    int failed = 0;

    setenv("SOFTHCA_ONLY", "1", 1);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (; c->name; c++) {
        double start = seconds();
        int status;
        siginfo_t end;
        pid_t pid;

        if (argc > 1 && strcmp(argv[1], c->name) != 0)
            continue;
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            char fabric[64];

            setpgid(0, 0);
            deadline(ALARM);
            snprintf(fabric, sizeof fabric, "test-%d", (int)getpid());
            setenv("SOFTHCA_FABRIC", fabric, 1);
            c->run();
            exit(0);
        }
        /* What a failed case left behind; before its end is reaped, after which the number may be
         * that of another program's process group. */
        CHECK_EQ(waitid(P_PID, (id_t)pid, &end, WEXITED | WNOWAIT), 0);
        kill(-pid, SIGKILL);
        CHECK_EQ(waitpid(pid, &status, 0), pid);
        printf("%s %s (%.2f s)\n", status == 0 ? "ok  " : "FAIL", c->name, seconds() - start);
        failed += status != 0;
    }
    return failed ? 1 : 0;
}

#endif
