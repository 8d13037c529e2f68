/* SPDX-License-Identifier: BSD-3-Clause */
/* The protocols of memcached and Redis: requests and answers as bytes, without sockets. Both answer
 * in the order of the requests. No state. */
#ifndef KV_WIRE_H
#define KV_WIRE_H

#include <stddef.h>
#include <stdint.h>

#include "record.h"
#include "store.h"

enum { kv_wire_max = kv_value_max + 128 }; /* bytes of a request or an answer */

#define KV_WIRE_BROKEN SIZE_MAX

struct kv_wire_answer {
    enum kv_status status;
    const char *value; /* in the bytes that were read */
    size_t len;
};

/* A server's counters since its start. */
struct kv_wire_counts {
    uint64_t gets, hits, puts, deletes, entries, evictions;
};

struct kv_wire {
    const char *name;
    /* Returns the number of bytes written, at most kv_wire_max. */
    size_t (*write)(char *to, enum kv_op op, const struct kv_key *key, const void *value,
                    size_t len);
    /* Returns the bytes of the first answer, 0 when it is incomplete, KV_WIRE_BROKEN when it is not
     * an answer to `op`. */
    size_t (*read)(const char *from, size_t size, enum kv_op op, struct kv_wire_answer *answer);
    const char *ask; /* for counters */
    const char *end; /* of the text that then comes */
    /* `text` ends with a zero */
    void (*count)(const char *text, struct kv_wire_counts *counts);
};
extern const struct kv_wire kv_wire_memcached, kv_wire_redis;

#endif
