/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ways up from transports: to messages, and to the end of the job. Written at start-up; the
 * second is taken away when the job is leaving. And what transports share. */
#include "config.h"

#include "peer/peer.h"
#include "transport/transport.h"

void (*tk_deliver)(struct tk_arrival *arrival);
void (*tk_lost_peer)(uint32_t peer);

enum tk_status tk_send_short_whole(struct tk_peer *peer, struct tk_message_head head,
                                   const int32_t *args)
{
    struct tk_short message;
    struct tk_outgoing out = {.head = &message.head, .head_size = tk_short_size(head.nargs)};
    tk_short_build(&message, head, args);
    return peer->transport->send(peer, &out);
}
