/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Another connection becomes primary while a thread waits for the lock of the former primary, which
 * is already in use again: in the build for threads. */
#include "config.h"

#include <pthread.h>
#include <unistd.h>

#include "failing_rails.h"
#include "op/op_type.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/failover/connection_state.h"
#include "unit.h"

/* A thread posts a reply, which needs no credit. */
struct poster {
    const char *way;
    enum tk_status (*post)(void);
    bool has_begun;
    enum tk_status status;
};

static enum tk_status send_any(void)
{
    struct tk_message_head head = {.kind = TK_REPLY};
    struct tk_outgoing m = {.head = &head, .head_size = sizeof(head)};
    return tk_verbs_send(tk_peer(1), &m);
}

static enum tk_status send_short(void)
{
    const struct tk_message_head head = {.kind = TK_REPLY};
    return tk_logged_send_short(tk_peer(1), head, NULL, NULL);
}

static enum tk_status send_small(void)
{
    return tk_logged_send_small(tk_peer(1), tk_tag_reply, 0, NULL);
}

static struct tk_am_reservation reservation;

static enum tk_status reserve(void)
{
    reservation = (struct tk_am_reservation){.peer = tk_peer(1), .kind = TK_REPLY};
    return tk_verbs_reserve(&reservation, true, false);
}

static enum tk_status send_reserved(void)
{
    struct tk_message_head head = {.kind = TK_REPLY};
    struct tk_outgoing m = {.head = &head, .head_size = sizeof(head)};
    reservation.tx = NULL;
    return tk_verbs_send_reserved(&reservation, &m);
}

/* A put in one piece, with space or without. */
static enum tk_status put(bool is_immediate)
{
    enum { size = 4096 };
    static struct tk_op op;
    struct tk_rma_state state = {.done = 0};
    const struct tk_rma rma = {.op = &op,
                               .local = world_segment(0),
                               .remote = (uintptr_t)world_segment(1),
                               .nbytes = size,
                               .is_put = true,
                               .immediate = is_immediate};
    enum tk_status status = tk_verbs_rma(tk_peer(1), &rma, &state);
    return status == TK_BUSY ? tk_verbs_rma(tk_peer(1), &rma, &state) : status;
}

static enum tk_status put_later(void)
{
    return put(false);
}

static enum tk_status put_now(void)
{
    return put(true);
}

static void *post(void *argument)
{
    struct poster *poster = argument;
    __atomic_store_n(&poster->has_begun, true, __ATOMIC_RELEASE);
    poster->status = poster->post();
    return NULL;
}

static int taken(const struct tk_conn *conn)
{
    return tk_verbs.depth_pp - tk_conn_space(conn);
}

/* Sleeps for a while, so that the thread is waiting for the lock when the primary changes. */
static void post_while_primary_changes(struct poster *poster)
{
    enum { while_us = 5000 };
    struct tk_conn *old = tk_primary(tk_peer(1)), *next = conn_to(0, 1, 1 - old->number);
    int of_old = taken(old), of_next = taken(next);
    pthread_t thread;
    tk_lock(&old->lock);
    assert_int_equal(pthread_create(&thread, NULL, post, poster), 0);
    while (!__atomic_load_n(&poster->has_begun, __ATOMIC_ACQUIRE))
        usleep(1);
    usleep(while_us);
    tk_primary_set(next);
    tk_unlock(&old->lock);
    pthread_join(thread, NULL);
    if (poster->status != TK_OK || taken(old) != of_old || taken(next) == of_next)
        fail_msg("%s: status %d, %d over the old one", poster->way, (int)poster->status,
                 taken(old) - of_old);
}

static void what_waited_for_the_old_primary_goes_over_the_new_one(void **state)
{
    struct poster posters[] = {
        {.way = "message", .post = send_any},       {.way = "Short", .post = send_short},
        {.way = "small Short", .post = send_small}, {.way = "reservation", .post = reserve},
        {.way = "reserved", .post = send_reserved}, {.way = "put", .post = put_later},
        {.way = "immediate put", .post = put_now}};
    open_failing_rails(2, "GASNET_NUM_QPS=2", NULL);
    world_be(0);
    for (size_t i = 0; i < sizeof(posters) / sizeof(*posters); i++)
        post_while_primary_changes(&posters[i]);
    world_close();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(what_waited_for_the_old_primary_goes_over_the_new_one),
};

UNIT_MAIN(tests)
