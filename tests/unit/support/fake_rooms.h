/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Fakes of all rooms that start/ opens: functions that record their names; one chosen by the test
 * fails. Each start is a process of its own, which prints the names at its end. / */
#ifndef FAKE_ROOMS_H
#define FAKE_ROOMS_H

#include <stdbool.h>
#include <stdint.h>

enum { ranks_max = 4 };

/* The shape of a job, and its injected failure. */
struct job {
    const char *failing; /* step */
    uint32_t rank, size;
    uint32_t host_of[ranks_max];
    uint32_t nbrhd_size; /* ours; 0: as many as are on our host */
    uint32_t local[3];   /* the launcher's information on this host */
    uint32_t local_size; /* 0: nothing */
    uint64_t memory[ranks_max];
    bool oversubscribed, pins, is_narrowed;
    const char *segsize_text; /* of the client */
    uint64_t segsize;
};
extern struct job job;

/* Starts the job, and returns its steps and messages. The start must complete, or must fail: then
 * the process exits by tk_exit_failed(). */
const char *start_job(bool is_good);

/* Where the name of a step is in that; NULL: it was not done. */
const char *place_of(const char *said, const char *name);
bool did(const char *said, const char *name);

/* Names up to NULL, of which each must come after the one before. */
void assert_order(const char *said, const char *first, ...);

#endif
