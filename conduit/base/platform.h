/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Properties of the compiler and the machine. The same in all threading modes. */
#ifndef TK_PLATFORM_H
#define TK_PLATFORM_H

/* Whether ThreadSanitizer is on. */
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

/* Of all processes of a job. */
#define TK_IS_BIG_ENDIAN (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)

#define TK_CACHE_LINE 64 /* x86-64 and most arm64: unit of false sharing */

#endif
