/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rings of slots, the switch's lock, and posting to the switch. Our own ring is at the same offset
 * of our memory as in the others', so that a slot is sent from where it would be received. With the
 * group's lock held. */
#include "config.h"

#include <stddef.h>
#include <string.h>

#include "common/clock.h"
#include "base/report.h"
#include "collective/mcast_private.h"

enum {
    return_at = tk_mcast_slots / 2, /* slots of a root that are not returned yet */
};
/* A root that waits longer for the lock asks the others for it. */
static const uint64_t patience = 2000000; /* ns */

static const char no_request[] = "the device takes no request for it";
static bool keeps_lock = true;

void tk_mcast_keep_lock(bool keep)
{
    keeps_lock = keep;
}

/* ---- what is posted */

static uint64_t offset_of(const struct tk_mcast_group *group, const void *at)
{
    return (uint64_t)((const char *)at - (const char *)group->memory);
}

static struct tk_mcast_write acquire(const struct tk_mcast_group *group, uint8_t *at,
                                     const struct tk_bitset *receivers)
{
    size_t nbytes = tk_mcast_control_acquire(at, &group->client.place, receivers);
    return (struct tk_mcast_write){.from = at, .to = tk_mcast_control, .nbytes = nbytes};
}

static struct tk_mcast_write release(const struct tk_mcast_group *group, uint8_t *at)
{
    size_t nbytes = tk_mcast_control_release(at, &group->client.place);
    return (struct tk_mcast_write){.from = at, .to = tk_mcast_control, .nbytes = nbytes};
}

/* Keeps the lock if the same broadcast is likely to follow soon, unless another member wants the
 * lock. */
static bool is_to_keep(const struct tk_mcast_group *group, const struct tk_bitset *receivers,
                       uint64_t now)
{
    return keeps_lock && !group->is_wanted && tk_bitset_equal(&group->last_receivers, receivers) &&
           now - group->last < group->lease / 4;
}

/* If we have held the lock for long without using it, another member may hold it by now. */
static bool is_linked(const struct tk_mcast_group *group, const struct tk_bitset *receivers,
                      uint64_t now)
{
    return group->holds && tk_bitset_equal(&group->last_receivers, receivers) &&
           now - group->last < group->lease / 2;
}

static void remember(struct tk_mcast_group *group, const struct tk_bitset *receivers, uint64_t now,
                     bool keep)
{
    group->last = now;
    group->last_receivers = *receivers;
    group->holds = keep;
    if (!keep)
        group->is_wanted = false;
}

/* Key and stamp are one write that ends with the stamp: devices write in ascending order. */
static unsigned put_large(const struct tk_mcast_group *group, const struct tk_mcast_packet *packet,
                          const struct tk_mcast_slot *slot, struct tk_mcast_write *list)
{
    list[0] = (struct tk_mcast_write){
        .from = packet->payload, .to = packet->offset, .nbytes = packet->nbytes, .to_window = true};
    list[1] = (struct tk_mcast_write){.from = slot,
                                      .to = offset_of(group, slot),
                                      .nbytes = offsetof(struct tk_mcast_slot, unused)};
    return 2;
}

static unsigned put_small(const struct tk_mcast_group *group, const struct tk_mcast_packet *packet,
                          const struct tk_mcast_slot *slot, struct tk_mcast_write *list)
{
    list[0] = (struct tk_mcast_write){.from = &slot->small,
                                      .to = offset_of(group, &slot->small),
                                      .nbytes = sizeof(slot->small) + packet->nbytes};
    list[1] = (struct tk_mcast_write){.from = (const void *)&slot->stamp,
                                      .to = offset_of(group, (const void *)&slot->stamp),
                                      .nbytes = sizeof(slot->stamp)};
    return 2;
}

static bool post_slot(struct tk_mcast_group *group, unsigned i,
                      const struct tk_mcast_packet *packet)
{
    struct tk_mcast_memory *memory = group->memory;
    struct tk_mcast_slot *slot = &memory->rings[group->me][i];
    struct tk_mcast_write list[tk_mcast_list_max];
    const struct tk_bitset *receivers = &group->uses[i].receivers;
    uint64_t now = tk_now();
    bool linked = is_linked(group, receivers, now), keep = is_to_keep(group, receivers, now);
    unsigned count = 0;
    if (!linked)
        list[count++] = acquire(group, memory->control[i], receivers);
    count += packet->is_large ? put_large(group, packet, slot, list + count)
                              : put_small(group, packet, slot, list + count);
    if (!keep)
        list[count++] = release(group, memory->release[i]);
    group->uses[i].since = linked ? 0 : now;
    remember(group, receivers, now, keep);
    return group->link->device->post(group->link, list, count, i);
}

bool tk_mcast_post_test(struct tk_mcast_group *group)
{
    struct tk_mcast_memory *memory = group->memory;
    struct tk_bitset others = group->all;
    tk_bitset_remove(&others, group->me);
    memory->test_from = group->era;
    const struct tk_mcast_write list[] = {acquire(group, memory->test_control, &others),
                                          {.from = &memory->test_from,
                                           .to = offset_of(group, (const void *)&memory->test),
                                           .nbytes = sizeof(memory->test)},
                                          release(group, memory->last_release)};
    return group->link->device->post(group->link, list, 3, tk_mcast_id_test);
}

/* ---- our ring */

/* Members that still have the slot are asked for it, once. */
static bool is_free(struct tk_mcast_group *group, unsigned i)
{
    struct tk_mcast_use *use = &group->uses[i];
    if (use->state != TK_MCAST_FREE)
        return false;
    struct tk_bitset to_ask = tk_bitset_minus(&use->owed, &use->asked_for);
    TK_BITSET_EACH (m, &to_ask)
        tk_mcast_notify(group, m, TK_MCAST_ASK, 1u << i, 0, 0);
    use->asked_for = use->owed;
    return tk_bitset_is_empty(&use->owed);
}

int tk_mcast_post(struct tk_mcast_group *group, const struct tk_mcast_packet *packet)
{
    unsigned i = group->next;
    struct tk_mcast_use *use = &group->uses[i];
    if (!is_free(group, i))
        return -1;
    struct tk_mcast_slot *slot = &group->memory->rings[group->me][i];
    if (++group->numbers == 0)
        group->numbers = 1;
    slot->large = slot->small =
        (struct tk_mcast_key){packet->team, packet->sequence, packet->phase};
    if (!packet->is_large)
        memcpy(slot->payload, packet->payload, packet->nbytes);
    atomic_store_explicit(&slot->stamp, (uint64_t)packet->nbytes << 32 | group->numbers,
                          memory_order_relaxed);
    *use = (struct tk_mcast_use){.state = TK_MCAST_FLYING,
                                 .receivers = packet->receivers,
                                 .owed = packet->receivers,
                                 .number = group->numbers};
    group->next = (i + 1) % tk_mcast_slots;
    group->flying++;
    if (!post_slot(group, i, packet))
        group->trouble = no_request;
    return (int)i;
}

/* A payload that a member lacked was sent on another path, so its slot need not be returned. */
void tk_mcast_use_end(struct tk_mcast_group *group, unsigned i)
{
    struct tk_mcast_use *use = &group->uses[i];
    use->owed = tk_bitset_minus(&use->owed, &use->lacking);
    use->state = TK_MCAST_FREE;
}

void tk_mcast_use_arrived(struct tk_mcast_group *group, unsigned i)
{
    struct tk_mcast_use *use = &group->uses[i];
    if (use->state != TK_MCAST_FLYING)
        return;
    use->state = TK_MCAST_ARRIVED;
    group->flying--;
}

/* ---- the lock of the switch */

void tk_mcast_release(struct tk_mcast_group *group)
{
    const struct tk_mcast_write last = release(group, group->memory->last_release);
    group->holds = false;
    group->releases++;
    if (!group->link->device->post(group->link, &last, 1, tk_mcast_id_release))
        group->trouble = no_request;
}

/* A root that waits long for the lock may wait for a holder that keeps it for its next broadcast.
 */
void tk_mcast_lock_care(struct tk_mcast_group *group)
{
    if (!group->is_good || (!group->holds && !group->flying))
        return;
    uint64_t now = tk_now();
    if (group->holds && (group->is_wanted || now - group->last > group->lease / 4))
        tk_mcast_release(group);
    for (unsigned i = 0; i < tk_mcast_slots && group->flying; i++) {
        struct tk_mcast_use *use = &group->uses[i];
        if (use->state != TK_MCAST_FLYING || !use->since || now - use->since < patience)
            continue;
        use->since = 0;
        tk_mcast_notify_all(group, TK_MCAST_WANT, 0, 0);
    }
}

/* ---- the others' rings */

const void *tk_mcast_find(struct tk_mcast_group *group, uint32_t root,
                          const struct tk_mcast_packet *packet, unsigned *which)
{
    for (unsigned i = 0; i < tk_mcast_slots; i++) {
        struct tk_mcast_slot *slot = &group->memory->rings[root][i];
        uint64_t stamp = atomic_load_explicit(&slot->stamp, memory_order_acquire);
        const struct tk_mcast_key *key = stamp >> 32 > tk_mcast_eager ? &slot->large : &slot->small;
        if ((uint32_t)stamp == group->seen[root][i] || key->team != packet->team ||
            key->sequence != packet->sequence || key->phase != packet->phase)
            continue;
        if (stamp >> 32 != packet->nbytes)
            tk_panic("rank %u broadcasts %u bytes, and this rank expects %zu: do all members call "
                     "the same collectives in the same order with the same sizes?",
                     tk_mcast_ranks[root], (unsigned)(stamp >> 32), packet->nbytes);
        *which = i;
        return slot->payload;
    }
    return NULL;
}

void tk_mcast_return(struct tk_mcast_group *group, uint32_t root, unsigned i)
{
    group->seen[root][i] =
        (uint32_t)atomic_load_explicit(&group->memory->rings[root][i].stamp, memory_order_relaxed);
    group->due[root] |= (uint8_t)(1u << i);
    if (group->wanted[root] & group->due[root] || __builtin_popcount(group->due[root]) >= return_at)
        tk_bitset_add(&group->owing, root);
}

bool tk_mcast_take_lack(struct tk_mcast_group *group, const struct tk_mcast_packet *packet)
{
    for (unsigned i = 0; i < group->lack_count; i++) {
        const struct tk_mcast_lack *lack = &group->lacks[i];
        if (lack->team != packet->team || lack->sequence != packet->sequence ||
            lack->phase != packet->phase)
            continue;
        group->lacks[i] = group->lacks[--group->lack_count];
        return true;
    }
    return false;
}
