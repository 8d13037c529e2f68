/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A set of numbers below 256, as a value: it may be copied, compared and kept on the stack. Owns
 * nothing. */
#ifndef TK_BITSET_H
#define TK_BITSET_H

#include <stdbool.h>
#include <stdint.h>

enum { tk_bitset_size = 256, tk_bitset_words = tk_bitset_size / 64 };

struct tk_bitset {
    uint64_t words[tk_bitset_words];
};

static inline bool tk_bitset_has(const struct tk_bitset *set, unsigned i)
{
    return set->words[i / 64] >> i % 64 & 1;
}

static inline void tk_bitset_add(struct tk_bitset *set, unsigned i)
{
    set->words[i / 64] |= UINT64_C(1) << i % 64;
}

static inline void tk_bitset_remove(struct tk_bitset *set, unsigned i)
{
    set->words[i / 64] &= ~(UINT64_C(1) << i % 64);
}

/* 0 .. n - 1 */
static inline struct tk_bitset tk_bitset_below(unsigned n)
{
    struct tk_bitset set;
    for (unsigned w = 0; w < tk_bitset_words; w++)
        set.words[w] = n >= 64 * (w + 1) ? UINT64_MAX
                       : n <= 64 * w     ? 0
                                         : (UINT64_C(1) << n % 64) - 1;
    return set;
}

static inline bool tk_bitset_is_empty(const struct tk_bitset *set)
{
    return !(set->words[0] | set->words[1] | set->words[2] | set->words[3]);
}

static inline bool tk_bitset_equal(const struct tk_bitset *a, const struct tk_bitset *b)
{
    uint64_t differs = 0;
    for (unsigned w = 0; w < tk_bitset_words; w++)
        differs |= a->words[w] ^ b->words[w];
    return !differs;
}

/* The members of a that are not in b. */
static inline struct tk_bitset tk_bitset_minus(const struct tk_bitset *a, const struct tk_bitset *b)
{
    struct tk_bitset set;
    for (unsigned w = 0; w < tk_bitset_words; w++)
        set.words[w] = a->words[w] & ~b->words[w];
    return set;
}

/* The smallest member that is at least `from`; tk_bitset_size if there is none. */
static inline unsigned tk_bitset_next(const struct tk_bitset *set, unsigned from)
{
    for (unsigned w = from / 64; w < tk_bitset_words; w++) {
        uint64_t rest = set->words[w];
        if (w == from / 64)
            rest &= UINT64_MAX << from % 64;
        if (rest)
            return 64 * w + (unsigned)__builtin_ctzll(rest);
    }
    return tk_bitset_size;
}

/* 32 of them, from a multiple of 32 on. */
static inline uint32_t tk_bitset_part(const struct tk_bitset *set, unsigned from)
{
    return (uint32_t)(set->words[from / 64] >> from % 64);
}

/* Each `i` of the set, in order; the body may remove `i`. */
#define TK_BITSET_EACH(i, set)                                                                     \
    for (unsigned i = tk_bitset_next(set, 0); i < tk_bitset_size; i = tk_bitset_next(set, i + 1))

#endif
