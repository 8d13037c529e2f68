/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Put, get and synchronisation of GASNet-1: an inline function for each call, over the equivalent
 * EX call. Included by gasnet.h. Owns nothing, locks nothing.
 *
 * Remote memory must lie in the peer's segment, local memory may be any; no alignment is required,
 * whatever the name says. The source may be reused when a plain form returns, or when the handle of
 * a bulk form is synced. */
#ifndef TRUNKLINE_LEGACY_RMA_H
#define TRUNKLINE_LEGACY_RMA_H

/* ---- Blocking ---- */

TRUNKLINE_INLINE void gasnet_put(gasnet_node_t node, void *dest, void *src, size_t nbytes)
{
    gex_RMA_PutBlocking(TRUNKLINE_WORLD("gasnet_put"), node, dest, src, nbytes, 0);
}

TRUNKLINE_INLINE void gasnet_get(void *dest, gasnet_node_t node, void *src, size_t nbytes)
{
    gex_RMA_GetBlocking(TRUNKLINE_WORLD("gasnet_get"), dest, node, src, nbytes, 0);
}

#define gasnet_put_bulk gasnet_put
#define gasnet_get_bulk gasnet_get

/* ---- Explicit handles ---- */

TRUNKLINE_INLINE gasnet_handle_t gasnet_put_nb(gasnet_node_t node, void *dest, void *src,
                                               size_t nbytes)
{
    return gex_RMA_PutNB(TRUNKLINE_WORLD("gasnet_put_nb"), node, dest, src, nbytes, GEX_EVENT_NOW,
                         0);
}

TRUNKLINE_INLINE gasnet_handle_t gasnet_put_nb_bulk(gasnet_node_t node, void *dest, void *src,
                                                    size_t nbytes)
{
    return gex_RMA_PutNB(TRUNKLINE_WORLD("gasnet_put_nb_bulk"), node, dest, src, nbytes,
                         GEX_EVENT_DEFER, 0);
}

TRUNKLINE_INLINE gasnet_handle_t gasnet_get_nb(void *dest, gasnet_node_t node, void *src,
                                               size_t nbytes)
{
    return gex_RMA_GetNB(TRUNKLINE_WORLD("gasnet_get_nb"), dest, node, src, nbytes, 0);
}

#define gasnet_get_nb_bulk gasnet_get_nb

/* ---- Implicit handles ---- */

TRUNKLINE_INLINE void gasnet_put_nbi(gasnet_node_t node, void *dest, void *src, size_t nbytes)
{
    gex_RMA_PutNBI(TRUNKLINE_WORLD("gasnet_put_nbi"), node, dest, src, nbytes, GEX_EVENT_NOW, 0);
}

TRUNKLINE_INLINE void gasnet_put_nbi_bulk(gasnet_node_t node, void *dest, void *src, size_t nbytes)
{
    gex_RMA_PutNBI(TRUNKLINE_WORLD("gasnet_put_nbi_bulk"), node, dest, src, nbytes, GEX_EVENT_DEFER,
                   0);
}

TRUNKLINE_INLINE void gasnet_get_nbi(void *dest, gasnet_node_t node, void *src, size_t nbytes)
{
    gex_RMA_GetNBI(TRUNKLINE_WORLD("gasnet_get_nbi"), dest, node, src, nbytes, 0);
}

#define gasnet_get_nbi_bulk gasnet_get_nbi

/* ---- Values: the low-order 1 to 8 bytes of a number ---- */

TRUNKLINE_INLINE void gasnet_put_val(gasnet_node_t node, void *dest, gasnet_register_value_t value,
                                     size_t nbytes)
{
    gex_RMA_PutBlockingVal(TRUNKLINE_WORLD("gasnet_put_val"), node, dest, value, nbytes, 0);
}

TRUNKLINE_INLINE gasnet_handle_t gasnet_put_nb_val(gasnet_node_t node, void *dest,
                                                   gasnet_register_value_t value, size_t nbytes)
{
    return gex_RMA_PutNBVal(TRUNKLINE_WORLD("gasnet_put_nb_val"), node, dest, value, nbytes, 0);
}

TRUNKLINE_INLINE void gasnet_put_nbi_val(gasnet_node_t node, void *dest,
                                         gasnet_register_value_t value, size_t nbytes)
{
    gex_RMA_PutNBIVal(TRUNKLINE_WORLD("gasnet_put_nbi_val"), node, dest, value, nbytes, 0);
}

TRUNKLINE_INLINE gasnet_register_value_t gasnet_get_val(gasnet_node_t node, void *src,
                                                        size_t nbytes)
{
    return gex_RMA_GetBlockingVal(TRUNKLINE_WORLD("gasnet_get_val"), node, src, nbytes, 0);
}

/* A get whose value is returned by the wait: one wait per handle, by any thread. */
typedef struct trunkline_valget *gasnet_valget_handle_t;
gasnet_valget_handle_t gasnet_get_nb_val(gasnet_node_t node, void *src, size_t nbytes);
gasnet_register_value_t gasnet_wait_syncnb_valget(gasnet_valget_handle_t handle);

/* ---- Fill remote memory with a byte; the third counts as a put ---- */

void gasnet_memset(gasnet_node_t node, void *dest, int val, size_t nbytes);
gasnet_handle_t gasnet_memset_nb(gasnet_node_t node, void *dest, int val, size_t nbytes);
void gasnet_memset_nbi(gasnet_node_t node, void *dest, int val, size_t nbytes);

/* ---- Synchronisation: 0 or GASNET_ERR_NOT_READY; forms without _nopoll poll first ---- */

#define gasnet_try_syncnb_nopoll gex_Event_Test
#define gasnet_wait_syncnb       gex_Event_Wait

TRUNKLINE_INLINE int gasnet_try_syncnb(gasnet_handle_t handle)
{
    gasnet_AMPoll();
    return gex_Event_Test(handle);
}

TRUNKLINE_INLINE int gasnet_try_syncnb_some_nopoll(gasnet_handle_t *phandle, size_t numhandles)
{
    return gex_Event_TestSome(phandle, numhandles, 0);
}

TRUNKLINE_INLINE int gasnet_try_syncnb_some(gasnet_handle_t *phandle, size_t numhandles)
{
    gasnet_AMPoll();
    return gex_Event_TestSome(phandle, numhandles, 0);
}

TRUNKLINE_INLINE int gasnet_try_syncnb_all_nopoll(gasnet_handle_t *phandle, size_t numhandles)
{
    return gex_Event_TestAll(phandle, numhandles, 0);
}

TRUNKLINE_INLINE int gasnet_try_syncnb_all(gasnet_handle_t *phandle, size_t numhandles)
{
    gasnet_AMPoll();
    return gex_Event_TestAll(phandle, numhandles, 0);
}

TRUNKLINE_INLINE void gasnet_wait_syncnb_some(gasnet_handle_t *phandle, size_t numhandles)
{
    gex_Event_WaitSome(phandle, numhandles, 0);
}

TRUNKLINE_INLINE void gasnet_wait_syncnb_all(gasnet_handle_t *phandle, size_t numhandles)
{
    gex_Event_WaitAll(phandle, numhandles, 0);
}

TRUNKLINE_INLINE int gasnet_try_syncnbi_gets(void)
{
    gasnet_AMPoll();
    return gex_NBI_Test(GEX_EC_GET, 0);
}

TRUNKLINE_INLINE int gasnet_try_syncnbi_puts(void)
{
    gasnet_AMPoll();
    return gex_NBI_Test(GEX_EC_PUT, 0);
}

TRUNKLINE_INLINE int gasnet_try_syncnbi_all(void)
{
    gasnet_AMPoll();
    return gex_NBI_Test(GEX_EC_ALL, 0);
}

TRUNKLINE_INLINE void gasnet_wait_syncnbi_gets(void)
{
    gex_NBI_Wait(GEX_EC_GET, 0);
}

TRUNKLINE_INLINE void gasnet_wait_syncnbi_puts(void)
{
    gex_NBI_Wait(GEX_EC_PUT, 0);
}

TRUNKLINE_INLINE void gasnet_wait_syncnbi_all(void)
{
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

TRUNKLINE_INLINE void gasnet_begin_nbi_accessregion(void)
{
    gex_NBI_BeginAccessRegion(0);
}

TRUNKLINE_INLINE gasnet_handle_t gasnet_end_nbi_accessregion(void)
{
    return gex_NBI_EndAccessRegion(0);
}

#if TRUNKLINE_HAS_LINES
#    define gasnet_put(...)                TRUNKLINE_AT(gasnet_put, __VA_ARGS__)
#    define gasnet_get(...)                TRUNKLINE_AT(gasnet_get, __VA_ARGS__)
#    define gasnet_put_nb(...)             TRUNKLINE_AT(gasnet_put_nb, __VA_ARGS__)
#    define gasnet_put_nb_bulk(...)        TRUNKLINE_AT(gasnet_put_nb_bulk, __VA_ARGS__)
#    define gasnet_get_nb(...)             TRUNKLINE_AT(gasnet_get_nb, __VA_ARGS__)
#    define gasnet_put_nbi(...)            TRUNKLINE_AT(gasnet_put_nbi, __VA_ARGS__)
#    define gasnet_put_nbi_bulk(...)       TRUNKLINE_AT(gasnet_put_nbi_bulk, __VA_ARGS__)
#    define gasnet_get_nbi(...)            TRUNKLINE_AT(gasnet_get_nbi, __VA_ARGS__)
#    define gasnet_put_val(...)            TRUNKLINE_AT(gasnet_put_val, __VA_ARGS__)
#    define gasnet_put_nb_val(...)         TRUNKLINE_AT(gasnet_put_nb_val, __VA_ARGS__)
#    define gasnet_put_nbi_val(...)        TRUNKLINE_AT(gasnet_put_nbi_val, __VA_ARGS__)
#    define gasnet_get_val(...)            TRUNKLINE_AT(gasnet_get_val, __VA_ARGS__)
#    define gasnet_get_nb_val(...)         TRUNKLINE_AT(gasnet_get_nb_val, __VA_ARGS__)
#    define gasnet_wait_syncnb_valget(...) TRUNKLINE_AT(gasnet_wait_syncnb_valget, __VA_ARGS__)
#    define gasnet_memset(...)             TRUNKLINE_AT(gasnet_memset, __VA_ARGS__)
#    define gasnet_memset_nb(...)          TRUNKLINE_AT(gasnet_memset_nb, __VA_ARGS__)
#    define gasnet_memset_nbi(...)         TRUNKLINE_AT(gasnet_memset_nbi, __VA_ARGS__)
#    define gasnet_try_syncnb(...)         TRUNKLINE_AT(gasnet_try_syncnb, __VA_ARGS__)
#    define gasnet_try_syncnb_some_nopoll(...)                                                     \
        TRUNKLINE_AT(gasnet_try_syncnb_some_nopoll, __VA_ARGS__)
#    define gasnet_try_syncnb_some(...) TRUNKLINE_AT(gasnet_try_syncnb_some, __VA_ARGS__)
#    define gasnet_try_syncnb_all_nopoll(...)                                                      \
        TRUNKLINE_AT(gasnet_try_syncnb_all_nopoll, __VA_ARGS__)
#    define gasnet_try_syncnb_all(...)    TRUNKLINE_AT(gasnet_try_syncnb_all, __VA_ARGS__)
#    define gasnet_wait_syncnb_some(...)  TRUNKLINE_AT(gasnet_wait_syncnb_some, __VA_ARGS__)
#    define gasnet_wait_syncnb_all(...)   TRUNKLINE_AT(gasnet_wait_syncnb_all, __VA_ARGS__)
#    define gasnet_try_syncnbi_gets(...)  TRUNKLINE_AT(gasnet_try_syncnbi_gets, __VA_ARGS__)
#    define gasnet_try_syncnbi_puts(...)  TRUNKLINE_AT(gasnet_try_syncnbi_puts, __VA_ARGS__)
#    define gasnet_try_syncnbi_all(...)   TRUNKLINE_AT(gasnet_try_syncnbi_all, __VA_ARGS__)
#    define gasnet_wait_syncnbi_gets(...) TRUNKLINE_AT(gasnet_wait_syncnbi_gets, __VA_ARGS__)
#    define gasnet_wait_syncnbi_puts(...) TRUNKLINE_AT(gasnet_wait_syncnbi_puts, __VA_ARGS__)
#    define gasnet_wait_syncnbi_all(...)  TRUNKLINE_AT(gasnet_wait_syncnbi_all, __VA_ARGS__)
#    define gasnet_begin_nbi_accessregion(...)                                                     \
        TRUNKLINE_AT(gasnet_begin_nbi_accessregion, __VA_ARGS__)
#    define gasnet_end_nbi_accessregion(...) TRUNKLINE_AT(gasnet_end_nbi_accessregion, __VA_ARGS__)
#endif

#endif
