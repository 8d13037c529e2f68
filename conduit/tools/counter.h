/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Properties of the processor's tick counter. No state. */
#ifndef TK_TOOLS_COUNTER_H
#define TK_TOOLS_COUNTER_H

#include <stdbool.h>

/* Whether it runs at a constant rate, the same on all cores. */
bool tk_tools_counter_is_good(void);

/* Its rate as the architecture reports it; 0 if it has to be measured. */
double tk_tools_counter_hz(void);

/* The rate in /proc/cpuinfo for the first processor; 0 if there is none. */
double tk_tools_cpuinfo_hz(void);

#endif
