/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections that come back after they were given up. All but the first two with the lock of
 * moves. */
#ifndef TK_VERBS_RECONNECT_H
#define TK_VERBS_RECONNECT_H

#include "base/clock.h"
#include "transport/verbs/verbs_private.h"

/* How long the first death keeps a connection away, in ns; tests shorten it. */
extern TK_HIDDEN uint64_t tk_reconnect_wait;

/* Is its port down, or not found by peers? One that was never reported to be down is not asked. */
bool tk_rail_is_down(const struct tk_rail *rail);

/* Its port was down, or is: looks whether it is back from now on. */
static inline void tk_reconnect_watch(struct tk_rail *rail)
{
    if (tk_verbs.failover_enabled && !__atomic_load_n(&rail->look_again, __ATOMIC_RELAXED))
        __atomic_store_n(&rail->look_again, tk_now(), __ATOMIC_RELAXED);
}

/* Is the port back, and connections of it to be opened again? Takes the lock of moves. Returns when
 * to look again. */
uint64_t tk_reconnect_look(uint32_t rail, uint64_t now);

/* The other end is open in the incarnation that the connection has here. */
void tk_reconnect_answered(struct tk_conn *conn);

/* The other end was opened for the next incarnation; whether it still is. */
void tk_reconnect_asked(struct tk_conn *conn, bool is_open);

/* Takes connections that wait for an answer for live. Where no other is left they are tried. */
void tk_reconnect_trust(uint32_t rank);

/* Passes over what the other end opened and lost before this end could open it. */
void tk_reconnect_pass(uint32_t rank);

/* Opens what is to be opened; where no connection of the pair is being moved. */
void tk_reconnect_step(uint32_t rank);

#endif
