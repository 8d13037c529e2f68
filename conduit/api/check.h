/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks of arguments and call context. TK_CHECK and TK_CHECK_... exist in debug builds only
 * (--enable-debug); macros with MUST in their names exist in all builds. */
#ifndef TK_CHECK_H
#define TK_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/check.h"
#include "base/report.h"
#include "gasnetex.h"
#include "message/message.h"
#include "progress/steps.h"
#include "team/team.h"

/* For barriers, in release builds too: a barrier in a handler never returns, as handlers cannot
 * poll, but lets the other ranks finish as if nothing were wrong. Needs progress/progress.h. */
#define TK_MUST_BE_OUTSIDE_HANDLERS(call)                                                          \
    do {                                                                                           \
        tk_if_unlikely(tk_in_handler != 0)                                                         \
            tk_panic("%s was called from a handler, where only replies are allowed", call);        \
    } while (0)

/* ---- Objects. Release builds refuse an invalid one only where that costs nothing, or where the
 * call has a status to return. ---- */

#define TK_CHECK_OBJECT(call, object, invalid)                                                     \
    TK_CHECK((object) != (invalid), "%s: the argument is " #invalid, call)
#define TK_CHECK_CLIENT(call, client)   TK_CHECK_OBJECT(call, client, GEX_CLIENT_INVALID)
#define TK_CHECK_EP(call, ep)           TK_CHECK_OBJECT(call, ep, GEX_EP_INVALID)
#define TK_CHECK_TM(call, tm)           TK_CHECK_OBJECT(call, tm, GEX_TM_INVALID)
#define TK_CHECK_SEGMENT(call, segment) TK_CHECK_OBJECT(call, segment, GEX_SEGMENT_INVALID)
#define TK_CHECK_AD(call, ad)           TK_CHECK_OBJECT(call, ad, GEX_AD_INVALID)
/* The interface has no name for an invalid token. */
#define TK_CHECK_TOKEN(call, token) TK_CHECK((token) != NULL, "%s: the token is NULL", call)

/* ---- Context ---- */
/* Fails if this thread has prepared a message and has neither committed nor cancelled it.
 * `prepare`: name of the Prepare call without Medium or Long. */
#define TK_CHECK_NOT_PREPARING(call, prepare, kind)                                                \
    TK_CHECK(!tk_is_preparing(kind),                                                               \
             "%s was called between " prepare "%s (to rank %u) and its Commit or Cancel", call,    \
             tk_prepared(kind)->category == TK_LONG ? "Long" : "Medium",                           \
             tk_prepared(kind)->reservation.peer->rank)

/* For calls that may poll or send. */
#define TK_CHECK_MAY_COMMUNICATE(call)                                                             \
    do {                                                                                           \
        TK_CHECK(!tk_is_in_handler(),                                                              \
                 "%s was called from a handler, where only replies are allowed", call);            \
        TK_CHECK(tk_hsls_held() == 0, "%s was called with a gex_HSL_t held", call);                \
        TK_CHECK_NOT_PREPARING(call, "gex_AM_PrepareRequest", TK_REQUEST);                         \
    } while (0)

#define TK_CHECK_RANK(call, tm, rank)                                                              \
    TK_CHECK((rank) < tk_team_size(tm), "%s: rank %u is not in the team of %u", call,              \
             (unsigned)(rank), (unsigned)tk_team_size(tm))

/* ---- Active messages ---- */

#define TK_CHECK_REQUEST(call, tm, rank, nargs)                                                    \
    TK_CHECK_TM(call, tm);                                                                         \
    TK_CHECK_MAY_COMMUNICATE(call);                                                                \
    TK_CHECK_RANK(call, tm, rank);                                                                 \
    TK_CHECK((nargs) <= tk_max_args, "%s: %u arguments", call, nargs)

#define TK_CHECK_REPLY(call, token, nargs)                                                         \
    TK_CHECK_TOKEN(call, token);                                                                   \
    TK_CHECK(tk_is_in_handler(), "%s was called outside of a handler", call);                      \
    TK_CHECK(tk_token_head(token).kind == TK_REQUEST, "%s in a reply handler", call);              \
    TK_CHECK(!(token)->arrival.replied, "%s: this request was replied to before", call);           \
    TK_CHECK(tk_hsls_held() == 0, "%s was called with a gex_HSL_t held", call);                    \
    TK_CHECK_NOT_PREPARING(call, "gex_AM_PrepareReply", TK_REPLY);                                 \
    TK_CHECK((nargs) <= tk_max_args, "%s: %u arguments", call, nargs)

/* Lower indices are handlers of the library, which would run with whatever arguments the client
 * sent. */
#define TK_CHECK_HANDLER(call, handler)                                                            \
    TK_CHECK((handler) >= GEX_AM_INDEX_BASE,                                                       \
             "%s: handler %u belongs to the library; clients have %d..255", call,                  \
             (unsigned)(handler), GEX_AM_INDEX_BASE)

#define TK_CHECK_LC_REQUEST(call, lc_opt)                                                          \
    TK_CHECK((lc_opt) != NULL && (lc_opt) != GEX_EVENT_DEFER,                                      \
             "%s: lc_opt must be GEX_EVENT_NOW, GEX_EVENT_GROUP or an event's address", call)

#define TK_CHECK_LC_REPLY(call, lc_opt)                                                            \
    TK_CHECK((lc_opt) != NULL && (lc_opt) != GEX_EVENT_DEFER && (lc_opt) != GEX_EVENT_GROUP,       \
             "%s: lc_opt must be GEX_EVENT_NOW or an event's address", call)

/* In release builds too: the receiver has no buffer for a larger message. The macro compares with a
 * limit that holds for any number of arguments, and computes the exact limit only for larger
 * messages. TK_LONG_MUST_FIT needs base/segment_mode.h. */
#define TK_MUST_FIT(call, nbytes, always, most)                                                    \
    do {                                                                                           \
        tk_if_unlikely((nbytes) > (always)) tk_must_fit(call, nbytes, most);                       \
    } while (0)
#define TK_MEDIUM_MUST_FIT(call, nbytes, nargs)                                                    \
    TK_MUST_FIT(call, nbytes, tk_message_max - tk_message_front(false, tk_max_args),               \
                tk_message_max - tk_message_front(false, nargs))
#define TK_LONG_MUST_FIT(call, nbytes)                                                             \
    TK_MUST_FIT(call, nbytes,                                                                      \
                tk_is_on_demand ? tk_message_max - tk_message_front(true, tk_max_args)             \
                                : (size_t)INT32_MAX,                                               \
                tk_long_max())

static inline void tk_must_fit(const char *call, size_t nbytes, size_t most)
{
    if (nbytes > most)
        tk_panic("%s: %zu bytes are more than the limit %zu", call, nbytes, most);
}

#define TK_CHECK_DEST(call, peer, dest, nbytes)                                                    \
    TK_CHECK(tk_peer_has(peer, (uintptr_t)(dest), nbytes),                                         \
             "%s: [%p, +%zu) is not inside the segment of rank %u", call, dest, (size_t)(nbytes),  \
             (peer)->rank)

#endif
