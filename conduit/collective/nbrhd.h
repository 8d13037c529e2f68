/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Barriers of ranks that share memory. Each has two cache lines that only it writes. If the
 * neighbourhood is the whole job and small, there is no tree: `up` counts the barriers that its
 * rank has entered, and each rank reads the lines of all. Otherwise ranks form a tree: `up` counts
 * the barriers that its rank and all below it have entered, and its parent reads it; `down` counts
 * those that all ranks of the job have entered, and its children read it. The root is the leader:
 * between the two it communicates with the other neighbourhoods.
 *
 * Flags are counts of barriers, so any number may be under way, and nothing is ever reset. They
 * wrap; two counts at the same time never differ by half of the range. The lines belong to
 * transport/shm; a struct tk_nbrhd and the lock around it belong to the unit whose barriers they
 * are. */
#ifndef TK_NBRHD_H
#define TK_NBRHD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/platform.h"
#include "base/status.h"
#include "topology/tree.h"
#include "transport/neighbour.h"

struct tk_nbrhd_line {
    _Alignas(TK_CACHE_LINE) _Atomic uint32_t count;
    /* Values that come with a count, indexed by its parity: a rank that has entered the next
     * barrier may be one step ahead of us, never two. */
    _Atomic uint64_t words[2];
};

struct tk_nbrhd_lines {
    struct tk_nbrhd_line up, down;
};

/* The first of a rank's flags that neighbours share (tk_neighbour_flags). */
struct tk_nbrhd_page {
    struct tk_nbrhd_lines barrier, named;
};
_Static_assert(sizeof(struct tk_nbrhd_page) <= tk_flags_of_exit,
               "what lies behind belongs to the end of the job");

struct tk_nbrhd_other {
    struct tk_nbrhd_lines *lines;
    uint32_t rank;
};

/* All zero: a rank that has no neighbours, and leads itself. */
struct tk_nbrhd {
    struct tk_nbrhd_lines *ours;
    struct tk_nbrhd_other above;              /* no lines: we are the root */
    struct tk_nbrhd_other below[tk_tree_fan]; /* flat: all others */
    uint32_t below_count;
    uint32_t arrived;  /* how many of them have entered the next barrier */
    uint32_t gathered; /* barriers that we and all below have entered, as last found */
    uint32_t over;     /* barriers that all have entered, as last found */
    bool is_flat;
};

/* Takes a place among the neighbours. `lines_of` returns the lines of a neighbour by its index, or
 * ours; NULL: failed, which was logged. Lines are initially zero. */
enum tk_status tk_nbrhd_open(struct tk_nbrhd *nbrhd,
                             struct tk_nbrhd_lines *(*lines_of)(uint32_t index));

/* We have entered `entered` barriers; returns how many we and all below us have. */
uint32_t tk_nbrhd_gather(struct tk_nbrhd *nbrhd, uint32_t entered);

/* `count` may be unchanged; if it has changed, waiting ranks are woken. */
void tk_nbrhd_publish_up(const struct tk_nbrhd *nbrhd, uint32_t count, uint64_t word);
void tk_nbrhd_publish_down(const struct tk_nbrhd *nbrhd, uint32_t count, uint64_t word);

/* The count that the parent has published: at most `entered`. */
uint32_t tk_nbrhd_read_down(const struct tk_nbrhd *nbrhd, uint32_t entered);

/* Publishes that all have entered this many barriers. */
void tk_nbrhd_pass(struct tk_nbrhd *nbrhd, uint32_t over);

/* Calls `add` for each neighbour whose word a barrier waits for: children that have not entered the
 * next one, otherwise the parent. */
void tk_nbrhd_missing(const struct tk_nbrhd *nbrhd, uint32_t entered,
                      void (*add)(void *context, uint32_t rank), void *context);

/* Whether any neighbour has published a new count since. */
bool tk_nbrhd_is_due(const struct tk_nbrhd *nbrhd, uint32_t entered);

static inline bool tk_nbrhd_leads(const struct tk_nbrhd *nbrhd)
{
    return nbrhd->above.lines == NULL;
}

/* The word that came with a count that was seen; it stays valid until we enter the next barrier. */
static inline uint64_t tk_nbrhd_word(const struct tk_nbrhd_line *line, uint32_t count)
{
    return atomic_load_explicit(&line->words[count & 1], memory_order_relaxed);
}

/* A step of barriers without words: passes new counts up and down. `lead` turns the count of this
 * neighbourhood into the count of all. Returns the number of completed barriers. */
uint32_t tk_nbrhd_step(struct tk_nbrhd *nbrhd, uint32_t entered, uint32_t (*lead)(uint32_t count));

#endif
