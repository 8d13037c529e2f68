/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Lists of memory, and transfers of them, as text. Each item takes at most `item_max` bytes, on
 * which the ..._bufsz() functions rely. No state. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "gasnetex.h"
#include "gasnet_tools.h"

enum {
    head_max = 256, /* the text around the lists */
    item_max = 64   /* two numbers of 64 bits and their punctuation */
};

static size_t list_max(size_t count)
{
    return head_max + count * item_max;
}

struct extent {
    uintptr_t low, high;
    size_t least, most, total;
};

static const struct extent extent_none = {UINTPTR_MAX, 0, SIZE_MAX, 0, 0};

static void extent_add(struct extent *e, const void *address, size_t length)
{
    uintptr_t from = (uintptr_t)address, to = length ? from + length - 1 : from;
    e->low = from < e->low ? from : e->low;
    e->high = to > e->high ? to : e->high;
    e->least = length < e->least ? length : e->least;
    e->most = length > e->most ? length : e->most;
    e->total += length;
}

static void *lowest(const struct extent *e)
{
    return e->low == UINTPTR_MAX ? NULL : (void *)e->low;
}

size_t gasnett_format_memveclist_bufsz(size_t count)
{
    return list_max(count);
}

gasnett_memveclist_stats_t gasnett_format_memveclist(char *buf, size_t count,
                                                     gex_Memvec_t const *list)
{
    struct extent e = extent_none;
    char *at = buf + sprintf(buf, "%zu pieces:", count);
    for (size_t i = 0; i < count; i++) {
        extent_add(&e, list[i].gex_addr, list[i].gex_len);
        at += sprintf(at, " %p+%zu", list[i].gex_addr, list[i].gex_len);
    }
    sprintf(at, ", %zu bytes", e.total);
    return (gasnett_memveclist_stats_t){.minsz = count ? e.least : 0,
                                        .maxsz = e.most,
                                        .totalsz = e.total,
                                        .minaddr = lowest(&e),
                                        .maxaddr = (void *)e.high};
}

size_t gasnett_format_addrlist_bufsz(size_t count)
{
    return list_max(count);
}

gasnett_addrlist_stats_t gasnett_format_addrlist(char *buf, size_t count, void *const *list,
                                                 size_t len)
{
    struct extent e = extent_none;
    char *at = buf + sprintf(buf, "%zu pieces of %zu bytes:", count, len);
    for (size_t i = 0; i < count; i++) {
        extent_add(&e, list[i], len);
        at += sprintf(at, " %p", list[i]);
    }
    return (gasnett_addrlist_stats_t){.minaddr = lowest(&e), .maxaddr = (void *)e.high};
}

size_t gasnett_format_strides_bufsz(size_t count)
{
    return list_max(count);
}

void gasnett_format_strides(char *buf, size_t count, const ptrdiff_t *list)
{
    char *at = buf + sprintf(buf, "[");
    for (size_t i = 0; i < count; i++)
        at += sprintf(at, "%s%td", i ? " " : "", list[i]);
    sprintf(at, "]");
}

static char *put_peer(char *at, gex_TM_t tm, gex_Rank_t rank)
{
    return at + sprintf(at, "team %p rank %u: ", (void *)tm, rank);
}

size_t gasnett_format_putvgetv_bufsz(size_t dstcount, size_t srccount)
{
    return head_max + list_max(dstcount) + list_max(srccount);
}

size_t gasnett_format_putvgetv(char *buf, gex_TM_t tm, gex_Rank_t rank, size_t dstcount,
                               gex_Memvec_t const dstlist[], size_t srccount,
                               gex_Memvec_t const srclist[])
{
    char *at = put_peer(buf, tm, rank);
    at += sprintf(at, "to ");
    size_t bytes = gasnett_format_memveclist(at, dstcount, dstlist).totalsz;
    at += strlen(at);
    at += sprintf(at, " from ");
    gasnett_format_memveclist(at, srccount, srclist);
    return bytes;
}

size_t gasnett_format_putigeti_bufsz(size_t dstcount, size_t srccount)
{
    return head_max + list_max(dstcount) + list_max(srccount);
}

size_t gasnett_format_putigeti(char *buf, gex_TM_t tm, gex_Rank_t rank, size_t dstcount,
                               void *const dstlist[], size_t dstlen, size_t srccount,
                               void *const srclist[], size_t srclen)
{
    char *at = put_peer(buf, tm, rank);
    at += sprintf(at, "to ");
    gasnett_format_addrlist(at, dstcount, dstlist, dstlen);
    at += strlen(at);
    at += sprintf(at, " from ");
    gasnett_format_addrlist(at, srccount, srclist, srclen);
    return dstcount * dstlen;
}

/* Three lists: strides on both sides, and counts. */
size_t gasnett_format_putsgets_bufsz(size_t stridelevels)
{
    return head_max + 3 * list_max(stridelevels);
}

static char *put_strided(char *at, void *address, size_t levels, const ptrdiff_t strides[])
{
    at += sprintf(at, "%p strides ", address);
    gasnett_format_strides(at, levels, strides);
    return at + strlen(at);
}

size_t gasnett_format_putsgets(char *buf, void *pstats, gex_TM_t tm, gex_Rank_t rank, void *dstaddr,
                               const ptrdiff_t dststrides[], void *srcaddr,
                               const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[],
                               size_t stridelevels)
{
    size_t bytes = elemsz;
    char *at = put_peer(buf, tm, rank);
    (void)pstats;
    at = put_strided(at + sprintf(at, "to "), dstaddr, stridelevels, dststrides);
    at = put_strided(at + sprintf(at, " from "), srcaddr, stridelevels, srcstrides);
    at += sprintf(at, " counts [");
    for (size_t i = 0; i < stridelevels; i++) {
        at += sprintf(at, "%s%zu", i ? " " : "", count[i]);
        bytes *= count[i];
    }
    sprintf(at, "] of %zu bytes", elemsz);
    return bytes;
}
