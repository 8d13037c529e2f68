/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Learns from the kernel when watched memory is unmapped. Owns a userfaultfd, whose ranges are
 * registered for write protection that is never used: only the events of munmap, mremap and madvise
 * are wanted. Such a call has done its work when the event is queued, and returns when the event
 * has been read. A thread reads the events and notes the ranges; each lookup in the cache first
 * collects the noted ranges. No lock.
 *
 * The thread must not wait for anything that a thread may hold while it unmaps, because that thread
 * waits for this one: it neither allocates nor frees nor deregisters (all of these unmap, with the
 * allocator's locks held), and does not take the cache's lock. So notes go through a
 * single-producer, single-consumer ring; if it overflows, everything is invalidated.
 *
 * Two counters make "before the call returns" true. `begun` is raised before an event is read,
 * `ended` after it is noted: a thread that unmapped sees `begun` raised when the call has returned,
 * and waits for `ended`. One case remains: another thread gets the same addresses from mmap before
 * the event is even queued, while the first is still in munmap. User space cannot detect that,
 * because none of our code has run since. But the kernel counts such calls and refuses to fill
 * pages meanwhile (EAGAIN), so a request to fill zero pages shows whether there are any. That is
 * one system call for each transfer that uses regions; no other method exists.
 *
 * For a client with one thread this query is skipped (process/alone.h): its own calls have
 * returned; other threads, the library's and those of other libraries, unmap only memory that they
 * have mapped themselves, which no transfer uses, or memory that the heap returns to the kernel.
 * The heap does that under the allocator's lock, and hands out no memory without this lock. The
 * client must not be able to close the descriptor, because that would silently end all watching: so
 * the thread has a descriptor table of its own. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/report.h"
#include "firehose/firehose_private.h"
#include "memory/memory.h"
#include "process/thread.h"
#include "settings/settings.h"

enum {
    notes_max = 256,  /* if more are pending, invalidating everything is cheaper */
    batch = 16,       /* events read at once */
    entry_batch = 64, /* entries of the page map read at once: a granule of the usual size is 32 */
    rounds_max = 16   /* attempts if the end of a mapping moves meanwhile */
};

static const uint64_t wanted_events =
    UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE;

/* Bit of an entry of /proc/self/pagemap: a page of a file or of shared memory. Any process that has
 * the file may remove the page from it, without an event from the kernel. */
static const uint64_t is_of_file = UINT64_C(1) << 61;

struct note {
    uintptr_t from, to;
};

static struct {
    atomic_int mode; /* enum tk_monitor_mode */
    int fd, wake, pagemap;
    const char *reason;
    atomic_bool has_ended;
    _Atomic uint64_t queries;
    _Atomic uint32_t head, tail; /* of notes */
    _Atomic bool is_lost;        /* the ring of notes overflowed */
    struct note notes[notes_max];
} monitor = {.mode = TK_MONITOR_UNAVAILABLE, .fd = -1, .wake = -1, .pagemap = -1, .reason = ""};

struct tk_monitor_events tk_monitor_events;

/* ---- the thread ---- */

static void note(uint64_t from, uint64_t to)
{
    uint32_t head = atomic_load_explicit(&monitor.head, memory_order_relaxed);
    uint32_t tail = atomic_load_explicit(&monitor.tail, memory_order_acquire);
    if (head - tail == notes_max) {
        atomic_store(&monitor.is_lost, true);
        return;
    }
    monitor.notes[head % notes_max] = (struct note){(uintptr_t)from, (uintptr_t)to};
    atomic_store_explicit(&monitor.head, head + 1, memory_order_release);
}

static void note_event(const struct uffd_msg *event)
{
    switch (event->event) {
    case UFFD_EVENT_UNMAP:
    case UFFD_EVENT_REMOVE:
        note(event->arg.remove.start, event->arg.remove.end);
        break;
    case UFFD_EVENT_REMAP:
        note(event->arg.remap.from, event->arg.remap.from + event->arg.remap.len);
        note(event->arg.remap.to, event->arg.remap.to + event->arg.remap.len);
        break;
    default:
        note(0, UINTPTR_MAX);
        break;
    }
}

static void take_events(void)
{
    struct uffd_msg events[batch];
    uint32_t begun = atomic_load_explicit(&tk_monitor_events.begun, memory_order_relaxed) + 1;
    atomic_store(&tk_monitor_events.begun, begun);
    ssize_t size = read(monitor.fd, events, sizeof(events));
    for (ssize_t i = 0; i < size / (ssize_t)sizeof(events[0]); i++)
        note_event(&events[i]);
    atomic_store(&tk_monitor_events.ended, begun);
}

static bool close_between(unsigned first, unsigned last)
{
    return first > last || syscall(SYS_close_range, first, last, 0) == 0;
}

/* Gives this thread a descriptor table of its own, so that the client can't close its descriptors
 * and the thread keeps none of the client's open. False: not before Linux 5.9. */
static bool have_own_descriptors(void)
{
    unsigned low = (unsigned)tk_min((size_t)monitor.fd, (size_t)monitor.wake);
    unsigned high = (unsigned)tk_max((size_t)monitor.fd, (size_t)monitor.wake);
    bool can_close = syscall(SYS_close_range, 1, 0, 0) == -1 && errno == EINVAL;
    return can_close && unshare(CLONE_FILES) == 0 && (low == 0 || close_between(0, low - 1)) &&
           close_between(low + 1, high - 1) && close_between(high + 1, UINT_MAX);
}

/* Where descriptors are shared, a client that closes ours ends all watching, and tk_monitor_query()
 * returns false from then on. The descriptor is closed before the thread ends, because the end of a
 * thread unmaps stacks, which may be watched. */
static void *monitor_run(void *unused)
{
    (void)unused;
    struct pollfd fds[2] = {{.fd = monitor.fd, .events = POLLIN},
                            {.fd = monitor.wake, .events = POLLIN}};
    atomic_store(&tk_monitor_events.is_apart, have_own_descriptors());
    do {
        fds[0].revents = fds[1].revents = 0;
        if (poll(fds, 2, -1) > 0 && (fds[0].revents & POLLIN))
            take_events();
    } while (!fds[1].revents && !(fds[0].revents & (POLLNVAL | POLLERR | POLLHUP)));
    close(monitor.fd);
    atomic_store(&monitor.has_ended, true);
    return NULL;
}

/* ---- start and end ---- */

static int open_descriptor(void)
{
    int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
    if (fd < 0 && errno == EINVAL) /* before Linux 5.11 */
        fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
    return fd;
}

static bool has_events(int fd)
{
    struct uffdio_api api = {.api = UFFD_API, .features = wanted_events};
    return ioctl(fd, UFFDIO_API, &api) == 0;
}

static bool monitor_watch_range(int fd, uintptr_t base, size_t size)
{
    struct uffdio_register range = {.range = {.start = base, .len = size},
                                    .mode = UFFDIO_REGISTER_MODE_WP};
    return ioctl(fd, UFFDIO_REGISTER, &range) == 0;
}

/* Not every kernel supports this for an ordinary page. The attempt must cause no event, because no
 * thread would read it. */
static bool can_watch(int fd)
{
    size_t size = tk_page_size();
    void *page = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    bool can = monitor_watch_range(fd, (uintptr_t)page, size);
    struct uffdio_range range = {.start = (uintptr_t)page, .len = size};
    can = can && ioctl(fd, UFFDIO_UNREGISTER, &range) == 0;
    munmap(page, size);
    return can;
}

static bool monitor_fd_is_quiet(int fd)
{
    struct uffdio_zeropage nothing = {.mode = 0};
    return ioctl(fd, UFFDIO_ZEROPAGE, &nothing) == -1 && errno == EINVAL;
}

/* Returns the obstacle, or NULL. */
static const char *open_userfaultfd(void)
{
    monitor.fd = open_descriptor();
    if (monitor.fd < 0)
        return errno == EPERM ? "userfaultfd is forbidden here (vm.unprivileged_userfaultfd, or "
                                "the container's seccomp profile)"
                              : "the kernel has no userfaultfd";
    if (!has_events(monitor.fd) || !can_watch(monitor.fd) || !monitor_fd_is_quiet(monitor.fd))
        return "this kernel's userfaultfd does not report unmapped memory";
    monitor.pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (monitor.pagemap < 0)
        return "/proc/self/pagemap can't be read";
    monitor.wake = eventfd(0, EFD_CLOEXEC);
    return monitor.wake < 0 ? "no file descriptor is left (ulimit -n)" : NULL;
}

static void close_descriptor(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

enum tk_status tk_monitor_open(const char *choice)
{
    monitor.reason = "";
    if (!strcmp(choice, "none")) {
        monitor.mode = TK_MONITOR_OFF;
        return TK_OK;
    }
    const char *reason = open_userfaultfd();
    monitor.mode = reason ? TK_MONITOR_UNAVAILABLE : TK_MONITOR_USERFAULTFD;
    if (!reason)
        return TK_OK;
    monitor.reason = reason;
    tk_monitor_close();
    if (strcmp(choice, "userfaultfd") != 0)
        return TK_OK;
    tk_log_error(
        "GASNET_FIREHOSE_MONITOR=userfaultfd, but %s; allow it, or leave the choice to the "
        "library (auto: no registration outlives its transfer then)",
        reason);
    return TK_FAIL;
}

void tk_monitor_close(void)
{
    uint64_t one = 1;
    if (tk_monitor_events.runs && write(monitor.wake, &one, sizeof(one)) == sizeof(one)) {
        while (!atomic_load(&monitor.has_ended))
            sched_yield();
        if (!tk_monitor_events.is_apart)
            monitor.fd = -1; /* the thread has closed it */
    }
    tk_monitor_events.runs = tk_monitor_events.is_apart = false;
    atomic_store(&monitor.has_ended, false);
    close_descriptor(&monitor.fd);
    close_descriptor(&monitor.wake);
    close_descriptor(&monitor.pagemap);
    monitor.mode = TK_MONITOR_UNAVAILABLE;
}

enum tk_monitor_mode tk_monitor_mode(void)
{
    return (enum tk_monitor_mode)atomic_load_explicit(&monitor.mode, memory_order_relaxed);
}

const char *tk_monitor_reason(void)
{
    return monitor.reason;
}

void tk_monitor_start(void)
{
    if (tk_monitor_events.runs || monitor.mode != TK_MONITOR_USERFAULTFD)
        return;
    tk_monitor_events.runs = tk_thread_start(monitor_run, tk_settings.thread_stack_min,
                                             tk_settings.thread_stack_pad) == TK_OK;
    if (!tk_monitor_events.runs)
        monitor.mode = TK_MONITOR_UNAVAILABLE;
}

/* ---- for the cache ---- */

/* True if the kernel accepts the no-op of removing write protection: no page is write protected. */
static bool is_watched(uintptr_t base, size_t size)
{
    struct uffdio_writeprotect range = {.range = {.start = base, .len = size}, .mode = 0};
    return ioctl(monitor.fd, UFFDIO_WRITEPROTECT, &range) == 0;
}

/* Watches the memory on both sides of an end of the watched range, if it is one row. */
static bool watch_across(uintptr_t end, uintptr_t *from, uintptr_t *to)
{
    *from = end - tk_page_size();
    *to = end + tk_page_size();
    return tk_mappings_around(from, to) && monitor_watch_range(monitor.fd, *from, *to - *from);
}

/* Whole mappings are watched: watching a part would split the mapping, and mremap refuses to
 * enlarge or move several mappings at once (EFAULT). The kernel merges adjacent mappings that are
 * alike, so by the time a mapping is watched its end may lie inside of memory that another thread
 * mapped meanwhile. Then the rest is watched too, which merges them again. So a mapping is split
 * only between one of these calls and the next, and permanently only if the other thread changes
 * the rest in just that moment. */
static bool watch_mappings(uintptr_t base, size_t size)
{
    uintptr_t from = base, to = base + size, begin, end;
    if (!tk_mappings_around(&from, &to) || !monitor_watch_range(monitor.fd, from, to - from))
        return false;
    for (int i = 0; i < rounds_max && watch_across(to, &begin, &end); i++)
        to = end;
    for (int i = 0; i < rounds_max && watch_across(from, &begin, &end); i++)
        from = begin;
    return true;
}

bool tk_monitor_watch(uintptr_t base, size_t size)
{
    if (tk_monitor_mode() != TK_MONITOR_USERFAULTFD)
        return tk_monitor_mode() == TK_MONITOR_OFF;
    return (is_watched(base, size) || watch_mappings(base, size)) &&
           tk_monitor_is_private(base, tk_page_size());
}

bool tk_monitor_is_private(uintptr_t base, size_t size)
{
    uint64_t entries[entry_batch];
    size_t page = tk_page_size();
    if (monitor.mode != TK_MONITOR_USERFAULTFD)
        return true;
    for (size_t left = size / page, at = base / page; left > 0;) {
        size_t count = tk_min(left, entry_batch);
        size_t bytes = count * sizeof(entries[0]);
        if (pread(monitor.pagemap, entries, bytes, (off_t)(at * sizeof(entries[0]))) !=
            (ssize_t)bytes)
            return false;
        for (size_t i = 0; i < count; i++)
            if (entries[i] & is_of_file)
                return false;
        left -= count;
        at += count;
    }
    return true;
}

uint64_t tk_monitor_queries(void)
{
    return atomic_load_explicit(&monitor.queries, memory_order_relaxed);
}

/* The fence orders the following load of `begun` behind the kernel's answer. */
bool tk_monitor_query(void)
{
    atomic_fetch_add_explicit(&monitor.queries, 1, memory_order_relaxed);
    bool quiet = monitor_fd_is_quiet(monitor.fd);
    atomic_thread_fence(memory_order_seq_cst);
    return quiet;
}

static void collect_notes(void (*invalidate)(uintptr_t from, uintptr_t to))
{
    uint32_t head = atomic_load_explicit(&monitor.head, memory_order_acquire);
    uint32_t tail = atomic_load_explicit(&monitor.tail, memory_order_relaxed);
    for (; tail != head; tail++)
        invalidate(monitor.notes[tail % notes_max].from, monitor.notes[tail % notes_max].to);
    atomic_store_explicit(&monitor.tail, tail, memory_order_release);
}

/* If there is something to wait for, the monitor's thread is between two system calls. */
void tk_monitor_collect(void (*invalidate)(uintptr_t from, uintptr_t to))
{
    uint32_t begun = atomic_load(&tk_monitor_events.begun);
    while ((int32_t)(atomic_load(&tk_monitor_events.ended) - begun) < 0)
        sched_yield();
    tk_monitor_events.seen = begun;
    collect_notes(invalidate);
    if (atomic_exchange(&monitor.is_lost, false))
        invalidate(0, UINTPTR_MAX);
}
