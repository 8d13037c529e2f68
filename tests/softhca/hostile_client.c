/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs with unusual behaviour: they free memory before they poll, fork at any moment, run out
 * of descriptors, have huge thread-local variables, limit the size of files, or keep requests where
 * a peer can break them. Results must be as with hardware. */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "srq.h"

/* The stack of the library's helper thread must have room for this as well. */
static _Thread_local volatile char large[1 << 20];

/* ---- memory that is freed before the completion is polled ---- */

#define SHORT 100 /* a message that waits in the segment, since private memory is not mapped */

static bool shared;
static bool moves; /* the region is changed instead of ended */

/* A second buffer, which is given back in the middle. */
static void lend(struct end *e, struct end *other)
{
    *other = *e;
    end_buffer(other, true);
    other->mr = ibv_reg_mr(e->pd, other->buf, BUF_BYTES, IBV_ACCESS_LOCAL_WRITE);
    CHECK(other->mr != NULL);
}

static void take_back(struct end *e, struct end *other)
{
    if (moves)
        CHECK_EQ(
            ibv_rereg_mr(other->mr, IBV_REREG_MR_CHANGE_TRANSLATION, NULL, e->buf, BUF_BYTES, 0),
            0);
    else
        CHECK_EQ(ibv_dereg_mr(other->mr), 0);
    /* As with hardware, the message is there already. */
    CHECK(filled(other->buf, SHORT, 3));
    munmap(other->buf, BUF_BYTES);
}

static void receive_and_forget(int fd, pid_t other)
{
    struct address peer;
    struct end e, lent;
    struct ibv_wc wc;

    (void)other;
    end_open(&e, &(struct end_options){.private = true, .no_qp = true});
    e.srq = shared ? new_srq(&e, 4) : NULL;
    end_qp(&e, &(struct end_options){0});
    lend(&e, &lent);
    peer = swap_addresses(fd, &e);
    connect_to(&e, &peer);
    CHECK_EQ(shared ? post_srq(&lent, 7, 0, SHORT) : post_recv(&lent, 7, 0, SHORT), 0);
    meet(fd);
    meet(fd); /* it was sent */
    take_back(&e, &lent);
    wc = wait_wc(e.rcq);
    CHECK_EQ(wc.status, IBV_WC_SUCCESS);
    CHECK_EQ(wc.byte_len, SHORT);
    meet(fd);
}

static void send_short(int fd, pid_t other)
{
    struct address peer;
    struct end e;

    (void)other;
    end_open(&e, NULL);
    peer = swap_addresses(fd, &e);
    connect_to(&e, &peer);
    fill(e.buf, SHORT, 3);
    meet(fd);
    CHECK_EQ(post_send(&e, 1, 0, SHORT, 0), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    meet(fd);
    meet(fd);
}

static void gone_memory(void)
{
    in_two(receive_and_forget, send_short);
}

static void moved_memory(void)
{
    moves = true;
    in_two(receive_and_forget, send_short);
}

static void gone_memory_of_shared(void)
{
    shared = true;
    in_two(receive_and_forget, send_short);
}

/* ---- queue pairs that are destroyed with completions ---- */

/* Completions of a destroyed queue pair that were never polled do not fill the CQ. */
static void destroyed_ones_free_their_space(void)
{
    struct end a, b;

    end_open(&a, &(struct end_options){.no_qp = true});
    end_open(&b, &(struct end_options){.no_qp = true, .cqe = 4});
    for (int round = 0; round < 5; round++) {
        end_qp(&a, &(struct end_options){0});
        end_qp(&b, &(struct end_options){.recv_wr = 8});
        a.psn = b.psn = round;
        connect_pair(&a, &b);
        for (int i = 0; i < 3; i++) {
            CHECK_EQ(post_recv(&b, 1, 0, 64), 0);
            CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
            CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
        }
        CHECK_EQ(ibv_destroy_qp(a.qp), 0);
        CHECK_EQ(ibv_destroy_qp(b.qp), 0);
    }
    a.qp = b.qp = NULL;
    close_two(&a, &b);
}

/* ---- requests that wait in SQD ---- */

static void modify_to(struct end *e, enum ibv_qp_state state)
{
    struct ibv_qp_attr a = {.qp_state = state};

    CHECK_EQ(ibv_modify_qp(e->qp, &a, IBV_QP_STATE), 0);
}

/* The peer breaks the queue pair: waiting requests are flushed, though the program does nothing
 * with it. */
static void flushed_in_sqd(void)
{
    struct address to_a;
    struct ibv_wc wc;
    struct end a, b;

    open_two(&a, &b, NULL);
    modify_to(&a, IBV_QPS_SQD);
    CHECK_EQ(post_send(&a, 5, 0, 64, 0), 0);
    no_wc(a.scq);
    to_a = address_of(&a);
    to_a.rkey ^= 1;
    CHECK_EQ(post(&b, IBV_WR_RDMA_WRITE, 1, 0, 8, IBV_SEND_SIGNALED, &to_a, 0), 0);
    CHECK_EQ(wait_wc(b.scq).status, IBV_WC_REM_ACCESS_ERR);
    wc = wait_wc(a.scq);
    CHECK_EQ(wc.status, IBV_WC_WR_FLUSH_ERR);
    CHECK_EQ(wc.wr_id, 5);
    close_two(&a, &b);
}

/* ---- events of what is gone ---- */

static bool readable(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    return poll(&p, 1, 0) == 1;
}

static void make_two_events(struct end *a, struct end *b)
{
    struct address to_b = address_of(b);

    to_b.rkey ^= 1;
    CHECK_EQ(ibv_req_notify_cq(b->rcq, 0), 0);
    CHECK_EQ(post_recv(b, 1, 0, 64), 0);
    CHECK_EQ(post_send(a, 1, 0, 64, 0), 0);
    CHECK_EQ(wait_wc(a->scq).status, IBV_WC_SUCCESS);
    CHECK_EQ(post(a, IBV_WR_RDMA_WRITE, 1, 0, 8, IBV_SEND_SIGNALED, &to_b, 0), 0);
    CHECK_EQ(wait_wc(a->scq).status, IBV_WC_REM_ACCESS_ERR);
    CHECK(readable(b->ctx->async_fd) && readable(b->channel->fd));
}

/* An event loop whose descriptor is readable must find an event: events of destroyed objects vanish
 * with them, */
static void events_go_with_objects(void)
{
    struct end a, b;

    open_two(&a, &b, &(struct end_options){.channel = true});
    make_two_events(&a, &b);
    CHECK_EQ(ibv_destroy_qp(b.qp), 0);
    CHECK_EQ(ibv_destroy_cq(b.rcq), 0);
    CHECK(!readable(b.ctx->async_fd) && !readable(b.channel->fd));
}

/* and those of others stay. */
static void events_of_others_stay(void)
{
    struct ibv_async_event event;
    struct ibv_cq *cq, *other;
    struct end a, b, c;
    void *context;

    open_two(&a, &b, &(struct end_options){.channel = true});
    /* Another queue pair and another CQ, with the same descriptors. */
    c = b;
    other = c.rcq = ibv_create_cq(b.ctx, 16, &c, b.channel, 0);
    end_qp(&c, &(struct end_options){0});
    make_two_events(&a, &b);
    CHECK_EQ(ibv_destroy_qp(a.qp), 0);
    end_qp(&a, &(struct end_options){0});
    connect_pair(&a, &c);
    make_two_events(&a, &c);
    CHECK_EQ(ibv_destroy_qp(b.qp), 0);
    CHECK_EQ(ibv_destroy_cq(b.rcq), 0);
    CHECK_EQ(ibv_get_async_event(c.ctx, &event), 0);
    CHECK(event.element.qp == c.qp);
    ibv_ack_async_event(&event);
    CHECK_EQ(ibv_get_cq_event(c.channel, &cq, &context), 0);
    CHECK(cq == other);
    ibv_ack_cq_events(cq, 1);
    CHECK(!readable(c.ctx->async_fd) && !readable(c.channel->fd));
    close_two(&a, &c);
}

/* ---- descriptors run out ---- */

#define MUCH ((size_t)128 << 20)

static void write_much(int fd, pid_t other)
{
    struct ibv_sge sge = {.length = MUCH};
    struct address peer;
    struct end e;
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .send_flags = IBV_SEND_SIGNALED}, *bad;
    struct ibv_mr *mr;

    (void)other;
    end_open(&e, NULL);
    peer = swap_addresses(fd, &e);
    connect_to(&e, &peer);
    sge.addr = (uintptr_t)malloc(MUCH);
    memset((void *)(uintptr_t)sge.addr, 1, MUCH);
    mr = ibv_reg_mr(e.pd, (void *)(uintptr_t)sge.addr, MUCH, 0);
    sge.lkey = mr->lkey;
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.wr.rdma.remote_addr = peer.addr;
    wr.wr.rdma.rkey = peer.rkey;
    meet(fd);
    CHECK_EQ(ibv_post_send(e.qp, &wr, &bad), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    meet(fd);
}

/* Lets the writer go on after a while. */
static void *wake(void *arg)
{
    usleep(600000);
    kill(*(pid_t *)arg, SIGCONT);
    return NULL;
}

static void open_much(struct end *e)
{
    end_open(e, NULL);
    CHECK_EQ(ibv_dereg_mr(e->mr), 0);
    munmap(e->buf, BUF_BYTES);
    CHECK_EQ(ftruncate(e->fd, MUCH), 0);
    e->buf = mmap(NULL, MUCH, PROT_READ | PROT_WRITE, MAP_SHARED, e->fd, 0);
    CHECK(e->buf != MAP_FAILED);
    memset(e->buf, 0, MUCH);
    e->mr = ibv_reg_mr(e->pd, e->buf, MUCH, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    CHECK(e->mr != NULL);
}

/* A member that cannot read the list of processes must not take the one inside for dead, however
 * long it stays: when a queue pair is in ERR, nothing more is written. */
static void short_of_descriptors(int fd, pid_t other)
{
    struct rlimit none = {0, 0};
    struct address peer;
    pthread_t waker;
    struct end e;

    open_much(&e);
    peer = swap_addresses(fd, &e);
    connect_to(&e, &peer);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    meet(fd);
    /* Not the first byte: some memcpy write it at the end. A process that yields may run again too
     * late. */
    while (((volatile char *)e.buf)[MUCH / 4] == 0)
        continue;
    CHECK_EQ(kill(other, SIGSTOP), 0);
    CHECK_EQ(((volatile char *)e.buf)[MUCH - 1], 0);
    CHECK_EQ(pthread_create(&waker, NULL, wake, &other), 0);
    modify_to(&e, IBV_QPS_ERR);
    CHECK_EQ(((volatile char *)e.buf)[MUCH - 1], 1);
    pthread_join(waker, NULL);
    meet(fd);
}

static void no_descriptors(void)
{
    in_two(short_of_descriptors, write_much);
}

/* A process that can't look a member up reports a local error, not that the member is gone. */
static void look_up_without_descriptors(int fd, pid_t other)
{
    struct rlimit none = {0, 0};
    struct address peer;
    struct end e;

    (void)other;
    end_open(&e, NULL);
    meet(fd); /* the other one joins now: what was read at the start does not have it */
    peer = swap_addresses(fd, &e);
    CHECK_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
    connect_to(&e, &peer);
    CHECK_EQ(post(&e, IBV_WR_RDMA_WRITE, 1, 0, 8, IBV_SEND_SIGNALED, &peer, 0), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_LOC_QP_OP_ERR);
    meet(fd);
}

static void join_late(int fd, pid_t other)
{
    struct address peer;
    struct end e;

    (void)other;
    meet(fd);
    end_open(&e, NULL);
    peer = swap_addresses(fd, &e);
    connect_to(&e, &peer);
    meet(fd);
}

static void no_descriptors_to_look_up(void)
{
    in_two(look_up_without_descriptors, join_late);
}

/* ---- another program in the same process ---- */

static void become_another(int fd, pid_t other)
{
    struct address peer;
    struct end e;

    (void)other;
    end_open(&e, &(struct end_options){.private = true});
    peer = swap_addresses(fd, &e);
    connect_to(&e, &peer);
    meet(fd);
    meet(fd);
    execlp("sleep", "sleep", "1", NULL);
}

/* Nothing may be written to addresses that another program uses now. */
static void write_to_changed(int fd, pid_t other)
{
    enum ibv_wc_status status = IBV_WC_SUCCESS;
    double until = seconds() + 0.9;
    struct address peer;
    struct end e;

    (void)other;
    end_open(&e, NULL);
    peer = swap_addresses(fd, &e);
    connect_to(&e, &peer);
    meet(fd);
    CHECK_EQ(post(&e, IBV_WR_RDMA_WRITE, 1, 0, 8, IBV_SEND_SIGNALED, &peer, 0), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    meet(fd);
    while (status == IBV_WC_SUCCESS) {
        CHECK(seconds() < until);
        usleep(50000);
        CHECK_EQ(post(&e, IBV_WR_RDMA_WRITE, 1, 0, 0, IBV_SEND_SIGNALED, &peer, 0), 0);
        status = wait_wc(e.scq).status;
    }
    CHECK_EQ(status, IBV_WC_RETRY_EXC_ERR);
}

static void exec_is_death(void)
{
    in_two(write_to_changed, become_another);
}

/* ---- fork at any moment ---- */

static _Atomic bool stop;

/* Each message to a missing process reads the registry. */
static void *keep_looking(void *arg)
{
    struct end *e = arg;

    while (!stop) {
        CHECK_EQ(post(e, IBV_WR_SEND, 1, 0, 8, IBV_SEND_SIGNALED, NULL, 0), 0);
        CHECK_EQ(wait_wc(e->scq).status, IBV_WC_SUCCESS);
    }
    return NULL;
}

static void fork_while_busy(void)
{
    struct end e;
    struct address nobody;
    pthread_t thread;
    int status;

    end_open(&e, &(struct end_options){.type = IBV_QPT_UC});
    nobody = address_of(&e);
    nobody.qpn ^= 1u << 14; /* the slot of another process */
    connect_to(&e, &nobody);
    CHECK_EQ(pthread_create(&thread, NULL, keep_looking, &e), 0);
    for (int i = 0; i < 40; i++) {
        pid_t child = fork();

        if (child == 0) {
            deadline(HANG);
            open_softhca(0);
            _exit(0);
        }
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK_EQ(status, 0);
    }
    stop = true;
    pthread_join(thread, NULL);
    end_close(&e);
}

/* The counters of a child are its own. The file is one in memory: this process, too, writes its
 * counters when it ends, and no process would be left to remove the file. */
static void child_counts_anew(void)
{
    char file[64], text[1024] = {0};
    int fd = memfd_create("stats", MFD_CLOEXEC), status;
    struct end a, b;

    CHECK(fd >= 0);
    snprintf(file, sizeof file, "/proc/%d/fd/%d", (int)getpid(), fd);
    setenv("SOFTHCA_STATS", file, 1);
    open_two(&a, &b, NULL);
    CHECK_EQ(post_recv(&b, 1, 0, 64), 0);
    CHECK_EQ(post_send(&a, 1, 0, 64, 0), 0);
    if (fork() == 0) {
        open_softhca(0);
        exit(0);
    }
    wait(&status);
    CHECK_EQ(status, 0);
    CHECK(read(fd, text, sizeof text - 1) > 0);
    CHECK(strstr(text, " sends 0 ") != NULL);
}

/* ---- clients that come and go ---- */

#define CLIENTS 12

static int descriptors(void)
{
    int n = 0;

    for (int fd = 0; fd < 1024; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

static void client(int fd)
{
    struct address peer;
    struct end e;

    deadline(5);
    end_open(&e, NULL);
    peer = swap_addresses(fd, &e);
    connect_to(&e, &peer);
    meet(fd);
    pause();
}

/* One message to a client, which then dies; until that is known. */
static void serve(struct end *e, int fd, pid_t pid)
{
    enum ibv_wc_status status = IBV_WC_SUCCESS;
    struct address peer;

    end_qp(e, &(struct end_options){0});
    peer = swap_addresses(fd, e);
    connect_to(e, &peer);
    meet(fd);
    for (bool alive = true; status == IBV_WC_SUCCESS; alive = false) {
        CHECK_EQ(post(e, IBV_WR_RDMA_WRITE, 1, 0, 8, IBV_SEND_SIGNALED, &peer, 0), 0);
        status = wait_wc(e->scq).status;
        if (alive)
            CHECK_EQ(kill(pid, SIGKILL), 0);
    }
    CHECK_EQ(status, IBV_WC_RETRY_EXC_ERR);
    CHECK_EQ(waitpid(pid, NULL, 0), pid);
    CHECK_EQ(ibv_destroy_qp(e->qp), 0);
}

/* A server keeps no resources of clients that are gone, except perhaps of the last. */
static void clients_leave_nothing(void)
{
    int fds[2], first = 0, last = 0;
    struct end e;

    end_open(&e, &(struct end_options){.no_qp = true});
    for (int i = 0; i < CLIENTS; i++) {
        pid_t pid;

        CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
        pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            close(fds[0]);
            client(fds[1]);
        }
        close(fds[1]);
        serve(&e, fds[0], pid);
        close(fds[0]);
        last = descriptors();
        first = i == 0 ? last : first;
    }
    CHECK_EQ(last, first);
}

/* ---- limits ---- */

static void small_files(void)
{
    struct rlimit small = {1 << 20, 1 << 20};
    struct ibv_device **list;

    CHECK_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    list = ibv_get_device_list(NULL);
    CHECK(list != NULL);
    CHECK(ibv_open_device(list[0]) == NULL);
    CHECK_EQ(errno, EFBIG);
    ibv_free_device_list(list);
}

/* A region in a file of huge pages need not begin with one; atomics show that it is mapped. */
static void register_in_huge(int fd, pid_t other)
{
    struct address mine, peer;
    struct end e;
    size_t bytes = (size_t)4 << 20;
    int file = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
    char *p;
    struct ibv_mr *mr;

    (void)other;
    CHECK(file >= 0 && ftruncate(file, (off_t)bytes) == 0);
    p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(p != MAP_FAILED);
    end_open(&e, NULL);
    mr = ibv_reg_mr(e.pd, p + 8192, 4096, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
    CHECK(mr != NULL);
    mine = address_of(&e);
    mine.addr = (uintptr_t)mr->addr;
    mine.rkey = mr->rkey;
    exchange(fd, &mine, &peer, sizeof mine);
    connect_to(&e, &peer);
    meet(fd);
    meet(fd);
}

static void add_in_huge(int fd, pid_t other)
{
    struct address peer;
    struct end e;

    (void)other;
    end_open(&e, NULL);
    peer = swap_addresses(fd, &e);
    connect_to(&e, &peer);
    meet(fd);
    CHECK_EQ(post(&e, IBV_WR_ATOMIC_FETCH_AND_ADD, 1, 0, 8, IBV_SEND_SIGNALED, &peer, 0), 0);
    CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
    meet(fd);
}

static void huge_pages(void)
{
    size_t bytes = (size_t)4 << 20;
    int file = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);

    if (file < 0 || ftruncate(file, (off_t)bytes) != 0 ||
        mmap(NULL, bytes, PROT_READ, MAP_SHARED, file, 0) == MAP_FAILED) {
        printf("skip huge_pages: this machine has none\n");
        return;
    }
    close(file);
    in_two(register_in_huge, add_in_huge);
}

/* The helper thread runs: without it no peer could be watched, so no communication would be
 * possible. */
static void large_thread_locals(void)
{
    large[sizeof large - 1] = 1;
    in_two(receive_and_forget, send_short);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"gone_memory", gone_memory},
        {"moved_memory", moved_memory},
        {"gone_memory_of_shared", gone_memory_of_shared},
        {"destroyed_ones_free_their_space", destroyed_ones_free_their_space},
        {"flushed_in_sqd", flushed_in_sqd},
        {"events_go_with_objects", events_go_with_objects},
        {"events_of_others_stay", events_of_others_stay},
        {"no_descriptors", no_descriptors},
        {"no_descriptors_to_look_up", no_descriptors_to_look_up},
        {"exec_is_death", exec_is_death},
        {"fork_while_busy", fork_while_busy},
        {"child_counts_anew", child_counts_anew},
        {"clients_leave_nothing", clients_leave_nothing},
        {"small_files", small_files},
        {"huge_pages", huge_pages},
        {"large_thread_locals", large_thread_locals},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
