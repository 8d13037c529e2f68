/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Makes an object link only with the library that it was compiled for. Locks, atomics and events
 * are compiled into clients, so an object of another mode or of a checking library must not link,
 * even if it does no more than poll. Each object refers to one symbol, whose name says what the
 * object needs, so the linker's error message says it too. Owns nothing. */
#ifndef GASNET_TOOLS_GUARD_H
#define GASNET_TOOLS_GUARD_H

/* The library's own objects (TRUNKLINE_INSIDE) need no library. Most of them are the same in all
 * modes and are compiled once, with none defined: mode-dependent parts do not exist for them, and
 * using a mode macro is an error from here on. A check of the sources defines TRUNKLINE_ANY_MODE
 * itself, to see that a mode makes no difference. */
#if defined(TRUNKLINE_INSIDE) && !defined(TRUNKLINE_ANY_MODE)
#    if !defined(GASNET_SEQ) && !defined(GASNET_PARSYNC) && !defined(GASNET_PAR) &&                \
        !defined(GASNETT_THREAD_SINGLE) && !defined(GASNETT_THREAD_SAFE)
#        define TRUNKLINE_ANY_MODE 1
#        pragma GCC poison GASNET_SEQ GASNET_PARSYNC GASNET_PAR
#        pragma GCC poison GASNETT_THREAD_SINGLE GASNETT_THREAD_SAFE
#        pragma GCC poison TRUNKLINE_MODE TRUNKLINE_TOOLS_MODE
#        pragma GCC poison TRUNKLINE_GUARD TRUNKLINE_TOOLS_GUARD GASNETT_MAX_THREADS
#        pragma GCC poison GASNET_RCV_THREAD GASNET_SND_THREAD GASNET_HIDDEN_AM_CONCURRENCY_LEVEL
#    endif
#endif

/* Nothing in the object uses the reference: neither the compiler nor the linker (--gc-sections) may
 * discard it. */
#define TRUNKLINE_KEEP __attribute__((__used__))
#ifdef __has_attribute
#    if __has_attribute(__retain__)
#        undef TRUNKLINE_KEEP
#        define TRUNKLINE_KEEP __attribute__((__used__, __retain__))
#    endif
#endif

/* A declaration, at file scope and with C linkage: this object needs `symbol`. */
#define TRUNKLINE_NEED(reference, symbol)                                                          \
    extern const int symbol;                                                                       \
    static const int *const reference TRUNKLINE_KEEP = &symbol

#endif
