/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Text for a file of statistics or a trace, collected and written in few pieces. Async-signal-safe:
 * no stdio, no allocation. One at a time. */
#ifndef TK_STATS_TEXT_H
#define TK_STATS_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The second: space after the text, for an owner that writes the file itself. */
enum { tk_text_max = 64 << 10, tk_text_behind = 8 };

struct tk_text {
    int fd;    /* 0: nothing is written, and text that no longer fits is cut */
    int error; /* errno of the first write that failed; later writes are skipped */
    size_t length;
    char bytes[tk_text_max + tk_text_behind];
};

void tk_text_bytes(struct tk_text *text, const char *bytes, size_t length);
void tk_text_add(struct tk_text *text, const char *more);
void tk_text_char(struct tk_text *text, char c);
void tk_text_number(struct tk_text *text, uint64_t number);

/* Right-aligned in so many columns. */
void tk_text_number_in(struct tk_text *text, uint64_t number, unsigned columns);

/* Left-aligned. */
void tk_text_add_in(struct tk_text *text, const char *more, unsigned columns);

/* In units of 10^digits, with that many digits after the point. */
void tk_text_fraction(struct tk_text *text, uint64_t number, unsigned digits);

/* Without characters that would end the line. */
void tk_text_line(struct tk_text *text, const char *more);

/* As a string of JSON has it; and between quotes. */
void tk_text_escaped(struct tk_text *text, const char *more);
void tk_text_quoted(struct tk_text *text, const char *more);

/* Writes the collected text. */
void tk_text_flush(struct tk_text *text);

#endif
