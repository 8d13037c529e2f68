/* SPDX-License-Identifier: BSD-3-Clause */
/* Several threads of one process on the same objects: two post sends and writes on one QP, two poll
 * one CQ, one registers and deregisters, while the other side answers. Counts must come out right;
 * under ThreadSanitizer nothing may race. */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "harness.h"

#define PER_THREAD 3000

static struct end a, b;
static struct address to_b;
static _Atomic int sends_done, receives_done;
static _Atomic bool stop;

static void *post_many(void *arg)
{
    size_t mine = (size_t)(uintptr_t)arg * 4096;
    int i = 0;

    while (i < PER_THREAD) {
        int e = i % 2 ? post(&a, IBV_WR_SEND, 1, mine, 64, IBV_SEND_SIGNALED, NULL, 0)
                      : post(&a, IBV_WR_RDMA_WRITE, 1, mine, 64, IBV_SEND_SIGNALED, &to_b, mine);

        CHECK(e == 0 || e == ENOMEM);
        if (e == 0)
            i++;
        else
            sched_yield();
    }
    return NULL;
}

static void *poll_sends(void *arg)
{
    struct ibv_wc wc[4];

    (void)arg;
    while (sends_done < 2 * PER_THREAD) {
        int n = ibv_poll_cq(a.scq, 4, wc);

        for (int i = 0; i < n; i++)
            CHECK_EQ(wc[i].status, IBV_WC_SUCCESS);
        sends_done += n;
    }
    return NULL;
}

static void *poll_receives(void *arg)
{
    struct ibv_wc wc[4];

    (void)arg;
    while (receives_done < PER_THREAD) {
        int n = ibv_poll_cq(b.rcq, 4, wc);

        for (int i = 0; i < n; i++) {
            CHECK_EQ(wc[i].status, IBV_WC_SUCCESS);
            CHECK_EQ(post_recv(&b, 1, 500000, 64), 0);
        }
        receives_done += n;
    }
    return NULL;
}

static void *register_many(void *arg)
{
    static char memory[8192];

    (void)arg;
    while (!stop) {
        struct ibv_mr *mr = ibv_reg_mr(a.pd, memory, sizeof memory, IBV_ACCESS_LOCAL_WRITE);

        CHECK(mr != NULL);
        CHECK_EQ(ibv_dereg_mr(mr), 0);
        sched_yield();
    }
    return NULL;
}

static void many_threads(void)
{
    void *(*const mains[])(void *) = {post_many,     post_many,     poll_sends,   poll_sends,
                                      poll_receives, poll_receives, register_many};
    pthread_t t[7];

    open_two(&a, &b, NULL);
    to_b = address_of(&b);
    for (int i = 0; i < 64; i++)
        CHECK_EQ(post_recv(&b, 1, 500000, 64), 0);
    for (uintptr_t i = 0; i < 7; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, mains[i], (void *)i), 0);
    for (int i = 0; i < 6; i++)
        CHECK_EQ(pthread_join(t[i], NULL), 0);
    stop = true;
    CHECK_EQ(pthread_join(t[6], NULL), 0);
    CHECK_EQ(sends_done, 2 * PER_THREAD);
    CHECK_EQ(receives_done, PER_THREAD);
    close_two(&a, &b);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {{"many_threads", many_threads}, {NULL, NULL}};

    return run_cases(cases, argc, argv);
}
