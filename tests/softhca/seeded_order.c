/* SPDX-License-Identifier: BSD-3-Clause */
/* SOFTHCA_SEED: the seed decides the order of completions of different queue pairs; those of one
 * queue pair stay in order; and some polls find nothing although a completion waits. Each order is
 * made in a process of its own, since the seed is read once. */
#include "config.h"

#include "harness.h"

#define QPS   6
#define EACH  5
#define TOTAL (QPS * EACH)

/* QPS connections that share everything but the queue pair; the first owns it. */
static void open_many(struct end *a, struct end *b, const struct end_options *o)
{
    open_two(&a[0], &b[0], o);
    for (int i = 1; i < QPS; i++) {
        struct address to_a, to_b;

        a[i] = a[0];
        b[i] = b[0];
        end_qp(&a[i], o);
        end_qp(&b[i], o);
        to_a = address_of(&a[i]);
        to_b = address_of(&b[i]);
        connect_to(&a[i], &to_b);
        connect_to(&b[i], &to_a);
    }
}

static void setup(struct end *a, struct end *b)
{
    static const struct end_options o = {.cqe = TOTAL};

    open_many(a, b, &o);
    for (int k = 0; k < EACH; k++)
        for (int i = 0; i < QPS; i++)
            CHECK_EQ(post_recv(&b[i], (uint64_t)(i * 100 + k), 0, 8), 0);
    for (int k = 0; k < EACH; k++)
        for (int i = 0; i < QPS; i++)
            CHECK_EQ(post_send(&a[i], (uint64_t)(i * 100 + k), 0, 8, 0), 0);
}

/* Polls until all are there; the order of the requests, and the polls that found nothing. */
static void drain(struct ibv_cq *cq, int at_once, uint64_t *order, int *empty)
{
    struct ibv_wc wc[TOTAL];
    bool last_empty = false;
    int next[QPS] = {0}, got = 0;

    *empty = 0;
    while (got < TOTAL) {
        int n = ibv_poll_cq(cq, at_once, wc);

        CHECK(n >= 0 && !(n == 0 && last_empty)); /* never twice in a row */
        last_empty = n == 0;
        *empty += last_empty;
        for (int i = 0; i < n; i++) {
            CHECK_EQ(wc[i].status, IBV_WC_SUCCESS);
            CHECK_EQ(wc[i].wr_id % 100, next[wc[i].wr_id / 100]++); /* order of the queue pair */
            order[got++] = wc[i].wr_id;
        }
    }
}

struct trace {
    uint64_t sends[TOTAL], receives[TOTAL];
    int empty;
};

static struct trace trace_of(const char *seed, int at_once)
{
    struct trace t;
    int fds[2], status;
    pid_t child;

    memset(&t, 0, sizeof t);
    CHECK_EQ(pipe(fds), 0);
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct end a[QPS], b[QPS];
        int empty;

        setenv("SOFTHCA_SEED", seed, 1);
        setup(a, b);
        drain(a[0].scq, at_once, t.sends, &t.empty);
        drain(b[0].rcq, at_once, t.receives, &empty);
        t.empty += empty;
        CHECK_EQ(write(fds[1], &t, sizeof t), sizeof t);
        _exit(0);
    }
    close(fds[1]);
    CHECK_EQ(read(fds[0], &t, sizeof t), sizeof t);
    close(fds[0]);
    CHECK_EQ(waitpid(child, &status, 0), child);
    CHECK_EQ(status, 0);
    return t;
}

static bool same(const struct trace *x, const struct trace *y)
{
    return memcmp(x, y, sizeof *x) == 0;
}

static void the_same_seed_gives_the_same_order(void)
{
    for (int at_once = 1; at_once <= 4; at_once += 3) {
        struct trace one = trace_of("7", at_once), again = trace_of("7", at_once);
        struct trace other = trace_of("8", at_once);

        CHECK(same(&one, &again));
        CHECK(!same(&one, &other));
        CHECK(memcmp(one.sends, other.sends, sizeof one.sends) != 0);
        CHECK(memcmp(one.receives, other.receives, sizeof one.receives) != 0);
    }
}

/* Without a seed polls find every completion, and sends complete in the order of posting. */
static void zero_is_order_of_arrival(void)
{
    struct trace t = trace_of("0", 1);

    CHECK_EQ(t.empty, 0);
    for (int i = 0; i < TOTAL; i++) {
        CHECK_EQ(t.sends[i], (uint64_t)(i % QPS * 100 + i / QPS));
    }
}

static void without_the_variable_the_seed_is_one(void)
{
    struct trace one = trace_of("1", 1), standard = trace_of("", 1);

    CHECK(same(&one, &standard));
}

/* How many of n polls, each with one completion waiting, find nothing at first. */
static int hidden(bool channel, int n)
{
    struct end a, b;
    struct address to;
    int count = 0;

    open_two(&a, &b, NULL);
    if (channel) {
        CHECK_EQ(ibv_destroy_qp(a.qp), 0);
        CHECK_EQ(ibv_destroy_cq(a.scq), 0);
        CHECK((a.channel = ibv_create_comp_channel(a.ctx)) != NULL);
        CHECK((a.scq = ibv_create_cq(a.ctx, 256, NULL, a.channel, 0)) != NULL);
        end_qp(&a, &(struct end_options){0});
        to = address_of(&a);
        CHECK_EQ(ibv_destroy_qp(b.qp), 0);
        end_qp(&b, &(struct end_options){0});
        connect_to(&b, &to);
        to = address_of(&b);
        connect_to(&a, &to);
    }
    to = address_of(&b);
    for (int i = 0; i < n; i++) {
        struct ibv_wc wc;

        CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 1, 0, 8, IBV_SEND_SIGNALED, &to, 0), 0);
        if (ibv_poll_cq(a.scq, 1, &wc) == 1)
            continue;
        count++;
        CHECK_EQ(ibv_poll_cq(a.scq, 1, &wc), 1);
    }
    close_two(&a, &b);
    return count;
}

static void one_poll_of_sixteen_finds_nothing(void)
{
    int n = hidden(false, 16000);

    CHECK(n > 800 && n < 1200);
}

/* A program that got an event for a completion polls once and must find it. */
static void nothing_hides_from_a_channel(void)
{
    CHECK_EQ(hidden(true, 1000), 0);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"the_same_seed_gives_the_same_order", the_same_seed_gives_the_same_order},
        {"zero_is_order_of_arrival", zero_is_order_of_arrival},
        {"without_the_variable_the_seed_is_one", without_the_variable_the_seed_is_one},
        {"one_poll_of_sixteen_finds_nothing", one_poll_of_sixteen_finds_nothing},
        {"nothing_hides_from_a_channel", nothing_hides_from_a_channel},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
