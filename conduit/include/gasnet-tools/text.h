/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Bytes: checksums, zeros, small values, characters. Owns nothing. */
#ifndef GASNET_TOOLS_TEXT_H
#define GASNET_TOOLS_TEXT_H

#if GASNETT_USE_CTYPE_WRAPPERS
#    include <ctype.h>
#endif

GASNETT_BEGIN_EXTERNC

/* The same for the same bytes in every release and on every host. */
uint64_t gasnett_checksum(const void *p, int numbytes);

/* The number of zero bytes; the second form also copies them. */
size_t gasnett_count0s(const void *src, size_t len);
size_t gasnett_count0s_copy(void *GASNETT_RESTRICT dst, const void *GASNETT_RESTRICT src,
                            size_t len);

/* Sets the top bit of exactly those bytes that are zero: no carry leaves a byte. */
TRUNKLINE_TOOLS_INLINE uint64_t trunkline_zero_bytes(uint64_t x)
{
    const uint64_t low7 = UINT64_C(0x7F7F7F7F7F7F7F7F);
    return ~(((x & low7) + low7) | x | low7);
}

TRUNKLINE_TOOLS_INLINE int gasnett_count0s_uint64_t(uint64_t x)
{
    return (int)(((trunkline_zero_bytes(x) >> 7) * UINT64_C(0x0101010101010101)) >> 56);
}

TRUNKLINE_TOOLS_INLINE int gasnett_count0s_uint32_t(uint32_t x)
{
    return gasnett_count0s_uint64_t(x | UINT64_C(0xFFFFFFFF00000000));
}

TRUNKLINE_TOOLS_INLINE int gasnett_count0s_uintptr_t(uintptr_t x)
{
    return gasnett_count0s_uint64_t(x) - (int)(sizeof(uint64_t) - sizeof(uintptr_t));
}

#define GASNETT_FAST_ALIGNED_MEMCPY(dst, src, nbytes)   memcpy((dst), (src), (nbytes))
#define GASNETT_FAST_UNALIGNED_MEMCPY(dst, src, nbytes) memcpy((dst), (src), (nbytes))

/* The low `nbytes` (at most 8) of a value to memory, and back. */
#if defined(PLATFORM_ARCH_BIG_ENDIAN)
#    define TRUNKLINE_LOW_BYTES(word, nbytes) ((unsigned char *)&(word) + sizeof(word) - (nbytes))
#else
#    define TRUNKLINE_LOW_BYTES(word, nbytes) ((unsigned char *)&(word))
#endif

TRUNKLINE_TOOLS_INLINE void trunkline_value_store(void *dst, uint64_t value, size_t nbytes)
{
    memcpy(dst, TRUNKLINE_LOW_BYTES(value, nbytes), nbytes);
}

TRUNKLINE_TOOLS_INLINE uint64_t trunkline_value_load(const void *src, size_t nbytes)
{
    uint64_t value = 0;
    memcpy(TRUNKLINE_LOW_BYTES(value, nbytes), src, nbytes);
    return value;
}

#define GASNETT_VALUE_ASSIGN(dst, value, nbytes)                                                   \
    trunkline_value_store((dst), (uint64_t)(value), (nbytes))
#define GASNETT_VALUE_RETURN(src, nbytes) return trunkline_value_load((src), (nbytes))

/* ctype.h for plain char, which may be negative where ctype.h forbids it. */
#if GASNETT_USE_CTYPE_WRAPPERS
#    define gasnett_isalnum(c)  isalnum((unsigned char)(c))
#    define gasnett_isalpha(c)  isalpha((unsigned char)(c))
#    define gasnett_isascii(c)  ((((c) & ~0x7F) == 0) + 0)
#    define gasnett_isblank(c)  isblank((unsigned char)(c))
#    define gasnett_iscntrl(c)  iscntrl((unsigned char)(c))
#    define gasnett_isdigit(c)  isdigit((unsigned char)(c))
#    define gasnett_isgraph(c)  isgraph((unsigned char)(c))
#    define gasnett_islower(c)  islower((unsigned char)(c))
#    define gasnett_isprint(c)  isprint((unsigned char)(c))
#    define gasnett_ispunct(c)  ispunct((unsigned char)(c))
#    define gasnett_isspace(c)  isspace((unsigned char)(c))
#    define gasnett_isupper(c)  isupper((unsigned char)(c))
#    define gasnett_isxdigit(c) isxdigit((unsigned char)(c))
#    define gasnett_toascii(c)  ((c)&0x7F)
#    define gasnett_tolower(c)  tolower((unsigned char)(c))
#    define gasnett_toupper(c)  toupper((unsigned char)(c))
#endif

GASNETT_END_EXTERNC

#endif
