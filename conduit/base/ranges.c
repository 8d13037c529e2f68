/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The list of ranges; see ranges.h. Entries are never freed, so that a signal handler can walk the
 * list at any time; the entry of a removed range is reused. */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/ranges.h"

struct entry {
    struct tk_range range; /* written only while the entry is unused */
    _Atomic bool is_used;
    struct entry *next;
};

static _Atomic(struct entry *) entries;
static tk_lock_t ranges_lock = TK_LOCK_INIT;

static struct entry *first_entry(void)
{
    return atomic_load_explicit(&entries, memory_order_acquire);
}

static bool entry_is_used(const struct entry *entry)
{
    return atomic_load_explicit(&entry->is_used, memory_order_acquire);
}

/* Under the lock. NULL: no memory. */
static struct entry *unused_entry(void)
{
    struct entry *entry = first_entry();
    while (entry && entry_is_used(entry))
        entry = entry->next;
    if (entry || !(entry = calloc(1, sizeof(*entry))))
        return entry;
    entry->next = first_entry();
    atomic_store_explicit(&entries, entry, memory_order_release);
    return entry;
}

void tk_range_add(const struct tk_range *range)
{
    tk_lock(&ranges_lock);
    struct entry *entry = unused_entry();
    if (entry) {
        entry->range = *range;
        atomic_store_explicit(&entry->is_used, true, memory_order_release);
    }
    tk_unlock(&ranges_lock);
}

void tk_range_drop(const void *base)
{
    tk_lock(&ranges_lock);
    for (struct entry *entry = first_entry(); entry; entry = entry->next)
        if (entry_is_used(entry) && entry->range.base == base)
            atomic_store_explicit(&entry->is_used, false, memory_order_release);
    tk_unlock(&ranges_lock);
}

bool tk_range_of(const void *address, struct tk_range *range)
{
    for (const struct entry *entry = first_entry(); entry; entry = entry->next) {
        if (!entry_is_used(entry) ||
            (uintptr_t)address - (uintptr_t)entry->range.base >= entry->range.size)
            continue;
        *range = entry->range;
        return true;
    }
    return false;
}
