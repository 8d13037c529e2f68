/* SPDX-License-Identifier: BSD-3-Clause */
/* See job.h. Owns the job handles and the text of the present phase; takes no lock: the phase is
 * written by one thread, and a torn line in a failure message is acceptable. */
#include "config.h"

#include "job.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "gasnet_tools.h" /* not before gasnetex.h */

struct job job;

static char phase[200] = "start-up";
static gasnet_seginfo_t *segments;

static void on_last_alarm(int signal)
{
    (void)signal;
    _exit(99);
}

/* Prints the stack of this rank, if that takes only a few seconds: the only way to learn what a
 * rank waits for that hangs once in a thousand runs. */
static void tell_where(void)
{
    sigset_t alarms;

    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    signal(SIGALRM, on_last_alarm);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(5);
    gasnett_print_backtrace(STDERR_FILENO);
}

/* Only async-signal-safe calls until the message is printed. */
static void on_deadline(int signal)
{
    static const char before[] = "JOB_DEADLINE passed while in: ";
    ssize_t ignored = 0;

    (void)signal;
    ignored += write(STDERR_FILENO, before, sizeof before - 1);
    ignored += write(STDERR_FILENO, phase, strlen(phase));
    ignored += write(STDERR_FILENO, "\n", 1);
    (void)ignored;
    tell_where();
    _exit(99);
}

#ifdef GASNET_SEGMENT_EVERYTHING

/* EVERYTHING has no segments: the memory of each rank is at an address that the others know. */
static char *memory_of(gex_Rank_t rank)
{
    return (char *)UINT64_C(0x200000000000) + ((uint64_t)rank << 36);
}

static void take_memory(size_t size)
{
    job.base = mmap(memory_of(job.rank), size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK(job.base == memory_of(job.rank));
    job.segment_size = size;
    segments = job_memory(job.size * sizeof *segments);
    for (gex_Rank_t r = 0; r < job.size; r++)
        segments[r] = (gasnet_seginfo_t){.addr = memory_of(r), .size = size};
    job_barrier(); /* no access to a segment that is not attached yet */
}

void job_attach(size_t segment_size)
{
    CHECK(gex_Segment_Attach(&job.segment, job.tm, segment_size) == GASNET_OK);
    CHECK(job.segment == GEX_SEGMENT_INVALID);
    take_memory(segment_size);
}

#else

void job_attach(size_t segment_size)
{
    int status = gex_Segment_Attach(&job.segment, job.tm, segment_size);

    CHECK(status == GASNET_OK, "gex_Segment_Attach(%zu): %s", segment_size,
          gasnet_ErrorName(status));
    job_use(job.segment);
    CHECK(job.segment_size == segment_size);
}

#endif

void job_use(gex_Segment_t segment)
{
    job.segment = segment;
    job.base = gex_Segment_QueryAddr(job.segment);
    job.segment_size = gex_Segment_QuerySize(job.segment);
    CHECK(job.base && job.segment_size > 0);
    segments = job_memory(job.size * sizeof *segments);
    CHECK(gasnet_getSegmentInfo(segments, (int)job.size) == GASNET_OK);
}

void job_deadline(void)
{
    signal(SIGALRM, on_deadline);
    alarm((unsigned)job_number("JOB_DEADLINE", 100));
}

void job_start(int *argc, char ***argv, size_t segment_size)
{
    int status;

    job_deadline();
    status = gex_Client_Init(&job.client, &job.ep, &job.tm, "TRUNKLINE_TESTS", argc, argv,
                             (gex_Flags_t)0);
    CHECK(status == GASNET_OK, "gex_Client_Init: %s", gasnet_ErrorName(status));
    job.rank = gex_TM_QueryRank(job.tm);
    job.size = gex_TM_QuerySize(job.tm);
    job_phase("attach");
    if (segment_size)
        job_attach((segment_size + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE);
}

void job_phase(const char *format, ...)
{
    char text[sizeof phase];
    va_list list;
    int used = snprintf(text, sizeof text, "[rank %u] ", (unsigned)job.rank);

    va_start(list, format);
    vsnprintf(text + used, sizeof text - (size_t)used, format, list);
    va_end(list);
    memcpy(phase, text, sizeof phase);
}

void job_end(void)
{
    job_phase("last barrier");
    job_barrier();
    if (job.rank == 0) {
        printf("ok\n");
        fflush(stdout);
    }
    job_phase("exit");
    gasnet_exit(0);
}

void job_barrier(void)
{
    gex_Event_Wait(gex_Coll_BarrierNB(job.tm, 0));
}

void *job_remote(gex_Rank_t rank, size_t offset)
{
    CHECK(rank < job.size && offset <= segments[rank].size);
    return (char *)segments[rank].addr + offset;
}

int job_is_neighbour(gex_Rank_t rank)
{
    gex_RankInfo_t *all;
    gex_Rank_t count;

    gex_System_QueryNbrhdInfo(&all, &count, NULL);
    for (gex_Rank_t i = 0; i < count; i++)
        if (all[i].gex_jobrank == rank)
            return 1;
    return 0;
}

void job_fail(const char *file, int line, const char *what, const char *format, ...)
{
    const char *name = strrchr(file, '/');
    char text[600];
    va_list list;
    int used;

    used = snprintf(text, sizeof text, "FAILED rank %u %s:%d: %s ", (unsigned)job.rank,
                    name ? name + 1 : file, line, what);
    va_start(list, format);
    if (used < (int)sizeof text)
        vsnprintf(text + used, sizeof text - (size_t)used, format, list);
    va_end(list);
    fprintf(stderr, "%s (in: %s)\n", text, phase);
    fflush(stderr);
    gasnet_exit(1);
}

/* The finaliser of splitmix64: cheap, and every input bit reaches every output bit. */
double job_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

unsigned job_seen(const unsigned *counter)
{
    return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

uint64_t job_mix(uint64_t a, uint64_t b)
{
    uint64_t z = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

uint64_t job_random(uint64_t *state)
{
    *state += 1;
    return job_mix(*state, 0x7275746eu);
}

void job_fill(void *memory, size_t size, uint64_t seed)
{
    char *to = memory;
    uint64_t word;

    for (size_t at = 0; at < size; at += sizeof word) {
        word = job_mix(seed, at);
        memcpy(to + at, &word, size - at < sizeof word ? size - at : sizeof word);
    }
}

static size_t first_difference(const char *a, const void *b, size_t size)
{
    const char *other = b;
    size_t i = 0;

    while (i < size && a[i] == other[i])
        i++;
    return i;
}

size_t job_differs(const void *memory, size_t size, uint64_t seed)
{
    const char *from = memory;
    uint64_t word;

    for (size_t at = 0; at < size; at += sizeof word) {
        size_t part = size - at < sizeof word ? size - at : sizeof word;

        word = job_mix(seed, at);
        if (memcmp(from + at, &word, part) != 0)
            return at + first_difference(from + at, &word, part);
    }
    return size;
}

void job_check_pattern(const char *file, int line, const void *memory, size_t size, uint64_t seed)
{
    size_t at = job_differs(memory, size, seed);

    if (at != size)
        job_fail(file, line, "pattern", "byte %zu of %zu at %p is wrong", at, size, memory);
}

long job_number(const char *name, long otherwise)
{
    const char *text = getenv(name);

    return text && *text ? strtol(text, NULL, 10) : otherwise;
}

void *job_memory(size_t size)
{
    void *memory = malloc(size ? size : 1);

    CHECK(memory, "no memory for %zu bytes", size);
    return memory;
}
