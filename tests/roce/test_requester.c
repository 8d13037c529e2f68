/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The requester, packet by packet: segmentation, acknowledgements, repetitions and their times, and
 * when it gives up with which status. Single-threaded, simulated time. */
#include "config.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "rig.h"

enum { first = 0xfffffe, ack = ROCE_SYNDROME_ACK | ROCE_CREDITS_NONE };

static struct rig *started(void)
{
    struct rig *r = rig_new();

    rig_start(r);
    return r;
}

static void completed(const struct rig *r, unsigned n, enum roce_status last)
{
    assert_int_equal(r->completions, n);
    for (unsigned i = 1; i < n; i++)
        assert_int_equal(r->completion[i].id, r->completion[i - 1].id + 1);
    assert_int_equal(r->completion[n - 1].status, last);
}

/* ---- first transmissions ---- */

static void messages_are_cut_by_the_mtu(void **unused)
{
    struct rig *r = started();

    rig_post(r, ROCE_DO_WRITE, 2500, ROCE_WITH_IMM | ROCE_SOLICITED);
    rig_expect(r, ROCE_WRITE_FIRST, first);
    assert_int_equal(r->out.dma_length, 2500);
    assert_int_equal(r->out.payload_length, 1024);
    assert_false(r->out.ack_request || r->out.solicited);
    rig_expect(r, ROCE_WRITE_MIDDLE, first + 1);
    assert_memory_equal(r->out.payload, r->buffer + 1024, 1024);
    rig_expect(r, ROCE_WRITE_LAST_IMM, first + 2);
    assert_int_equal(r->out.payload_length, 452);
    assert_int_equal(r->out.imm, 0xabcd1234);
    assert_true(r->out.ack_request && r->out.solicited);
    rig_silent(r);
    rig_ack(r, first + 2, ack);
    completed(r, 1, ROCE_SUCCESS);
    rig_post(r, ROCE_DO_SEND, 0, ROCE_WITH_INVALIDATE);
    rig_expect(r, ROCE_SEND_ONLY_INVALIDATE, first + 3);
    assert_int_equal(r->out.invalidate, 0xabcd1234);
    rig_post(r, ROCE_DO_SEND, 1024, 0);
    rig_expect(r, ROCE_SEND_ONLY, first + 4);
    rig_post(r, ROCE_DO_SEND, 1025, 0);
    rig_expect(r, ROCE_SEND_FIRST, first + 5);
    rig_expect(r, ROCE_SEND_LAST, first + 6);
    rig_ack(r, first + 6, ack);
    completed(r, 4, ROCE_SUCCESS);
    rig_free(r);
}

/* With the last of a run, and with every sixteenth. */
static void acknowledgements_are_requested(void **unused)
{
    struct rig *r = started();
    unsigned asked = 0;

    for (unsigned i = 0; i < 20; i++)
        rig_post(r, ROCE_DO_WRITE, 8, 0);
    for (unsigned i = 0; i < 20; i++) {
        assert_true(rig_out(r));
        asked += r->out.ack_request;
        assert_int_equal(r->out.ack_request, i == 15 || i == 19);
    }
    assert_int_equal(asked, 2);
    rig_free(r);
}

static void the_window_limits_packets_and_bytes(void **unused)
{
    struct rig *r = rig_new();

    r->a.requests = 1000;
    r->a.window_packets = 40;
    r->a.window_bytes = 10 * 1024;
    rig_start(r);
    rig_post(r, ROCE_DO_WRITE, 30 * 1024, 0);
    assert_int_equal(rig_drain(r), 10);
    assert_true(r->out.ack_request);
    rig_ack(r, first + 3, ack);
    assert_int_equal(rig_drain(r), 4);
    rig_ack(r, first + 13, ack);
    assert_int_equal(rig_drain(r), 10);
    rig_ack(r, first + 23, ack);
    assert_int_equal(rig_drain(r), 6);
    rig_ack(r, first + 29, ack);
    for (unsigned i = 0; i < 100; i++)
        rig_post(r, ROCE_DO_WRITE, 1, 0);
    assert_int_equal(rig_drain(r), 40);
    rig_free(r);
}

static void a_long_read_is_requested_in_pieces(void **unused)
{
    struct rig *r = rig_new();

    r->a.max_rd_atomic = 2;
    r->a.read_packets = 4;
    rig_start(r);
    rig_post(r, ROCE_DO_READ, 10 * 1024 + 1, 0);
    rig_expect(r, ROCE_READ_REQUEST, first);
    assert_int_equal(r->out.dma_length, 4096);
    rig_expect(r, ROCE_READ_REQUEST, first + 4);
    assert_int_equal(r->out.va, 4096);
    rig_silent(r); /* two are outstanding */
    for (unsigned i = 0; i < 4; i++) {
        struct roce_packet p = rig_packet(r, ROCE_READ_RESPONSE_MIDDLE, first + i);

        p.payload_length = 1024;
        rig_in(r, &p);
    }
    rig_expect(r, ROCE_READ_REQUEST, first + 8);
    assert_int_equal(r->out.dma_length, 2049);
    rig_silent(r);
    rig_free(r);
}

static void a_fence_waits_for_reads(void **unused)
{
    struct rig *r = started();
    struct roce_packet p;

    rig_post(r, ROCE_DO_READ, 8, 0);
    rig_post(r, ROCE_DO_WRITE, 8, 0);
    rig_post(r, ROCE_DO_WRITE, 8, ROCE_FENCED);
    rig_expect(r, ROCE_READ_REQUEST, first);
    rig_expect(r, ROCE_WRITE_ONLY, first + 1);
    assert_true(r->out.ack_request);
    rig_silent(r);
    p = rig_packet(r, ROCE_READ_RESPONSE_ONLY, first);
    p.payload_length = 8;
    rig_in(r, &p);
    rig_expect(r, ROCE_WRITE_ONLY, first + 2);
    rig_free(r);
}

static void paused_and_drained(void **unused)
{
    struct rig *r = started();

    rig_post(r, ROCE_DO_WRITE, 2048, 0);
    rig_post(r, ROCE_DO_WRITE, 8, 0);
    rig_expect(r, ROCE_WRITE_FIRST, first);
    roce_pause(r->e, true);
    rig_expect(r, ROCE_WRITE_LAST, first + 1);
    rig_silent(r);
    assert_false(roce_drained(r->e));
    rig_ack(r, first + 1, ack);
    assert_true(roce_drained(r->e));
    rig_silent(r);
    roce_pause(r->e, false);
    rig_expect(r, ROCE_WRITE_ONLY, first + 2);
    rig_free(r);
}

/* ---- repetitions ---- */

static void a_nak_repeats_from_its_number_once(void **unused)
{
    struct rig *r = started();

    for (unsigned i = 0; i < 6; i++)
        rig_post(r, ROCE_DO_WRITE, 8, 0);
    assert_int_equal(rig_drain(r), 6);
    rig_ack(r, first + 2, ROCE_NAK_SEQUENCE);
    completed(r, 2, ROCE_SUCCESS);
    rig_expect(r, ROCE_WRITE_ONLY, first + 2);
    rig_ack(r, first + 2, ROCE_NAK_SEQUENCE); /* a copy of the NAK */
    rig_expect(r, ROCE_WRITE_ONLY, first + 3);
    assert_int_equal(rig_drain(r), 2);
    assert_int_equal(roce_counters(r->e)->repeated, 4);
    assert_int_equal(roce_counters(r->e)->halvings, 1);
    rig_ack(r, first + 5, ack);
    completed(r, 6, ROCE_SUCCESS);
    rig_ack(r, first + 5, ack);
    rig_ack(r, first + 6, ack); /* of the future */
    assert_int_equal(roce_counters(r->e)->stale, 2);
    rig_free(r);
}

static void a_missing_response_is_requested_again(void **unused)
{
    struct rig *r = started();
    struct roce_packet p;

    rig_post(r, ROCE_DO_READ, 3000, 0);
    rig_post(r, ROCE_DO_WRITE, 8, 0);
    assert_int_equal(rig_drain(r), 2);
    memset(r->buffer, 0, rig_bytes);
    memset(r->memory, 0x5a, rig_bytes);
    p = rig_packet(r, ROCE_READ_RESPONSE_FIRST, first);
    p.payload = r->memory;
    p.payload_length = 1024;
    rig_in(r, &p);
    rig_ack(r, first + 3, ack); /* the write's: the others must have been lost */
    assert_int_equal(r->completions, 0);
    rig_expect(r, ROCE_READ_REQUEST, first + 1);
    assert_int_equal(r->out.va, 1024);
    assert_int_equal(r->out.dma_length, 3000 - 1024);
    for (unsigned i = 1; i < 3; i++) {
        p.psn = (first + i) & 0xffffff;
        p.payload_length = i == 2 ? 3000 - 2048 : 1024;
        rig_in(r, &p);
    }
    completed(r, 1, ROCE_SUCCESS);
    assert_memory_equal(r->buffer, r->memory, 3000);
    rig_expect(r, ROCE_WRITE_ONLY, first + 3);
    rig_ack(r, first + 3, ack);
    completed(r, 2, ROCE_SUCCESS);
    rig_free(r);
}

static void time_repeats_and_gives_up(void **unused)
{
    struct rig *r = started();
    roce_time begin = r->now, limit = 4 * roce_timeout_ns(14);
    unsigned sent = 0;

    rig_post(r, ROCE_DO_WRITE, 8, 0);
    rig_post(r, ROCE_DO_WRITE, 8, 0);
    while (r->completions == 0) {
        sent += rig_drain(r);
        assert_true(r->now - begin <= limit + roce_timeout_ns(14));
        assert_true(r->completions || roce_deadline(r->e) > r->now);
        if (r->completions == 0)
            r->now = roce_deadline(r->e);
    }
    assert_true(r->now - begin >= limit);
    assert_true(sent >= 5);
    assert_int_equal(r->completions, 2);
    assert_int_equal(r->completion[0].status, ROCE_RETRIES_EXCEEDED);
    assert_int_equal(r->completion[1].status, ROCE_FLUSHED);
    assert_true(roce_failed(r->e));
    assert_int_equal(r->event[0], ROCE_EVENT_REQUESTER_ERROR);
    assert_true(roce_deadline(r->e) == ROCE_NEVER);
    rig_post(r, ROCE_DO_WRITE, 8, 0);
    completed(r, 3, ROCE_FLUSHED);
    rig_free(r);
}

static void some_never_give_up(struct rig *r)
{
    rig_start(r);
    rig_post(r, ROCE_DO_WRITE, 8, 0);
    for (unsigned i = 0; i < 1000; i++) {
        rig_drain(r);
        r->now = roce_deadline(r->e);
    }
    assert_int_equal(r->completions, 0);
    rig_ack(r, first, ack);
    completed(r, 1, ROCE_SUCCESS);
    rig_free(r);
}

static void for_ever(void **unused)
{
    struct rig *r = rig_new();

    r->a.retry_count = 7;
    r->a.retry_for_ever = true;
    some_never_give_up(r);
    r = rig_new();
    r->a.timeout = 0;
    some_never_give_up(r);
}

/* A round trip of 100 us makes the time shorter than the first 20 ms, but not below 1 ms. */
static void time_adapts(void **unused)
{
    struct rig *r = started();

    rig_post(r, ROCE_DO_WRITE, 8, 0);
    rig_drain(r);
    assert_true(roce_deadline(r->e) - r->now == 20000000);
    for (unsigned i = 0; i < 20; i++) {
        r->now += 100000;
        rig_ack(r, first + i, ack);
        assert_true(roce_deadline(r->e) == ROCE_NEVER);
        rig_post(r, ROCE_DO_WRITE, 8, 0);
        rig_drain(r);
    }
    assert_true(roce_deadline(r->e) - r->now == 1000000);
    for (unsigned i = 20; i < 60; i++) {
        r->now += 5000000;
        rig_ack(r, first + i, ack);
        rig_post(r, ROCE_DO_WRITE, 8, 0);
        rig_drain(r);
    }
    assert_true(roce_deadline(r->e) - r->now >= 5000000);
    rig_free(r);
}

/* Each repetition waits twice as long, up to the time-out; progress ends that. */
static void repetitions_become_rare(void **unused)
{
    struct rig *r = started();
    roce_time wait = 20000000;

    rig_post(r, ROCE_DO_WRITE, 8, 0);
    for (unsigned i = 0; i < 2; i++, wait *= 2) {
        rig_drain(r);
        assert_true(roce_deadline(r->e) == r->now + wait);
        r->now = roce_deadline(r->e);
    }
    rig_drain(r);
    assert_true(roce_deadline(r->e) == r->now + roce_timeout_ns(14));
    rig_ack(r, first, ack);
    rig_post(r, ROCE_DO_WRITE, 8, 0);
    rig_drain(r);
    assert_true(roce_deadline(r->e) == r->now + 20000000);
    rig_free(r);
}

/* An answer may belong to the first or the second copy (Karn's rule). */
static void repeated_packets_measure_nothing(void **unused)
{
    struct rig *r = started();

    rig_post(r, ROCE_DO_WRITE, 8, 0);
    rig_drain(r);
    rig_ack(r, first, ROCE_NAK_SEQUENCE);
    rig_drain(r);
    r->now += 10;
    rig_ack(r, first, ack);
    rig_post(r, ROCE_DO_WRITE, 8, 0);
    rig_drain(r);
    assert_true(roce_deadline(r->e) == r->now + 20000000);
    rig_free(r);
}

static void the_window_has_a_limit_and_a_start(void **unused)
{
    struct rig *r = rig_new();
    unsigned acked = 0;

    r->a.requests = 1000;
    r->a.window_packets = 4;
    rig_start(r);
    for (unsigned i = 0; i < 200; i++)
        rig_post(r, ROCE_DO_WRITE, 8, 0);
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(rig_drain(r), 4);
        acked += 4;
        rig_ack(r, first + acked - 1, ack);
    }
    assert_int_equal(rig_drain(r), 4);
    r->now = roce_deadline(r->e); /* everything was lost: one packet finds out whether it goes on */
    assert_int_equal(rig_drain(r), 1);
    rig_ack(r, first + acked, ack);
    assert_int_equal(rig_drain(r), 2);
    rig_free(r);
}

/* The only read that is allowed is half done, and goes on where its responses ended. */
static void half_a_read_is_repeated(void **unused)
{
    struct rig *r = rig_new();
    struct roce_packet p;

    r->a.max_rd_atomic = 1;
    rig_start(r);
    rig_post(r, ROCE_DO_READ, 2048, 0);
    rig_drain(r);
    p = rig_packet(r, ROCE_READ_RESPONSE_FIRST, first);
    p.payload_length = 1024;
    rig_in(r, &p);
    r->now = roce_deadline(r->e);
    rig_expect(r, ROCE_READ_REQUEST, first + 1);
    assert_int_equal(r->out.dma_length, 1024);
    rig_free(r);
}

static void a_receiver_that_is_not_ready(void **unused)
{
    struct rig *r = started();

    assert_int_equal(roce_rnr_ns(1), 10000);
    assert_int_equal(roce_rnr_ns(0), 655360000);
    rig_post(r, ROCE_DO_SEND, 8, 0);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(r->completions, 0);
        assert_int_equal(rig_drain(r), 1);
        rig_ack(r, first, ROCE_SYNDROME_RNR | 14); /* 1.28 ms */
        rig_silent(r);
        if (i < 2)
            assert_true(roce_deadline(r->e) == r->now + roce_rnr_ns(14));
        r->now += roce_rnr_ns(14) - 1;
        rig_silent(r);
        r->now++;
    }
    completed(r, 1, ROCE_RNR_EXCEEDED);
    rig_free(r);
}

/* The count restarts with each message that gets through. */
static void readiness_counts_from_progress(void **unused)
{
    struct rig *r = started();

    for (unsigned i = 0; i < 5; i++) {
        rig_post(r, ROCE_DO_SEND, 8, 0);
        for (unsigned k = 0; k < 2; k++) {
            assert_int_equal(rig_drain(r), 1);
            rig_ack(r, first + i, ROCE_SYNDROME_RNR | 1);
            r->now += roce_rnr_ns(1);
        }
        assert_int_equal(rig_drain(r), 1);
        rig_ack(r, first + i, ack);
        completed(r, i + 1, ROCE_SUCCESS);
    }
    rig_free(r);
}

static void seven_waits_for_ever(void **unused)
{
    struct rig *r = rig_new();

    r->a.rnr_retry = 7;
    rig_start(r);
    rig_post(r, ROCE_DO_SEND, 8, 0);
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(rig_drain(r), 1);
        rig_ack(r, first, ROCE_SYNDROME_RNR | 1);
        r->now += roce_rnr_ns(1);
    }
    assert_int_equal(r->completions, 0);
    rig_free(r);
}

static void congestion_halves_the_window(void **unused)
{
    struct rig *r = rig_new();
    struct roce_packet p;

    r->a.requests = 1000;
    r->a.window_packets = 32;
    rig_start(r);
    for (unsigned i = 0; i < 300; i++)
        rig_post(r, ROCE_DO_WRITE, 8, 0);
    assert_int_equal(rig_drain(r), 32);
    p = rig_packet(r, 0, 0);
    p.opcode = ROCE_CNP;
    rig_in(r, &p);
    rig_in(r, &p); /* of the same packets */
    rig_ack(r, first + 31, ack);
    assert_int_equal(rig_drain(r), 17); /* and one more for a round trip */
    assert_int_equal(roce_counters(r->e)->halvings, 1);
    rig_free(r);
}

static unsigned flight(struct rig *r, unsigned *acked)
{
    unsigned n = rig_drain(r);

    *acked += n;
    rig_ack(r, first + *acked - 1, ack);
    return n;
}

/* Few packets at first, because others may send to the same receiver, and again after a pause; then
 * no slower than before it. */
static void the_window_opens_by_doubling(void **unused)
{
    struct rig *r = rig_new();
    unsigned acked = 0;

    r->a.requests = 1000;
    r->a.window_packets = 16;
    r->a.window_first = 0;
    rig_start(r);
    for (unsigned i = 0; i < 40; i++)
        rig_post(r, ROCE_DO_WRITE, 8, 0);
    for (unsigned n = 4; n <= 16; n *= 2)
        assert_int_equal(flight(r, &acked), n);
    while (acked < 40)
        flight(r, &acked);
    r->now += 100000; /* not long enough to be a pause */
    for (unsigned i = 0; i < 40; i++)
        rig_post(r, ROCE_DO_WRITE, 8, 0);
    assert_int_equal(flight(r, &acked), 16);
    while (acked < 80)
        flight(r, &acked);
    r->now += 1000000000;
    for (unsigned i = 0; i < 40; i++)
        rig_post(r, ROCE_DO_WRITE, 8, 0);
    for (unsigned n = 4; n <= 16; n *= 2)
        assert_int_equal(flight(r, &acked), n);
    rig_free(r);
}

/* ---- errors ---- */

static void final_naks_have_a_status_each(void **unused)
{
    static const struct {
        uint8_t nak;
        enum roce_status status;
    } rows[] = {{ROCE_NAK_INVALID, ROCE_REMOTE_INVALID},
                {ROCE_NAK_ACCESS, ROCE_REMOTE_ACCESS},
                {ROCE_NAK_OPERATION, ROCE_REMOTE_OPERATION},
                {0x64, ROCE_BAD_RESPONSE}};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct rig *r = started();

        for (unsigned k = 0; k < 4; k++)
            rig_post(r, ROCE_DO_WRITE, 8, 0);
        rig_drain(r);
        rig_ack(r, first + 1, rows[i].nak);
        assert_int_equal(r->completions, 4);
        assert_int_equal(r->completion[0].status, ROCE_SUCCESS);
        assert_int_equal(r->completion[1].status, rows[i].status);
        assert_int_equal(r->completion[2].status, ROCE_FLUSHED);
        assert_int_equal(r->completion[3].status, ROCE_FLUSHED);
        rig_silent(r);
        rig_free(r);
    }
}

/* The read before the refused request has lost its response: that is repeated first, then the error
 * is reported. */
static void an_error_waits_for_reads_before_it(void **unused)
{
    struct rig *r = started();
    struct roce_packet p;

    rig_post(r, ROCE_DO_READ, 8, 0);
    rig_post(r, ROCE_DO_WRITE, 8, 0);
    rig_drain(r);
    rig_ack(r, first + 1, ROCE_NAK_ACCESS);
    assert_int_equal(r->completions, 0);
    rig_expect(r, ROCE_READ_REQUEST, first);
    rig_silent(r); /* not the write again */
    p = rig_packet(r, ROCE_READ_RESPONSE_ONLY, first);
    p.payload_length = 8;
    rig_in(r, &p);
    completed(r, 2, ROCE_REMOTE_ACCESS);
    assert_int_equal(r->completion[0].status, ROCE_SUCCESS);
    rig_free(r);
}

static void local_errors_come_in_order(void **unused)
{
    struct rig *r = started();

    rig_post(r, ROCE_DO_WRITE, 8, 0);
    rig_drain(r);
    r->fetch = ROCE_LOCAL_PROTECTION;
    rig_post(r, ROCE_DO_WRITE, 8, 0);
    rig_silent(r);
    assert_int_equal(r->completions, 0);
    rig_ack(r, first, ack);
    completed(r, 2, ROCE_LOCAL_PROTECTION);
    assert_int_equal(r->completion[0].status, ROCE_SUCCESS);
    rig_free(r);

    r = rig_new();
    r->a.max_rd_atomic = 0;
    rig_start(r);
    rig_post(r, ROCE_DO_READ, 8, 0);
    rig_silent(r);
    completed(r, 1, ROCE_LOCAL_OPERATION);
    rig_free(r);
}

static void a_response_of_the_wrong_size(void **unused)
{
    struct rig *r = started();
    struct roce_packet p;

    rig_post(r, ROCE_DO_READ, 8, 0);
    rig_drain(r);
    p = rig_packet(r, ROCE_READ_RESPONSE_ONLY, first);
    p.payload_length = 12;
    rig_in(r, &p);
    completed(r, 1, ROCE_BAD_RESPONSE);
    rig_free(r);
}

static void errors_of_posting(void **unused)
{
    struct rig *r = rig_new();
    struct roce_request q = {.kind = ROCE_DO_FETCH_ADD, .length = 4};

    r->a.requests = 3;
    rig_start(r);
    assert_int_equal(roce_post(r->e, &q), EINVAL);
    q = (struct roce_request){.kind = ROCE_DO_WRITE, .flags = ROCE_WITH_INVALIDATE};
    assert_int_equal(roce_post(r->e, &q), EINVAL);
    q.kind = 9;
    assert_int_equal(roce_post(r->e, &q), EINVAL);
    q = (struct roce_request){.kind = ROCE_DO_WRITE, .length = 0x80000001};
    assert_int_equal(roce_post(r->e, &q), EMSGSIZE);
    for (unsigned i = 0; i < 3; i++)
        rig_post(r, ROCE_DO_WRITE, 8, 0);
    q.length = 8;
    assert_int_equal(roce_post(r->e, &q), ENOMEM);
    assert_int_equal(roce_posted(r->e), 3);
    roce_fail(r->e);
    assert_int_equal(r->completions, 3);
    assert_int_equal(r->completion[0].status, ROCE_FLUSHED);
    roce_reset(r->e);
    assert_false(roce_failed(r->e));
    roce_ready_to_receive(r->e, &r->a);
    roce_ready_to_send(r->e, &r->a);
    rig_post(r, ROCE_DO_WRITE, 8, 0);
    rig_expect(r, ROCE_WRITE_ONLY, first);
    rig_free(r);
    r = rig_new();
    r->a.path_mtu = 1000;
    assert_null(roce_open(&r->a, &(struct roce_calls){0}, r));
    assert_int_equal(errno, EINVAL);
    rig_free(r);
}

/* ---- without answers ---- */

static void unreliable_ones_complete_when_sent(void **unused)
{
    struct rig *r = rig_new();
    struct roce_request q = {.kind = ROCE_DO_READ, .length = 8};

    r->a.transport = ROCE_UC;
    rig_start(r);
    assert_int_equal(roce_post(r->e, &q), EINVAL);
    rig_post(r, ROCE_DO_WRITE, 1500, 0);
    rig_expect(r, ROCE_WRITE_FIRST, first);
    assert_int_equal(r->completions, 0);
    rig_expect(r, ROCE_WRITE_LAST, first + 1);
    completed(r, 1, ROCE_SUCCESS);
    assert_true(roce_deadline(r->e) == ROCE_NEVER);
    r->fetch = ROCE_LOCAL_PROTECTION;
    rig_post(r, ROCE_DO_WRITE, 8, 0);
    rig_post(r, ROCE_DO_WRITE, 8, 0);
    rig_silent(r);
    completed(r, 3, ROCE_FLUSHED);
    assert_int_equal(r->completion[1].status, ROCE_LOCAL_PROTECTION);
    rig_post(r, ROCE_DO_WRITE, 8, 0);
    completed(r, 4, ROCE_FLUSHED);
    r->fetch = ROCE_SUCCESS;
    roce_resume(r->e);
    rig_post(r, ROCE_DO_WRITE, 8, 0);
    assert_int_equal(rig_drain(r), 1);
    completed(r, 5, ROCE_SUCCESS);
    rig_free(r);
}

static void datagrams_name_their_destination(void **unused)
{
    struct rig *r = rig_new();
    struct roce_request q = {.kind = ROCE_DO_SEND, .length = 1025};

    r->a.transport = ROCE_UD;
    rig_start(r);
    assert_int_equal(roce_post(r->e, &q), EMSGSIZE);
    rig_post(r, ROCE_DO_SEND, 100, ROCE_WITH_IMM);
    rig_expect(r, ROCE_SEND_ONLY_IMM, first);
    assert_int_equal(r->out.src_qpn, rig_qpn);
    assert_int_equal(r->out.qkey, 0x11111111);
    assert_int_equal(r->of->dest_qpn, rig_peer);
    completed(r, 1, ROCE_SUCCESS);
    rig_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_are_cut_by_the_mtu),
        cmocka_unit_test(acknowledgements_are_requested),
        cmocka_unit_test(the_window_limits_packets_and_bytes),
        cmocka_unit_test(a_long_read_is_requested_in_pieces),
        cmocka_unit_test(a_fence_waits_for_reads),
        cmocka_unit_test(paused_and_drained),
        cmocka_unit_test(a_nak_repeats_from_its_number_once),
        cmocka_unit_test(a_missing_response_is_requested_again),
        cmocka_unit_test(time_repeats_and_gives_up),
        cmocka_unit_test(for_ever),
        cmocka_unit_test(time_adapts),
        cmocka_unit_test(a_receiver_that_is_not_ready),
        cmocka_unit_test(readiness_counts_from_progress),
        cmocka_unit_test(seven_waits_for_ever),
        cmocka_unit_test(repetitions_become_rare),
        cmocka_unit_test(repeated_packets_measure_nothing),
        cmocka_unit_test(the_window_has_a_limit_and_a_start),
        cmocka_unit_test(half_a_read_is_repeated),
        cmocka_unit_test(congestion_halves_the_window),
        cmocka_unit_test(the_window_opens_by_doubling),
        cmocka_unit_test(final_naks_have_a_status_each),
        cmocka_unit_test(an_error_waits_for_reads_before_it),
        cmocka_unit_test(local_errors_come_in_order),
        cmocka_unit_test(a_response_of_the_wrong_size),
        cmocka_unit_test(errors_of_posting),
        cmocka_unit_test(unreliable_ones_complete_when_sent),
        cmocka_unit_test(datagrams_name_their_destination),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
