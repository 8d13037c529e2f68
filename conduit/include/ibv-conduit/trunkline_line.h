/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Clients of a debug library: each call that it checks, or that begins an operation, is noted with
 * its place in the client's source before it is made. Macros of the same name as the call do that,
 * so a call through the address of a function is not noted. Included by gasnetex.h. */
#ifndef TRUNKLINE_LINE_H
#define TRUNKLINE_LINE_H

#ifdef __cplusplus
extern "C" {
#endif
/* [handler] */
void trunkline_at(const char *call, const char *file, unsigned line);
#ifdef __cplusplus
}
#endif

#if defined(GASNET_DEBUG) && !defined(TRUNKLINE_INSIDE)
#    define TRUNKLINE_HAS_LINES        1
#    define TRUNKLINE_NOTE(name)       trunkline_at(#    name, __FILE__, __LINE__),
#    define TRUNKLINE_NOTED(name, ...) (trunkline_at(#    name, __FILE__, __LINE__), name(__VA_ARGS__))
#    define TRUNKLINE_AT(name, ...)    TRUNKLINE_NOTED(name, __VA_ARGS__)
#else
#    define TRUNKLINE_HAS_LINES 0
#    define TRUNKLINE_NOTE(name)
#endif

#endif
