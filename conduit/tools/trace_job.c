/* SPDX-License-Identifier: BSD-3-Clause
 *
 * GASNETT_TRACE_... for programs in a job: adds to its traces. No state. */
#include "config.h"

#include <stdarg.h>

#include "gasnetex.h"
#include "gasnet_tools.h"
#include "trace/trace.h"

int trunkline_trace_is_on(void)
{
    return tk_trace_is_open();
}

int trunkline_trace_prints(void)
{
    return tk_trace_has(tk_trace_bit_program);
}

void trunkline_trace_printf(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    tk_trace_vprint(format, args);
    va_end(args);
}

const char *trunkline_trace_mask(void)
{
    return tk_trace_mask_text();
}

void trunkline_trace_set_mask(const char *mask)
{
    tk_trace_mask_set(mask);
}

int trunkline_trace_local(void)
{
    return tk_trace_local();
}

void trunkline_trace_set_local(int local)
{
    tk_trace_local_set(local);
}

void trunkline_trace_set_line(const char *file, unsigned line)
{
    tk_trace_line_set(file, line);
}

void trunkline_trace_get_line(const char **file, unsigned *line)
{
    tk_trace_line_get(file, line);
}

void trunkline_trace_freeze_line(int by)
{
    tk_trace_line_freeze(by);
}
