/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table with rings of idle entries: an inserted entry is found by its key and by no other, and
 * a ring returns its entries in the order in which they became idle. */
#include "config.h"

#include "base/idle_table.h"
#include "unit.h"

enum { things = 64 };

struct thing {
    struct tk_entry entry;
    uint64_t key;
    bool is_in;
};

static struct thing *thing_of(struct tk_entry *entry)
{
    return (struct thing *)entry;
}

static bool is_found(const struct tk_table *table, const struct thing *wanted)
{
    unsigned found = 0;
    for (struct tk_entry *e = *tk_table_bucket(table, wanted->key); e; e = e->next)
        found += thing_of(e) == wanted;
    assert_true(found <= 1);
    return found;
}

/* Few buckets, so that most entries share one, and few keys, so that some entries share those. */
static void entries_are_found_until_they_are_removed(void **state)
{
    struct thing thing[things] = {{.key = 0}};
    struct tk_table table;
    struct unit_random r = unit_random(1);
    assert_true(tk_table_open(&table, 4));
    for (unsigned i = 0; i < things; i++)
        thing[i].key = unit_below(&r, 40);
    for (unsigned step = 0; step < 2000; step++) {
        struct thing *t = &thing[unit_below(&r, things)];
        if (t->is_in)
            tk_table_remove(&table, t->key, &t->entry);
        else
            tk_table_insert(&table, t->key, &t->entry);
        t->is_in = !t->is_in;
        for (unsigned i = 0; i < things; i++)
            assert_int_equal(is_found(&table, &thing[i]), thing[i].is_in);
    }
    tk_table_close(&table);
    tk_table_close(&table);
}

/* Keys of regions are adjacent, or far apart at equal distances. */
static void keys_in_a_row_or_far_apart_share_no_bucket_with_many(void **state)
{
    enum { buckets = 256 };
    struct tk_table table;
    assert_true(tk_table_open(&table, buckets));
    for (unsigned shift = 0; shift <= 24; shift++) {
        unsigned load[buckets] = {0}, most = 0;
        for (uint64_t i = 0; i < buckets; i++) {
            unsigned n = ++load[tk_table_bucket(&table, i << shift) - table.buckets];
            most = n > most ? n : most;
        }
        assert_in_range(most, 1, 8);
    }
    tk_table_close(&table);
}

static void a_ring_is_empty_or_has_an_oldest(void **state)
{
    struct tk_entry ring, one, two, three;
    tk_idle_open(&ring);
    assert_null(tk_idle_oldest(&ring));
    tk_idle_add_newest(&ring, &one);
    tk_idle_add_newest(&ring, &two);
    assert_ptr_equal(tk_idle_oldest(&ring), &one);
    tk_idle_add_oldest(&ring, &three);
    assert_ptr_equal(tk_idle_oldest(&ring), &three);
    tk_idle_remove(&three);
    tk_idle_remove(&one);
    assert_ptr_equal(tk_idle_oldest(&ring), &two);
    tk_idle_add_newest(&ring, &one);
    assert_ptr_equal(tk_idle_oldest(&ring), &two);
    tk_idle_remove(&two);
    tk_idle_remove(&one);
    assert_null(tk_idle_oldest(&ring));
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(entries_are_found_until_they_are_removed),
    cmocka_unit_test(keys_in_a_row_or_far_apart_share_no_bucket_with_many),
    cmocka_unit_test(a_ring_is_empty_or_has_an_oldest),
};

UNIT_MAIN(tests)
