/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Text for a file, collected and written in few pieces. Async-signal-safe: no stdio, no allocation.
 * One at a time. */
#ifndef TK_STATS_TEXT_H
#define TK_STATS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { tk_text_max = 32 << 10 };

struct tk_text {
    int fd;
    int error; /* errno of the first write that failed; later ones are left out */
    size_t length;
    char bytes[tk_text_max];
};

void tk_text_add(struct tk_text *text, const char *more);
void tk_text_char(struct tk_text *text, char c);
void tk_text_number(struct tk_text *text, uint64_t number);

/* Right-aligned in so many columns. */
void tk_text_number_in(struct tk_text *text, uint64_t number, unsigned columns);

/* Left-aligned. */
void tk_text_add_in(struct tk_text *text, const char *more, unsigned columns);

/* Nanoseconds as seconds, to the microsecond. */
void tk_text_seconds(struct tk_text *text, uint64_t ns);

/* Between quotes, as JSON has it. */
void tk_text_quoted(struct tk_text *text, const char *more);

/* Writes what there is. */
void tk_text_flush(struct tk_text *text);

#endif
