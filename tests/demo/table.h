/* SPDX-License-Identifier: BSD-3-Clause */
/* The words that one rank counts. Owned by the one client thread, whose handlers fill it. */
#ifndef WORDCOUNT_TABLE_H
#define WORDCOUNT_TABLE_H

#include <stddef.h>
#include <stdint.h>

struct entry {
    uint64_t count;
    size_t length;
    char *word;
};

/* The same on every rank: it decides who counts a word. */
uint64_t word_hash(const char *word, size_t length);

/* The order of the C locale. */
int word_compare(const char *a, size_t a_length, const char *b, size_t b_length);

/* Non-zero when there is no memory for it. */
int table_add(const char *word, size_t length);

size_t table_size(void);

/* Once, after the last table_add(): all entries in order. */
const struct entry *table_sorted(void);

#endif
