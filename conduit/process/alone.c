/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whether the client has one thread only. A thread is started by another one, and the kernel
 * reports each thread or process that a given thread starts, before it runs, in memory shared with
 * it: perf_event_open(2), PERF_RECORD_FORK of an event that counts nothing. So if there was one
 * thread when the library's start began, and that thread has started none since it ended, there is
 * no other. Threads that it starts while it is inside the library, and their descendants, are not
 * the client's.
 *
 * The shared memory holds some hundred records: if more forks happen between two checks, some are
 * lost, and each may have been a thread. Then the existing threads are examined one by one: if each
 * was already there when the client was known to be alone, it still is.
 *
 * If the kernel does not report (kernel.perf_event_paranoid above 2, seccomp), no client counts as
 * alone. Owns the shared pages, which no child inherits; the descriptor is closed at once. No lock:
 * while there is one thread, only that one writes. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "process/alone.h"

enum {
    links_of_one =
        3,          /* link count of /proc/self/task: itself, its parent, and one for each thread */
    known_max = 64, /* more threads than the library, PMIx and drivers start */
    start_field = 22, /* of /proc/PID/stat, see proc(5) */
    name_field = 2
};

/* Record of a thread or process that was started. */
struct start_record {
    struct perf_event_header header;
    uint32_t process, parent_process, thread, parent_thread;
    uint64_t time;
};

/* What the kernel writes at a time: a record of a start, or of the end of the thread itself. Its
 * head moves on only when it has written, so the record at the head may overwrite the oldest one
 * already. Twice that. */
enum { margin = 2 * sizeof(struct start_record) };

struct tk_alone tk_alone = {.head = &tk_alone.never,
                            .seen = 0,
                            .inside = &tk_alone.never,
                            .never = UINT64_MAX /* no head reaches this value */};
static bool is_shared;
static bool began_alone; /* between tk_alone_open() and the first tk_alone_accept() */
static const char *records;
static size_t records_size;

/* A thread: its number may be reused later, but not with the same start time. */
struct thread {
    uint64_t number, started;
};

/* The client's only thread and the library's. */
static struct {
    struct thread threads[known_max];
    size_t count; /* above known_max: too many to remember */
} known;

/* Entry written by getdents64(2). */
struct entry {
    uint64_t inode;
    int64_t next;
    uint16_t size;
    uint8_t type;
    char name[];
};

static bool is_first_thread(void)
{
    struct stat status;
    return stat("/proc/self/task", &status) == 0 && status.st_nlink == links_of_one;
}

struct opening {
    pid_t of; /* whose starts are recorded */
    int fd;
};

static void *open_event(void *opening)
{
    struct opening *o = opening;
    struct perf_event_attr attr = {.type = PERF_TYPE_SOFTWARE,
                                   .size = sizeof(attr),
                                   .config = PERF_COUNT_SW_DUMMY,
                                   .task = 1,
                                   .exclude_kernel = 1,
                                   .exclude_hv = 1};
    o->fd = (int)syscall(SYS_perf_event_open, &attr, o->of, -1, -1, PERF_FLAG_FD_CLOEXEC);
    return NULL;
}

/* By a thread that ends at once: prctl(PR_TASK_PERF_EVENTS_DISABLE), with which profilers pause
 * what they count, stops all events that the calling thread has opened, this one too if it had. */
static int open_event_apart(void)
{
    struct opening opening = {.of = (pid_t)syscall(SYS_gettid), .fd = -1};
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (pthread_create(&thread, NULL, open_event, &opening) == 0)
        pthread_join(thread, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return opening.fd;
}

/* Read-only: then the kernel overwrites records that were not read, and moves its head on. */
static void *map_records(int fd, size_t size)
{
    void *pages = mmap(NULL, 2 * size, PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    return pages == MAP_FAILED ? NULL : pages;
}

void tk_alone_open(void)
{
    began_alone = !records && is_first_thread();
}

/* ---- the existing threads ---- */

enum sight { SEEN, HAS_ENDED, NOT_SEEN };

static enum sight find_start(int tasks, const char *name, uint64_t *started)
{
    char path[32], text[512];
    snprintf(path, sizeof(path), "%.20s/stat", name);
    int fd = openat(tasks, path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    bool has_ended = size < 0 && (errno == ENOENT || errno == ESRCH);
    if (fd >= 0)
        close(fd);
    text[size > 0 ? size : 0] = 0;
    const char *at = strrchr(text, ')'); /* end of the name, which may contain blanks */
    for (int i = name_field; at && i < start_field; i++)
        at = strchr(at + 1, ' ');
    if (at)
        *started = strtoull(at, NULL, 10);
    return has_ended ? HAS_ENDED : at ? SEEN : NOT_SEEN;
}

/* visit() returns whether to go on. False: it returned false, or the threads can't be listed. */
static bool visit_threads(bool (*visit)(const struct thread *thread))
{
    _Alignas(struct entry) char buffer[2048];
    int tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    ssize_t size = -1;
    bool goes_on = tasks >= 0;
    while (goes_on && (size = syscall(SYS_getdents64, tasks, buffer, sizeof(buffer))) > 0)
        for (ssize_t at = 0; goes_on && at < size;) {
            const struct entry *entry = (const struct entry *)(const void *)(buffer + at);
            struct thread thread = {.number = strtoull(entry->name, NULL, 10)};
            enum sight sight = thread.number > 0 ? find_start(tasks, entry->name, &thread.started)
                                                 : HAS_ENDED; /* "." and ".." */
            goes_on = sight == HAS_ENDED || (sight == SEEN && visit(&thread));
            at += entry->size;
        }
    if (tasks >= 0)
        close(tasks);
    return goes_on && size == 0;
}

static bool remember(const struct thread *thread)
{
    if (known.count < known_max)
        known.threads[known.count] = *thread;
    return known.count++ < known_max;
}

static bool alone_is_known(const struct thread *thread)
{
    for (size_t i = 0; i < known.count; i++)
        if (known.threads[i].number == thread->number &&
            known.threads[i].started == thread->started)
            return true;
    return false;
}

static void remember_all(void)
{
    known.count = 0;
    if (!visit_threads(remember))
        known.count = known_max + 1;
}

static bool are_all_known(void)
{
    return known.count <= known_max && visit_threads(alone_is_known);
}

/* ---- the kernel's records ---- */

/* Threads of the library read it while the client's thread, still alone, starts others of them. */
static uint64_t seen(void)
{
    return atomic_load_explicit(&tk_alone.seen, memory_order_relaxed);
}

static void set_seen(uint64_t head)
{
    atomic_store_explicit(&tk_alone.seen, head, memory_order_relaxed);
}

static void set_head(_Atomic uint64_t *head)
{
    atomic_store_explicit(&tk_alone.head, head, memory_order_relaxed);
    atomic_store_explicit(&tk_alone.inside, is_shared ? &tk_alone.never : head,
                          memory_order_relaxed);
}

/* tk_alone.never is final, see tk_alone_check(). */
static _Atomic uint64_t *head_now(void)
{
    return atomic_load_explicit(&tk_alone.head, memory_order_relaxed);
}

/* The thread and the event cost 0.05 ms of CPU, and most jobs need neither. Until now this thread
 * was inside the library, so recording may begin as late as this. */
static void begin_recording(void)
{
    size_t size = (size_t)sysconf(_SC_PAGESIZE);
    int fd = open_event_apart();
    struct perf_event_mmap_page *control = fd >= 0 ? map_records(fd, size) : NULL;
    if (!control)
        return;
    records = (char *)control + size;
    records_size = size;
    set_head((_Atomic uint64_t *)&control->data_head);
}

void tk_alone_accept(void)
{
    if (began_alone)
        begin_recording();
    began_alone = false;
    if (head_now() == &tk_alone.never)
        return;
    set_seen(atomic_load_explicit(head_now(), memory_order_acquire));
    remember_all();
}

void tk_alone_close(void)
{
    set_head(&tk_alone.never);
    began_alone = false;
    if (records)
        munmap((void *)(uintptr_t)(records - records_size), 2 * records_size);
    records = NULL;
}

static void copy_record(void *to, uint64_t from, size_t nbytes)
{
    for (size_t i = 0; i < nbytes; i++)
        ((char *)to)[i] = records[(from + i) & (records_size - 1)];
}

/* A malformed record may have been a thread's. */
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

static bool are_of_processes(const _Atomic uint64_t *now, uint64_t from, uint64_t to)
{
    const uint64_t begin = from;
    bool are = true;
    size_t size;
    for (; are && from != to && to - begin <= records_size - margin; from += size)
        are = is_of_process(from, &size) && size <= to - from;
    /* Some were overwritten, or are being, perhaps while they were read: by the first thread, if
     * this one is another. */
    atomic_thread_fence(memory_order_acquire);
    if (atomic_load_explicit(now, memory_order_relaxed) - begin > records_size - margin)
        return are_all_known();
    return are;
}

bool tk_alone_check(void)
{
    const _Atomic uint64_t *now = head_now();
    uint64_t head = atomic_load_explicit(now, memory_order_acquire);
    bool is_alone = head != tk_alone.never && are_of_processes(now, seen(), head);
    if (is_alone)
        set_seen(head);
    else
        set_head(&tk_alone.never);
    return is_alone;
}

void tk_alone_share(void)
{
    is_shared = true;
    set_head(head_now());
}
