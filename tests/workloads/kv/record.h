/* SPDX-License-Identifier: BSD-3-Clause */
/* A request in its slot. Ascending: value, len (2), seq (4), key (16), mark (1), with the mark in
 * the slot's last byte: if data arrive in ascending order, all are present once the mark is, and a
 * request of any length is one contiguous write. A GET writes seq to mark only; len is then 0
 * because the server cleared it when it took the previous request.
 *
 * --compat is the layout of Ib-KV: len (2), value (32), key (16) in slots of 50 bytes, which
 * straddle lines. The key's last byte stands for the mark and must not be 0; there is no seq, so a
 * request is known by its slot only, and a duplicate cannot be detected. */
#ifndef KV_RECORD_H
#define KV_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "key.h"

enum kv_op { kv_get, kv_put, kv_delete };

enum {
    kv_at_mark = 1,
    kv_header_rest = 1 + 4 + 2, /* mark, seq and len */
    kv_get_max = 1 + kv_key_max + 4,
    kv_value_max = 1024,
    kv_len_delete = 0xFFFF,
    kv_line = 64,
    kv_compat_value = 32,
    kv_compat_slot = 2 + kv_compat_value + kv_key_usual
};

/* Distances from the end of the slot, and what a GET and a request without value write. */
struct kv_layout {
    bool compat;
    size_t at_key, at_seq, at_len, get_image, header_image;
};
extern struct kv_layout kv_layout;

/* Before anything else; 16 and false without it. */
void kv_layout_set(size_t key_size, bool compat);

struct kv_request {
    enum kv_op op;
    uint16_t len; /* of the value, PUT only */
    uint32_t seq;
    struct kv_key key;
    const char *value; /* in the slot; PUT only */
};

/* The size of slots for values of up to `value_max` bytes: whole lines. */
static inline size_t kv_slot_size(size_t value_max)
{
    return kv_layout.compat
               ? kv_compat_slot
               : (value_max + kv_layout.header_image + kv_line - 1) / kv_line * kv_line;
}

/* Request number r of a client to this server, from 0 on. */
static inline size_t kv_slot_index(uint64_t client, uint64_t window, uint64_t r)
{
    return (size_t)(client * window + r % window);
}

/* Never 0, and another one each time that the slot is used again. */
static inline uint8_t kv_mark_of(uint64_t window, uint64_t r)
{
    return (uint8_t)(1 + r / window % 255);
}

/* Bytes that a request writes; they end with the slot. */
static inline size_t kv_image_size(enum kv_op op, size_t len)
{
    if (op == kv_get)
        return kv_layout.get_image;
    return kv_layout.compat ? kv_compat_slot : kv_layout.header_image + (op == kv_put ? len : 0);
}

/* Where a PUT's value begins. */
static inline char *kv_record_value(char *end, size_t len)
{
    return end - (kv_layout.compat ? kv_compat_slot - 2 : kv_layout.at_len + len);
}

/* Writes a request's image so that it ends at `end`; only kv_image_size() bytes are touched. The
 * caller writes the value's bytes: see kv_record_value(). */
void kv_record_write(char *end, enum kv_op op, uint16_t len, uint32_t seq, const struct kv_key *key,
                     uint8_t mark);

/* Reads the request that ends at `end`, without its mark; false if len is not the length of a value
 * of at most `value_max` bytes. */
bool kv_record_read(const char *end, size_t value_max, struct kv_request *request);

static inline uint8_t kv_record_mark(const char *end)
{
    return (uint8_t)end[-kv_at_mark];
}

/* An answer, in the same manner: value, len (2), status (1), seq (4), mark (1). With --compat len
 * and value, 34 bytes, for a GET (len 0: not found), and one status byte for a PUT: the caller must
 * know the request. */
enum {
    kv_answer_image = 8,
    kv_answer_max = kv_value_max + kv_answer_image,
    kv_compat_answer = 2 + kv_compat_value
};

struct kv_answer {
    uint32_t seq;
    unsigned status;
    const char *value;
    size_t len;
};

/* Writes it so that it ends at `end`; returns its size. `op` is that of the request. */
size_t kv_answer_write(char *end, enum kv_op op, uint32_t seq, unsigned status, const void *value,
                       size_t len, uint8_t mark);

/* False when it cannot be one of at most `most` bytes. With --compat `most` is its size, and seq
 * stays as it is. */
bool kv_answer_read(const char *end, size_t most, struct kv_answer *answer);

/* The server took it: no mark, so that it is not taken again; no length, for the next may be a GET.
 * For injection either part may be left out. */
void kv_record_clear(char *end, bool mark, bool len);

#endif
