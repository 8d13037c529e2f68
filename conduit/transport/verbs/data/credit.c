/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Flow control of active messages. The promise: no message ever finds the receiver without a buffer
 * (RNR), and replies can always be sent.
 *
 * Of a link's receive buffers, credits_pp are for requests: as many as the peer has credits. For
 * each request that we have in flight (credits_pp - credits) there is one more, for its reply or
 * ACK, posted before the request goes out. One is for the peer's exit notice. A request's buffer is
 * replaced before its handler runs, because the handler's reply gives the credit back. One buffer
 * more than needed stays posted when a small message leaves it: then the next request need not
 * post. A responder may hold back up to `slack` credits to send with its next message; the buffers
 * that were posted for those replies then serve later ones.
 *
 * Everything here is called with the link's lock held. */
#include "config.h"

#include <stdio.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/report.h"
#include "settings/settings.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/failover/failover.h"
#include "transport/verbs/verbs_private.h"

void tk_recv_refused(struct tk_link *link, struct tk_buffer *buffer, int error)
{
    link->surplus--;
    if (!tk_counter_read(&link->broken))
        tk_panic("ibv_post_recv for rank %u failed with error %d, %d buffers posted",
                 link->peer->rank, error, tk_credit_buffers_posted(link));
    tk_pool_give(&tk_rail_of(link)->recv_pool, buffer);
}

enum tk_status tk_credit_none(struct tk_link *link)
{
    if (!link->starved_since)
        link->starved_since = tk_now();
    return TK_BUSY;
}

enum tk_status tk_credit_post_buffer(struct tk_link *link)
{
    struct tk_buffer *buffer = tk_recv_buffer_take(tk_rail_of(link));
    if (buffer)
        tk_recv_post(link, buffer);
    else
        tk_buffers_exhausted(link);
    return buffer ? TK_OK : TK_FAIL;
}

enum tk_status tk_credit_post_reply_buffer(struct tk_link *link)
{
    if (tk_credit_post_buffer(link) == TK_OK)
        return TK_OK;
    tk_credit_return(link, 1);
    return TK_BUSY;
}

static enum tk_status send_ack(struct tk_link *link)
{
    struct tk_message_head head = {.kind = TK_ACK};
    struct tk_outgoing message = {.head = &head, .head_size = sizeof(head)};
    /* The ACK itself is worth one credit; the others ride in its head, put there by
     * tk_message_post(). */
    link->banked--;
    enum tk_status status = tk_message_post(link, &message);
    if (status != TK_OK)
        link->banked++;
    return status;
}

/* The handler of a request is through and sent no reply. */
void tk_credit_owe(struct tk_link *link)
{
    link->banked++;
    if (link->banked <= tk_verbs.slack || link->ack_due)
        return;
    if (send_ack(link) == TK_OK)
        return;
    link->ack_due = true;
    tk_counter_add(&tk_verbs.chores, 1);
}

static void settle(struct tk_link *link)
{
    tk_lock(&link->lock);
    if (link->ack_due && (link->banked <= tk_verbs.slack || send_ack(link) == TK_OK)) {
        link->ack_due = false;
        tk_counter_add(&tk_verbs.chores, -1);
    }
    tk_unlock(&link->lock);
}

static bool is_linked(uint32_t rank)
{
    return rank != tk_peers.me && tk_links_to(rank)->qp;
}

/* Links that are to be moved, and ACKs that found no room in the send queue. */
void tk_acks_send(void)
{
    if (tk_verbs.keeps)
        tk_failover_step();
    for (uint32_t r = 0; r < tk_peers.size && tk_counter_read(&tk_verbs.chores) > 0; r++)
        if (is_linked(r))
            settle(tk_primary(tk_peer(r)));
}

static void tell_stall(const struct tk_link *link, double seconds)
{
    char text[96];
    if (link->credits == 0)
        snprintf(text, sizeof(text), "all %d credits are out; it has not polled",
                 tk_verbs.credits_pp);
    else
        snprintf(text, sizeof(text),
                 "all credits of this process are out (GASNET_AM_CREDITS_TOTAL)");
    tk_warn("waiting %.0f s to send active messages to rank %u (%s, pid %d): %s "
            "(GASNET_AM_STALL_SECONDS=0 silences this)",
            seconds, link->peer->rank, link->peer->host, link->peer->pid, text);
}

void tk_verbs_tell_stall(void)
{
    if (tk_verbs.keeps)
        tk_events_look();
    uint64_t now = tk_now(), limit = (uint64_t)(tk_settings.am_stall_seconds * 1e9);
    for (uint32_t r = 0; tk_verbs.links && limit && r < tk_peers.size; r++) {
        struct tk_link *link = is_linked(r) ? tk_primary(tk_peer(r)) : NULL;
        if (!link || !tk_trylock(&link->lock))
            continue;
        bool is_starved = link->credits == 0 || tk_counter_read(&tk_verbs.credits_total) == 0;
        if (is_starved && link->starved_since && now - link->starved_since > limit) {
            tell_stall(link, (double)(now - link->starved_since) / 1e9);
            link->starved_since = now;
        }
        tk_unlock(&link->lock);
    }
}
