/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The responder, packet by packet: order, acknowledgements, refusals, repeated requests, and
 * foreign packets. Single-threaded, simulated time. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "endpoint/private.h"
#include "rig.h"

enum { first = 0xfffffe, ack = ROCE_SYNDROME_ACK | ROCE_CREDITS_NONE };

static struct rig *r; /* of the running test; an RC end point in RTS unless it takes another */

static void take(struct rig *other)
{
    rig_free(r);
    r = other;
}

static struct rig *started(uint8_t transport)
{
    struct rig *new = rig_new();

    new->a.transport = transport;
    new->receives = 8;
    rig_start(new);
    return new;
}

static int set_up(void **unused)
{
    r = started(ROCE_RC);
    return 0;
}

static int tear_down(void **unused)
{
    rig_free(r);
    return 0;
}

static void request(unsigned operation, uint32_t psn, uint32_t payload)
{
    struct roce_packet p = rig_packet(r, operation, psn);

    p.payload_length = payload;
    p.dma_length = payload;
    p.ack_request = true;
    p.qkey = 0x11111111;
    p.src_qpn = rig_peer;
    rig_in(r, &p);
}

static void answered(uint32_t psn, uint8_t syndrome)
{
    rig_expect(r, ROCE_ACKNOWLEDGE, psn);
    assert_int_equal(r->out.syndrome, syndrome);
    rig_silent(r);
}

/* ---- in order ---- */

static void messages_are_put_together(void **unused)
{
    struct roce_packet p = rig_packet(r, ROCE_SEND_FIRST, first);

    p.payload_length = 1024;
    rig_in(r, &p);
    rig_silent(r);
    p = rig_packet(r, ROCE_SEND_LAST_IMM, first + 1);
    p.payload = r->buffer + 1024;
    p.payload_length = 10;
    p.imm = 77;
    p.ack_request = p.solicited = true;
    rig_in(r, &p);
    answered(first + 1, ack);
    assert_int_equal(r->out.msn, 1);
    assert_int_equal(r->messages, 1);
    assert_int_equal(r->message.length, 1034);
    assert_int_equal(r->message.imm, 77);
    assert_true(r->message.with_imm && r->message.solicited && !r->message.write);
    assert_memory_equal(r->receive, r->buffer, 1034);
    assert_int_equal(r->events, 1);
    assert_int_equal(r->event[0], ROCE_EVENT_ESTABLISHED);
}

static void one_acknowledgement_for_many(void **unused)
{
    for (unsigned i = 0; i < 10; i++)
        request(ROCE_WRITE_ONLY, first + i, 8);
    answered(first + 9, ack);
    assert_int_equal(r->checks, 10);
    assert_int_equal(r->out.msn, 10);
}

static void a_write_with_immediate_takes_a_receive(void **unused)
{
    struct roce_packet p;

    p = rig_packet(r, ROCE_WRITE_FIRST, first);
    p.dma_length = 1030;
    p.payload_length = 1024;
    rig_in(r, &p);
    p = rig_packet(r, ROCE_WRITE_LAST_IMM, first + 1);
    p.payload_length = 6;
    r->receives = 0;
    rig_in(r, &p);
    answered(first + 1, ROCE_SYNDROME_RNR | 12);
    assert_int_equal(r->memory[1025], 0); /* nothing yet */
    rig_in(r, &p);
    answered(first + 1, ROCE_SYNDROME_RNR | 12);
    r->receives = 1;
    rig_in(r, &p);
    rig_silent(r);
    assert_memory_equal(r->memory + 1024, r->buffer, 6);
    assert_true(r->messages == 1 && r->message.write && r->message.length == 1030);
}

/* Answers go out in the order of the requests, the acknowledgement of a write behind them too. */
static void answers_keep_their_order(void **unused)
{
    struct roce_packet p;

    memset(r->memory, 0x33, rig_bytes);
    request(ROCE_WRITE_ONLY, first, 8);
    p = rig_packet(r, ROCE_READ_REQUEST, first + 1);
    p.va = 100;
    p.dma_length = 2049;
    rig_in(r, &p);
    p = rig_packet(r, ROCE_FETCH_ADD, first + 4);
    p.va = 64;
    p.swap_add = 1;
    rig_in(r, &p);
    request(ROCE_WRITE_ONLY, first + 5, 8);
    rig_expect(r, ROCE_READ_RESPONSE_FIRST, first + 1);
    assert_int_equal(r->out.msn, 2);
    rig_expect(r, ROCE_READ_RESPONSE_MIDDLE, first + 2);
    rig_expect(r, ROCE_READ_RESPONSE_LAST, first + 3);
    assert_int_equal(r->out.payload_length, 1);
    assert_int_equal(r->out.syndrome, ack);
    rig_expect(r, ROCE_ATOMIC_ACKNOWLEDGE, first + 4);
    assert_true(r->out.original == UINT64_C(0x3333333333333333));
    answered(first + 5, ack);
    assert_int_equal(r->memory[64], 0x34);
}

/* A request that a response acknowledges needs no separate acknowledgement. */
static void responses_acknowledge(void **unused)
{
    request(ROCE_WRITE_ONLY, first, 8);
    request(ROCE_READ_REQUEST, first + 1, 0);
    rig_expect(r, ROCE_READ_RESPONSE_ONLY, first + 1);
    rig_silent(r);
}

/* ---- out of order ---- */

static void one_nak_for_a_gap(void **unused)
{
    request(ROCE_WRITE_ONLY, first + 2, 8);
    answered(first, ROCE_NAK_SEQUENCE);
    request(ROCE_WRITE_ONLY, first + 3, 8);
    rig_silent(r);
    assert_int_equal(r->checks, 0);
    request(ROCE_WRITE_ONLY, first, 8);
    answered(first, ack);
    request(ROCE_WRITE_ONLY, first + 3, 8);
    answered(first + 1, ROCE_NAK_SEQUENCE);
    /* A gap that closes before the caller asks for the answer causes no NAK. */
    request(ROCE_WRITE_ONLY, first + 1, 8);
    request(ROCE_WRITE_ONLY, first + 3, 8);
    request(ROCE_WRITE_ONLY, first + 2, 8);
    answered(first + 2, ack);
    assert_int_equal(roce_counters(r->e)->naks_sent, 2);
}

static void repeated_requests(void **unused)
{
    struct roce_packet p;

    request(ROCE_SEND_ONLY, first, 8);
    p = rig_packet(r, ROCE_FETCH_ADD, first + 1);
    p.swap_add = 5;
    rig_in(r, &p);
    request(ROCE_WRITE_ONLY, first + 2, 8);
    rig_drain(r);
    memcpy(r->memory, "12345678", 8);
    request(ROCE_SEND_ONLY, first, 8);
    answered(first + 2, ack);
    assert_int_equal(r->messages, 1);
    rig_in(r, &p);
    rig_expect(r, ROCE_ATOMIC_ACKNOWLEDGE, first + 1);
    assert_int_equal(r->out.original, 0);
    assert_int_equal(r->atomics, 1);
    assert_memory_equal(r->memory, "12345678", 8);
    p.psn = first; /* a number at which there was no atomic */
    rig_in(r, &p);
    rig_silent(r);
    assert_int_equal(r->atomics, 1);
}

static void repeated_reads(void **unused)
{
    struct roce_packet p = rig_packet(r, ROCE_READ_REQUEST, first);

    p.dma_length = 4096;
    rig_in(r, &p);
    rig_expect(r, ROCE_READ_RESPONSE_FIRST, first);
    /* A response that is already queued is not sent twice. */
    p.psn = (first + 2) & 0xffffff;
    p.va = 2048;
    p.dma_length = 2048;
    rig_in(r, &p);
    assert_int_equal(rig_drain(r), 3);
    rig_in(r, &p);
    rig_expect(r, ROCE_READ_RESPONSE_FIRST, first + 2);
    rig_expect(r, ROCE_READ_RESPONSE_LAST, first + 3);
    p.dma_length = 2049; /* more than the first time */
    rig_in(r, &p);
    rig_silent(r);
}

/* As many results are kept as atomics may be outstanding. */
static void the_resend_window_of_atomics(void **unused)
{
    struct roce_packet p = rig_packet(r, ROCE_FETCH_ADD, first);

    p.swap_add = 1;
    for (unsigned i = 0; i < 6; i++) {
        p.psn = (first + i) & 0xffffff;
        rig_in(r, &p);
        assert_int_equal(rig_drain(r), 1);
    }
    for (unsigned i = 0; i < 6; i++) {
        p.psn = (first + i) & 0xffffff;
        rig_in(r, &p);
        assert_int_equal(rig_drain(r), i >= 2);
        if (i >= 2)
            assert_int_equal(r->out.original, i);
    }
    assert_int_equal(r->atomics, 6);
}

/* PSNs wrap after 2^24 packets: an old result with the same PSN must not be sent. */
static void the_latest_result_of_a_number(void **unused)
{
    struct roce_packet p = rig_packet(r, ROCE_FETCH_ADD, first);

    p.swap_add = 1;
    rig_in(r, &p);
    assert_int_equal(rig_drain(r), 1);
    roce_ready_to_receive(r->e, &r->a); /* instead of all these packets */
    rig_in(r, &p);
    assert_int_equal(rig_drain(r), 1);
    rig_in(r, &p);
    assert_int_equal(rig_drain(r), 1);
    assert_int_equal(r->atomics, 2);
    assert_int_equal(r->out.original, 1);
}

/* Results from before a reset must not be sent. */
static void a_reset_forgets_results(void **unused)
{
    struct roce_packet p = rig_packet(r, ROCE_FETCH_ADD, first);

    rig_in(r, &p);
    assert_int_equal(rig_drain(r), 1);
    roce_reset(r->e);
    rig_in(r, &p);
    rig_silent(r); /* not ready to receive */
    r->a.receive_psn = first + 1;
    roce_ready_to_receive(r->e, &r->a);
    rig_in(r, &p);
    rig_silent(r);
    assert_int_equal(r->atomics, 1);
}

/* ---- who may ---- */

static void rights_may_come_with_rts(void **unused)
{
    take(rig_new());
    r->a.access = 0;
    rig_start(r);
    r->a.access = ROCE_ACCESS_WRITE;
    roce_ready_to_send(r->e, &r->a);
    request(ROCE_WRITE_ONLY, first, 8);
    answered(first, ack);
}

/* The half of XRC that sends: it has no memory and no receives for others. */
static void an_initiator_serves_no_other_rank(void **unused)
{
    take(rig_new());
    r->a.transport = ROCE_XRC;
    r->a.initiator = true;
    r->receives = 1;
    rig_start(r);
    request(ROCE_WRITE_ONLY, first, 8);
    request(ROCE_SEND_ONLY, first, 8);
    request(ROCE_READ_REQUEST, first, 0);
    rig_silent(r);
    assert_int_equal(r->checks + r->messages + r->events, 0);
    assert_int_equal(roce_counters(r->e)->drop_state, 3);
}

/* Compares the whole state of both halves except counters. */
static void what_is_dropped_changes_nothing(void **unused)
{
    struct roce_endpoint before;
    struct roce_packet p[7];

    rig_post(r, ROCE_DO_SEND, 8, 0);
    rig_drain(r);
    for (unsigned i = 0; i < 3; i++)
        p[i] = rig_packet(r, ROCE_WRITE_ONLY, first);
    p[0].dest_qpn ^= 1;
    p[1].pkey ^= 1;
    p[2].opcode = roce_opcode_of(ROCE_UC, ROCE_WRITE_ONLY);
    p[3] = rig_packet(r, ROCE_ACKNOWLEDGE, first + 1); /* was not sent */
    p[4] = rig_packet(r, ROCE_READ_RESPONSE_ONLY, first);
    p[5] = rig_packet(r, ROCE_ATOMIC_ACKNOWLEDGE, first);
    p[6] = rig_packet(r, ROCE_ACKNOWLEDGE, first + 1);
    p[6].syndrome = ROCE_NAK_ACCESS;
    before = *r->e;
    for (unsigned i = 0; i < 7; i++) {
        p[i].becn = i >= 3;
        rig_in(r, &p[i]);
        assert_memory_equal(&r->e->rx, &before.rx, sizeof before.rx);
        assert_memory_equal(&r->e->tx, &before.tx, sizeof before.tx);
    }
    rig_silent(r);
    assert_int_equal(roce_counters(r->e)->drop_qpn, 1);
    assert_int_equal(roce_counters(r->e)->drop_pkey, 1);
    assert_int_equal(roce_counters(r->e)->drop_transport, 1);
    assert_int_equal(roce_counters(r->e)->stale, 4);
    assert_int_equal(r->checks + r->completions + r->events + r->messages + r->taken, 0);
    assert_false(roce_failed(r->e));
}

/* ---- refusals ---- */

/* Leaves another end point behind. */
static void refused(uint32_t psn, uint8_t nak, enum roce_event event)
{
    answered(psn, nak);
    assert_true(roce_failed(r->e));
    assert_int_equal(r->event[r->events - 1], event);
    /* The NAK may be lost: it is repeated with each repetition, and nothing is executed. */
    r->check = ROCE_SUCCESS;
    request(ROCE_WRITE_ONLY, psn, 8);
    answered(psn, nak);
    request(ROCE_WRITE_ONLY, psn + 1, 8);
    answered(psn, nak);
    take(started(ROCE_RC));
}

static void invalid(const struct roce_packet *p)
{
    rig_in(r, p);
    refused(p->psn, ROCE_NAK_INVALID, ROCE_EVENT_REQUEST_ERROR);
}

static void invalid_requests(void **unused)
{
    struct roce_packet p = rig_packet(r, ROCE_SEND_MIDDLE, first);

    p.payload_length = 1024;
    invalid(&p); /* without a first one */
    p = rig_packet(r, ROCE_SEND_FIRST, first);
    p.payload_length = 1000;
    invalid(&p); /* not full */
    p = rig_packet(r, ROCE_WRITE_ONLY, first);
    p.payload_length = 8;
    p.dma_length = 9;
    invalid(&p); /* other than announced */
    p = rig_packet(r, ROCE_WRITE_FIRST, first);
    p.payload_length = p.dma_length = 1024;
    invalid(&p); /* no last one can follow */
    p = rig_packet(r, ROCE_FETCH_ADD, first);
    p.va = 4;
    invalid(&p); /* not aligned */
    p = rig_packet(r, ROCE_SEND_ONLY, first);
    p.payload_length = 2048;
    invalid(&p); /* longer than the path MTU */
}

static void mixed_messages(void **unused)
{
    static const uint8_t next[] = {ROCE_WRITE_LAST, ROCE_SEND_ONLY, ROCE_READ_REQUEST,
                                   ROCE_SEND_FIRST};

    for (size_t i = 0; i < sizeof next; i++) {
        struct roce_packet p = rig_packet(r, ROCE_SEND_FIRST, first);

        p.payload_length = 1024;
        rig_in(r, &p);
        request(next[i], first + 1, next[i] == ROCE_SEND_FIRST ? 1024 : 8);
        refused(first + 1, ROCE_NAK_INVALID, ROCE_EVENT_REQUEST_ERROR);
    }
}

/* More bytes come than were announced. */
static void a_write_that_goes_too_far(void **unused)
{
    struct roce_packet p = rig_packet(r, ROCE_WRITE_FIRST, first);

    p.payload_length = 1024;
    p.dma_length = 1100;
    rig_in(r, &p);
    p = rig_packet(r, ROCE_WRITE_MIDDLE, first + 1);
    p.payload_length = 1024;
    rig_in(r, &p);
    assert_int_equal(r->memory[1024 + 76], 0);
    refused(first + 1, ROCE_NAK_INVALID, ROCE_EVENT_REQUEST_ERROR);
}

static void rights_of_the_queue_pair(void **unused)
{
    static const struct {
        uint8_t right, operation;
    } rows[] = {{ROCE_ACCESS_WRITE, ROCE_WRITE_ONLY},
                {ROCE_ACCESS_READ, ROCE_READ_REQUEST},
                {ROCE_ACCESS_ATOMIC, ROCE_COMPARE_SWAP}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct roce_packet p = rig_packet(r, rows[i].operation, first);

        r->a.access &= (uint8_t)~rows[i].right;
        roce_adjust(r->e, &r->a);
        rig_in(r, &p);
        refused(first, ROCE_NAK_INVALID, ROCE_EVENT_REQUEST_ERROR);
        r->check = ROCE_REMOTE_ACCESS;
        p.dma_length = p.payload_length = 8;
        p.payload_length = rows[i].operation == ROCE_WRITE_ONLY ? 8 : 0;
        rig_in(r, &p);
        assert_int_equal(r->atomics, 0);
        refused(first, ROCE_NAK_ACCESS, ROCE_EVENT_ACCESS_ERROR);
    }
}

/* The key of an empty write is not looked at. */
static void empty_requests_need_no_key(void **unused)
{
    struct roce_packet p = rig_packet(r, ROCE_WRITE_ONLY, first);

    p.rkey = 1;
    p.ack_request = true;
    rig_in(r, &p);
    answered(first, ack);
    p.opcode = ROCE_READ_REQUEST;
    p.psn = (first + 1) & 0xffffff;
    rig_in(r, &p);
    rig_expect(r, ROCE_READ_RESPONSE_ONLY, first + 1);
    assert_int_equal(r->checks, 0);
}

static void bad_receives(void **unused)
{
    r->receive_bytes = 7;
    request(ROCE_SEND_ONLY, first, 8);
    refused(first, ROCE_NAK_INVALID, ROCE_EVENT_REQUEST_ERROR);
    r->fill = ROCE_REMOTE_OPERATION;
    request(ROCE_SEND_ONLY, first, 8);
    refused(first, ROCE_NAK_OPERATION, ROCE_EVENT_FATAL);
}

/* A region that is deregistered while it is read. */
static void memory_that_goes(void **unused)
{
    struct roce_packet p = rig_packet(r, ROCE_READ_REQUEST, first);

    p.dma_length = 4096;
    rig_in(r, &p);
    rig_expect(r, ROCE_READ_RESPONSE_FIRST, first);
    r->check = ROCE_REMOTE_ACCESS;
    refused(first + 1, ROCE_NAK_ACCESS, ROCE_EVENT_ACCESS_ERROR);
}

/* A queue pair that fails for another reason sends nothing more. */
static void a_failed_end_is_silent(void **unused)
{
    request(ROCE_WRITE_ONLY, first, 8);
    roce_fail(r->e);
    rig_silent(r);
    request(ROCE_WRITE_ONLY, first + 1, 8);
    rig_silent(r);
    assert_int_equal(roce_counters(r->e)->drop_state, 1);
}

/* ---- foreign packets ---- */

static void limited_members_do_not_meet(void **unused)
{
    struct roce_packet p = rig_packet(r, ROCE_WRITE_ONLY, first);

    p.pkey = 0x7fff; /* one may talk to a full member */
    rig_in(r, &p);
    assert_int_equal(roce_counters(r->e)->received, 1);
    take(rig_new());
    r->a.pkey = 0x7fff;
    rig_start(r);
    rig_in(r, &p);
    rig_silent(r);
    assert_int_equal(roce_counters(r->e)->drop_pkey, 1);
    assert_int_equal(roce_counters(r->e)->received, 0);
}

static void datagrams_need_the_key(void **unused)
{
    struct roce_packet p;

    take(started(ROCE_UD));
    p = rig_packet(r, ROCE_SEND_ONLY, 5);
    p.qkey = 1;
    rig_in(r, &p);
    assert_int_equal(r->messages, 0);
    assert_int_equal(roce_counters(r->e)->drop_qkey, 1);
    request(ROCE_SEND_ONLY, 99, 12);
    assert_int_equal(r->messages, 1);
    assert_int_equal(r->message.src_qpn, rig_peer);
    rig_silent(r);
    r->receives = 0;
    request(ROCE_SEND_ONLY, 100, 12);
    assert_int_equal(r->messages, 1);
    r->receives = 1;
    r->receive_bytes = 11;
    request(ROCE_SEND_ONLY, 101, 12);
    assert_true(roce_failed(r->e));
}

/* ---- unreliable ---- */

static void half_messages_are_dropped(void **unused)
{
    unsigned before;

    take(started(ROCE_UC));
    before = r->receives;
    request(ROCE_SEND_FIRST, 10, 1024);
    request(ROCE_SEND_LAST, 12, 8); /* the middle is missing */
    assert_int_equal(r->messages, 0);
    request(ROCE_SEND_FIRST, 50, 1024);
    request(ROCE_SEND_LAST, 51, 8);
    assert_int_equal(r->messages, 1);
    assert_int_equal(r->message.length, 1032);
    assert_int_equal(before - r->receives, 1); /* the receive of the half one served */
    request(ROCE_WRITE_LAST, 52, 8);
    r->check = ROCE_REMOTE_ACCESS;
    request(ROCE_WRITE_ONLY, 53, 8);
    rig_silent(r);
    assert_false(roce_failed(r->e));
    assert_int_equal(roce_counters(r->e)->drop_receive, 3);
    r->check = ROCE_SUCCESS;
    request(ROCE_SEND_FIRST, 60, 1024);
    request(ROCE_SEND_MIDDLE, 62, 1024);
    request(ROCE_SEND_LAST, 63, 8); /* in order behind what was dropped */
    assert_int_equal(r->messages, 1);
}

static void marks_come_back_as_notifications(void **unused)
{
    struct roce_packet p = rig_packet(r, ROCE_WRITE_ONLY, first);

    roce_input(r->e, r->now, &p, true);
    assert_true(rig_out(r));
    assert_int_equal(r->out.opcode, ROCE_CNP);
    assert_true(r->out.becn && r->out.dest_qpn == rig_peer);
    p.psn = (first + 1) & 0xffffff;
    roce_input(r->e, r->now, &p, true);
    rig_silent(r);
    r->now += 50000;
    p.psn = (first + 2) & 0xffffff;
    roce_input(r->e, r->now, &p, true);
    assert_int_equal(rig_drain(r), 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(messages_are_put_together),
        CASE(one_acknowledgement_for_many),
        CASE(a_write_with_immediate_takes_a_receive),
        CASE(answers_keep_their_order),
        CASE(responses_acknowledge),
        CASE(one_nak_for_a_gap),
        CASE(repeated_requests),
        CASE(repeated_reads),
        CASE(the_resend_window_of_atomics),
        CASE(the_latest_result_of_a_number),
        CASE(rights_may_come_with_rts),
        CASE(an_initiator_serves_no_other_rank),
        CASE(what_is_dropped_changes_nothing),
        CASE(a_reset_forgets_results),
        CASE(invalid_requests),
        CASE(mixed_messages),
        CASE(a_write_that_goes_too_far),
        CASE(rights_of_the_queue_pair),
        CASE(empty_requests_need_no_key),
        CASE(bad_receives),
        CASE(memory_that_goes),
        CASE(a_failed_end_is_silent),
        CASE(limited_members_do_not_meet),
        CASE(datagrams_need_the_key),
        CASE(half_messages_are_dropped),
        CASE(marks_come_back_as_notifications),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
