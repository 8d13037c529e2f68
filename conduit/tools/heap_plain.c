/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tools' heap in libraries without --enable-debug-malloc: the C library's. No state. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "gasnet_tools.h"

static void *there(void *block, size_t size, const char *file, int line)
{
    if (!block && size)
        gasnett_fatalerror_nopos("out of memory for %zu bytes at %s:%d", size, file ? file : "?",
                                 line);
    return block;
}

void *trunkline_heap_malloc(size_t size, const char *file, int line)
{
    return there(malloc(size), size, file, line);
}

void *trunkline_heap_calloc(size_t count, size_t size, const char *file, int line)
{
    void *block = calloc(count, size);
    return there(block, count && size ? count : 0, file, line);
}

void *trunkline_heap_realloc(void *block, size_t size, const char *file, int line)
{
    return there(realloc(block, size), size, file, line);
}

char *trunkline_heap_strdup(const char *text, const char *file, int line)
{
    return there(strdup(text), strlen(text) + 1, file, line);
}

char *trunkline_heap_strndup(const char *text, size_t most, const char *file, int line)
{
    return there(strndup(text, most), most + 1, file, line);
}

void trunkline_heap_free(void *block, const char *file, int line)
{
    (void)file;
    (void)line;
    free(block);
}

size_t trunkline_heap_check(void *block, const char *file, int line)
{
    (void)block;
    (void)file;
    (void)line;
    return 0;
}

void trunkline_heap_check_one(const char *file, int line)
{
    (void)file;
    (void)line;
}

void trunkline_heap_check_all(const char *file, int line)
{
    (void)file;
    (void)line;
}

int gasnett_getheapstats(gasnett_heapstats_t *pstat)
{
    memset(pstat, 0, sizeof(*pstat));
    return ENOSYS;
}

void gasnett_heapinfo_dump(const char *filename, int show_live_objects)
{
    (void)filename;
    (void)show_live_objects;
}
