/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Notices: what one end of a connection reports of it to the other end, over another connection of
 * the pair. They are sent and parsed here; failover.c acts on them. */
#ifndef TK_VERBS_CONTROL_H
#define TK_VERBS_CONTROL_H

#include "transport/verbs/verbs_private.h"

struct tk_notice {
    struct tk_conn *conn; /* our end of the one that it is about */
    uint32_t incarnation; /* that it has at the other end */
    uint32_t arrived;     /* messages of ours that came over it in that incarnation, */
    uint32_t before;      /* and in the one before */
    bool is_open;         /* at the other end */
};

/* One that is malformed ends the job. */
struct tk_notice tk_notice_parse(const struct tk_buffer *buffer, uint32_t size);

/* With the lock of moves. What is to be reported and is final goes over `carrier`. */
void tk_notices_send(uint32_t rank, struct tk_conn *carrier);
void tk_notices_resend(struct tk_conn *lost);

#endif
