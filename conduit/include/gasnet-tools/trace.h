/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tracing and statistics, which this library does not have: arguments are compiled and checked, but
 * neither evaluated nor printed. Owns nothing. */
#ifndef GASNET_TOOLS_TRACE_H
#define GASNET_TOOLS_TRACE_H

GASNETT_BEGIN_EXTERNC

/* Prints nothing. Statically linked clients refer to it to pull in the tools. */
void _gasnett_trace_printf_noop(const char *format, ...)
    __attribute__((__format__(__printf__, 1, 2)));

GASNETT_END_EXTERNC

#define TRUNKLINE_TRACE_NOTHING(...) ((void)(0 && (_gasnett_trace_printf_noop(__VA_ARGS__), 0)))
#define TRUNKLINE_TRACE_STRING(text) ((void)sizeof(*(const char *)(text)))

#define GASNETT_TRACE_ENABLED                0
#define GASNETT_TRACE_PRINTF(...)            TRUNKLINE_TRACE_NOTHING(__VA_ARGS__)
#define GASNETT_TRACE_PRINTF_FORCE(...)      TRUNKLINE_TRACE_NOTHING(__VA_ARGS__)
#define GASNETT_TRACE_GETMASK()              ""
#define GASNETT_TRACE_SETMASK(newmask)       TRUNKLINE_TRACE_STRING(newmask)
#define GASNETT_TRACE_GET_TRACELOCAL()       0
#define GASNETT_TRACE_SET_TRACELOCAL(newval) ((void)sizeof(newval))
#define GASNETT_TRACE_SETSOURCELINE(file, line)                                                    \
    ((void)sizeof((file) == (const char *)0), (void)sizeof(line))
#define GASNETT_TRACE_GETSOURCELINE(pfile, pline)                                                  \
    ((void)(*(pfile) = (const char *)0), (void)(*(pline) = 0))
#define GASNETT_TRACE_FREEZESOURCELINE()   ((void)0)
#define GASNETT_TRACE_UNFREEZESOURCELINE() ((void)0)

#define GASNETT_STATS_PRINTF(...)       TRUNKLINE_TRACE_NOTHING(__VA_ARGS__)
#define GASNETT_STATS_PRINTF_FORCE(...) TRUNKLINE_TRACE_NOTHING(__VA_ARGS__)
#define GASNETT_STATS_GETMASK()         ""
#define GASNETT_STATS_SETMASK(newmask)  TRUNKLINE_TRACE_STRING(newmask)
#define GASNETT_STATS_DUMP(reset)       ((void)sizeof(reset))
#define GASNETT_STATS_INIT(fn)          ((void)(fn), 0)

#endif
