/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The decisions of flow control, as functions of counts: when a request may be sent, how many
 * credits a message returns, and when an ACK has to. credit.c explains them; --simulate of the
 * launcher calls them too. No state. */
#ifndef TK_VERBS_CREDIT_RULES_H
#define TK_VERBS_CREDIT_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "transport/message_head.h"

/* May a request be sent that leaves `kept` credits to others? */
static inline bool tk_credit_suffices(int credits, int kept)
{
    return credits > kept;
}

/* How many of the credits to return fit the head of a message of this kind. */
static inline int tk_credit_carried(uint8_t kind, int to_return)
{
    return to_return == 0 || kind >= TK_CONTROL ? 0 : (int)tk_min((size_t)to_return, UINT8_MAX);
}

/* Does a message of this kind return the credit of the request that it answers? */
static inline bool tk_credit_comes_back(uint8_t kind)
{
    return kind == TK_REPLY || kind == TK_ACK;
}

/* How many credits come back with a message that carries `carried`. */
static inline int tk_credit_received(uint8_t kind, int carried)
{
    return carried + tk_credit_comes_back(kind);
}

/* Are more held back than the peer can do without? */
static inline bool tk_ack_is_due(int to_return, int slack)
{
    return to_return > slack;
}

/* May the credits be left to the end of a batch of messages? */
static inline bool tk_ack_may_be_left(int to_return, int batch_slack)
{
    return to_return < batch_slack;
}

#endif
