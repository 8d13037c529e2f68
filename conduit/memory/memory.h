/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Memory that other processes may access: shared anonymous files (memfd), so that a software device
 * or a neighbour can map it, and limits on segment sizes. Registration itself is the transport's.
 * Thread-safe, except that only its owner may use an area. */
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
    uint64_t inode; /* by which a neighbour verifies that it opened the right file */
};

/* Maps `size` bytes (rounded up to pages). With `reserved` the pages exist on return, so that lack
 * of memory is an error here and not a signal later. Prints the cause on failure. `what` names the
 * area in messages; a string constant. */
enum tk_status tk_area_open(struct tk_area *area, const char *what, size_t size, bool reserved);

/* Like tk_area_open() with `reserved`, for a rank that has just measured free memory: it measures
 * again only if that is scarce. */
enum tk_status tk_area_open_measured(struct tk_area *area, const char *what, size_t size,
                                     uint64_t left);

/* As tk_area_open_measured(), for memory that most processes barely use: if each rank's share of
 * free memory is many times its size, reserves nothing, and pages are allocated on first touch. */
enum tk_status tk_area_open_by_need(struct tk_area *area, const char *what, size_t size,
                                    uint64_t left);

/* Extends the area's file; the added part is not mapped, and has no pages until it is touched.
 * Prints the cause on failure, and closes the area. */
enum tk_status tk_area_grow(struct tk_area *area, const char *what, size_t more);

/* Bytes of the area that have pages already. */
uint64_t tk_area_present(const struct tk_area *area);

/* Unmaps the area; the file stays open. */
void tk_area_unmap(struct tk_area *area);

/* Lets the kernel use transparent huge pages for a mapping of shared memory, if the administrator
 * allows it (advise in /sys/kernel/mm/transparent_hugepage/shmem_enabled). Does nothing where the
 * ranks of this host could run out of memory because of huge pages that are mostly untouched. */
void tk_allow_huge_pages(void *base, size_t size);

/* Populates memory as a write to all of it would, without changing it, in several threads. 0 or an
 * errno; EINVAL: the kernel can't (before Linux 5.14). */
int tk_populate(void *base, size_t size);

/* As tk_area_open() with huge pages of the default size, always reserved. */
enum tk_status tk_area_open_huge(struct tk_area *area, const char *what, size_t size);
void tk_area_close(struct tk_area *area);

/* How to reach a neighbour's area: open file `fd` of process `pid`. */
struct tk_area_place {
    int pid;
    int fd;
    uint64_t inode;
};

/* Opens it for reading and writing: returns a file descriptor, and the file's size. -1: `why` gets
 * the cause, a sentence without newline. Needs no permission to trace the process, only the same
 * user. */
int tk_area_reach(const struct tk_area_place *place, size_t *size, char *why, size_t why_size);

static inline bool tk_area_holds(const struct tk_area *area, const void *address, size_t size)
{
    uintptr_t offset = (uintptr_t)address - (uintptr_t)area->base;
    return offset < area->size && size <= area->size - offset;
}

/* Memory registered with a device for local and remote access. The transport fills in the rest. */
struct tk_region {
    void *base;
    size_t size;
    void *handle;                             /* NULL: not registered */
    const uint32_t *local_keys, *remote_keys; /* one for each rail */
    /* Memory of a device, which the CPU can't access: by the dma-buf, or, with descriptor -1, by
     * the device address. */
    bool is_device;
    int dmabuf_fd;
    uint64_t dmabuf_offset;
};

static inline bool tk_region_holds(const struct tk_region *region, const void *address, size_t size)
{
    uintptr_t offset = (uintptr_t)address - (uintptr_t)region->base;
    return offset < region->size && size <= region->size - offset;
}

/* The kernel's default size of a huge page; 2 MiB if it reports none. A power of two. */
size_t tk_huge_page_size(void);

/* Memory of this host that processes may use: the smaller of RAM and the cgroup's limit. */
uint64_t tk_host_memory(void);

/* Memory that the kernel could give to this process now without swapping, by the host's figures and
 * the limits of cgroups; UINT64_MAX if none is known. `what` gets the name of the tightest limit.
 * Async-signal-safe. */
uint64_t tk_memory_available(char *what, size_t size);

/* Both at once, in bytes: tk_host_memory() and tk_memory_available(). */
void tk_memory_measure(uint64_t *limit, uint64_t *left);

/* Bounds on the segments of a host's ranks besides GASNET_MAX_SEGSIZE. */
struct tk_segment_bounds {
    uint64_t memory;   /* tk_host_memory() */
    uint64_t left;     /* tk_memory_available() before segments exist; UINT64_MAX: unknown */
    uint64_t pinnable; /* GASNET_PHYSMEM_MAX; UINT64_MAX: no device pins segments */
    unsigned ranks;    /* of this host */
};

/* Largest segment of one of these ranks by GASNET_MAX_SEGSIZE (grammar: size or fraction, then /P
 * or /H). Page multiple. */
enum tk_status tk_segment_limit(const char *text, const struct tk_segment_bounds *bounds,
                                uint64_t *limit);

/* The segment of endpoint 0; size 0 until there is one. */
extern struct tk_area tk_segment_area;

/* Applies GASNET_MAXIMIZE_MEMLOCK and GASNET_DISABLE_MUNMAP, before anything large is allocated. */
void tk_process_memory_open(void);

#endif
