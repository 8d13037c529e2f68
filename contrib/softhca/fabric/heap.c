/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Page-granular allocator for receive queues in the segment. Owns the list of free ranges (private
 * memory, sorted by offset); every call is made under shca.lock. Freed pages go back to the kernel,
 * which also makes them zero for the next user.
 *
 * Memory that is always touched comes from the low end, rarely touched memory from the other: the
 * kernel maps up to 16 adjacent existing pages at a peer's first read of one, so a peer that
 * reaches one queue has the others mapped too. */
#include "config.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "fabric/fabric.h"

static const uint64_t page = UINT64_C(4096);

struct range {
    uint64_t offset, bytes;
    struct range *next;
};

static struct range *heap;
static uint64_t heap_size, heap_free_bytes;

int shca_heap_init(uint64_t offset, uint64_t size)
{
    /* After fork() the list still describes the parent's segment. */
    while (heap) {
        struct range *r = heap;
        heap = r->next;
        free(r);
    }
    heap = calloc(1, sizeof *heap);
    if (!heap)
        return ENOMEM;
    heap->offset = offset;
    heap->bytes = heap_size = heap_free_bytes = size;
    return 0;
}

static uint64_t round_up(uint64_t bytes)
{
    return (bytes + page - 1) & ~(page - 1);
}

uint64_t shca_heap_alloc(uint64_t bytes)
{
    bytes = round_up(bytes);
    for (struct range **at = &heap; *at; at = &(*at)->next) {
        struct range *r = *at;
        uint64_t offset = r->offset;

        if (r->bytes < bytes)
            continue;
        r->offset += bytes;
        r->bytes -= bytes;
        heap_free_bytes -= bytes;
        if (r->bytes == 0) {
            *at = r->next;
            free(r);
        }
        return offset;
    }
    return 0;
}

uint64_t shca_heap_alloc_apart(uint64_t bytes)
{
    struct range **last = NULL, *r;
    uint64_t offset;

    bytes = round_up(bytes);
    for (struct range **at = &heap; *at; at = &(*at)->next)
        if ((*at)->bytes >= bytes)
            last = at;
    if (!last || bytes == 0)
        return 0;
    r = *last;
    r->bytes -= bytes;
    heap_free_bytes -= bytes;
    offset = r->offset + r->bytes;
    if (r->bytes == 0) {
        *last = r->next;
        free(r);
    }
    return offset;
}

static void join_next(struct range *r)
{
    struct range *next = r->next;

    if (!next || r->offset + r->bytes != next->offset)
        return;
    r->bytes += next->bytes;
    r->next = next->next;
    free(next);
}

void shca_heap_free(uint64_t offset, uint64_t bytes)
{
    struct range *r = malloc(sizeof *r), *before = NULL;

    bytes = round_up(bytes);
    /* Fails on kernels without hole punching for shared memory: zero the pages here instead. */
    if (madvise((char *)shca.seg + offset, bytes, MADV_REMOVE) != 0)
        memset((char *)shca.seg + offset, 0, bytes);
    if (!r)
        return; /* the range is lost until the process ends; there is no other remedy */
    heap_free_bytes += bytes;
    for (struct range *i = heap; i && i->offset < offset; i = i->next)
        before = i;
    *r = (struct range){offset, bytes, before ? before->next : heap};
    if (before)
        before->next = r;
    else
        heap = r;
    join_next(r);
    if (before)
        join_next(before);
}

uint64_t shca_heap_used(void)
{
    return heap_size - heap_free_bytes;
}
