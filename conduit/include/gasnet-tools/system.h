/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Facts about the host and the process. Owns the texts that it returns. */
#ifndef GASNET_TOOLS_SYSTEM_H
#define GASNET_TOOLS_SYSTEM_H

#define GASNETT_PAGESIZE GASNET_PAGESIZE
#if GASNETT_PAGESIZE == 4096
#    define GASNETT_PAGESHIFT 12
#elif GASNETT_PAGESIZE == 8192
#    define GASNETT_PAGESHIFT 13
#elif GASNETT_PAGESIZE == 16384
#    define GASNETT_PAGESHIFT 14
#elif GASNETT_PAGESIZE == 65536
#    define GASNETT_PAGESHIFT 16
#else
#    error "a size of pages that is not known here"
#endif

#define GASNETT_CACHE_LINE_BYTES 64 /* x86-64 and most arm64 */

/* The size of a client's tables of threads; GASNET_MAX_THREADS may set another limit. */
#if !defined(TRUNKLINE_ANY_MODE)
#    if defined(GASNETT_THREAD_SINGLE)
#        define GASNETT_MAX_THREADS 1
#    else
#        define GASNETT_MAX_THREADS 256
#    endif
#endif

GASNETT_BEGIN_EXTERNC

/* All of these texts belong to the library and stay valid. */
const char *gasnett_gethostname(void);
const char *gasnett_exe_name(void);

/* Online CPUs; 0 if unknown. */
int gasnett_cpu_count(void);

/* Bytes; if unknown 0, or a fatal error. */
uint64_t gasnett_getPhysMemSz(int failureIsFatal);

int gasnett_isLittleEndian(void);

/* Binds the caller to one of the CPUs that it may use, `rank` modulo their number; 0 on success.
 * For old clients: launchers bind better. */
#define GASNETT_SET_AFFINITY_SUPPORT 1
int gasnett_set_affinity(int rank);

/* Raise soft limits to the hard ones; non-zero on success. `lim_desc` is the name, as
 * "RLIMIT_STACK"; GASNET_MAXIMIZE_RLIMIT_STACK=0 excludes it. The first form: all limits that
 * clients commonly reach. */
int gasnett_maximize_rlimits(void);
int gasnett_maximize_rlimit(int res, const char *lim_desc);

void gasnett_flush_streams(void);
void gasnett_close_streams(void); /* standard input, output and error */
void gasnett_sched_yield(void);

GASNETT_END_EXTERNC

#endif
