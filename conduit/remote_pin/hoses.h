/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Remote firehoses (Bell and Bonachea, CAC 2003): this process's table of regions of other ranks'
 * memory that are registered there for its use, so that it can put and get without asking first.
 * Each rank exports a limited number of regions to each other rank; to request another one, the
 * requester gives one up in the same message, which moves the firehose from one region to the
 * other. Nothing here sends: flight.c does. Owns the table; one lock, under which no other is
 * taken. Thread-safe. */
#ifndef TK_HOSES_H
#define TK_HOSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/idle_table.h"
#include "base/status.h"

enum tk_hose_state {
    TK_HOSE_EMPTY,  /* has no usable region; may still have to be given up */
    TK_HOSE_MOVING, /* requested, the answer has not come */
    TK_HOSE_READY,
    TK_HOSE_REFUSED /* the region can't be had now: use another path */
};

struct tk_hose {
    struct tk_entry entry; /* in its bucket, or free; in a ring for each rank, see hoses.c */
    const void *owner;     /* the only transfer that it may serve; NULL: any */
    uintptr_t base;        /* of its region */
    size_t size;
    uint32_t number; /* from 1 */
    uint32_t rank;
    uint32_t handle; /* the other rank's; 0: none */
    uint32_t users;
    uint32_t uses_left; /* of a refusal, before the region is requested again */
    uint8_t state;
};

/* For ranks below `ranks`, with keys for so many rails, at most `most` firehoses in all. */
enum tk_status tk_hoses_open(uint32_t ranks, uint32_t rails, size_t granule, size_t most);
void tk_hoses_close(void);

/* Finds the region of `rank` that contains address `at`. READY: it is in use from now on, until
 * tk_hose_leave(). REFUSED: this counts as one of its uses. If there is none: takes a firehose for
 * [from, to), which must contain `at` and lie in one granule, and makes it MOVING; *is_new: the
 * caller must request it, giving up its handle. NULL: all firehoses of this rank are in use
 * (MOVING: waiting is worthwhile), or there never will be one (REFUSED). */
struct tk_hose *tk_hose_seek(uint32_t rank, uintptr_t at, const void *owner, uintptr_t from,
                             uintptr_t to, enum tk_hose_state *state, bool *is_new);

/* The same for a later use: does not mark an existing one as used. NULL: nothing to request. */
struct tk_hose *tk_hose_seek_ahead(uint32_t rank, uintptr_t at, const void *owner, uintptr_t from,
                                   uintptr_t to);

/* `is_used`: a transfer went through it. */
void tk_hose_leave(struct tk_hose *hose, bool is_used);

/* The request could not be sent. */
void tk_hose_cancel(struct tk_hose *hose);

/* The answer to a request; `handle` 0: refused. False: it was not requested. `lent`: how many
 * regions that rank lends us. */
bool tk_hose_arrive(uint32_t rank, uint32_t number, uintptr_t base, size_t size, uint32_t handle,
                    const uint32_t *keys, uint32_t lent);
const uint32_t *tk_hose_keys(const struct tk_hose *hose);

/* According to its answers so far; 1 before the first. */
uint32_t tk_hoses_lent(uint32_t rank);

/* No firehose of this rank serves `owner` any more. */
void tk_hoses_disown(uint32_t rank, const void *owner);

struct tk_hose_counts {
    uint64_t hits, misses, moves, refusals; /* moves: misses that gave another region up */
    uint64_t here;                          /* at present */
};
struct tk_hose_counts tk_hoses_count(void);

#endif
