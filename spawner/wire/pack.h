/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers and strings in the payload of a frame: little-endian, strings with their length. Reading
 * never leaves the payload: what does not fit makes the reader bad, and then all that it returns is
 * zero or empty. Pure; no lock. */
#ifndef TRUNKLINE_SPAWNER_PACK_H
#define TRUNKLINE_SPAWNER_PACK_H

#include "spawner/util/byte_queue.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void pack_number(struct bytes *b, uint32_t n);
void pack_long(struct bytes *b, uint64_t n);
void pack_string(struct bytes *b, const char *text); /* NULL as "" */
void pack_strings(struct bytes *b, char *const *list);

struct unpack {
    const uint8_t *at, *end;
    bool bad;
};

uint32_t unpack_number(struct unpack *u);
uint64_t unpack_long(struct unpack *u);

/* `count` bytes within the payload. */
const uint8_t *unpack_bytes(struct unpack *u, size_t count);

/* A string within the payload. */
const char *unpack_string(struct unpack *u);

/* A list of strings within the payload, NULL-terminated; the caller frees the list. NULL when bad
 * or without memory (bad then). */
char **unpack_strings(struct unpack *u);

#endif
