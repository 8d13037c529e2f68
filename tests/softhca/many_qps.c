/* SPDX-License-Identifier: BSD-3-Clause */
/* As many queue pairs as a large job on one host has: 64 processes (argument: another number) with
 * four queue pairs from each to each, 16 384 in all. Each is used, in bounded time and memory. The
 * addresses are exchanged in memory that all share. */
#include "config.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/resource.h>

#include "harness.h"

#define MAX_RANKS 64
#define LANES     4
#define MESSAGE   16
#define TIME      90                    /* seconds; 1 on an idle machine of two CPUs */
#define MEMORY    (128 * INT64_C(1024)) /* KiB resident in one process */

struct message {
    int32_t from, lane;
    int64_t twice;
};
_Static_assert(sizeof(struct message) == MESSAGE, "no padding is sent");

static struct address (*board)[MAX_RANKS][LANES]; /* board[owner][peer][lane] */
static _Atomic int *arrived;
static int ranks;

static void barrier(int number)
{
    double until = seconds() + TIME;

    ++*arrived;
    while (*arrived < ranks * number) {
        CHECK(seconds() < until);
        sched_yield();
    }
}

/* An end that is the same but for its queue pair. */
static struct end with_qp(const struct end *e, struct ibv_qp *qp)
{
    struct end one = *e;

    one.qp = qp;
    return one;
}

static size_t place(int peer, int lane)
{
    return (size_t)(peer * LANES + lane) * MESSAGE;
}

static void open_lanes(struct end *e, int me, struct ibv_qp *qp[][LANES])
{
    end_open(e, &(struct end_options){.cqe = 1024, .no_qp = true});
    e->psn = 7;
    for (int p = 0; p < ranks; p++)
        for (int l = 0; l < LANES; l++) {
            struct end one = with_qp(e, NULL);

            end_qp(&one, &(struct end_options){.send_wr = 4, .recv_wr = 4});
            qp[p][l] = one.qp;
            board[me][p][l] = address_of(&one);
        }
}

static void connect_lanes(struct end *e, int me, struct ibv_qp *qp[][LANES])
{
    for (int p = 0; p < ranks; p++)
        for (int l = 0; l < LANES; l++) {
            struct end one = with_qp(e, qp[p][l]);

            connect_to(&one, &board[p][me][l]);
            CHECK_EQ(post_recv(&one, (uint64_t)(p * LANES + l), place(p, l), MESSAGE), 0);
        }
}

static void send_all(struct end *e, int me, struct ibv_qp *qp[][LANES])
{
    const size_t sources = BUF_BYTES / 2;

    for (int p = 0; p < ranks; p++)
        for (int l = 0; l < LANES; l++) {
            struct end one = with_qp(e, qp[p][l]);
            struct message m = {me, l, 2 * (me * LANES + l)};

            memcpy(e->buf + sources + place(p, l), &m, sizeof m);
            CHECK_EQ(post_send(&one, 1, sources + place(p, l), sizeof m, 0), 0);
        }
}

static void check_all(struct end *e, struct ibv_qp *qp[][LANES])
{
    double until = seconds() + TIME;
    struct message m;
    struct ibv_wc wc;

    for (int left = ranks * LANES; left > 0;) {
        CHECK(seconds() < until);
        if (ibv_poll_cq(e->rcq, 1, &wc) == 0)
            continue;
        CHECK_EQ(wc.status, IBV_WC_SUCCESS);
        CHECK_EQ(wc.qp_num, qp[wc.wr_id / LANES][wc.wr_id % LANES]->qp_num);
        memcpy(&m, e->buf + wc.wr_id * MESSAGE, sizeof m);
        CHECK_EQ(m.from * LANES + m.lane, wc.wr_id);
        CHECK_EQ(m.twice, 2 * wc.wr_id);
        left--;
    }
    for (int i = 0; i < ranks * LANES; i++)
        CHECK_EQ(wait_wc(e->scq).status, IBV_WC_SUCCESS);
}

static void rank_main(int me)
{
    static struct ibv_qp *qp[MAX_RANKS][LANES];
    struct rusage used;
    struct end e;

    open_lanes(&e, me, qp);
    barrier(1);
    connect_lanes(&e, me, qp);
    barrier(2);
    send_all(&e, me, qp);
    check_all(&e, qp);
    barrier(3);
    CHECK_EQ(getrusage(RUSAGE_SELF, &used), 0);
    if (me == 0)
        printf("%d queue pairs; %ld KiB resident in one process\n", ranks * ranks * LANES,
               used.ru_maxrss);
    CHECK(used.ru_maxrss < MEMORY);
    for (int p = 0; p < ranks; p++)
        for (int l = 0; l < LANES; l++)
            CHECK_EQ(ibv_destroy_qp(qp[p][l]), 0);
    end_close(&e);
}

int main(int argc, char **argv)
{
    size_t bytes = sizeof *board * MAX_RANKS;
    char fabric[64];
    int failed = 0;
    char *memory = mmap(NULL, bytes + sizeof *arrived, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(memory != MAP_FAILED);
    board = (void *)memory;
    arrived = (void *)(memory + bytes);
    ranks = argc > 1 ? atoi(argv[1]) : SANITIZED ? 16 : MAX_RANKS;
    CHECK(ranks >= 1 && ranks <= MAX_RANKS);
    snprintf(fabric, sizeof fabric, "many-%d", (int)getpid());
    setenv("SOFTHCA_FABRIC", fabric, 1);
    setenv("SOFTHCA_ONLY", "1", 1);
    for (int i = 0; i < ranks; i++)
        if (fork() == 0) {
            deadline(TIME + 10);
            rank_main(i);
            exit(0);
        }
    for (int i = 0, status; i < ranks; i++) {
        CHECK(wait(&status) > 0);
        failed += status != 0;
    }
    CHECK_EQ(failed, 0);
    return 0;
}
