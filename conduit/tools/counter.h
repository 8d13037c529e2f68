/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is known about the processor's counter of ticks. No state. */
#ifndef TK_TOOLS_COUNTER_H
#define TK_TOOLS_COUNTER_H

#include <stdbool.h>

/* Does it run at one rate, on all cores alike, for ever? */
bool tk_tools_counter_is_good(void);

/* Its rate as the architecture tells it; 0 when it has to be measured. */
double tk_tools_counter_hz(void);

/* The rate that /proc/cpuinfo prints for the first processor; 0 when it prints none. */
double tk_tools_cpuinfo_hz(void);

#endif
