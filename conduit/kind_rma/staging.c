/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Staging buffers: host memory between devices and transports. Owns the memory, made with the first
 * kind and kept until the end, and the slots of our own. Guarded by the lock of the room, which is
 * here too. */
#include "config.h"

#include <stdlib.h>

#include "base/bits.h"
#include "base/report.h"
#include "kind_rma/kind_rma_private.h"
#include "settings/settings.h"
#include "transport/transport.h"

tk_lock_t tk_kind_lock = TK_LOCK_INIT;
struct tk_kind_staging tk_kind_staging;

enum { slots_least = 2 /* in each pool: the stages of two pieces overlap */ };

struct tk_kind_slot *tk_kind_slot_take(void)
{
    struct tk_kind_slot *slot = tk_kind_staging.own;
    if (slot)
        tk_kind_staging.own = slot->next;
    return slot;
}

void tk_kind_slot_give(struct tk_kind_slot *slot)
{
    slot->next = tk_kind_staging.own;
    tk_kind_staging.own = slot;
}

/* Uses only settings that all ranks share, so that a slot number means the same offset on every
 * rank. */
static uint32_t cut(struct tk_kind_staging *s)
{
    size_t half = tk_settings.mk_staging / 2;
    s->slot_size = tk_min(tk_settings.mk_piece, half / slots_least);
    s->slot_size -= s->slot_size % 4096;
    return (uint32_t)(half / s->slot_size);
}

size_t tk_kind_slot_size(void)
{
    struct tk_kind_staging plan;
    cut(&plan);
    return plan.slot_size;
}

static void open_slots(struct tk_kind_staging *s, uint32_t count)
{
    for (uint32_t i = count; i-- > 0;) {
        s->slots[i].data = tk_kind_granted_data(s->granted_count + i);
        tk_kind_slot_give(&s->slots[i]);
    }
}

static enum tk_status open_memory(struct tk_kind_staging *s)
{
    uint32_t count = cut(s);
    s->granted_count = count;
    s->slots = calloc(count, sizeof(*s->slots));
    if (!s->slots) {
        tk_log_error("out of memory for %u staging buffers; lower GASNET_MK_STAGING", count);
        return TK_FAIL;
    }
    if (tk_area_open(&s->area, "staging buffers of memory kinds", 2 * count * s->slot_size,
                     tk_transports_pin()) != TK_OK)
        goto free_slots;
    s->region = (struct tk_region){.base = s->area.base, .size = s->area.size};
    if (tk_transports_register(&s->region) != TK_OK)
        goto close_area;
    open_slots(s, count);
    return TK_OK;
close_area:
    tk_area_close(&s->area);
free_slots:
    free(s->slots);
    s->slots = NULL;
    return TK_FAIL;
}

enum tk_status tk_kind_staging_open(void)
{
    enum tk_status status = TK_OK;
    if (!tk_kind_staging.is_open)
        status = open_memory(&tk_kind_staging);
    tk_kind_staging.is_open = status == TK_OK;
    return status;
}

bool tk_kind_staging_bound(struct tk_bound *bound)
{
    const struct tk_kind_staging *s = &tk_kind_staging;
    if (s->is_open)
        *bound = (struct tk_bound){.base = (uintptr_t)s->area.base,
                                   .size = s->area.size,
                                   .keys = s->region.remote_keys,
                                   .inode = s->area.inode,
                                   .endpoint = tk_endpoint_staging,
                                   .fd = s->area.fd};
    return s->is_open;
}

uintptr_t tk_kind_granted_address(const struct tk_bound *theirs, uint32_t number)
{
    struct tk_kind_staging plan;
    uint32_t count = cut(&plan);
    if (number >= count || theirs->size < (size_t)2 * count * plan.slot_size)
        return 0;
    return theirs->base + number * plan.slot_size;
}
