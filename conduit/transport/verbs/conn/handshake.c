/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See handshake.h. No state, no lock; must not touch a device. */
#include "config.h"

#include "base/first_use.h"
#include "transport/verbs/conn/handshake.h"

TK_FIRST_USE static struct tk_handshake_step when_idle(enum tk_handshake_event event)
{
    if (event == TK_HANDSHAKE_WANTED)
        return (struct tk_handshake_step){
            .opens = true, .sends = TK_HANDSHAKE_REQUEST, .next = TK_HANDSHAKE_ASKING};
    if (event == TK_HANDSHAKE_CAME_REQUEST)
        return (struct tk_handshake_step){.opens = true,
                                          .connects = true,
                                          .sends = TK_HANDSHAKE_ACCEPT,
                                          .next = TK_HANDSHAKE_ANSWERED};
    return (struct tk_handshake_step){.next = TK_HANDSHAKE_IDLE};
}

TK_FIRST_USE static struct tk_handshake_step when_asking(enum tk_handshake_event event,
                                                         bool is_lower)
{
    if (event == TK_HANDSHAKE_CAME_REQUEST && !is_lower)
        return (struct tk_handshake_step){
            .connects = true, .sends = TK_HANDSHAKE_ACCEPT, .next = TK_HANDSHAKE_ANSWERED};
    if (event == TK_HANDSHAKE_CAME_ACCEPT)
        return (struct tk_handshake_step){
            .connects = true, .sends = TK_HANDSHAKE_CONFIRM, .next = TK_HANDSHAKE_UP};
    return (struct tk_handshake_step){.sends = event == TK_HANDSHAKE_TIMED ? TK_HANDSHAKE_REQUEST
                                                                           : TK_HANDSHAKE_SILENCE,
                                      .next = TK_HANDSHAKE_ASKING};
}

TK_FIRST_USE static struct tk_handshake_step when_answered(enum tk_handshake_event event)
{
    if (event == TK_HANDSHAKE_CAME_CONFIRM || event == TK_HANDSHAKE_PROVED)
        return (struct tk_handshake_step){.next = TK_HANDSHAKE_UP};
    bool repeats = event == TK_HANDSHAKE_TIMED || event == TK_HANDSHAKE_CAME_REQUEST;
    return (struct tk_handshake_step){.sends = repeats ? TK_HANDSHAKE_ACCEPT : TK_HANDSHAKE_SILENCE,
                                      .next = TK_HANDSHAKE_ANSWERED};
}

/* The other end may wait for a CONFIRM that was lost: it repeats its ACCEPT until it gets one. */
static struct tk_handshake_step when_up(enum tk_handshake_event event)
{
    return (struct tk_handshake_step){
        .sends = event == TK_HANDSHAKE_CAME_ACCEPT ? TK_HANDSHAKE_CONFIRM : TK_HANDSHAKE_SILENCE,
        .next = TK_HANDSHAKE_UP};
}

TK_FIRST_USE struct tk_handshake_step
tk_handshake_next(enum tk_handshake_state state, enum tk_handshake_event event, bool is_lower)
{
    switch (state) {
    case TK_HANDSHAKE_IDLE:
        return when_idle(event);
    case TK_HANDSHAKE_ASKING:
        return when_asking(event, is_lower);
    case TK_HANDSHAKE_ANSWERED:
        return when_answered(event);
    default:
        return when_up(event);
    }
}
