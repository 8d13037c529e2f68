/* SPDX-License-Identifier: BSD-3-Clause */
/* N processes (argument, 16), each connected to each: rounds of sends, writes and reads between all
 * of them at once, with every byte verified and without RNR. */
#include "config.h"

#include "harness.h"

#define MAX_RANKS 64
#define ROUNDS    20
#define SLOT      2048 /* per peer: [0, SLOT) written by it, then receives, then sources */

struct rank {
    struct end e;
    struct ibv_qp *qp[MAX_RANKS];
};

static struct address (*board)[MAX_RANKS]; /* board[owner][peer], in shared memory */
static _Atomic int *arrived;
static int ranks;

static void barrier(int number)
{
    double until = seconds() + HANG;

    (*arrived)++;
    while (*arrived < ranks * number) {
        CHECK(seconds() < until);
        sched_yield();
    }
}

static size_t written_at(int peer)
{
    return (size_t)peer * SLOT;
}

static size_t received_at(int peer)
{
    return (size_t)(MAX_RANKS + peer) * SLOT;
}

static size_t source_at(int peer)
{
    return (size_t)(2 * MAX_RANKS + peer) * SLOT;
}

static size_t read_at(int peer)
{
    return (size_t)(3 * MAX_RANKS + peer) * SLOT;
}

static void set_up(struct rank *r, int me)
{
    end_open(&r->e, &(struct end_options){.cqe = 4096, .no_qp = true});
    r->e.psn = 7;
    for (int p = 0; p < ranks; p++) {
        struct end one = r->e;

        end_qp(&one, &(struct end_options){0});
        r->qp[p] = one.qp;
        board[me][p] = address_of(&one);
    }
}

static void connect_all(struct rank *r, int me)
{
    for (int p = 0; p < ranks; p++) {
        struct end one = r->e;

        one.qp = r->qp[p];
        connect_to(&one, &board[p][me]);
    }
}

static void post_receives(struct rank *r)
{
    for (int p = 0; p < ranks; p++) {
        struct end one = r->e;

        one.qp = r->qp[p];
        CHECK_EQ(post_recv(&one, (uint64_t)p, received_at(p), SLOT), 0);
    }
}

static unsigned seed(int round, int from, int to)
{
    return (unsigned)(round * 10007 + from * 101 + to);
}

static void round_out(struct rank *r, int me, int round, size_t n)
{
    for (int p = 0; p < ranks; p++) {
        struct end one = r->e;

        one.qp = r->qp[p];
        fill(one.buf + source_at(p), n, seed(round, me, p));
        CHECK_EQ(
            post(&one, IBV_WR_RDMA_WRITE, 0, source_at(p), n, 0, &board[p][me], written_at(me)), 0);
        CHECK_EQ(post(&one, IBV_WR_SEND, 0, source_at(p), n, 0, NULL, 0), 0);
        /* The read returns what was written: one connection keeps its order. */
        CHECK_EQ(post(&one, IBV_WR_RDMA_READ, (uint64_t)p, read_at(p), n, IBV_SEND_SIGNALED,
                      &board[p][me], written_at(me)),
                 0);
    }
}

static void round_in(struct rank *r, int me, int round, size_t n)
{
    for (int i = 0; i < ranks; i++) {
        struct ibv_wc wc = wait_wc(r->e.rcq);
        int p = (int)wc.wr_id;

        CHECK_EQ(wc.status, IBV_WC_SUCCESS);
        CHECK_EQ(wc.qp_num, r->qp[p]->qp_num);
        CHECK(filled(r->e.buf + received_at(p), n, seed(round, p, me)));
        CHECK(filled(r->e.buf + written_at(p), n, seed(round, p, me)));
        wc = wait_wc(r->e.scq);
        CHECK_EQ(wc.status, IBV_WC_SUCCESS);
        p = (int)wc.wr_id;
        CHECK(filled(r->e.buf + read_at(p), n, seed(round, me, p)));
    }
}

static void rank_main(int me)
{
    static struct rank r;
    int step = 0;

    set_up(&r, me);
    barrier(++step);
    connect_all(&r, me);
    post_receives(&r);
    barrier(++step);
    for (int round = 0; round < ROUNDS; round++) {
        size_t n = (size_t)(1 + round * 97 % (SLOT - 1));

        round_out(&r, me, round, n);
        round_in(&r, me, round, n);
        barrier(++step);
        post_receives(&r);
        barrier(++step);
    }
    for (int p = 0; p < ranks; p++)
        CHECK_EQ(ibv_destroy_qp(r.qp[p]), 0);
    end_close(&r.e);
}

static int total_rnr(const char *path, int *lines)
{
    FILE *f = fopen(path, "r");
    char line[256];
    int sum = 0, rnr;

    *lines = 0;
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "softhca: pid %*d rnr %d", &rnr) == 1) {
            sum += rnr;
            ++*lines;
        }
    if (f)
        fclose(f);
    return sum;
}

static void map_board(void)
{
    void *p = mmap(NULL, sizeof *board * MAX_RANKS + sizeof(int), PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(p != MAP_FAILED);
    board = p;
    arrived = (_Atomic int *)(void *)(board + MAX_RANKS);
}

int main(int argc, char **argv)
{
    char fabric[64], stats[] = "softhca-stats-XXXXXX";
    int lines, failed = 0, fd = mkstemp(stats);

    CHECK(fd >= 0);
    close(fd);
    ranks = argc > 1 ? atoi(argv[1]) : 16;
    CHECK(ranks >= 1 && ranks <= MAX_RANKS);
    snprintf(fabric, sizeof fabric, "mesh-%d", (int)getpid());
    setenv("SOFTHCA_FABRIC", fabric, 1);
    setenv("SOFTHCA_ONLY", "1", 1);
    setenv("SOFTHCA_STATS", stats, 1);
    map_board();
    for (int i = 0; i < ranks; i++)
        if (fork() == 0) {
            deadline(ALARM);
            rank_main(i);
            exit(0);
        }
    for (int i = 0, status; i < ranks; i++) {
        CHECK(wait(&status) > 0);
        failed += status != 0;
    }
    CHECK_EQ(total_rnr(stats, &lines), 0);
    CHECK_EQ(lines, ranks);
    CHECK_EQ(unlink(stats), 0);
    CHECK_EQ(failed, 0);
    return 0;
}
