/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Channels: which of ours are in use, and which ones the other members of a team have chosen. Owns
 * the list of our channels, protected by a lock of its own, which is not held across calls.
 *
 * A channel is never cleared. A member that leaves the last barrier of a team may give its channel
 * to another team while a slower member still reads there whether the barrier was reached; words of
 * the new team continue those of the old one, so it sees a larger value than it waits for. */
#include "config.h"

#include <stdlib.h>

#include "base/lock.h"
#include "base/report.h"
#include "base/wait_record.h"
#include "collective/local_private.h"
#include "peer/peer.h"
#include "settings/settings.h"

enum { channels_max = 1024 };

static struct {
    tk_lock_t lock;
    bool used[channels_max];
    uint64_t bases[channels_max]; /* where the next team's words begin; a multiple of the slots */
} own = {.lock = TK_LOCK_INIT};

static uint32_t channel_count(void)
{
    return tk_topology.nbrhd_size > 1 ? (uint32_t)tk_settings.coll_channels : 0;
}

static struct tk_local_channel *channel_at(uint32_t nbrhd_index, uint32_t channel)
{
    char *scratch = tk_neighbour_scratch(nbrhd_index);
    return scratch ? (void *)(scratch + (size_t)channel * tk_scratch_channel) : NULL;
}

struct tk_local_channel *tk_local_map(struct tk_local_member *member)
{
    return member->at = channel_at(member->nbrhd_index, member->channel);
}

/* The first channel belongs to the team of all processes. */
static uint32_t channel_take(void)
{
    uint32_t count = channel_count(), taken = 1;
    tk_lock(&own.lock);
    while (taken < count && own.used[taken])
        taken++;
    if (taken < count)
        own.used[taken] = true;
    tk_unlock(&own.lock);
    return taken;
}

static void channel_give_back(uint32_t channel, uint64_t base)
{
    tk_lock(&own.lock);
    own.bases[channel] = base;
    own.used[channel] = false;
    tk_unlock(&own.lock);
}

void tk_local_offer(struct tk_local_blob *blob)
{
    uint32_t channel = channel_take();
    *blob = (struct tk_local_blob){0};
    if (channel >= channel_count())
        return;
    struct tk_local_channel *at = channel_at(tk_topology.nbrhd_rank, channel);
    uint64_t base = own.bases[channel];
    *blob = (struct tk_local_blob){.channel = channel + 1, .base = base};
    atomic_store_explicit(&at->retired, base << 32, memory_order_release);
}

void tk_local_withdraw(const struct tk_local_blob *blob)
{
    if (blob->channel != 0)
        channel_give_back((uint32_t)blob->channel - 1, blob->base);
}

/* ---- teams */

static uint32_t index_of(uint32_t rank)
{
    uint32_t i = 0;
    while (tk_topology.nbrhd_ranks[i] != rank)
        i++;
    return i;
}

static bool have_channels(const struct tk_local_blob *const *blobs, uint32_t count)
{
    if (!blobs)
        return channel_count() > 0;
    for (uint32_t i = 0; i < count; i++)
        if (blobs[i]->channel == 0)
            return false;
    return true;
}

static void fill_members(struct tk_local *local, const uint32_t *jobranks,
                         const struct tk_local_blob *const *blobs)
{
    static const struct tk_local_blob first = {.channel = 1};
    local->members = calloc(1, tk_local_members_bytes(local->count));
    if (!local->members)
        tk_panic("out of memory for %u members of a team", local->count);
    for (uint32_t i = 0; i < local->count; i++) {
        const struct tk_local_blob *blob = blobs ? blobs[i] : &first;
        local->members[i] = (struct tk_local_member){.base = blob->base,
                                                     .rank = jobranks[i],
                                                     .nbrhd_index = index_of(jobranks[i]),
                                                     .channel = (uint32_t)blob->channel - 1};
    }
    tk_local_map(&local->members[local->me]);
}

void tk_local_open(struct tk_local *local, const uint32_t *jobranks, uint32_t count, uint32_t me,
                   const struct tk_local_blob *const *blobs)
{
    *local = (struct tk_local){.count = count, .me = me, .safe = tk_local_slots};
    if (count > 1 && have_channels(blobs, count))
        fill_members(local, jobranks, blobs);
    else if (blobs)
        tk_local_withdraw(blobs[me]);
    local->usable = count == 1 || local->members;
}

/* A member that is still in a barrier that we have left finds our words higher, never lower. */
void tk_local_close(struct tk_local *local)
{
    if (!local->members)
        return;
    const struct tk_local_member *own_member = &local->members[local->me];
    uint64_t end = tk_align_up(own_member->base + local->next, tk_local_slots);
    channel_give_back(own_member->channel, end);
    free(local->members);
    *local = (struct tk_local){0};
}

void tk_local_missing(const struct tk_local_op *op, struct tk_wait_rows *rows, uint32_t sequence,
                      uint64_t team)
{
    const char *word = (const char *)op->awaited;
    for (uint32_t i = 0; word && i < op->local->count; i++) {
        const struct tk_local_member *member = &op->local->members[i];
        const char *base = (const char *)member->at;
        if (base && word >= base && word < base + tk_scratch_channel)
            tk_wait_row_add(rows, TK_REASON_COLLECTIVE, member->rank, sequence, team);
    }
}
