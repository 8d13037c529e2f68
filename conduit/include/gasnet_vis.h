/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Transfers of non-contiguous memory; gasnet.h has them for GASNet-1. Owns nothing, locks nothing.
 *
 * Vector: the concatenation of the source ranges is copied to the concatenation of the destination
 * ranges; ranges of the two sides may be cut differently, and may be empty. Indexed: the same with
 * ranges of one length on each side. Strided: a box of elements of `elemsz` bytes; element (i0, i1,
 * ...) lies at the base plus the sum of ik * strides[k], strides are in bytes, of any sign and in
 * any order. Destinations may overlap neither each other nor a source. Lists must stay valid until
 * the operation is complete; strides and counts until the call returns.
 *
 * Small pieces travel packed in messages, so that the target must poll (GASNET_VIS_AMPIPE). Any
 * polling call of this process advances an operation that is not complete on return.
 * GEX_FLAG_IMMEDIATE is accepted; no call is ever refused. */
#ifndef GASNET_VIS_H
#define GASNET_VIS_H

#include "gasnetex.h"

#ifdef __cplusplus
extern "C" {
#endif

gex_Event_t gex_VIS_VectorPutNB(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                                gex_Memvec_t const dstlist[], size_t srccount,
                                gex_Memvec_t const srclist[], gex_Flags_t flags);
int gex_VIS_VectorPutNBI(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                         gex_Memvec_t const dstlist[], size_t srccount,
                         gex_Memvec_t const srclist[], gex_Flags_t flags);
int gex_VIS_VectorPutBlocking(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                              gex_Memvec_t const dstlist[], size_t srccount,
                              gex_Memvec_t const srclist[], gex_Flags_t flags);
gex_Event_t gex_VIS_VectorGetNB(gex_TM_t tm, size_t dstcount, gex_Memvec_t const dstlist[],
                                gex_Rank_t srcrank, size_t srccount, gex_Memvec_t const srclist[],
                                gex_Flags_t flags);
int gex_VIS_VectorGetNBI(gex_TM_t tm, size_t dstcount, gex_Memvec_t const dstlist[],
                         gex_Rank_t srcrank, size_t srccount, gex_Memvec_t const srclist[],
                         gex_Flags_t flags);
int gex_VIS_VectorGetBlocking(gex_TM_t tm, size_t dstcount, gex_Memvec_t const dstlist[],
                              gex_Rank_t srcrank, size_t srccount, gex_Memvec_t const srclist[],
                              gex_Flags_t flags);

gex_Event_t gex_VIS_IndexedPutNB(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                                 void *const dstlist[], size_t dstlen, size_t srccount,
                                 void *const srclist[], size_t srclen, gex_Flags_t flags);
int gex_VIS_IndexedPutNBI(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount, void *const dstlist[],
                          size_t dstlen, size_t srccount, void *const srclist[], size_t srclen,
                          gex_Flags_t flags);
int gex_VIS_IndexedPutBlocking(gex_TM_t tm, gex_Rank_t dstrank, size_t dstcount,
                               void *const dstlist[], size_t dstlen, size_t srccount,
                               void *const srclist[], size_t srclen, gex_Flags_t flags);
gex_Event_t gex_VIS_IndexedGetNB(gex_TM_t tm, size_t dstcount, void *const dstlist[], size_t dstlen,
                                 gex_Rank_t srcrank, size_t srccount, void *const srclist[],
                                 size_t srclen, gex_Flags_t flags);
int gex_VIS_IndexedGetNBI(gex_TM_t tm, size_t dstcount, void *const dstlist[], size_t dstlen,
                          gex_Rank_t srcrank, size_t srccount, void *const srclist[], size_t srclen,
                          gex_Flags_t flags);
int gex_VIS_IndexedGetBlocking(gex_TM_t tm, size_t dstcount, void *const dstlist[], size_t dstlen,
                               gex_Rank_t srcrank, size_t srccount, void *const srclist[],
                               size_t srclen, gex_Flags_t flags);

gex_Event_t gex_VIS_StridedPutNB(gex_TM_t tm, gex_Rank_t dstrank, void *dstaddr,
                                 const ptrdiff_t dststrides[], void *srcaddr,
                                 const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[],
                                 size_t stridelevels, gex_Flags_t flags);
int gex_VIS_StridedPutNBI(gex_TM_t tm, gex_Rank_t dstrank, void *dstaddr,
                          const ptrdiff_t dststrides[], void *srcaddr, const ptrdiff_t srcstrides[],
                          size_t elemsz, const size_t count[], size_t stridelevels,
                          gex_Flags_t flags);
int gex_VIS_StridedPutBlocking(gex_TM_t tm, gex_Rank_t dstrank, void *dstaddr,
                               const ptrdiff_t dststrides[], void *srcaddr,
                               const ptrdiff_t srcstrides[], size_t elemsz, const size_t count[],
                               size_t stridelevels, gex_Flags_t flags);
gex_Event_t gex_VIS_StridedGetNB(gex_TM_t tm, void *dstaddr, const ptrdiff_t dststrides[],
                                 gex_Rank_t srcrank, void *srcaddr, const ptrdiff_t srcstrides[],
                                 size_t elemsz, const size_t count[], size_t stridelevels,
                                 gex_Flags_t flags);
int gex_VIS_StridedGetNBI(gex_TM_t tm, void *dstaddr, const ptrdiff_t dststrides[],
                          gex_Rank_t srcrank, void *srcaddr, const ptrdiff_t srcstrides[],
                          size_t elemsz, const size_t count[], size_t stridelevels,
                          gex_Flags_t flags);
int gex_VIS_StridedGetBlocking(gex_TM_t tm, void *dstaddr, const ptrdiff_t dststrides[],
                               gex_Rank_t srcrank, void *srcaddr, const ptrdiff_t srcstrides[],
                               size_t elemsz, const size_t count[], size_t stridelevels,
                               gex_Flags_t flags);

/* Arms the next of these puts of the calling thread: when its data is in place, `handler`, for
 * Medium replies without arguments, runs at its target with a copy of the `nbytes` bytes at
 * source_addr, which is taken now. Handler 0 disarms. Deprecated by the interface. */
#define GEX_VIS_MAX_PEERCOMPLETION 127
void gex_VIS_SetPeerCompletionHandler(gex_AM_Index_t handler, const void *source_addr,
                                      size_t nbytes, gex_Flags_t flags);

#ifdef __cplusplus
}
#endif

#if TRUNKLINE_HAS_LINES
#    define gex_VIS_VectorPutNB(...)        TRUNKLINE_AT(gex_VIS_VectorPutNB, __VA_ARGS__)
#    define gex_VIS_VectorPutNBI(...)       TRUNKLINE_AT(gex_VIS_VectorPutNBI, __VA_ARGS__)
#    define gex_VIS_VectorPutBlocking(...)  TRUNKLINE_AT(gex_VIS_VectorPutBlocking, __VA_ARGS__)
#    define gex_VIS_VectorGetNB(...)        TRUNKLINE_AT(gex_VIS_VectorGetNB, __VA_ARGS__)
#    define gex_VIS_VectorGetNBI(...)       TRUNKLINE_AT(gex_VIS_VectorGetNBI, __VA_ARGS__)
#    define gex_VIS_VectorGetBlocking(...)  TRUNKLINE_AT(gex_VIS_VectorGetBlocking, __VA_ARGS__)
#    define gex_VIS_IndexedPutNB(...)       TRUNKLINE_AT(gex_VIS_IndexedPutNB, __VA_ARGS__)
#    define gex_VIS_IndexedPutNBI(...)      TRUNKLINE_AT(gex_VIS_IndexedPutNBI, __VA_ARGS__)
#    define gex_VIS_IndexedPutBlocking(...) TRUNKLINE_AT(gex_VIS_IndexedPutBlocking, __VA_ARGS__)
#    define gex_VIS_IndexedGetNB(...)       TRUNKLINE_AT(gex_VIS_IndexedGetNB, __VA_ARGS__)
#    define gex_VIS_IndexedGetNBI(...)      TRUNKLINE_AT(gex_VIS_IndexedGetNBI, __VA_ARGS__)
#    define gex_VIS_IndexedGetBlocking(...) TRUNKLINE_AT(gex_VIS_IndexedGetBlocking, __VA_ARGS__)
#    define gex_VIS_StridedPutNB(...)       TRUNKLINE_AT(gex_VIS_StridedPutNB, __VA_ARGS__)
#    define gex_VIS_StridedPutNBI(...)      TRUNKLINE_AT(gex_VIS_StridedPutNBI, __VA_ARGS__)
#    define gex_VIS_StridedPutBlocking(...) TRUNKLINE_AT(gex_VIS_StridedPutBlocking, __VA_ARGS__)
#    define gex_VIS_StridedGetNB(...)       TRUNKLINE_AT(gex_VIS_StridedGetNB, __VA_ARGS__)
#    define gex_VIS_StridedGetNBI(...)      TRUNKLINE_AT(gex_VIS_StridedGetNBI, __VA_ARGS__)
#    define gex_VIS_StridedGetBlocking(...) TRUNKLINE_AT(gex_VIS_StridedGetBlocking, __VA_ARGS__)
#    define gex_VIS_SetPeerCompletionHandler(...)                                                  \
        TRUNKLINE_AT(gex_VIS_SetPeerCompletionHandler, __VA_ARGS__)
#endif

#endif
