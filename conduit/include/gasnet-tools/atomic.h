/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Atomic integers: gasnett_atomic_*, gasnett_atomic32_* and gasnett_atomic64_* work between threads
 * of this process and are plain integers if there is only one; gasnett_strongatomic*_* are always
 * atomic. Owns nothing, locks nothing. */
#ifndef GASNET_TOOLS_ATOMIC_H
#define GASNET_TOOLS_ATOMIC_H

/* Fences of an operation, or-ed. The IF forms are for operations that return a truth value. */
#define GASNETT_ATOMIC_NONE              0
#define GASNETT_ATOMIC_RMB_PRE           1
#define GASNETT_ATOMIC_WMB_PRE           2
#define GASNETT_ATOMIC_MB_PRE            3
#define GASNETT_ATOMIC_RMB_POST          4
#define GASNETT_ATOMIC_WMB_POST          8
#define GASNETT_ATOMIC_MB_POST           12
#define GASNETT_ATOMIC_RMB_POST_IF_TRUE  16
#define GASNETT_ATOMIC_RMB_POST_IF_FALSE 32
#define GASNETT_ATOMIC_REL               GASNETT_ATOMIC_WMB_PRE
#define GASNETT_ATOMIC_ACQ               GASNETT_ATOMIC_RMB_POST
#define GASNETT_ATOMIC_ACQ_IF_TRUE       GASNETT_ATOMIC_RMB_POST_IF_TRUE
#define GASNETT_ATOMIC_ACQ_IF_FALSE      GASNETT_ATOMIC_RMB_POST_IF_FALSE

#define GASNETT_HAVE_ATOMIC_CAS           1
#define GASNETT_HAVE_ATOMIC_ADD_SUB       1
#define GASNETT_HAVE_STRONGATOMIC_CAS     1
#define GASNETT_HAVE_STRONGATOMIC_ADD_SUB 1

typedef uint32_t gasnett_atomic_val_t;
typedef int32_t gasnett_atomic_sval_t;
#define GASNETT_ATOMIC_MAX        ((gasnett_atomic_val_t)0xFFFFFFFFU)
#define GASNETT_ATOMIC_SIGNED_MIN ((gasnett_atomic_sval_t)(-0x7FFFFFFF - 1))
#define GASNETT_ATOMIC_SIGNED_MAX ((gasnett_atomic_sval_t)0x7FFFFFFF)
#define gasnett_atomic_signed(v)  ((gasnett_atomic_sval_t)(v))

/* The ordering that an operation of the instruction set has by itself. On x86-64 every locked
 * operation is a full barrier, every load acquires and every store releases; requesting it costs
 * nothing, and thread sanitizers can see it. */
#if defined(PLATFORM_ARCH_X86_64)
#    define TRUNKLINE_ORDER_LOAD               __ATOMIC_ACQUIRE
#    define TRUNKLINE_ORDER_STORE              __ATOMIC_RELEASE
#    define TRUNKLINE_ORDER_SWAP               __ATOMIC_SEQ_CST
#    define TRUNKLINE_SWAP_BEFORE(flags)       ((void)(flags))
#    define TRUNKLINE_SWAP_AFTER(flags, truth) ((void)(flags))
#else
#    define TRUNKLINE_ORDER_LOAD               __ATOMIC_RELAXED
#    define TRUNKLINE_ORDER_STORE              __ATOMIC_RELAXED
#    define TRUNKLINE_ORDER_SWAP               __ATOMIC_RELAXED
#    define TRUNKLINE_SWAP_BEFORE(flags)       trunkline_atomic_before(flags)
#    define TRUNKLINE_SWAP_AFTER(flags, truth) trunkline_atomic_after((flags), (truth))
#endif

TRUNKLINE_TOOLS_INLINE void trunkline_atomic_before(int flags)
{
    if ((flags & GASNETT_ATOMIC_MB_PRE) == GASNETT_ATOMIC_MB_PRE)
        gasnett_local_mb();
    else if (flags & GASNETT_ATOMIC_WMB_PRE)
        gasnett_local_wmb();
    else if (flags & GASNETT_ATOMIC_RMB_PRE)
        gasnett_local_rmb();
}

TRUNKLINE_TOOLS_INLINE void trunkline_atomic_after(int flags, int truth)
{
    int reads = GASNETT_ATOMIC_RMB_POST |
                (truth ? GASNETT_ATOMIC_RMB_POST_IF_TRUE : GASNETT_ATOMIC_RMB_POST_IF_FALSE);
    if ((flags & reads) && (flags & GASNETT_ATOMIC_WMB_POST))
        gasnett_local_mb();
    else if (flags & GASNETT_ATOMIC_WMB_POST)
        gasnett_local_wmb();
    else if (flags & reads)
        gasnett_local_rmb();
}

/* Exactly as wide as the value, and may alias any object of that width. */
#define TRUNKLINE_ATOMIC_TYPE(name, val_t)                                                         \
    typedef struct {                                                                               \
        val_t trunkline_value;                                                                     \
    } TRUNKLINE_MAY_ALIAS name##_t;

/* clang-format off: a brace list, not a block */
#define TRUNKLINE_ATOMIC_INIT(v)                                                                   \
    {                                                                                              \
        (v)                                                                                        \
    }
/* clang-format on */

#define TRUNKLINE_ATOMIC_REAL(name, type, val_t)                                                   \
    TRUNKLINE_TOOLS_INLINE void name##_set(type *p, val_t v, int flags)                            \
    {                                                                                              \
        trunkline_atomic_before(flags);                                                            \
        __atomic_store_n(&p->trunkline_value, v, TRUNKLINE_ORDER_STORE);                           \
        trunkline_atomic_after(flags, 0);                                                          \
    }                                                                                              \
    TRUNKLINE_TOOLS_INLINE val_t name##_read(type *p, int flags)                                   \
    {                                                                                              \
        val_t v;                                                                                   \
        trunkline_atomic_before(flags);                                                            \
        v = __atomic_load_n(&p->trunkline_value, TRUNKLINE_ORDER_LOAD);                            \
        trunkline_atomic_after(flags, 0);                                                          \
        return v;                                                                                  \
    }                                                                                              \
    TRUNKLINE_TOOLS_INLINE val_t name##_add(type *p, val_t op, int flags)                          \
    {                                                                                              \
        val_t v;                                                                                   \
        TRUNKLINE_SWAP_BEFORE(flags);                                                              \
        v = __atomic_add_fetch(&p->trunkline_value, op, TRUNKLINE_ORDER_SWAP);                     \
        TRUNKLINE_SWAP_AFTER(flags, 0);                                                            \
        return v;                                                                                  \
    }                                                                                              \
    TRUNKLINE_TOOLS_INLINE val_t name##_swap(type *p, val_t newval, int flags)                     \
    {                                                                                              \
        val_t v;                                                                                   \
        TRUNKLINE_SWAP_BEFORE(flags);                                                              \
        v = __atomic_exchange_n(&p->trunkline_value, newval, TRUNKLINE_ORDER_SWAP);                \
        TRUNKLINE_SWAP_AFTER(flags, 0);                                                            \
        return v;                                                                                  \
    }                                                                                              \
    TRUNKLINE_TOOLS_INLINE int name##_compare_and_swap(type *p, val_t oldval, val_t newval,        \
                                                       int flags)                                  \
    {                                                                                              \
        int done;                                                                                  \
        TRUNKLINE_SWAP_BEFORE(flags);                                                              \
        done = __atomic_compare_exchange_n(&p->trunkline_value, &oldval, newval, 0,                \
                                           TRUNKLINE_ORDER_SWAP, TRUNKLINE_ORDER_SWAP);            \
        TRUNKLINE_SWAP_AFTER(flags, done);                                                         \
        return done;                                                                               \
    }                                                                                              \
    TRUNKLINE_TOOLS_INLINE int name##_decrement_and_test(type *p, int flags)                       \
    {                                                                                              \
        int zero;                                                                                  \
        TRUNKLINE_SWAP_BEFORE(flags);                                                              \
        zero = __atomic_sub_fetch(&p->trunkline_value, 1, TRUNKLINE_ORDER_SWAP) == 0;              \
        TRUNKLINE_SWAP_AFTER(flags, zero);                                                         \
        return zero;                                                                               \
    }                                                                                              \
    TRUNKLINE_ATOMIC_DERIVED(name, type, val_t)

/* Volatile: a signal handler may access it. */
#define TRUNKLINE_ATOMIC_PLAIN(name, type, val_t)                                                  \
    TRUNKLINE_TOOLS_INLINE val_t name##_read(type *p, int flags)                                   \
    {                                                                                              \
        (void)flags;                                                                               \
        return *(volatile val_t TRUNKLINE_MAY_ALIAS *)&p->trunkline_value;                         \
    }                                                                                              \
    TRUNKLINE_TOOLS_INLINE void name##_set(type *p, val_t v, int flags)                            \
    {                                                                                              \
        (void)flags;                                                                               \
        *(volatile val_t TRUNKLINE_MAY_ALIAS *)&p->trunkline_value = v;                            \
    }                                                                                              \
    TRUNKLINE_TOOLS_INLINE val_t name##_add(type *p, val_t op, int flags)                          \
    {                                                                                              \
        val_t v = name##_read(p, flags) + op;                                                      \
        name##_set(p, v, flags);                                                                   \
        return v;                                                                                  \
    }                                                                                              \
    TRUNKLINE_TOOLS_INLINE val_t name##_swap(type *p, val_t newval, int flags)                     \
    {                                                                                              \
        val_t v = name##_read(p, flags);                                                           \
        name##_set(p, newval, flags);                                                              \
        return v;                                                                                  \
    }                                                                                              \
    TRUNKLINE_TOOLS_INLINE int name##_compare_and_swap(type *p, val_t oldval, val_t newval,        \
                                                       int flags)                                  \
    {                                                                                              \
        if (name##_read(p, flags) != oldval)                                                       \
            return 0;                                                                              \
        name##_set(p, newval, flags);                                                              \
        return 1;                                                                                  \
    }                                                                                              \
    TRUNKLINE_TOOLS_INLINE int name##_decrement_and_test(type *p, int flags)                       \
    {                                                                                              \
        return name##_add(p, (val_t)-1, flags) == 0;                                               \
    }                                                                                              \
    TRUNKLINE_ATOMIC_DERIVED(name, type, val_t)

/* Arithmetic wraps around, so subtraction is addition. */
#define TRUNKLINE_ATOMIC_DERIVED(name, type, val_t)                                                \
    TRUNKLINE_TOOLS_INLINE val_t name##_subtract(type *p, val_t op, int flags)                     \
    {                                                                                              \
        return name##_add(p, (val_t)(0 - op), flags);                                              \
    }                                                                                              \
    TRUNKLINE_TOOLS_INLINE void name##_increment(type *p, int flags)                               \
    {                                                                                              \
        (void)name##_add(p, 1, flags);                                                             \
    }                                                                                              \
    TRUNKLINE_TOOLS_INLINE void name##_decrement(type *p, int flags)                               \
    {                                                                                              \
        (void)name##_add(p, (val_t)-1, flags);                                                     \
    }

#if !defined(TRUNKLINE_ANY_MODE)
#    if defined(GASNETT_THREAD_SINGLE)
#        define TRUNKLINE_ATOMIC_WEAK(name, type, val_t) TRUNKLINE_ATOMIC_PLAIN(name, type, val_t)
#    else
#        define TRUNKLINE_ATOMIC_WEAK(name, type, val_t) TRUNKLINE_ATOMIC_REAL(name, type, val_t)
#    endif
#endif

GASNETT_BEGIN_EXTERNC

/* clang-format off: these are definitions, not calls */
TRUNKLINE_ATOMIC_TYPE(gasnett_atomic, gasnett_atomic_val_t)
TRUNKLINE_ATOMIC_TYPE(gasnett_atomic32, uint32_t)
TRUNKLINE_ATOMIC_TYPE(gasnett_atomic64, uint64_t)
TRUNKLINE_ATOMIC_TYPE(gasnett_strongatomic, gasnett_atomic_val_t)
TRUNKLINE_ATOMIC_TYPE(gasnett_strongatomic32, uint32_t)
TRUNKLINE_ATOMIC_TYPE(gasnett_strongatomic64, uint64_t)

#if !defined(TRUNKLINE_ANY_MODE)
TRUNKLINE_ATOMIC_WEAK(gasnett_atomic, gasnett_atomic_t, gasnett_atomic_val_t)
TRUNKLINE_ATOMIC_WEAK(gasnett_atomic32, gasnett_atomic32_t, uint32_t)
TRUNKLINE_ATOMIC_WEAK(gasnett_atomic64, gasnett_atomic64_t, uint64_t)
#endif
TRUNKLINE_ATOMIC_REAL(gasnett_strongatomic, gasnett_strongatomic_t, gasnett_atomic_val_t)
TRUNKLINE_ATOMIC_REAL(gasnett_strongatomic32, gasnett_strongatomic32_t, uint32_t)
TRUNKLINE_ATOMIC_REAL(gasnett_strongatomic64, gasnett_strongatomic64_t, uint64_t)
/* clang-format on */

GASNETT_END_EXTERNC

#define gasnett_atomic_init(v)         TRUNKLINE_ATOMIC_INIT((gasnett_atomic_val_t)(v))
#define gasnett_atomic32_init(v)       TRUNKLINE_ATOMIC_INIT((uint32_t)(v))
#define gasnett_atomic64_init(v)       TRUNKLINE_ATOMIC_INIT((uint64_t)(v))
#define gasnett_strongatomic_init(v)   TRUNKLINE_ATOMIC_INIT((gasnett_atomic_val_t)(v))
#define gasnett_strongatomic32_init(v) TRUNKLINE_ATOMIC_INIT((uint32_t)(v))
#define gasnett_strongatomic64_init(v) TRUNKLINE_ATOMIC_INIT((uint64_t)(v))

#endif
