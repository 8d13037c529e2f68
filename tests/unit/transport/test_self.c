/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages to ourselves: handlers run inside the call, on a copy of the payload, however deep a
 * handler's reply goes. */
#include "config.h"

#include "fake_job.h"
#include "op/op.h"
#include "transport/self/self.h"
#include "transport/transport.h"
#include "unit.h"
#include "whole_table.h"

static char seen[tk_message_max];
static size_t seen_bytes;
static void *seen_at[2];
static unsigned depth;

static enum tk_status send_to_self(void *payload, size_t nbytes)
{
    struct tk_message_head head = {.handler = 200};
    struct tk_outgoing m = {
        .head = &head, .head_size = sizeof(head), .payload = payload, .nbytes = nbytes};
    return tk_transport_self.am.send(tk_peer(0), &m);
}

static void take(struct tk_arrival *arrival)
{
    assert_ptr_equal(arrival->peer, tk_peer(0));
    seen_bytes = arrival->nbytes;
    if (arrival->nbytes)
        memcpy(seen, arrival->payload, arrival->nbytes);
}

static int set_up(void **state)
{
    fake_job_open(1);
    depth = 0;
    tk_deliver = take;
    return 0;
}

static int tear_down(void **state)
{
    fake_job_close();
    return 0;
}

static void a_message_is_handled_inside_the_call(void **state)
{
    static const size_t sizes[] = {0, 1, 100, tk_message_max - 72, tk_message_max - 8};
    static char payload[tk_message_max];
    for (size_t i = 0; i < sizeof(payload); i++)
        payload[i] = (char)(i * 5);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        assert_int_equal(send_to_self(payload, sizes[i]), TK_OK);
        assert_int_equal(seen_bytes, sizes[i]);
        assert_memory_equal(seen, payload, sizes[i]);
    }
}

static void scribble(struct tk_arrival *arrival)
{
    memset(arrival->payload, 'x', arrival->nbytes);
    assert_int_equal((uintptr_t)arrival->payload % 8, 0);
}

/* The interface lets handlers of Mediums write to their buffer; the source may be read-only. */
static void a_handler_may_write_to_its_payload(void **state)
{
    char payload[] = "as it was";
    tk_deliver = scribble;
    send_to_self(payload, sizeof(payload));
    assert_string_equal(payload, "as it was");
}

static void reply_once(struct tk_arrival *arrival)
{
    char reply[] = "reply";
    seen_at[depth] = arrival->payload;
    if (depth++ == 0) {
        send_to_self(reply, sizeof(reply));
        assert_string_equal(arrival->payload, "request"); /* the reply used other memory */
    }
}

static void a_reply_inside_a_handler_has_memory_of_its_own(void **state)
{
    char request[] = "request";
    tk_deliver = reply_once;
    send_to_self(request, sizeof(request));
    assert_int_equal(depth, 2);
    assert_ptr_not_equal(seen_at[0], seen_at[1]);
}

static void puts_and_gets_are_copies_done_at_once(void **state)
{
    char here[8] = "here", there[8] = "there";
    struct tk_op op;
    struct tk_rma rma = {.remote = (uintptr_t)there, .local = here, .nbytes = 5, .op = &op};
    struct tk_rma_state posted = {.done = 0};
    tk_op_init(&op);
    assert_int_equal(tk_transport_self.rma.post(tk_peer(0), &rma, &posted), TK_OK);
    assert_string_equal(here, "there");
    assert_int_equal(posted.done, 5);
    assert_true(tk_op_done(&op));
    posted.done = 0;
    rma = (struct tk_rma){
        .remote = (uintptr_t)there, .local = "thus!", .nbytes = 6, .op = &op, .is_put = true};
    assert_int_equal(tk_transport_self.rma.post(tk_peer(0), &rma, &posted), TK_OK);
    assert_string_equal(there, "thus!");
    assert_true(tk_op_done(&op) && tk_op_source_free(&op));
}

/* Buffers are reused: after a leak the next reservation would get another one. */
static void a_reservation_always_goes_and_its_buffer_comes_back(void **state)
{
    struct tk_message_head head = {.handler = 200};
    struct tk_am_reservation r = {.peer = tk_peer(0)};
    struct tk_outgoing m = {.head = &head, .head_size = sizeof(head)};
    char *buffer = NULL;
    (void)state;
    for (int i = 0; i < 10; i++) {
        assert_int_equal(tk_transport_self.am.reserve(&r, true, true), TK_OK);
        if (i > 0)
            assert_ptr_equal(r.buffer, buffer);
        buffer = r.buffer;
        m.payload = strcpy(buffer, "prepared");
        m.nbytes = sizeof("prepared");
        seen_bytes = 0;
        if (i % 2)
            tk_transport_self.am.release(&r, false);
        else
            assert_int_equal(tk_transport_self.am.send_reserved(&r, &m), TK_OK);
        assert_int_equal(seen_bytes, i % 2 ? 0 : m.nbytes);
        assert_null(r.tx);
    }
    assert_int_equal(tk_transport_self.am.reserve(&r, false, false), TK_OK);
    assert_int_equal(tk_transport_self.am.reserve_place(&r), TK_OK);
    assert_int_equal(tk_transport_self.am.send_reserved(&r, &m), TK_OK);
    assert_string_equal(seen, "prepared");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static void the_table_is_whole(void **state)
{
    assert_table_is_whole(&tk_transport_self);
}

static const struct CMUnitTest tests[] = {
    TEST(a_message_is_handled_inside_the_call),
    TEST(a_handler_may_write_to_its_payload),
    TEST(a_reply_inside_a_handler_has_memory_of_its_own),
    TEST(a_reservation_always_goes_and_its_buffer_comes_back),
    TEST(puts_and_gets_are_copies_done_at_once),
    cmocka_unit_test(the_table_is_whole),
};

UNIT_MAIN(tests)
