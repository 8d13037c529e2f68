/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of kv between the network and the store: records in slots (K2), values (K4), the
 * pipeline (K10), distributions and mixes (K16), files (K18). */
#include "config.h"

#include <math.h>
#include <unistd.h>

#include "draw.h"
#include "pipeline.h"
#include "record.h"
#include "save.h"
#include "store.h"
#include "unit.h"
#include "value.h"

/* ---- K2 */

static void slots_are_disjoint_lines_with_the_mark_at_the_end(void **state)
{
    enum { clients = 300, window = 8 };
    static bool taken[clients * window];
    assert_int_equal(kv_slot_size(41), 64);
    assert_int_equal(kv_slot_size(42), 128);
    for (size_t v = 1; v <= kv_value_max; v++)
        assert_true(kv_slot_size(v) % 64 == 0 && kv_slot_size(v) >= v + kv_layout.header_image);
    for (uint64_t c = 0; c < clients; c++) /* more clients than a byte can count */
        for (uint64_t r = 0; r < 3 * window; r++) {
            size_t index = kv_slot_index(c, window, r);
            assert_true(index < clients * window);
            assert_int_equal(taken[index], r >= window);
            taken[index] |= r >= window - 1 || !taken[index];
            assert_true(kv_slot_index(c, window, r) == kv_slot_index(c, window, r + window));
        }
}

static void a_mark_is_never_0_nor_that_of_the_lap_before(void **state)
{
    for (uint64_t r = 0; r < 4 * 300; r++) {
        assert_true(kv_mark_of(4, r) != 0);
        assert_true(kv_mark_of(4, r) != kv_mark_of(4, r + 4));
    }
}

/* Each image ends with the slot and touches nothing before its own beginning. */
static void an_image_touches_only_its_tail(void **state)
{
    static const struct {
        enum kv_op op;
        uint16_t len;
    } cases[] = {{kv_get, 0}, {kv_put, 1}, {kv_put, 32}, {kv_put, 41}, {kv_delete, 0}};
    struct kv_key key = kv_key_of(3, 4);
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        char slot[64 + 1];
        struct kv_request request;
        memset(slot, 0x55, sizeof(slot));
        memset(slot + 64 - kv_layout.at_len, 0, 2); /* as the server leaves it */
        memset(slot + 64 - kv_layout.at_len - cases[i].len, 'v', cases[i].len);
        kv_record_write(slot + 64, cases[i].op, cases[i].len, 77, &key, 9);
        assert_int_equal(kv_record_mark(slot + 64), 9);
        assert_int_equal((unsigned char)slot[63], 9);
        assert_int_equal(slot[64], 0x55);
        size_t image = kv_image_size(cases[i].op, cases[i].len);
        assert_int_equal(image, cases[i].op == kv_get ? 21u : 23u + cases[i].len);
        size_t clean = 64 - (image > kv_layout.at_len ? image : kv_layout.at_len);
        for (size_t at = 0; at < clean; at++)
            assert_int_equal(slot[at], 0x55);
        assert_true(kv_record_read(slot + 64, 41, &request));
        assert_int_equal(request.op, cases[i].op);
        assert_int_equal(request.len, cases[i].len);
        assert_int_equal(request.seq, 77);
        assert_memory_equal(&request.key, &key, sizeof(key));
        if (cases[i].len)
            assert_int_equal(*request.value, 'v');
    }
}

static void a_slot_is_cleared_for_the_get_that_follows(void **state)
{
    char slot[64] = {0};
    struct kv_key key = kv_key_of(3, 4);
    struct kv_request request;
    kv_record_write(slot + 64, kv_put, 32, 0, &key, 1);
    kv_record_clear(slot + 64, true, true);
    assert_int_equal(kv_record_mark(slot + 64), 0);
    kv_record_write(slot + 64, kv_get, 0, 1, &key, 2);
    assert_true(kv_record_read(slot + 64, 41, &request));
    assert_int_equal(request.op, kv_get);
    kv_record_write(slot + 64, kv_put, 32, 2, &key, 3);
    kv_record_clear(slot + 64, true, false); /* what the fault does */
    kv_record_write(slot + 64, kv_get, 0, 3, &key, 4);
    assert_true(kv_record_read(slot + 64, 41, &request));
    assert_int_equal(request.op, kv_put);
    assert_false(kv_record_read(slot + 64, 31, &request));
}

/* The same for keys of all lengths: the places of the fixed fields follow from the slot's end. */
static void keys_of_any_length_have_their_place(void **state)
{
    for (size_t size = kv_key_min; size <= kv_key_max; size++) {
        char slot[128 + 1];
        struct kv_request request;
        kv_layout_set(size, false);
        struct kv_key key = kv_key_of(3, 4), other = kv_key_of(3, 5);
        assert_int_equal(kv_image_size(kv_get, 0), size + 5);
        assert_int_equal(kv_image_size(kv_put, 9), size + 7 + 9);
        memset(slot, 0x55, sizeof(slot));
        kv_record_write(slot + 128, kv_put, 9, 77, &key, 200);
        assert_int_equal((unsigned char)slot[127], 200);
        assert_memory_equal(slot + 127 - size, &key, size);
        assert_int_equal(slot[128 - 7 - (int)size - 1], 0x55);
        assert_true(kv_record_read(slot + 128, 9, &request));
        assert_memory_equal(&request.key, &key, sizeof(key)); /* with zeros behind */
        assert_ptr_equal(request.value, slot + 128 - 7 - size - 9);
        assert_int_equal(request.seq, 77);
        assert_false(kv_key_same(&key, &other));
        struct kv_hash hash = kv_hash_of(&key);
        for (size_t at = 0; at < size; at++) {
            key.bytes[at] ^= 1;
            struct kv_hash changed = kv_hash_of(&key);
            assert_true(changed.lo != hash.lo && changed.hi != hash.hi);
            key.bytes[at] ^= 1;
        }
    }
    kv_layout_set(kv_key_usual, false);
}

/* --compat: 16 bytes for a GET, 50 for a PUT, in slots of 50; answers of 34 and 1. */
static void the_layout_of_ib_kv_has_its_sizes(void **state)
{
    char value[32], slots[3 * kv_compat_slot], *end = slots + 2 * kv_compat_slot;
    struct kv_request request;
    struct kv_answer answer = {.seq = 9};
    kv_layout_set(kv_key_usual, true);
    assert_int_equal(kv_slot_size(32), 50);
    assert_int_equal(kv_image_size(kv_get, 0), 16);
    assert_int_equal(kv_image_size(kv_put, 32), 50);
    memset(value, 'w', sizeof(value));
    memset(slots, 0, sizeof(slots));
    struct kv_key key = kv_key_of(3, 4);
    memset(kv_record_value(end, 32), 'v', 32);
    kv_record_write(end, kv_put, 32, 0, &key, 0);
    static const char len[2] = {32, 0};
    assert_memory_equal(end - 50, len, 2);
    assert_memory_equal(end - 48, "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv", 32);
    assert_memory_equal(end - 16, &key, 16);
    assert_true(end[-51] == 0 && end[0] == 0);
    assert_int_equal(kv_record_mark(end), key.bytes[15]);
    assert_true(kv_record_read(end, 32, &request));
    assert_int_equal(request.op, kv_put);
    assert_ptr_equal(request.value, end - 48);
    kv_record_clear(end, true, true);
    assert_int_equal(kv_record_mark(end), 0);
    kv_record_write(end, kv_get, 0, 0, &key, 0);
    assert_true(kv_record_read(end, 32, &request));
    assert_int_equal(request.op, kv_get);
    assert_int_equal(kv_answer_write(end, kv_get, 1, kv_ok, value, 32, 1), 34);
    assert_true(kv_answer_read(end, 34, &answer));
    assert_int_equal(answer.len, 32);
    assert_int_equal(answer.seq, 9);
    assert_memory_equal(answer.value, value, 32);
    assert_int_equal(kv_answer_write(end, kv_get, 1, kv_missing, NULL, 0, 1), 34);
    assert_true(kv_answer_read(end, 34, &answer));
    assert_int_equal(answer.status, kv_missing);
    assert_int_equal(kv_answer_write(end, kv_put, 1, kv_full, NULL, 0, 1), 1);
    assert_true(kv_answer_read(end, 1, &answer));
    assert_int_equal(answer.status, kv_full);
    assert_false(kv_answer_read(end, 33, &answer));
    end[-1] = kv_full + 1;
    assert_false(kv_answer_read(end, 1, &answer));
    static const char long_one[2] = {kv_compat_value + 1, 0};
    memcpy(end - kv_compat_answer, long_one, sizeof(long_one));
    assert_false(kv_answer_read(end, kv_compat_answer, &answer));
    kv_layout_set(kv_key_usual, false);
}

/* The server polls a key's last byte there. */
static void no_key_of_ib_kv_ends_with_0(void **state)
{
    for (uint64_t i = 0; i < 10000; i++) {
        kv_layout_set(kv_key_usual, false);
        struct kv_key plain = kv_key_of(3, i);
        kv_layout_set(kv_key_usual, true);
        struct kv_key key = kv_key_of(3, i);
        assert_true(key.bytes[15] != 0);
        assert_memory_equal(&key, &plain, plain.bytes[15] ? 16 : 15);
    }
    kv_layout_set(kv_key_usual, false);
}

/* ---- K4 */

static void a_value_reveals_every_kind_of_mix_up(void **state)
{
    char value[300], other[300];
    struct kv_key keys[2] = {kv_key_of(1, 1), kv_key_of(1, 2)};
    struct kv_hash hash = kv_hash_of(&keys[0]), foreign = kv_hash_of(&keys[1]);
    struct kv_value seen;
    for (size_t len = 1; len <= sizeof(value); len++) {
        kv_value_fill(value, len, hash, 3, 0x01020304);
        assert_null(kv_value_check(value, len, hash, &seen));
        assert_int_equal(seen.version, 0x01020304 & kv_version_mask(len));
        assert_int_equal(seen.writer, len >= kv_value_full ? 3 : 0);
        if (len < 8)
            continue;
        assert_non_null(kv_value_check(value, len, foreign, &seen));
        kv_value_fill(other, len, hash, 3, 0x01020305);
        assert_true(memcmp(value, other, len) != 0);
        memcpy(other + 4, value + 4, len - 4); /* torn: the head of one, the rest of another */
        if (memcmp(other, value, len))
            assert_non_null(kv_value_check(other, len, hash, &seen));
        for (size_t bit = 0; bit < len * 8; bit += 1 + bit / 64) {
            value[bit / 8] ^= (char)(1 << bit % 8);
            assert_non_null(kv_value_check(value, len, hash, &seen));
            value[bit / 8] ^= (char)(1 << bit % 8);
        }
    }
    assert_non_null(kv_value_check(value, 0, hash, &seen));
    kv_value_fill(value, 64, hash, 3, 1);
    assert_string_equal(kv_value_check(value, 63, hash, &seen), "a value of another length");
    assert_string_equal(kv_value_check(value, 64, foreign, &seen), "the value of another key");
    memset(value, 0, sizeof(value));
    assert_string_equal(kv_value_check(value, 64, hash, &seen), "that is no value");
}

/* ---- K10 */

struct answers {
    unsigned count;
    struct {
        enum kv_status status;
        uint32_t seq;
        int64_t version;
    } seen[64];
};

static void note_answer(void *arg, const struct kv_item *item)
{
    struct answers *answers = arg;
    struct kv_value seen = {0, 0};
    if (item->request.op == kv_get && item->status == kv_ok)
        assert_null(kv_value_check(item->value, item->len, item->hash, &seen));
    answers->seen[answers->count].status = item->status;
    answers->seen[answers->count].seq = item->request.seq;
    answers->seen[answers->count++].version = seen.version;
}

static void push(struct kv_pipeline *pipeline, enum kv_op op, uint64_t number, uint32_t version)
{
    static char values[64][32];
    struct kv_item item = {.real = true};
    item.request.op = op;
    item.request.key = kv_key_of(1, number);
    item.request.seq = (uint32_t)pipeline->pushes;
    item.hash = kv_hash_of(&item.request.key);
    item.request.len = 32;
    item.request.value = values[pipeline->pushes % 64];
    kv_value_fill(values[pipeline->pushes % 64], 32, item.hash, 1, version);
    kv_pipeline_push(pipeline, &item);
}

static void neighbours_in_the_pipeline_see_each_other_in_order(void **state)
{
    for (int kind = 0; kind < 2; kind++)
        for (int way = 0; way < 4; way++) {
            struct kv_store_options options = {.kind = (enum kv_store_kind)kind,
                                               .buckets = 16,
                                               .log_bytes = 1 << 20,
                                               .value_max = 32,
                                               .ledger = true,
                                               .inplace = way & 1};
            struct answers answers = {0};
            struct kv_pipeline pipeline = {.store = kv_store_open(&options),
                                           .answer = note_answer,
                                           .arg = &answers,
                                           .immediate = way & 2};
            push(&pipeline, kv_put, 5, 1);
            push(&pipeline, kv_get, 5, 0);
            push(&pipeline, kv_put, 5, 2);
            push(&pipeline, kv_get, 5, 0);
            push(&pipeline, kv_get, 5, 0);
            push(&pipeline, kv_delete, 5, 0);
            push(&pipeline, kv_get, 5, 0);
            push(&pipeline, kv_put, 5, 3);
            push(&pipeline, kv_get, 6, 0);
            push(&pipeline, kv_get, 5, 0);
            kv_pipeline_flush(&pipeline);
            static const int64_t expected[] = {0, 1, 0, 2, 2, 0, -1, 0, -1, 3};
            assert_int_equal(answers.count, 10);
            for (unsigned i = 0; i < 10; i++) {
                assert_int_equal(answers.seen[i].seq, i);
                assert_int_equal(answers.seen[i].status, expected[i] < 0 ? kv_missing : kv_ok);
                assert_int_equal(answers.seen[i].version, expected[i] < 0 ? 0 : expected[i]);
            }
            assert_int_equal(pipeline.pushes, way & 2 ? 10 : 12);
            assert_int_equal(pipeline.dummies, way & 2 ? 0 : 2);
            kv_store_close(pipeline.store);
        }
}

/* A log of one lap: the PUT behind a GET writes where the GET's value lies. */
static void an_answer_is_made_before_its_value_is_written_over(void **state)
{
    struct kv_store_options options = {.kind = kv_lossy,
                                       .buckets = 1 << 14,
                                       .log_bytes = 1 << 20,
                                       .value_max = 1024,
                                       .ledger = true};
    struct answers answers = {0};
    struct kv_pipeline pipeline = {
        .store = kv_store_open(&options), .answer = note_answer, .arg = &answers};
    for (uint64_t i = 0; i < (1 << 20) / 56; i++) {
        char value[32];
        struct kv_key key = kv_key_of(1, i);
        kv_value_fill(value, 32, kv_hash_of(&key), 1, 1);
        kv_store_put(pipeline.store, &key, kv_hash_of(&key), value, 32);
    }
    push(&pipeline, kv_get, 0, 0);
    push(&pipeline, kv_put, 1000000, 2);
    push(&pipeline, kv_get, 0, 0);
    kv_pipeline_flush(&pipeline);
    assert_int_equal(answers.seen[0].status, kv_ok);
    assert_int_equal(answers.seen[0].version, 1);
    assert_int_equal(answers.seen[2].status, kv_missing);
    kv_store_close(pipeline.store);
}

/* ---- K16 */

static void near(double seen, double expected, double tolerance, const char *what)
{
    if (fabs(seen - expected) > tolerance)
        fail_msg("%s: %g, expected %g +- %g", what, seen, expected, tolerance);
}

static void zipf_has_the_known_heads(void **state)
{
    struct kv_draw draw = {.kind = kv_zipf, .theta = 0.99};
    kv_draw_open(&draw, 1000000, 1);
    near(1 / kv_zeta(1000000, 0.99), 0.0650, 0.00005, "p of the first");
    near(kv_zeta(10, 0.99) / draw.zetan, 0.192, 0.0005, "p of the first 10");
    near(kv_zeta(100, 0.99) / draw.zetan, 0.344, 0.0005, "p of the first 100");
    near(kv_zeta(10000, 0.99) / draw.zetan, 0.664, 0.0005, "p of the first 1%");
    near(kv_draw_head(&draw, 1), 0.0650, 0.00005, "the generator's p of the first");
    /* Gray's formula is close, not exact: a percent too much for the first hundred. */
    near(kv_draw_head(&draw, 100), 0.344, 0.012, "the generator's p of the first 100");
    near(kv_draw_head(&draw, 10000), 0.664, 0.01, "the generator's p of the first 1%");
    /* the short sum of the tail against the long one */
    double sum = 0;
    for (int i = 300000; i >= 1; i--)
        sum += pow(i, -0.99);
    near(kv_zeta(300000, 0.99), sum, 1e-9 * sum, "zeta");
}

/* Draws fall into the ranks' heads as often as they should, within 5 sigma. */
static void draws_follow_their_distribution(void **state)
{
    static const char *const names[] = {"uniform",  "zipf",   "zipf:0.5",
                                        "zipf:1.2", "latest", "hotspot:80/20"};
    static const uint64_t heads[] = {1, 2, 3, 10, 100, 2000, 9999};
    enum { n = 10000, draws = 200000 };
    char why[256];
    for (size_t d = 0; d < sizeof(names) / sizeof(*names); d++) {
        struct kv_draw draw;
        struct wl_random r = wl_random(3, d);
        uint64_t below[7] = {0};
        assert_true(kv_draw_parse(&draw, names[d], why, sizeof(why)));
        kv_draw_open(&draw, n, 1);
        for (int i = 0; i < draws; i++) {
            uint64_t rank = kv_draw_rank(&draw, &r);
            assert_true(rank < n);
            for (int h = 0; h < 7; h++)
                below[h] += rank < heads[h];
        }
        for (int h = 0; h < 7; h++) {
            double p = kv_draw_head(&draw, heads[h]);
            near((double)below[h] / draws, p, 5 * sqrt(p * (1 - p) / draws) + 1e-9, names[d]);
        }
        assert_true(kv_draw_head(&draw, n) == 1);
    }
    struct kv_draw small = {.kind = kv_zipf, .theta = 0.99};
    struct wl_random r = wl_random(3, 0);
    for (uint64_t n_small = 1; n_small < 5; n_small++) {
        kv_draw_open(&small, n_small, 1);
        for (int i = 0; i < 1000; i++)
            assert_true(kv_draw_rank(&small, &r) < n_small);
    }
}

static void ranks_are_scrambled_one_to_one(void **state)
{
    static const uint64_t sizes[] = {1, 2, 3, 5, 64, 1000, 4097};
    for (size_t s = 0; s < sizeof(sizes) / sizeof(*sizes); s++) {
        bool taken[5000] = {false};
        struct kv_draw draw = {.kind = kv_zipf, .theta = 0.99};
        uint64_t fixed = 0;
        kv_draw_open(&draw, sizes[s], 9);
        for (uint64_t rank = 0; rank < sizes[s]; rank++) {
            uint64_t number = kv_draw_number(&draw, rank);
            assert_true(number < sizes[s] && !taken[number]);
            taken[number] = true;
            fixed += number == rank;
        }
        assert_true(sizes[s] < 64 || fixed < sizes[s] / 8);
    }
    struct kv_draw latest = {.kind = kv_latest, .theta = 0.99};
    struct wl_random r = wl_random(1, 1);
    unsigned newest = 0;
    kv_draw_open(&latest, 100, 9);
    for (int i = 0; i < 1000; i++)
        newest += kv_draw(&latest, &r, 42) == 42;
    assert_true(newest > 150); /* the newest is the most popular: 1 / zeta(100) is 19% */
}

static void shares_of_servers_are_predicted(void **state)
{
    enum { n = 20000, draws = 300000, servers = 4 };
    struct kv_draw draw = {.kind = kv_zipf, .theta = 0.99};
    double shares[servers], sum = 0;
    unsigned seen[servers] = {0};
    struct wl_random r = wl_random(8, 8);
    kv_draw_open(&draw, n, 5);
    kv_draw_shares(&draw, 5, servers, shares);
    for (int i = 0; i < draws; i++) {
        struct kv_key key = kv_key_of(5, kv_draw(&draw, &r, 0));
        seen[kv_server_of(kv_hash_of(&key), servers)]++;
    }
    for (int s = 0; s < servers; s++) {
        sum += shares[s];
        near((double)seen[s] / draws, shares[s], 5 * sqrt(shares[s] / draws), "share");
    }
    near(sum, 1, 1e-9, "sum of shares");
}

static void mixes_have_exact_percentages(void **state)
{
    enum { draws = 100000 };
    struct kv_mix mix;
    struct kv_draw draw;
    struct wl_random r = wl_random(2, 2);
    for (const char *letter = "ABCDEF"; *letter; letter++) {
        unsigned seen[kv_actions] = {0};
        int sum = 0;
        assert_true(kv_mix_ycsb(&mix, &draw, *letter));
        assert_int_equal(draw.kind, *letter == 'D' ? kv_latest : kv_zipf);
        for (int i = 0; i < draws; i++)
            seen[kv_mix_draw(&mix, &r)]++;
        for (int a = 0; a < kv_actions; a++) {
            double p = mix.percent[a] / 100.0;
            sum += mix.percent[a];
            near((double)seen[a] / draws, p, 5 * sqrt(p * (1 - p) / draws), "action");
        }
        assert_int_equal(sum, 100);
    }
    assert_false(kv_mix_ycsb(&mix, &draw, 'G'));
}

static void what_is_no_distribution_is_refused(void **state)
{
    static const char *const bad[] = {
        "",         "zipf:",      "zipf:0",       "zipf:1",         "zipf:-1",
        "zipf:1x",  "zip",        "zipfx",        "zipf:nan",       "uniform:2",
        "hotspot",  "hotspot:80", "hotspot:0/20", "hotspot:80/101", "hotspot:80/20x",
        "latest:1", "zipf:6"};
    struct kv_draw draw;
    char why[256];
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
        if (kv_draw_parse(&draw, bad[i], why, sizeof(why)))
            fail_msg("'%s' was accepted", bad[i]);
    unit_assert_says(why, "uniform|zipf[:THETA]");
}

/* ---- K18 */

static struct kv_store *sample_store(enum kv_store_kind kind, uint64_t entries)
{
    struct kv_store_options options = {
        .kind = kind, .buckets = 256, .log_bytes = 1 << 20, .value_max = 100, .ledger = true};
    struct kv_store *store = kv_store_open(&options);
    for (uint64_t i = 0; i < entries; i++) {
        char value[100];
        struct kv_key key = kv_key_of(1, i);
        kv_value_fill(value, 8 + i % 90, kv_hash_of(&key), 1, 1);
        kv_store_put(store, &key, kv_hash_of(&key), value, 8 + i % 90);
    }
    return store;
}

static void a_saved_store_comes_back(void **state)
{
    char folder[] = "/tmp/trunkline-kv-XXXXXX", path[64], why[512];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/store", folder);
    for (int kind = 0; kind < 2; kind++)
        for (uint64_t entries = 0; entries <= 600; entries += 300) {
            struct kv_store *store = sample_store((enum kv_store_kind)kind, entries);
            struct kv_store *back = sample_store((enum kv_store_kind)kind, 0);
            assert_true(kv_save(store, path, 1, 3, why, sizeof(why)));
            if (!kv_load(back, path, 1, 3, why, sizeof(why)))
                fail_msg("%s", why);
            assert_true(kv_store_digest(store) == kv_store_digest(back));
            assert_int_equal(kv_store_count(back).entries, entries);
            kv_store_close(store);
            kv_store_close(back);
        }
    unlink(path);
    assert_int_equal(rmdir(folder), 0); /* nothing else was left */
    assert_false(kv_save(NULL, "/nowhere/store", 0, 1, why, sizeof(why)));
    unit_assert_says(why, "/nowhere/store.part can't be opened");
}

static const char *refusal(const char *path, uint32_t server, uint32_t servers)
{
    static char why[512];
    struct kv_store *back = sample_store(kv_exact, 0);
    bool loaded = kv_load(back, path, server, servers, why, sizeof(why));
    assert_int_equal(loaded ? 1 : kv_store_count(back).entries, loaded);
    kv_store_close(back);
    return loaded ? "loaded" : why;
}

static void change_file(const char *path, long at, const void *bytes, size_t size)
{
    FILE *file = fopen(path, "r+");
    fseek(file, at, SEEK_SET);
    fwrite(bytes, 1, size, file);
    fclose(file);
}

static void a_damaged_file_is_refused(void **state)
{
    char path[] = "/tmp/trunkline-kv-XXXXXX", why[512], old[4096], flipped;
    close(mkstemp(path));
    struct kv_store *store = sample_store(kv_exact, 20);
    assert_true(kv_save(store, path, 1, 3, why, sizeof(why)));
    kv_store_close(store);
    unit_assert_says(refusal(path, 0, 3), "another server");
    unit_assert_says(refusal(path, 1, 2), "another number of servers");
    FILE *file = fopen(path, "r");
    long length = (long)fread(old, 1, sizeof(old), file);
    fclose(file);
    for (long at = 0; at < length; at += 7) {
        flipped = (char)(old[at] ^ 4);
        change_file(path, at, &flipped, 1);
        assert_string_not_equal(refusal(path, 1, 3), "loaded");
        change_file(path, at, &old[at], 1);
    }
    for (long cut = 0; cut < length; cut += 13) {
        assert_int_equal(truncate(path, cut), 0);
        assert_string_not_equal(refusal(path, 1, 3), "loaded");
        change_file(path, 0, old, (size_t)length);
    }
    assert_int_equal(kv_crc64(0, "123456789", 9) >> 32, 0x995dc9bb); /* the published check value */
    unlink(path);
    unit_assert_says(refusal(path, 1, 3), "can't be read");
}

static void an_answer_is_read_from_its_end(void **state)
{
    char there[2 * kv_answer_max];
    struct kv_answer answer;
    char *end = there + sizeof(there);
    memset(there, 'x', sizeof(there));
    size_t size = kv_answer_write(end, kv_get, 0x01020304, kv_ok, "value", 5, 7);
    assert_int_equal(size, kv_answer_image + 5);
    assert_int_equal(end[-1], 7);
    assert_int_equal(end[-(int)size - 1], 'x');
    assert_true(kv_answer_read(end, size, &answer));
    assert_int_equal(answer.seq, 0x01020304);
    assert_int_equal(answer.status, kv_ok);
    assert_int_equal(answer.len, 5);
    assert_memory_equal(answer.value, "value", 5);
    assert_false(kv_answer_read(end, size - 1, &answer));
    assert_false(kv_answer_read(end, kv_answer_image - 1, &answer));
    end[-6] = kv_full + 1;
    assert_false(kv_answer_read(end, size, &answer));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(an_answer_is_read_from_its_end),
    cmocka_unit_test(slots_are_disjoint_lines_with_the_mark_at_the_end),
    cmocka_unit_test(a_mark_is_never_0_nor_that_of_the_lap_before),
    cmocka_unit_test(an_image_touches_only_its_tail),
    cmocka_unit_test(a_slot_is_cleared_for_the_get_that_follows),
    cmocka_unit_test(keys_of_any_length_have_their_place),
    cmocka_unit_test(the_layout_of_ib_kv_has_its_sizes),
    cmocka_unit_test(no_key_of_ib_kv_ends_with_0),
    cmocka_unit_test(a_value_reveals_every_kind_of_mix_up),
    cmocka_unit_test(neighbours_in_the_pipeline_see_each_other_in_order),
    cmocka_unit_test(an_answer_is_made_before_its_value_is_written_over),
    cmocka_unit_test(zipf_has_the_known_heads),
    cmocka_unit_test(draws_follow_their_distribution),
    cmocka_unit_test(ranks_are_scrambled_one_to_one),
    cmocka_unit_test(shares_of_servers_are_predicted),
    cmocka_unit_test(mixes_have_exact_percentages),
    cmocka_unit_test(what_is_no_distribution_is_refused),
    cmocka_unit_test(a_saved_store_comes_back),
    cmocka_unit_test(a_damaged_file_is_refused),
};
UNIT_MAIN(tests)
