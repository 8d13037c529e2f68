/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whether threads may be inside the library at the same time. A source that includes this is
 * compiled for both answers: TK_THREADED=0 makes the objects of SEQ and PARSYNC, TK_THREADED=1
 * those of PAR (conduit/classes.awk). If a mode is defined, as in tests, it decides. */
#ifndef TK_MODE_H
#define TK_MODE_H

#include "gasnet-tools/guard.h"

#if defined(TK_THREADED)
/* The build says it. */
#elif defined(TRUNKLINE_ANY_MODE)
#    error "compile with -DTK_THREADED=0, -DTK_THREADED=1 or a threading mode"
#else
#    if defined(GASNET_PAR) || defined(GASNETT_THREAD_SAFE)
#        define TK_THREADED 1 /* any thread, any time */
#    elif defined(GASNET_SEQ) || defined(GASNETT_THREAD_SINGLE)
#        define TK_THREADED 0
#    elif defined(GASNET_PARSYNC)
/* The client serialises its calls, so nothing here runs at the same time. */
#        define TK_THREADED 0
#    else
#        error "build with one of -DGASNET_SEQ, -DGASNET_PARSYNC, -DGASNET_PAR"
#    endif
#endif

#if TK_THREADED
#    define TK_PER_THREAD _Thread_local
#else
#    define TK_PER_THREAD
#endif

/* The same for a word on hot paths: one load finds it, in shared libraries too. One such word makes
 * all thread-local variables of a library static, and programs that load libraries at run time have
 * little static TLS: each of ours may use 256 bytes (tests/job/loaded_late.sh). thread_own.h is for
 * the rest. / */
#if TK_THREADED
#    define TK_PER_THREAD_NEAR _Thread_local __attribute__((tls_model("initial-exec")))
#else
#    define TK_PER_THREAD_NEAR
#endif

#endif
