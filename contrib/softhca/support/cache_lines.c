/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory in whole cache lines. Owns nothing. Not aligned_alloc(), whose memory would have to be
 * cleared: large queues are seldom used to their ends, and calloc() leaves their pages untouched.
 */
#include "config.h"

#include <stdlib.h>

#include "support.h"

static const uintptr_t cache_line = 64;

void *shca_lines_alloc(size_t bytes)
{
    /* In front of it is what calloc() returned, whose alignment leaves at least 16 bytes there. */
    char *all = calloc(1, bytes + 2 * cache_line);
    char *lines;

    if (!all)
        return NULL;
    lines = (char *)(((uintptr_t)all + cache_line) & ~(cache_line - 1));
    memcpy(lines - sizeof all, &all, sizeof all);
    return lines;
}

void shca_lines_free(void *memory)
{
    char *all;

    if (!memory)
        return;
    memcpy(&all, (char *)memory - sizeof all, sizeof all);
    free(all);
}
