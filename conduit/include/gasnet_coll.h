/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Collectives, beside the barriers in gasnetex.h. First those of GASNet-EX, then those of GASNet-1.
 * Owns nothing, locks nothing.
 *
 * All members of a team start its collectives in the same order. Any number may be in flight on any
 * teams; any poll advances them, and they may be synced in any order. Buffers may lie anywhere in
 * local memory and belong to the library until the event is complete, which says nothing about
 * other members. flags: 0. */
#ifndef GASNET_COLL_H
#define GASNET_COLL_H

#include "gasnetex.h"

#ifdef __cplusplus
extern "C" {
#endif

/* `nbytes`, which may be 0, are copied from `src` of the root (ignored elsewhere) to `dst` of all
 * members. On the root the two may be equal; otherwise they must not overlap. */
gex_Event_t gex_Coll_BroadcastNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src,
                                 size_t nbytes, gex_Flags_t flags);

/* arg2_and_out[i] = arg1[i] op arg2_and_out[i] for `count` > 0 elements. Called by any thread
 * inside of any call of the library, by several threads at a time if they poll; must not call the
 * library. */
typedef void (*gex_Coll_ReduceFn_t)(const void *arg1, void *arg2_and_out, size_t count,
                                    const void *cdata);

/* Combines `dt_cnt` > 0 elements of `dt_sz` bytes of all members, element by element. dt: GEX_DT_*;
 * dt_sz is the size of the type; GEX_DT_USER allows any size. op: ADD, MULT, MIN, MAX and, for
 * integers, AND, OR, XOR; GEX_OP_USER, for all types, calls `user_op` with `user_cdata`. The result
 * is in `dst` of the root, or of all. Source and destination may be the same, in ReduceToAll on all
 * members or none.
 *
 * Operations must be associative and commutative, as far as it matters. The order in which operands
 * are combined depends on the number of members, their placement on hosts, the root and the size,
 * never on timing; GASNET_COLL_REPRODUCIBLE=1 makes it independent of placement. */
gex_Event_t gex_Coll_ReduceToOneNB(gex_TM_t tm, gex_Rank_t root, void *dst, const void *src,
                                   gex_DT_t dt, size_t dt_sz, size_t dt_cnt, gex_OP_t op,
                                   gex_Coll_ReduceFn_t user_op, void *user_cdata,
                                   gex_Flags_t flags);
gex_Event_t gex_Coll_ReduceToAllNB(gex_TM_t tm, void *dst, const void *src, gex_DT_t dt,
                                   size_t dt_sz, size_t dt_cnt, gex_OP_t op,
                                   gex_Coll_ReduceFn_t user_op, void *user_cdata,
                                   gex_Flags_t flags);

/* ---- GASNet-1 ---- */

typedef gex_TM_t gasnet_team_handle_t;
typedef gex_Event_t gasnet_coll_handle_t;
typedef uint32_t gasnet_image_t; /* a rank */

extern const gex_TM_t trunkline_world;
#define GASNET_TEAM_ALL       ((gasnet_team_handle_t)trunkline_world)
#define gasnete_coll_team_all GASNET_TEAM_ALL /* what some clients call it */

#define GASNET_COLL_INVALID_HANDLE GEX_EVENT_INVALID

/* How a collective synchronises at its beginning and at its end; one of each. ALLSYNC: as a barrier
 * does. MYSYNC: no data of a rank is read or written before it enters, or after it leaves. NOSYNC
 * is treated as MYSYNC. */
#define GASNET_COLL_IN_NOSYNC      (1 << 0)
#define GASNET_COLL_IN_MYSYNC      (1 << 1)
#define GASNET_COLL_IN_ALLSYNC     (1 << 2)
#define GASNET_COLL_OUT_NOSYNC     (1 << 3)
#define GASNET_COLL_OUT_MYSYNC     (1 << 4)
#define GASNET_COLL_OUT_ALLSYNC    (1 << 5)
#define GASNET_COLL_SYNC_FLAG_MASK (0x3F)

/* Addresses are those of the calling rank's memory; the other form no longer exists. */
#define GASNET_COLL_LOCAL  (1 << 7)
#define GASNET_COLL_SINGLE GASNET_COLL_SINGLE was removed from the interface

/* Accepted and ignored. */
#define GASNET_COLL_AMSAFE                 (1 << 0)
#define GASNET_COLL_NONCOMM                (1 << 1)
#define GASNET_COLL_FIXED_THREADS_PER_NODE (1 << 9)
#define GASNET_COLL_DST_IN_SEGMENT         (1 << 10)
#define GASNET_COLL_SRC_IN_SEGMENT         (1 << 11)
#define GASNET_COLL_DISABLE_AUTOTUNE       (1 << 18)
#define GASNET_COLL_NO_IMAGES              (1 << 19)

/* broadcast: `src` of `srcimage` to `dst` of all. scatter: its i-th `nbytes` to rank i. gather: the
 * inverse. gather_all: to all. exchange: block j of rank i becomes block i of rank j. */
void gasnet_coll_broadcast(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage, void *src,
                           size_t nbytes, int flags);
void gasnet_coll_scatter(gasnet_team_handle_t team, void *dst, gasnet_image_t srcimage, void *src,
                         size_t nbytes, int flags);
void gasnet_coll_gather(gasnet_team_handle_t team, gasnet_image_t dstimage, void *dst, void *src,
                        size_t nbytes, int flags);
void gasnet_coll_gather_all(gasnet_team_handle_t team, void *dst, void *src, size_t nbytes,
                            int flags);
void gasnet_coll_exchange(gasnet_team_handle_t team, void *dst, void *src, size_t nbytes,
                          int flags);
gasnet_coll_handle_t gasnet_coll_broadcast_nb(gasnet_team_handle_t team, void *dst,
                                              gasnet_image_t srcimage, void *src, size_t nbytes,
                                              int flags);
gasnet_coll_handle_t gasnet_coll_scatter_nb(gasnet_team_handle_t team, void *dst,
                                            gasnet_image_t srcimage, void *src, size_t nbytes,
                                            int flags);
gasnet_coll_handle_t gasnet_coll_gather_nb(gasnet_team_handle_t team, gasnet_image_t dstimage,
                                           void *dst, void *src, size_t nbytes, int flags);
gasnet_coll_handle_t gasnet_coll_gather_all_nb(gasnet_team_handle_t team, void *dst, void *src,
                                               size_t nbytes, int flags);
gasnet_coll_handle_t gasnet_coll_exchange_nb(gasnet_team_handle_t team, void *dst, void *src,
                                             size_t nbytes, int flags);

/* As gex_Event_Test() and so on, except that "try" polls once first. */
int gasnet_coll_try_sync(gasnet_coll_handle_t handle);
int gasnet_coll_try_sync_some(gasnet_coll_handle_t *phandle, size_t numhandles);
int gasnet_coll_try_sync_all(gasnet_coll_handle_t *phandle, size_t numhandles);
void gasnet_coll_wait_sync(gasnet_coll_handle_t handle);
void gasnet_coll_wait_sync_some(gasnet_coll_handle_t *phandle, size_t numhandles);
void gasnet_coll_wait_sync_all(gasnet_coll_handle_t *phandle, size_t numhandles);

/* The named barrier; team: GASNET_TEAM_ALL. */
void gasnet_coll_barrier_notify(gasnet_team_handle_t team, int id, int flags);
int gasnet_coll_barrier_try(gasnet_team_handle_t team, int id, int flags);
int gasnet_coll_barrier_wait(gasnet_team_handle_t team, int id, int flags);
int gasnet_coll_barrier(gasnet_team_handle_t team, int id, int flags);
int gasnet_coll_barrier_result(gasnet_team_handle_t team, int *id);

/* Tuning by the client: accepted and ignored. GASNET_COLL_ALGORITHM forces algorithms. */
typedef enum {
    GASNET_COLL_BROADCAST_OP,
    GASNET_COLL_SCATTER_OP,
    GASNET_COLL_GATHER_OP,
    GASNET_COLL_GATHER_ALL_OP,
    GASNET_COLL_EXCHANGE_OP,
    GASNET_COLL_NUM_COLL_OPTYPES
} gasnet_coll_optype_t;

typedef enum {
    GASNET_COLL_PIPE_SEG_SIZE,
    GASNET_COLL_DISSEM_RADIX,
    GASNET_COLL_TREE_TYPE,
    GASNET_COLL_NUM_PARAM_TYPES
} gasnet_coll_tuning_param_type_t;

typedef void (*gasnet_coll_overlap_sample_work_t)(void *arg);

void gasnet_coll_loadTuningState(char *filename, gasnet_team_handle_t team);
void gasnet_coll_dumpTuningState(char *filename, gasnet_team_handle_t team);
void gasnet_coll_dumpProfile(char *filename, gasnet_team_handle_t team);
void gasnet_coll_set_tree_kind(gasnet_team_handle_t team, int tree_type, int fanout,
                               gasnet_coll_optype_t optype);
void gasnet_coll_set_dissem_limit(gasnet_team_handle_t team, size_t dissemlimit,
                                  gasnet_coll_optype_t optype);
int gasnet_coll_get_num_tree_classes(gasnet_team_handle_t team, gasnet_coll_optype_t optype);

#ifdef __cplusplus
}
#endif

#if TRUNKLINE_HAS_LINES
#    define gex_Coll_BroadcastNB(...)        TRUNKLINE_AT(gex_Coll_BroadcastNB, __VA_ARGS__)
#    define gex_Coll_ReduceToOneNB(...)      TRUNKLINE_AT(gex_Coll_ReduceToOneNB, __VA_ARGS__)
#    define gex_Coll_ReduceToAllNB(...)      TRUNKLINE_AT(gex_Coll_ReduceToAllNB, __VA_ARGS__)
#    define gasnet_coll_broadcast(...)       TRUNKLINE_AT(gasnet_coll_broadcast, __VA_ARGS__)
#    define gasnet_coll_scatter(...)         TRUNKLINE_AT(gasnet_coll_scatter, __VA_ARGS__)
#    define gasnet_coll_gather(...)          TRUNKLINE_AT(gasnet_coll_gather, __VA_ARGS__)
#    define gasnet_coll_gather_all(...)      TRUNKLINE_AT(gasnet_coll_gather_all, __VA_ARGS__)
#    define gasnet_coll_exchange(...)        TRUNKLINE_AT(gasnet_coll_exchange, __VA_ARGS__)
#    define gasnet_coll_broadcast_nb(...)    TRUNKLINE_AT(gasnet_coll_broadcast_nb, __VA_ARGS__)
#    define gasnet_coll_scatter_nb(...)      TRUNKLINE_AT(gasnet_coll_scatter_nb, __VA_ARGS__)
#    define gasnet_coll_gather_nb(...)       TRUNKLINE_AT(gasnet_coll_gather_nb, __VA_ARGS__)
#    define gasnet_coll_gather_all_nb(...)   TRUNKLINE_AT(gasnet_coll_gather_all_nb, __VA_ARGS__)
#    define gasnet_coll_exchange_nb(...)     TRUNKLINE_AT(gasnet_coll_exchange_nb, __VA_ARGS__)
#    define gasnet_coll_try_sync(...)        TRUNKLINE_AT(gasnet_coll_try_sync, __VA_ARGS__)
#    define gasnet_coll_try_sync_some(...)   TRUNKLINE_AT(gasnet_coll_try_sync_some, __VA_ARGS__)
#    define gasnet_coll_try_sync_all(...)    TRUNKLINE_AT(gasnet_coll_try_sync_all, __VA_ARGS__)
#    define gasnet_coll_wait_sync(...)       TRUNKLINE_AT(gasnet_coll_wait_sync, __VA_ARGS__)
#    define gasnet_coll_wait_sync_some(...)  TRUNKLINE_AT(gasnet_coll_wait_sync_some, __VA_ARGS__)
#    define gasnet_coll_wait_sync_all(...)   TRUNKLINE_AT(gasnet_coll_wait_sync_all, __VA_ARGS__)
#    define gasnet_coll_barrier_notify(...)  TRUNKLINE_AT(gasnet_coll_barrier_notify, __VA_ARGS__)
#    define gasnet_coll_barrier_try(...)     TRUNKLINE_AT(gasnet_coll_barrier_try, __VA_ARGS__)
#    define gasnet_coll_barrier_wait(...)    TRUNKLINE_AT(gasnet_coll_barrier_wait, __VA_ARGS__)
#    define gasnet_coll_barrier(...)         TRUNKLINE_AT(gasnet_coll_barrier, __VA_ARGS__)
#    define gasnet_coll_barrier_result(...)  TRUNKLINE_AT(gasnet_coll_barrier_result, __VA_ARGS__)
#    define gasnet_coll_loadTuningState(...) TRUNKLINE_AT(gasnet_coll_loadTuningState, __VA_ARGS__)
#    define gasnet_coll_dumpTuningState(...) TRUNKLINE_AT(gasnet_coll_dumpTuningState, __VA_ARGS__)
#    define gasnet_coll_dumpProfile(...)     TRUNKLINE_AT(gasnet_coll_dumpProfile, __VA_ARGS__)
#    define gasnet_coll_set_tree_kind(...)   TRUNKLINE_AT(gasnet_coll_set_tree_kind, __VA_ARGS__)
#    define gasnet_coll_set_dissem_limit(...)                                                      \
        TRUNKLINE_AT(gasnet_coll_set_dissem_limit, __VA_ARGS__)
#    define gasnet_coll_get_num_tree_classes(...)                                                  \
        TRUNKLINE_AT(gasnet_coll_get_num_tree_classes, __VA_ARGS__)
#endif

#endif
