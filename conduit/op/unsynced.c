/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See unsynced.h. A hash table by the address of an operation, which is never used for anything
 * else (op.c and event/nbi.c never return memory), so entries are never removed. */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/report.h"
#include "op/op.h"
#include "op/unsynced.h"

/* Calls in one line of the source that began operations. */
struct place {
    struct tk_call call;
    uint64_t count, number; /* sequence number of the first of them */
};

enum { first_entries = 1024, places_max = 64, places_shown = 4 };

/* Lines in that order; a full list counts the rest in its last entry. */
struct places {
    size_t count;
    struct place at[places_max];
};

struct entry {
    struct tk_op *op;        /* NULL: free */
    struct place taken;      /* the last time, as an event */
    struct places *implicit; /* not yet synced; NULL: not of implicit operations */
};

static pthread_mutex_t unsynced_lock = PTHREAD_MUTEX_INITIALIZER;
static struct entry *entries;
static size_t space, used;
static uint64_t begun;

static struct entry *slot_of(struct entry *table, size_t size, const struct tk_op *op)
{
    size_t i = ((uintptr_t)op >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 16;
    while (table[i & (size - 1)].op && table[i & (size - 1)].op != op)
        i++;
    return &table[i & (size - 1)];
}

static void grow(void)
{
    size_t larger = space ? 2 * space : first_entries;
    struct entry *table = calloc(larger, sizeof(*table));
    if (!table)
        tk_panic("out of memory for the checks of a debug library");
    for (size_t i = 0; i < space; i++)
        if (entries[i].op)
            *slot_of(table, larger, entries[i].op) = entries[i];
    free(entries);
    entries = table;
    space = larger;
}

/* Creates the entry if there is none. */
static struct entry *entry_of(struct tk_op *op)
{
    if (2 * used >= space)
        grow();
    struct entry *entry = slot_of(entries, space, op);
    used += !entry->op;
    entry->op = op;
    return entry;
}

void tk_unsynced_taken(struct tk_op *op)
{
    pthread_mutex_lock(&unsynced_lock);
    entry_of(op)->taken = (struct place){.call = tk_call_last(), .count = 1, .number = begun++};
    pthread_mutex_unlock(&unsynced_lock);
}

static bool is_same_place(const struct tk_call *a, const struct tk_call *b)
{
    if (!a->file || !b->file)
        return a->file == b->file;
    return a->line == b->line && (a->file == b->file || strcmp(a->file, b->file) == 0) &&
           strcmp(a->name, b->name) == 0;
}

static void add_place(struct places *places, const struct place *place)
{
    size_t i = 0;
    while (i < places->count && i < places_max - 1 &&
           !is_same_place(&places->at[i].call, &place->call))
        i++;
    if (i == places->count) {
        places->at[places->count++] = *place;
        return;
    }
    places->at[i].count += place->count;
    places->at[i].number = tk_min(places->at[i].number, place->number);
}

void tk_unsynced_implicit(struct tk_op *op)
{
    pthread_mutex_lock(&unsynced_lock);
    struct entry *entry = entry_of(op);
    if (!entry->implicit && !(entry->implicit = calloc(1, sizeof(*entry->implicit))))
        tk_panic("out of memory for the checks of a debug library");
    add_place(entry->implicit, &(struct place){tk_call_last(), 1, begun++});
    pthread_mutex_unlock(&unsynced_lock);
}

void tk_unsynced_synced(struct tk_op *op)
{
    pthread_mutex_lock(&unsynced_lock);
    struct entry *entry = space ? slot_of(entries, space, op) : NULL;
    if (entry && entry->implicit)
        entry->implicit->count = 0;
    pthread_mutex_unlock(&unsynced_lock);
}

static bool is_open_event(const struct entry *entry)
{
    return entry->op && !entry->implicit && tk_counter_read(&entry->op->pending) != tk_op_free;
}

static int by_number(const void *a, const void *b)
{
    const struct place *one = a, *other = b;
    return one->number < other->number ? -1 : one->number > other->number;
}

/* Collects all open operations of one kind. Returns their number. */
static uint64_t collect(bool implicit, struct places *all)
{
    uint64_t sum = 0;
    all->count = 0;
    for (size_t i = 0; i < space; i++) {
        const struct entry *entry = &entries[i];
        if (!implicit && is_open_event(entry))
            add_place(all, &entry->taken);
        for (size_t p = 0; implicit && entry->implicit && p < entry->implicit->count; p++)
            add_place(all, &entry->implicit->at[p]);
    }
    for (size_t i = 0; i < all->count; i++)
        sum += all->at[i].count;
    qsort(all->at, all->count, sizeof(all->at[0]), by_number);
    return sum;
}

/* ": 2 of gex_RMA_PutNB at a.c:7, 1 of gex_RMA_GetNB at a.c:9 and others" */
static void list(char *text, size_t size, const struct places *places)
{
    size_t length = 0;
    text[0] = '\0';
    for (size_t i = 0; i < places->count && i < places_shown && length < size; i++) {
        const struct place *place = &places->at[i];
        unsigned long long count = place->count;
        const char *between = i ? ", " : ": ", *name = place->call.name, *file = place->call.file;
        int n = file ? snprintf(text + length, size - length, "%s%llu of %s at %s:%u", between,
                                count, name, file, place->call.line)
                     : snprintf(text + length, size - length, "%s%llu of an unknown line", between,
                                count);
        length += (size_t)n;
    }
    if (places->count > places_shown && length < size)
        snprintf(text + length, size - length, " and others");
}

void tk_unsynced_report(void)
{
    static struct places places;
    char text[1024];
    pthread_mutex_lock(&unsynced_lock);
    unsigned long long count = collect(false, &places);
    list(text, sizeof(text), &places);
    if (count)
        tk_log_warn("at the end %llu event%s neither tested nor waited for successfully%s", count,
                    count == 1 ? " was" : "s were", text);
    count = collect(true, &places);
    list(text, sizeof(text), &places);
    if (count)
        tk_log_warn("at the end %llu implicit operation%s not synced by gex_NBI_Wait or "
                    "gex_NBI_Test; begun%s",
                    count, count == 1 ? " was" : "s were", text);
    pthread_mutex_unlock(&unsynced_lock);
}
