/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Numbers in texts of users, exact and independent of the locale: for settings, and for tools that
 * do not use the table of settings. No state. */
#ifndef TK_NUMBER_H
#define TK_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/* Parses the number at *at and moves *at behind it; false if there is none or it does not fit.
 * Fractions and units are accepted only for a size. */
bool tk_number_scan(const char **at, bool is_size, uint64_t default_unit, int64_t *value);

/* Parses all of `text` as a number; false if it is not one or is too large. See
 * gasnett_parse_int(). */
bool tk_number_whole(const char *text, uint64_t unit, int64_t *value);

/* Parses all of `text`, decimal digits only, as a number from `low` to `high`; false otherwise, and
 * *value is unchanged. */
bool tk_number_digits(const char *text, uint64_t low, uint64_t high, uint64_t *value);

/* Parses all of `text` as a decimal number or a quotient of two. */
bool tk_number_real(const char *text, double *value);

/* Is `number` in a list such as "0,3-5"? The empty list and "*" contain all numbers. The second: is
 * the text such a list? */
bool tk_number_in_ranges(const char *ranges, int64_t number);
bool tk_number_is_ranges(const char *text);

#endif
