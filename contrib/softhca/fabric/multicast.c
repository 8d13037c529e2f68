/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which processes have queue pairs in multicast groups. Each process lists its own attachments in
 * its segment; a sender walks the lists of all processes that have any. The set of those processes
 * is cached and looked up anew after each attach: the attaching process increments a word in the
 * segment of every member, and a process that joins later begins with a lookup. Owns the cache;
 * cache_lock protects it. */
#include "config.h"

#include "fabric/fabric.h"

static struct shca_lock cache_lock;
static uint16_t cached[SHCA_MEMBERS];
static uint32_t n_cached, cached_epoch;
static bool cache_filled;

bool shca_multicast_same(struct shca_mcast_sh *e, const union ibv_gid *gid, uint32_t mlid)
{
    return atomic_load_explicit(&e->mgid[0], memory_order_relaxed) == gid->global.subnet_prefix &&
           atomic_load_explicit(&e->mgid[1], memory_order_relaxed) == gid->global.interface_id &&
           atomic_load_explicit(&e->mlid, memory_order_relaxed) == mlid;
}

static bool has_members(uint32_t slot)
{
    struct shca_peer *p = shca_peer_get(slot);
    bool any = p && atomic_load(&p->seg->mcast_high) > 0;

    if (p)
        shca_peer_put(p);
    return any;
}

/* The processes that had attachments at the time of the most recent attach. */
uint32_t shca_multicast_listeners(uint16_t *slots)
{
    uint32_t epoch = atomic_load(&shca.seg->mcast_epoch), n;

    shca_lock(&cache_lock);
    if (!cache_filled || cached_epoch != epoch) {
        uint32_t all = shca_registry_slots(slots);

        n_cached = 0;
        for (uint32_t i = 0; i < all; i++)
            if (has_members(slots[i]))
                cached[n_cached++] = slots[i];
        cache_filled = true;
        cached_epoch = epoch;
    }
    n = n_cached;
    memcpy(slots, cached, n * sizeof slots[0]);
    shca_unlock(&cache_lock);
    return n;
}

void shca_multicast_inherited(void)
{
    /* Another thread of the parent may have held the lock, and the child starts with different
     * epochs. */
    atomic_store(&cache_lock.word, 0);
    cache_filled = false;
}

void shca_multicast_drop(uint16_t slot)
{
    shca_lock(&cache_lock);
    for (uint32_t i = 0; i < n_cached; i++)
        if (cached[i] == slot)
            cached[i--] = cached[--n_cached];
    shca_unlock(&cache_lock);
}
