/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Makes an object link only with the library that it was compiled for. Locks, atomics and events
 * are compiled into clients, so an object of another mode or of a checking library must not link,
 * even if it does no more than poll. Each object refers to one symbol, whose name names what it
 * needs, and so does the linker's error message. Owns nothing. */
#ifndef GASNET_TOOLS_GUARD_H
#define GASNET_TOOLS_GUARD_H

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
