/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Active messages: the six calls behind all argument forms, limits, tokens. No state, no lock. */
#include "config.h"

#include "api/between.h"
#include "api/check.h"
#include "base/segment_mode.h"
#include "kind_rma/kind_long.h"
#include "memory/memory.h"
#include "message/medium.h"
#include "message/message.h"
#include "message/short.h"
#include "settings/settings.h"
#include "team/objects.h"
#include "trace/trace.h"

/* Fields of all categories. */
static inline void set_head(struct tk_message *m, enum tk_message_category category,
                            gex_AM_Index_t handler, gex_Flags_t flags, unsigned nargs,
                            const gex_AM_Arg_t *args)
{
    m->category = category;
    m->handler = handler;
    m->immediate = flags & GEX_FLAG_IMMEDIATE;
    m->nargs = nargs;
    m->args = args;
}

static inline void set_payload(struct tk_message *m, const void *src, size_t nbytes, void *dest,
                               gex_Event_t *lc_opt)
{
    m->payload = src;
    m->nbytes = nbytes;
    m->dest = dest;
    m->lc_opt = lc_opt;
}

static inline bool may_be_direct(const struct tk_message *m)
{
    return m->lc_opt == GEX_EVENT_NOW && m->nbytes >= tk_settings.long_put_min;
}

/* Out of line, like the next two: the copy of a peer takes much stack space. */
static int __attribute__((noinline))
request_short_between(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, gex_Flags_t flags,
                      unsigned nargs, const gex_AM_Arg_t *args)
{
    struct tk_ep_peer copy;
    struct tk_peer *peer = tk_peer_between("gex_AM_RequestShort", &copy, tm, rank);
    return tk_short_request(peer, handler, flags & GEX_FLAG_IMMEDIATE, nargs, args);
}

static int __attribute__((noinline))
request_small_between(gex_TM_t tm, gex_Rank_t rank, uint64_t args, gex_Flags_t flags,
                      gex_AM_Index_t handler, unsigned nargs)
{
    const gex_AM_Arg_t both[] = {(gex_AM_Arg_t)args, (gex_AM_Arg_t)(args >> 32)};
    return request_short_between(tm, rank, handler, flags, nargs, both);
}

static int __attribute__((noinline))
request_between(const char *call, gex_TM_t tm, gex_Rank_t rank, struct tk_message *m)
{
    struct tk_ep_peer copy;
    m->peer = tk_peer_between(call, &copy, tm, rank);
    if (m->category != TK_LONG)
        return tk_request(m);
    TK_CHECK_DEST(call, m->peer, m->dest, m->nbytes);
    return tk_kind_long_is(m) ? tk_kind_long_request(m) : tk_request(m);
}

int trunkline_am_request_short(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,
                               gex_Flags_t flags, unsigned nargs, const gex_AM_Arg_t *args)
{
    TK_TRACED(request_short, tk_trace_no_peer, 0);
    TK_CHECK_REQUEST("gex_AM_RequestShort", tm, rank, nargs);
    TK_CHECK_HANDLER("gex_AM_RequestShort", handler);
    struct tk_peer *peers = tk_team_peers(tm);
    tk_if_unlikely(!peers) return request_short_between(tm, rank, handler, flags, nargs, args);
    return tk_short_request(&peers[rank], handler, flags & GEX_FLAG_IMMEDIATE, nargs, args);
}

_Static_assert(TRUNKLINE_AM_TAG(1u) == (tk_tag_bit | 1 << tk_tag_args_shift),
               "clients pass the tags of transports");

/* A function of its own, as for an immediate reply: a branch between the two would cost each
 * request more than the jump costs these. */
static int __attribute__((noinline))
request_small_at_once(gex_TM_t tm, gex_Rank_t rank, uint64_t args, gex_AM_Index_t handler,
                      unsigned tag)
{
    return tk_small_request(&tk_team_peers(tm)[rank], tag | handler, args, tk_small_refused);
}

int trunkline_am_request_small(gex_TM_t tm, gex_Rank_t rank, uint64_t args, gex_Flags_t flags,
                               gex_AM_Index_t handler, unsigned tag)
{
    TK_TRACED(request_short, tk_trace_no_peer, 0);
    TK_CHECK_REQUEST("gex_AM_RequestShort", tm, rank, tk_tag_nargs(tag));
    TK_CHECK_HANDLER("gex_AM_RequestShort", handler);
    struct tk_peer *peers = tk_team_peers(tm);
    tk_if_unlikely(!peers) return request_small_between(tm, rank, args, flags, handler,
                                                        tk_tag_nargs(tag));
    tk_if_unlikely(flags & GEX_FLAG_IMMEDIATE) return request_small_at_once(tm, rank, args, handler,
                                                                            tag);
    return tk_small_request(&peers[rank], tag | handler, args, tk_wait_send_small);
}

static int __attribute__((noinline))
request_medium(struct tk_peer *peers, gex_TM_t tm, gex_Rank_t rank, struct tk_message *m)
{
    tk_if_unlikely(!peers) return request_between("gex_AM_RequestMedium", tm, rank, m);
    m->peer = &peers[rank];
    return tk_request(m);
}

/* Mediums that need more than a copy. It has the parameters of its caller, which therefore reaches
 * it by a jump. */
static int __attribute__((noinline))
request_medium_whole(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void *src,
                     size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags, unsigned nargs,
                     const gex_AM_Arg_t *args)
{
    struct tk_message m;
    set_head(&m, TK_MEDIUM, handler, flags, nargs, args);
    set_payload(&m, src, nbytes, NULL, lc_opt);
    return request_medium(tk_team_peers(tm), tm, rank, &m);
}

static inline int request_medium_begin(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,
                                       const void *src, size_t nbytes, gex_Event_t *lc_opt,
                                       gex_Flags_t flags, unsigned nargs, const gex_AM_Arg_t *args)
{
    struct tk_peer *peers = tk_team_peers(tm);
    tk_if_likely(peers && lc_opt == GEX_EVENT_NOW)
    {
        const uint64_t head = tk_head_of_medium(TK_REQUEST, handler, nargs);
        if (tk_medium_is_direct(&peers[rank], nbytes))
            return tk_medium_direct(&peers[rank], head, args, src, nbytes,
                                    tk_medium_if_busy[!!(flags & GEX_FLAG_IMMEDIATE)]);
        tk_if_likely(nbytes < tk_medium_lent_min) return tk_medium_send(
            &peers[rank], head, args, src, nbytes, flags & GEX_FLAG_IMMEDIATE);
    }
    return request_medium_whole(tm, rank, handler, src, nbytes, lc_opt, flags, nargs, args);
}

/* Every 128th request polls. */
static int __attribute__((noinline))
request_medium_poll(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void *src,
                    size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags, unsigned nargs,
                    const gex_AM_Arg_t *args)
{
    tk_request_poll(flags & GEX_FLAG_IMMEDIATE);
    tk_stats_take_turn_uncounted();
    return request_medium_begin(tm, rank, handler, src, nbytes, lc_opt, flags, nargs, args);
}

int trunkline_am_request_medium(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler,
                                const void *src, size_t nbytes, gex_Event_t *lc_opt,
                                gex_Flags_t flags, unsigned nargs, const gex_AM_Arg_t *args)
{
    TK_TRACED(request_medium, tk_trace_no_peer, nbytes);
    TK_CHECK_REQUEST("gex_AM_RequestMedium", tm, rank, nargs);
    TK_CHECK_HANDLER("gex_AM_RequestMedium", handler);
    TK_CHECK_LC_REQUEST("gex_AM_RequestMedium", lc_opt);
    TK_MEDIUM_MUST_FIT("gex_AM_RequestMedium", nbytes, nargs);
    tk_if_unlikely(!tk_stats_take_turn_uncounted()) return request_medium_poll(
        tm, rank, handler, src, nbytes, lc_opt, flags, nargs, args);
    return request_medium_begin(tm, rank, handler, src, nbytes, lc_opt, flags, nargs, args);
}

int trunkline_am_request_long(gex_TM_t tm, gex_Rank_t rank, gex_AM_Index_t handler, const void *src,
                              size_t nbytes, void *dest, gex_Event_t *lc_opt, gex_Flags_t flags,
                              unsigned nargs, const gex_AM_Arg_t *args)
{
    TK_TRACED(request_long, tk_trace_no_peer, nbytes);
    TK_CHECK_REQUEST("gex_AM_RequestLong", tm, rank, nargs);
    TK_CHECK_HANDLER("gex_AM_RequestLong", handler);
    TK_CHECK_LC_REQUEST("gex_AM_RequestLong", lc_opt);
    TK_LONG_MUST_FIT("gex_AM_RequestLong", nbytes);
    tk_request_take_turn(flags & GEX_FLAG_IMMEDIATE);
    struct tk_message m;
    set_head(&m, TK_LONG, handler, flags, nargs, args);
    set_payload(&m, src, nbytes, dest, lc_opt);
    struct tk_peer *peers = tk_team_peers(tm);
    tk_if_unlikely(!peers) return request_between("gex_AM_RequestLong", tm, rank, &m);
    m.peer = &peers[rank];
    TK_CHECK_DEST("gex_AM_RequestLong", m.peer, dest, nbytes);
    tk_if_likely(may_be_direct(&m) && tk_long_direct(&m, TK_REQUEST)) return 0;
    return tk_request(&m);
}

int trunkline_am_reply_short(gex_Token_t token, gex_AM_Index_t handler, gex_Flags_t flags,
                             unsigned nargs, const gex_AM_Arg_t *args)
{
    TK_TRACED(reply_short, tk_trace_no_peer, 0);
    TK_CHECK_REPLY("gex_AM_ReplyShort", token, nargs);
    TK_CHECK_HANDLER("gex_AM_ReplyShort", handler);
    return tk_short_reply(token, handler, flags & GEX_FLAG_IMMEDIATE, nargs, args);
}

static int __attribute__((noinline))
reply_at_once(gex_Token_t token, gex_AM_Index_t handler, unsigned nargs, uint64_t args)
{
    const gex_AM_Arg_t both[] = {(gex_AM_Arg_t)args, (gex_AM_Arg_t)(args >> 32)};
    return tk_short_reply(token, handler, true, nargs, both);
}

int trunkline_am_reply_small(gex_Token_t token, gex_AM_Index_t handler, uint64_t args,
                             gex_Flags_t flags, unsigned nargs)
{
    TK_TRACED(reply_short, tk_trace_no_peer, 0);
    TK_CHECK_REPLY("gex_AM_ReplyShort", token, nargs);
    TK_CHECK_HANDLER("gex_AM_ReplyShort", handler);
    tk_if_likely(!(flags & GEX_FLAG_IMMEDIATE)) return tk_small_reply(token, handler, nargs, args);
    return reply_at_once(token, handler, nargs, args);
}

/* Likewise. */
static int __attribute__((noinline))
reply_medium_whole(gex_Token_t token, gex_AM_Index_t handler, const void *src, size_t nbytes,
                   gex_Event_t *lc_opt, gex_Flags_t flags, unsigned nargs, const gex_AM_Arg_t *args)
{
    struct tk_message m;
    set_head(&m, TK_MEDIUM, handler, flags, nargs, args);
    set_payload(&m, src, nbytes, NULL, lc_opt);
    return tk_reply(token, &m);
}

/* `replied` is set first, because sending a reply that may wait, which cannot fail, is a tail
 * call. */
int trunkline_am_reply_medium(gex_Token_t token, gex_AM_Index_t handler, const void *src,
                              size_t nbytes, gex_Event_t *lc_opt, gex_Flags_t flags, unsigned nargs,
                              const gex_AM_Arg_t *args)
{
    TK_TRACED(reply_medium, tk_trace_no_peer, nbytes);
    TK_CHECK_REPLY("gex_AM_ReplyMedium", token, nargs);
    TK_CHECK_HANDLER("gex_AM_ReplyMedium", handler);
    TK_CHECK_LC_REPLY("gex_AM_ReplyMedium", lc_opt);
    TK_MEDIUM_MUST_FIT("gex_AM_ReplyMedium", nbytes, nargs);
    tk_if_likely(lc_opt == GEX_EVENT_NOW && !(flags & GEX_FLAG_IMMEDIATE))
    {
        struct tk_peer *peer = token->arrival.peer;
        const uint64_t head = tk_head_of_medium(TK_REPLY, handler, nargs);
        token->arrival.replied = true;
        if (tk_medium_is_direct(peer, nbytes))
            return tk_medium_direct(peer, head, args, src, nbytes, tk_wait_send_medium);
        tk_if_likely(nbytes < tk_medium_lent_min) return tk_medium_send(peer, head, args, src,
                                                                        nbytes, false);
    }
    return reply_medium_whole(token, handler, src, nbytes, lc_opt, flags, nargs, args);
}

int trunkline_am_reply_long(gex_Token_t token, gex_AM_Index_t handler, const void *src,
                            size_t nbytes, void *dest, gex_Event_t *lc_opt, gex_Flags_t flags,
                            unsigned nargs, const gex_AM_Arg_t *args)
{
    TK_TRACED(reply_long, tk_trace_no_peer, nbytes);
    TK_CHECK_REPLY("gex_AM_ReplyLong", token, nargs);
    TK_CHECK_HANDLER("gex_AM_ReplyLong", handler);
    TK_CHECK_LC_REPLY("gex_AM_ReplyLong", lc_opt);
    TK_LONG_MUST_FIT("gex_AM_ReplyLong", nbytes);
    TK_CHECK_DEST("gex_AM_ReplyLong", token->arrival.peer, dest, nbytes);
    struct tk_message m;
    set_head(&m, TK_LONG, handler, flags, nargs, args);
    set_payload(&m, src, nbytes, dest, lc_opt);
    m.peer = token->arrival.peer;
    tk_if_likely(may_be_direct(&m) && tk_long_direct(&m, TK_REPLY))
    {
        token->arrival.replied = true;
        return 0;
    }
    tk_if_unlikely(tk_kind_long_is(&m)) return tk_kind_long_reply(token, &m);
    return tk_reply(token, &m);
}

unsigned int gex_AM_MaxArgs(void)
{
    return tk_max_args;
}

/* The limits are those of one transport's buffers: they depend on the number of arguments, and for
 * a Long on whether the payload is in a buffer of the client or the library; they are equal for all
 * peers, GEX_RANK_INVALID included. */

static size_t am_long_max(gex_Flags_t flags, unsigned nargs)
{
    return flags & GEX_FLAG_AM_PREPARE_LEAST_ALLOC ? tk_long_packed_max(nargs) : tk_long_max();
}

size_t gex_AM_MaxRequestMedium(gex_TM_t tm, gex_Rank_t other_rank, const gex_Event_t *lc_opt,
                               gex_Flags_t flags, unsigned int numargs)
{
    TK_CHECK_TM("gex_AM_MaxRequestMedium", tm);
    (void)tm, (void)other_rank, (void)lc_opt, (void)flags;
    return tk_medium_max(numargs);
}

size_t gex_AM_MaxReplyMedium(gex_TM_t tm, gex_Rank_t other_rank, const gex_Event_t *lc_opt,
                             gex_Flags_t flags, unsigned int numargs)
{
    TK_CHECK_TM("gex_AM_MaxReplyMedium", tm);
    (void)tm, (void)other_rank, (void)lc_opt, (void)flags;
    return tk_medium_max(numargs);
}

size_t gex_AM_MaxRequestLong(gex_TM_t tm, gex_Rank_t other_rank, const gex_Event_t *lc_opt,
                             gex_Flags_t flags, unsigned int numargs)
{
    TK_CHECK_TM("gex_AM_MaxRequestLong", tm);
    (void)tm, (void)other_rank, (void)lc_opt;
    return am_long_max(flags, numargs);
}

size_t gex_AM_MaxReplyLong(gex_TM_t tm, gex_Rank_t other_rank, const gex_Event_t *lc_opt,
                           gex_Flags_t flags, unsigned int numargs)
{
    TK_CHECK_TM("gex_AM_MaxReplyLong", tm);
    (void)tm, (void)other_rank, (void)lc_opt;
    return am_long_max(flags, numargs);
}

size_t gex_AM_LUBRequestMedium(void)
{
    return tk_medium_max(tk_max_args);
}

size_t gex_AM_LUBReplyMedium(void)
{
    return tk_medium_max(tk_max_args);
}

size_t gex_AM_LUBRequestLong(void)
{
    return tk_long_max();
}

size_t gex_AM_LUBReplyLong(void)
{
    return tk_long_max();
}

size_t gex_Token_MaxReplyMedium(gex_Token_t token, const gex_Event_t *lc_opt, gex_Flags_t flags,
                                unsigned int numargs)
{
    TK_CHECK_TOKEN("gex_Token_MaxReplyMedium", token);
    (void)token, (void)lc_opt, (void)flags;
    return tk_medium_max(numargs);
}

size_t gex_Token_MaxReplyLong(gex_Token_t token, const gex_Event_t *lc_opt, gex_Flags_t flags,
                              unsigned int numargs)
{
    TK_CHECK_TOKEN("gex_Token_MaxReplyLong", token);
    (void)token, (void)lc_opt;
    return am_long_max(flags, numargs);
}

gex_TI_t gex_Token_Info(gex_Token_t token, gex_Token_Info_t *info, gex_TI_t mask)
{
    TK_CHECK_TOKEN("gex_Token_Info", token);
    (void)mask; /* returning all fields costs less than testing the mask */
    struct tk_message_head head = tk_token_head(token);
    info->gex_srcrank = token->arrival.peer->rank;
    unsigned ours = tk_ep_peer_ours(token->arrival.peer);
    info->gex_ep = tk_ep_at((gex_EP_Index_t)ours);
    info->gex_entry = tk_handler_entry(ours, head.handler);
    info->gex_is_req = head.kind == TK_REQUEST;
    info->gex_is_long = head.category == TK_LONG;
    return GEX_TI_ALL;
}
