/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The ways up from transports: to messages, and to the end of the job. Written at start-up; the
 * second is taken away when the job is leaving. And what transports share. */
#include "config.h"

#include "peer/peer.h"
#include "transport/transport.h"

void (*tk_deliver)(struct tk_arrival *arrival);
void (*tk_deliver_short)(struct tk_peer *from, unsigned tag, const int32_t *args);
enum tk_status (*tk_short_later)(struct tk_peer *peer, struct tk_message_head head,
                                 const int32_t *args);
void (*tk_lost_peer)(uint32_t peer);

enum tk_status tk_send_short_whole(struct tk_peer *peer, struct tk_message_head head,
                                   const int32_t *args, bool immediate)
{
    struct tk_short message;
    struct tk_outgoing out = {.head = &message.head, .head_size = tk_short_size(head.nargs)};
    tk_short_build(&message, head, args);
    enum tk_status status = peer->transport->send(peer, &out);
    return status == TK_BUSY && !immediate ? tk_short_later(peer, head, args) : status;
}

enum tk_status tk_send_small_short(struct tk_peer *peer, unsigned tag, uint64_t args,
                                   bool immediate)
{
    const int32_t both[] = {(int32_t)args, (int32_t)(args >> 32)};
    return peer->transport->send_short(peer, tk_tag_head(tag), both, immediate);
}

TK_PER_THREAD struct tk_asked tk_asked;

bool tk_not_the_short_way(struct tk_peer *peer, struct tk_op *op, uintptr_t remote,
                          const void *local, size_t nbytes)
{
    tk_asked = (struct tk_asked){
        .peer = peer, .op = op, .remote = remote, .local = (void *)local, .nbytes = nbytes};
    return false;
}
