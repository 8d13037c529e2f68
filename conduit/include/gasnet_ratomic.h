/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Remote atomics: operations on single numbers in the segments of a team, atomic with respect to
 * all others of the same domain. Owns nothing, locks nothing. */
#ifndef GASNET_RATOMIC_H
#define GASNET_RATOMIC_H

#include "gasnetex.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct trunkline_ad *gex_AD_t;
#define GEX_AD_INVALID ((gex_AD_t)(uintptr_t)0)

/* Collective over the team, with the same arguments everywhere; returns when all members have
 * called. `dt` is one type, `ops` the set of operations that will be used. flags: at most one of
 * GEX_FLAG_AD_FAVOR_*, hints. How a domain executes its operations (CPU, device, messages) is
 * chosen here. */
void gex_AD_Create(gex_AD_t *ad_p, gex_TM_t tm, gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags);

/* Collective over the team, after all operations have been completed on all members. */
void gex_AD_Destroy(gex_AD_t ad);

gex_Flags_t gex_AD_QueryFlags(gex_AD_t ad); /* [handler], like the next five */
gex_TM_t gex_AD_QueryTM(gex_AD_t ad);
gex_DT_t gex_AD_QueryDT(gex_AD_t ad);
gex_OP_t gex_AD_QueryOps(gex_AD_t ad);
void gex_AD_SetCData(gex_AD_t ad, const void *value);
void *gex_AD_QueryCData(gex_AD_t ad);

/* gex_AD_OpNB_<DT> returns an event, gex_AD_OpNBI_<DT> counts the operation among the implicit ones
 * of the thread: SET as GEX_EC_PUT, GET as GEX_EC_GET, all others as GEX_EC_RMW. `opcode` is one of
 * the domain's operations; `tgt_addr` is naturally aligned, in the segment of `tgt_rank`. Fetching
 * operations write the previous value to *result_p before they are complete; the others ignore it.
 * (F)CAS stores operand2 if the current value equals operand1; it compares floating-point numbers
 * bit by bit. MIN and MAX of floating-point numbers compare values: an operand that is a NaN
 * changes nothing, and between +0 and -0 the current value stays. flags: GEX_FLAG_IMMEDIATE,
 * GEX_FLAG_AD_REL, GEX_FLAG_AD_ACQ, one of GEX_FLAG_AD_MY_RANK and GEX_FLAG_AD_MY_NBRHD,
 * GEX_FLAG_RANK_IS_JOBRANK. */
#define TRUNKLINE_AD_DECLARE(DT, type)                                                             \
    gex_Event_t gex_AD_OpNB_##DT(gex_AD_t ad, type *result_p, gex_Rank_t tgt_rank, void *tgt_addr, \
                                 gex_OP_t opcode, type operand1, type operand2,                    \
                                 gex_Flags_t flags);                                               \
    int gex_AD_OpNBI_##DT(gex_AD_t ad, type *result_p, gex_Rank_t tgt_rank, void *tgt_addr,        \
                          gex_OP_t opcode, type operand1, type operand2, gex_Flags_t flags)

TRUNKLINE_AD_DECLARE(I32, int32_t);
TRUNKLINE_AD_DECLARE(U32, uint32_t);
TRUNKLINE_AD_DECLARE(I64, int64_t);
TRUNKLINE_AD_DECLARE(U64, uint64_t);
TRUNKLINE_AD_DECLARE(FLT, float);
TRUNKLINE_AD_DECLARE(DBL, double);

#include "trunkline_ratomic.h"

#ifdef __cplusplus
}
#endif

#if TRUNKLINE_HAS_LINES
#    define gex_AD_Create(...)     TRUNKLINE_AT(gex_AD_Create, __VA_ARGS__)
#    define gex_AD_Destroy(...)    TRUNKLINE_AT(gex_AD_Destroy, __VA_ARGS__)
#    define gex_AD_QueryFlags(...) TRUNKLINE_AT(gex_AD_QueryFlags, __VA_ARGS__)
#    define gex_AD_QueryTM(...)    TRUNKLINE_AT(gex_AD_QueryTM, __VA_ARGS__)
#    define gex_AD_QueryDT(...)    TRUNKLINE_AT(gex_AD_QueryDT, __VA_ARGS__)
#    define gex_AD_QueryOps(...)   TRUNKLINE_AT(gex_AD_QueryOps, __VA_ARGS__)
#    define gex_AD_SetCData(...)   TRUNKLINE_AT(gex_AD_SetCData, __VA_ARGS__)
#    define gex_AD_QueryCData(...) TRUNKLINE_AT(gex_AD_QueryCData, __VA_ARGS__)
#    define gex_AD_OpNB_I32(...)   TRUNKLINE_AT(gex_AD_OpNB_I32, __VA_ARGS__)
#    define gex_AD_OpNB_U32(...)   TRUNKLINE_AT(gex_AD_OpNB_U32, __VA_ARGS__)
#    define gex_AD_OpNB_I64(...)   TRUNKLINE_AT(gex_AD_OpNB_I64, __VA_ARGS__)
#    define gex_AD_OpNB_U64(...)   TRUNKLINE_AT(gex_AD_OpNB_U64, __VA_ARGS__)
#    define gex_AD_OpNB_FLT(...)   TRUNKLINE_AT(gex_AD_OpNB_FLT, __VA_ARGS__)
#    define gex_AD_OpNB_DBL(...)   TRUNKLINE_AT(gex_AD_OpNB_DBL, __VA_ARGS__)
#    define gex_AD_OpNBI_I32(...)  TRUNKLINE_AT(gex_AD_OpNBI_I32, __VA_ARGS__)
#    define gex_AD_OpNBI_U32(...)  TRUNKLINE_AT(gex_AD_OpNBI_U32, __VA_ARGS__)
#    define gex_AD_OpNBI_I64(...)  TRUNKLINE_AT(gex_AD_OpNBI_I64, __VA_ARGS__)
#    define gex_AD_OpNBI_U64(...)  TRUNKLINE_AT(gex_AD_OpNBI_U64, __VA_ARGS__)
#    define gex_AD_OpNBI_FLT(...)  TRUNKLINE_AT(gex_AD_OpNBI_FLT, __VA_ARGS__)
#    define gex_AD_OpNBI_DBL(...)  TRUNKLINE_AT(gex_AD_OpNBI_DBL, __VA_ARGS__)
#endif

#endif
