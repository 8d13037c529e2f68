/* SPDX-License-Identifier: BSD-3-Clause
 *
 * GASNETT_STATS_...: lets programs add to the statistics of a job. No state. */
#include "config.h"

#include <stdarg.h>

#include "gasnetex.h"
#include "gasnet_tools.h"
#include "stats/write.h"

int trunkline_stats_is_on(void)
{
    return tk_stats_is_open();
}

int trunkline_stats_prints(void)
{
    return tk_stats_prints();
}

void trunkline_stats_printf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tk_stats_vprint_line(format, args);
    va_end(args);
}

const char *trunkline_stats_mask(void)
{
    return tk_stats_mask_text();
}

void trunkline_stats_set_mask(const char *mask)
{
    tk_stats_mask_set(mask);
}

void trunkline_stats_dump(int reset)
{
    tk_stats_dump(reset);
}

int trunkline_stats_at_end(trunkline_stats_end_t function)
{
    tk_stats_at_end(function);
    return tk_stats_is_open();
}
