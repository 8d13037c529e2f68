/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The promises of a ring of messages, one test each. One thread; the same for the library with
 * threads. test_shm_ring_model tests memory orders. */
#include "config.h"

#include "ring_memory.h"
#include "unit.h"

enum {
    slots = 16,
    lines = 64,
    head_size = 8, /* of most messages here */
    most = lines / 2 * tk_ring_line,
    largest = head_size + most /* the head is in the slot */
};

static struct ring_memory memory;
static struct tk_ring_out out;
static struct tk_ring_in in;
static char text[largest];

static void open_at(uint64_t start)
{
    ring_memory_open(&memory, slots, lines, start);
    ring_memory_out(&memory, &out, 7);
    ring_memory_in(&memory, &in);
}

static int open_ring(void **state)
{
    open_at(0);
    return 0;
}

static int close_ring(void **state)
{
    tk_ring_in_close(&in);
    ring_memory_close(&memory);
    return 0;
}

static enum tk_status send(uint32_t number, size_t nbytes)
{
    ring_text(text, 7, number, nbytes);
    return tk_ring_send(&out, text, head_size, text + head_size, nbytes - head_size);
}

static struct tk_ring_item take(uint32_t number, size_t nbytes)
{
    struct tk_ring_item item;
    uint32_t seen = 0;
    assert_true(tk_ring_ready(&in));
    assert_true(tk_ring_take(&in, &item));
    assert_int_equal(item.from, 7);
    assert_int_equal((uintptr_t)item.blob % 8, 0);
    assert_int_equal(ring_item_text(&item, text, sizeof(text)), nbytes);
    assert_true(ring_text_is(text, 7, &seen, nbytes));
    assert_int_equal(seen, number);
    return item;
}

static void take_and_done(uint32_t number, size_t nbytes)
{
    struct tk_ring_item item = take(number, nbytes);
    tk_ring_done(&in, &item);
}

/* Polls once more: with threads this returns space. */
static void assert_empty(void)
{
    struct tk_ring_item item;
    assert_false(tk_ring_take(&in, &item));
    assert_false(tk_ring_ready(&in));
}

static uint32_t fill(size_t nbytes)
{
    uint32_t sent = 0;
    while (send(sent, nbytes) == TK_OK)
        sent++;
    return sent;
}

static void an_empty_ring_has_nothing(void **state)
{
    assert_empty();
    assert_empty();
}

static void zeroed_memory_is_a_ring(void **state)
{
    memset(memory.shared, 0, tk_ring_bytes(slots));
    assert_empty();
    for (uint32_t i = 0; i < 3 * slots; i++) {
        assert_int_equal(send(i, 40), TK_OK);
        take_and_done(i, 40);
        assert_empty();
    }
}

static void messages_of_a_sender_come_in_their_order(void **state)
{
    for (uint32_t i = 0; i < slots; i++)
        assert_int_equal(send(i, ring_text_min + i % 3 * 50), TK_OK);
    for (uint32_t i = 0; i < slots; i++)
        take_and_done(i, ring_text_min + i % 3 * 50);
    assert_empty();
}

static void every_size_up_to_the_largest_comes_whole_at_every_place(void **state)
{
    assert_int_equal(tk_ring_message_max(slots, lines), most);
    for (uint32_t n = ring_text_min, i = 0; n <= largest; n += 1 + (n > 300) * 61, i++) {
        assert_int_equal(send(i, n), TK_OK);
        take_and_done(i, n);
        assert_empty();
    }
    assert_int_equal(send(0, largest), TK_OK);
    take_and_done(0, largest);
}

static void a_message_may_be_less_than_a_word(void **state)
{
    struct tk_ring_item item = {.blob = NULL};
    for (size_t n = 0; n <= tk_ring_slot_max; n++) {
        char guarded[tk_ring_slot_max + 1];
        memset(guarded, 'a' + (int)(n % 26), sizeof(guarded));
        assert_int_equal(tk_ring_send(&out, guarded, n, NULL, 0), TK_OK);
        assert_true(tk_ring_take(&in, &item));
        assert_int_equal(item.nbytes, n);
        assert_memory_equal(item.blob, guarded, n);
        tk_ring_done(&in, &item);
        assert_empty();
    }
}

static void what_is_built_in_place_comes_as_what_is_sent(void **state)
{
    uint64_t ticket = 0;
    char *blob = tk_ring_claim(&out, &ticket);
    assert_int_equal((uintptr_t)blob % 8, 0);
    ring_text(blob, 7, 1, tk_ring_slot_max);
    assert_empty();
    tk_ring_publish(&out, ticket, tk_ring_slot_max);
    take_and_done(1, tk_ring_slot_max);
}

static void what_is_claimed_first_comes_first(void **state)
{
    uint64_t ticket = 0;
    char *blob = tk_ring_claim(&out, &ticket);
    assert_int_equal(send(1, 20), TK_OK);
    assert_int_equal(send(2, 200), TK_OK);
    assert_empty();
    ring_text(blob, 7, 0, 30);
    tk_ring_publish(&out, ticket, 30);
    take_and_done(0, 30);
    take_and_done(1, 20);
    take_and_done(2, 200);
}

/* Before the handler runs the receiver reads one line, and payloads begin at a line. */
static void a_head_is_in_the_slot_while_it_fits(void **state)
{
    enum { payload = 3 * tk_ring_line, heads_max = 88 };
    struct tk_ring_item item;
    for (uint32_t n = 8; n <= heads_max; n += 8) {
        bool fits = n <= 48; /* 10 arguments */
        uint64_t tail = memory.shared->tail;
        ring_text(text, 7, n, n + payload);
        assert_int_equal(tk_ring_send(&out, text, n, text + n, payload), TK_OK);
        assert_int_equal(((memory.shared->tail - tail) & TK_RING_LINES) * tk_ring_line,
                         tk_align_up(fits ? payload : n + payload, tk_ring_line));
        assert_true(tk_ring_take(&in, &item));
        char *slot = (char *)tk_ring_slot(memory.shared, item.start, in.mask);
        assert_int_equal(item.blob > slot && item.blob < slot + tk_ring_line, fits);
        assert_int_equal(item.rest != NULL, fits);
        assert_int_equal((uintptr_t)(fits ? item.rest : item.blob) % tk_ring_line, 0);
        assert_int_equal(item.nbytes, fits ? n : n + payload);
        assert_int_equal(ring_item_text(&item, text, sizeof(text)), n + payload);
        assert_true(ring_text_is(text, 7, &(uint32_t){0}, n + payload));
        tk_ring_done(&in, &item);
    }
}

/* Counts the lines of the ring that differ from a copy, and updates the copy. */
static unsigned lines_written(char *copy)
{
    const char *parts[] = {(const char *)memory.shared, memory.payload};
    const size_t sizes[] = {tk_ring_bytes(slots), memory.payload_size};
    unsigned written = 0;
    for (size_t i = 0; i < 2; copy += sizes[i], i++)
        for (size_t at = 0; at < sizes[i]; at += tk_ring_line)
            written += memcmp(copy + at, parts[i] + at, tk_ring_line) != 0;
    copy -= sizes[0] + sizes[1];
    memcpy(copy, parts[0], sizes[0]);
    memcpy(copy + sizes[0], parts[1], sizes[1]);
    return written;
}

/* The lines that move between processors for a message: its slot, and its payload. The sender
 * writes them and `tail`, which the receiver never reads; the receiver writes `head` alone, where
 * an eighth ends, and the sender reads it only when the ring looks full. Wrong values in these
 * words, which are not noticed, prove that neither side reads the other's word. */
static void a_message_moves_its_slot_and_its_payload(void **state)
{
    enum { eighth = slots / 8 };
    static const size_t payloads[] = {0, 8, 48, 49, 64, 65, 128};
    static char copy[2 * slots * tk_ring_line + lines * tk_ring_line];
    lines_written(copy);
    for (uint32_t i = 0; i < sizeof(payloads) / sizeof(payloads[0]); i++) {
        size_t n = payloads[i], whole = (n + tk_ring_line - 1) / tk_ring_line;
        uint64_t head = memory.shared->head, tail;
        memory.shared->head = memory.shared->tail - slots * TK_RING_SLOT; /* full */
        memcpy(copy, memory.shared, sizeof(*memory.shared));
        memset(text, 'a' + (int)i, sizeof(text));
        assert_int_equal(tk_ring_send(&out, text, head_size, text, n), TK_OK);
        assert_int_equal(lines_written(copy), 2 + (n <= 48 ? 0 : whole));
        tail = memory.shared->tail;
        memory.shared->head = head;
        memory.shared->tail = ~tail;
        memcpy(copy, memory.shared, sizeof(*memory.shared));
        struct tk_ring_item item = {.blob = NULL};
        assert_true(tk_ring_take(&in, &item));
        assert_int_equal(lines_written(copy), 0);
        tk_ring_done(&in, &item);
        assert_int_equal(lines_written(copy), i % eighth == eighth - 1);
        memory.shared->tail = tail;
        lines_written(copy);
    }
}

static void full_of_slots_is_busy_and_changes_nothing(void **state)
{
    uint64_t ticket = 0;
    assert_int_equal(fill(ring_text_min), slots);
    uint64_t tail = memory.shared->tail;
    assert_int_equal(send(99, ring_text_min), TK_BUSY);
    assert_int_equal(send(99, 100), TK_BUSY);
    assert_null(tk_ring_claim(&out, &ticket));
    assert_int_equal(memory.shared->tail, tail);
    for (uint32_t i = 0; i < slots; i++)
        take_and_done(i, ring_text_min);
    assert_empty();
}

static void full_of_lines_is_busy_but_small_messages_pass(void **state)
{
    assert_int_equal(send(0, largest), TK_OK);
    assert_int_equal(send(1, largest - tk_ring_line), TK_OK);
    assert_int_equal(send(9, head_size + tk_ring_line + 1), TK_BUSY);
    assert_int_equal(send(2, head_size + tk_ring_line), TK_OK);
    assert_int_equal(send(9, head_size + tk_ring_line), TK_BUSY);
    assert_int_equal(send(3, tk_ring_slot_max), TK_OK);
    take_and_done(0, largest);
    take_and_done(1, largest - tk_ring_line);
    take_and_done(2, head_size + tk_ring_line);
    take_and_done(3, tk_ring_slot_max);
    assert_empty();
}

static void space_comes_back_when_messages_are_done_not_when_they_are_taken(void **state)
{
    struct tk_ring_item item[slots];
    assert_int_equal(fill(20), slots);
    for (uint32_t i = 0; i < slots; i++)
        item[i] = take(i, 20);
    assert_false(tk_ring_take(&in, &item[0]));
    assert_int_equal(send(99, 20), TK_BUSY);
    for (uint32_t i = 0; i < slots; i++)
        tk_ring_done(&in, &item[i]);
    assert_false(tk_ring_take(&in, &item[0]));
    assert_int_equal(fill(20), slots);
}

static void space_comes_back_while_more_messages_wait(void **state)
{
    assert_int_equal(fill(20), slots);
    for (uint32_t i = 0; i < 6; i++)
        take_and_done(i, 20);
    assert_in_range(fill(20), 4, 6);
}

/* With and without a small message in front, so that an eighth of the slots does not end at the
 * same message. Lines come back at done() with one thread, at the next take() with several. */
static void lines_come_back_before_slots_do(void **state)
{
    for (uint32_t small = 0; small < 2; small++) {
        if (small)
            assert_int_equal(send(9, 20), TK_OK);
        assert_int_equal(send(0, most), TK_OK);
        assert_int_equal(send(1, most), TK_OK);
        if (small)
            take_and_done(9, 20);
        take_and_done(0, most);
        struct tk_ring_item item = take(1, most);
        assert_int_equal(send(2, most), TK_OK);
        tk_ring_done(&in, &item);
        close_ring(NULL);
        open_at(0);
    }
}

static void at_rest_seven_eighths_are_free(void **state)
{
    for (uint32_t i = 0; i < 3 * slots; i++) {
        assert_int_equal(send(0, 20 + i % 5 * 30), TK_OK);
        take_and_done(0, 20 + i % 5 * 30);
        assert_empty();
        uint32_t sent = fill(20);
        assert_true(sent >= slots - slots / 8);
        for (uint32_t k = 0; k < sent; k++)
            take_and_done(k, 20);
        assert_empty();
        assert_int_equal(send(0, most), TK_OK);
        take_and_done(0, most);
        assert_empty();
    }
}

static void a_ring_of_two_slots_works(void **state)
{
    close_ring(NULL);
    ring_memory_open(&memory, 2, lines, 0);
    ring_memory_out(&memory, &out, 7);
    ring_memory_in(&memory, &in);
    for (uint32_t i = 0; i < 10; i++) {
        assert_int_equal(fill(20 + i), 2);
        take_and_done(0, 20 + i);
        take_and_done(1, 20 + i);
        assert_empty();
    }
}

static void random_traffic(uint64_t start)
{
    struct unit_random dice = unit_random(start);
    uint32_t sent = 0, taken = 0;
    size_t size[slots];
    open_at(start);
    for (int step = 0; step < 20000; step++) {
        size_t n = ring_text_min + unit_below(&dice, unit_below(&dice, 4) ? 60 : most / 2 - 16);
        if (unit_below(&dice, 2) && send(sent, n) == TK_OK) {
            size[sent++ % slots] = n;
        } else if (taken < sent) {
            take_and_done(taken, size[taken % slots]);
            taken++;
        } else {
            assert_empty();
        }
        assert_true(sent - taken <= slots);
    }
    close_ring(NULL);
}

static void counts_may_wrap_wherever_they_do(void **state)
{
    static const uint64_t slots_before[] = {0, 1000, (UINT64_C(1) << 32) - 1000,
                                            (UINT64_C(1) << 40) - 1000};
    for (size_t i = 0; i < sizeof(slots_before) / sizeof(slots_before[0]); i++) {
        random_traffic(slots_before[i] * TK_RING_SLOT);
        random_traffic(slots_before[i] * TK_RING_SLOT + TK_RING_SLOT - 1 - 1000);
    }
}

/* As if 2^32 messages had passed while `idle` slept, and the ring were full now: in the low 32 bits
 * its head is only half a lap behind the tail. */
static void an_old_head_is_not_taken_for_a_new_one(void **state)
{
    struct tk_ring_out idle;
    tk_ring_format(memory.shared, slots, slots / 2 * TK_RING_SLOT);
    ring_memory_out(&memory, &idle, 8);
    tk_ring_format(memory.shared, slots, (UINT64_C(1) << 32) * TK_RING_SLOT);
    ring_memory_out(&memory, &out, 7);
    assert_int_equal(fill(20), slots);
    assert_int_equal(tk_ring_send(&idle, text, 16, NULL, 0), TK_BUSY);
}

/* Another thread may read the head between our look at the tail and ours at the head. */
static void a_head_beyond_the_tail_that_was_seen_is_no_reason_to_refuse(void **state)
{
    for (uint32_t i = 0; i < slots; i++) {
        assert_int_equal(send(i, 20), TK_OK);
        take_and_done(i, 20);
        assert_empty();
    }
    atomic_store(&out.head, out.head + 2 * slots * TK_RING_SLOT);
    assert_int_equal(send(1, 20), TK_OK);
    assert_int_equal(out.head, memory.shared->head);
}

static void a_slot_with_a_wrong_size_is_reported(void **state)
{
    static const struct {
        uint64_t lines;
        struct tk_ring_note note;
    } lies[] = {{lines / 2 + 1, {8, 8}},
                {2, {2 * tk_ring_line + 1, 8}},
                {2, {2 * tk_ring_line + 1, 0}},
                {2, {2 * tk_ring_line, tk_ring_head_max + 1}}};
    struct tk_ring_item item;
    uint64_t ticket = 0;
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        char *blob = tk_ring_claim(&out, &ticket);
        memcpy(blob, &lies[i].note, sizeof(lies[i].note));
        tk_ring_publish(&out, ticket, tk_ring_slot_max + lies[i].lines);
        assert_true(tk_ring_take(&in, &item));
        assert_null(item.blob);
        assert_int_equal(item.from, 7);
        close_ring(NULL);
        open_at(0);
    }
}

static void sizes_are_powers_of_two_within_limits(void **state)
{
    assert_true(tk_ring_legal(2, 8));
    assert_true(tk_ring_legal(8192, 32768));
    assert_false(tk_ring_legal(1, 64));
    assert_false(tk_ring_legal(0, 64));
    assert_false(tk_ring_legal(12, 64));
    assert_false(tk_ring_legal(16384, 64));
    assert_false(tk_ring_legal(16, 0));
    assert_false(tk_ring_legal(16, 4));
    assert_false(tk_ring_legal(16, 96));
    assert_false(tk_ring_legal(16, 65536));
    /* A lap of the largest messages must not wrap the count of lines. */
    for (uint32_t s = 2; s <= tk_ring_slots_max; s *= 2)
        for (uint32_t l = 8; l <= tk_ring_lines_max; l *= 2)
            assert_true(tk_ring_message_max(s, l) / tk_ring_line * s < TK_RING_SLOT);
    assert_true(tk_ring_message_max(1024, 4096) >= 65536 + 96);
    assert_true(tk_ring_message_max(1024, 16384) >= 262144); /* --with-ibv-max-medium=262144 */
}

/* A thread that is about to sleep looks between the two stores of a thread that takes a message. */
static void a_sleeper_sees_a_message_that_a_glance_does_not(void **state)
{
    if (!TK_THREADED)
        skip();
    assert_false(tk_ring_has_come(&in));
    assert_int_equal(send(0, 20), TK_OK);
    assert_true(tk_ring_has_come(&in));
    uint32_t seq = tk_peek(&in.seq);
    tk_poke(&in.seq, seq - 1);
    assert_false(tk_ring_ready(&in));
    assert_true(tk_ring_has_come(&in));
    tk_poke(&in.seq, seq);
    take_and_done(0, 20);
    assert_false(tk_ring_has_come(&in));
}

/* As if another thread were about to take the message. */
static void what_another_thread_takes_is_not_there(void **state)
{
    struct tk_ring_item item;
    if (!TK_THREADED)
        skip();
    assert_int_equal(send(0, 20), TK_OK);
    tk_lock(&in.taking);
    assert_true(tk_ring_ready(&in));
    assert_false(tk_ring_take(&in, &item));
    tk_unlock(&in.taking);
    take_and_done(0, 20);
}

/* Other threads continue while one of them holds a message. */
static void done_out_of_order_gives_space_back_in_order(void **state)
{
    struct tk_ring_item item[slots], none;
    if (!TK_THREADED)
        skip();
    assert_int_equal(fill(20), slots);
    for (uint32_t i = 0; i < slots; i++)
        item[i] = take(i, 20);
    for (uint32_t i = slots - 1; i > 0; i--)
        tk_ring_done(&in, &item[i]);
    assert_false(tk_ring_take(&in, &none));
    assert_int_equal(send(99, 20), TK_BUSY);
    assert_true(ring_text_is(item[0].blob, 7, &(uint32_t){0}, 20));
    tk_ring_done(&in, &item[0]);
    assert_true(tk_ring_ready(&in)); /* the next poll returns it */
    assert_false(tk_ring_take(&in, &none));
    assert_int_equal(memory.shared->head, memory.shared->tail);
    assert_int_equal(fill(20), slots);
}

#define PROMISE(name) cmocka_unit_test_setup_teardown(name, open_ring, close_ring)

static const struct CMUnitTest tests[] = {
    PROMISE(an_empty_ring_has_nothing),
    PROMISE(zeroed_memory_is_a_ring),
    PROMISE(messages_of_a_sender_come_in_their_order),
    PROMISE(every_size_up_to_the_largest_comes_whole_at_every_place),
    PROMISE(a_message_may_be_less_than_a_word),
    PROMISE(what_is_built_in_place_comes_as_what_is_sent),
    PROMISE(what_is_claimed_first_comes_first),
    PROMISE(a_head_is_in_the_slot_while_it_fits),
    PROMISE(a_message_moves_its_slot_and_its_payload),
    PROMISE(full_of_slots_is_busy_and_changes_nothing),
    PROMISE(full_of_lines_is_busy_but_small_messages_pass),
    PROMISE(space_comes_back_when_messages_are_done_not_when_they_are_taken),
    PROMISE(space_comes_back_while_more_messages_wait),
    PROMISE(lines_come_back_before_slots_do),
    PROMISE(at_rest_seven_eighths_are_free),
    PROMISE(a_ring_of_two_slots_works),
    cmocka_unit_test(counts_may_wrap_wherever_they_do),
    PROMISE(an_old_head_is_not_taken_for_a_new_one),
    PROMISE(a_head_beyond_the_tail_that_was_seen_is_no_reason_to_refuse),
    PROMISE(a_slot_with_a_wrong_size_is_reported),
    cmocka_unit_test(sizes_are_powers_of_two_within_limits),
    PROMISE(done_out_of_order_gives_space_back_in_order),
    PROMISE(a_sleeper_sees_a_message_that_a_glance_does_not),
    PROMISE(what_another_thread_takes_is_not_there),
};

UNIT_MAIN(tests)
