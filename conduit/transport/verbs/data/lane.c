/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See lane.h: the rare cases. Takes the lock of one lane at a time. */
#include "config.h"

#include "base/atomic.h"
#include "base/lock.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/lane_type.h"
#include "transport/verbs/verbs_state.h"

/* In turn: threads that begin together get different connections. A thread that ends gives nothing
 * back. */
unsigned tk_lane_choose_own(void)
{
    static tk_counter_t chosen;
    uint32_t turn = (uint32_t)tk_counter_add(&chosen, 1);
    tk_lane_mine.own_number = (uint8_t)(turn % tk_verbs.conns_pp + 1);
    return tk_lane_mine.own_number;
}

/* Gives each lane adjacent work requests, so that cache lines that are fetched in pairs belong to
 * one lane. */
void tk_lanes_open(void)
{
    int next = tk_verbs.depth_total;
    for (struct tk_lane *lane = tk_lanes_end(); lane-- > tk_verbs.lanes;) {
        int first = (int)((uint64_t)tk_verbs.depth_total * (size_t)(lane - tk_verbs.lanes) /
                          tk_lane_count());
        tk_lock_init(&lane->lock);
        lane->free = NULL;
        tk_counter_set(&lane->out, 0);
        while (next > first) {
            struct tk_pool_item *item = &tk_verbs.txs[--next].item;
            item->next = lane->free;
            lane->free = item;
        }
    }
}

/* Takes a few free work requests of another lane, which move to the lane that needs them. */
static struct tk_pool_item *lane_lend(struct tk_lane *lane)
{
    enum { most = 8 };
    tk_lock(&lane->lock);
    struct tk_pool_item *first = lane->free, *last = first;
    for (int n = 1; last && last->next && n < most; n++)
        last = last->next;
    if (last) {
        lane->free = last->next;
        last->next = NULL;
    }
    tk_unlock(&lane->lock);
    return first;
}

static struct tk_tx *add_and_pop(struct tk_lane *lane, struct tk_pool_item *first)
{
    struct tk_pool_item *last = first;
    while (last->next)
        last = last->next;
    tk_lock(&lane->lock);
    last->next = lane->free;
    lane->free = first;
    struct tk_tx *tx = tk_lane_pop(lane);
    tk_unlock(&lane->lock);
    return tx;
}

struct tk_tx *tk_lane_borrow(struct tk_lane *lane)
{
    for (struct tk_lane *other = tk_verbs.lanes; other < tk_lanes_end(); other++) {
        struct tk_pool_item *first = other == lane ? NULL : lane_lend(other);
        if (first)
            return add_and_pop(lane, first);
    }
    return NULL;
}
