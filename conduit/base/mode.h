/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The threading mode that this copy of the library is built for. The only file that looks at
 * GASNET_SEQ, _PARSYNC, _PAR, or, in the stand-alone tools, at GASNETT_THREAD_SAFE, _SINGLE. */
#ifndef TK_MODE_H
#define TK_MODE_H

#include "gasnet_config.h"

#if defined(GASNET_PAR)
#    define TK_THREADED  1 /* any thread, any time */
#    define TK_MODE_NAME "par"
#    define TK_MODE_TEXT "GASNET_PAR"
#elif defined(GASNET_PARSYNC)
#    define TK_THREADED                                                                            \
        0 /* the client serialises its calls, so nothing here runs at the same time */
#    define TK_MODE_NAME "parsync"
#    define TK_MODE_TEXT "GASNET_PARSYNC"
#elif defined(GASNET_SEQ)
#    define TK_THREADED  0
#    define TK_MODE_NAME "seq"
#    define TK_MODE_TEXT "GASNET_SEQ"
#elif defined(GASNETT_THREAD_SAFE)
#    define TK_THREADED  1
#    define TK_MODE_NAME "par"
#    define TK_MODE_TEXT "GASNETT_THREAD_SAFE"
#elif defined(GASNETT_THREAD_SINGLE)
#    define TK_THREADED  0
#    define TK_MODE_NAME "seq"
#    define TK_MODE_TEXT "GASNETT_THREAD_SINGLE"
#else
#    error "build with one of -DGASNET_SEQ, -DGASNET_PARSYNC, -DGASNET_PAR"
#endif

#if TK_THREADED
#    define TK_PER_THREAD _Thread_local
#else
#    define TK_PER_THREAD
#endif

/* The same for a word on hot paths: one load finds it, in shared libraries too, at the price of
 * static TLS, of which programs that load libraries later have little. */
#if TK_THREADED
#    define TK_PER_THREAD_NEAR _Thread_local __attribute__((tls_model("initial-exec")))
#else
#    define TK_PER_THREAD_NEAR
#endif

/* Whether ThreadSanitizer watches. */
#if defined(__SANITIZE_THREAD__)
#    define TK_IS_TSAN 1
#elif defined(__has_feature)
#    if __has_feature(thread_sanitizer)
#        define TK_IS_TSAN 1
#    endif
#endif
#ifndef TK_IS_TSAN
#    define TK_IS_TSAN 0
#endif

/* Number of client threads: a client of PARSYNC has several, of which one at a time calls the
 * library. */
#if defined(GASNET_SEQ) || defined(GASNETT_THREAD_SINGLE)
#    define TK_SEVERAL_CLIENT_THREADS 0
#else
#    define TK_SEVERAL_CLIENT_THREADS 1
#endif

/* Storage for what the specification ties to one client thread, however calls are serialised. */
#if TK_SEVERAL_CLIENT_THREADS
#    define TK_PER_CLIENT_THREAD _Thread_local
#else
#    define TK_PER_CLIENT_THREAD
#endif

/* Which memory of other ranks can be accessed, by configure: segments registered as a whole (FAST),
 * segments registered as far as they are in use (LARGE), any address (EVERYTHING). */
#if defined(GASNET_SEGMENT_EVERYTHING)
enum { tk_is_everything = 1, tk_is_on_demand = 1 };
#elif defined(GASNET_SEGMENT_LARGE)
enum { tk_is_everything = 0, tk_is_on_demand = 1 };
#else
enum { tk_is_everything = 0, tk_is_on_demand = 0 };
#endif

/* Of all processes of a job. */
#define TK_IS_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

#define TK_CACHE_LINE 64 /* x86-64 and most arm64: unit of false sharing */

#endif
