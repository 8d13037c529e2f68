/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Calls from transports upwards: to deliver messages, and to end the job. Written at start-up; the
 * second is cleared when the job is leaving. Also what transports share. */
#include "config.h"

#include "peer/peer.h"
#include "transport/transport.h"
#include "transport/wait_ticket.h"

void (*tk_deliver)(struct tk_arrival *arrival);
void (*tk_deliver_medium)(struct tk_arrival *arrival);
bool (*tk_deliver_short)(struct tk_peer *from, unsigned tag, const int32_t *args);
void (*tk_lost_peer)(uint32_t peer);
TK_PER_THREAD struct tk_wait_ticket *tk_wait_ticket;

enum tk_status tk_send_short_whole(struct tk_peer *peer, struct tk_message_head head,
                                   const int32_t *args, tk_short_busy *busy)
{
    struct tk_short message;
    struct tk_outgoing out = {.head = &message.head, .head_size = tk_short_size(head.nargs)};
    tk_short_build(&message, head, args);
    enum tk_status status = tk_peer_transport(peer)->am.send(peer, &out);
    return status == TK_BUSY && busy ? busy(peer, head, args) : status;
}

enum tk_status tk_send_medium_whole(struct tk_peer *peer, uint64_t head, const int32_t *args,
                                    const void *payload, size_t nbytes, tk_medium_busy *busy)
{
    struct tk_short front;
    struct tk_outgoing out = {.head = &front.head,
                              .head_size = tk_short_size(tk_head_nargs(head)),
                              .payload = payload,
                              .nbytes = nbytes};
    tk_short_build(&front, tk_head_of_number(head), args);
    enum tk_status status = tk_peer_transport(peer)->am.send(peer, &out);
    return status == TK_BUSY && busy ? busy(peer, head, args, payload, nbytes) : status;
}

enum tk_status tk_send_small_short(struct tk_peer *peer, unsigned tag, uint64_t args,
                                   tk_small_busy *busy)
{
    const int32_t both[] = {(int32_t)args, (int32_t)(args >> 32)};
    enum tk_status status =
        tk_peer_transport(peer)->am.send_short(peer, tk_tag_head(tag), both, NULL);
    return status == TK_BUSY && busy ? busy(peer, tag, args) : status;
}

bool tk_put_never(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                  size_t nbytes)
{
    (void)peer, (void)op, (void)remote, (void)local, (void)nbytes;
    return false;
}

bool tk_get_never(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local,
                  size_t nbytes)
{
    (void)peer, (void)op, (void)remote, (void)local, (void)nbytes;
    return false;
}
