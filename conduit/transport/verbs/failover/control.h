/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Notices: what one end of a connection reports about it to the other end, over another connection
 * of the pair. This file sends and parses them; failover.c acts on them. */
#ifndef TK_VERBS_CONTROL_H
#define TK_VERBS_CONTROL_H

#include <stdbool.h>
#include <stdint.h>

struct tk_buffer;
struct tk_conn;

struct tk_notice {
    struct tk_conn *conn; /* our end of the connection that it describes */
    uint32_t incarnation; /* the connection's incarnation at the other end */
    uint32_t arrived;     /* our messages that came over it in that incarnation, */
    uint32_t before;      /* and in the one before */
    bool is_open;         /* at the other end */
};

/* A malformed notice ends the job. */
struct tk_notice tk_notice_parse(const struct tk_buffer *buffer, uint32_t size);

/* With the lock of moves. Sends due notices over `carrier`, if their contents are final. */
void tk_notices_send(uint32_t rank, struct tk_conn *carrier);
void tk_notices_resend(struct tk_conn *lost);

#endif
