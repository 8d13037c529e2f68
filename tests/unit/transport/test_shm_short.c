/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages between neighbours, from the calls of the transport's table to delivery: which messages
 * are sent in a slot with a tag, behaviour of a full ring, and hostile neighbours. The neighbour's
 * rings are our own. */
#include "config.h"

#include "common/clock.h"
#include "fake_job.h"
#include "ring_memory.h"
#include "topology/topology.h"
#include "transport/shm/shm_private.h"
#include "unit.h"
#include "whole_table.h"

enum {
    slots = 16,
    lines = 64,
    us = 1 /* in the neighbourhood: the sender */,
    handler = 200,
    payload_max = 1024
};

static struct ring_memory requests, replies;
static struct tk_shm_conn links[2];
static struct tk_peer *peers[2];
static struct tk_doorbell bell;
static int32_t arguments[tk_max_args];

/* What came last. */
static struct {
    unsigned calls, tags, mediums;
    struct tk_peer *from;
    struct tk_message_head head;
    int32_t args[tk_max_args];
    char payload[payload_max];
    size_t nbytes;
    uintptr_t place;
    bool replied; /* what the handler does */
} got;

static void note(struct tk_peer *from, struct tk_message_head head, const int32_t *args)
{
    got.calls++;
    got.from = from;
    got.head = head;
    memcpy(got.args, args, 4u * head.nargs);
}

static void take(struct tk_arrival *arrival)
{
    const int32_t *args = (const int32_t *)(arrival->head + 1);
    note(arrival->peer, *arrival->head, args);
    /* padding: nothing of an older message, or of the sender's stack */
    if (arrival->head->nargs & 1)
        assert_int_equal(args[arrival->head->nargs], 0);
    assert_in_range(arrival->nbytes, 0, payload_max);
    got.nbytes = arrival->nbytes;
    got.place = (uintptr_t)arrival->payload;
    memcpy(got.payload, arrival->payload, arrival->nbytes);
    arrival->replied = got.replied;
}

static void take_medium(struct tk_arrival *arrival)
{
    got.mediums++;
    take(arrival);
}

static bool take_short(struct tk_peer *from, unsigned tag, const int32_t *args)
{
    got.tags++;
    note(from, tk_tag_head(tag), args);
    return false;
}

static struct {
    unsigned calls;
    struct tk_peer *to;
    struct tk_message_head head;
    int32_t args[2];
} later;

static enum tk_status send_later(struct tk_peer *to, struct tk_message_head head,
                                 const int32_t *args)
{
    later.calls++;
    later.to = to;
    later.head = head;
    memcpy(later.args, args, 4u * head.nargs);
    return TK_OK;
}

static enum tk_status send_small_later(struct tk_peer *to, unsigned tag, uint64_t args)
{
    const int32_t both[] = {(int32_t)args, (int32_t)(args >> 32)};
    return send_later(to, tk_tag_head(tag), both);
}

static void open_ring(struct ring_memory *memory, struct tk_ring_out *out, struct tk_ring_in *in)
{
    ring_memory_open(memory, slots, lines, 0);
    ring_memory_out(memory, out, us);
    ring_memory_in(memory, in);
}

static int open_neighbour(void **state)
{
    static uint32_t ranks[] = {0, 1};
    static uintptr_t offsets[2]; /* segments are mapped where they are */
    static uint32_t *keys[2];
    fake_job_open(2);
    tk_topology.nbrhd_ranks = ranks;
    tk_peers.offsets = offsets;
    tk_peers.keys = keys;
    memset(&got, 0, sizeof(got));
    memset(&later, 0, sizeof(later));
    for (int i = 0; i < tk_max_args; i++)
        arguments[i] = -7 * (i + 1);
    for (int i = 0; i < 2; i++)
        peers[i] = links[i].peer = tk_peer((uint32_t)i);
    tk_shm = (struct tk_shm){.links = links, .peers = peers, .size = 2};
    open_ring(&requests, &links[1].requests, &tk_shm.requests);
    open_ring(&replies, &links[1].replies, &tk_shm.replies);
    links[1].bell = &bell;
    tk_peer(1)->transport = &tk_transport_shm;
    tk_peer(1)->connection = &links[1];
    tk_deliver = take;
    tk_deliver_medium = take_medium;
    tk_deliver_short = take_short;
    return 0;
}

static int close_neighbour(void **state)
{
    tk_ring_in_close(&tk_shm.requests);
    tk_ring_in_close(&tk_shm.replies);
    ring_memory_close(&requests);
    ring_memory_close(&replies);
    tk_topology.nbrhd_ranks = NULL;
    fake_job_close();
    return 0;
}

static enum tk_status send_small(bool is_reply, unsigned nargs, bool immediate)
{
    uint64_t args = (uint32_t)arguments[0] | (uint64_t)(uint32_t)arguments[1] << 32;
    return tk_transport_shm.am.send_small(tk_peer(1), tk_tag(is_reply, nargs, handler), args,
                                          immediate ? NULL : send_small_later);
}

static enum tk_status send_short(bool is_reply, unsigned nargs, bool immediate)
{
    struct tk_message_head head = {.kind = is_reply ? TK_REPLY : TK_REQUEST,
                                   .category = TK_SHORT,
                                   .nargs = (uint8_t)nargs,
                                   .handler = handler};
    return tk_transport_shm.am.send_short(tk_peer(1), head, arguments,
                                          immediate ? NULL : send_later);
}

static void assert_came(bool is_reply, unsigned nargs)
{
    assert_true(tk_transport_shm.poll());
    assert_int_equal(got.calls, 1);
    assert_ptr_equal(got.from, tk_peer(1));
    assert_int_equal(got.head.kind, is_reply ? TK_REPLY : TK_REQUEST);
    assert_int_equal(got.head.category, TK_SHORT);
    assert_int_equal(got.head.handler, handler);
    assert_int_equal(got.head.nargs, nargs);
    assert_memory_equal(got.args, arguments, 4u * nargs);
    assert_false(tk_transport_shm.poll());
    got.calls = 0;
}

/* With a tag if possible, except once in a lap, when the ring looks full. */
static void shorts_of_every_argument_count_arrive(void **state)
{
    const unsigned with_tags = 2 * (3 + tk_shm_slot_args + 1), laps = 6;
    for (unsigned n = 0; n <= tk_max_args; n++)
        for (unsigned reply = 0; reply < 2; reply++) {
            if (n <= 2) {
                assert_int_equal(send_small(reply, n, false), TK_OK);
                assert_came(reply, n);
            }
            assert_int_equal(send_short(reply, n, false), TK_OK);
            assert_came(reply, n);
        }
    assert_in_range(got.tags, with_tags - laps, with_tags);
}

static char payload[payload_max];

static void fill_payload(void)
{
    for (unsigned i = 0; i < payload_max; i++)
        payload[i] = (char)(i * 5 + i / 64);
}

static struct {
    unsigned calls;
    struct tk_peer *to;
    uint64_t head;
    const int32_t *args;
    const void *payload;
    size_t nbytes;
} medium_later;

static enum tk_status send_medium_later(struct tk_peer *to, uint64_t head, const int32_t *args,
                                        const void *from, size_t nbytes)
{
    medium_later.calls++;
    medium_later.to = to;
    medium_later.head = head;
    medium_later.args = args;
    medium_later.payload = from;
    medium_later.nbytes = nbytes;
    return TK_OK;
}

static enum tk_status send_medium(enum tk_message_kind kind, unsigned nargs, size_t nbytes,
                                  bool immediate)
{
    return tk_transport_shm.am.send_medium(tk_peer(1), tk_head_of_medium(kind, handler, nargs),
                                           arguments, payload, nbytes,
                                           immediate ? NULL : send_medium_later);
}

static enum tk_status send_medium_as_any(enum tk_message_kind kind, unsigned nargs, size_t nbytes)
{
    struct tk_short front;
    struct tk_outgoing m = {.head = &front.head,
                            .head_size = tk_message_front(false, nargs),
                            .payload = payload,
                            .nbytes = nbytes};
    tk_short_build(&front,
                   (struct tk_message_head){.kind = (uint8_t)kind,
                                            .category = TK_MEDIUM,
                                            .nargs = (uint8_t)nargs,
                                            .handler = handler},
                   arguments);
    return tk_transport_shm.am.send(tk_peer(1), &m);
}

static void assert_medium_came(enum tk_message_kind kind, unsigned nargs, size_t nbytes)
{
    assert_true(tk_transport_shm.poll());
    assert_int_equal(got.calls, 1);
    assert_int_equal(got.head.kind, kind);
    assert_int_equal(got.head.category, TK_MEDIUM);
    assert_int_equal(got.head.handler, handler);
    assert_int_equal(got.head.packed, 0);
    assert_int_equal(got.head.reserved, 0);
    assert_int_equal(got.head.nargs, nargs);
    assert_memory_equal(got.args, arguments, 4u * nargs);
    assert_int_equal(got.nbytes, nbytes);
    assert_int_equal(got.place % 8, 0);
    assert_memory_equal(got.payload, payload, nbytes);
    assert_false(tk_transport_shm.poll());
    got.calls = 0;
}

/* Every shape, answered or not: in the slot, with its head there, or completely in lines. */
static void mediums_of_every_shape_arrive_aligned(void **state)
{
    static const size_t sizes[] = {0, 1, 7, 8, 40, 48, 49, 56, 57, 64, 65, 128, 600, payload_max};
    fill_payload();
    for (unsigned n = 0; n <= tk_max_args; n++)
        for (unsigned i = 0; i < 2 * sizeof(sizes) / sizeof(sizes[0]); i++) {
            const enum tk_message_kind kind = i % 2 ? TK_REPLY : TK_REQUEST;
            got.replied = n % 2;
            assert_int_equal(send_medium_as_any(kind, n, sizes[i / 2]), TK_OK);
            assert_medium_came(kind, n, sizes[i / 2]);
            /* Once in a lap the ring looks full to it, but is not. */
            assert_int_equal(send_medium(kind, n, sizes[i / 2], true), TK_OK);
            assert_medium_came(kind, n, sizes[i / 2]);
            const bool is_apart = n <= 10 && 8 + (n + 1) / 2 * 8 + sizes[i / 2] > tk_ring_slot_max;
            assert_int_equal(got.mediums, is_apart ? 2 : 0);
            got.mediums = 0;
        }
}

static void a_medium_that_finds_no_space_is_refused_or_waited_for(void **state)
{
    static const size_t sizes[] = {8, 400};
    fill_payload();
    memset(&medium_later, 0, sizeof(medium_later));
    for (unsigned i = 0; i < 2; i++) {
        while (send_medium(TK_REQUEST, 3, 400, true) == TK_OK)
            continue; /* the lines are full */
        assert_int_equal(send_medium(TK_REQUEST, 3, 400, false), TK_OK);
        assert_int_equal(medium_later.calls, 1 + 2 * i);
        while (send_medium(TK_REQUEST, 3, 8, true) == TK_OK)
            continue; /* and the slots */
        assert_int_equal(send_medium(TK_REQUEST, 3, sizes[i], true), TK_BUSY);
        assert_int_equal(send_medium(TK_REQUEST, 3, sizes[i], false), TK_OK);
        assert_int_equal(medium_later.calls, 2 + 2 * i);
        assert_ptr_equal(medium_later.to, tk_peer(1));
        assert_int_equal(medium_later.head, tk_head_of_medium(TK_REQUEST, handler, 3));
        assert_ptr_equal(medium_later.args, arguments);
        assert_ptr_equal(medium_later.payload, payload);
        assert_int_equal(medium_later.nbytes, sizes[i]);
    }
}

/* A handler that waits for space for its reply serves these and nothing else. */
static void replies_have_a_ring_of_their_own(void **state)
{
    assert_int_equal(send_small(false, 1, false), TK_OK);
    assert_int_equal(send_short(false, 5, false), TK_OK);
    assert_false(tk_transport_shm.reap_in_handler());
    assert_int_equal(send_small(true, 2, false), TK_OK);
    assert_int_equal(send_short(true, 5, false), TK_OK);
    assert_true(tk_transport_shm.reap_in_handler());
    assert_int_equal(got.calls, 2);
}

static void a_full_ring_is_busy_or_waited_for(void **state)
{
    for (unsigned i = 0; i < slots; i++)
        assert_int_equal(send_small(false, 2, true), TK_OK);
    assert_int_equal(send_small(false, 2, true), TK_BUSY);
    assert_int_equal(send_short(false, 2, true), TK_BUSY);
    assert_int_equal(later.calls, 0);
    assert_int_equal(send_small(false, 2, false), TK_OK);
    assert_int_equal(later.calls, 1);
    assert_ptr_equal(later.to, tk_peer(1));
    assert_int_equal(later.head.kind, TK_REQUEST);
    assert_int_equal(later.head.handler, handler);
    assert_int_equal(later.head.nargs, 2);
    assert_memory_equal(later.args, arguments, 8);
    assert_int_equal(send_short(false, 1, false), TK_OK);
    assert_int_equal(later.calls, 2);
}

/* No poll finds the ring empty, although that is when threads return space that others left. */
static void space_comes_back_lap_after_lap(void **state)
{
    unsigned sent = 0;
    for (unsigned lap = 0; lap < 10; lap++) {
        for (unsigned i = 0; i < slots - slots / 8; i++, sent++)
            assert_int_equal(i % 4 ? send_small(false, 0, true) : send_short(false, 16, true),
                             TK_OK);
        while (got.calls < sent)
            assert_true(tk_transport_shm.poll());
    }
}

/* The message that ends an eighth is finished first, so its thread gives nothing back; nor does the
 * thread that finishes the message in front of it. */
static void leave_space(bool is_reply, struct tk_ring_in *in)
{
    struct tk_ring_item item[slots / 8];
    for (unsigned i = 0; i < slots / 8; i++) {
        assert_int_equal(send_small(is_reply, 0, true), TK_OK);
        assert_true(tk_ring_take(in, &item[i]));
    }
    for (unsigned i = slots / 8; i-- > 0;)
        tk_ring_done(in, &item[i]);
}

/* A neighbour's handler may wait for space in the quiet one. */
static void space_left_in_one_ring_comes_back_while_the_other_is_never_empty(void **state)
{
    const struct ring_memory *quiet[] = {&requests, &replies};
    if (!TK_THREADED)
        skip();
    for (unsigned reply = 0; reply < 2; reply++) {
        const struct tk_ring_shared *shared = quiet[reply]->shared;
        leave_space(reply, reply ? &tk_shm.replies : &tk_shm.requests);
        assert_int_not_equal(shared->head, shared->tail);
        for (unsigned i = 0; i < slots; i++) {
            assert_int_equal(send_small(!reply, 0, true), TK_OK);
            assert_true(tk_transport_shm.poll());
        }
        assert_int_equal(shared->head, shared->tail);
    }
}

/* Two threads that try again at once take the line from each other for every message. */
static void a_thread_leaves_the_ring_to_another_for_a_moment(void **state)
{
    if (!TK_THREADED)
        skip();
    for (unsigned reply = 0; reply < 2; reply++) {
        struct tk_ring_in *in = reply ? &tk_shm.replies : &tk_shm.requests;
        assert_int_equal(send_small(reply, 0, true), TK_OK);
        tk_lock(&in->taking); /* as if another thread were about to take the message */
        uint64_t begin = tk_now();
        assert_false(tk_transport_shm.poll());
        assert_true(tk_now() - begin >= TK_SECOND / 5000000);
        tk_unlock(&in->taking);
        assert_true(tk_transport_shm.poll());
    }
}

static enum tk_status send_reserved(struct tk_am_reservation *r)
{
    struct {
        struct tk_message_head head;
        struct tk_long_head place;
    } front = {.head = {.kind = r->kind, .category = TK_LONG, .handler = handler}};
    struct tk_outgoing m = {.head = &front.head, .head_size = sizeof(front)};
    return tk_transport_shm.am.send_reserved(r, &m);
}

/* A refused reservation takes no slot, which would never be filled, and does not enter the queue,
 * which it would never leave. */
static void what_is_reserved_finds_a_place_in_the_ring_or_leaves_it_alone(void **state)
{
    (void)state;
    for (unsigned reply = 0; reply < 2; reply++) {
        struct tk_am_reservation r = {.peer = tk_peer(1), .kind = reply ? TK_REPLY : TK_REQUEST};
        const struct tk_ring_shared *shared = reply ? replies.shared : requests.shared;
        const struct tk_ring_out *out = reply ? &links[1].replies : &links[1].requests;
        assert_int_equal(tk_transport_shm.am.reserve(&r, false, false), TK_OK);
        while (send_small(reply, 0, true) == TK_OK)
            continue;
        const uint64_t tail = shared->tail;
        for (int i = 0; i < 10; i++) {
            assert_int_equal(tk_transport_shm.am.reserve_place(&r), TK_BUSY);
            assert_int_equal(send_reserved(&r), TK_BUSY);
            assert_int_equal(shared->tail, tail);
            assert_int_equal(out->queue.waiting, 0);
            assert_null(r.tx);
        }
        while (tk_transport_shm.poll())
            continue;
        const unsigned calls = got.calls;
        assert_int_equal(tk_transport_shm.am.reserve_place(&r), TK_OK);
        assert_int_not_equal(shared->tail, tail);
        assert_false(tk_transport_shm.poll()); /* nothing is in it so far */
        assert_int_equal(send_reserved(&r), TK_OK);
        assert_true(tk_transport_shm.poll());
        assert_int_equal(got.calls, calls + 1);
        assert_int_equal(got.head.category, TK_LONG);
    }
}

struct bad {
    uint16_t from, size;
    struct tk_message_head head;
    struct tk_ring_note note; /* in front of the head; not there if it is 0 */
};

static void arrive(void *what)
{
    const struct bad *bad = what;
    struct tk_ring_out out;
    uint64_t ticket = 0;
    ring_memory_out(&requests, &out, bad->from);
    char *at = tk_ring_claim(&out, &ticket);
    if (bad->note.head) {
        memcpy(at, &bad->note, sizeof(bad->note));
        at += sizeof(bad->note);
    }
    memcpy(at, &bad->head, sizeof(bad->head));
    tk_ring_publish(&out, ticket, bad->size);
    tk_transport_shm.poll();
}

/* The child's message is in our rings. */
static void assert_refused(struct bad *bad, const char *text)
{
    unit_assert_panic(arrive, bad, text);
    close_neighbour(NULL);
    open_neighbour(NULL);
}

static void what_makes_no_sense_is_refused_by_name(void **state)
{
    struct bad bad[] = {
        {.from = 1, .size = (uint16_t)tk_tag(false, tk_shm_slot_args + 1, handler)},
        {.from = 1, .size = 4},
        {.from = 1, .size = 8, .head = {.kind = TK_CONTROL + 1}},
        {.from = 1, .size = 8, .head = {.category = TK_LONG + 1}},
        {.from = 1, .size = 56, .head = {.nargs = tk_max_args + 1}},
        {.from = 1, .size = tk_ring_slot_max + lines},
        {.from = 1, .size = tk_ring_slot_max + 1, .head = {.handler = 4}}, /* a note: 4 bytes */
    };
    const struct tk_message_head medium = {.category = TK_MEDIUM, .handler = handler};
    struct tk_message_head medium_of_one = medium;
    medium_of_one.nargs = 1;
    struct bad cut[] = {{.from = 1, .size = 8, .head = {.nargs = 1}},
                        {.from = 1,
                         .size = tk_ring_slot_max + 1,
                         .head = medium_of_one,
                         .note = {.nbytes = 64, .head = 8}}};
    struct bad nobody[] = {{.from = 2, .size = (uint16_t)tk_tag(false, 0, handler)},
                           {.from = 2, .size = 8},
                           {.from = 2,
                            .size = tk_ring_slot_max + 1,
                            .head = medium,
                            .note = {.nbytes = 64, .head = 8}}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        assert_refused(&bad[i], "a malformed message came from neighbour rank 1 (");
    for (size_t i = 0; i < sizeof(cut) / sizeof(cut[0]); i++)
        assert_refused(&cut[i], "shorter than its head says from neighbour rank 1 (");
    for (size_t i = 0; i < sizeof(nobody) / sizeof(nobody[0]); i++)
        assert_refused(&nobody[i], "from neighbour 2, but there are only 2");
}

#define PROMISE(name) cmocka_unit_test_setup_teardown(name, open_neighbour, close_neighbour)

static void the_table_is_whole(void **state)
{
    assert_table_is_whole(&tk_transport_shm);
    assert_non_null(tk_transport_shm.neighbour);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_table_is_whole),
    PROMISE(shorts_of_every_argument_count_arrive),
    PROMISE(mediums_of_every_shape_arrive_aligned),
    PROMISE(replies_have_a_ring_of_their_own),
    PROMISE(a_full_ring_is_busy_or_waited_for),
    PROMISE(a_medium_that_finds_no_space_is_refused_or_waited_for),
    PROMISE(space_comes_back_lap_after_lap),
    PROMISE(space_left_in_one_ring_comes_back_while_the_other_is_never_empty),
    PROMISE(a_thread_leaves_the_ring_to_another_for_a_moment),
    PROMISE(what_is_reserved_finds_a_place_in_the_ring_or_leaves_it_alone),
    PROMISE(what_makes_no_sense_is_refused_by_name),
};

UNIT_MAIN(tests)
