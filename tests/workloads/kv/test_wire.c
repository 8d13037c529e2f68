/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to memcached and Redis, to the byte, and the parsing of their answers, in pieces of
 * every size. */
#include "config.h"

#include <string.h>

#include "unit.h"
#include "wire.h"

static const struct kv_key key = {"\x01\xab\r\n0123456789\xff"};

static void assert_writes(const struct kv_wire *wire, enum kv_op op, const char *value,
                          const char *expected, size_t size)
{
    char text[kv_wire_max];
    assert_int_equal(wire->write(text, op, &key, value, value ? strlen(value) : 0), size);
    assert_memory_equal(text, expected, size);
}
#define WRITES(wire, op, value, text) assert_writes(wire, op, value, text, sizeof(text) - 1)

static void requests_are_what_the_servers_know(void **state)
{
    WRITES(&kv_wire_memcached, kv_get, NULL, "mg 01ab0d0a30313233343536373839ff00 v\r\n");
    WRITES(&kv_wire_memcached, kv_put, "twelve bytes",
           "ms 01ab0d0a30313233343536373839ff00 12\r\ntwelve bytes\r\n");
    WRITES(&kv_wire_memcached, kv_delete, NULL, "md 01ab0d0a30313233343536373839ff00\r\n");
    WRITES(&kv_wire_redis, kv_get, NULL,
           "*2\r\n$3\r\nGET\r\n$16\r\n\x01\xab\r\n0123456789\xff\0\r\n");
    WRITES(&kv_wire_redis, kv_put, "x",
           "*3\r\n$3\r\nSET\r\n$16\r\n\x01\xab\r\n0123456789\xff\0\r\n$1\r\nx\r\n");
    WRITES(&kv_wire_redis, kv_delete, NULL,
           "*2\r\n$3\r\nDEL\r\n$16\r\n\x01\xab\r\n0123456789\xff\0\r\n");
}

/* Whole when all is there, and not a byte before; what follows is left alone. */
static void assert_reads(const struct kv_wire *wire, enum kv_op op, const char *text,
                         enum kv_status status, const char *value)
{
    struct kv_wire_answer answer;
    char more[128];
    size_t size = strlen(text);
    for (size_t part = 0; part < size; part++)
        assert_int_equal(wire->read(text, part, op, &answer), 0);
    snprintf(more, sizeof(more), "%s%s", text, text);
    assert_int_equal(wire->read(more, 2 * size, op, &answer), size);
    assert_int_equal(answer.status, status);
    assert_int_equal(answer.len, value ? strlen(value) : 0);
    if (value)
        assert_memory_equal(answer.value, value, strlen(value));
}

static void answers_are_whole_or_not_there(void **state)
{
    assert_reads(&kv_wire_memcached, kv_get, "VA 5\r\na\r\nbc\r\n", kv_ok, "a\r\nbc");
    assert_reads(&kv_wire_memcached, kv_get, "EN\r\n", kv_missing, NULL);
    assert_reads(&kv_wire_memcached, kv_put, "HD\r\n", kv_ok, NULL);
    assert_reads(&kv_wire_memcached, kv_put, "SERVER_ERROR out of memory storing object\r\n",
                 kv_full, NULL);
    assert_reads(&kv_wire_memcached, kv_delete, "HD\r\n", kv_ok, NULL);
    assert_reads(&kv_wire_memcached, kv_delete, "NF\r\n", kv_missing, NULL);
    assert_reads(&kv_wire_redis, kv_get, "$5\r\na\r\nbc\r\n", kv_ok, "a\r\nbc");
    assert_reads(&kv_wire_redis, kv_get, "$-1\r\n", kv_missing, NULL);
    assert_reads(&kv_wire_redis, kv_put, "+OK\r\n", kv_ok, NULL);
    assert_reads(&kv_wire_redis, kv_put, "-OOM command not allowed\r\n", kv_full, NULL);
    assert_reads(&kv_wire_redis, kv_delete, ":1\r\n", kv_ok, NULL);
    assert_reads(&kv_wire_redis, kv_delete, ":0\r\n", kv_missing, NULL);
}

static void assert_broken(const struct kv_wire *wire, enum kv_op op, const char *text)
{
    struct kv_wire_answer answer;
    assert_true(wire->read(text, strlen(text), op, &answer) == KV_WIRE_BROKEN);
}

static void what_is_no_answer_is_not_taken_for_one(void **state)
{
    assert_broken(&kv_wire_memcached, kv_get, "HD\r\n");
    assert_broken(&kv_wire_memcached, kv_get, "VA 1025\r\n");
    assert_broken(&kv_wire_memcached, kv_get, "CLIENT_ERROR bad command line format\r\n");
    assert_broken(&kv_wire_memcached, kv_put, "NF\r\n");
    assert_broken(&kv_wire_memcached, kv_put, "ERROR\r\n");
    assert_broken(&kv_wire_memcached, kv_delete, "EN\r\n");
    assert_broken(&kv_wire_redis, kv_get, "+OK\r\n");
    assert_broken(&kv_wire_redis, kv_get, "$1025\r\n");
    assert_broken(&kv_wire_redis, kv_put, "-ERR unknown command\r\n");
    assert_broken(&kv_wire_redis, kv_put, "$-1\r\n");
    assert_broken(&kv_wire_redis, kv_delete, "+OK\r\n");
}

static void assert_counts(const struct kv_wire *wire, const char *text, uint64_t deletes,
                          uint64_t evictions)
{
    const struct kv_wire_counts expected = {7, 5, 3, deletes, 2, evictions};
    struct kv_wire_counts counts;
    wire->count(text, &counts);
    assert_memory_equal(&counts, &expected, sizeof(counts));
}

static void counters_are_found_in_the_text(void **state)
{
    assert_counts(&kv_wire_memcached,
                  "STAT pid 9\r\nSTAT cmd_get 7\r\nSTAT cmd_set 3\r\nSTAT get_hits 5\r\n"
                  "STAT get_misses 2\r\nSTAT delete_misses 1\r\nSTAT delete_hits 4\r\n"
                  "STAT curr_items 2\r\nSTAT evictions 6\r\nEND\r\n",
                  5, 6);
    assert_counts(&kv_wire_redis,
                  "keyspace_hits:5\r\nevicted_keys:1\r\ncmdstat_set:calls=3,usec=1\r\n"
                  "cmdstat_del:calls=4,usec=1\r\ncmdstat_get:calls=7,usec=2\r\ndb0:keys=2,expires="
                  "0\r\n+PONG\r\n",
                  4, 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(requests_are_what_the_servers_know),
    cmocka_unit_test(answers_are_whole_or_not_there),
    cmocka_unit_test(what_is_no_answer_is_not_taken_for_one),
    cmocka_unit_test(counters_are_found_in_the_text),
};
UNIT_MAIN(tests)
