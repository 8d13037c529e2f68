/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Notices: what one end of a connection reports about it to the other end, over another connection
 * of the pair. A notice states what is true when it is sent: the connection's incarnation at this
 * end, whether it is open, how many messages came over it in this incarnation (final once it is
 * drained), and in the one before. A notice that may be lost is sent again with what is true at
 * that time. So notices may come twice or late; a notice about a past incarnation is ignored. */
#include "config.h"

#include <string.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "transport/transport.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/error.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/control.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/verbs_state.h"

enum { WHICH, INCARNATION, ARRIVED, BEFORE, notice_args, is_open_bit = 0x100 };
_Static_assert(0 + tk_conns_max <= is_open_bit, "a link's number and the bit share a word");

/* ---- sending ---- */

/* Posts without a descriptor if none is free, because all other work may wait for this notice. */
static bool post_notice(struct tk_conn *carrier, struct tk_short *notice)
{
    size_t size = tk_short_size(notice_args);
    bool is_small = size <= tk_verbs.inline_limit;
    struct tk_outgoing out = {.head = &notice->head, .head_size = size};
    struct tk_tx *tx = tk_tx_take(carrier, !is_small);
    if (tx) {
        tk_message_post_tx(carrier, tx, &out);
        return true;
    }
    if (!is_small || !tk_slot_take(carrier))
        return false;
    carrier->unsignaled++;
    memcpy(carrier->unsignaled_data.bytes, notice, size);
    tk_unsignaled_post_logged(carrier, size);
    return true;
}

static void control_send(struct tk_conn *conn, struct tk_conn *carrier)
{
    const struct tk_log_incarnation *incarnation = &conn->tx_log->incarnation;
    int32_t arrived = (int32_t)__atomic_load_n(&conn->tx_log->arrived, __ATOMIC_RELAXED);
    struct tk_short notice = {
        .head = {.kind = TK_NOTICE, .category = TK_SHORT, .nargs = notice_args}};
    notice.args[WHICH] = (int32_t)tk_conn_number(conn) | (tk_conn_is_open(conn) ? is_open_bit : 0);
    notice.args[INCARNATION] = (int32_t)incarnation->number;
    notice.args[ARRIVED] = arrived;
    notice.args[BEFORE] = (int32_t)incarnation->before;
    tk_lock(&carrier->lock);
    bool is_posted = post_notice(carrier, &notice);
    tk_unlock(&carrier->lock);
    conn->tx_log->notice_due = !is_posted;
}

/* A dying connection has nothing final to report before it is drained. */
void tk_notices_send(uint32_t rank, struct tk_conn *carrier)
{
    struct tk_conn *conns = tk_conns_to(rank);
    for (uint32_t k = 0; k < tk_verbs.conns_pp; k++)
        if (conns[k].tx_log->notice_due && tk_counter_read(&conns[k].state) != TK_CLOSING)
            control_send(&conns[k], carrier);
}

/* Sends again, with what is true now, the notices that may have been lost. It does not wait until
 * that is certain: that might need a notice which waits for this one. */
void tk_notices_resend(struct tk_conn *lost)
{
    struct tk_conn *conns = tk_conns_to(lost->peer->rank);
    for (uint32_t back = (uint32_t)tk_conn_unfinished(lost); back > 0; back--) {
        const struct tk_short *notice = tk_tx_entry_as_notice(tk_tx_entry_back(lost, back));
        if (notice)
            tk_notice_request(&conns[notice->args[WHICH] & ~is_open_bit]);
    }
}

/* ---- receiving ---- */

struct tk_notice tk_notice_parse(const struct tk_buffer *buffer, uint32_t size)
{
    const struct tk_short *notice = (const struct tk_short *)(const void *)buffer->data;
    uint32_t number = (uint32_t)notice->args[WHICH] & ~(uint32_t)is_open_bit;
    if (size != tk_short_size(notice_args) || number >= tk_verbs.conns_pp)
        tk_wire_error(buffer->conn, "a malformed notice came");
    return (struct tk_notice){.conn = tk_conns_to(buffer->conn->peer->rank) + number,
                              .incarnation = (uint32_t)notice->args[INCARNATION],
                              .arrived = (uint32_t)notice->args[ARRIVED],
                              .before = (uint32_t)notice->args[BEFORE],
                              .is_open = notice->args[WHICH] & is_open_bit};
}
