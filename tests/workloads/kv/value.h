/* SPDX-License-Identifier: BSD-3-Clause */
/* Values that reveal every mix-up: from 32 bytes on a value names its key, writer, version and
 * length, and the rest follows from these. Shorter ones hold as much of version and key as fits. */
#ifndef KV_VALUE_H
#define KV_VALUE_H

#include <stddef.h>
#include <stdint.h>

#include "key.h"

enum { kv_value_full = 32 };

struct kv_value {
    uint32_t writer, version; /* writer: 0 in a short value; version: its low 8 * len bits */
};

void kv_value_fill(void *value, size_t len, struct kv_hash hash, uint32_t writer, uint32_t version);

/* NULL, or the error. */
const char *kv_value_check(const void *value, size_t len, struct kv_hash hash,
                           struct kv_value *seen);

/* The bits of a version that a value of this length holds. */
static inline uint32_t kv_version_mask(size_t len)
{
    return len >= 4 ? UINT32_MAX : (UINT32_C(1) << (8 * len)) - 1;
}

#endif
