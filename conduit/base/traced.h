/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whether this library records traces (configure --enable-trace, and the trace twins). The only
 * file that looks at TK_TRACE. Owns nothing. */
#ifndef TK_TRACED_H
#define TK_TRACED_H

#if TK_TRACE
enum { tk_is_traced = 1 };
#    define TK_IF_TRACED(...) __VA_ARGS__
#else
enum { tk_is_traced = 0 };
#    define TK_IF_TRACED(...)
#endif

#endif
