/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes a trace, in a thread of the library, and at the end in the thread that ends the process.
 * Owns the file's name and the lines, under one lock that no thread waits for without a limit. The
 * file is opened for each write, because programs close files that they do not know. A JSON file is
 * complete after each write, however the process ends: the next write overwrites its end, under the
 * kernel's file lock if ranks share it. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/bits.h"
#include "common/clock.h"
#include "base/futex.h"
#include "base/report.h"
#include "process/thread.h"
#include "stats/file.h"
#include "trace/format.h"
#include "trace/trace_private.h"

enum {
    write_often = 50,    /* ms */
    patience = 2000,     /* ms, at the end */
    stack_least = 65536, /* a page or two is enough */
    one_ms = 1000000
};

static const char json_begin[] = "[\n{\"name\":\"trunkline\",\"ph\":\"M\",\"pid\":0}";
static const char json_end[] = "\n]\n";
_Static_assert(sizeof(json_end) - 1 <= tk_text_behind, "stands behind the lines of each write");

static struct tk_trace_source source;
static struct tk_stats_file trace_file = {.before = "GASNET_TRACEFILE: cannot ",
                                          .after = "; the job goes on without this trace"};
static char boot[64], host[256];
static bool is_broken;
static uint32_t mask_at_start;
static _Atomic(bool) has_file, is_closed;
static atomic_flag busy = ATOMIC_FLAG_INIT;
static struct tk_text lines; /* without a file: each write opens it */
static uint64_t lost_in_all;
static char text[tk_trace_text_max + 1];
static pid_t owner;

static void nap(void)
{
    const struct timespec ms = {.tv_nsec = one_ms};
    nanosleep(&ms, NULL);
}

/* The offsets of this rank's lines in the file, which others may write to. */
struct piece {
    off_t at, end;
};
static struct piece *pieces;
static size_t piece_count, piece_space;

/* ---- the file ---- */

/* Only while times may have to be corrected; not at the end of the job, which may not allocate. */
static void note_piece(off_t at, size_t length)
{
    if (!source.is_aligned || source.alignment.end.at || atomic_load(&is_closed))
        return;
    if (piece_count > 0 && pieces[piece_count - 1].end == at) {
        pieces[piece_count - 1].end += (off_t)length;
        return;
    }
    if (piece_count == piece_space) {
        size_t space = 2 * piece_space + 16;
        struct piece *more = realloc(pieces, space * sizeof(*more));
        if (!more)
            return;
        pieces = more;
        piece_space = space;
    }
    pieces[piece_count++] = (struct piece){.at = at, .end = at + (off_t)length};
}

/* 0, or errno. */
static int write_whole(int fd, const char *bytes, size_t length, off_t at)
{
    while (length > 0) {
        ssize_t n = at < 0 ? write(fd, bytes, length) : pwrite(fd, bytes, length, at);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n < 0 ? errno : ENOSPC;
        bytes += n;
        length -= (size_t)n;
        at += at < 0 ? 0 : n;
    }
    return 0;
}

/* Another rank may be stopped while it holds the lock. */
static int lock_file(int fd)
{
    for (int i = 0; i < patience; i++) {
        if (flock(fd, LOCK_EX | LOCK_NB) == 0)
            return 0;
        if (errno != EWOULDBLOCK && errno != EINTR)
            return errno;
        nap();
    }
    return EWOULDBLOCK;
}

/* A write that does not fit on the disk is undone, so that the file stays complete. */
static int append_json(int fd)
{
    struct stat status;
    int error = lock_file(fd);
    if (error)
        return error;
    if (fstat(fd, &status) != 0)
        return errno;
    off_t at = status.st_size - (off_t)(sizeof(json_end) - 1);
    if (at < 0)
        return EILSEQ;
    memcpy(lines.bytes + lines.length, json_end, sizeof(json_end) - 1);
    error = write_whole(fd, lines.bytes, lines.length + sizeof(json_end) - 1, at);
    if (!error)
        note_piece(at, lines.length);
    if (error && ftruncate(fd, at) == 0)
        write_whole(fd, json_end, sizeof(json_end) - 1, at);
    return error;
}

/* Other ranks may append too: the kernel reports the offset. */
static int append_text(int fd)
{
    int error = write_whole(fd, lines.bytes, lines.length, -1);
    off_t end = error ? -1 : lseek(fd, 0, SEEK_CUR);
    if (end >= 0)
        note_piece(end - (off_t)lines.length, lines.length);
    return error;
}

static void flush(void)
{
    int error = 0;
    if (lines.length > 0 && !is_broken) {
        int flags = O_CLOEXEC | O_NOCTTY | (trace_file.is_json ? O_RDWR : O_WRONLY | O_APPEND);
        int fd = trace_file.path[0] ? open(trace_file.path, flags) : trace_file.stream;
        if (fd < 0)
            error = errno;
        else if (trace_file.is_json)
            error = append_json(fd);
        else
            error = append_text(fd);
        if (trace_file.path[0] && fd >= 0 && close(fd) != 0 && !error)
            error = errno;
        if (error) {
            is_broken = true;
            tk_stats_file_failed(&trace_file, "write", error);
        }
    }
    lines.length = 0;
}

/* ---- correction of times ---- */

/* 0, or errno. In parts of whole lines. */
static int correct_piece(int fd, struct piece piece)
{
    while (piece.at < piece.end) {
        size_t wanted = (size_t)tk_min(piece.end - piece.at, (off_t)tk_text_max);
        ssize_t n = pread(fd, lines.bytes, wanted, piece.at);
        if (n <= 0)
            return n < 0 ? errno : EIO;
        size_t length = (size_t)n;
        char *last = piece.at + n < piece.end ? memrchr(lines.bytes, '\n', length) : NULL;
        if (last)
            length = (size_t)(last + 1 - lines.bytes);
        tk_trace_correct(&source.alignment, lines.bytes, length, trace_file.is_json);
        int error = write_whole(fd, lines.bytes, length, piece.at);
        if (error)
            return error;
        piece.at += (off_t)length;
    }
    return 0;
}

static void correct(void)
{
    if (is_broken || piece_count == 0)
        return;
    int fd = open(trace_file.path, O_RDWR | O_CLOEXEC);
    int error = fd < 0 ? errno : 0;
    for (size_t i = 0; i < piece_count && !error; i++)
        error = correct_piece(fd, pieces[i]);
    if (fd >= 0 && close(fd) != 0 && !error)
        error = errno;
    if (error) {
        is_broken = true;
        tk_stats_file_failed(&trace_file, "correct", error);
    }
}

/* ---- from the rings ---- */

static void make_space(void)
{
    if (lines.length + tk_trace_event_max > sizeof(lines.bytes))
        flush();
}

static void report_lost(struct tk_trace_ring *ring)
{
    uint64_t lost = atomic_load_explicit(&ring->lost, memory_order_relaxed);
    if (lost == ring->lost_reported)
        return;
    uint64_t now = tk_now();
    const struct tk_trace_event event = {.begin = now,
                                         .end = now,
                                         .nbytes = lost - ring->lost_reported,
                                         .peer = tk_trace_no_peer,
                                         .op = tk_trace_lost};
    make_space();
    tk_trace_put_event(&lines, &source, ring->thread, &event, NULL, trace_file.is_json);
    lost_in_all += lost - ring->lost_reported;
    ring->lost_reported = lost;
}

/* Only events that were present at the beginning: a thread that keeps recording must not hold us
 * here. */
static void drain(void)
{
    struct tk_trace_event event;
    for (struct tk_trace_ring *ring = tk_trace_rings; ring; ring = ring->next) {
        for (int i = 0; i < tk_trace_ring_slots; i++) {
            if (!tk_trace_ring_take(ring, &event, text, sizeof(text)))
                break;
            make_space();
            tk_trace_put_event(&lines, &source, ring->thread, &event, event.slots ? text : NULL,
                               trace_file.is_json);
        }
        report_lost(ring);
    }
    flush();
}

static void *writer(void *unused)
{
    (void)unused;
    while (!atomic_load(&is_closed)) {
        tk_futex_wait(&tk_trace_bell, 0, (uint64_t)write_often * one_ms);
        atomic_store(&tk_trace_bell, 0);
        if (atomic_flag_test_and_set(&busy))
            continue;
        if (!atomic_load(&is_closed))
            drain();
        atomic_flag_clear(&busy);
    }
    return NULL;
}

/* ---- life ---- */

static struct tk_trace_clocks clocks_now(void)
{
    struct timespec t;
    struct tk_trace_clocks clocks = {.monotonic = tk_now()};
    clock_gettime(CLOCK_REALTIME, &t);
    clocks.realtime = (uint64_t)t.tv_sec * TK_SECOND + (uint64_t)t.tv_nsec;
    return clocks;
}

/* Processes with the same boot id have the same monotonic clock. */
static void find_boot(void)
{
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, boot, sizeof(boot) - 1) : 0;
    if (fd >= 0)
        close(fd);
    boot[n > 0 ? n : 0] = '\0';
    boot[strcspn(boot, "\n")] = '\0';
}

/* Rank 0 creates a file that ranks share, before any other has passed the last wait of start-up. */
static int create(bool is_ours)
{
    int flags = O_CREAT | O_CLOEXEC | O_NOCTTY | (trace_file.is_json ? O_RDWR : O_WRONLY);
    int fd = open(trace_file.path, flags | (is_ours ? O_TRUNC : 0), 0666);
    if (fd < 0)
        return errno;
    int error = 0;
    if (is_ours && trace_file.is_json)
        error = write_whole(fd, json_begin, sizeof(json_begin) - 1, 0);
    if (is_ours && trace_file.is_json && !error)
        error = write_whole(fd, json_end, sizeof(json_end) - 1, sizeof(json_begin) - 1);
    if (close(fd) != 0 && !error)
        error = errno;
    return error;
}

void tk_trace_open(const struct tk_trace_plan *plan)
{
    bool is_shared = !strchr(plan->file, '%') && plan->size > 1;
    if (!plan->file[0] || (!plan->records && !(is_shared && plan->rank == 0)))
        return;
    owner = getpid();
    snprintf(host, sizeof(host), "%s", plan->host);
    find_boot();
    source = (struct tk_trace_source){
        .rank = plan->rank, .size = plan->size, .host = host, .boot = boot, .pid = (int)owner};
    int error = tk_stats_file_name(&trace_file, plan->file, plan->rank);
    if (!error && trace_file.path[0])
        error = create(!is_shared || plan->rank == 0);
    mask_at_start = plan->mask;
    if (!error && plan->records && !tk_trace_recorder_open(plan))
        error = ENOMEM;
    atomic_store(&has_file, !error && plan->records);
    if (error)
        tk_stats_file_failed(&trace_file, "create", error);
}

void tk_trace_start(void)
{
    if (!tk_trace_is_open())
        return;
    const struct tk_trace_clocks clocks = clocks_now();
    while (atomic_flag_test_and_set(&busy))
        nap();
    tk_trace_put_start(&lines, &source, &clocks, trace_file.is_json);
    atomic_flag_clear(&busy);
    if (tk_thread_start(writer, stack_least, 0) != TK_OK) {
        tk_trace_recorder_close();
        atomic_store(&has_file, false);
        return;
    }
    tk_trace_mask_start(mask_at_start);
}

void tk_trace_align(const struct tk_trace_offset *offset, bool at_end)
{
    while (atomic_flag_test_and_set(&busy)) {
        if (atomic_load(&is_closed))
            return;
        nap();
    }
    if (!at_end) {
        source.is_aligned = true;
        source.alignment.start = *offset;
    } else if (atomic_load(&has_file) && trace_file.path[0]) {
        drain();
        if (tk_trace_align_end(&source.alignment, offset))
            correct();
    }
    atomic_flag_clear(&busy);
}

void tk_trace_stop(void)
{
    if (atomic_load(&has_file))
        tk_trace_recorder_close();
}

void tk_trace_close(const char *how)
{
    if (!atomic_load(&has_file) || getpid() != owner || atomic_exchange(&is_closed, true))
        return;
    tk_trace_recorder_close();
    for (int i = 0; atomic_flag_test_and_set(&busy); i++) {
        if (i == patience)
            return;
        nap();
    }
    const struct tk_trace_clocks clocks = clocks_now();
    drain();
    tk_trace_put_end(&lines, &source, &clocks, lost_in_all, how, trace_file.is_json);
    flush();
}
