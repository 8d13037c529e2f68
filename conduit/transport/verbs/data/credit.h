/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The part of flow control that every message passes; the rules are in data/credit.c. All with the
 * link's lock held. */
#ifndef TK_VERBS_CREDIT_H
#define TK_VERBS_CREDIT_H

#include "base/bits.h"
#include "transport/verbs/verbs_private.h"

/* What is not there at once: TK_BUSY, or the buffer for a reply. */
enum tk_status tk_credit_none(struct tk_link *link);
enum tk_status tk_credit_post_reply_buffer(struct tk_link *link);

static inline int tk_credit_buffers_needed(const struct tk_link *link)
{
    return link->standing - link->credits + link->control_expected;
}

static inline int tk_credit_buffers_posted(const struct tk_link *link)
{
    return tk_credit_buffers_needed(link) + link->surplus;
}

/* One credit for a request about to be sent. A buffer for its reply may have to be posted then. */
static inline bool tk_credit_take_alone(struct tk_link *link)
{
    tk_if_unlikely(link->credits == 0 || !tk_counter_take(&tk_verbs.credits_total)) return false;
    link->credits--;
    link->surplus--;
    link->starved_since = 0;
    return true;
}

/* The same with the buffer. */
static inline enum tk_status tk_credit_take(struct tk_link *link)
{
    tk_if_unlikely(!tk_credit_take_alone(link)) return tk_credit_none(link);
    tk_if_unlikely(link->surplus < 0) return tk_credit_post_reply_buffer(link);
    return TK_OK;
}

static inline void tk_credit_return(struct tk_link *link, int credits)
{
    link->credits += credits;
    link->surplus += credits;
    link->starved_since = 0;
    tk_counter_add(&tk_verbs.credits_total, credits);
    tk_if_unlikely(link->credits > tk_verbs.credits_pp)
        tk_wire_error(link, "more credits came back than were given");
}

static inline void tk_recv_post(struct tk_link *link, struct tk_buffer *buffer)
{
    struct ibv_recv_wr *bad;
    buffer->link = link;
    link->surplus++;
    int error = ibv_post_recv(link->qp, &buffer->wr, &bad);
    tk_if_unlikely(error) tk_recv_refused(link, buffer, error);
}

#endif
