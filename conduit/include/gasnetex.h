/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The EX interface of Trunkline: everything a client calls. Compile with exactly one of GASNET_SEQ,
 * GASNET_PARSYNC and GASNET_PAR defined and link with the library of the same name.
 *
 * Unless a comment says otherwise: sizes are in bytes; a function that returns int returns
 * GASNET_OK (0) or a GASNET_ERR_* code; calls come from one thread in SEQ, from one thread at a
 * time in PARSYNC, from any thread at any time in PAR; and only calls marked [handler] may be made
 * from a handler or with a gex_HSL_t held. Misuse ends the job with one line that gives the
 * reason. */
#ifndef GASNETEX_H
#define GASNETEX_H

/* The thread mode of the tools follows from the conduit's, and their objects are in its library. */
#if defined(GASNET_TOOLS_H)
#    error "include gasnetex.h before gasnet_tools.h"
#endif

#include "gasnet_config.h"
#include "gasnet_portable_platform.h"
#include "gasnet-tools/basic.h"
#include "gasnet-tools/guard.h"
#include "gasnet_fwd.h"
#include "gasnet_core_fwd.h"
#include "trunkline_line.h"

/* ---- Compilation ---- */

#if !defined(TRUNKLINE_ANY_MODE)
#    if defined(GASNET_SEQ) + defined(GASNET_PARSYNC) + defined(GASNET_PAR) != 1
#        error                                                                                     \
            "define exactly one of GASNET_SEQ, GASNET_PARSYNC, GASNET_PAR (for example -DGASNET_PAR)"
#    endif
#endif

#if defined(GASNET_DEBUG) && (defined(__OPTIMIZE__) || defined(NDEBUG))
#    error                                                                                         \
        "this is a debug library (-debug, or configured with --enable-debug): compile its clients without optimisation and without NDEBUG"
#endif

/* A client may have defined the macro with any value, or none. */
#if !defined(TRUNKLINE_ANY_MODE)
#    if defined(GASNET_SEQ)
#        undef GASNET_SEQ
#        define GASNET_SEQ            1
#        define TRUNKLINE_MODE        seq
#        define TRUNKLINE_THREADMODEL "SEQ"
#    elif defined(GASNET_PARSYNC)
#        undef GASNET_PARSYNC
#        define GASNET_PARSYNC        1
#        define TRUNKLINE_MODE        parsync
#        define TRUNKLINE_THREADMODEL "PARSYNC"
#    else
#        undef GASNET_PAR
#        define GASNET_PAR            1
#        define TRUNKLINE_MODE        par
#        define TRUNKLINE_THREADMODEL "PAR"
#    endif
#endif

#if defined(GASNET_DEBUG)
#    define TRUNKLINE_CHECKING      debug
#    define TRUNKLINE_CHECKING_NAME "debug"
#else
#    define TRUNKLINE_CHECKING      ndebug
#    define TRUNKLINE_CHECKING_NAME "nodebug"
#endif

#if defined(GASNET_STATS)
#    define TRUNKLINE_STATS_NAME "stats"
#else
#    define TRUNKLINE_STATS_NAME "nostats"
#endif

#if GASNETI_DEBUG_MALLOC
#    define TRUNKLINE_HEAP_NAME "debugmalloc"
#else
#    define TRUNKLINE_HEAP_NAME "nodebugmalloc"
#endif

#if defined(GASNET_TRACE)
#    define TRUNKLINE_TRACE_NAME "trace"
#else
#    define TRUNKLINE_TRACE_NAME "notrace"
#endif

#define GEX_SPEC_VERSION_MAJOR GASNETI_EX_SPEC_VERSION_MAJOR
#define GEX_SPEC_VERSION_MINOR GASNETI_EX_SPEC_VERSION_MINOR

#define TRUNKLINE_STRING_(x) #x
#define TRUNKLINE_STRING(x)  TRUNKLINE_STRING_(x)

/* One part per line; names and order are as in other libraries of this interface. */
/* clang-format off */
#define GASNET_CONFIG_STRING                                                                       \
    "RELEASE=" TRUNKLINE_STRING(GASNETI_RELEASE_VERSION)                                           \
    ",SPEC=" TRUNKLINE_STRING(GEX_SPEC_VERSION_MAJOR) "." TRUNKLINE_STRING(GEX_SPEC_VERSION_MINOR) \
    ",CONDUIT=IBV(IBV-" GASNET_CORE_VERSION_STR "/IBV-" GASNET_EXTENDED_VERSION_STR ")"            \
    ",THREADMODEL=" TRUNKLINE_THREADMODEL                                                          \
    ",SEGMENT=" TRUNKLINE_SEGMENT_NAME                                                             \
    ",PTR=64bit,noalign,pshm," TRUNKLINE_CHECKING_NAME                                             \
    "," TRUNKLINE_TRACE_NAME "," TRUNKLINE_STATS_NAME "," TRUNKLINE_HEAP_NAME                    \
    ",nosrclines,timers_native,membars_native,atomics_native,atomic32_native,atomic64_native"
/* clang-format on */

#define TRUNKLINE_INLINE static __inline__ __attribute__((__unused__))

#if !defined(TRUNKLINE_ANY_MODE)
#    if defined(GASNET_PAR)
#        include <pthread.h>
#    endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Threading mode, checking, kind of segment and version of the ABI, in which this object and its
 * library must agree. */
#if !defined(TRUNKLINE_ANY_MODE)
#    if defined(GASNET_SEGMENT_LARGE)
#        define TRUNKLINE_SEGMENT large
#    elif defined(GASNET_SEGMENT_EVERYTHING)
#        define TRUNKLINE_SEGMENT everything
#    else
#        define TRUNKLINE_SEGMENT fast
#    endif
#    define TRUNKLINE_GUARD_(mode, checking, segment)                                              \
        trunkline_needs_gasnet_ibv_##mode##_##checking##_##segment##_v1
#    define TRUNKLINE_GUARD_OF(mode, checking, segment) TRUNKLINE_GUARD_(mode, checking, segment)
#    define TRUNKLINE_GUARD                                                                        \
        TRUNKLINE_GUARD_OF(TRUNKLINE_MODE, TRUNKLINE_CHECKING, TRUNKLINE_SEGMENT)
#    if !defined(TRUNKLINE_INSIDE)
TRUNKLINE_NEED(trunkline_guard, TRUNKLINE_GUARD);
#    endif
#endif

/* ---- Types ---- */

typedef struct trunkline_client *gex_Client_t;
typedef struct trunkline_ep *gex_EP_t;
typedef struct trunkline_tm *gex_TM_t;
typedef struct trunkline_segment *gex_Segment_t;
typedef struct trunkline_token *gex_Token_t;
typedef struct trunkline_srcdesc *gex_AM_SrcDesc_t;
typedef struct trunkline_kind *gex_MK_t;

#define GEX_CLIENT_INVALID  ((gex_Client_t)(uintptr_t)0)
#define GEX_EP_INVALID      ((gex_EP_t)(uintptr_t)0)
#define GEX_TM_INVALID      ((gex_TM_t)(uintptr_t)0)
#define GEX_SEGMENT_INVALID ((gex_Segment_t)(uintptr_t)0)
#define GEX_MK_INVALID      ((gex_MK_t)(uintptr_t)0)

/* Host memory; gasnet_mk.h declares the calls for other kinds. */
#define GEX_MK_HOST ((gex_MK_t)(uintptr_t)1)

/* Nothing was prepared (GEX_FLAG_IMMEDIATE only). */
#define GEX_AM_SRCDESC_NO_OP ((gex_AM_SrcDesc_t)(uintptr_t)0)

typedef uint8_t gex_AM_Index_t;
typedef int32_t gex_AM_Arg_t;

/* The interface defines a pointer to a function with unspecified arguments; newer compilers warn
 * about these although C still has them. */
#if defined(__GNUC__) && !defined(__cplusplus)
#    pragma GCC diagnostic push
#    pragma GCC diagnostic ignored "-Wstrict-prototypes"
#endif
typedef void (*gex_AM_Fn_t)();
#if defined(__GNUC__) && !defined(__cplusplus)
#    pragma GCC diagnostic pop
#endif

typedef void *gasnet_threadinfo_t;

typedef struct {
    void *addr;
    uintptr_t size;
} gasnet_seginfo_t;

typedef struct {
    gex_Rank_t host;      /* the same for processes of one host */
    gex_Rank_t supernode; /* the same for processes that share memory */
    uintptr_t offset;     /* owner's address + offset = address in this process; 0: none */
} gasnet_nodeinfo_t;

/* Has a tag because in C++ an untagged const type has no linkage, and neither have client functions
 * that take it. */
typedef const struct trunkline_rank_info {
    gex_Rank_t gex_jobrank;
} gex_RankInfo_t;

/* A range of memory. */
typedef struct {
    void *gex_addr;
    size_t gex_len;
} gex_Memvec_t;

/* ---- Errors ---- */

#define GASNET_OK                   0
#define GASNET_ERR_NOT_INIT         10001 /* not initialised yet */
#define GASNET_ERR_RESOURCE         10002 /* a resource is exhausted, or could not be registered */
#define GASNET_ERR_BAD_ARG          10003
#define GASNET_ERR_NOT_READY        10004 /* not complete yet; lock busy */
#define GASNET_ERR_BARRIER_MISMATCH 10005

/* The macro's name, "*unknown*" for other numbers. [handler] */
const char *gasnet_ErrorName(int error);

/* A description for people. [handler] */
const char *gasnet_ErrorDesc(int error);

/* ---- Start and end ---- */

/* Collective over the job, once per process. Creates the client, its endpoint and the team of all
 * processes; `argc` and `argv` may both be NULL. flags: GEX_FLAG_USES_GASNET1,
 * GEX_FLAG_DEFER_THREADS, the same everywhere. Start-up failures print one line and end the
 * process. */
int gex_Client_Init(gex_Client_t *client_p, gex_EP_t *ep_p, gex_TM_t *tm_p, const char *client_name,
                    int *argc, char ***argv, gex_Flags_t flags);

/* Ends the whole job with `exitcode`; never returns. May be called from any thread and from
 * handlers. Standard output and error are flushed; atexit() functions of the client do not run.
 * [handler] */
void gasnet_exit(int exitcode) __attribute__((__noreturn__));

/* A variable of the job's environment, NULL when unset. Valid after gex_Client_Init(). */
char *gasnet_getenv(const char *name);

/* ---- Client, endpoint, team ---- */

/* All of these: [handler]. CData is one pointer per object that belongs to the client, initially
 * NULL. */

gex_Flags_t gex_Client_QueryFlags(gex_Client_t client);
const char *gex_Client_QueryName(gex_Client_t client);
void gex_Client_SetCData(gex_Client_t client, const void *value);
void *gex_Client_QueryCData(gex_Client_t client);

gex_Client_t gex_EP_QueryClient(gex_EP_t ep);
gex_Flags_t gex_EP_QueryFlags(gex_EP_t ep);
gex_Segment_t gex_EP_QuerySegment(gex_EP_t ep); /* GEX_SEGMENT_INVALID when none is bound */
gex_EP_Index_t gex_EP_QueryIndex(gex_EP_t ep);
void gex_EP_SetCData(gex_EP_t ep, const void *value);
void *gex_EP_QueryCData(gex_EP_t ep);

/* Creates an endpoint besides that of gex_Client_Init(), GASNET_MAXEPS in all. Local; not
 * [handler]. Without GEX_EP_CAPABILITY_AM it has no handlers and sends no messages. flags:
 * GEX_FLAG_HINT_ACCEL_*. */
int gex_EP_Create(gex_EP_t *ep_p, gex_Client_t client, gex_EP_Capabilities_t capabilities,
                  gex_Flags_t flags);

/* Names endpoint `remote_ep_index` of any process as the peer of our `local_ep`, in place of a
 * team, in all calls for puts, gets, messages and their limits, and in queries of bound segments;
 * ranks are then ranks of the job. Equal arguments give equal values; nothing has to be freed. */
gex_TM_t gex_TM_Pair(gex_EP_t local_ep, gex_EP_Index_t remote_ep_index);

gex_Client_t gex_TM_QueryClient(gex_TM_t tm);
gex_EP_t gex_TM_QueryEP(gex_TM_t tm);
gex_Flags_t gex_TM_QueryFlags(gex_TM_t tm);
gex_Rank_t gex_TM_QueryRank(gex_TM_t tm);
gex_Rank_t gex_TM_QuerySize(gex_TM_t tm);
void gex_TM_SetCData(gex_TM_t tm, const void *value);
void *gex_TM_QueryCData(gex_TM_t tm);

/* Creating and destroying teams; not [handler]. Collective over the parent (Destroy: over the
 * team); wrong arguments, and arguments on which members do not agree, end the job.
 *
 * Split: callers with the same `color`, not negative, form a team, ordered by `key` and then by
 * rank in the parent; `new_tm_p` NULL only takes part. Scratch memory, which the library owns until
 * the team is destroyed, lies inside the segment of the caller's endpoint and has the same size in
 * all of a team; flags: GEX_FLAG_TM_NO_SCRATCH for none. With GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED
 * it creates nothing and returns a size, 0 with `new_tm_p` NULL; otherwise 1. */
size_t gex_TM_Split(gex_TM_t *new_tm_p, gex_TM_t parent_tm, int color, int key, void *scratch_addr,
                    size_t scratch_size, gex_Flags_t flags);

/* `args` has all members of the caller's team in order of rank, each a rank of the parent (with
 * GEX_FLAG_RANK_IS_JOBRANK: of the job) and an endpoint index; `numargs` 0 only takes part.
 * `num_new_tms` of them are endpoints of the caller's process; `new_tms` receives their teams, by
 * rank. One of GEX_FLAG_TM_SYMMETRIC_SCRATCH (one address for all), _LOCAL_SCRATCH (one for each of
 * the caller's members), _GLOBAL_SCRATCH (one for each member) and _NO_SCRATCH. */
size_t gex_TM_Create(gex_TM_t *new_tms, size_t num_new_tms, gex_TM_t parent_tm,
                     gex_EP_Location_t *args, size_t numargs, gex_Addr_t *scratch_addrs,
                     size_t scratch_size, gex_Flags_t flags);

/* After collectives of the caller on the team have completed; not for the team of
 * gex_Client_Init(). Waits for all members, unless flags are GEX_FLAG_GLOBALLY_QUIESCED or a
 * process has several. If there was scratch memory and `scratch_p` is not NULL, stores it there and
 * returns non-zero. */
int gex_TM_Destroy(gex_TM_t tm, gex_Memvec_t *scratch_p, gex_Flags_t flags);

/* Translations; not [handler]. */
gex_Rank_t gex_TM_TranslateRankToJobrank(gex_TM_t tm, gex_Rank_t rank);
gex_Rank_t
gex_TM_TranslateJobrankToRank(gex_TM_t tm,
                              gex_Rank_t jobrank); /* GEX_RANK_INVALID when not in the team */
gex_EP_Location_t gex_TM_TranslateRankToEP(gex_TM_t tm, gex_Rank_t rank,
                                           gex_Flags_t flags); /* flags: 0 */

/* ---- Segments ---- */

/* Collective over the team of all processes, once. `size` is a non-zero multiple of
 * GASNET_PAGESIZE, at most gasnet_getMaxLocalSegmentSize(), and may differ between processes. If
 * one process fails, none has a segment and all get an error: GASNET_ERR_BAD_ARG if the arguments
 * of the caller were wrong, GASNET_ERR_RESOURCE otherwise. They may try again. */
int gex_Segment_Attach(gex_Segment_t *segment_p, gex_TM_t tm, uintptr_t size);

/* Local: creates a segment of `length` bytes, not 0, at `address`, which the client keeps allocated
 * until gex_Segment_Destroy(), or, with address NULL, in memory of the library. kind: GEX_MK_HOST,
 * or one of gex_MK_Create(): then `address` is one of its device, and the segment must lie in one
 * allocation; with address NULL its length is rounded up. flags: 0. GASNET_ERR_RESOURCE if the
 * memory cannot be allocated or registered. */
int gex_Segment_Create(gex_Segment_t *segment_p, gex_Client_t client, gex_Addr_t address,
                       uintptr_t length, gex_MK_t kind, gex_Flags_t flags);

/* Not allowed for the segment of gex_Segment_Attach(), nor while any process uses the segment.
 * flags: 0. */
void gex_Segment_Destroy(gex_Segment_t segment, gex_Flags_t flags);

/* Local. GASNET_ERR_BAD_ARG for GEX_SEGMENT_INVALID, if the endpoint has a segment already, and for
 * a segment in the memory of a device with endpoint 0. flags: 0. */
int gex_EP_BindSegment(gex_EP_t ep, gex_Segment_t segment, gex_Flags_t flags);

/* Collective over the team: makes the segments bound to `eps`, which may be none, known to all
 * processes of the team. flags: 0. */
int gex_EP_PublishBoundSegment(gex_TM_t tm, gex_EP_t *eps, size_t num_eps, gex_Flags_t flags);

gex_Client_t gex_Segment_QueryClient(gex_Segment_t segment); /* [handler], like the next five */
gex_Flags_t gex_Segment_QueryFlags(gex_Segment_t segment);
void *gex_Segment_QueryAddr(gex_Segment_t segment);
uintptr_t gex_Segment_QuerySize(gex_Segment_t segment);
void gex_Segment_SetCData(gex_Segment_t segment, const void *value);
void *gex_Segment_QueryCData(gex_Segment_t segment);

/* Address and size of the segment of an endpoint: its address at the owner, and in this process
 * (NULL if loads and stores cannot reach it). Any pointer may be NULL. Without a segment *size_p
 * becomes 0. [handler] with GEX_FLAG_IMMEDIATE. */
gex_Event_t gex_EP_QueryBoundSegmentNB(gex_TM_t tm, gex_Rank_t rank, void **owneraddr_p,
                                       void **localaddr_p, uintptr_t *size_p, gex_Flags_t flags);

/* The older form: without a segment it returns non-zero and writes nothing. */
int gex_Segment_QueryBound(gex_TM_t tm, gex_Rank_t rank, void **owneraddr_p, void **localaddr_p,
                           uintptr_t *size_p);

/* The largest possible segment of this process, and the smallest such value over the job. */
uintptr_t gasnet_getMaxLocalSegmentSize(void);
uintptr_t gasnet_getMaxGlobalSegmentSize(void);

/* Fills the first min(numentries, job size) entries with the segments of all processes. */
int gasnet_getSegmentInfo(gasnet_seginfo_t *table, int numentries);

/* Weak: a client may define its own. The first is a value for GASNET_MAX_SEGSIZE, used if that is
 * not set; the second is the same in bytes; the third is called with the new local segment. */
extern const char *gasnet_max_segsize_str;
extern uint64_t gasnet_max_segsize;
extern void (*gasnet_client_attach_hook)(void *addr, uintptr_t size);

/* ---- Active messages ---- */

#define GEX_AM_INDEX_BASE 128

/* The order of members is fixed: clients initialise by position. */
typedef struct {
    gex_AM_Index_t gex_index; /* GEX_AM_INDEX_BASE..255, or 0: assigned and written back */
    gex_AM_Fn_t gex_fnptr;
    gex_Flags_t
        gex_flags; /* GEX_FLAG_AM_SHORT, MEDIUM, LONG or MEDLONG, with REQUEST, REPLY or REQREP */
    unsigned int gex_nargs;
    const void *gex_cdata;
    const char *gex_name;
} gex_AM_Entry_t;

/* Local. Fixed indices are registered first; then entries with index 0 get the highest free ones,
 * from 255 down, in table order. GASNET_ERR_RESOURCE if an index is taken or below the base, or
 * none is free. */
int gex_EP_RegisterHandlers(gex_EP_t ep, gex_AM_Entry_t *table, size_t numentries);

typedef unsigned int gex_TI_t;
#define GEX_TI_SRCRANK ((gex_TI_t)1 << 0)
#define GEX_TI_ENTRY   ((gex_TI_t)1 << 1)
#define GEX_TI_IS_REQ  ((gex_TI_t)1 << 2)
#define GEX_TI_IS_LONG ((gex_TI_t)1 << 3)
#define GEX_TI_EP      ((gex_TI_t)1 << 4)
#define GEX_TI_ALL     (((gex_TI_t)1 << 5) - 1)

typedef struct {
    gex_Rank_t gex_srcrank; /* job rank of the sender */
    gex_EP_t gex_ep;
    const gex_AM_Entry_t *gex_entry;
    int gex_is_req;
    int gex_is_long;
} gex_Token_Info_t;

/* Information on the message of a handler; returns which fields are valid. [handler] only */
gex_TI_t gex_Token_Info(gex_Token_t token, gex_Token_Info_t *info, gex_TI_t mask);

/* The largest payloads, constant for the life of the job; all [handler]. `other_rank`
 * GEX_RANK_INVALID: the smallest over all ranks. `lc_opt` and `flags` are examples of those that
 * the message will be sent with. The LUB forms are a lower bound of all of them. */
unsigned int gex_AM_MaxArgs(void);
size_t gex_AM_MaxRequestMedium(gex_TM_t tm, gex_Rank_t other_rank, const gex_Event_t *lc_opt,
                               gex_Flags_t flags, unsigned int numargs);
size_t gex_AM_MaxReplyMedium(gex_TM_t tm, gex_Rank_t other_rank, const gex_Event_t *lc_opt,
                             gex_Flags_t flags, unsigned int numargs);
size_t gex_AM_MaxRequestLong(gex_TM_t tm, gex_Rank_t other_rank, const gex_Event_t *lc_opt,
                             gex_Flags_t flags, unsigned int numargs);
size_t gex_AM_MaxReplyLong(gex_TM_t tm, gex_Rank_t other_rank, const gex_Event_t *lc_opt,
                           gex_Flags_t flags, unsigned int numargs);
size_t gex_AM_LUBRequestMedium(void);
size_t gex_AM_LUBReplyMedium(void);
size_t gex_AM_LUBRequestLong(void);
size_t gex_AM_LUBReplyLong(void);

/* The same for the reply to a request; in request handlers only. */
size_t gex_Token_MaxReplyMedium(gex_Token_t token, const gex_Event_t *lc_opt, gex_Flags_t flags,
                                unsigned int numargs);
size_t gex_Token_MaxReplyLong(gex_Token_t token, const gex_Event_t *lc_opt, gex_Flags_t flags,
                              unsigned int numargs);

/* A message in two calls. Prepare agrees on a size between least and most, and with `client_buf`
 * NULL provides a buffer of that size, aligned for any type; then `lc_opt` is NULL too. Commit
 * sends any size up to that. Between the two the thread may make only calls marked [handler]; it
 * can have one request and one reply prepared at a time. A Long's `dest` may be NULL here;
 * otherwise Commit must repeat it. With GEX_FLAG_IMMEDIATE Prepare may return GEX_AM_SRCDESC_NO_OP;
 * Commit never fails, and waits at most for this process's own device, or for a neighbour to take
 * messages. The forms with _v2 have commit_flags: with GEX_FLAG_IMMEDIATE they return non-zero
 * where the others wait, without a poll; then nothing was sent, and the descriptor is valid as
 * before. Cancel ends a Prepare without a message; the thread that prepared must call it. It
 * releases everything that Prepare took; client_buf belongs to the client again and lc_opt is not
 * written. flags: 0; returns 0. In handlers only the Reply forms are legal. The Commit forms are in
 * trunkline_am.h. */
gex_AM_SrcDesc_t gex_AM_PrepareRequestMedium(gex_TM_t tm, gex_Rank_t rank, const void *client_buf,
                                             size_t least_payload, size_t most_payload,
                                             gex_Event_t *lc_opt, gex_Flags_t flags,
                                             unsigned int numargs);
gex_AM_SrcDesc_t gex_AM_PrepareRequestLong(gex_TM_t tm, gex_Rank_t rank, const void *client_buf,
                                           size_t least_payload, size_t most_payload, void *dest,
                                           gex_Event_t *lc_opt, gex_Flags_t flags,
                                           unsigned int numargs);
gex_AM_SrcDesc_t gex_AM_PrepareReplyMedium(gex_Token_t token, const void *client_buf,
                                           size_t least_payload, size_t most_payload,
                                           gex_Event_t *lc_opt, gex_Flags_t flags,
                                           unsigned int numargs);
gex_AM_SrcDesc_t gex_AM_PrepareReplyLong(gex_Token_t token, const void *client_buf,
                                         size_t least_payload, size_t most_payload, void *dest,
                                         gex_Event_t *lc_opt, gex_Flags_t flags,
                                         unsigned int numargs);
void *gex_AM_SrcDescAddr(gex_AM_SrcDesc_t sd);
size_t gex_AM_SrcDescSize(gex_AM_SrcDesc_t sd);
int gex_AM_CancelRequestMedium(gex_AM_SrcDesc_t sd, gex_Flags_t flags);
int gex_AM_CancelRequestLong(gex_AM_SrcDesc_t sd, gex_Flags_t flags);
int gex_AM_CancelReplyMedium(gex_AM_SrcDesc_t sd, gex_Flags_t flags);
int gex_AM_CancelReplyLong(gex_AM_SrcDesc_t sd, gex_Flags_t flags);

#include "trunkline_am.h"

/* ---- Put and get ---- */

/* The caller asserts that the peer is not in its neighbourhood, or is not itself. */
#define GEX_FLAG_PEER_NEVER_NBRHD (1U << 14)
#define GEX_FLAG_PEER_NEVER_SELF  (1U << 15)

/* Remote memory must lie in the peer's segment; local memory may be any memory of this process, for
 * puts also read-only. No alignment is required and no order is guaranteed. The blocking forms
 * return 0, or non-zero if GEX_FLAG_IMMEDIATE was given and nothing was done. Each event must be
 * synced exactly once. */
int gex_RMA_PutBlocking(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes,
                        gex_Flags_t flags);
int gex_RMA_GetBlocking(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t nbytes,
                        gex_Flags_t flags);
gex_Event_t gex_RMA_GetNB(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t nbytes,
                          gex_Flags_t flags);

/* `lc_opt`: GEX_EVENT_NOW, GEX_EVENT_DEFER, or where to store an event that completes when `src`
 * may be reused; syncing that event is optional, and it is invalid once the put itself is
 * synced. */
gex_Event_t gex_RMA_PutNB(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes,
                          gex_Event_t *lc_opt, gex_Flags_t flags);

/* Without an event per operation: synced by gex_NBI_Test() and _Wait(). `lc_opt`: GEX_EVENT_NOW,
 * _DEFER or _GROUP. Returns 0 or non-zero like the blocking forms. */
int gex_RMA_PutNBI(gex_TM_t tm, gex_Rank_t rank, void *dest, const void *src, size_t nbytes,
                   gex_Event_t *lc_opt, gex_Flags_t flags);
int gex_RMA_GetNBI(gex_TM_t tm, void *dest, gex_Rank_t rank, void *src, size_t nbytes,
                   gex_Flags_t flags);

/* The low-order `nbytes` (1 to 8) of an integer, in the byte order of memory; Get extends with
 * zeros. */
typedef uint64_t gex_RMA_Value_t;
#define SIZEOF_GEX_RMA_VALUE_T 8

int gex_RMA_PutBlockingVal(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value,
                           size_t nbytes, gex_Flags_t flags);
gex_Event_t gex_RMA_PutNBVal(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value,
                             size_t nbytes, gex_Flags_t flags);
int gex_RMA_PutNBIVal(gex_TM_t tm, gex_Rank_t rank, void *dest, gex_RMA_Value_t value,
                      size_t nbytes, gex_Flags_t flags);
gex_RMA_Value_t gex_RMA_GetBlockingVal(gex_TM_t tm, gex_Rank_t rank, void *src, size_t nbytes,
                                       gex_Flags_t flags);

#include "trunkline_rma.h"

/* ---- Events ---- */

/* Test: GASNET_OK if the event is complete, and consumes it, otherwise GASNET_ERR_NOT_READY; never
 * runs handlers, never blocks. Wait: polls until complete. GEX_EVENT_NO_OP must not be synced,
 * alone or in an array. In the array forms each completed entry becomes GEX_EVENT_INVALID and such
 * entries are skipped; Some succeeds if at least one entry was completed or none is left, All if
 * none is left. flags: 0. */
void gex_Event_Wait(gex_Event_t event);
int gex_Event_TestSome(gex_Event_t *events, size_t numevents, gex_Flags_t flags);
void gex_Event_WaitSome(gex_Event_t *events, size_t numevents, gex_Flags_t flags);
int gex_Event_TestAll(gex_Event_t *events, size_t numevents, gex_Flags_t flags);
void gex_Event_WaitAll(gex_Event_t *events, size_t numevents, gex_Flags_t flags);

/* An event is a counter of pending work. If it is zero, testing needs no call, and the event is
 * consumed by a store; with --enable-debug the library is called, which checks. */
struct trunkline_event {
    int32_t trunkline_left;
};
enum { TRUNKLINE_EVENT_CONSUMED = -1 };
int trunkline_event_test(gex_Event_t event);

#if defined(GASNET_DEBUG)
#    define gex_Event_Test trunkline_event_test
#else
TRUNKLINE_INLINE int gex_Event_Test(gex_Event_t event)
{
    if (!event)
        return GASNET_OK;
    if (__atomic_load_n(&event->trunkline_left, __ATOMIC_ACQUIRE) > 0)
        return trunkline_event_test(event);
    __atomic_store_n(&event->trunkline_left, TRUNKLINE_EVENT_CONSUMED, __ATOMIC_RELEASE);
    return GASNET_OK;
}
#endif

/* A category of operations, or several or-ed. GEX_EC_AM and GEX_EC_LC are the same. */
typedef unsigned int gex_EC_t;
#define GEX_EC_PUT ((gex_EC_t)3) /* puts, with their local completion */
#define GEX_EC_GET ((gex_EC_t)4)
#define GEX_EC_AM  ((gex_EC_t)2) /* local completion of messages with GEX_EVENT_GROUP */
#define GEX_EC_LC  ((gex_EC_t)2) /* local completion of puts with GEX_EVENT_GROUP */
#define GEX_EC_RMW ((gex_EC_t)8) /* remote atomics, but for SET (PUT) and GET (GET) */
#define GEX_EC_ALL (~(gex_EC_t)0)

/* The leaf of a root event for one category: GEX_EC_PUT, _GET, _RMW or _LC of an event of
 * gex_NBI_EndAccessRegion(). Calls with the same arguments return the same event, which is invalid
 * once the root is synced. GEX_EVENT_INVALID returns itself. */
gex_Event_t gex_Event_QueryLeaf(gex_Event_t root, gex_EC_t event_category);

/* Sync the implicit operations that this thread started. flags: 0. */
int gex_NBI_Test(gex_EC_t event_mask, gex_Flags_t flags);
void gex_NBI_Wait(gex_EC_t event_mask, gex_Flags_t flags);

/* Implicit operations that this thread starts between Begin and End are synced by the event that
 * End returns, by any thread, instead of by the calls above. No nesting, and none of the calls
 * above in between. flags: 0. */
void gex_NBI_BeginAccessRegion(gex_Flags_t flags);
gex_Event_t gex_NBI_EndAccessRegion(gex_Flags_t flags);

/* ---- Barrier ---- */

/* Collective over the team. flags: 0. */
gex_Event_t gex_Coll_BarrierNB(gex_TM_t tm, gex_Flags_t flags);
void gex_Coll_BarrierBlocking(gex_TM_t tm, gex_Flags_t flags);

/* The named barrier of all processes, one at a time: each process notifies, then waits, or tries
 * until the result is not GASNET_ERR_NOT_READY. GASNET_ERR_BARRIER_MISMATCH, although all processes
 * have arrived: for all, if two of them notified with different names or one with MISMATCH; for a
 * process that waits with a name other than the agreed one. An ANONYMOUS process accepts any name;
 * UNNAMED asserts that all processes are anonymous. A notify never waits for others. */
#define GASNET_BARRIERFLAG_ANONYMOUS 1
#define GASNET_BARRIERFLAG_MISMATCH  2
#define GASNET_BARRIERFLAG_UNNAMED   9
void gasnet_barrier_notify(int id, int flags);
int gasnet_barrier_wait(int id, int flags);
int gasnet_barrier_try(int id, int flags);
int gasnet_barrier(int id, int flags); /* notify and wait */

/* The name that the last barrier agreed on; non-zero, with *id unchanged, if there is none: all
 * processes were anonymous, or names differed. [handler] */
int gasnet_barrier_result(int *id);

/* ---- Progress and waiting ---- */

/* Handles arrived messages, a bounded number. Returns GASNET_OK. */
int gasnet_AMPoll(void);

#define GASNET_WAIT_SPIN      0
#define GASNET_WAIT_BLOCK     1
#define GASNET_WAIT_SPINBLOCK 2

/* How waiting threads use the CPU. GASNET_ERR_BAD_ARG for other values. */
int gasnet_set_waitmode(int mode);

/* One poll for GASNET_BLOCKUNTIL, then the back-off for the number of empty polls in `*empty_polls`
 * (initially 0). */
void trunkline_wait_step(unsigned *empty_polls);

/* gcc cannot model fences under -fsanitize=thread and warns; a compiler barrier is enough for it
 * there. */
#if defined(__SANITIZE_THREAD__)
#    define TRUNKLINE_READ_BARRIER() __asm__ __volatile__("" : : : "memory")
#else
#    define TRUNKLINE_READ_BARRIER() __atomic_thread_fence(__ATOMIC_ACQUIRE)
#endif

/* Polls until a handler or another thread of this process makes `cond` true; does not poll if it is
 * true already. */
#define GASNET_BLOCKUNTIL(cond)                                                                    \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            unsigned trunkline_empty_polls = 0;                                                    \
            do                                                                                     \
                trunkline_wait_step(&trunkline_empty_polls);                                       \
            while (!(cond));                                                                       \
        }                                                                                          \
        TRUNKLINE_READ_BARRIER();                                                                  \
    } while (0)

/* Hints that other conduits use to find data of a thread; without effect here. The first reads as a
 * declaration because clients place it before their own. */
#define GASNET_BEGIN_FUNCTION()       struct trunkline_thread_hint
#define GASNET_GET_THREADINFO()       ((gasnet_threadinfo_t)0)
#define GASNET_POST_THREADINFO(hint_) ((void)(hint_))

/* ---- The system ---- */

/* All of these: [handler]. */

gex_Rank_t gex_System_QueryJobRank(void);
gex_Rank_t gex_System_QueryJobSize(void);

/* Names that are not part of the interface, but that clients use. */
#define gasneti_mynode gex_System_QueryJobRank()
#define gasneti_nodes  gex_System_QueryJobSize()

/* The processes that share memory with this one, and those of this host, sorted by job rank, itself
 * included; the tables belong to the library. Any pointer may be NULL. */
void gex_System_QueryNbrhdInfo(gex_RankInfo_t **info_p, gex_Rank_t *info_count_p,
                               gex_Rank_t *my_info_index_p);
void gex_System_QueryHostInfo(gex_RankInfo_t **info_p, gex_Rank_t *info_count_p,
                              gex_Rank_t *my_info_index_p);

/* The numbers of neighbourhoods and hosts, and the indices of our own. Any pointer may be NULL. */
void gex_System_QueryMyPosition(gex_Rank_t *nbrhd_set_size_p, gex_Rank_t *nbrhd_set_rank_p,
                                gex_Rank_t *host_set_size_p, gex_Rank_t *host_set_rank_p);

/* Fills the first min(numentries, job size) entries with the host and neighbourhood of each
 * process, both numbered from 0. */
int gasnet_getNodeInfo(gasnet_nodeinfo_t *table, int numentries);

/* Client threads that may be inside the library at once; 1 in SEQ. */
uint64_t gex_System_QueryMaxThreads(void);

/* Whether calls that return an error code also print a line (initially they do). */
int gex_System_GetVerboseErrors(void);
void gex_System_SetVerboseErrors(int enable);

/* Non-zero if handlers may run on a thread of the library. */
int gex_System_QueryHiddenAMConcurrencyLevel(void);

/* Threads that the client must start for the library if it passed GEX_FLAG_DEFER_THREADS (otherwise
 * GASNET_ERR_RESOURCE). gex_device_list names a device, or is "shm" in a job that has shared memory
 * alone. flags: 0. Not [handler]. */
#define GEX_THREAD_ROLE_RCV (1U << 0)
#define GEX_THREAD_ROLE_SND (1U << 1)
typedef struct {
    const char *gex_device_list;
    unsigned int gex_thread_roles;
    void *(*gex_progress_fn)(void *);
    void *gex_progress_arg;
} gex_ProgressThreadInfo_t;
int gex_System_QueryProgressThreads(gex_Client_t client, unsigned int *count_p,
                                    const gex_ProgressThreadInfo_t **info_p, gex_Flags_t flags);

/* ---- Handler-safe locks ---- */

#if !defined(TRUNKLINE_ANY_MODE)
#    include "trunkline_hsl.h"
#endif

/* Not part of the interface: a macro of GASNet's own tests that clients copy, for calls that must
 * succeed. A function, so that a client's macro of this name, defined later, replaces it without a
 * warning. */
#ifndef GASNET_Safe
static inline void GASNET_Safe(int error)
{
    if (error == GASNET_OK)
        return;
    fprintf(stderr, "a GASNet call failed: %s (%s)\n", gasnet_ErrorName(error),
            gasnet_ErrorDesc(error));
    gasnet_exit(error);
}
#endif

#ifdef __cplusplus
}
#endif

#if TRUNKLINE_HAS_LINES
#    include "trunkline_lines.h"
#endif

#endif
