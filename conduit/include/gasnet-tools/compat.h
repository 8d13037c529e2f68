/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Names that are not part of the interface but that clients and conformance programs rely on. Each
 * yields to a definition of the client. Owns nothing. */
#ifndef GASNET_TOOLS_COMPAT_H
#define GASNET_TOOLS_COMPAT_H

/* Results of configure scripts under these names; they hold on every Linux. */
#ifndef HAVE_PTHREAD_H
#    define HAVE_PTHREAD_H 1
#endif
#ifndef HAVE_MMAP
#    define HAVE_MMAP 1
#endif
#ifndef HAVE_PTHREAD_SETCONCURRENCY
#    define HAVE_PTHREAD_SETCONCURRENCY 1
#endif
#ifndef SIZEOF_INT
#    define SIZEOF_INT 4
#endif

#ifndef MIN
#    define MIN(x, y) ((x) < (y) ? (x) : (y))
#endif
#ifndef MAX
#    define MAX(x, y) ((x) > (y) ? (x) : (y))
#endif
#ifndef PRIuSZ
#    define PRIuSZ "zu"
#endif

/* The halves of a 64-bit integer, for handler arguments. */
#ifndef GASNETI_HIWORD
#    define GASNETI_HIWORD(word) ((uint32_t)(((uint64_t)(word)) >> 32))
#endif
#ifndef GASNETI_LOWORD
#    define GASNETI_LOWORD(word) ((uint32_t)((uint64_t)(word)))
#endif
#ifndef GASNETI_MAKEWORD
#    define GASNETI_MAKEWORD(high, low)                                                            \
        ((((uint64_t)(high)) << 32) | (((uint64_t)(low)) & UINT64_C(0xFFFFFFFF)))
#endif

#define gasneti_fatalerror  gasnett_fatalerror
#define gasneti_gethostname gasnett_gethostname

#if defined(GASNET_DEBUG)
#    define gasneti_assert(expr)                                                                   \
        (GASNETT_PREDICT_TRUE(expr) ? (void)0 : gasnett_fatalerror("assertion failure: %s", #expr))
#else
#    define gasneti_assert(expr) ((void)0)
#endif

#endif
