/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers and strings in payloads; see pack.h. */
#include "config.h"

#include "pack.h"
#include "wire.h"

#include <stdlib.h>
#include <string.h>

void pack_number(struct bytes *b, uint32_t n)
{
    wire_put_number(bytes_reserve(b, 4), n);
    bytes_commit(b, 4);
}

void pack_long(struct bytes *b, uint64_t n)
{
    pack_number(b, (uint32_t)n);
    pack_number(b, (uint32_t)(n >> 32));
}

/* With its terminator, so that the reader can use it in place. */
void pack_string(struct bytes *b, const char *text)
{
    size_t length = text ? strlen(text) : 0;
    pack_number(b, (uint32_t)length);
    bytes_append(b, text ? text : "", length + 1);
}

void pack_strings(struct bytes *b, char *const *list)
{
    uint32_t count = 0;
    while (list[count])
        count++;
    pack_number(b, count);
    for (uint32_t i = 0; i < count; i++)
        pack_string(b, list[i]);
}

const uint8_t *unpack_bytes(struct unpack *u, size_t count)
{
    const uint8_t *at = u->at;
    if (u->bad || (size_t)(u->end - at) < count) {
        u->bad = true;
        return NULL;
    }
    u->at += count;
    return at;
}

uint32_t unpack_number(struct unpack *u)
{
    const uint8_t *p = unpack_bytes(u, 4);
    return p ? wire_number(p) : 0;
}

uint64_t unpack_long(struct unpack *u)
{
    uint64_t low = unpack_number(u);
    return low | (uint64_t)unpack_number(u) << 32;
}

const char *unpack_string(struct unpack *u)
{
    size_t length = unpack_number(u);
    const char *text = (const char *)unpack_bytes(u, length + 1);
    if (!text || memchr(text, 0, length + 1) != text + length) {
        u->bad = true;
        return "";
    }
    return text;
}

char **unpack_strings(struct unpack *u)
{
    enum { LEAST = 5 }; /* bytes of an empty string */
    uint32_t count = unpack_number(u);
    if (u->bad || count > (size_t)(u->end - u->at) / LEAST) {
        u->bad = true;
        return NULL;
    }
    char **list = calloc((size_t)count + 1, sizeof(*list));
    for (uint32_t i = 0; list && i < count; i++)
        list[i] = (char *)(uintptr_t)unpack_string(u);
    if (list && !u->bad)
        return list;
    free(list);
    u->bad = true;
    return NULL;
}
