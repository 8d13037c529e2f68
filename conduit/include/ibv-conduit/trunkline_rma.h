/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Puts and gets between processes that share memory, inlined into the client: a copy, complete on
 * return; for small constant sizes one load and one store. All other cases, and all calls in a
 * library built with --enable-debug, which checks them, --enable-trace, which records them, or
 * --enable-stats, which counts them, call the library's function of the same name. Included by
 * gasnetex.h. Owns nothing, locks nothing; blocking calls poll now and then. */
#ifndef TRUNKLINE_RMA_H
#define TRUNKLINE_RMA_H

/* A team or pair begins with a pointer to a table of address offsets, by rank: owner's address +
 * offset = address in this process. This value means that the segment is not mapped and the library
 * must be called. */
enum { TRUNKLINE_UNMAPPED = 1 };

#if !defined(GASNET_DEBUG) && !defined(GASNET_TRACE) && !defined(GASNET_STATS) &&                  \
    defined(__OPTIMIZE__)

/* The inline body serves calls only; taking the address of the function yields the library's.
 * Static helpers of these bodies are not functions of the library. */
#    define TRUNKLINE_NEAR extern __inline__ __attribute__((__gnu_inline__, __artificial__))
#    define TRUNKLINE_PART                                                                         \
        extern __inline__ __attribute__((__gnu_inline__, __always_inline__, __artificial__))

/* Aliases of the library's functions: calls by their own names would be recursive here. */
int trunkline_put_blocking(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes,
                           gex_Flags_t flags);
int trunkline_get_blocking(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t nbytes,
                           gex_Flags_t flags);
gex_Event_t trunkline_put_nb(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src,
                             size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags);
gex_Event_t trunkline_get_nb(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t nbytes,
                             gex_Flags_t flags);
int trunkline_put_nbi(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes,
                      gex_Event_t *lc_opt, gex_Flags_t flags);
int trunkline_get_nbi(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t nbytes,
                      gex_Flags_t flags);
int trunkline_put_blocking_val(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value,
                               size_t nbytes, gex_Flags_t flags);
gex_Event_t trunkline_put_nb_val(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value,
                                 size_t nbytes, gex_Flags_t flags);
int trunkline_put_nbi_val(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value,
                          size_t nbytes, gex_Flags_t flags);
gex_RMA_Value_t trunkline_get_blocking_val(gex_TM_t tm, gex_Rank_t rank, void *src, size_t nbytes,
                                           gex_Flags_t flags);

/* Copies that other processes may read meanwhile: 1, 2, 4 or 8 aligned bytes move as one access.
 * With zero bytes neither address is accessed. */
void trunkline_copy(void *to, const void *from, size_t nbytes);

/* ---- Which peers share memory ---- */

TRUNKLINE_PART uintptr_t trunkline_addr_offset(gex_TM_t tm, gex_Rank_t rank)
{
    uintptr_t *offsets = *(uintptr_t **)(void *)tm;
    return __atomic_load_n(&offsets[rank], __ATOMIC_RELAXED);
}

/* The caller's assertion that a peer is not in the neighbourhood is trusted: then nothing else is
 * compiled. */
#    define TRUNKLINE_IS_UNMAPPED(offset, flags)                                                   \
        ((__builtin_constant_p(flags) && ((flags)&GEX_FLAG_PEER_NEVER_NBRHD)) ||                   \
         __builtin_expect((offset) == TRUNKLINE_UNMAPPED, 0))

/* ---- Turns ----
 *
 * A client that only copies must serve others too, so every 128th blocking copy of a thread polls.
 * With static TLS the counter costs two instructions in any client, three in PAR. The library's own
 * objects do not use it. */
#    if defined(TRUNKLINE_ANY_MODE)
#        define TRUNKLINE_IS_TO_POLL() 0
#    else
#        if defined(GASNET_PAR)
extern __thread int32_t trunkline_turn __attribute__((__tls_model__("initial-exec")));
#        else
extern int32_t trunkline_turn;
#        endif
#        define TRUNKLINE_IS_TO_POLL() __builtin_expect(--trunkline_turn < 0, 0)
#    endif
void trunkline_copy_poll(void);

TRUNKLINE_PART void trunkline_copy_turn(void)
{
    if (TRUNKLINE_IS_TO_POLL())
        trunkline_copy_poll();
}

/* ---- Copies ----
 *
 * The side in shared memory is volatile, so each access goes to memory and is not split. Operations
 * that completed earlier are visible to others before the next write, and data read by a get is no
 * older than data read next. */

typedef uint16_t trunkline_2_t __attribute__((__may_alias__, __aligned__(1)));
typedef uint32_t trunkline_4_t __attribute__((__may_alias__, __aligned__(1)));
typedef uint64_t trunkline_8_t __attribute__((__may_alias__, __aligned__(1)));

/* gcc cannot model fences under -fsanitize=thread, and warns. */
#    if defined(__SANITIZE_THREAD__)
#        define TRUNKLINE_NBRHD_FENCE(order) __asm__ __volatile__("" : : : "memory")
#    else
#        define TRUNKLINE_NBRHD_FENCE(order) __atomic_thread_fence(order)
#    endif

/* Constant sizes up to this are copied inline. */
enum { TRUNKLINE_INLINE_MAX = 64 };

#    define TRUNKLINE_IS_SMALL(nbytes)                                                             \
        (__builtin_constant_p(nbytes) && (nbytes) <= (size_t)TRUNKLINE_INLINE_MAX)

TRUNKLINE_PART void trunkline_nbrhd_put(uintptr_t dest, const void *src, size_t nbytes)
{
    void *to = (void *)dest;
    if (!TRUNKLINE_IS_SMALL(nbytes))
        trunkline_copy(to, src, nbytes);
    else if (nbytes == 8)
        *(volatile trunkline_8_t *)to = *(const trunkline_8_t *)src;
    else if (nbytes == 4)
        *(volatile trunkline_4_t *)to = *(const trunkline_4_t *)src;
    else if (nbytes == 2)
        *(volatile trunkline_2_t *)to = *(const trunkline_2_t *)src;
    else if (nbytes == 1)
        *(volatile unsigned char *)to = *(const unsigned char *)src;
    else
        __builtin_memcpy(to, nbytes ? src : to, nbytes); /* not NULL, even for 0 */
    TRUNKLINE_NBRHD_FENCE(__ATOMIC_RELEASE);
}

TRUNKLINE_PART void trunkline_nbrhd_get(void *to, uintptr_t src, size_t nbytes)
{
    const void *from = (const void *)src;
    if (!TRUNKLINE_IS_SMALL(nbytes))
        trunkline_copy(to, from, nbytes);
    else if (nbytes == 8)
        *(trunkline_8_t *)to = *(const volatile trunkline_8_t *)from;
    else if (nbytes == 4)
        *(trunkline_4_t *)to = *(const volatile trunkline_4_t *)from;
    else if (nbytes == 2)
        *(trunkline_2_t *)to = *(const volatile trunkline_2_t *)from;
    else if (nbytes == 1)
        *(unsigned char *)to = *(const volatile unsigned char *)from;
    else
        __builtin_memcpy(nbytes ? to : (void *)src, from, nbytes);
    TRUNKLINE_NBRHD_FENCE(__ATOMIC_ACQUIRE);
}

/* ---- The calls. A copy is never refused: GEX_FLAG_IMMEDIATE changes nothing. ---- */

TRUNKLINE_NEAR int gex_RMA_PutBlocking(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src,
                                       size_t nbytes, gex_Flags_t flags)
{
    uintptr_t offset = trunkline_addr_offset(tm, rank);
    if (TRUNKLINE_IS_UNMAPPED(offset, flags))
        return trunkline_put_blocking(tm, rank, dest, src, nbytes, flags);
    trunkline_nbrhd_put((uintptr_t)dest + offset, src, nbytes);
    trunkline_copy_turn();
    return GASNET_OK;
}

TRUNKLINE_NEAR int gex_RMA_GetBlocking(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src,
                                       size_t nbytes, gex_Flags_t flags)
{
    uintptr_t offset = trunkline_addr_offset(tm, rank);
    if (TRUNKLINE_IS_UNMAPPED(offset, flags))
        return trunkline_get_blocking(tm, dest, rank, src, nbytes, flags);
    trunkline_nbrhd_get(dest, (uintptr_t)src + offset, nbytes);
    trunkline_copy_turn();
    return GASNET_OK;
}

TRUNKLINE_NEAR gex_Event_t gex_RMA_PutNB(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src,
                                         size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags)
{
    uintptr_t offset = trunkline_addr_offset(tm, rank);
    if (TRUNKLINE_IS_UNMAPPED(offset, flags))
        return trunkline_put_nb(tm, rank, dest, src, nbytes, lc_opt, flags);
    trunkline_nbrhd_put((uintptr_t)dest + offset, src, nbytes);
    if (lc_opt != GEX_EVENT_NOW && lc_opt != GEX_EVENT_DEFER)
        *lc_opt = GEX_EVENT_INVALID;
    return GEX_EVENT_INVALID;
}

TRUNKLINE_NEAR gex_Event_t gex_RMA_GetNB(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src,
                                         size_t nbytes, gex_Flags_t flags)
{
    uintptr_t offset = trunkline_addr_offset(tm, rank);
    if (TRUNKLINE_IS_UNMAPPED(offset, flags))
        return trunkline_get_nb(tm, dest, rank, src, nbytes, flags);
    trunkline_nbrhd_get(dest, (uintptr_t)src + offset, nbytes);
    return GEX_EVENT_INVALID;
}

TRUNKLINE_NEAR int gex_RMA_PutNBI(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src,
                                  size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags)
{
    uintptr_t offset = trunkline_addr_offset(tm, rank);
    if (TRUNKLINE_IS_UNMAPPED(offset, flags))
        return trunkline_put_nbi(tm, rank, dest, src, nbytes, lc_opt, flags);
    trunkline_nbrhd_put((uintptr_t)dest + offset, src, nbytes);
    return GASNET_OK;
}

TRUNKLINE_NEAR int gex_RMA_GetNBI(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src,
                                  size_t nbytes, gex_Flags_t flags)
{
    uintptr_t offset = trunkline_addr_offset(tm, rank);
    if (TRUNKLINE_IS_UNMAPPED(offset, flags))
        return trunkline_get_nbi(tm, dest, rank, src, nbytes, flags);
    trunkline_nbrhd_get(dest, (uintptr_t)src + offset, nbytes);
    return GASNET_OK;
}

/* ---- Calls on values: inline if `nbytes` is the size of an integer type ---- */

#    define TRUNKLINE_IS_NUMBER(nbytes)                                                            \
        (__builtin_constant_p(nbytes) &&                                                           \
         ((nbytes) == 1 || (nbytes) == 2 || (nbytes) == 4 || (nbytes) == 8))

TRUNKLINE_PART void trunkline_nbrhd_store(uintptr_t dest, gex_RMA_Value_t value, size_t nbytes)
{
    void *to = (void *)dest;
    if (nbytes == 8)
        *(volatile trunkline_8_t *)to = value;
    else if (nbytes == 4)
        *(volatile trunkline_4_t *)to = (uint32_t)value;
    else if (nbytes == 2)
        *(volatile trunkline_2_t *)to = (uint16_t)value;
    else
        *(volatile unsigned char *)to = (unsigned char)value;
    TRUNKLINE_NBRHD_FENCE(__ATOMIC_RELEASE);
}

TRUNKLINE_PART gex_RMA_Value_t trunkline_nbrhd_load(uintptr_t src, size_t nbytes)
{
    const void *from = (const void *)src;
    gex_RMA_Value_t value;
    if (nbytes == 8)
        value = *(const volatile trunkline_8_t *)from;
    else if (nbytes == 4)
        value = *(const volatile trunkline_4_t *)from;
    else if (nbytes == 2)
        value = *(const volatile trunkline_2_t *)from;
    else
        value = *(const volatile unsigned char *)from;
    TRUNKLINE_NBRHD_FENCE(__ATOMIC_ACQUIRE);
    return value;
}

TRUNKLINE_NEAR int gex_RMA_PutBlockingVal(gex_TM_t tm, gex_Rank_t rank, void *dest,
                                          gex_RMA_Value_t value, size_t nbytes, gex_Flags_t flags)
{
    uintptr_t offset = trunkline_addr_offset(tm, rank);
    if (!TRUNKLINE_IS_NUMBER(nbytes) || TRUNKLINE_IS_UNMAPPED(offset, flags))
        return trunkline_put_blocking_val(tm, rank, dest, value, nbytes, flags);
    trunkline_nbrhd_store((uintptr_t)dest + offset, value, nbytes);
    trunkline_copy_turn();
    return GASNET_OK;
}

TRUNKLINE_NEAR gex_Event_t gex_RMA_PutNBVal(gex_TM_t tm, gex_Rank_t rank, void *dest,
                                            gex_RMA_Value_t value, size_t nbytes, gex_Flags_t flags)
{
    uintptr_t offset = trunkline_addr_offset(tm, rank);
    if (!TRUNKLINE_IS_NUMBER(nbytes) || TRUNKLINE_IS_UNMAPPED(offset, flags))
        return trunkline_put_nb_val(tm, rank, dest, value, nbytes, flags);
    trunkline_nbrhd_store((uintptr_t)dest + offset, value, nbytes);
    return GEX_EVENT_INVALID;
}

TRUNKLINE_NEAR int gex_RMA_PutNBIVal(gex_TM_t tm, gex_Rank_t rank, void *dest,
                                     gex_RMA_Value_t value, size_t nbytes, gex_Flags_t flags)
{
    uintptr_t offset = trunkline_addr_offset(tm, rank);
    if (!TRUNKLINE_IS_NUMBER(nbytes) || TRUNKLINE_IS_UNMAPPED(offset, flags))
        return trunkline_put_nbi_val(tm, rank, dest, value, nbytes, flags);
    trunkline_nbrhd_store((uintptr_t)dest + offset, value, nbytes);
    return GASNET_OK;
}

TRUNKLINE_NEAR gex_RMA_Value_t gex_RMA_GetBlockingVal(gex_TM_t tm, gex_Rank_t rank, void *src,
                                                      size_t nbytes, gex_Flags_t flags)
{
    uintptr_t offset = trunkline_addr_offset(tm, rank);
    if (!TRUNKLINE_IS_NUMBER(nbytes) || TRUNKLINE_IS_UNMAPPED(offset, flags))
        return trunkline_get_blocking_val(tm, rank, src, nbytes, flags);
    gex_RMA_Value_t value = trunkline_nbrhd_load((uintptr_t)src + offset, nbytes);
    trunkline_copy_turn();
    return value;
}

#endif
#endif
