/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory in whole cache lines, cleared. Owns nothing. Large queues are seldom used to their ends,
 * so their pages must not be touched here. calloc() touches those that it takes from the heap: a
 * rank's completion queues cost fifty page faults at its start. So large ones are mappings. */
#include "config.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "support.h"

static const uintptr_t cache_line = 64;

/* From here on a mapping, which takes two system calls, costs less than clearing. */
enum { large = 16 << 10 };

/* In front of the lines. */
struct origin {
    char *all;
    size_t mapped; /* 0: from calloc() */
};

static void *get_mapping(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    return at == MAP_FAILED ? NULL : at;
}

void *shca_lines_alloc(size_t bytes)
{
    size_t size = bytes + 2 * cache_line;
    struct origin origin = {.mapped = size >= large ? size : 0};
    char *lines;

    /* The alignment of either leaves at least 16 bytes in front of the next line. */
    origin.all = origin.mapped ? get_mapping(size) : calloc(1, size);
    if (!origin.all)
        return NULL;
    lines = (char *)(((uintptr_t)origin.all + cache_line) & ~(cache_line - 1));
    memcpy(lines - sizeof origin, &origin, sizeof origin);
    return lines;
}

void shca_lines_free(void *memory)
{
    struct origin origin;

    if (!memory)
        return;
    memcpy(&origin, (char *)memory - sizeof origin, sizeof origin);
    if (origin.mapped)
        munmap(origin.all, origin.mapped);
    else
        free(origin.all);
}
