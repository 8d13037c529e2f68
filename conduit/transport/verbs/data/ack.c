/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Credits that no message of ours takes back to the peer: held back up to `slack` of them, then
 * sent in an ACK. The rules of flow control are in credit.c. */
#include "config.h"

#include "transport/verbs/data/ack.h"
#include "transport/verbs/verbs_private.h"

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

void tk_ack_retry(struct tk_link *link)
{
    tk_lock(&link->lock);
    if (link->ack_due && (link->banked <= tk_verbs.slack || send_ack(link) == TK_OK)) {
        link->ack_due = false;
        tk_counter_add(&tk_verbs.chores, -1);
    }
    tk_unlock(&link->lock);
}
