/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tools' heap with --enable-debug-malloc: each block lies between guard words that record
 * whether it is live or freed, and in a list of all blocks. Misuse ends the program and reports
 * where the block was allocated and where the misuse was found. Owns the lists, the statistics and
 * the settings (GASNET_MALLOC_*), all under one lock, which is not held while a message is printed.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "base/report.h"
#include "gasnet_tools.h"
#include "tools/tools.h"

/* Patterns that resemble neither pointers nor small numbers. */
static const uint64_t alive = UINT64_C(0xA11FE5B10C6B10C5), freed = UINT64_C(0xDEADB10CDEADB10C),
                      tail = UINT64_C(0xE2DE2DE2DE2DE2D1);

struct block {
    struct block *next, *before;
    const char *file;
    size_t size;
    int line;
    int pad;
    uint64_t head; /* the last word: the first one that an underrun overwrites */
};
_Static_assert(sizeof(struct block) % 16 == 0, "blocks must be aligned as malloc() aligns them");

static pthread_mutex_t heap_lock = PTHREAD_MUTEX_INITIALIZER;
static struct block live = {&live, &live, NULL, 0, 0, 0, 0};
static struct block dead = {&dead, &dead, NULL, 0, 0, 0, 0};
static struct block *next_check = &live;
static gasnett_heapstats_t stats;

static struct {
    bool init, clobber, leak_all, scan_freed, extra_check;
    uint64_t init_value, clobber_value;
} want;

static const char *report_file;

/* The rank is not known before the end: the heap may be used before the job is joined. */
static void report_at_exit(void)
{
    const char *nodes = tk_tools_lookup("GASNET_MALLOCNODES");
    int64_t rank = tk_tools_rank();
    if (!nodes || rank < 0 || tk_number_in_ranges(nodes, rank))
        gasnett_heapinfo_dump(report_file, 1);
}

/* The defaults are signalling NaNs as doubles, and invalid as pointers. */
static uint64_t heap_pattern(const char *name, uint64_t otherwise)
{
    return (uint64_t)gasnett_getenv_int_withdefault(name, (int64_t)otherwise, 0);
}

static void read_settings(void)
{
    want.init = gasnett_getenv_yesno_withdefault("GASNET_MALLOC_INIT", 0);
    want.init_value = heap_pattern("GASNET_MALLOC_INITVAL", UINT64_C(0x7FF7A110CA7EDA11));
    want.scan_freed = gasnett_getenv_yesno_withdefault("GASNET_MALLOC_SCANFREED", 0);
    want.clobber = gasnett_getenv_yesno_withdefault("GASNET_MALLOC_CLOBBER", want.scan_freed);
    want.clobber_value = heap_pattern("GASNET_MALLOC_CLOBBERVAL", UINT64_C(0x7FF7DEADDEADDEAD));
    want.leak_all = gasnett_getenv_yesno_withdefault("GASNET_MALLOC_LEAKALL", want.scan_freed);
    want.extra_check = gasnett_getenv_yesno_withdefault("GASNET_MALLOC_EXTRACHECK", 0);
    report_file = gasnett_getenv_withdefault("GASNET_MALLOCFILE", NULL);
    if (report_file && *report_file)
        atexit(report_at_exit);
    want.clobber |= want.scan_freed;
    want.leak_all |= want.scan_freed;
}

static void open_heap(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, read_settings);
}

static void *data_of(struct block *b)
{
    return b + 1;
}

static struct block *heap_block(void *data)
{
    return (struct block *)data - 1;
}

static uint64_t heap_tail(const struct block *b)
{
    uint64_t word;
    memcpy(&word, (const char *)(b + 1) + b->size, sizeof(word));
    return word;
}

static void heap_fill(void *data, size_t size, uint64_t value)
{
    unsigned char *at = data;
    for (size_t i = 0; i < size; i++)
        at[i] = (unsigned char)(value >> 8 * (i % 8));
}

static bool is_filled(const void *data, size_t size, uint64_t value)
{
    const unsigned char *at = data;
    for (size_t i = 0; i < size; i++)
        if (at[i] != (unsigned char)(value >> 8 * (i % 8)))
            return false;
    return true;
}

static const char *fault_of(struct block *b)
{
    if (b->head == freed)
        return "was freed before";
    if (b->head != alive)
        return "was written to before its start, or is no block of this heap";
    return heap_tail(b) != tail ? "was written to behind its end" : NULL;
}

static void heap_fail(const struct block *b, bool is_known, const char *fault, const char *file,
                      int line)
{
    gasnett_fatalerror_nopos("the block at %p (%zu bytes, from %s:%d) %s; found at %s:%d",
                             (const void *)(b + 1), is_known ? b->size : 0,
                             is_known && b->file ? b->file : "?", is_known ? b->line : 0, fault,
                             file ? file : "?", line);
}

static void heap_check(struct block *b, const char *file, int line)
{
    const char *fault = fault_of(b);
    if (fault)
        heap_fail(b, b->head == alive || b->head == freed, fault, file, line);
}

static void link_in(struct block *list, struct block *b)
{
    b->next = list;
    b->before = list->before;
    list->before->next = b;
    list->before = b;
}

static void link_out(struct block *b)
{
    if (next_check == b)
        next_check = b->next;
    b->next->before = b->before;
    b->before->next = b->next;
}

static void heap_count(struct block *b)
{
    stats.allocated_bytes += b->size;
    stats.allocated_objects++;
    stats.live_bytes += b->size;
    stats.live_objects++;
    stats.overhead_bytes += sizeof(*b) + sizeof(tail);
    if (stats.live_bytes > stats.live_bytes_max)
        stats.live_bytes_max = stats.live_bytes;
    if (stats.live_objects > stats.live_objects_max)
        stats.live_objects_max = stats.live_objects;
}

static void count_out(const struct block *b)
{
    stats.freed_bytes += b->size;
    stats.freed_objects++;
    stats.live_bytes -= b->size;
    stats.live_objects--;
    stats.overhead_bytes -= sizeof(*b) + sizeof(tail);
}

void *trunkline_heap_malloc(size_t size, const char *file, int line)
{
    open_heap();
    if (want.extra_check)
        trunkline_heap_check_all(file, line);
    struct block *b = size < SIZE_MAX / 2 ? malloc(sizeof(*b) + size + sizeof(tail)) : NULL;
    if (!b)
        gasnett_fatalerror_nopos("out of memory for %zu bytes at %s:%d", size, file ? file : "?",
                                 line);
    *b = (struct block){.file = file, .size = size, .line = line, .head = alive};
    memcpy((char *)data_of(b) + size, &tail, sizeof(tail));
    if (want.init)
        heap_fill(data_of(b), size, want.init_value);
    pthread_mutex_lock(&heap_lock);
    link_in(&live, b);
    heap_count(b);
    pthread_mutex_unlock(&heap_lock);
    return data_of(b);
}

void *trunkline_heap_calloc(size_t number, size_t size, const char *file, int line)
{
    size_t bytes;
    if (__builtin_mul_overflow(number, size, &bytes))
        bytes = SIZE_MAX; /* is refused as too large */
    void *data = trunkline_heap_malloc(bytes, file, line);
    return memset(data, 0, bytes);
}

void trunkline_heap_free(void *data, const char *file, int line)
{
    if (!data)
        return;
    open_heap();
    if (want.extra_check)
        trunkline_heap_check_all(file, line);
    struct block *b = heap_block(data);
    heap_check(b, file, line);
    pthread_mutex_lock(&heap_lock);
    link_out(b);
    count_out(b);
    b->head = freed;
    if (want.clobber)
        heap_fill(data, b->size, want.clobber_value);
    if (want.leak_all)
        link_in(&dead, b);
    pthread_mutex_unlock(&heap_lock);
    if (!want.leak_all)
        free(b);
}

void *trunkline_heap_realloc(void *data, size_t size, const char *file, int line)
{
    size_t kept = data ? trunkline_heap_check(data, file, line) : 0;
    void *now = trunkline_heap_malloc(size, file, line);
    if (data)
        memcpy(now, data, kept < size ? kept : size);
    trunkline_heap_free(data, file, line);
    return now;
}

char *trunkline_heap_strndup(const char *text, size_t most, const char *file, int line)
{
    size_t length = strnlen(text, most);
    char *copy = trunkline_heap_malloc(length + 1, file, line);
    memcpy(copy, text, length);
    copy[length] = 0;
    return copy;
}

char *trunkline_heap_strdup(const char *text, const char *file, int line)
{
    return trunkline_heap_strndup(text, strlen(text), file, line);
}

size_t trunkline_heap_check(void *data, const char *file, int line)
{
    heap_check(heap_block(data), file, line);
    return heap_block(data)->size;
}

/* The lock is released before the program ends, because printing may allocate. */
void trunkline_heap_check_one(const char *file, int line)
{
    const char *fault = NULL;
    open_heap();
    pthread_mutex_lock(&heap_lock);
    struct block *b = next_check == &live ? live.next : next_check;
    next_check = b->next;
    if (b != &live)
        fault = fault_of(b);
    pthread_mutex_unlock(&heap_lock);
    if (fault)
        heap_fail(b, true, fault, file, line);
}

void trunkline_heap_check_all(const char *file, int line)
{
    const char *fault = NULL;
    struct block *bad = NULL;
    open_heap();
    pthread_mutex_lock(&heap_lock);
    for (struct block *b = live.next; b != &live && !fault; b = b->next)
        if ((fault = fault_of(b)))
            bad = b;
    for (struct block *b = dead.next; want.scan_freed && b != &dead && !fault; b = b->next)
        if (heap_tail(b) != tail || !is_filled(data_of(b), b->size, want.clobber_value)) {
            fault = "was written to after it had been freed";
            bad = b;
        }
    pthread_mutex_unlock(&heap_lock);
    if (fault)
        heap_fail(bad, true, fault, file, line);
}

int gasnett_getheapstats(gasnett_heapstats_t *pstat)
{
    pthread_mutex_lock(&heap_lock);
    *pstat = stats;
    pthread_mutex_unlock(&heap_lock);
    return 0;
}

static void list_live(FILE *out)
{
    for (struct block *b = live.next; b != &live; b = b->next)
        fprintf(out, "  %zu bytes from %s:%d\n", b->size, b->file ? b->file : "?", b->line);
}

void gasnett_heapinfo_dump(const char *filename, int show_live_objects)
{
    bool to_stderr = !filename || !*filename || !strcmp(filename, "-");
    FILE *out = to_stderr ? stderr : fopen(filename, "ae");
    if (!out) {
        tk_tools_log("WARNING", "the heap's report cannot be written to %s: %s", filename,
                     strerror(errno));
        tk_report_output_lost();
        return;
    }
    pthread_mutex_lock(&heap_lock);
    fprintf(out,
            "heap: %" PRIu64 " bytes in %" PRIu64 " blocks live (at most %" PRIu64 " in %" PRIu64
            "), %" PRIu64 " in %" PRIu64 " freed\n",
            stats.live_bytes, stats.live_objects, stats.live_bytes_max, stats.live_objects_max,
            stats.freed_bytes, stats.freed_objects);
    if (show_live_objects)
        list_live(out);
    pthread_mutex_unlock(&heap_lock);
    bool is_written = !ferror(out);
    if ((to_stderr ? fflush(out) : fclose(out)) == 0 && is_written)
        return;
    tk_tools_log("WARNING", "the heap's report cannot be written to %s: %s",
                 to_stderr ? "standard error" : filename, strerror(errno));
    tk_report_output_lost();
}
