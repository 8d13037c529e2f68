/* SPDX-License-Identifier: BSD-3-Clause */
/* The text: several files read as if they were one, cut between the ranks at line ends. Owned by
 * the one client thread. */
#ifndef WORDCOUNT_INPUT_H
#define WORDCOUNT_INPUT_H

#include <stddef.h>
#include <stdint.h>

struct input;

/* What is done with each word; it is lower-case and not terminated. */
typedef void word_fn(const char *word, size_t length);

/* What one rank has read. */
struct tally {
    uint64_t bytes, lines, words;
};

/* The files with these names, which must be regular and readable. NULL and a sentence in `why`
 * otherwise. */
struct input *input_open(char **names, int count, char *why, size_t why_size);

uint64_t input_bytes(const struct input *input);

/* Calls `each` for every word in the lines of part `part` of `parts`: every line belongs to exactly
 * one part. Non-zero and a sentence in `why` when a file cannot be read any more. */
int input_words(struct input *input, unsigned part, unsigned parts, word_fn *each,
                struct tally *tally, char *why, size_t why_size);

void input_close(struct input *input);

#endif
