/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory that others may touch: shared anonymous files (memfd), so that a software device or a
 * neighbour can map it, and limits of what a segment may be. Registration itself is the
 * transport's. Thread-safe, but an area is its owner's. */
#ifndef TK_MEMORY_H
#define TK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/page.h"
#include "base/status.h"

struct tk_area {
    void *base;
    size_t size;
    int fd;         /* kept open: peers reach the pages through it */
    uint64_t inode; /* by which a neighbour tells that it has found the right file */
};

/* Maps `size` bytes (rounded up to pages). With `reserved` the pages exist on return, so that lack
 * of memory is an error here and not a signal later. Prints the cause on failure. `what`, for
 * people, is a string constant. */
enum tk_status tk_area_open(struct tk_area *area, const char *what, size_t size, bool reserved);

/* Bytes of the area for which there is memory already. */
uint64_t tk_area_present(const struct tk_area *area);

/* The mapping goes, the file stays. */
void tk_area_unmap(struct tk_area *area);

/* Lets the kernel use transparent huge pages for a mapping of shared memory, if the administrator
 * lets it (advise in /sys/kernel/mm/transparent_hugepage/shmem_enabled). Not where ranks of this
 * host that do the same could run out of memory only because of pages that nobody touched. */
void tk_allow_huge_pages(void *base, size_t size);

/* Makes memory present as a write to all of it would, without changing it, by several threads. 0 or
 * an errno; EINVAL: the kernel can't (before Linux 5.14). */
int tk_populate(void *base, size_t size);

/* The same of huge pages of the usual size, always reserved. */
enum tk_status tk_area_open_huge(struct tk_area *area, const char *what, size_t size);
void tk_area_close(struct tk_area *area);

/* A neighbour's area as this process may reach it: open file `fd` of process `pid`. */
struct tk_area_place {
    int pid;
    int fd;
    uint64_t inode;
};

/* Opens it, for reading and writing: a file descriptor, and the file's size. -1: why not is in
 * `why`, a sentence without end of line. Needs no right to trace the process, only to be of one
 * user. */
int tk_area_reach(const struct tk_area_place *place, size_t *size, char *why, size_t why_size);

static inline bool tk_area_holds(const struct tk_area *area, const void *address, size_t size)
{
    uintptr_t offset = (uintptr_t)address - (uintptr_t)area->base;
    return offset < area->size && size <= area->size - offset;
}

/* Memory that a device has registered for us and for others. The transport fills in the rest. */
struct tk_region {
    void *base;
    size_t size;
    void *handle;                             /* NULL: not registered */
    const uint32_t *local_keys, *remote_keys; /* on each rail */
};

static inline bool tk_region_holds(const struct tk_region *region, const void *address, size_t size)
{
    uintptr_t offset = (uintptr_t)address - (uintptr_t)region->base;
    return offset < region->size && size <= region->size - offset;
}

/* The kernel's default; 2 MiB where it does not say. A power of two. */
size_t tk_huge_page_size(void);

/* Memory of this host that processes may use: the least of RAM and the cgroup's limit. */
uint64_t tk_host_memory(void);

/* What the kernel could hand out to this process at this moment without swapping, by the host's
 * memory and the limits of cgroups; UINT64_MAX where nobody says. `what` names the one that counts.
 * Async-signal-safe. */
uint64_t tk_memory_available(char *what, size_t size);

/* What bounds the segments of a host's ranks besides GASNET_MAX_SEGSIZE. */
struct tk_segment_bounds {
    uint64_t memory;   /* tk_host_memory() */
    uint64_t left;     /* tk_memory_available() before segments are; UINT64_MAX: nobody says */
    uint64_t pinnable; /* GASNET_PHYSMEM_MAX; UINT64_MAX: no device pins segments */
    unsigned ranks;    /* of the host */
};

/* Largest segment of one of these ranks by GASNET_MAX_SEGSIZE (grammar: size or fraction, then /P
 * or /H). Page multiple. */
enum tk_status tk_segment_limit(const char *text, const struct tk_segment_bounds *bounds,
                                uint64_t *limit);

/* The segment of endpoint 0; size 0 until there is one. */
extern struct tk_area tk_segment_area;

/* GASNET_MAXIMIZE_MEMLOCK and GASNET_DISABLE_MUNMAP, before anything large is allocated. */
void tk_process_memory_open(void);

#endif
