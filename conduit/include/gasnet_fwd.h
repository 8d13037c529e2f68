/* SPDX-License-Identifier: BSD-3-Clause */
/* Constants and simple types of the EX interface, for code that must not depend on a threading mode
 * or a conduit. May be included on its own, in any order, without any other include directory or
 * macro. Owns nothing, locks nothing. */
#ifndef GASNET_FWD_H
#define GASNET_FWD_H

#include <stdint.h>

/* A process's place in a team, or in the job. */
typedef uint32_t gex_Rank_t;
#define GEX_RANK_INVALID (~(gex_Rank_t)0)

typedef uint32_t gex_Flags_t;
typedef void *gex_Addr_t;

typedef uint16_t gex_EP_Index_t;
typedef struct {
    gex_Rank_t gex_rank; /* job rank */
    gex_EP_Index_t gex_ep_index;
} gex_EP_Location_t;

/* An operation in flight. Process-wide: any thread may sync an event that another one got. */
typedef struct trunkline_event *gex_Event_t;
#define GEX_EVENT_INVALID                                                                          \
    ((gex_Event_t)(uintptr_t)0) /* already complete; syncing it returns at once */
#define GEX_EVENT_NO_OP                                                                            \
    ((gex_Event_t)(uintptr_t)1) /* nothing was started (GEX_FLAG_IMMEDIATE only); not to be synced \
                                 */

/* What may stand where a pointer to an event is taken: when may the source be reused? */
#define GEX_EVENT_NOW ((gex_Event_t *)(uintptr_t)1) /* when the call returns */
#define GEX_EVENT_DEFER                                                                            \
    ((gex_Event_t *)(uintptr_t)2) /* not before the operation itself is complete */
#define GEX_EVENT_GROUP                                                                            \
    ((gex_Event_t *)(uintptr_t)3) /* when the thread syncs its implicit operations */

/* Do nothing and say so rather than wait for resources. */
#define GEX_FLAG_IMMEDIATE (1U << 0)

/* Handler registration: one message category and one direction */
#define GEX_FLAG_AM_SHORT   (1U << 0)
#define GEX_FLAG_AM_MEDIUM  (1U << 1)
#define GEX_FLAG_AM_LONG    (1U << 2)
#define GEX_FLAG_AM_MEDLONG (GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_LONG)
#define GEX_FLAG_AM_REQUEST (1U << 3)
#define GEX_FLAG_AM_REPLY   (1U << 4)
#define GEX_FLAG_AM_REQREP  (GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_REPLY)

/* Limit queries: the largest least_payload that Prepare takes, in the client's buffer or in one of
 * the library's. */
#define GEX_FLAG_AM_PREPARE_LEAST_CLIENT (1U << 11)
#define GEX_FLAG_AM_PREPARE_LEAST_ALLOC  (1U << 12)

#endif
