/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See table.h: a list, and open addressing into it. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "contrib/trace/table.h"

enum { slots_at_first = 64 };

static uint64_t mix(uint64_t hash, uint64_t more)
{
    hash = (hash ^ more) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ hash >> 29;
}

static uint64_t hash_of(uint64_t first, uint64_t second, const char *name, size_t length)
{
    uint64_t hash = mix(mix(length, first), second);
    for (size_t i = 0; i < length; i++)
        hash = mix(hash, (unsigned char)name[i]);
    return hash;
}

static void put_slot(struct trace_table *table, uint64_t hash, uint32_t value)
{
    size_t slot = hash & (table->slot_count - 1);
    while (table->slots[slot])
        slot = (slot + 1) & (table->slot_count - 1);
    table->slots[slot] = value;
}

/* Half of the slots stay free. */
static int grow(struct trace_table *table)
{
    size_t count = table->slot_count ? 2 * table->slot_count : slots_at_first;
    if (count > UINT32_MAX)
        return 0;
    struct trace_entry *entries = realloc(table->entries, count / 2 * sizeof(*entries));
    if (!entries)
        return 0;
    table->entries = entries;
    uint32_t *slots = calloc(count, sizeof(*slots));
    if (!slots)
        return 0;
    free(table->slots);
    table->slots = slots;
    table->slot_count = count;
    table->room = count / 2;
    for (size_t i = 0; i < table->count; i++) {
        const struct trace_entry *e = &entries[i];
        put_slot(table, hash_of(e->first, e->second, e->name, strlen(e->name)), (uint32_t)i + 1);
    }
    return 1;
}

static struct trace_entry *find(const struct trace_table *table, uint64_t hash, uint64_t first,
                                uint64_t second, const char *name, size_t length)
{
    if (table->slot_count == 0)
        return NULL;
    for (size_t slot = hash & (table->slot_count - 1); table->slots[slot];
         slot = (slot + 1) & (table->slot_count - 1)) {
        struct trace_entry *e = &table->entries[table->slots[slot] - 1];
        if (e->first == first && e->second == second && strncmp(e->name, name, length) == 0 &&
            e->name[length] == '\0')
            return e;
    }
    return NULL;
}

/* A name ends at its first zero byte: the result of strndup would not match the lookup key. */
struct trace_entry *trace_table_entry(struct trace_table *table, uint64_t first, uint64_t second,
                                      const char *name, size_t length)
{
    length = length ? strnlen(name, length) : 0;
    name = length ? name : "";
    uint64_t hash = hash_of(first, second, name, length);
    struct trace_entry *entry = find(table, hash, first, second, name, length);
    if (entry)
        return entry;
    if (table->count == table->room && !grow(table))
        return NULL;
    entry = &table->entries[table->count];
    *entry = (struct trace_entry){.first = first, .second = second, .name = strndup(name, length)};
    if (!entry->name)
        return NULL;
    put_slot(table, hash, (uint32_t)++table->count);
    return entry;
}

void trace_table_free(struct trace_table *table)
{
    for (size_t i = 0; i < table->count; i++) {
        free(table->entries[i].name);
        free(table->entries[i].more);
    }
    free(table->entries);
    free(table->slots);
    *table = (struct trace_table){0};
}
