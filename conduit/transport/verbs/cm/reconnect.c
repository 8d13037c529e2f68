/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connections that come back by librdmacm. There is no thread: events wait in the channel until a
 * rank polls. A rank that reopens a connection waits for a peer that computes, as its messages
 * would. After GASNET_IBV_CONNECT_TIMEOUT it makes another attempt. */
#include "config.h"

#include "base/lock.h"
#include "common/clock.h"
#include "settings/settings.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/cm/cm_private.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

enum { looks_while_waiting = 50 /* more often while a thread waits for a connection */ };

static bool is_time(uint64_t now)
{
    return now >= __atomic_load_n(&tk_verbs.cm->next_look, __ATOMIC_RELAXED);
}

void tk_cm_reset(struct tk_conn *conn, uint32_t epoch)
{
    tk_lock(&tk_verbs.cm->lock);
    tk_cm_end_open(tk_cm_end_of(conn), epoch);
    tk_unlock(&tk_verbs.cm->lock);
}

void tk_cm_go(struct tk_conn *conn)
{
    struct tk_cm_end *end = tk_cm_end_of(conn);
    tk_lock(&tk_verbs.cm->lock);
    if (!end->deadline) {
        end->deadline = tk_now() + (uint64_t)(tk_settings.ibv_connect_timeout * 1e9);
        if (end->state == TK_CM_HOLDS)
            tk_cm_end_begin(end);
    }
    tk_unlock(&tk_verbs.cm->lock);
}

void tk_cm_look(void)
{
    struct tk_cm *cm = tk_verbs.cm;
    uint64_t now = tk_now();
    if (!cm || !is_time(now) || !tk_trylock(&cm->lock))
        return;
    tk_cm_events_read();
    tk_cm_events_timed(now);
    uint64_t pause = cm->is_on_demand && cm->waiting > 0 ? tk_cm_look_pause / looks_while_waiting
                                                         : tk_cm_look_pause;
    __atomic_store_n(&cm->next_look, now + pause, __ATOMIC_RELAXED);
    tk_unlock(&cm->lock);
}

bool tk_cm_is_going(const struct tk_conn *conn)
{
    tk_lock(&tk_verbs.cm->lock);
    bool is_so = tk_cm_end_of(conn)->deadline != 0;
    tk_unlock(&tk_verbs.cm->lock);
    return is_so;
}

bool tk_cm_is_up(const struct tk_conn *conn)
{
    tk_lock(&tk_verbs.cm->lock);
    bool is_so = tk_cm_end_of(conn)->state == TK_CM_UP;
    tk_unlock(&tk_verbs.cm->lock);
    return is_so;
}

bool tk_cm_has_failed(const struct tk_conn *conn)
{
    tk_lock(&tk_verbs.cm->lock);
    bool is_so = tk_cm_end_of(conn)->state == TK_CM_FAILED;
    tk_unlock(&tk_verbs.cm->lock);
    return is_so;
}
