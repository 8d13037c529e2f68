/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Copies: of few bytes by overlapping pieces, without a call and without a loop; and copies that
 * other processes may read concurrently. */
#ifndef TK_COPY_H
#define TK_COPY_H

#include <stdint.h>
#include <string.h>

#include "base/bits.h"

enum { tk_copy_small_max = 64 }; /* four pieces of 16 */

/* Two pieces of sizeof(type) bytes, the second one ending at the end of the whole: sizeof(type) <=
 * n <= 2 * sizeof(type). Both are loaded before either is stored, so the compiler need not order
 * the two. */
#define TK_COPY_ENDS(to, from, n, type)                                                            \
    do {                                                                                           \
        type first, last;                                                                          \
        memcpy(&first, (from), sizeof(type));                                                      \
        memcpy(&last, (from) + (n) - sizeof(type), sizeof(type));                                  \
        memcpy((to), &first, sizeof(type));                                                        \
        memcpy((to) + (n) - sizeof(type), &last, sizeof(type));                                    \
    } while (0)

struct tk_bytes_16 {
    uint64_t half[2];
};

struct tk_bytes_32 {
    uint64_t quarter[4];
};

static inline void tk_copy_below_8(char *to, const char *from, size_t n)
{
    if (n >= 4)
        TK_COPY_ENDS(to, from, n, uint32_t);
    else if (n >= 2)
        TK_COPY_ENDS(to, from, n, uint16_t);
    else
        *to = *from;
}

/* n <= tk_copy_small_max; the two do not overlap. */
static inline void tk_copy_small(void *to, const void *from, size_t n)
{
    char *t = (char *)to;
    const char *f = (const char *)from;
    if (n > 16) {
        if (n > 32)
            TK_COPY_ENDS(t, f, n, struct tk_bytes_32);
        else
            TK_COPY_ENDS(t, f, n, struct tk_bytes_16);
    } else if (n >= 8) {
        TK_COPY_ENDS(t, f, n, uint64_t);
    } else if (n) {
        tk_copy_below_8(t, f, n);
    }
}

/* Any n; the two do not overlap. */
static inline void tk_copy(void *to, const void *from, size_t n)
{
    if (n <= tk_copy_small_max)
        tk_copy_small(to, from, n);
    else
        memcpy(to, from, n);
}

enum {
    tk_copy_page = 4096, /* processors compare these low bits of addresses */
    tk_copy_near = 512,  /* more than string instructions have in flight */
    tk_copy_piece = 256  /* the C library loads all of it before it stores any */
};

/* Any n; the two do not overlap. If the destination lies a little behind the source, modulo a page,
 * each load of a long copy seems to depend on a store just before it (4K aliasing), and string
 * instructions reach a quarter of their speed. Memory from malloc has such offsets to page-aligned
 * memory. */
static inline void tk_copy_large(void *to, const void *from, size_t n)
{
    char *t = (char *)to;
    const char *f = (const char *)from;
    size_t behind = ((uintptr_t)t - (uintptr_t)f) % tk_copy_page;
    size_t most = behind > 0 && behind < tk_copy_near ? tk_copy_piece : n;
    while (n > 0) {
        size_t piece = tk_min(n, most);
        /* A compiler that knows that it is small would inline string instructions. */
        __asm__("" : "+r"(piece));
        memcpy(t, f, piece);
        t += piece;
        f += piece;
        n -= piece;
    }
}

/* For unaligned and aligned objects of any type of the client. */
typedef uint16_t tk_whole_2_t __attribute__((__may_alias__, __aligned__(1)));
typedef uint32_t tk_whole_4_t __attribute__((__may_alias__, __aligned__(1)));
typedef uint64_t tk_whole_8_t __attribute__((__may_alias__, __aligned__(1)));

#define TK_COPY_WHOLE(to, from, type) (*(volatile type *)(to) = *(const volatile type *)(from))

/* Below 8 bytes: 1, 2 or 4 aligned bytes are read and written with one access. */
static inline void tk_copy_whole_below_8(void *to, const void *from, size_t n)
{
    tk_if_likely(n == 1) /* the most frequent size of those that clients do not copy themselves */
        * (char *)to = *(const char *)from;
    else if (n == 4) TK_COPY_WHOLE(to, from, tk_whole_4_t);
    else if (n == 2) TK_COPY_WHOLE(to, from, tk_whole_2_t);
    else if (n) tk_copy_below_8((char *)to, (const char *)from, n);
}

/* Any n: 1, 2, 4 or 8 aligned bytes are read and written with one access. Large copies use memcpy,
 * which bypasses the caches above a threshold of its own; our streaming stores were not faster at
 * any size. */
static inline void tk_copy_whole(void *to, const void *from, size_t n)
{
    if (n == 8)
        TK_COPY_WHOLE(to, from, tk_whole_8_t);
    else if (n < 8)
        tk_copy_whole_below_8(to, from, n);
    else
        memcpy(to, from, n);
}

#endif
