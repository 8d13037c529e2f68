/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Constants and simple types of the EX interface, for code that must not depend on a threading mode
 * or a conduit. May be included on its own, in any order, without any other include directory or
 * macro. Owns nothing, locks nothing. */
#ifndef GASNET_FWD_H
#define GASNET_FWD_H

#include <stdint.h>

/* The rank of a process in a team, or in the job. */
typedef uint32_t gex_Rank_t;
#define GEX_RANK_INVALID (~(gex_Rank_t)0)

typedef uint32_t gex_Flags_t;
typedef void *gex_Addr_t;

typedef uint16_t gex_EP_Index_t;
typedef struct {
    gex_Rank_t gex_rank; /* job rank */
    gex_EP_Index_t gex_ep_index;
} gex_EP_Location_t;

/* Capabilities of an endpoint. Endpoint 0 has all; others do puts and gets only. */
typedef uint32_t gex_EP_Capabilities_t;
#define GEX_EP_CAPABILITY_RMA  (1U << 0)
#define GEX_EP_CAPABILITY_AM   (1U << 1)
#define GEX_EP_CAPABILITY_VIS  (1U << 2)
#define GEX_EP_CAPABILITY_COLL (1U << 3)
#define GEX_EP_CAPABILITY_AD   (1U << 4)
#define GEX_EP_CAPABILITY_ALL  ((1U << 5) - 1)

/* An operation in flight. Process-wide: any thread may sync an event that another thread
 * obtained. */
typedef struct trunkline_event *gex_Event_t;
#define GEX_EVENT_INVALID                                                                          \
    ((gex_Event_t)(uintptr_t)0) /* already complete; syncing it returns at once */
#define GEX_EVENT_NO_OP                                                                            \
    ((gex_Event_t)(uintptr_t)1) /* nothing was started (GEX_FLAG_IMMEDIATE only); must not be      \
                                   synced */

/* Constants in place of a pointer to an event: when may the source be reused? */
#define GEX_EVENT_NOW ((gex_Event_t *)(uintptr_t)1) /* when the call returns */
#define GEX_EVENT_DEFER                                                                            \
    ((gex_Event_t *)(uintptr_t)2) /* not before the operation itself is complete */
#define GEX_EVENT_GROUP                                                                            \
    ((gex_Event_t *)(uintptr_t)3) /* when the thread syncs its implicit operations */

/* Return at once, having done nothing, rather than wait for resources. */
#define GEX_FLAG_IMMEDIATE (1U << 0)

/* Data types and operations of atomics and reductions; sets of them are or-ed. */
typedef uint32_t gex_DT_t;
#define GEX_DT_I32  ((gex_DT_t)1 << 0)
#define GEX_DT_U32  ((gex_DT_t)1 << 1)
#define GEX_DT_I64  ((gex_DT_t)1 << 2)
#define GEX_DT_U64  ((gex_DT_t)1 << 3)
#define GEX_DT_FLT  ((gex_DT_t)1 << 4)
#define GEX_DT_DBL  ((gex_DT_t)1 << 5)
#define GEX_DT_USER ((gex_DT_t)1 << 6)

typedef uint32_t gex_OP_t;
#define GEX_OP_AND     ((gex_OP_t)1 << 0)
#define GEX_OP_OR      ((gex_OP_t)1 << 1)
#define GEX_OP_XOR     ((gex_OP_t)1 << 2)
#define GEX_OP_ADD     ((gex_OP_t)1 << 3)
#define GEX_OP_SUB     ((gex_OP_t)1 << 4)
#define GEX_OP_MULT    ((gex_OP_t)1 << 5)
#define GEX_OP_MIN     ((gex_OP_t)1 << 6)
#define GEX_OP_MAX     ((gex_OP_t)1 << 7)
#define GEX_OP_INC     ((gex_OP_t)1 << 8)
#define GEX_OP_DEC     ((gex_OP_t)1 << 9)
#define GEX_OP_SET     ((gex_OP_t)1 << 10)
#define GEX_OP_CAS     ((gex_OP_t)1 << 11)
#define GEX_OP_FAND    ((gex_OP_t)1 << 15)
#define GEX_OP_FOR     ((gex_OP_t)1 << 16)
#define GEX_OP_FXOR    ((gex_OP_t)1 << 17)
#define GEX_OP_FADD    ((gex_OP_t)1 << 18)
#define GEX_OP_FSUB    ((gex_OP_t)1 << 19)
#define GEX_OP_FMULT   ((gex_OP_t)1 << 20)
#define GEX_OP_FMIN    ((gex_OP_t)1 << 21)
#define GEX_OP_FMAX    ((gex_OP_t)1 << 22)
#define GEX_OP_FINC    ((gex_OP_t)1 << 23)
#define GEX_OP_FDEC    ((gex_OP_t)1 << 24)
#define GEX_OP_SWAP    ((gex_OP_t)1 << 25)
#define GEX_OP_FCAS    ((gex_OP_t)1 << 26)
#define GEX_OP_GET     ((gex_OP_t)1 << 27)
#define GEX_OP_USER    ((gex_OP_t)1 << 30)
#define GEX_OP_USER_NC ((gex_OP_t)1 << 31)
#define GEX_OP_CSWAP   GEX_OP_FCAS /* its old name */

/* From an operation to the one that also returns the previous value, and back; CAS and FCAS, SET
 * and SWAP are such pairs. */
#define GEX_OP_TO_FETCHING(op)    ((gex_OP_t)(op) << 15)
#define GEX_OP_TO_NONFETCHING(op) ((gex_OP_t)(op) >> 15)

/* Handler registration: one message category and one direction */
#define GEX_FLAG_AM_SHORT   (1U << 0)
#define GEX_FLAG_AM_MEDIUM  (1U << 1)
#define GEX_FLAG_AM_LONG    (1U << 2)
#define GEX_FLAG_AM_MEDLONG (GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_LONG)
#define GEX_FLAG_AM_REQUEST (1U << 3)
#define GEX_FLAG_AM_REPLY   (1U << 4)
#define GEX_FLAG_AM_REQREP  (GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_REPLY)

/* Limit queries: the largest least_payload that Prepare accepts, with the client's buffer or with
 * one of the library's. */
#define GEX_FLAG_AM_PREPARE_LEAST_CLIENT (1U << 11)
#define GEX_FLAG_AM_PREPARE_LEAST_ALLOC  (1U << 12)

/* Values of flags are reused in different groups of calls. */

/* gex_Client_Init */
#define GEX_FLAG_USES_GASNET1  (1U << 0)
#define GEX_FLAG_DEFER_THREADS (1U << 1)

/* gex_EP_Create: hints, without effect here */
#define GEX_FLAG_HINT_ACCEL_AD   (1U << 0)
#define GEX_FLAG_HINT_ACCEL_COLL (1U << 1)
#define GEX_FLAG_HINT_ACCEL_ALL  ((1U << 2) - 1)

/* Where addresses of an operation lie; reserved by the interface, without effect here */
#define GEX_FLAG_SELF_SEG_UNKNOWN (1U << 3)
#define GEX_FLAG_SELF_SEG_SOME    (1U << 4)
#define GEX_FLAG_SELF_SEG_BOUND   (1U << 5)
#define GEX_FLAG_SELF_SEG_OFFSET  (1U << 6)
#define GEX_FLAG_PEER_SEG_UNKNOWN (1U << 7)
#define GEX_FLAG_PEER_SEG_SOME    (1U << 8)
#define GEX_FLAG_PEER_SEG_BOUND   (1U << 9)
#define GEX_FLAG_PEER_SEG_OFFSET  (1U << 10)

/* Non-contiguous puts: make their local completion available to gex_Event_QueryLeaf and
 * GEX_EC_LC */
#define GEX_FLAG_ENABLE_LEAF_LC (1U << 11)

/* Teams */
#define GEX_FLAG_TM_SCRATCH_SIZE_MIN         (1U << 0)
#define GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED (1U << 1)
#define GEX_FLAG_TM_GLOBAL_SCRATCH           (1U << 2)
#define GEX_FLAG_TM_LOCAL_SCRATCH            (1U << 3)
#define GEX_FLAG_TM_SYMMETRIC_SCRATCH        (1U << 4)
#define GEX_FLAG_TM_NO_SCRATCH               (1U << 5)
#define GEX_FLAG_SCRATCH_SEG_OFFSET          (1U << 6)
#define GEX_FLAG_GLOBALLY_QUIESCED           (1U << 13)

/* Remote atomics: a domain's, then an operation's */
#define GEX_FLAG_AD_FAVOR_MY_RANK  (1U << 0)
#define GEX_FLAG_AD_FAVOR_MY_NBRHD (1U << 1)
#define GEX_FLAG_AD_FAVOR_REMOTE   (1U << 2)
#define GEX_FLAG_AD_REL            (1U << 1)
#define GEX_FLAG_AD_ACQ            (1U << 2)
#define GEX_FLAG_AD_MY_RANK        (1U << 11)
#define GEX_FLAG_AD_MY_NBRHD       (1U << 12)

/* Remote atomics and gex_TM_Create: ranks are ranks of the job */
#define GEX_FLAG_RANK_IS_JOBRANK (1U << 13)

#endif
