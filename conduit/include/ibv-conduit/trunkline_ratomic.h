/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Atomics executed by this CPU. The first part defines the effect of each operation on a word of
 * memory; the library, too, is compiled with it and so executes requests of other ranks. Then the
 * calls, inlined into clients: with constant opcode and flags an operation on a process that shares
 * memory is one locked instruction (for some operations a loop around one), complete on return. All
 * other cases, and all calls in a library built with --enable-debug, which checks them, or
 * --enable-trace, call the library's function of the same name. Included by gasnet_ratomic.h. Owns
 * nothing, locks nothing, polls nothing. */
#ifndef TRUNKLINE_RATOMIC_H
#define TRUNKLINE_RATOMIC_H

/* Bits from this one on are operations that return the previous value. */
#define TRUNKLINE_AD_FETCHES(opcode) ((opcode) >= GEX_OP_FAND)

/* Inlined without optimisation too: never a function of the client's object. */
#define TRUNKLINE_AD_PART                                                                          \
    extern __inline__ __attribute__((__gnu_inline__, __always_inline__, __artificial__))

/* ---- What an operation does ----
 *
 * Sequentially consistent whatever the flags are: the interface requires that all later operations
 * see a completed one, even if only the clock orders them, and a plain store would stay in the
 * store buffer of its CPU for a while. On x86-64 this costs only the lock prefix. */

typedef uint32_t trunkline_ad_32_t __attribute__((__may_alias__));
typedef uint64_t trunkline_ad_64_t __attribute__((__may_alias__));

#define TRUNKLINE_AD_BITS(type, word)                                                              \
    TRUNKLINE_AD_PART word trunkline_ad_bits_##type(type value)                                    \
    {                                                                                              \
        word bits;                                                                                 \
        __builtin_memcpy(&bits, &value, sizeof(bits));                                             \
        return bits;                                                                               \
    }                                                                                              \
    TRUNKLINE_AD_PART type trunkline_ad_value_##type(word bits)                                    \
    {                                                                                              \
        type value;                                                                                \
        __builtin_memcpy(&value, &bits, sizeof(value));                                            \
        return value;                                                                              \
    }

TRUNKLINE_AD_BITS(float, trunkline_ad_32_t)
TRUNKLINE_AD_BITS(double, trunkline_ad_64_t)

/* The operations that have no instruction of their own: compare-and-swap until it succeeds. `was`
 * is the previous value in `next`. */
#define TRUNKLINE_AD_LOOP(type, word, value_of, bits_of, next)                                     \
    {                                                                                              \
        word seen = __atomic_load_n(at, __ATOMIC_RELAXED);                                         \
        type was;                                                                                  \
        do                                                                                         \
            was = value_of(seen);                                                                  \
        while (!__atomic_compare_exchange_n(at, &seen, bits_of(next), 1, __ATOMIC_SEQ_CST,         \
                                            __ATOMIC_RELAXED));                                    \
        return was;                                                                                \
    }

/* Operations that only copy bits are the same for all types. */
#define TRUNKLINE_AD_ACCESSORS(type, word, value_of, bits_of)                                      \
case GEX_OP_SET:                                                                                   \
case GEX_OP_SWAP:                                                                                  \
    return value_of(__atomic_exchange_n(at, bits_of(a), __ATOMIC_SEQ_CST));                        \
case GEX_OP_GET:                                                                                   \
    return value_of(__atomic_load_n(at, __ATOMIC_SEQ_CST));                                        \
case GEX_OP_CAS:                                                                                   \
case GEX_OP_FCAS: {                                                                                \
    word expected = bits_of(a);                                                                    \
    __atomic_compare_exchange_n(at, &expected, bits_of(b), 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
    return value_of(expected);                                                                     \
}

/* An operation and its fetching form, whose bit numbers differ by 15. */
#define TRUNKLINE_AD_CASE(NAME)                                                                    \
case GEX_OP_##NAME:                                                                                \
case GEX_OP_F##NAME:

#define TRUNKLINE_AD_DO(DT, type, word, ...)                                                       \
    TRUNKLINE_AD_PART type trunkline_ad_do_##DT(word *at, gex_OP_t opcode, type a, type b)         \
    {                                                                                              \
        switch (opcode) {                                                                          \
            __VA_ARGS__                                                                            \
        default:                                                                                   \
            __builtin_unreachable();                                                               \
        }                                                                                          \
    }

/* Arithmetic wraps around, in signed types too. */
#define TRUNKLINE_AD_INTEGER(DT, type, word)                                                       \
    TRUNKLINE_AD_DO(                                                                               \
        DT, type, word,                                                                            \
        TRUNKLINE_AD_CASE(ADD) return (type)__atomic_fetch_add(at, (word)a, __ATOMIC_SEQ_CST);     \
        TRUNKLINE_AD_CASE(SUB) return (type)__atomic_fetch_sub(at, (word)a, __ATOMIC_SEQ_CST);     \
        TRUNKLINE_AD_CASE(INC) return (type)__atomic_fetch_add(at, 1, __ATOMIC_SEQ_CST);           \
        TRUNKLINE_AD_CASE(DEC) return (type)__atomic_fetch_sub(at, 1, __ATOMIC_SEQ_CST);           \
        TRUNKLINE_AD_CASE(AND) return (type)__atomic_fetch_and(at, (word)a, __ATOMIC_SEQ_CST);     \
        TRUNKLINE_AD_CASE(OR) return (type)__atomic_fetch_or(at, (word)a, __ATOMIC_SEQ_CST);       \
        TRUNKLINE_AD_CASE(XOR) return (type)__atomic_fetch_xor(at, (word)a, __ATOMIC_SEQ_CST);     \
        TRUNKLINE_AD_CASE(MULT) TRUNKLINE_AD_LOOP(type, word, (type), (word),                      \
                                                  ((word)was * (word)a)) TRUNKLINE_AD_CASE(MIN)    \
            TRUNKLINE_AD_LOOP(type, word, (type), (word), (a < was ? a : was))                     \
                TRUNKLINE_AD_CASE(MAX)                                                             \
                    TRUNKLINE_AD_LOOP(type, word, (type), (word), (a > was ? a : was))             \
                        TRUNKLINE_AD_ACCESSORS(type, word, (type), (word)))

#define TRUNKLINE_AD_REAL(DT, type, word)                                                          \
    TRUNKLINE_AD_DO(                                                                               \
        DT, type, word,                                                                            \
        TRUNKLINE_AD_CASE(ADD) TRUNKLINE_AD_LOOP(type, word, trunkline_ad_value_##type,            \
                                                 trunkline_ad_bits_##type,                         \
                                                 (was + a)) TRUNKLINE_AD_CASE(SUB)                 \
            TRUNKLINE_AD_LOOP(type, word, trunkline_ad_value_##type, trunkline_ad_bits_##type,     \
                              (was - a)) TRUNKLINE_AD_CASE(INC)                                    \
                TRUNKLINE_AD_LOOP(type, word, trunkline_ad_value_##type, trunkline_ad_bits_##type, \
                                  (was + 1)) TRUNKLINE_AD_CASE(DEC)                                \
                    TRUNKLINE_AD_LOOP(type, word, trunkline_ad_value_##type,                       \
                                      trunkline_ad_bits_##type, (was - 1)) TRUNKLINE_AD_CASE(MULT) \
                        TRUNKLINE_AD_LOOP(type, word, trunkline_ad_value_##type,                   \
                                          trunkline_ad_bits_##type, (was * a))                     \
                            TRUNKLINE_AD_CASE(MIN) TRUNKLINE_AD_LOOP(                              \
                                type, word, trunkline_ad_value_##type, trunkline_ad_bits_##type,   \
                                (a < was ? a : was)) TRUNKLINE_AD_CASE(MAX)                        \
                                TRUNKLINE_AD_LOOP(type, word, trunkline_ad_value_##type,           \
                                                  trunkline_ad_bits_##type, (a > was ? a : was))   \
                                    TRUNKLINE_AD_ACCESSORS(type, word, trunkline_ad_value_##type,  \
                                                           trunkline_ad_bits_##type))

TRUNKLINE_AD_INTEGER(I32, int32_t, trunkline_ad_32_t)
TRUNKLINE_AD_INTEGER(U32, uint32_t, trunkline_ad_32_t)
TRUNKLINE_AD_INTEGER(I64, int64_t, trunkline_ad_64_t)
TRUNKLINE_AD_INTEGER(U64, uint64_t, trunkline_ad_64_t)
TRUNKLINE_AD_REAL(FLT, float, trunkline_ad_32_t)
TRUNKLINE_AD_REAL(DBL, double, trunkline_ad_64_t)

/* ---- The calls ---- */

#if !defined(GASNET_DEBUG) && !defined(GASNET_TRACE) && !defined(GASNET_STATS) &&                  \
    defined(__OPTIMIZE__)

/* A domain begins like a team, with a pointer to a table of address offsets by rank. Where the
 * CPU must not touch the words of the domain, all of these are TRUNKLINE_UNMAPPED. */
TRUNKLINE_PART uintptr_t trunkline_ad_offset(gex_AD_t ad, gex_Rank_t rank)
{
    uintptr_t *offsets = *(uintptr_t **)(void *)ad;
    return __atomic_load_n(&offsets[rank], __ATOMIC_RELAXED);
}

/* The table is by rank of the team. */
#    define TRUNKLINE_AD_IS_INLINE(opcode, flags)                                                  \
        (__builtin_constant_p(opcode) && __builtin_constant_p(flags) &&                            \
         !((flags)&GEX_FLAG_RANK_IS_JOBRANK))

/* Always inlined: otherwise the compiler would count the size of all operations, although a
 * constant opcode leaves only one. The operation itself orders everything; only a load needs a
 * fence, so that it does not pass earlier stores. */
#    define TRUNKLINE_AD_CALL(DT, type, word, result, call, done, also)                            \
        /* An alias of the library's function: a call by its own name would be recursive here. */  \
        result trunkline_ad_##also##_##DT(gex_AD_t ad, type *result_p, gex_Rank_t tgt_rank,        \
                                          void *tgt_addr, gex_OP_t opcode, type operand1,          \
                                          type operand2, gex_Flags_t flags);                       \
        TRUNKLINE_PART result call##_##DT(gex_AD_t ad, type *result_p, gex_Rank_t tgt_rank,        \
                                          void *tgt_addr, gex_OP_t opcode, type operand1,          \
                                          type operand2, gex_Flags_t flags)                        \
        {                                                                                          \
            uintptr_t offset = TRUNKLINE_UNMAPPED;                                                 \
            if (TRUNKLINE_AD_IS_INLINE(opcode, flags))                                             \
                offset = trunkline_ad_offset(ad, tgt_rank);                                        \
            if (__builtin_expect(offset == TRUNKLINE_UNMAPPED, 0))                                 \
                return trunkline_ad_##also##_##DT(ad, result_p, tgt_rank, tgt_addr, opcode,        \
                                                  operand1, operand2, flags);                      \
            if (opcode == GEX_OP_GET && (flags & GEX_FLAG_AD_REL))                                 \
                TRUNKLINE_NBRHD_FENCE(__ATOMIC_SEQ_CST);                                           \
            type was = trunkline_ad_do_##DT((word *)((uintptr_t)tgt_addr + offset), opcode,        \
                                            operand1, operand2);                                   \
            if (TRUNKLINE_AD_FETCHES(opcode))                                                      \
                *result_p = was;                                                                   \
            return done;                                                                           \
        }

#    define TRUNKLINE_AD_CALLS(DT, type, word)                                                     \
        TRUNKLINE_AD_CALL(DT, type, word, gex_Event_t, gex_AD_OpNB, GEX_EVENT_INVALID, nb)         \
        TRUNKLINE_AD_CALL(DT, type, word, int, gex_AD_OpNBI, GASNET_OK, nbi)

TRUNKLINE_AD_CALLS(I32, int32_t, trunkline_ad_32_t)
TRUNKLINE_AD_CALLS(U32, uint32_t, trunkline_ad_32_t)
TRUNKLINE_AD_CALLS(I64, int64_t, trunkline_ad_64_t)
TRUNKLINE_AD_CALLS(U64, uint64_t, trunkline_ad_64_t)
TRUNKLINE_AD_CALLS(FLT, float, trunkline_ad_32_t)
TRUNKLINE_AD_CALLS(DBL, double, trunkline_ad_64_t)

#endif
#endif
