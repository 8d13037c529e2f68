/* SPDX-License-Identifier: BSD-3-Clause */
/* The base of every program of this folder: a job with a segment, checks that name rank and place,
 * patterned memory, random numbers that all ranks can recompute, and a deadline that prints the
 * present phase. One client thread owns `job`; the checks may be used by any thread and in
 * handlers. */
#ifndef TESTS_JOB_H
#define TESTS_JOB_H

#include <stddef.h>
#include <stdint.h>

#include "gasnetex.h"

struct job {
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    gex_Rank_t rank, size;
    gex_Segment_t segment;
    char *base; /* our segment */
    size_t segment_size;
};
extern struct job job;

/* gex_Client_Init() and, unless `segment_size` is 0, gex_Segment_Attach(). The deadline is
 * JOB_DEADLINE seconds from now (default 100): then the rank prints its phase and ends. */
void job_start(int *argc, char ***argv, size_t segment_size);

/* The deadline alone, for those that start in their own way and fill `job` themselves. */
void job_deadline(void);

/* The second half of job_start() for those that gave it 0; a multiple of the page size. */
void job_attach(size_t segment_size);

/* The same with a segment that is bound to endpoint 0 and published already. */
void job_use(gex_Segment_t segment);

/* Sets the text of the present phase, for the deadline and for failed checks. */
void job_phase(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Barrier, "ok" from rank 0, gasnet_exit(0). */
void job_end(void) __attribute__((noreturn));

void job_barrier(void);

/* The address `offset` bytes into the segment of a rank, as that rank sees it. */
void *job_remote(gex_Rank_t rank, size_t offset);

/* Does the rank share memory with us? Puts and gets are complete at once then, and no queue can be
 * full. So it is with ourselves. */
int job_is_neighbour(gex_Rank_t rank);

/* Ends the job with status 1 unless `truth`. */
#define CHECK(truth, ...)                                                                          \
    ((truth) ? (void)0 : job_fail(__FILE__, __LINE__, #truth, " " __VA_ARGS__))
void job_fail(const char *file, int line, const char *what, const char *format, ...)
    __attribute__((format(printf, 4, 5), noreturn));

/* Seconds of a clock that only goes forward. */
double job_seconds(void);

/* Reads a counter of another thread, and acquires what that wrote before. */
unsigned job_seen(const unsigned *counter);

/* A hash that depends on all bits of both. */
uint64_t job_mix(uint64_t a, uint64_t b);

/* The next of a sequence of random numbers. */
uint64_t job_random(uint64_t *state);

/* Memory filled with a pattern, and the index of the first byte that differs from it (`size` when
 * none does). */
void job_fill(void *memory, size_t size, uint64_t seed);
size_t job_differs(const void *memory, size_t size, uint64_t seed);

/* Fails when `size` bytes are not the pattern. */
#define CHECK_PATTERN(memory, size, seed)                                                          \
    job_check_pattern(__FILE__, __LINE__, (memory), (size), (seed))
void job_check_pattern(const char *file, int line, const void *memory, size_t size, uint64_t seed);

/* An environment variable as a number. */
long job_number(const char *name, long otherwise);

/* malloc() that cannot fail. */
void *job_memory(size_t size);

#endif
