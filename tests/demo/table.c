/* SPDX-License-Identifier: BSD-3-Clause */
/* See table.h. Open addressing over an array that doubles at three quarters; sorting packs it.
 * Takes no lock. */
#include "config.h"

#include "table.h"

#include <stdlib.h>
#include <string.h>

static struct entry *entries;
static size_t used, room;

/* FNV-1a: short words, and nobody attacks it. */
uint64_t word_hash(const char *word, size_t length)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)word[i]) * 0x100000001b3u;
    return hash ^ (hash >> 32);
}

int word_compare(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);

    return order ? order : (a_length > b_length) - (a_length < b_length);
}

/* The place of a word, or the empty one where it belongs. */
static struct entry *find(struct entry *in, size_t size, const char *word, size_t length)
{
    /* Rank is chosen by the low bits, so the place must not be. */
    size_t at = (size_t)((word_hash(word, length) * 0x9e3779b97f4a7c15u) >> 20) & (size - 1);

    while (in[at].word && word_compare(in[at].word, in[at].length, word, length) != 0)
        at = (at + 1) & (size - 1);
    return &in[at];
}

static int grow(void)
{
    size_t size = room ? 2 * room : 1024;
    struct entry *larger = calloc(size, sizeof *larger);

    if (!larger)
        return -1;
    for (size_t i = 0; i < room; i++)
        if (entries[i].word)
            *find(larger, size, entries[i].word, entries[i].length) = entries[i];
    free(entries);
    entries = larger;
    room = size;
    return 0;
}

int table_add(const char *word, size_t length)
{
    struct entry *entry;

    if (4 * (used + 1) > 3 * room && grow() != 0)
        return -1;
    entry = find(entries, room, word, length);
    if (!entry->word) {
        entry->word = malloc(length ? length : 1);
        if (!entry->word)
            return -1;
        memcpy(entry->word, word, length);
        entry->length = length;
        used++;
    }
    entry->count++;
    return 0;
}

size_t table_size(void)
{
    return used;
}

static int by_word(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    return word_compare(x->word, x->length, y->word, y->length);
}

const struct entry *table_sorted(void)
{
    size_t to = 0;

    for (size_t i = 0; i < room; i++)
        if (entries[i].word)
            entries[to++] = entries[i];
    if (used)
        qsort(entries, used, sizeof *entries, by_word);
    return entries;
}
