/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Has the client one thread only? A thread is started by another, and the kernel tells of what one
 * thread starts, before it runs, in memory that is shared with it: perf_event_open(2),
 * PERF_RECORD_FORK of an event that counts nothing. So if there was one thread when it was asked,
 * and that has started none since, there is no other one. What that starts while it is in the
 * library, and what those start, is not the client's.
 *
 * Where the kernel does not tell (kernel.perf_event_paranoid above 2, seccomp) nobody is alone.
 * Owns the shared pages, which no child inherits; the descriptor is closed at once. No lock: while
 * there is one thread, that one alone writes. */
#include "config.h"

#include <linux/perf_event.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/alone.h"

enum { links_of_one = 3 /* of /proc/self/task: itself, its parent, and one for each thread */ };

/* Of a thread that was started, or a process. */
struct start_record {
    struct perf_event_header header;
    uint32_t process, parent_process, thread, parent_thread;
    uint64_t time;
};

static _Atomic uint64_t never = UINT64_MAX; /* no head comes there */
struct tk_alone tk_alone = {.head = &never, .seen = 0};
static _Atomic uint64_t *coming; /* from tk_alone_open() to the first tk_alone_accept() */
static const char *records;
static size_t records_size;

static bool is_first_thread(void)
{
    struct stat status;
    return stat("/proc/self/task", &status) == 0 && status.st_nlink == links_of_one;
}

static int open_event(void)
{
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof(attr),
                                   .config = PERF_COUNT_SW_DUMMY,
                                   .task = 1,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* Read-only: the kernel then writes over what nobody has looked at, and moves its head on. */
static void *map_records(int fd, size_t size)
{
    void *pages = mmap(NULL, 2 * size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return pages == MAP_FAILED ? NULL : pages;
}

void tk_alone_open(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    int fd = !records && is_first_thread() ? open_event() : -1;
    struct perf_event_mmap_page *control = fd >= 0 ? map_records(fd, size) : NULL;
    if (!control)
        return;
    records = (char *)control + size;
    records_size = size;
    coming = (_Atomic uint64_t *)&control->data_head;
}

/* &never: for good, see tk_alone_look(). */
static _Atomic uint64_t *head_now(void)
{
    return atomic_load_explicit(&tk_alone.head, memory_order_relaxed);
}

void tk_alone_accept(void)
{
    if (coming)
        atomic_store_explicit(&tk_alone.head, coming, memory_order_relaxed);
    coming = NULL;
    if (head_now() != &never)
        tk_alone.seen = atomic_load_explicit(head_now(), memory_order_acquire);
}

static void copy_record(void *to, uint64_t from, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i++)
        ((char *)to)[i] = records[(from + i) & (records_size - 1)];
}

/* A record that makes no sense, or has been written over, may have been a thread's. */
static bool is_of_process(uint64_t at, size_t *size)
{
    struct start_record record;
    copy_record(&record.header, at, sizeof(record.header));
    *size = record.header.size;
    if (record.header.type != PERF_RECORD_FORK || *size < sizeof(record))
        return false;
    copy_record(&record, at, sizeof(record));
    return record.process != record.parent_process;
}

static bool are_of_processes(uint64_t from, uint64_t to)
{
    size_t size;
    if (to - from > records_size)
        return false;
    for (; from != to; from += size)
        if (!is_of_process(from, &size) || size > to - from)
            return false;
    return true;
}

bool tk_alone_look(void)
{
    uint64_t head = atomic_load_explicit(head_now(), memory_order_acquire);
    bool is_alone = head != never && are_of_processes(tk_alone.seen, head);
    if (is_alone)
        tk_alone.seen = head;
    else
        atomic_store_explicit(&tk_alone.head, &never, memory_order_relaxed);
    return is_alone;
}
