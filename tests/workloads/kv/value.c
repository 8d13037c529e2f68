/* SPDX-License-Identifier: BSD-3-Clause */
/* See value.h. Owns nothing. */
#include "config.h"

#include <string.h>

#include "record.h"
#include "value.h"

struct full {
    uint32_t magic, length;
    uint64_t key;
    uint32_t writer, version;
};

static const uint32_t magic = 0x6b76616cu;

static void fill_stream(char *at, size_t len, struct kv_hash hash, uint32_t writer,
                        uint32_t version)
{
    struct wl_random r = wl_random(hash.hi ^ hash.lo, (uint64_t)writer << 32 | version);
    while (len > 0) {
        uint64_t word = wl_next(&r);
        size_t piece = len < sizeof(word) ? len : sizeof(word);
        memcpy(at, &word, piece);
        at += piece;
        len -= piece;
    }
}

void kv_value_fill(void *value, size_t len, struct kv_hash hash, uint32_t writer, uint32_t version)
{
    char *at = value;
    if (len >= kv_value_full) {
        struct full head = {magic, (uint32_t)len, hash.lo, writer, version};
        memcpy(at, &head, sizeof(head));
        fill_stream(at + sizeof(head), len - sizeof(head), hash, writer, version);
        return;
    }
    memcpy(at, &version, len < sizeof(version) ? len : sizeof(version));
    if (len > sizeof(version))
        fill_stream(at + sizeof(version), len - sizeof(version), hash, 0, version);
}

/* Which part of a full value is wrong, in the order in which a reader would ask. */
static const char *look_full(const void *value, size_t len, struct kv_hash hash,
                             struct kv_value *seen)
{
    struct full head;
    memcpy(&head, value, sizeof(head));
    seen->writer = head.writer;
    seen->version = head.version;
    if (head.magic != magic)
        return "that is no value";
    if (head.key != hash.lo)
        return "the value of another key";
    return head.length != len ? "a value of another length" : NULL;
}

const char *kv_value_check(const void *value, size_t len, struct kv_hash hash,
                           struct kv_value *seen)
{
    char expected[kv_value_max];
    const char *wrong = NULL;
    *seen = (struct kv_value){0, 0};
    if (len == 0 || len > sizeof(expected))
        return "a length that no value has";
    if (len >= kv_value_full)
        wrong = look_full(value, len, hash, seen);
    else
        memcpy(&seen->version, value, len < 4 ? len : 4);
    if (wrong)
        return wrong;
    kv_value_fill(expected, len, hash, seen->writer, seen->version);
    return memcmp(expected, value, len) ? "bytes that were never written" : NULL;
}
