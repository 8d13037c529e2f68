/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the senders of message/: the bytes in front of a payload. */
#ifndef TK_MESSAGE_PRIVATE_H
#define TK_MESSAGE_PRIVATE_H

#include "message/message.h"

/* A head and all that may follow it before the payload. */
union tk_front {
    struct tk_message_head head;
    char bytes[tk_message_head_max];
    uint64_t alignment;
};

/* Writes the head and arguments of `m` to `at` (a multiple of 8) and returns their size. */
size_t tk_front_build(void *at, const struct tk_message *m, enum tk_message_kind kind, bool packed);

/* The put for the payload of a Long; `op` counts the pieces that still read the source. */
struct tk_rma tk_payload_put(const struct tk_message *m, struct tk_op *op, bool copy);

/* The payload of a Long by rma.post(), then its head, with a reservation that has a place. TK_BUSY:
 * nothing was posted, and the place was given back, with the credit unless that is to be kept.
 * Waits for our own device at most, and does not poll. */
enum tk_status tk_send_apart_reserved(struct tk_am_reservation *reservation,
                                      const struct tk_rma *rma, struct tk_outgoing *out,
                                      bool keep_credit);

/* A Medium or Long of the program that was sent. */
void tk_message_count(const struct tk_message *m, enum tk_message_kind kind);

bool tk_is_packed(const struct tk_message *m);

/* With GEX_EVENT_NOW: not copied, but lent to the device until it has sent it. */
bool tk_is_lent(const struct tk_message *m, bool packed);

/* Whether the payload of a Long that is not packed is striped over several queue pairs, which are
 * not ordered with each other. Then `all` counts it until it is complete, and the head must wait
 * for that. */
bool tk_is_payload_striped(const struct tk_message *m);
struct tk_rma tk_stripe_put(const struct tk_message *m, struct tk_op *all);

#endif
