/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A heap that detects misuse: in a library configured with --enable-debug-malloc each block lies
 * between guards, is listed and records the place of its allocation (GASNET_MALLOC_*). In other
 * libraries these are malloc() and so on. The library owns the list of blocks, under a lock of its
 * own. A block allocated here must be freed here. */
#ifndef GASNET_TOOLS_MALLOC_H
#define GASNET_TOOLS_MALLOC_H

/* Record where a block was allocated. */
#ifndef GASNETT_MALLOC_USE_SRCPOS
#    define GASNETT_MALLOC_USE_SRCPOS 1
#endif

GASNETT_BEGIN_EXTERNC

/* Bytes and blocks. Zeros if nothing is counted. */
typedef struct {
    uint64_t allocated_bytes, freed_bytes, live_bytes, live_bytes_max;
    uint64_t allocated_objects, freed_objects, live_objects, live_objects_max;
    uint64_t overhead_bytes;
} gasnett_heapstats_t;

#if GASNETT_MALLOC_USE_SRCPOS
#    define TRUNKLINE_HEAP_POS __FILE__, __LINE__
#else
#    define TRUNKLINE_HEAP_POS (const char *)0, 0
#endif

/* Out of memory is fatal. */
#define gasnett_debug_malloc(sz)       trunkline_heap_malloc((sz), TRUNKLINE_HEAP_POS)
#define gasnett_debug_calloc(N, S)     trunkline_heap_calloc((N), (S), TRUNKLINE_HEAP_POS)
#define gasnett_debug_realloc(ptr, sz) trunkline_heap_realloc((ptr), (sz), TRUNKLINE_HEAP_POS)
#define gasnett_debug_strdup(s)        trunkline_heap_strdup((s), TRUNKLINE_HEAP_POS)
#define gasnett_debug_strndup(s, n)    trunkline_heap_strndup((s), (n), TRUNKLINE_HEAP_POS)
#define gasnett_debug_free(ptr)        trunkline_heap_free((ptr), TRUNKLINE_HEAP_POS)
/* The size of the block (0 if unknown); its guards must be intact. */
#define gasnett_debug_memcheck(ptr)  trunkline_heap_check((ptr), TRUNKLINE_HEAP_POS)
#define gasnett_debug_memcheck_one() trunkline_heap_check_one(TRUNKLINE_HEAP_POS)
#define gasnett_debug_memcheck_all() trunkline_heap_check_all(TRUNKLINE_HEAP_POS)

void *trunkline_heap_malloc(size_t size, const char *file, int line);
void *trunkline_heap_calloc(size_t count, size_t size, const char *file, int line);
void *trunkline_heap_realloc(void *block, size_t size, const char *file, int line);
char *trunkline_heap_strdup(const char *text, const char *file, int line);
char *trunkline_heap_strndup(const char *text, size_t most, const char *file, int line);
void trunkline_heap_free(void *block, const char *file, int line);
size_t trunkline_heap_check(void *block, const char *file, int line);
void trunkline_heap_check_one(const char *file,
                              int line); /* the next block of the list, cyclically */
void trunkline_heap_check_all(const char *file, int line);

/* 0 if the numbers are counted. */
int gasnett_getheapstats(gasnett_heapstats_t *pstat);

/* A report to a file ("-" or NULL: standard error); with each live block on request. */
void gasnett_heapinfo_dump(const char *filename, int show_live_objects);

GASNETT_END_EXTERNC

#endif
