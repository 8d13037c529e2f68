/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Tracing: in libraries that record traces, a program adds to the traces of its job; in others, and
 * without a job, arguments are compiled and checked, but neither evaluated nor printed. Statistics:
 * in a job that writes them (GASNET_STATSFILE), a program adds to them; otherwise they are as
 * tracing without a job. Owns nothing. */
#ifndef GASNET_TOOLS_TRACE_H
#define GASNET_TOOLS_TRACE_H

GASNETT_BEGIN_EXTERNC

/* Prints nothing. Statically linked clients refer to it to pull in the tools. */
void _gasnett_trace_printf_noop(const char *format, ...)
    __attribute__((__format__(__printf__, 1, 2)));

#if defined(GASNETEX_H)
/* Does this rank write statistics at all, and lines of the program (H of GASNET_STATSMASK)? */
int trunkline_stats_is_on(void);
int trunkline_stats_prints(void);
void trunkline_stats_printf(const char *format, ...) __attribute__((__format__(__printf__, 1, 2)));
const char *trunkline_stats_mask(void);
void trunkline_stats_set_mask(const char *mask);
void trunkline_stats_dump(int reset);
/* Called at the end of the job with a function that prints a line. Returns whether it will be. */
typedef void (*trunkline_stats_end_t)(void (*print)(const char *format, ...));
int trunkline_stats_at_end(trunkline_stats_end_t function);
#endif

GASNETT_END_EXTERNC

#define TRUNKLINE_TRACE_NOTHING(...) ((void)(0 && (_gasnett_trace_printf_noop(__VA_ARGS__), 0)))
#define TRUNKLINE_TRACE_STRING(text) ((void)sizeof(*(const char *)(text)))

#if defined(GASNET_TRACE) && defined(GASNETEX_H)

GASNETT_BEGIN_EXTERNC
/* Does this rank write a trace at all, and lines of the program (H of GASNET_TRACEMASK)? */
int trunkline_trace_is_on(void);
int trunkline_trace_prints(void);
void trunkline_trace_printf(const char *format, ...) __attribute__((__format__(__printf__, 1, 2)));
const char *trunkline_trace_mask(void);
void trunkline_trace_set_mask(const char *mask);
int trunkline_trace_local(void);
void trunkline_trace_set_local(int local);
void trunkline_trace_set_line(const char *file, unsigned line);
void trunkline_trace_get_line(const char **file, unsigned *line);
void trunkline_trace_freeze_line(int by);
GASNETT_END_EXTERNC

#    define GASNETT_TRACE_ENABLED trunkline_trace_is_on()
#    define GASNETT_TRACE_PRINTF(...)                                                              \
        (trunkline_trace_prints() ? trunkline_trace_printf(__VA_ARGS__) : (void)0)
#    define GASNETT_TRACE_PRINTF_FORCE(...)                                                        \
        (trunkline_trace_is_on() ? trunkline_trace_printf(__VA_ARGS__) : (void)0)
#    define GASNETT_TRACE_GETMASK()                   trunkline_trace_mask()
#    define GASNETT_TRACE_SETMASK(newmask)            trunkline_trace_set_mask(newmask)
#    define GASNETT_TRACE_GET_TRACELOCAL()            trunkline_trace_local()
#    define GASNETT_TRACE_SET_TRACELOCAL(newval)      trunkline_trace_set_local(newval)
#    define GASNETT_TRACE_SETSOURCELINE(file, line)   trunkline_trace_set_line(file, (unsigned)(line))
#    define GASNETT_TRACE_GETSOURCELINE(pfile, pline) trunkline_trace_get_line(pfile, pline)
#    define GASNETT_TRACE_FREEZESOURCELINE()          trunkline_trace_freeze_line(1)
#    define GASNETT_TRACE_UNFREEZESOURCELINE()        trunkline_trace_freeze_line(-1)

#else

#    define GASNETT_TRACE_ENABLED                0
#    define GASNETT_TRACE_PRINTF(...)            TRUNKLINE_TRACE_NOTHING(__VA_ARGS__)
#    define GASNETT_TRACE_PRINTF_FORCE(...)      TRUNKLINE_TRACE_NOTHING(__VA_ARGS__)
#    define GASNETT_TRACE_GETMASK()              ""
#    define GASNETT_TRACE_SETMASK(newmask)       TRUNKLINE_TRACE_STRING(newmask)
#    define GASNETT_TRACE_GET_TRACELOCAL()       0
#    define GASNETT_TRACE_SET_TRACELOCAL(newval) ((void)sizeof(newval))
#    define GASNETT_TRACE_SETSOURCELINE(file, line)                                                \
        ((void)sizeof((file) == (const char *)0), (void)sizeof(line))
#    define GASNETT_TRACE_GETSOURCELINE(pfile, pline)                                              \
        ((void)(*(pfile) = (const char *)0), (void)(*(pline) = 0))
#    define GASNETT_TRACE_FREEZESOURCELINE()   ((void)0)
#    define GASNETT_TRACE_UNFREEZESOURCELINE() ((void)0)

#endif

#if defined(GASNETEX_H)

#    define GASNETT_STATS_PRINTF(...)                                                              \
        (trunkline_stats_prints() ? trunkline_stats_printf(__VA_ARGS__) : (void)0)
#    define GASNETT_STATS_PRINTF_FORCE(...)                                                        \
        (trunkline_stats_is_on() ? trunkline_stats_printf(__VA_ARGS__) : (void)0)
#    define GASNETT_STATS_GETMASK()        trunkline_stats_mask()
#    define GASNETT_STATS_SETMASK(newmask) trunkline_stats_set_mask(newmask)
#    define GASNETT_STATS_DUMP(reset)      trunkline_stats_dump(reset)
#    define GASNETT_STATS_INIT(fn)                                                                 \
        trunkline_stats_at_end((trunkline_stats_end_t)(void (*)(void))(fn))

#else

#    define GASNETT_STATS_PRINTF(...)       TRUNKLINE_TRACE_NOTHING(__VA_ARGS__)
#    define GASNETT_STATS_PRINTF_FORCE(...) TRUNKLINE_TRACE_NOTHING(__VA_ARGS__)
#    define GASNETT_STATS_GETMASK()         ""
#    define GASNETT_STATS_SETMASK(newmask)  TRUNKLINE_TRACE_STRING(newmask)
#    define GASNETT_STATS_DUMP(reset)       ((void)sizeof(reset))
#    define GASNETT_STATS_INIT(fn)          ((void)(fn), 0)

#endif

#endif
