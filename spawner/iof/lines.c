/* SPDX-License-Identifier: BSD-3-Clause */
/* Cutting output into lines; see lines.h. Owns each stream's unfinished line, takes no lock. */
#include "config.h"

#include "lines.h"

#include <stdio.h>
#include <string.h>

static void lines_begin(struct lines *l, struct bytes *ready)
{
    char label[16];
    if (l->label && !l->in_line)
        bytes_append(ready, label, (size_t)snprintf(label, sizeof(label), "[%u] ", l->rank));
    l->in_line = true;
}

/* Passes bytes on. Only the last one may be a newline. */
static void lines_pass(struct lines *l, const uint8_t *data, size_t count, struct bytes *ready)
{
    lines_begin(l, ready);
    bytes_append(ready, bytes_front(&l->held), l->held.length);
    bytes_consume(&l->held, l->held.length);
    bytes_append(ready, data, count);
    l->in_line = data[count - 1] != '\n';
}

void lines_put(struct lines *l, const void *data, size_t count, struct bytes *ready)
{
    const uint8_t *at = data, *end = at + count;

    if (l->raw) {
        bytes_append(ready, data, count);
        return;
    }
    while (at < end) {
        /* Without labels all whole lines go in one piece. */
        const uint8_t *newline =
            l->label ? memchr(at, '\n', (size_t)(end - at)) : memrchr(at, '\n', (size_t)(end - at));
        if (!newline)
            break;
        lines_pass(l, at, (size_t)(newline + 1 - at), ready);
        at = newline + 1;
    }
    bytes_append(&l->held, at, (size_t)(end - at));
    if (l->held.length > LINES_MAX)
        lines_end(l, ready);
}

void lines_end(struct lines *l, struct bytes *ready)
{
    if (!l->held.length)
        return;
    lines_begin(l, ready);
    bytes_append(ready, bytes_front(&l->held), l->held.length);
    bytes_consume(&l->held, l->held.length);
}
