/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See near.h. Owns nothing: lines are the transport's, and the user of a tree locks it.
 *
 * A flag is released after all that its writer did and all that it knows of others, and acquired
 * before it is passed on, so whoever is behind a barrier sees what anybody did before it. */
#include "config.h"

#include "base/report.h"
#include "collective/near.h"
#include "peer/peer.h"
#include "transport/shm/shm.h"

/* ---- who tells whom */

/* Flat, a barrier takes one way of a line from CPU to CPU, not two or more, but each reads the
 * lines of all and wakes all. Two ranks took 0.34 us, as two bare flags do; with a leader 0.45. */
enum { flat_most = 4 };

_Static_assert(flat_most <= tk_near_fan + 1, "all others of a flat neighbourhood find room");

static bool attach(struct tk_near_other *other, uint32_t index,
                   struct tk_near_lines *(*lines_of)(uint32_t))
{
    other->rank = tk_topology.nbrhd_ranks[index];
    other->lines = lines_of(index);
    return other->lines != NULL;
}

/* Each begins with the next, so that not all read one line at once. */
static bool attach_all(struct tk_near *near, struct tk_near_lines *(*lines_of)(uint32_t))
{
    uint32_t size = tk_topology.nbrhd_size;
    for (uint32_t i = 1; i < size; i++)
        if (!attach(&near->below[near->below_count++], (tk_topology.nbrhd_rank + i) % size,
                    lines_of))
            return false;
    return true;
}

static bool attach_tree(struct tk_near *near, struct tk_near_lines *(*lines_of)(uint32_t))
{
    uint32_t index = tk_topology.nbrhd_rank, first = tk_near_fan * index + 1;
    if (index > 0 && !attach(&near->above, (index - 1) / tk_near_fan, lines_of))
        return false;
    for (uint32_t i = first; i < first + tk_near_fan && i < tk_topology.nbrhd_size; i++)
        if (!attach(&near->below[near->below_count++], i, lines_of))
            return false;
    return true;
}

enum tk_status tk_near_open(struct tk_near *near, struct tk_near_lines *(*lines_of)(uint32_t index))
{
    uint32_t size = tk_topology.nbrhd_size;
    *near = (struct tk_near){.is_flat = size <= flat_most && tk_topology.nbrhds == 1};
    if (size == 1)
        return TK_OK;
    near->ours = lines_of(tk_topology.nbrhd_rank);
    bool all = near->is_flat ? attach_all(near, lines_of) : attach_tree(near, lines_of);
    return near->ours && all ? TK_OK : TK_FAIL;
}

/* ---- flags */

/* Counts wrap. */
static inline bool is_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

static inline uint32_t read_count(const struct tk_near_line *line)
{
    return atomic_load_explicit(&line->count, memory_order_acquire);
}

static inline bool write_line(struct tk_near_line *line, uint32_t count, uint64_t word)
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

static uint32_t count_below(const struct tk_near *near, uint32_t i, uint32_t entered)
{
    uint32_t count = read_count(&near->below[i].lines->up);
    tk_if_unlikely(is_before(count, near->over))
        make_no_sense(near->below[i].rank, count, near->over, entered);
    return count;
}

static uint32_t least_below(const struct tk_near *near, uint32_t entered)
{
    uint32_t least = entered;
    for (uint32_t i = 0; i < near->below_count; i++) {
        uint32_t count = count_below(near, i, entered);
        if (is_before(count, least))
            least = count;
    }
    return least;
}

/* Who has come to the next barrier has come: only who had not is looked at again, until all have.
 */
uint32_t tk_near_gather(struct tk_near *near, uint32_t entered)
{
    for (; near->come < near->below_count; near->come++)
        if (count_below(near, near->come, entered) == near->over)
            return near->gathered;
    return near->gathered = least_below(near, entered);
}

bool tk_near_is_due(const struct tk_near *near, uint32_t entered)
{
    if (least_below(near, entered) != near->gathered)
        return true;
    return !tk_near_leads(near) && read_count(&near->above.lines->down) != near->over;
}

void tk_near_tell_up(const struct tk_near *near, uint32_t count, uint64_t word)
{
    if (near->ours && write_line(&near->ours->up, count, word) && near->above.lines)
        tk_shm_wake(near->above.rank);
}

static void wake_below(const struct tk_near *near)
{
    for (uint32_t i = 0; i < near->below_count; i++)
        tk_shm_wake(near->below[i].rank);
}

void tk_near_tell_down(const struct tk_near *near, uint32_t count, uint64_t word)
{
    if (near->below_count > 0 && !near->is_flat && write_line(&near->ours->down, count, word))
        wake_below(near);
}

uint32_t tk_near_hear(const struct tk_near *near, uint32_t entered)
{
    uint32_t count = read_count(&near->above.lines->down);
    tk_if_unlikely(is_before(count, near->over) || is_before(entered, count))
        make_no_sense(near->above.rank, count, near->over, entered);
    return count;
}

void tk_near_pass(struct tk_near *near, uint32_t over)
{
    if (over == near->over)
        return;
    near->over = over;
    near->come = 0;
    if (near->is_flat)
        wake_below(near);
}

uint32_t tk_near_step(struct tk_near *near, uint32_t entered, uint32_t (*lead)(uint32_t count))
{
    if (near->is_flat)
        tk_near_tell_up(near, entered, 0);
    uint32_t count = tk_near_gather(near, entered);
    if (tk_near_leads(near)) {
        count = lead(count);
    } else {
        tk_near_tell_up(near, count, 0);
        count = tk_near_hear(near, entered);
    }
    tk_near_tell_down(near, count, 0);
    tk_near_pass(near, count);
    return count;
}
