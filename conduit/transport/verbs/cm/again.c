/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections that come back by librdmacm. There is no thread: events wait in the channel until a
 * rank polls. A rank that brings a connection back waits for a peer that computes, as its messages
 * would; the time limit is GASNET_IBV_CONNECT_TIMEOUT, and another attempt follows. With the lock
 * of moves. */
#include "config.h"

#include "base/clock.h"
#include "settings/settings.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/cm/cm_private.h"

void tk_cm_reset(struct tk_conn *conn, uint32_t epoch)
{
    tk_cm_end_open(tk_cm_end_of(conn), epoch);
}

void tk_cm_go(struct tk_conn *conn)
{
    struct tk_cm_end *end = tk_cm_end_of(conn);
    if (end->deadline)
        return;
    end->deadline = tk_now() + (uint64_t)(tk_settings.ibv_connect_timeout * 1e9);
    if (end->state == TK_CM_HOLDS)
        tk_cm_end_begin(end);
}

void tk_cm_look(void)
{
    struct tk_cm *cm = tk_verbs.cm;
    uint64_t now = tk_now();
    if (!cm || now < cm->next_look)
        return;
    cm->next_look = now + tk_cm_look_pause;
    tk_cm_events_read();
    tk_cm_events_timed(now);
}

bool tk_cm_is_going(const struct tk_conn *conn)
{
    return tk_cm_end_of(conn)->deadline != 0;
}

bool tk_cm_is_up(const struct tk_conn *conn)
{
    return tk_cm_end_of(conn)->state == TK_CM_UP;
}

bool tk_cm_has_failed(const struct tk_conn *conn)
{
    return tk_cm_end_of(conn)->state == TK_CM_FAILED;
}
