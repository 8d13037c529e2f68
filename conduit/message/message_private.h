/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the senders of this room share: the bytes in front of a payload. */
#ifndef TK_MESSAGE_PRIVATE_H
#define TK_MESSAGE_PRIVATE_H

#include "message/message.h"

/* A head with everything that may follow it before the payload. */
union tk_front {
    struct tk_message_head head;
    char bytes[tk_message_head_max];
    uint64_t alignment;
};

/* Writes what `m` needs to `at` (a multiple of 8) and returns its size. */
size_t tk_front_build(void *at, const struct tk_message *m, enum tk_message_kind kind, bool packed);

/* What puts the payload of a Long; `op` counts the pieces that still read the source. */
struct tk_rma tk_payload_put(const struct tk_message *m, struct tk_op *op, bool copy);

bool tk_is_packed(const struct tk_message *m);

/* Does the payload of a Long that is not packed go over several ways, which keep no order? Then
 * `all` counts it until it is complete, and the head has to wait for that. */
bool tk_is_payload_spread(const struct tk_message *m);
struct tk_rma tk_spread_put(const struct tk_message *m, struct tk_op *all);

#endif
