/* SPDX-License-Identifier: BSD-3-Clause */
/* Words as a shell command has them, without expansions: blanks separate, '...' and "..." and a
 * backslash quote. And the reverse, for a command that a shell on another host reads. Owns nothing,
 * takes no lock. */
#ifndef TRUNKLINE_SPAWNER_WORDS_H
#define TRUNKLINE_SPAWNER_WORDS_H

#include <stdbool.h>
#include <stddef.h>

/* The words of `text`, NULL-terminated, in one piece of memory for free(). NULL if a quote is not
 * closed, or without memory. */
char **words_split(const char *text);

/* Appends `word` to `text`, which holds a string in `size` bytes, so that any POSIX shell reads it
 * as one word, unchanged. False when it does not fit. */
bool words_quote(char *text, size_t size, const char *word);

#endif
