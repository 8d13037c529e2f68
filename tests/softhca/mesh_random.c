/* SPDX-License-Identifier: BSD-3-Clause */
/* Processes that are all connected to each other do random operations: sends, writes with and
 * without immediate, reads, atomics; half of them have private memory, half of them receive through
 * a shared queue, and UC, UD and XRC messages go beside (mesh_lanes.h). Every message is verified
 * and comes exactly once and in order, every read returns what was written, every counter adds up.
 * "plain", "faulty" (lost packets, delays, receivers that are not ready, completions in another
 * order); "packets", "packets_1" and "packets_5": all by RoCE v2 packets, of which some
 * come late, twice, or in another order, and 0, 1 and 5 % are lost; no queue pair may break.
 * "killed": many small jobs, in each of which one process is killed at a random moment, of
 * connecting in every third, and all others must see the error of a vanished peer and nothing else.
 * Environment: MESH_SECONDS, PACKET_SECONDS, CRASH_ROUNDS. The processes share a board: addresses,
 * counts, and the process that was killed. */
#include "config.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/prctl.h>

#include "mesh_lanes.h"
#include "srq.h"

#define MAX_RANKS 16
#define DEPTH     4 /* receives of each queue pair */
#define MESSAGE   2048
#define TIME      (SANITIZED ? 3 : 4) /* seconds of traffic; make check-long has a minute */
#define ROUNDS    (SANITIZED ? 5 : 40)
/* Of each kind of packets; make check-long has 15 s. */
#define PACKET_TIME 1

/* The layout of each rank's memory; each place is for one peer. */
#define AREA       ((size_t)MAX_RANKS * MESSAGE)
#define WRITTEN(p) ((size_t)(p)*MESSAGE)
#define IMM(p, n)  (AREA + ((size_t)(p)*DEPTH + (n) % DEPTH) * MESSAGE)
#define RECV(p, n) (AREA * 5 + ((size_t)(p)*DEPTH + (n) % DEPTH) * MESSAGE)
#define SOURCE(p)  (AREA * 9 + (size_t)(p)*MESSAGE)
#define RESULT(p)  (AREA * 10 + (size_t)(p)*MESSAGE)
#define COUNTER    (AREA * 11)
#define SWAPPED(p) (AREA * 11 + 64 + (size_t)(p)*8)

enum operation { SEND, WRITE, WRITE_IMM, READ, ADD, SWAP, OPERATIONS };

/* The operation in flight with a peer: one at a time. */
struct pair {
    struct ibv_qp *qp;
    bool busy, lost;
    enum operation op;
    size_t length;
    uint32_t sent, received; /* messages: sends and writes with immediate */
    uint32_t posted;         /* receives, while they are not shared */
    unsigned written;        /* seed of the contents at the peer, */
    size_t written_length;   /* and how much */
    uint64_t added, swapped, counter;
};

struct board {
    struct address at[MAX_RANKS][MAX_RANKS];
    _Atomic int barrier[MAX_RANKS], victim;
    _Atomic bool stop;
    uint32_t sent[MAX_RANKS][MAX_RANKS];
    uint64_t added[MAX_RANKS][MAX_RANKS];
    _Atomic uint32_t taken[MAX_RANKS][MAX_RANKS]; /* [to][from]: messages */
    uint64_t operations[MAX_RANKS];
    struct lanes_board lanes;
};

static struct board *board;
static int ranks, me, domain;
static struct end e;
static struct pair pairs[MAX_RANKS];
static uint64_t random_state;

static unsigned draw(unsigned below)
{
    random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (unsigned)(random_state >> 33) % below;
}

static struct end to_peer(int p)
{
    struct end one = e;

    one.qp = pairs[p].qp;
    return one;
}

static bool killed(int p)
{
    return board->victim == p;
}

/* Also to be called while waiting: a process that waits keeps answering. */
static void serve(void);

static bool all_at(int number)
{
    for (int p = 0; p < ranks; p++)
        if (board->barrier[p] < number && !killed(p))
            return false;
    return true;
}

static void barrier(int number)
{
    double until = seconds() + HANG;

    board->barrier[me] = number;
    while (!all_at(number)) {
        CHECK(seconds() < until);
        serve();
    }
}

static long setting(const char *name, long otherwise)
{
    const char *value = getenv(name);

    return value ? atol(value) : otherwise;
}

/* ---- receiving ---- */

static unsigned seed_of(int from, int to, uint32_t number)
{
    return (unsigned)(from * 7919 + to * 104729) + number;
}

static bool shares(int rank)
{
    return rank / 2 % 2;
}

static void post_shared(uint64_t slot)
{
    CHECK_EQ(post_srq(&e, slot, RECV(0, 0) + slot * MESSAGE, MESSAGE), 0);
}

static void post_next(int p)
{
    struct end one = to_peer(p);
    uint32_t n = pairs[p].posted++;

    CHECK_EQ(post_recv(&one, (uint64_t)p, RECV(p, n), MESSAGE), 0);
}

/* Of a shared receive only its queue pair says whose it was. */
static int receiver(const struct ibv_wc *wc)
{
    if (!e.srq)
        return (int)wc->wr_id;
    for (int p = 0; p < ranks; p++)
        if (pairs[p].qp->qp_num == wc->qp_num)
            return p;
    CHECK(false);
    return -1;
}

static void take_message(const struct ibv_wc *wc)
{
    int p = receiver(wc);
    struct pair *q = &pairs[p];
    uint32_t n = q->received;
    size_t where = wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM ? IMM(p, n)
                   : e.srq                                 ? RECV(0, 0) + wc->wr_id * MESSAGE
                                                           : RECV(p, n);

    CHECK_EQ(wc->qp_num, q->qp->qp_num);
    if (wc->status == IBV_WC_WR_FLUSH_ERR && killed(p))
        return;
    CHECK_EQ(wc->status, IBV_WC_SUCCESS);
    if (wc->opcode == IBV_WC_RECV_RDMA_WITH_IMM)
        CHECK_EQ(wc->imm_data, 0x12345678);
    CHECK(filled(e.buf + where, wc->byte_len, seed_of(p, me, n)));
    if (e.srq)
        post_shared(wc->wr_id);
    else
        post_next(p);
    board->taken[me][p] = ++q->received;
}

/* ---- sending ---- */

static uint64_t result(int p)
{
    uint64_t v;

    memcpy(&v, e.buf + RESULT(p), sizeof v);
    return v;
}

static void check_result(int p)
{
    struct pair *q = &pairs[p];

    switch (q->op) {
    case READ:
        CHECK(filled(e.buf + RESULT(p), q->written_length, q->written));
        break;
    case ADD: /* of all, so it never goes back */
        CHECK(result(p) >= q->counter);
        q->counter = result(p) + 1;
        q->added++;
        break;
    case SWAP: /* mine alone */
        CHECK_EQ(result(p), q->swapped);
        q->swapped++;
        break;
    default:
        break;
    }
}

static void take_result(const struct ibv_wc *wc)
{
    int p = (int)wc->wr_id;
    struct pair *q = &pairs[p];

    CHECK_EQ(wc->qp_num, q->qp->qp_num);
    CHECK(q->busy);
    q->busy = false;
    if (wc->status != IBV_WC_SUCCESS && killed(p)) {
        CHECK(wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_WR_FLUSH_ERR);
        q->lost = true;
        return;
    }
    CHECK_EQ(wc->status, IBV_WC_SUCCESS);
    board->operations[me]++;
    check_result(p);
}

static void post_atomic(int p)
{
    struct pair *q = &pairs[p];
    bool add = q->op == ADD;
    struct ibv_sge sge = sge_of(&e, RESULT(p), 8);
    struct ibv_send_wr *bad,
        wr = {
            .wr_id = (uint64_t)p,
            .sg_list = &sge,
            .num_sge = 1,
            .opcode = add ? IBV_WR_ATOMIC_FETCH_AND_ADD : IBV_WR_ATOMIC_CMP_AND_SWP,
            .send_flags = IBV_SEND_SIGNALED,
            .wr.atomic = {.remote_addr = board->at[p][me].addr + (add ? COUNTER : SWAPPED(me)),
                          .rkey = board->at[p][me].rkey,
                          .compare_add = add ? 1 : q->swapped,
                          .swap = q->swapped + 1},
        };

    CHECK_EQ(ibv_post_send(q->qp, &wr, &bad), 0);
}

static void post_data(int p, enum ibv_wr_opcode opcode, size_t at)
{
    struct pair *q = &pairs[p];
    struct end one = to_peer(p);
    unsigned seed = q->op == WRITE ? draw(1 << 30) : seed_of(me, p, q->sent);
    unsigned flags = q->length <= 200 && draw(2) ? IBV_SEND_INLINE : 0;

    fill(e.buf + SOURCE(p), q->length, seed);
    if (q->op == WRITE) {
        q->written = seed;
        q->written_length = q->length;
    } else {
        q->sent++;
    }
    CHECK_EQ(post(&one, opcode, (uint64_t)p, SOURCE(p), q->length, IBV_SEND_SIGNALED | flags,
                  &board->at[p][me], at),
             0);
}

static void begin(int p)
{
    struct pair *q = &pairs[p];
    struct end one = to_peer(p);

    q->op = draw(OPERATIONS);
    q->length = draw(4) ? 1 + draw(128) : 1 + draw(MESSAGE);
    /* With a shared queue one sender may take the receives of all; and a write with immediate data
     * of several packets writes before it needs its receive. */
    if ((q->op == READ && q->written_length == 0) ||
        ((shares(p) || lanes_of_packets()) && q->sent - board->taken[p][me] >= DEPTH))
        q->op = WRITE;
    q->busy = true;
    switch (q->op) {
    case SEND:
        post_data(p, IBV_WR_SEND, 0);
        break;
    case WRITE:
        post_data(p, IBV_WR_RDMA_WRITE, WRITTEN(me));
        break;
    case WRITE_IMM:
        post_data(p, IBV_WR_RDMA_WRITE_WITH_IMM, IMM(me, q->sent));
        break;
    case READ:
        CHECK_EQ(post(&one, IBV_WR_RDMA_READ, (uint64_t)p, RESULT(p), q->written_length,
                      IBV_SEND_SIGNALED, &board->at[p][me], WRITTEN(me)),
                 0);
        break;
    default:
        post_atomic(p);
    }
}

/* ---- a rank ---- */

static void serve(void)
{
    struct ibv_wc wc[8];
    int n = ibv_poll_cq(e.rcq, 8, wc), m;

    CHECK(n >= 0);
    for (int i = 0; i < n; i++)
        take_message(&wc[i]);
    m = ibv_poll_cq(e.scq, 8, wc);
    CHECK(m >= 0);
    for (int i = 0; i < m; i++)
        take_result(&wc[i]);
    lanes_serve(board->victim);
    if (n + m == 0)
        sched_yield();
}

static void connect_all(void)
{
    for (int p = 0; p < ranks; p++) {
        struct end one = to_peer(p);

        to_init(one.qp);
        to_rtr(one.qp, &board->at[p][me]);
        to_rts(&one, lanes_timeout(), 7);
        for (int i = 0; i < DEPTH && !e.srq; i++)
            post_next(p);
    }
    lanes_connect();
}

static void open_rank(void)
{
    random_state = (uint64_t)getpid() * 2654435761u + (uint64_t)(seconds() * 1e6);
    end_open(&e, &(struct end_options){.no_qp = true, .private = me % 2});
    memset(e.buf, 0, BUF_BYTES);
    e.psn = 7;
    e.srq = shares(me) ? new_srq(&e, (uint32_t)(ranks * DEPTH)) : NULL;
    for (int i = 0; i < ranks * DEPTH && e.srq; i++)
        post_shared((uint64_t)i);
    for (int p = 0; p < ranks; p++) {
        struct end one = e;

        end_qp(&one, &(struct end_options){0});
        pairs[p].qp = one.qp;
        board->at[me][p] = address_of(&one);
    }
    lanes_open(&board->lanes, ranks, me, domain);
}

/* Each rank has to notice a killed peer. */
static bool over(void)
{
    return board->stop && (board->victim < 0 || pairs[board->victim].lost);
}

static void traffic(void)
{
    double until = seconds() + HANG + (double)setting("MESH_SECONDS", TIME);

    while (!over()) {
        int p = (int)draw((unsigned)ranks);

        CHECK(seconds() < until);
        if (!pairs[p].busy && !pairs[p].lost)
            begin(p);
        if (draw(2))
            lanes_begin((enum lane_kind)draw(LANE_KINDS), p, draw(4) ? draw(128) : draw(MESSAGE));
        serve();
    }
}

static bool settled(void)
{
    for (int p = 0; p < ranks; p++)
        if (pairs[p].busy)
            return false;
    return lanes_settled();
}

static bool all_received(void)
{
    for (int p = 0; p < ranks; p++)
        if (!killed(p) && pairs[p].received != board->sent[p][me])
            return false;
    return lanes_all_came(board->victim);
}

static void wait_for(bool (*condition)(void))
{
    double until = seconds() + HANG;

    while (!condition()) {
        CHECK(seconds() < until);
        serve();
    }
}

static void check_counter(void)
{
    uint64_t total = 0;

    for (int p = 0; p < ranks; p++)
        total += board->added[p][me];
    CHECK_EQ(__atomic_load_n((uint64_t *)(void *)(e.buf + COUNTER), __ATOMIC_ACQUIRE), total);
}

static void check_states(void)
{
    for (int p = 0; p < ranks; p++) {
        struct ibv_qp_init_attr init;
        struct ibv_qp_attr a;

        CHECK_EQ(ibv_query_qp(pairs[p].qp, &a, IBV_QP_STATE, &init), 0);
        if (!killed(p))
            CHECK_EQ(a.qp_state, IBV_QPS_RTS);
    }
}

static void rank_main(void)
{
    open_rank();
    barrier(1);
    connect_all();
    barrier(2);
    traffic();
    wait_for(settled);
    for (int p = 0; p < ranks; p++) {
        board->sent[me][p] = pairs[p].sent;
        board->added[me][p] = pairs[p].added;
    }
    lanes_publish();
    barrier(3);
    wait_for(all_received);
    if (board->victim < 0)
        check_counter();
    check_states();
    barrier(4);
    for (int p = 0; p < ranks; p++)
        CHECK_EQ(ibv_destroy_qp(pairs[p].qp), 0);
    if (e.srq)
        CHECK_EQ(ibv_destroy_srq(e.srq), 0);
    lanes_close();
    end_close(&e);
}

/* ---- jobs ---- */

static void start_ranks(int number, pid_t *pid)
{
    char *memory =
        mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(memory != MAP_FAILED);
    board = (void *)memory;
    board->victim = -1;
    ranks = number;
    for (me = 0; me < ranks; me++) {
        pid[me] = fork();
        CHECK(pid[me] >= 0);
        if (pid[me] == 0) {
            deadline(ALARM + (int)setting("MESH_SECONDS", TIME));
            CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
            rank_main();
            exit(0);
        }
    }
}

static void end_ranks(const pid_t *pid)
{
    uint64_t total = 0, came = 0;
    int status;

    for (int i = 0; i < ranks; i++) {
        if (pid[i] == 0)
            continue;
        CHECK_EQ(waitpid(pid[i], &status, 0), pid[i]);
        CHECK_EQ(status, 0);
    }
    for (int i = 0; i < ranks; i++)
        total += board->operations[i];
    for (int i = 0; i < ranks; i++)
        came += board->lanes.came[i];
    CHECK(total > 0);
    if (board->victim < 0)
        printf("     %llu operations and %llu messages by UC, UD and XRC of %d processes, all "
               "verified\n",
               (unsigned long long)total, (unsigned long long)came, ranks);
    munmap(board, sizeof *board);
}

static void await_all_at(int number)
{
    double until = seconds() + HANG;

    while (!all_at(number)) {
        CHECK(seconds() < until);
        usleep(1000);
    }
}

static void run_for(unsigned time)
{
    pid_t pid[MAX_RANKS];

    deadline((int)time + 2 * ALARM);
    start_ranks(MAX_RANKS, pid);
    await_all_at(2);
    sleep(time);
    board->stop = true;
    end_ranks(pid);
}

static void plain(void)
{
    run_for((unsigned)setting("MESH_SECONDS", TIME));
}

static void faulty(void)
{
    setenv("SOFTHCA_FAULT",
           "drop:p=0.005;rnr:ms=1,p=0.005;delay:us=10-300,p=0.02;reorder:polls=0-16,p=0.1", 1);
    run_for((unsigned)setting("MESH_SECONDS", TIME));
}

/* ---- packets ---- */

static void by_packets(const char *rules)
{
    setenv("SOFTHCA_WIRE", "udp", 1);
    setenv("SOFTHCA_FAULT", rules, 1);
    run_for((unsigned)setting("PACKET_SECONDS", PACKET_TIME));
}

static void packets(void)
{
    by_packets("reorder:us=20-300,p=0.02;dup:p=0.01");
}

static void packets_1(void)
{
    by_packets("drop:p=0.01;reorder:us=20-300,p=0.02;dup:p=0.01");
}

static void packets_5(void)
{
    by_packets("drop:p=0.05;reorder:polls=0-16,p=0.05;delay:us=10-300,p=0.02");
}

/* ---- killed ---- */

/* After the barrier of that number: of 1 while all connect, of 2 while all send. */
static void kill_one(pid_t *pid, int after)
{
    int status, victim = (int)draw((unsigned)ranks);

    await_all_at(after);
    usleep(draw(6000));
    /* Recorded before the kill: the error that follows is expected. */
    board->victim = victim;
    CHECK_EQ(kill(pid[victim], SIGKILL), 0);
    CHECK_EQ(waitpid(pid[victim], &status, 0), pid[victim]);
    pid[victim] = 0;
    board->stop = true;
}

static void some_killed(void)
{
    int rounds = (int)setting("CRASH_ROUNDS", ROUNDS);
    pid_t pid[MAX_RANKS];
    double slowest = 0;

    deadline(ALARM + rounds * 3);
    random_state = (uint64_t)getpid() * 40503u;
    for (int i = 0; i < rounds; i++) {
        double start;

        start_ranks(3 + i % 2, pid);
        kill_one(pid, i % 3 == 2 ? 1 : 2);
        if (i == 0)
            CHECK(names_left() > 0); /* proves that the check below counts the right names */
        start = seconds();
        end_ranks(pid);
        slowest = seconds() - start > slowest ? seconds() - start : slowest;
    }
    CHECK_EQ(names_left(), 0);
    printf("     %d jobs lost a process each; the others ended within %.2f s\n", rounds, slowest);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {{"plain", plain},
                                             {"faulty", faulty},
                                             {"packets", packets},
                                             {"packets_1", packets_1},
                                             {"packets_5", packets_5},
                                             {"killed", some_killed},
                                             {NULL, NULL}};

    domain = memfd_create("domain", MFD_CLOEXEC);
    CHECK(domain >= 0);
    return run_cases(cases, argc, argv);
}
