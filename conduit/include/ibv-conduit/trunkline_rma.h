/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Puts and gets between processes that share memory, inlined into the client: a copy, complete on
 * return; for small sizes a few loads and stores, for others a call of the client's memcpy. All
 * other cases, and all calls in a library built with --enable-debug, which checks them,
 * --enable-trace, which records them, or --enable-stats, which counts them, call the library's
 * function of the same name. So does gex_Event_Wait, except for the event of a copy, which is
 * GEX_EVENT_INVALID. Included by gasnetex.h. Owns nothing, locks nothing; blocking calls and waits
 * poll now and then. */
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

void trunkline_event_wait(gex_Event_t event);

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
 * A client that only copies must serve others too, so every 128th blocking copy or wait for a copy
 * of a thread polls. With static TLS the counter costs two instructions in any client, three in
 * PAR. The library's own objects do not use it. */
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

/* memcpy by a name that the compiler does not know: where it knows a bound of the size, it would
 * put string instructions in the call's place, which start slowly. Without the PLT's jump the call
 * takes about as much less as the tests before it take. */
#    if defined(__has_attribute)
#        if __has_attribute(__noplt__)
#            define TRUNKLINE_DIRECT __attribute__((__noplt__))
#        endif
#    endif
#    if !defined(TRUNKLINE_DIRECT)
#        define TRUNKLINE_DIRECT
#    endif
void *trunkline_memcpy(void *to, const void *from, size_t nbytes) __asm__("memcpy")
    __attribute__((__nothrow__, __leaf__)) TRUNKLINE_DIRECT;

typedef unsigned char trunkline_16_t
    __attribute__((__vector_size__(16), __may_alias__, __aligned__(1)));

/* 16 to 64 bytes without a branch on the size: the first and the last 16 bytes and those next to
 * them; up to 32 bytes the first and the last, twice. All are loaded before one is stored. A call
 * of memcpy takes longer than this copy. */
TRUNKLINE_PART void trunkline_copy_16_to_64(char *to, const char *from, size_t nbytes)
{
    const size_t inner = ((nbytes - 1) & 32) / 2, last = nbytes - 16;
    const trunkline_16_t first = *(const trunkline_16_t *)from;
    const trunkline_16_t second = *(const trunkline_16_t *)(from + inner);
    const trunkline_16_t third = *(const trunkline_16_t *)(from + last - inner);
    const trunkline_16_t fourth = *(const trunkline_16_t *)(from + last);
    *(trunkline_16_t *)to = first;
    *(trunkline_16_t *)(to + inner) = second;
    *(trunkline_16_t *)(to + last - inner) = third;
    *(trunkline_16_t *)(to + last) = fourth;
}

/* Up to 8 bytes memcpy will not do: it may write them twice, and a reader who answers the first
 * write would lose its answer. Under -fsanitize=thread copies of a size that the compiler does not
 * know stay in the library, because a race of them is the client's. */
#    if defined(__SANITIZE_THREAD__)
#        define TRUNKLINE_COPIES_HERE 0
#    else
#        define TRUNKLINE_COPIES_HERE 1
#    endif

/* A size that the compiler does not know, or a large one. The compiler forgets what the addresses
 * are of, or it would warn where a smaller object, or none, is passed with its size in a variable;
 * and nothing is read before what comes earlier. The largest sizes are expected, so that memcpy's
 * call is in the caller's line: it suffers more from a jump than the other copies. */
TRUNKLINE_PART void trunkline_copy_any(void *to, const void *from, size_t nbytes)
{
    __asm__ __volatile__("" : "+r"(to), "+r"(from) : : "memory");
    if (TRUNKLINE_COPIES_HERE && __builtin_expect(nbytes > 64, 1))
        trunkline_memcpy(to, from, nbytes);
    else if (TRUNKLINE_COPIES_HERE && nbytes >= 16)
        trunkline_copy_16_to_64((char *)to, (const char *)from, nbytes);
    else if (nbytes == 8)
        *(volatile trunkline_8_t *)to = *(const volatile trunkline_8_t *)from;
    else if (nbytes == 1)
        *(volatile unsigned char *)to = *(const volatile unsigned char *)from;
    else
        trunkline_copy(to, from, nbytes);
}

TRUNKLINE_PART void trunkline_nbrhd_put(uintptr_t dest, const void *src, size_t nbytes)
{
    void *to = (void *)dest;
    if (!TRUNKLINE_IS_SMALL(nbytes))
        trunkline_copy_any(to, src, nbytes);
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
        trunkline_copy_any(to, from, nbytes);
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

/* ---- Waits. A copy was complete when its event was returned; nothing else has that event. ---- */

#    if !defined(TRUNKLINE_INSIDE)
TRUNKLINE_NEAR void gex_Event_Wait(gex_Event_t event)
{
    if (event != GEX_EVENT_INVALID)
        trunkline_event_wait(event);
    else
        trunkline_copy_turn();
}
#    endif

/* ---- Calls on values ---- */

/* The address of the value's low-order bytes. */
#    if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#        define TRUNKLINE_VALUE_BYTES(value, nbytes) ((void *)&(value))
#    else
#        define TRUNKLINE_VALUE_BYTES(value, nbytes)                                               \
            ((void *)((char *)&(value) + sizeof(value) - (nbytes)))
#    endif

/* A size that no value has is left to the library: the compiler would warn of bytes behind it. */
#    define TRUNKLINE_IS_TOO_LONG(nbytes)                                                          \
        (__builtin_constant_p(nbytes) && (nbytes) > sizeof(gex_RMA_Value_t))

TRUNKLINE_PART void trunkline_nbrhd_store(uintptr_t dest, gex_RMA_Value_t value, size_t nbytes)
{
    if (nbytes == sizeof(value))
        *(volatile trunkline_8_t *)dest = value;
    else if (TRUNKLINE_IS_SMALL(nbytes))
        trunkline_nbrhd_put(dest, TRUNKLINE_VALUE_BYTES(value, nbytes), nbytes);
    else
        trunkline_copy((void *)dest, TRUNKLINE_VALUE_BYTES(value, nbytes), nbytes);
    TRUNKLINE_NBRHD_FENCE(__ATOMIC_RELEASE);
}

TRUNKLINE_PART gex_RMA_Value_t trunkline_nbrhd_load(uintptr_t src, size_t nbytes)
{
    gex_RMA_Value_t value = 0;
    if (nbytes == sizeof(value))
        value = *(const volatile trunkline_8_t *)src;
    else if (TRUNKLINE_IS_SMALL(nbytes))
        trunkline_nbrhd_get(TRUNKLINE_VALUE_BYTES(value, nbytes), src, nbytes);
    else
        trunkline_copy(TRUNKLINE_VALUE_BYTES(value, nbytes), (const void *)src, nbytes);
    TRUNKLINE_NBRHD_FENCE(__ATOMIC_ACQUIRE);
    return value;
}

TRUNKLINE_NEAR int gex_RMA_PutBlockingVal(gex_TM_t tm, gex_Rank_t rank, void *dest,
                                          gex_RMA_Value_t value, size_t nbytes, gex_Flags_t flags)
{
    uintptr_t offset = trunkline_addr_offset(tm, rank);
    if (TRUNKLINE_IS_TOO_LONG(nbytes) || TRUNKLINE_IS_UNMAPPED(offset, flags))
        return trunkline_put_blocking_val(tm, rank, dest, value, nbytes, flags);
    trunkline_nbrhd_store((uintptr_t)dest + offset, value, nbytes);
    trunkline_copy_turn();
    return GASNET_OK;
}

TRUNKLINE_NEAR gex_Event_t gex_RMA_PutNBVal(gex_TM_t tm, gex_Rank_t rank, void *dest,
                                            gex_RMA_Value_t value, size_t nbytes, gex_Flags_t flags)
{
    uintptr_t offset = trunkline_addr_offset(tm, rank);
    if (TRUNKLINE_IS_TOO_LONG(nbytes) || TRUNKLINE_IS_UNMAPPED(offset, flags))
        return trunkline_put_nb_val(tm, rank, dest, value, nbytes, flags);
    trunkline_nbrhd_store((uintptr_t)dest + offset, value, nbytes);
    return GEX_EVENT_INVALID;
}

TRUNKLINE_NEAR int gex_RMA_PutNBIVal(gex_TM_t tm, gex_Rank_t rank, void *dest,
                                     gex_RMA_Value_t value, size_t nbytes, gex_Flags_t flags)
{
    uintptr_t offset = trunkline_addr_offset(tm, rank);
    if (TRUNKLINE_IS_TOO_LONG(nbytes) || TRUNKLINE_IS_UNMAPPED(offset, flags))
        return trunkline_put_nbi_val(tm, rank, dest, value, nbytes, flags);
    trunkline_nbrhd_store((uintptr_t)dest + offset, value, nbytes);
    return GASNET_OK;
}

TRUNKLINE_NEAR gex_RMA_Value_t gex_RMA_GetBlockingVal(gex_TM_t tm, gex_Rank_t rank, void *src,
                                                      size_t nbytes, gex_Flags_t flags)
{
    uintptr_t offset = trunkline_addr_offset(tm, rank);
    if (TRUNKLINE_IS_TOO_LONG(nbytes) || TRUNKLINE_IS_UNMAPPED(offset, flags))
        return trunkline_get_blocking_val(tm, rank, src, nbytes, flags);
    gex_RMA_Value_t value = trunkline_nbrhd_load((uintptr_t)src + offset, nbytes);
    trunkline_copy_turn();
    return value;
}

#endif
#endif
