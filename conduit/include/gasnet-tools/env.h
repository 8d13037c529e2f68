/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The environment (of the job if there is one, otherwise of the process), and numbers as text. The
 * library owns the list of displayed settings, under a lock of its own. */
#ifndef GASNET_TOOLS_ENV_H
#define GASNET_TOOLS_ENV_H

GASNETT_BEGIN_EXTERNC

/* NULL when unset. */
char *gasnett_getenv(const char *keyname);

/* In this process only, and not while another thread may read the environment. */
void gasnett_setenv(const char *key, const char *value);
void gasnett_unsetenv(const char *key);

/* These display the value if GASNET_VERBOSEENV is set. An invalid value ends the program with an
 * error message; except in the first form an empty one counts as unset. yesno: y, yes, 1, n, no, 0.
 * int: a whole number, also 0x...; with a `mem_size_multiplier`, which is the unit of a bare
 * number, also a fraction and a unit B, KB, MB, GB, TB. dbl: a number or a/b. */
char *gasnett_getenv_withdefault(const char *keyname, const char *defaultval);
int gasnett_getenv_yesno_withdefault(const char *keyname, int defaultval);
int64_t gasnett_getenv_int_withdefault(const char *keyname, int64_t defaultval,
                                       uint64_t mem_size_multiplier);
double gasnett_getenv_dbl_withdefault(const char *keyname, double defaultval);

/* Whether this process displays settings: GASNET_VERBOSEENV is set, and it is rank 0. */
int gasnett_verboseenv(void);

/* Display a setting in that case, each name once. */
void gasnett_envint_display(const char *key, int64_t val, int is_dflt, int is_mem_size);
void gasnett_envstr_display(const char *key, const char *val, int is_dflt);
void gasnett_envdbl_display(const char *key, double val, int is_dflt);

/* Writes at most `bufsz` bytes and returns `buf`. Decimal, and hexadecimal from 2^50 on; a memory
 * size is written in the largest unit that divides it or leaves at least ten, rounded down. */
char *gasnett_format_number(int64_t val, char *buf, size_t bufsz, int is_mem_size);

/* The number at the start of the text, 0 if there is none: sign, decimal, hexadecimal or a
 * fraction, then B, K, M, G or T (KB, KiB, ...). `mem_size_multiplier` is the unit of a bare
 * number; 0: 1. */
int64_t gasnett_parse_int(const char *str, uint64_t mem_size_multiplier);

GASNETT_END_EXTERNC

#endif
