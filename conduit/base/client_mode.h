/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The threading mode that this copy of the library is built for, by the client's name for it. A
 * source that includes this header is compiled for each of the modes (conduit/classes.awk); so is a
 * source that needs gex_HSL_t or another part of the public headers that depends on the mode.
 * Include it in few files: the library's own code uses mode.h. Only this header and mode.h test
 * GASNET_SEQ, _PARSYNC and _PAR or, in the stand-alone tools, GASNETT_THREAD_SAFE and _SINGLE. */
#ifndef TK_CLIENT_MODE_H
#define TK_CLIENT_MODE_H

#include "gasnet-tools/guard.h"

#if defined(TRUNKLINE_ANY_MODE)
#    error "build with one of -DGASNET_SEQ, -DGASNET_PARSYNC, -DGASNET_PAR"
#else
#    if defined(GASNET_PAR)
#        define TK_MODE_NAME "par"
#        define TK_MODE_TEXT "GASNET_PAR"
#    elif defined(GASNET_PARSYNC)
#        define TK_MODE_NAME "parsync"
#        define TK_MODE_TEXT "GASNET_PARSYNC"
#    elif defined(GASNET_SEQ)
#        define TK_MODE_NAME "seq"
#        define TK_MODE_TEXT "GASNET_SEQ"
#    elif defined(GASNETT_THREAD_SAFE)
#        define TK_MODE_NAME "par"
#        define TK_MODE_TEXT "GASNETT_THREAD_SAFE"
#    elif defined(GASNETT_THREAD_SINGLE)
#        define TK_MODE_NAME "seq"
#        define TK_MODE_TEXT "GASNETT_THREAD_SINGLE"
#    else
#        error "build with one of -DGASNET_SEQ, -DGASNET_PARSYNC, -DGASNET_PAR"
#    endif

/* Whether the client may have several threads. A PARSYNC client has several; one at a time calls
 * the library. */
#    if defined(GASNET_SEQ) || defined(GASNETT_THREAD_SINGLE)
#        define TK_SEVERAL_CLIENT_THREADS 0
#    else
#        define TK_SEVERAL_CLIENT_THREADS 1
#    endif
#endif

/* Storage class of state that the specification defines per client thread, even if the client
 * serialises its calls. */
#if TK_SEVERAL_CLIENT_THREADS
#    define TK_PER_CLIENT_THREAD _Thread_local
#else
#    define TK_PER_CLIENT_THREAD
#endif

#endif
