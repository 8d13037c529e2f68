/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All counters, as lines of text "name value". Owns nothing. */
#ifndef MCD_STAT_H
#define MCD_STAT_H

#include <stdio.h>

void mcd_stat_print(FILE *to);

#endif
