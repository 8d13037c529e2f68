/* SPDX-License-Identifier: BSD-3-Clause */
/* Several threads of one process on one shared receive queue: two send over connections of their
 * own, two poll one CQ and post again what they got, one arms the limit and reads its events, one
 * breaks and makes a queue pair. Counts must come out right; under ThreadSanitizer nothing may
 * race. And an XRC queue that is polled while another thread unregisters memory. */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "harness.h"
#include "xrc.h"

#define SENDERS    2
#define PER_SENDER 2000
#define DEPTH      32

static struct end from[SENDERS], to[SENDERS]; /* to[] share one queue, CQ and buffer */
static _Atomic int received, limits;
static _Atomic bool stop;

static int post_one(uint64_t id)
{
    struct ibv_sge sge = sge_of(&to[0], id * 64, 64);
    struct ibv_recv_wr wr = {.wr_id = id, .sg_list = &sge, .num_sge = 1}, *bad;

    return ibv_post_srq_recv(to[0].srq, &wr, &bad);
}

static void *sender(void *arg)
{
    struct end *e = arg;

    for (int i = 0; i < PER_SENDER; i++) {
        CHECK_EQ(post_send(e, 1, 0, 64, 0), 0);
        CHECK_EQ(wait_wc(e->scq).status, IBV_WC_SUCCESS);
    }
    return NULL;
}

static void *poller(void *arg)
{
    struct ibv_wc wc[4];

    (void)arg;
    while (received < SENDERS * PER_SENDER) {
        int n = ibv_poll_cq(to[0].rcq, 4, wc);

        for (int i = 0; i < n; i++) {
            CHECK_EQ(wc[i].status, IBV_WC_SUCCESS);
            CHECK_EQ(post_one(wc[i].wr_id), 0);
        }
        received += n;
        if (n == 0)
            sched_yield();
    }
    return NULL;
}

static void *limiter(void *arg)
{
    struct ibv_srq_attr attr = {.srq_limit = DEPTH};
    struct pollfd p = {.fd = to[0].ctx->async_fd, .events = POLLIN};

    (void)arg;
    CHECK_EQ(fcntl(p.fd, F_SETFL, O_NONBLOCK), 0);
    while (!stop) {
        struct ibv_async_event ev;

        CHECK_EQ(ibv_modify_srq(to[0].srq, &attr, IBV_SRQ_LIMIT), 0);
        if (poll(&p, 1, 1) == 0)
            continue;
        if (ibv_get_async_event(to[0].ctx, &ev) != 0) { /* its queue pair is gone already */
            CHECK_EQ(errno, EAGAIN);
            continue;
        }
        if (ev.event_type == IBV_EVENT_SRQ_LIMIT_REACHED) {
            CHECK(ev.element.srq == to[0].srq);
            limits++;
        }
        ibv_ack_async_event(&ev);
    }
    return NULL;
}

static void *breaker(void *arg)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};

    (void)arg;
    while (!stop) {
        struct end one = to[0];

        end_qp(&one, &(struct end_options){0});
        to_init(one.qp);
        CHECK_EQ(ibv_modify_qp(one.qp, &attr, IBV_QP_STATE), 0);
        CHECK_EQ(ibv_destroy_qp(one.qp), 0);
        sched_yield();
    }
    return NULL;
}

static void set_up(void)
{
    struct ibv_srq_init_attr init = {.attr = {.max_wr = DEPTH, .max_sge = 1}};

    end_open(&to[0], &(struct end_options){.no_qp = true});
    to[0].srq = ibv_create_srq(to[0].pd, &init);
    CHECK(to[0].srq != NULL);
    for (int i = 0; i < SENDERS; i++) {
        struct address a, b;

        to[i] = to[0];
        to[i].psn += i;
        end_qp(&to[i], &(struct end_options){0});
        end_open(&from[i], NULL);
        a = address_of(&from[i]);
        b = address_of(&to[i]);
        connect_to(&from[i], &b);
        connect_to(&to[i], &a);
    }
    for (uint64_t id = 0; id < DEPTH; id++)
        CHECK_EQ(post_one(id), 0);
}

static void many_threads(void)
{
    void *(*const mains[])(void *) = {sender, sender, poller, poller, limiter, breaker};
    pthread_t t[6];

    set_up();
    for (int i = 0; i < 6; i++)
        CHECK_EQ(pthread_create(&t[i], NULL, mains[i], &from[i % SENDERS]), 0);
    for (int i = 0; i < 4; i++)
        CHECK_EQ(pthread_join(t[i], NULL), 0);
    stop = true;
    for (int i = 4; i < 6; i++)
        CHECK_EQ(pthread_join(t[i], NULL), 0);
    CHECK_EQ(received, SENDERS * PER_SENDER);
    CHECK(limits > 0);
    CHECK_EQ(post_one(0), ENOMEM); /* every receive is posted again, none twice */
    for (int i = 0; i < SENDERS; i++)
        CHECK_EQ(ibv_destroy_qp(to[i].qp), 0);
    CHECK_EQ(ibv_destroy_srq(to[0].srq), 0);
    to[0].qp = NULL;
    end_close(&to[0]);
    for (int i = 0; i < SENDERS; i++)
        end_close(&from[i]);
}

/* CPU seconds of this thread, so that other load does not count. */
static double used(void)
{
    struct timespec t;

    CHECK_EQ(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t), 0);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *unregister_often(void *arg)
{
    struct side *b = arg;

    while (!stop) {
        struct ibv_mr *mr = ibv_reg_mr(b->e.pd, b->e.buf + 8192, 4096, IBV_ACCESS_LOCAL_WRITE);
        double before = used();

        CHECK(mr != NULL);
        CHECK_EQ(ibv_dereg_mr(mr), 0);
        CHECK(used() - before < 1);
    }
    return NULL;
}

/* ibv_dereg_mr goes through messages that are not polled yet, while another thread polls them: it
 * must terminate. */
static void unregistered_while_polling(void)
{
    pthread_t other;
    struct end a;
    struct side b;

    open_pair(&a, &b, -1);
    stop = false;
    CHECK_EQ(pthread_create(&other, NULL, unregister_often, &b), 0);
    for (unsigned i = 0; i < 100000; i++) {
        CHECK_EQ(post_queue(&b, i, 0, 64), 0);
        CHECK_EQ(post_xrc(&a, IBV_WR_SEND, b.srqn, 32, NULL), 0);
        expect_message(&b, i, b.e.qp->qp_num, 32);
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    }
    stop = true;
    CHECK_EQ(pthread_join(other, NULL), 0);
    close_side(&b);
    end_close(&a);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {
        {"many_threads", many_threads},
        {"unregistered_while_polling", unregistered_while_polling},
        {NULL, NULL},
    };

    return run_cases(cases, argc, argv);
}
