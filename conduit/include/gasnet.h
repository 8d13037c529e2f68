/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The GASNet-1 interface (specification 1.8), as a thin layer over the EX one: each comment names
 * the EX call behind a call. Both may be used side by side, on the same job, segment and handler
 * table; gasnet_QueryGexObjects() returns the shared objects. Collectives (gasnet_coll.h) are not
 * in here.
 *
 * The rules of gasnetex.h hold: only calls marked [handler] may be called from handlers or with a
 * lock held, and in PAR any thread may call at any time. Owns nothing, locks nothing. */
#ifndef _INCLUDED_GASNET_H
#define _INCLUDED_GASNET_H

#include "gasnetex.h"
#include "gasnet_tools.h"

#define GASNET_SPEC_VERSION_MAJOR 1
#define GASNET_SPEC_VERSION_MINOR 8
#define GASNET_VERSION            GASNET_SPEC_VERSION_MAJOR

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Types: other names for those of EX ---- */

typedef gex_Rank_t gasnet_node_t;
typedef gex_Token_t gasnet_token_t;
typedef gex_AM_Index_t gasnet_handler_t;
typedef gex_AM_Arg_t gasnet_handlerarg_t;
typedef gex_RMA_Value_t gasnet_register_value_t;
typedef gex_Event_t gasnet_handle_t;
#if !defined(TRUNKLINE_ANY_MODE)
typedef gex_HSL_t gasnet_hsl_t;
#endif

#define GASNET_INVALID_HANDLE          GEX_EVENT_INVALID
#define SIZEOF_GASNET_REGISTER_VALUE_T SIZEOF_GEX_RMA_VALUE_T

typedef struct {
    void *addr;
    size_t len;
} gasnet_memvec_t;

/* The order of members is fixed: clients initialise by position. */
typedef struct {
    gasnet_handler_t index; /* GEX_AM_INDEX_BASE..255, or 0: assigned and written back */
    gex_AM_Fn_t fnptr;
} gasnet_handlerentry_t;

/* ---- Start ---- */

/* gex_Client_Init() with GEX_FLAG_USES_GASNET1; call one of the two, once per process. */
TRUNKLINE_INLINE int gasnet_init(int *argc, char ***argv)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    return gex_Client_Init(&client, &ep, &tm, "LEGACY", argc, argv, GEX_FLAG_USES_GASNET1);
}

/* Collective, once: attaches a segment, registers handlers, and ends with a barrier. `segsize` is a
 * multiple of GASNET_PAGESIZE, at most gasnet_getMaxLocalSegmentSize(), and may differ between
 * processes; 0 means one page. `minheapoffset` is ignored. GASNET_ERR_NOT_INIT before gasnet_init()
 * or if there is a segment already; GASNET_ERR_BAD_ARG for a bad size; GASNET_ERR_RESOURCE if the
 * segment cannot be allocated, or an index is taken or below GEX_AM_INDEX_BASE. */
int gasnet_attach(gasnet_handlerentry_t *table, int numentries, uintptr_t segsize,
                  uintptr_t minheapoffset);

/* The objects behind this interface. Any pointer may be NULL. After gasnet_attach(). [handler] */
void gasnet_QueryGexObjects(gex_Client_t *client_p, gex_EP_t *endpoint_p, gex_TM_t *tm_p,
                            gex_Segment_t *segment_p);

/* [handler] */
TRUNKLINE_INLINE gasnet_node_t gasnet_mynode(void)
{
    return gex_System_QueryJobRank();
}

/* [handler] */
TRUNKLINE_INLINE gasnet_node_t gasnet_nodes(void)
{
    return gex_System_QueryJobSize();
}

/* The team of all processes. With --enable-debug it is returned by a function, which ends the job
 * if the client did not pass GEX_FLAG_USES_GASNET1. */
#if defined(GASNET_DEBUG)
#    define TRUNKLINE_WORLD(call) trunkline_world_for(call)
#else
#    define TRUNKLINE_WORLD(call) trunkline_world
#endif
extern const gex_TM_t trunkline_world;
gex_TM_t trunkline_world_for(const char *call);

/* ---- Locks ---- */

#define GASNET_HSL_INITIALIZER GEX_HSL_INITIALIZER
#define gasnet_hsl_init        gex_HSL_Init
#define gasnet_hsl_destroy     gex_HSL_Destroy
#define gasnet_hsl_lock        gex_HSL_Lock
#define gasnet_hsl_unlock      gex_HSL_Unlock
#define gasnet_hsl_trylock     gex_HSL_Trylock

/* Handlers never interrupt a thread, so there is nothing to hold. */
TRUNKLINE_INLINE void gasnet_hold_interrupts(void)
{
}

TRUNKLINE_INLINE void gasnet_resume_interrupts(void)
{
}

/* The functions here call EX functions from lines of this header, which tell a client nothing: the
 * client's line is recorded where it calls these functions. */
#if TRUNKLINE_HAS_LINES
#    undef TRUNKLINE_AT
#    define TRUNKLINE_AT(name, ...) name(__VA_ARGS__)
#endif
#include "trunkline_legacy_am.h"
#include "trunkline_legacy_rma.h"

#ifdef __cplusplus
}
#endif

#include "gasnet_vis.h"
#include "trunkline_legacy_vis.h"
#if TRUNKLINE_HAS_LINES
#    undef TRUNKLINE_AT
#    define TRUNKLINE_AT(name, ...) TRUNKLINE_NOTED(name, __VA_ARGS__)
#endif

#endif
