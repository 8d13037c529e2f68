/* SPDX-License-Identifier: BSD-3-Clause */
/* See wire.h. memcached: its meta commands, which are its shortest as text; a key is 32 hexadecimal
 * digits, because it must not contain blanks. Redis: RESP 2, the key as it is. Owns nothing. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire.h"

static char *add(char *to, const void *bytes, size_t size)
{
    memcpy(to, bytes, size);
    return to + size;
}

static char *add_text(char *to, const char *text)
{
    return add(to, text, strlen(text));
}

/* sprintf() would be the most expensive part of a client. */
static char *add_number(char *to, size_t number)
{
    char digits[20], *first = digits + sizeof(digits);
    do
        *--first = (char)('0' + number % 10);
    while (number /= 10);
    return add(to, first, (size_t)(digits + sizeof(digits) - first));
}

/* The first line's length without its end; false when it is not whole. */
static bool line_of(const char *from, size_t size, size_t *length)
{
    const char *end = memchr(from, '\n', size);
    if (!end || end == from)
        return false;
    *length = (size_t)(end - from) - 1;
    return true;
}

/* A value of the length that `digits` say, behind a line of `line` bytes. */
static size_t read_value(const char *from, size_t size, size_t line, const char *digits,
                         struct kv_wire_answer *answer)
{
    size_t len = strtoul(digits, NULL, 10);
    if (len > kv_value_max)
        return KV_WIRE_BROKEN;
    if (size < line + 2 + len + 2)
        return 0;
    *answer = (struct kv_wire_answer){kv_ok, from + line + 2, len};
    return line + 2 + len + 2;
}

static uint64_t number_behind(const char *text, const char *name)
{
    const char *place = strstr(text, name);
    return place ? strtoull(place + strlen(name), NULL, 10) : 0;
}

/* ---- memcached */

static size_t memcached_write(char *to, enum kv_op op, const struct kv_key *key, const void *value,
                              size_t len)
{
    static const char *const words[] = {"mg ", "ms ", "md "};
    static const char hex[] = "0123456789abcdef";
    char *end = add_text(to, words[op]);
    for (int i = 0; i < kv_key_usual; i++) {
        *end++ = hex[key->bytes[i] >> 4];
        *end++ = hex[key->bytes[i] & 15];
    }
    if (op == kv_get)
        return (size_t)(add_text(end, " v\r\n") - to);
    if (op == kv_put) {
        *end++ = ' ';
        end = add_text(add_number(end, len), "\r\n");
        end = add(end, value, len);
    }
    return (size_t)(add_text(end, "\r\n") - to);
}

static size_t memcached_read(const char *from, size_t size, enum kv_op op,
                             struct kv_wire_answer *answer)
{
    static const char full[] = "SERVER_ERROR out of memory";
    size_t line;
    if (!line_of(from, size, &line))
        return 0;
    *answer = (struct kv_wire_answer){kv_ok, NULL, 0};
    if (op == kv_get && line > 3 && !memcmp(from, "VA ", 3))
        return read_value(from, size, line, from + 3, answer);
    if (op == kv_put && line >= sizeof(full) - 1 && !memcmp(from, full, sizeof(full) - 1))
        answer->status = kv_full;
    else if (line == 2 && !memcmp(from, op == kv_get ? "EN" : "NF", 2) && op != kv_put)
        answer->status = kv_missing;
    else if (op == kv_get || line != 2 || memcmp(from, "HD", 2))
        return KV_WIRE_BROKEN;
    return line + 2;
}

static void memcached_count(const char *text, struct kv_wire_counts *counts)
{
    *counts = (struct kv_wire_counts){
        .gets = number_behind(text, "STAT cmd_get "),
        .hits = number_behind(text, "STAT get_hits "),
        .puts = number_behind(text, "STAT cmd_set "),
        .deletes =
            number_behind(text, "STAT delete_hits ") + number_behind(text, "STAT delete_misses "),
        .entries = number_behind(text, "STAT curr_items "),
        .evictions = number_behind(text, "STAT evictions "),
    };
}

const struct kv_wire kv_wire_memcached = {"memcached", memcached_write, memcached_read,
                                          "stats\r\n", "END\r\n",       memcached_count};

/* ---- Redis */

static size_t redis_write(char *to, enum kv_op op, const struct kv_key *key, const void *value,
                          size_t len)
{
    static const char *const words[] = {"*2\r\n$3\r\nGET\r\n$16\r\n", "*3\r\n$3\r\nSET\r\n$16\r\n",
                                        "*2\r\n$3\r\nDEL\r\n$16\r\n"};
    _Static_assert(kv_key_usual == 16, "the words say how long a key is");
    char *end = add(add_text(to, words[op]), key->bytes, kv_key_usual);
    if (op == kv_put) {
        end = add_text(add_number(add_text(end, "\r\n$"), len), "\r\n");
        end = add(end, value, len);
    }
    return (size_t)(add_text(end, "\r\n") - to);
}

static size_t redis_read(const char *from, size_t size, enum kv_op op,
                         struct kv_wire_answer *answer)
{
    size_t line;
    if (!line_of(from, size, &line))
        return 0;
    *answer = (struct kv_wire_answer){kv_ok, NULL, 0};
    if (op == kv_get && line > 1 && from[0] == '$' && from[1] != '-')
        return read_value(from, size, line, from + 1, answer);
    if (op == kv_put && line > 4 && !memcmp(from, "-OOM", 4))
        answer->status = kv_full;
    else if ((op == kv_get && line == 3 && !memcmp(from, "$-1", 3)) ||
             (op == kv_delete && line == 2 && !memcmp(from, ":0", 2)))
        answer->status = kv_missing;
    else if (!(op == kv_put && line == 3 && !memcmp(from, "+OK", 3)) &&
             !(op == kv_delete && line == 2 && !memcmp(from, ":1", 2)))
        return KV_WIRE_BROKEN;
    return line + 2;
}

static void redis_count(const char *text, struct kv_wire_counts *counts)
{
    *counts = (struct kv_wire_counts){
        .gets = number_behind(text, "cmdstat_get:calls="),
        .hits = number_behind(text, "keyspace_hits:"),
        .puts = number_behind(text, "cmdstat_set:calls="),
        .deletes = number_behind(text, "cmdstat_del:calls="),
        .entries = number_behind(text, "db0:keys="),
        .evictions = number_behind(text, "evicted_keys:"),
    };
}

/* The PING behind it marks the end of a text whose sections differ between versions. */
const struct kv_wire kv_wire_redis = {
    "redis",     redis_write, redis_read, "*2\r\n$4\r\nINFO\r\n$3\r\nall\r\n*1\r\n$4\r\nPING\r\n",
    "+PONG\r\n", redis_count};
