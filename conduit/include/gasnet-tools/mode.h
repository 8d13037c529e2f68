/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Compilation of the tools: thread mode, checking, versions, and the guard that keeps objects of
 * one kind from linking with the library of another. Included by gasnet_tools.h; owns nothing. */
#ifndef GASNET_TOOLS_MODE_H
#define GASNET_TOOLS_MODE_H

#include "guard.h"

/* A client may have defined the macro as empty. */
#if defined(GASNETT_LITE_MODE)
#    undef GASNETT_LITE_MODE
#    define GASNETT_LITE_MODE 1
#endif
#if !defined(TRUNKLINE_ANY_MODE)
#    if defined(GASNETT_THREAD_SAFE)
#        undef GASNETT_THREAD_SAFE
#        define GASNETT_THREAD_SAFE 1
#    endif
#    if defined(GASNETT_THREAD_SINGLE)
#        undef GASNETT_THREAD_SINGLE
#        define GASNETT_THREAD_SINGLE 1
#    endif

#    if defined(GASNETT_LITE_MODE) + defined(GASNETT_THREAD_SAFE) +                                \
            defined(GASNETT_THREAD_SINGLE) >                                                       \
        1
#        error "define at most one of GASNETT_THREAD_SAFE, GASNETT_THREAD_SINGLE, GASNETT_LITE_MODE"
#    endif

/* With a conduit its mode decides, and the client's request must not contradict it. PARSYNC has
 * several threads, so its locks and atomics are real. */
#    if defined(GASNETEX_H) && defined(GASNET_SEQ) && defined(GASNETT_THREAD_SAFE)
#        error "GASNETT_THREAD_SAFE contradicts GASNET_SEQ"
#    endif
#    if defined(GASNETEX_H) && !defined(GASNET_SEQ) && defined(GASNETT_THREAD_SINGLE)
#        error "GASNETT_THREAD_SINGLE contradicts GASNET_PAR or GASNET_PARSYNC"
#    endif

#    if !defined(GASNETT_LITE_MODE) && !defined(GASNETT_THREAD_SAFE) &&                            \
        !defined(GASNETT_THREAD_SINGLE)
#        if defined(GASNET_PAR) || defined(GASNET_PARSYNC)
#            define GASNETT_THREAD_SAFE 1
#        elif defined(GASNET_SEQ)
#            define GASNETT_THREAD_SINGLE 1
#        elif defined(_REENTRANT) || defined(_THREAD_SAFE) || defined(_PTHREAD_H)
#            define GASNETT_THREAD_SAFE 1
#        else
#            define GASNETT_THREAD_SINGLE 1
#        endif
#    endif

#    if defined(GASNETT_THREAD_SAFE)
#        define GASNETT_THREAD_MODEL         PAR
#        define TRUNKLINE_TOOLS_MODE         par
#        define TRUNKLINE_TOOLS_MODEL_STRING "PAR"
#    else
#        define GASNETT_THREAD_MODEL         SEQ
#        define TRUNKLINE_TOOLS_MODE         seq
#        define TRUNKLINE_TOOLS_MODEL_STRING "SEQ"
#    endif
#endif

/* Real mutexes in the single-threaded mode too; for clients with threads that the mode does not
 * provide for. */
#ifndef GASNETT_USE_TRUE_MUTEXES
#    define GASNETT_USE_TRUE_MUTEXES 0
#endif

#define GASNETT_SPEC_VERSION_MAJOR 1
#define GASNETT_SPEC_VERSION_MINOR 20

#define GASNETT_RELEASE_VERSION_MAJOR GASNET_RELEASE_VERSION_MAJOR
#define GASNETT_RELEASE_VERSION_MINOR GASNET_RELEASE_VERSION_MINOR
#define GASNETT_RELEASE_VERSION_PATCH GASNET_RELEASE_VERSION_PATCH

#define GASNETT_CONFIGURE_ARGS GASNETI_CONFIGURE_ARGS
#define GASNETT_SYSTEM_TUPLE   GASNETI_SYSTEM_TUPLE

#define GASNETT_PLATFORM_COMPILER_FAMILYID PLATFORM_COMPILER_FAMILYID
#define GASNETT_PLATFORM_COMPILER_ID       PLATFORM_COMPILER_ID
#define GASNETT_PLATFORM_COMPILER_IDSTR    PLATFORM_COMPILER_IDSTR
#define GASNETT_PLATFORM_COMPILER_VERSION  PLATFORM_COMPILER_VERSION

#if defined(PLATFORM_ARCH_64)
#    define GASNETT_PTR_CONFIG         64bit
#    define TRUNKLINE_TOOLS_PTR_STRING "64bit"
#else
#    define GASNETT_PTR_CONFIG         32bit
#    define TRUNKLINE_TOOLS_PTR_STRING "32bit"
#endif

#if defined(GASNET_DEBUG)
#    define GASNETT_DEBUG_CONFIG         debug
#    define TRUNKLINE_TOOLS_CHECKING     debug
#    define TRUNKLINE_TOOLS_DEBUG_STRING "debug"
#else
#    define GASNETT_DEBUG_CONFIG         nodebug
#    define TRUNKLINE_TOOLS_CHECKING     ndebug
#    define TRUNKLINE_TOOLS_DEBUG_STRING "nodebug"
#endif

#if GASNETI_DEBUG_MALLOC
#    define TRUNKLINE_TOOLS_MALLOC        debugmalloc
#    define TRUNKLINE_TOOLS_MALLOC_STRING "debugmalloc"
#else
#    define TRUNKLINE_TOOLS_MALLOC        nodebugmalloc
#    define TRUNKLINE_TOOLS_MALLOC_STRING "nodebugmalloc"
#endif

#define GASNETT_TIMER_CONFIG    timers_native
#define GASNETT_MEMBAR_CONFIG   membars_native
#define GASNETT_ATOMIC_CONFIG   atomics_native
#define GASNETT_ATOMIC32_CONFIG atomic32_native
#define GASNETT_ATOMIC64_CONFIG atomic64_native

/* clang-format off: one part per line */
#define GASNETT_CONFIG_STRING                                                                                                                                                                                                                                \
    "RELEASE=" PLATFORM_STRINGIFY(GASNETT_RELEASE_VERSION_MAJOR) "." PLATFORM_STRINGIFY(GASNETT_RELEASE_VERSION_MINOR) "." PLATFORM_STRINGIFY(GASNETT_RELEASE_VERSION_PATCH) ",SPEC=" PLATFORM_STRINGIFY(GASNETT_SPEC_VERSION_MAJOR) "." PLATFORM_STRINGIFY( \
        GASNETT_SPEC_VERSION_MINOR) ",PTR=" TRUNKLINE_TOOLS_PTR_STRING                                                                                                                                                                                       \
                                    "," TRUNKLINE_TOOLS_DEBUG_STRING                                                                                                                                                                                         \
                                    "," TRUNKLINE_TOOLS_MODEL_STRING                                                                                                                                                                                         \
                                    "," PLATFORM_STRINGIFY(GASNETT_TIMER_CONFIG) "," PLATFORM_STRINGIFY(GASNETT_MEMBAR_CONFIG) "," PLATFORM_STRINGIFY(                                                                                                       \
                                        GASNETT_ATOMIC_CONFIG) "," PLATFORM_STRINGIFY(GASNETT_ATOMIC32_CONFIG) "," PLATFORM_STRINGIFY(GASNETT_ATOMIC64_CONFIG) "," TRUNKLINE_TOOLS_MALLOC_STRING
/* clang-format on */

GASNETT_BEGIN_EXTERNC

#if !defined(TRUNKLINE_ANY_MODE)
#    define TRUNKLINE_TOOLS_GUARD_(mode, checking, heap)                                           \
        trunkline_needs_gasnet_tools_##mode##_##checking##_##heap##_v1
#    define TRUNKLINE_TOOLS_GUARD_OF(mode, checking, heap)                                         \
        TRUNKLINE_TOOLS_GUARD_(mode, checking, heap)
#    define TRUNKLINE_TOOLS_GUARD                                                                  \
        TRUNKLINE_TOOLS_GUARD_OF(TRUNKLINE_TOOLS_MODE, TRUNKLINE_TOOLS_CHECKING,                   \
                                 TRUNKLINE_TOOLS_MALLOC)
#endif

#if !defined(GASNETT_LITE_MODE) && !defined(TRUNKLINE_INSIDE)
TRUNKLINE_NEED(trunkline_tools_guard, TRUNKLINE_TOOLS_GUARD);
#endif

/* The release of the linked library, as text and as year * 1000000 + minor * 10000 + patch. */
const char *gasnett_release_version_str(void);
uint64_t gasnett_release_version(void);

/* Reasons why this build is slow, one per line; empty if there are none. */
const char *gasnett_performance_warning_str(void);

GASNETT_END_EXTERNC

#endif
