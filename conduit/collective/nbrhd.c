/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See nbrhd.h. Owns nothing: lines are the transport's, and the user of a tree locks it.
 *
 * A flag is stored with release after everything that its writer did and learned from others, and
 * loaded with acquire before it is passed on, so a rank that has passed a barrier sees everything
 * that every rank did before it. / */
#include "config.h"

#include "base/report.h"
#include "collective/nbrhd.h"
#include "peer/peer.h"
#include "transport/neighbour.h"

/* ---- places in the tree */

/* A flat barrier takes one transfer of a cache line between CPUs, not two or more, but each rank
 * reads the lines of all and wakes all. Two ranks took 0.34 us, as two bare flags do; with a leader
 * 0.45 us. */
enum { flat_max = 4 };

_Static_assert(flat_max <= tk_tree_fan + 1, "all others of a flat neighbourhood find room");

static bool attach(struct tk_nbrhd_other *other, uint32_t index,
                   struct tk_nbrhd_lines *(*lines_of)(uint32_t))
{
    other->rank = tk_topology.nbrhd_ranks[index];
    other->lines = lines_of(index);
    return other->lines != NULL;
}

/* Each rank begins with the next rank, so that not all read one line at once. */
static bool attach_all(struct tk_nbrhd *nbrhd, struct tk_nbrhd_lines *(*lines_of)(uint32_t))
{
    uint32_t size = tk_topology.nbrhd_size;
    for (uint32_t i = 1; i < size; i++)
        if (!attach(&nbrhd->below[nbrhd->below_count++], (tk_topology.nbrhd_rank + i) % size,
                    lines_of))
            return false;
    return true;
}

static bool attach_tree(struct tk_nbrhd *nbrhd, struct tk_nbrhd_lines *(*lines_of)(uint32_t))
{
    uint32_t index = tk_topology.nbrhd_rank;
    const struct tk_tree_place place = tk_tree_place(index, tk_topology.nbrhd_size);
    if (index > 0 && !attach(&nbrhd->above, place.above, lines_of))
        return false;
    for (uint32_t i = 0; i < place.below_count; i++)
        if (!attach(&nbrhd->below[nbrhd->below_count++], place.below + i, lines_of))
            return false;
    return true;
}

enum tk_status tk_nbrhd_open(struct tk_nbrhd *nbrhd,
                             struct tk_nbrhd_lines *(*lines_of)(uint32_t index))
{
    uint32_t size = tk_topology.nbrhd_size;
    *nbrhd = (struct tk_nbrhd){.is_flat = size <= flat_max && tk_topology.nbrhds == 1};
    if (size == 1)
        return TK_OK;
    nbrhd->ours = lines_of(tk_topology.nbrhd_rank);
    bool all = nbrhd->is_flat ? attach_all(nbrhd, lines_of) : attach_tree(nbrhd, lines_of);
    return nbrhd->ours && all ? TK_OK : TK_FAIL;
}

/* ---- flags */

/* Counts wrap. */
static inline bool is_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

static inline uint32_t read_count(const struct tk_nbrhd_line *line)
{
    return atomic_load_explicit(&line->count, memory_order_acquire);
}

static inline bool write_line(struct tk_nbrhd_line *line, uint32_t count, uint64_t word)
{
    if (atomic_load_explicit(&line->count, memory_order_relaxed) == count)
        return false;
    atomic_store_explicit(&line->words[count & 1], word, memory_order_relaxed);
    atomic_store_explicit(&line->count, count, memory_order_release);
    return true;
}

static _Noreturn void make_no_sense(uint32_t rank, uint32_t count, uint32_t over, uint32_t entered)
{
    const struct tk_peer *peer = tk_peer(rank);
    tk_panic("rank %u (%s, pid %d) counts %u barriers, where %u are over and we are in %u; its "
             "memory, or ours, is not what it was",
             rank, peer->host, peer->pid, count, over, entered);
}

static uint32_t count_below(const struct tk_nbrhd *nbrhd, uint32_t i, uint32_t entered)
{
    uint32_t count = read_count(&nbrhd->below[i].lines->up);
    tk_if_unlikely(is_before(count, nbrhd->over))
        make_no_sense(nbrhd->below[i].rank, count, nbrhd->over, entered);
    return count;
}

static uint32_t least_below(const struct tk_nbrhd *nbrhd, uint32_t entered)
{
    uint32_t least = entered;
    for (uint32_t i = 0; i < nbrhd->below_count; i++) {
        uint32_t count = count_below(nbrhd, i, entered);
        if (is_before(count, least))
            least = count;
    }
    return least;
}

/* A rank that has entered the next barrier stays there: only those that had not are checked again.
 */
uint32_t tk_nbrhd_gather(struct tk_nbrhd *nbrhd, uint32_t entered)
{
    for (; nbrhd->arrived < nbrhd->below_count; nbrhd->arrived++)
        if (count_below(nbrhd, nbrhd->arrived, entered) == nbrhd->over)
            return nbrhd->gathered;
    return nbrhd->gathered = least_below(nbrhd, entered);
}

void tk_nbrhd_missing(const struct tk_nbrhd *nbrhd, uint32_t entered,
                      void (*add)(void *context, uint32_t rank), void *context)
{
    bool all_came = true;
    for (uint32_t i = 0; i < nbrhd->below_count; i++)
        if (is_before(read_count(&nbrhd->below[i].lines->up), entered)) {
            add(context, nbrhd->below[i].rank);
            all_came = false;
        }
    if (all_came && !tk_nbrhd_leads(nbrhd))
        add(context, nbrhd->above.rank);
}

bool tk_nbrhd_is_due(const struct tk_nbrhd *nbrhd, uint32_t entered)
{
    if (least_below(nbrhd, entered) != nbrhd->gathered)
        return true;
    return !tk_nbrhd_leads(nbrhd) && read_count(&nbrhd->above.lines->down) != nbrhd->over;
}

void tk_nbrhd_publish_up(const struct tk_nbrhd *nbrhd, uint32_t count, uint64_t word)
{
    if (nbrhd->ours && write_line(&nbrhd->ours->up, count, word) && nbrhd->above.lines)
        tk_neighbour_wake(nbrhd->above.rank);
}

static void nbrhd_wake_below(const struct tk_nbrhd *nbrhd)
{
    for (uint32_t i = 0; i < nbrhd->below_count; i++)
        tk_neighbour_wake(nbrhd->below[i].rank);
}

void tk_nbrhd_publish_down(const struct tk_nbrhd *nbrhd, uint32_t count, uint64_t word)
{
    if (nbrhd->below_count > 0 && !nbrhd->is_flat && write_line(&nbrhd->ours->down, count, word))
        nbrhd_wake_below(nbrhd);
}

uint32_t tk_nbrhd_read_down(const struct tk_nbrhd *nbrhd, uint32_t entered)
{
    uint32_t count = read_count(&nbrhd->above.lines->down);
    tk_if_unlikely(is_before(count, nbrhd->over) || is_before(entered, count))
        make_no_sense(nbrhd->above.rank, count, nbrhd->over, entered);
    return count;
}

void tk_nbrhd_pass(struct tk_nbrhd *nbrhd, uint32_t over)
{
    if (over == nbrhd->over)
        return;
    nbrhd->over = over;
    nbrhd->arrived = 0;
    if (nbrhd->is_flat)
        nbrhd_wake_below(nbrhd);
}

uint32_t tk_nbrhd_step(struct tk_nbrhd *nbrhd, uint32_t entered, uint32_t (*lead)(uint32_t count))
{
    if (nbrhd->is_flat)
        tk_nbrhd_publish_up(nbrhd, entered, 0);
    uint32_t count = tk_nbrhd_gather(nbrhd, entered);
    if (tk_nbrhd_leads(nbrhd)) {
        count = lead(count);
    } else {
        tk_nbrhd_publish_up(nbrhd, count, 0);
        count = tk_nbrhd_read_down(nbrhd, entered);
    }
    tk_nbrhd_publish_down(nbrhd, count, 0);
    tk_nbrhd_pass(nbrhd, count);
    return count;
}
