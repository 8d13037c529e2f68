/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections that come back after they were given up. Call all functions with the lock of moves,
 * except tk_rail_is_down(), tk_reconnect_watch() and tk_reconnect_look(). */
#ifndef TK_VERBS_RECONNECT_H
#define TK_VERBS_RECONNECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "common/clock.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/verbs_state.h"

struct tk_conn;

/* How long the first death keeps a connection away, in ns; tests shorten it. */
extern TK_HIDDEN uint64_t tk_reconnect_wait;

/* Is the port down, or under an address that peers do not know? A port that was never reported down
 * is not queried. */
bool tk_rail_is_down(const struct tk_rail *rail);

/* The port is or was down: from now on checks whether it is back. */
static inline void tk_reconnect_watch(struct tk_rail *rail)
{
    if (tk_verbs.failover_enabled && !__atomic_load_n(&rail->look_again, __ATOMIC_RELAXED))
        __atomic_store_n(&rail->look_again, tk_now(), __ATOMIC_RELAXED);
}

/* If the port is back, asks for its connections to be reopened. Takes the lock of moves. Returns
 * the time of the next check. */
uint64_t tk_reconnect_look(uint32_t rail, uint64_t now);

/* The other end is open in the connection's present incarnation here. */
void tk_reconnect_answered(struct tk_conn *conn);

/* The other end was opened for the next incarnation; is_open: it is still open. */
void tk_reconnect_asked(struct tk_conn *conn, bool is_open);

/* For a pair without a live connection: treats those that wait for an answer as live. */
void tk_reconnect_trust(uint32_t rank);

/* Skips an incarnation that the other end opened and lost before this end could open it. */
void tk_reconnect_pass(uint32_t rank);

/* Opens connections that are due. Call it only while no connection of the pair is being moved. */
void tk_reconnect_step(uint32_t rank);

#endif
