/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Active messages with negotiated payload: gex_AM_Prepare*, the functions behind gex_AM_Commit*,
 * and gex_AM_Cancel*. Owns the flag that limits a warning to one,
 * and each thread its copy of a peer; no lock. */
#include "config.h"

#include <stdatomic.h>

#include "api/between.h"
#include "api/check.h"
#include "base/report.h"
#include "base/thread_own.h"
#include "kind_rma/kind_long.h"
#include "message/message.h"
#include "progress/progress.h"
#include "team/objects.h"
#include "trace/trace.h"

#define CHECK_PREPARE(call, client_buf, least, most, limit, lc_opt)                                \
    TK_CHECK((least) <= (most), "%s: least_payload %zu is above most_payload %zu", call,           \
             (size_t)(least), (size_t)(most));                                                     \
    tk_if_unlikely((least) > (limit)) tk_panic("%s: least_payload %zu is above the limit %zu",     \
                                               call, (size_t)(least), (size_t)(limit));            \
    TK_CHECK((client_buf) != NULL || (lc_opt) == NULL,                                             \
             "%s: with client_buf NULL (a buffer of the library) lc_opt must be NULL", call)

#define CHECK_SD(call, sd, kind_, category_)                                                       \
    TK_CHECK_OBJECT(call, sd, GEX_AM_SRCDESC_NO_OP);                                               \
    TK_CHECK((sd)->open, "%s: nothing is prepared", call);                                         \
    TK_CHECK((sd) == tk_prepared(TK_REQUEST) || (sd) == tk_prepared(TK_REPLY),                     \
             "%s: the message was prepared by another thread, which alone may end it", call);      \
    TK_CHECK((sd)->reservation.kind == (kind_) && (sd)->category == (category_),                   \
             "%s: another kind of message was prepared", call)

#define CHECK_COMMIT(call, sd, nbytes, nargs_)                                                     \
    tk_if_unlikely((nbytes) > (sd)->size)                                                          \
        tk_panic("%s: %zu bytes are more than gex_AM_SrcDescSize, %zu", call, (size_t)(nbytes),    \
                 (sd)->size);                                                                      \
    TK_CHECK((nargs_) == (sd)->nargs, "%s: %u arguments, but %u were prepared", call, nargs_,      \
             (sd)->nargs);                                                                         \
    TK_CHECK(tk_hsls_held() == 0, "%s was called with a gex_HSL_t held", call)

#define CHECK_COMMIT_FLAGS(call, flags)                                                            \
    TK_CHECK(((flags) & ~GEX_FLAG_IMMEDIATE) == 0,                                                 \
             "%s: commit_flags 0x%x must be 0 or GEX_FLAG_IMMEDIATE", call, (unsigned)(flags))

#define CHECK_CANCEL(call, sd, kind, category, flags)                                              \
    (void)(flags);                                                                                 \
    CHECK_SD(call, sd, kind, category);                                                            \
    TK_CHECK((flags) == 0, "%s: flags 0x%x must be 0", call, (unsigned)(flags))

#define CHECK_COMMIT_DEST(call, sd, dest_, nbytes)                                                 \
    TK_CHECK(!(sd)->dest || (sd)->dest == (dest_), "%s: dest_addr %p, but %p was prepared", call,  \
             dest_, (sd)->dest);                                                                   \
    TK_CHECK_DEST(call, (sd)->reservation.peer, dest_, nbytes)

#define LONG_LIMIT(client_buf, nargs) ((client_buf) ? tk_long_max() : tk_long_packed_max(nargs))

static struct tk_message negotiated_message(enum tk_message_category category,
                                            const void *client_buf, void *dest, gex_Event_t *lc_opt,
                                            gex_Flags_t flags, unsigned nargs)
{
    return (struct tk_message){.category = (uint8_t)category,
                               .payload = client_buf,
                               .dest = dest,
                               .lc_opt = lc_opt,
                               .immediate = flags & GEX_FLAG_IMMEDIATE,
                               .nargs = nargs};
}

/* A descriptor refers to the copy of its peer until Commit or Cancel; a thread has one at a time.
 */
static struct tk_peer *prepare_peer(const char *call, gex_TM_t tm, gex_Rank_t rank)
{
    struct tk_peer *peers = tk_team_peers(tm);
    if (peers)
        return &peers[rank];
    return tk_peer_between(call, tk_thread_own(TK_OWN_PEER, sizeof(struct tk_ep_peer)), tm, rank);
}

/* The payload of a prepared Long is copied or read by this CPU in some cases, and where it will lie
 * may not be known yet. */
static void refuse_device(const char *call, const struct tk_peer *peer)
{
    tk_if_unlikely(!tk_ep_peer_is_plain(peer) && tk_kind_long_is_on_device(peer))
        tk_panic("%s: our endpoint %u or its peer of rank %u has memory of a device, for which "
                 "Longs can't be prepared; use gex_AM_RequestLong or gex_AM_ReplyLong",
                 call, tk_ep_peer_ours(peer), peer->rank);
}

static gex_AM_SrcDesc_t fill_pattern(gex_AM_SrcDesc_t sd)
{
    if (TK_IS_DEBUG && sd != GEX_AM_SRCDESC_NO_OP && sd->reservation.buffer)
        tk_pattern_fill(sd->address, sd->size);
    return sd;
}

gex_AM_SrcDesc_t gex_AM_PrepareRequestMedium(gex_TM_t tm, gex_Rank_t rank, const void *client_buf,
                                             size_t least_payload, size_t most_payload,
                                             gex_Event_t *lc_opt, gex_Flags_t flags,
                                             unsigned int numargs)
{
    TK_CHECK_REQUEST("gex_AM_PrepareRequestMedium", tm, rank, numargs);
    CHECK_PREPARE("gex_AM_PrepareRequestMedium", client_buf, least_payload, most_payload,
                  tk_medium_max(numargs), lc_opt);
    if (client_buf)
        TK_CHECK_LC_REQUEST("gex_AM_PrepareRequestMedium", lc_opt);
    struct tk_message m = negotiated_message(TK_MEDIUM, client_buf, NULL, lc_opt, flags, numargs);
    tk_request_take_turn(flags & GEX_FLAG_IMMEDIATE);
    m.peer = prepare_peer("gex_AM_PrepareRequestMedium", tm, rank);
    return fill_pattern(tk_prepare_request(&m, most_payload));
}

gex_AM_SrcDesc_t gex_AM_PrepareRequestLong(gex_TM_t tm, gex_Rank_t rank, const void *client_buf,
                                           size_t least_payload, size_t most_payload, void *dest,
                                           gex_Event_t *lc_opt, gex_Flags_t flags,
                                           unsigned int numargs)
{
    TK_CHECK_REQUEST("gex_AM_PrepareRequestLong", tm, rank, numargs);
    CHECK_PREPARE("gex_AM_PrepareRequestLong", client_buf, least_payload, most_payload,
                  LONG_LIMIT(client_buf, numargs), lc_opt);
    if (client_buf)
        TK_CHECK_LC_REQUEST("gex_AM_PrepareRequestLong", lc_opt);
    struct tk_message m = negotiated_message(TK_LONG, client_buf, dest, lc_opt, flags, numargs);
    tk_request_take_turn(flags & GEX_FLAG_IMMEDIATE);
    m.peer = prepare_peer("gex_AM_PrepareRequestLong", tm, rank);
    refuse_device("gex_AM_PrepareRequestLong", m.peer);
    return fill_pattern(tk_prepare_request(&m, most_payload));
}

gex_AM_SrcDesc_t gex_AM_PrepareReplyMedium(gex_Token_t token, const void *client_buf,
                                           size_t least_payload, size_t most_payload,
                                           gex_Event_t *lc_opt, gex_Flags_t flags,
                                           unsigned int numargs)
{
    TK_CHECK_REPLY("gex_AM_PrepareReplyMedium", token, numargs);
    CHECK_PREPARE("gex_AM_PrepareReplyMedium", client_buf, least_payload, most_payload,
                  tk_medium_max(numargs), lc_opt);
    if (client_buf)
        TK_CHECK_LC_REPLY("gex_AM_PrepareReplyMedium", lc_opt);
    struct tk_message m = negotiated_message(TK_MEDIUM, client_buf, NULL, lc_opt, flags, numargs);
    return fill_pattern(tk_prepare_reply(token, &m, most_payload));
}

gex_AM_SrcDesc_t gex_AM_PrepareReplyLong(gex_Token_t token, const void *client_buf,
                                         size_t least_payload, size_t most_payload, void *dest,
                                         gex_Event_t *lc_opt, gex_Flags_t flags,
                                         unsigned int numargs)
{
    TK_CHECK_REPLY("gex_AM_PrepareReplyLong", token, numargs);
    CHECK_PREPARE("gex_AM_PrepareReplyLong", client_buf, least_payload, most_payload,
                  LONG_LIMIT(client_buf, numargs), lc_opt);
    if (client_buf)
        TK_CHECK_LC_REPLY("gex_AM_PrepareReplyLong", lc_opt);
    struct tk_message m = negotiated_message(TK_LONG, client_buf, dest, lc_opt, flags, numargs);
    refuse_device("gex_AM_PrepareReplyLong", token->arrival.peer);
    return fill_pattern(tk_prepare_reply(token, &m, most_payload));
}

void *gex_AM_SrcDescAddr(gex_AM_SrcDesc_t sd)
{
    TK_CHECK_OBJECT("gex_AM_SrcDescAddr", sd, GEX_AM_SRCDESC_NO_OP);
    return sd->address;
}

size_t gex_AM_SrcDescSize(gex_AM_SrcDesc_t sd)
{
    TK_CHECK_OBJECT("gex_AM_SrcDescSize", sd, GEX_AM_SRCDESC_NO_OP);
    return sd->size;
}

/* Legal, but almost always a mistake. Logged once only, or it would flood the output of a
 * benchmark. */
static void check_pattern(gex_AM_SrcDesc_t sd, size_t nbytes)
{
    static atomic_flag is_logged = ATOMIC_FLAG_INIT;
    if (sd->reservation.buffer && tk_pattern_is_left(sd->address, nbytes) &&
        !atomic_flag_test_and_set(&is_logged))
        tk_log_warn(
            "gex_AM_Commit: %zu bytes are sent from the buffer that gex_AM_Prepare provided, but "
            "nothing was written to it (GASNET_SD_INIT=0 stops this check)",
            nbytes);
}

static struct tk_message commit_message(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                        void *dest, unsigned nargs, const gex_AM_Arg_t *args)
{
    if (TK_IS_DEBUG)
        check_pattern(sd, nbytes);
    return (struct tk_message){
        .handler = handler, .nbytes = nbytes, .dest = dest, .nargs = nargs, .args = args};
}

static void negotiated_commit(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                              void *dest, unsigned nargs, const gex_AM_Arg_t *args)
{
    struct tk_message m = commit_message(sd, handler, nbytes, dest, nargs, args);
    tk_commit(sd, &m);
}

static int commit_with_flags(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes, void *dest,
                             gex_Flags_t flags, unsigned nargs, const gex_AM_Arg_t *args)
{
    struct tk_message m = commit_message(sd, handler, nbytes, dest, nargs, args);
    if (flags & GEX_FLAG_IMMEDIATE)
        return tk_commit_at_once(sd, &m) != TK_OK;
    tk_commit(sd, &m);
    return 0;
}

void trunkline_am_commit_request_medium(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                        unsigned nargs, const gex_AM_Arg_t *args)
{
    TK_TRACED(request_medium, tk_trace_no_peer, nbytes);
    CHECK_SD("gex_AM_CommitRequestMedium", sd, TK_REQUEST, TK_MEDIUM);
    CHECK_COMMIT("gex_AM_CommitRequestMedium", sd, nbytes, nargs);
    TK_CHECK_HANDLER("gex_AM_CommitRequestMedium", handler);
    negotiated_commit(sd, handler, nbytes, NULL, nargs, args);
}

int trunkline_am_commit_request_medium_v2(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler,
                                          size_t nbytes, gex_Flags_t flags, unsigned nargs,
                                          const gex_AM_Arg_t *args)
{
    TK_TRACED(request_medium, tk_trace_no_peer, nbytes);
    CHECK_SD("gex_AM_CommitRequestMedium_v2", sd, TK_REQUEST, TK_MEDIUM);
    CHECK_COMMIT("gex_AM_CommitRequestMedium_v2", sd, nbytes, nargs);
    CHECK_COMMIT_FLAGS("gex_AM_CommitRequestMedium_v2", flags);
    TK_CHECK_HANDLER("gex_AM_CommitRequestMedium_v2", handler);
    return commit_with_flags(sd, handler, nbytes, NULL, flags, nargs, args);
}

void trunkline_am_commit_request_long(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                      void *dest, unsigned nargs, const gex_AM_Arg_t *args)
{
    TK_TRACED(request_long, tk_trace_no_peer, nbytes);
    CHECK_SD("gex_AM_CommitRequestLong", sd, TK_REQUEST, TK_LONG);
    CHECK_COMMIT("gex_AM_CommitRequestLong", sd, nbytes, nargs);
    TK_CHECK_HANDLER("gex_AM_CommitRequestLong", handler);
    CHECK_COMMIT_DEST("gex_AM_CommitRequestLong", sd, dest, nbytes);
    negotiated_commit(sd, handler, nbytes, dest, nargs, args);
}

int trunkline_am_commit_request_long_v2(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                        void *dest, gex_Flags_t flags, unsigned nargs,
                                        const gex_AM_Arg_t *args)
{
    TK_TRACED(request_long, tk_trace_no_peer, nbytes);
    CHECK_SD("gex_AM_CommitRequestLong_v2", sd, TK_REQUEST, TK_LONG);
    CHECK_COMMIT("gex_AM_CommitRequestLong_v2", sd, nbytes, nargs);
    CHECK_COMMIT_FLAGS("gex_AM_CommitRequestLong_v2", flags);
    TK_CHECK_HANDLER("gex_AM_CommitRequestLong_v2", handler);
    CHECK_COMMIT_DEST("gex_AM_CommitRequestLong_v2", sd, dest, nbytes);
    return commit_with_flags(sd, handler, nbytes, dest, flags, nargs, args);
}

void trunkline_am_commit_reply_medium(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                      unsigned nargs, const gex_AM_Arg_t *args)
{
    TK_TRACED(reply_medium, tk_trace_no_peer, nbytes);
    CHECK_SD("gex_AM_CommitReplyMedium", sd, TK_REPLY, TK_MEDIUM);
    CHECK_COMMIT("gex_AM_CommitReplyMedium", sd, nbytes, nargs);
    TK_CHECK_HANDLER("gex_AM_CommitReplyMedium", handler);
    negotiated_commit(sd, handler, nbytes, NULL, nargs, args);
}

int trunkline_am_commit_reply_medium_v2(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                        gex_Flags_t flags, unsigned nargs, const gex_AM_Arg_t *args)
{
    TK_TRACED(reply_medium, tk_trace_no_peer, nbytes);
    CHECK_SD("gex_AM_CommitReplyMedium_v2", sd, TK_REPLY, TK_MEDIUM);
    CHECK_COMMIT("gex_AM_CommitReplyMedium_v2", sd, nbytes, nargs);
    CHECK_COMMIT_FLAGS("gex_AM_CommitReplyMedium_v2", flags);
    TK_CHECK_HANDLER("gex_AM_CommitReplyMedium_v2", handler);
    return commit_with_flags(sd, handler, nbytes, NULL, flags, nargs, args);
}

void trunkline_am_commit_reply_long(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                    void *dest, unsigned nargs, const gex_AM_Arg_t *args)
{
    TK_TRACED(reply_long, tk_trace_no_peer, nbytes);
    CHECK_SD("gex_AM_CommitReplyLong", sd, TK_REPLY, TK_LONG);
    CHECK_COMMIT("gex_AM_CommitReplyLong", sd, nbytes, nargs);
    TK_CHECK_HANDLER("gex_AM_CommitReplyLong", handler);
    CHECK_COMMIT_DEST("gex_AM_CommitReplyLong", sd, dest, nbytes);
    negotiated_commit(sd, handler, nbytes, dest, nargs, args);
}

int trunkline_am_commit_reply_long_v2(gex_AM_SrcDesc_t sd, gex_AM_Index_t handler, size_t nbytes,
                                      void *dest, gex_Flags_t flags, unsigned nargs,
                                      const gex_AM_Arg_t *args)
{
    TK_TRACED(reply_long, tk_trace_no_peer, nbytes);
    CHECK_SD("gex_AM_CommitReplyLong_v2", sd, TK_REPLY, TK_LONG);
    CHECK_COMMIT("gex_AM_CommitReplyLong_v2", sd, nbytes, nargs);
    CHECK_COMMIT_FLAGS("gex_AM_CommitReplyLong_v2", flags);
    TK_CHECK_HANDLER("gex_AM_CommitReplyLong_v2", handler);
    CHECK_COMMIT_DEST("gex_AM_CommitReplyLong_v2", sd, dest, nbytes);
    return commit_with_flags(sd, handler, nbytes, dest, flags, nargs, args);
}

int gex_AM_CancelRequestMedium(gex_AM_SrcDesc_t sd, gex_Flags_t flags)
{
    CHECK_CANCEL("gex_AM_CancelRequestMedium", sd, TK_REQUEST, TK_MEDIUM, flags);
    tk_cancel(sd);
    return GASNET_OK;
}

int gex_AM_CancelRequestLong(gex_AM_SrcDesc_t sd, gex_Flags_t flags)
{
    CHECK_CANCEL("gex_AM_CancelRequestLong", sd, TK_REQUEST, TK_LONG, flags);
    tk_cancel(sd);
    return GASNET_OK;
}

int gex_AM_CancelReplyMedium(gex_AM_SrcDesc_t sd, gex_Flags_t flags)
{
    CHECK_CANCEL("gex_AM_CancelReplyMedium", sd, TK_REPLY, TK_MEDIUM, flags);
    tk_cancel(sd);
    return GASNET_OK;
}

int gex_AM_CancelReplyLong(gex_AM_SrcDesc_t sd, gex_Flags_t flags)
{
    CHECK_CANCEL("gex_AM_CancelReplyLong", sd, TK_REPLY, TK_LONG, flags);
    tk_cancel(sd);
    return GASNET_OK;
}
