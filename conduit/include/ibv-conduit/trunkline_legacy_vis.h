/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Non-contiguous transfers of GASNet-1: an inline function for each call, over the equivalent EX
 * call. Included by gasnet.h. Owns nothing, locks nothing.
 *
 * Strided calls have their old form: count[0] is the length in bytes of the contiguous part, and
 * `count` has one entry more than there are strides. Sources may be reused when a transfer is
 * complete. */
#ifndef TRUNKLINE_LEGACY_VIS_H
#define TRUNKLINE_LEGACY_VIS_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Vector ---- */

TRUNKLINE_INLINE const gex_Memvec_t *trunkline_memvecs(gasnet_memvec_t const list[])
{
    return (const gex_Memvec_t *)(const void *)list;
}

TRUNKLINE_INLINE void gasnet_putv_bulk(gasnet_node_t dstnode, size_t dstcount,
                                       gasnet_memvec_t const dstlist[], size_t srccount,
                                       gasnet_memvec_t const srclist[])
{
    gex_VIS_VectorPutBlocking(TRUNKLINE_WORLD("gasnet_putv_bulk"), dstnode, dstcount,
                              trunkline_memvecs(dstlist), srccount, trunkline_memvecs(srclist), 0);
}

TRUNKLINE_INLINE gasnet_handle_t gasnet_putv_nb_bulk(gasnet_node_t dstnode, size_t dstcount,
                                                     gasnet_memvec_t const dstlist[],
                                                     size_t srccount,
                                                     gasnet_memvec_t const srclist[])
{
    return gex_VIS_VectorPutNB(TRUNKLINE_WORLD("gasnet_putv_nb_bulk"), dstnode, dstcount,
                               trunkline_memvecs(dstlist), srccount, trunkline_memvecs(srclist), 0);
}

TRUNKLINE_INLINE void gasnet_putv_nbi_bulk(gasnet_node_t dstnode, size_t dstcount,
                                           gasnet_memvec_t const dstlist[], size_t srccount,
                                           gasnet_memvec_t const srclist[])
{
    gex_VIS_VectorPutNBI(TRUNKLINE_WORLD("gasnet_putv_nbi_bulk"), dstnode, dstcount,
                         trunkline_memvecs(dstlist), srccount, trunkline_memvecs(srclist), 0);
}

TRUNKLINE_INLINE void gasnet_getv_bulk(size_t dstcount, gasnet_memvec_t const dstlist[],
                                       gasnet_node_t srcnode, size_t srccount,
                                       gasnet_memvec_t const srclist[])
{
    gex_VIS_VectorGetBlocking(TRUNKLINE_WORLD("gasnet_getv_bulk"), dstcount,
                              trunkline_memvecs(dstlist), srcnode, srccount,
                              trunkline_memvecs(srclist), 0);
}

TRUNKLINE_INLINE gasnet_handle_t gasnet_getv_nb_bulk(size_t dstcount,
                                                     gasnet_memvec_t const dstlist[],
                                                     gasnet_node_t srcnode, size_t srccount,
                                                     gasnet_memvec_t const srclist[])
{
    return gex_VIS_VectorGetNB(TRUNKLINE_WORLD("gasnet_getv_nb_bulk"), dstcount,
                               trunkline_memvecs(dstlist), srcnode, srccount,
                               trunkline_memvecs(srclist), 0);
}

TRUNKLINE_INLINE void gasnet_getv_nbi_bulk(size_t dstcount, gasnet_memvec_t const dstlist[],
                                           gasnet_node_t srcnode, size_t srccount,
                                           gasnet_memvec_t const srclist[])
{
    gex_VIS_VectorGetNBI(TRUNKLINE_WORLD("gasnet_getv_nbi_bulk"), dstcount,
                         trunkline_memvecs(dstlist), srcnode, srccount, trunkline_memvecs(srclist),
                         0);
}

/* ---- Indexed ---- */

TRUNKLINE_INLINE void gasnet_puti_bulk(gasnet_node_t dstnode, size_t dstcount,
                                       void *const dstlist[], size_t dstlen, size_t srccount,
                                       void *const srclist[], size_t srclen)
{
    gex_VIS_IndexedPutBlocking(TRUNKLINE_WORLD("gasnet_puti_bulk"), dstnode, dstcount, dstlist,
                               dstlen, srccount, srclist, srclen, 0);
}

TRUNKLINE_INLINE gasnet_handle_t gasnet_puti_nb_bulk(gasnet_node_t dstnode, size_t dstcount,
                                                     void *const dstlist[], size_t dstlen,
                                                     size_t srccount, void *const srclist[],
                                                     size_t srclen)
{
    return gex_VIS_IndexedPutNB(TRUNKLINE_WORLD("gasnet_puti_nb_bulk"), dstnode, dstcount, dstlist,
                                dstlen, srccount, srclist, srclen, 0);
}

TRUNKLINE_INLINE void gasnet_puti_nbi_bulk(gasnet_node_t dstnode, size_t dstcount,
                                           void *const dstlist[], size_t dstlen, size_t srccount,
                                           void *const srclist[], size_t srclen)
{
    gex_VIS_IndexedPutNBI(TRUNKLINE_WORLD("gasnet_puti_nbi_bulk"), dstnode, dstcount, dstlist,
                          dstlen, srccount, srclist, srclen, 0);
}

TRUNKLINE_INLINE void gasnet_geti_bulk(size_t dstcount, void *const dstlist[], size_t dstlen,
                                       gasnet_node_t srcnode, size_t srccount,
                                       void *const srclist[], size_t srclen)
{
    gex_VIS_IndexedGetBlocking(TRUNKLINE_WORLD("gasnet_geti_bulk"), dstcount, dstlist, dstlen,
                               srcnode, srccount, srclist, srclen, 0);
}

TRUNKLINE_INLINE gasnet_handle_t gasnet_geti_nb_bulk(size_t dstcount, void *const dstlist[],
                                                     size_t dstlen, gasnet_node_t srcnode,
                                                     size_t srccount, void *const srclist[],
                                                     size_t srclen)
{
    return gex_VIS_IndexedGetNB(TRUNKLINE_WORLD("gasnet_geti_nb_bulk"), dstcount, dstlist, dstlen,
                                srcnode, srccount, srclist, srclen, 0);
}

TRUNKLINE_INLINE void gasnet_geti_nbi_bulk(size_t dstcount, void *const dstlist[], size_t dstlen,
                                           gasnet_node_t srcnode, size_t srccount,
                                           void *const srclist[], size_t srclen)
{
    gex_VIS_IndexedGetNBI(TRUNKLINE_WORLD("gasnet_geti_nbi_bulk"), dstcount, dstlist, dstlen,
                          srcnode, srccount, srclist, srclen, 0);
}

/* ---- Strided ---- */

TRUNKLINE_INLINE const ptrdiff_t *trunkline_strides(const size_t strides[])
{
    return (const ptrdiff_t *)(const void *)strides;
}

TRUNKLINE_INLINE void gasnet_puts_bulk(gasnet_node_t dstnode, void *dstaddr,
                                       const size_t dststrides[], void *srcaddr,
                                       const size_t srcstrides[], const size_t count[],
                                       size_t stridelevels)
{
    gex_VIS_StridedPutBlocking(TRUNKLINE_WORLD("gasnet_puts_bulk"), dstnode, dstaddr,
                               trunkline_strides(dststrides), srcaddr,
                               trunkline_strides(srcstrides), count[0], count + 1, stridelevels, 0);
}

TRUNKLINE_INLINE gasnet_handle_t gasnet_puts_nb_bulk(gasnet_node_t dstnode, void *dstaddr,
                                                     const size_t dststrides[], void *srcaddr,
                                                     const size_t srcstrides[],
                                                     const size_t count[], size_t stridelevels)
{
    return gex_VIS_StridedPutNB(
        TRUNKLINE_WORLD("gasnet_puts_nb_bulk"), dstnode, dstaddr, trunkline_strides(dststrides),
        srcaddr, trunkline_strides(srcstrides), count[0], count + 1, stridelevels, 0);
}

TRUNKLINE_INLINE void gasnet_puts_nbi_bulk(gasnet_node_t dstnode, void *dstaddr,
                                           const size_t dststrides[], void *srcaddr,
                                           const size_t srcstrides[], const size_t count[],
                                           size_t stridelevels)
{
    gex_VIS_StridedPutNBI(TRUNKLINE_WORLD("gasnet_puts_nbi_bulk"), dstnode, dstaddr,
                          trunkline_strides(dststrides), srcaddr, trunkline_strides(srcstrides),
                          count[0], count + 1, stridelevels, 0);
}

TRUNKLINE_INLINE void gasnet_gets_bulk(void *dstaddr, const size_t dststrides[],
                                       gasnet_node_t srcnode, void *srcaddr,
                                       const size_t srcstrides[], const size_t count[],
                                       size_t stridelevels)
{
    gex_VIS_StridedGetBlocking(TRUNKLINE_WORLD("gasnet_gets_bulk"), dstaddr,
                               trunkline_strides(dststrides), srcnode, srcaddr,
                               trunkline_strides(srcstrides), count[0], count + 1, stridelevels, 0);
}

TRUNKLINE_INLINE gasnet_handle_t gasnet_gets_nb_bulk(void *dstaddr, const size_t dststrides[],
                                                     gasnet_node_t srcnode, void *srcaddr,
                                                     const size_t srcstrides[],
                                                     const size_t count[], size_t stridelevels)
{
    return gex_VIS_StridedGetNB(
        TRUNKLINE_WORLD("gasnet_gets_nb_bulk"), dstaddr, trunkline_strides(dststrides), srcnode,
        srcaddr, trunkline_strides(srcstrides), count[0], count + 1, stridelevels, 0);
}

TRUNKLINE_INLINE void gasnet_gets_nbi_bulk(void *dstaddr, const size_t dststrides[],
                                           gasnet_node_t srcnode, void *srcaddr,
                                           const size_t srcstrides[], const size_t count[],
                                           size_t stridelevels)
{
    gex_VIS_StridedGetNBI(TRUNKLINE_WORLD("gasnet_gets_nbi_bulk"), dstaddr,
                          trunkline_strides(dststrides), srcnode, srcaddr,
                          trunkline_strides(srcstrides), count[0], count + 1, stridelevels, 0);
}

#ifdef __cplusplus
}
#endif

#if TRUNKLINE_HAS_LINES
#    define gasnet_putv_bulk(...)     TRUNKLINE_AT(gasnet_putv_bulk, __VA_ARGS__)
#    define gasnet_putv_nb_bulk(...)  TRUNKLINE_AT(gasnet_putv_nb_bulk, __VA_ARGS__)
#    define gasnet_putv_nbi_bulk(...) TRUNKLINE_AT(gasnet_putv_nbi_bulk, __VA_ARGS__)
#    define gasnet_getv_bulk(...)     TRUNKLINE_AT(gasnet_getv_bulk, __VA_ARGS__)
#    define gasnet_getv_nb_bulk(...)  TRUNKLINE_AT(gasnet_getv_nb_bulk, __VA_ARGS__)
#    define gasnet_getv_nbi_bulk(...) TRUNKLINE_AT(gasnet_getv_nbi_bulk, __VA_ARGS__)
#    define gasnet_puti_bulk(...)     TRUNKLINE_AT(gasnet_puti_bulk, __VA_ARGS__)
#    define gasnet_puti_nb_bulk(...)  TRUNKLINE_AT(gasnet_puti_nb_bulk, __VA_ARGS__)
#    define gasnet_puti_nbi_bulk(...) TRUNKLINE_AT(gasnet_puti_nbi_bulk, __VA_ARGS__)
#    define gasnet_geti_bulk(...)     TRUNKLINE_AT(gasnet_geti_bulk, __VA_ARGS__)
#    define gasnet_geti_nb_bulk(...)  TRUNKLINE_AT(gasnet_geti_nb_bulk, __VA_ARGS__)
#    define gasnet_geti_nbi_bulk(...) TRUNKLINE_AT(gasnet_geti_nbi_bulk, __VA_ARGS__)
#    define gasnet_puts_bulk(...)     TRUNKLINE_AT(gasnet_puts_bulk, __VA_ARGS__)
#    define gasnet_puts_nb_bulk(...)  TRUNKLINE_AT(gasnet_puts_nb_bulk, __VA_ARGS__)
#    define gasnet_puts_nbi_bulk(...) TRUNKLINE_AT(gasnet_puts_nbi_bulk, __VA_ARGS__)
#    define gasnet_gets_bulk(...)     TRUNKLINE_AT(gasnet_gets_bulk, __VA_ARGS__)
#    define gasnet_gets_nb_bulk(...)  TRUNKLINE_AT(gasnet_gets_nb_bulk, __VA_ARGS__)
#    define gasnet_gets_nbi_bulk(...) TRUNKLINE_AT(gasnet_gets_nbi_bulk, __VA_ARGS__)
#endif

#endif
