/* SPDX-License-Identifier: BSD-3-Clause */
/* The two stores: what they keep, what they evict, and that they report why (checks K5, K11, K12,
 * K13). */
#include "config.h"

#include <math.h>

#include "exact.h"
#include "record.h"
#include "store.h"
#include "unit.h"
#include "value.h"

static const struct kv_store_options lossy_options = {
    .kind = kv_lossy, .buckets = 1024, .log_bytes = 1 << 20, .value_max = 1024, .ledger = true};
static const struct kv_store_options exact_options = {
    .kind = kv_exact, .buckets = 64, .log_bytes = 1 << 20, .value_max = 64, .ledger = true};

static enum kv_status put(struct kv_store *store, uint64_t number, uint32_t version, size_t len)
{
    char value[2048]; /* also for what is refused as too long */
    struct kv_key key = kv_key_of(1, number);
    struct kv_hash hash = kv_hash_of(&key);
    kv_value_fill(value, len, hash, 7, version);
    return kv_store_put(store, &key, hash, value, len);
}

/* The stored version; -1: none. Fails if the value does not belong to this key. */
static int64_t get(struct kv_store *store, uint64_t number)
{
    struct kv_key key = kv_key_of(1, number);
    struct kv_hash hash = kv_hash_of(&key);
    struct kv_value seen;
    const char *value;
    size_t len;
    if (kv_store_get(store, &key, hash, &value, &len) != kv_ok)
        return -1;
    const char *wrong = kv_value_check(value, len, hash, &seen);
    if (wrong)
        fail_msg("key %llu: %s", (unsigned long long)number, wrong);
    return seen.version;
}

static enum kv_status drop(struct kv_store *store, uint64_t number)
{
    struct kv_key key = kv_key_of(1, number);
    return kv_store_delete(store, &key, kv_hash_of(&key));
}

/* Numbers of keys with one tag, for a store of one bucket. */
static void twins(uint64_t *numbers, unsigned count)
{
    struct kv_key first = kv_key_of(1, 0);
    numbers[0] = 0;
    for (uint64_t number = 1; count > 1; number++) {
        struct kv_key key = kv_key_of(1, number);
        if (kv_tag_of(kv_hash_of(&key)) == kv_tag_of(kv_hash_of(&first)))
            numbers[--count] = number;
    }
}

static void parts_of_the_hash_share_no_bit(void **state)
{
    struct kv_hash base = {UINT64_C(0x0123456789abcdef), UINT64_C(0xfedcba9876543210)};
    for (int bit = 0; bit < 64; bit++) {
        struct kv_hash other = {base.hi, base.lo ^ UINT64_C(1) << bit};
        bool bucket =
            kv_bucket_of(base, UINT64_C(1) << 32) != kv_bucket_of(other, UINT64_C(1) << 32);
        assert_false(bucket && kv_tag_of(base) != kv_tag_of(other));
        assert_int_equal(kv_server_of(base, 7), kv_server_of(other, 7));
        other = (struct kv_hash){base.hi ^ UINT64_C(1) << bit, base.lo};
        assert_true(kv_bucket_of(base, 1 << 14) == kv_bucket_of(other, 1 << 14));
        assert_int_equal(kv_tag_of(base), kv_tag_of(other));
    }
    assert_true(kv_bucket_of(base, 1) == 0);
}

static void what_was_put_is_there_in_both_kinds(void **state)
{
    for (int exact = 0; exact < 2; exact++) {
        struct kv_store *store = kv_store_open(exact ? &exact_options : &lossy_options);
        assert_int_equal(get(store, 1), -1);
        for (uint64_t i = 0; i < 500; i++)
            assert_int_equal(put(store, i, 1, 8 + i % 57), kv_ok);
        for (uint64_t i = 0; i < 500; i += 2)
            assert_int_equal(put(store, i, 2, 40), kv_ok);
        for (uint64_t i = 0; i < 500; i++)
            assert_int_equal(get(store, i), i % 2 ? 1 : 2);
        assert_int_equal(drop(store, 7), kv_ok);
        assert_int_equal(drop(store, 7), kv_missing);
        assert_int_equal(get(store, 7), -1);
        struct kv_counts counts = kv_store_count(store);
        assert_int_equal(counts.puts_new, 500);
        assert_int_equal(counts.puts_update, 250);
        assert_int_equal(counts.gets, 502);
        assert_int_equal(counts.hits, 500);
        assert_int_equal(counts.miss_never, 2);
        assert_int_equal(counts.miss_index + counts.miss_log + counts.miss_unknown, 0);
        assert_int_equal(counts.deletes, 2);
        assert_int_equal(counts.delete_misses, 1);
        assert_int_equal(counts.entries, 499);
        assert_int_equal(put(store, 7, 3, 8), kv_ok);
        assert_int_equal(get(store, 7), 3);
        assert_int_equal(put(store, 8, 3, (exact ? 64 : 1024) + 1), kv_full);
        kv_store_close(store);
    }
}

/* K13, exact: a full store refuses new keys, keeps the old ones, and takes new ones for deleted
 * ones. */
static void a_full_exact_store_says_so(void **state)
{
    struct kv_store_options options = exact_options;
    options.log_bytes = 104 * 100; /* stride for values of 64: 24 + 16 + 64 */
    struct kv_store *store = kv_store_open(&options);
    for (uint64_t i = 0; i < 100; i++)
        assert_int_equal(put(store, i, 1, 64), kv_ok);
    assert_int_equal(put(store, 100, 1, 8), kv_full);
    assert_int_equal(put(store, 50, 2, 8), kv_ok);
    assert_int_equal(drop(store, 3), kv_ok);
    assert_int_equal(put(store, 100, 1, 64), kv_ok);
    assert_int_equal(put(store, 101, 1, 64), kv_full);
    for (uint64_t i = 0; i < 102; i++)
        assert_int_equal(get(store, i), i == 3 || i == 101 ? -1 : (i == 50 ? 2 : 1));
    assert_int_equal(kv_store_count(store).puts_refused, 2);
    assert_true(kv_store_load_factor(store) == 1);
    kv_store_close(store);
}

/* ---- A remote reader of an exact store's memory */

static struct kv_store *published(const struct kv_store_options *with, struct kv_shape *shape,
                                  char **memory)
{
    struct kv_store_options options = *with;
    *shape = kv_shape_of(&options);
    options.memory = *memory = calloc(1, shape->size);
    assert_non_null(options.memory);
    return kv_store_open(&options);
}

/* As transport get does it, at once. Returns as get(). */
static int64_t read_from_afar(const char *memory, const struct kv_shape *shape, uint64_t number)
{
    struct kv_key key = kv_key_of(1, number);
    struct kv_hash hash = kv_hash_of(&key);
    struct kv_line_look look = {.more = true};
    struct kv_value seen;
    for (uint64_t line = hash.lo; look.more; line++) {
        kv_line_look((const uint64_t *)(const void *)memory +
                         (line & UINT32_MAX & (shape->buckets - 1)) * kv_index_slots,
                     hash, &look);
        for (unsigned i = 0; i < look.count; i++) {
            const char *value;
            size_t len;
            enum kv_entry_state state =
                kv_entry_look(memory + shape->entries_at + look.numbers[i] * shape->stride,
                              shape->stride, &key, &value, &len);
            assert_int_not_equal(state, kv_entry_torn);
            if (state == kv_entry_other)
                continue;
            assert_null(kv_value_check(value, len, hash, &seen));
            return seen.version;
        }
    }
    return -1;
}

/* Also of keys whose line of the index was full, with deletions that empty places before them. */
static void readers_of_an_exact_store_see_its_contents(void **state)
{
    enum { keys = 150 };
    struct kv_store_options options = exact_options;
    struct kv_shape shape;
    uint32_t versions[keys] = {0};
    struct unit_random r = unit_random(3);
    options.buckets = 1;
    options.log_bytes = 104 * 100; /* as below: 100 entries, 32 lines */
    char *memory;
    struct kv_store *store = published(&options, &shape, &memory);
    for (uint32_t round = 1; round <= 20000; round++) {
        unsigned number = unit_below(&r, keys);
        if (unit_below(&r, 3) == 0)
            versions[number] = drop(store, number) == kv_ok ? 0 : versions[number];
        else if (put(store, number, round, 8 + unit_below(&r, 57)) == kv_ok)
            versions[number] = round;
        number = unit_below(&r, keys);
        int64_t expected = versions[number] ? (int64_t)versions[number] : -1;
        assert_int_equal(read_from_afar(memory, &shape, number), expected);
        assert_int_equal(get(store, number), expected);
    }
    assert_true(kv_store_count(store).puts_refused > 0);
    kv_store_close(store);
    free(memory);
}

/* Each part of a copy may be older than the rest, in each order of reading. */
static void a_torn_entry_is_reported(void **state)
{
    struct kv_shape shape;
    char *memory, old[256], torn[256];
    struct kv_store *store = published(&exact_options, &shape, &memory);
    char *there = memory + shape.entries_at; /* the first entry is number 0 */
    struct kv_key key = kv_key_of(1, 5);
    const char *value;
    size_t len;
    assert_true(shape.stride <= sizeof(old));
    put(store, 5, 1, 64);
    memcpy(old, there, shape.stride);
    assert_int_equal(kv_entry_look(old, shape.stride, &key, &value, &len), kv_entry_whole);
    put(store, 5, 2, 64);
    size_t used = shape.stride;
    for (size_t from = 0; from < used; from += 8)
        for (size_t to = from + 8; to <= used; to += 8) {
            memcpy(torn, there, used);
            memcpy(torn + from, old + from, to - from);
            bool same = !memcmp(torn, there, used) || !memcmp(torn, old, used);
            assert_int_equal(kv_entry_look(torn, used, &key, &value, &len),
                             same ? kv_entry_whole : kv_entry_torn);
        }
    kv_exact_damage(store, &key, kv_hash_of(&key), kv_damage_half);
    assert_int_equal(kv_entry_look(there, used, &key, &value, &len), kv_entry_torn);
    put(store, 5, 3, 8); /* the next one makes it whole */
    assert_int_equal(kv_entry_look(there, used, &key, &value, &len), kv_entry_whole);
    assert_int_equal(len, 8);
    key.bytes[0] ^= 1;
    assert_int_equal(kv_entry_look(there, used, &key, &value, &len), kv_entry_other);
    kv_store_close(store);
    free(memory);
}

/* K11: among keys of one tag in one bucket the newest version of each is what a GET sees. */
static void twins_do_not_hide_each_other(void **state)
{
    uint64_t numbers[5];
    twins(numbers, 5);
    for (int inplace = 0; inplace < 2; inplace++) {
        struct kv_store_options options = lossy_options;
        options.buckets = 1;
        options.inplace = inplace;
        struct kv_store *store = kv_store_open(&options);
        for (uint32_t version = 1; version <= 1000; version++)
            for (int i = 0; i < 5; i++) {
                assert_int_equal(put(store, numbers[i], version, 32 + version % 3 * 8), kv_ok);
                assert_int_equal(get(store, numbers[i]), version);
                int64_t before = version > 1 ? (int64_t)version - 1 : -1;
                assert_int_equal(get(store, numbers[(i + 1) % 5]), i < 4 ? before : version);
            }
        struct kv_counts counts = kv_store_count(store);
        assert_int_equal(counts.entries, 5); /* one slot a key */
        assert_int_equal(counts.puts_new, 5);
        assert_true(counts.twins > 1000);
        assert_int_equal(counts.evictions, 0);
        kv_store_close(store);
    }
}

static void count_key(void *arg, const struct kv_key *key, const char *value, size_t len)
{
    struct kv_key wanted = kv_key_of(1, 0);
    (void)value, (void)len;
    *(int *)arg += !memcmp(key, &wanted, sizeof(wanted));
}

/* K11: an evicted key does not come back in an older version. */
static void the_evicted_do_not_rise(void **state)
{
    struct kv_store_options options = lossy_options;
    options.buckets = 1;
    struct kv_store *store = kv_store_open(&options);
    for (uint32_t round = 1; round <= 200; round++) {
        for (uint32_t i = 0; i < 7; i++)
            put(store, 100 + (round * 5 + i) % 20, round, 16);
        /* Always in other slots, so that an older version could survive in a former slot. */
        for (uint32_t v = 0; v < 3; v++)
            put(store, 0, round * 3 + v, 32);
        int slots = 0;
        kv_store_each(store, count_key, &slots);
        assert_int_equal(slots, 1);
        assert_int_equal(get(store, 0), round * 3 + 2);
        for (uint32_t i = 0; i < 8; i++)
            put(store, 200 + i, round, 16);
        assert_int_equal(get(store, 0), -1);
    }
    assert_int_equal(kv_store_count(store).miss_index, 200);
    kv_store_close(store);
}

/* K12: many laps with entries of all sizes, from a place where the 47 bits wrap, too. Each hit is
 * the newest version, whole; a write past the log's end would meet the page behind it. */
static void the_log_goes_round(void **state)
{
    enum { keys = 3000, rounds = 40000 };
    static uint32_t versions[keys];
    uint64_t starts[] = {0, (UINT64_C(1) << 47) - (3 << 20)};
    uint64_t missed[2] = {0};
    for (int s = 0; s < 2; s++) {
        struct kv_store_options options = lossy_options;
        struct unit_random r = unit_random(5);
        uint64_t misses = 0;
        options.first_offset = starts[s];
        struct kv_store *store = kv_store_open(&options);
        memset(versions, 0, sizeof(versions));
        for (uint32_t round = 1; round <= rounds; round++) {
            unsigned number = unit_below(&r, keys);
            put(store, number, versions[number] = round, 4 + unit_below(&r, 1021));
            number = unit_below(&r, keys);
            int64_t version = get(store, number);
            assert_true(version < 0 || version == versions[number]);
            misses += version < 0 && versions[number];
        }
        struct kv_counts counts = kv_store_count(store);
        assert_true(counts.laps >= 5);
        assert_true(misses > 0 && misses == counts.miss_log + counts.miss_index);
        missed[s] = misses;
        kv_store_close(store);
    }
    assert_int_equal(missed[0], missed[1]);
}

/* K13, FIFO: of entries of one size exactly the last ones that fit are alive. */
static void the_log_forgets_its_oldest(void **state)
{
    enum { entry = 24 + 40, fit = (1 << 20) / entry, keys = 3 * fit + 100 };
    struct kv_store_options options = lossy_options;
    options.buckets = 1 << 16;
    struct kv_store *store = kv_store_open(&options);
    for (uint64_t i = 0; i < keys; i++)
        put(store, i, 1, 40);
    struct kv_counts counts = kv_store_count(store);
    assert_int_equal(counts.evictions, 0);
    assert_int_equal(counts.entries, fit);
    for (uint64_t i = 0; i < keys; i++)
        assert_int_equal(get(store, i), i < keys - fit ? -1 : 1);
    counts = kv_store_count(store);
    assert_int_equal(counts.miss_log, keys - fit);
    assert_int_equal(counts.miss_index, 0);
    kv_store_close(store);
}

/* Buckets fill like a Poisson process; what exceeds 8 is lost. */
static double expected_loss(double load)
{
    double mean = load * kv_index_slots, p = exp(-mean), lost = 0;
    for (int k = 1; k < 200; k++) {
        p *= mean / k;
        if (k > kv_index_slots)
            lost += p * (k - kv_index_slots);
    }
    return lost / mean;
}

static void a_bucket_loses_what_poisson_says(void **state)
{
    static const struct {
        double load, known;
        unsigned bits;
    } cases[] = {{0.5, 0.0084, 16}, {0.75, 0.052, 15}, {1, 0.140, 14}, {2, 0.501, 14}};
    for (size_t c = 0; c < sizeof(cases) / sizeof(*cases); c++) {
        struct kv_store_options options = lossy_options;
        options.buckets = UINT64_C(1) << cases[c].bits;
        options.log_bytes = 1 << 24;
        options.ledger = false;
        struct kv_store *store = kv_store_open(&options);
        uint64_t keys = (uint64_t)(cases[c].load * (double)options.buckets * kv_index_slots);
        assert_true(keys >= 100000);
        for (uint64_t i = 0; i < keys; i++)
            put(store, i, 1, 8);
        double lost = 1 - (double)kv_store_count(store).entries / (double)keys;
        double expected = expected_loss(cases[c].load);
        assert_true(fabs(expected - cases[c].known) < 0.01 * cases[c].known + 0.0005);
        if (fabs(lost - expected) > 0.05 * expected)
            fail_msg("load %g: lost %g, expected %g", cases[c].load, lost, expected);
        kv_store_close(store);
    }
}

/* K5: each miss is counted by its true cause. */
static void a_miss_is_reported_by_its_cause(void **state)
{
    struct kv_store_options options = lossy_options;
    options.buckets = 1;
    struct kv_store *store = kv_store_open(&options);
    for (uint64_t i = 0; i < 9; i++)
        put(store, i, 1, 32);
    assert_int_equal(get(store, 0), -1); /* the ninth took the oldest's slot */
    assert_int_equal(get(store, 1000), -1);
    for (uint32_t version = 1; version <= (1 << 20) / 1048 + 2; version++)
        put(store, 8, version, 1024);
    assert_int_equal(get(store, 5), -1); /* the log went over it */
    struct kv_counts counts = kv_store_count(store);
    assert_int_equal(counts.miss_index, 1);
    assert_int_equal(counts.miss_never, 1);
    assert_int_equal(counts.miss_log, 1);
    assert_int_equal(counts.evictions, 1);
    kv_store_close(store);
    options.ledger = false;
    store = kv_store_open(&options);
    assert_int_equal(get(store, 1), -1);
    assert_int_equal(kv_store_count(store).miss_unknown, 1);
    kv_store_close(store);
}

static void equal_contents_have_equal_digests(void **state)
{
    struct kv_store *a = kv_store_open(&lossy_options), *b = kv_store_open(&exact_options);
    for (uint64_t i = 0; i < 200; i++) {
        put(a, i, 2, 32);
        put(b, 199 - i, 1, 40);
        put(b, 199 - i, 2, 32);
    }
    assert_true(kv_store_digest(a) == kv_store_digest(b));
    put(a, 5, 3, 32);
    assert_true(kv_store_digest(a) != kv_store_digest(b));
    put(b, 5, 3, 32);
    assert_true(kv_store_digest(a) == kv_store_digest(b));
    drop(b, 5);
    assert_true(kv_store_digest(a) != kv_store_digest(b));
    static const uint64_t there[2] = {1, 2}, back[2] = {2, 1};
    struct kv_key key = kv_key_of(1, 5);
    kv_store_put(a, &key, kv_hash_of(&key), there, sizeof(there));
    kv_store_put(b, &key, kv_hash_of(&key), back, sizeof(back));
    assert_true(kv_store_digest(a) != kv_store_digest(b));
    kv_store_close(a);
    kv_store_close(b);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(parts_of_the_hash_share_no_bit),
    cmocka_unit_test(what_was_put_is_there_in_both_kinds),
    cmocka_unit_test(a_full_exact_store_says_so),
    cmocka_unit_test(readers_of_an_exact_store_see_its_contents),
    cmocka_unit_test(a_torn_entry_is_reported),
    cmocka_unit_test(twins_do_not_hide_each_other),
    cmocka_unit_test(the_evicted_do_not_rise),
    cmocka_unit_test(the_log_goes_round),
    cmocka_unit_test(the_log_forgets_its_oldest),
    cmocka_unit_test(a_bucket_loses_what_poisson_says),
    cmocka_unit_test(a_miss_is_reported_by_its_cause),
    cmocka_unit_test(equal_contents_have_equal_digests),
};
UNIT_MAIN(tests)
