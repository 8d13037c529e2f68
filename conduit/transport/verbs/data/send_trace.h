/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What traces record of a message that is posted. A header of its own: sources that include it are
 * compiled once more for the libraries that trace. */
#ifndef TK_VERBS_SEND_TRACE_H
#define TK_VERBS_SEND_TRACE_H

#include <stddef.h>

#include "stats/stats.h"
#include "trace/event.h"
#include "transport/message_head.h"
#include "transport/verbs/conn/conn.h"

/* For traces: a message of the program was posted, whose number the head carries. The head of a
 * Long goes behind its payload, whose path is the message's. */
static inline void tk_message_take(const struct tk_conn *conn, const struct tk_message_head *head,
                                   size_t nbytes, unsigned path)
{
    if (!tk_is_traced || !*tk_rails_taken() || !head->reserved)
        return;
    if (!tk_path_taken)
        tk_path_taken = 1 + path;
    tk_rail_take(conn->rail, nbytes);
}

#endif
