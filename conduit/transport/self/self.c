/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Transport to ourselves: memory copies, and handlers that run inside the sending call. Owns
 * buffers for payloads, which handlers may write to: one for each message that is being handled (a
 * request and its reply, for each thread). */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/copy.h"
#include "base/pool.h"
#include "base/report.h"
#include "op/op_type.h"
#include "stats/stats.h"
#include "transport/self/self.h"
#include "transport/transport.h"

struct self_buffer {
    struct tk_pool_item item;
    _Alignas(tk_am_buffer_alignment) char data[tk_am_buffer_size];
};

static struct tk_pool buffers = {.lock = TK_LOCK_INIT};

static struct self_buffer *take_buffer(void)
{
    struct self_buffer *buffer = tk_pool_take(&buffers);
    if (!buffer)
        buffer = malloc(sizeof(*buffer));
    if (!buffer)
        tk_panic("out of memory for a message to ourselves");
    return buffer;
}

static enum tk_status self_send(struct tk_peer *peer, struct tk_outgoing *m)
{
    struct tk_arrival arrival = {.peer = peer, .head = m->head, .nbytes = m->nbytes};
    struct self_buffer *buffer = m->nbytes ? take_buffer() : NULL;
    if (buffer)
        arrival.payload = memcpy(buffer->data, m->payload, m->nbytes);
    tk_deliver(&arrival);
    if (buffer)
        tk_pool_give(&buffers, buffer);
    return TK_OK;
}

static enum tk_status self_reserve(struct tk_am_reservation *reservation, bool place, bool buffer)
{
    (void)place;
    reservation->tx = buffer ? take_buffer() : NULL;
    reservation->buffer = buffer ? ((struct self_buffer *)reservation->tx)->data : NULL;
    return TK_OK;
}

static enum tk_status self_reserve_place(struct tk_am_reservation *reservation)
{
    (void)reservation;
    return TK_OK;
}

static void self_release(struct tk_am_reservation *reservation, bool keep_credit)
{
    (void)keep_credit;
    if (reservation->tx)
        tk_pool_give(&buffers, reservation->tx);
    reservation->tx = NULL;
}

/* The handler gets the buffer that the client filled. */
static enum tk_status self_send_reserved(struct tk_am_reservation *reservation,
                                         struct tk_outgoing *m)
{
    if (!reservation->buffer)
        return self_send(reservation->peer, m);
    struct tk_arrival arrival = {.peer = reservation->peer,
                                 .head = m->head,
                                 .payload = (void *)m->payload,
                                 .nbytes = m->nbytes};
    tk_deliver(&arrival);
    self_release(reservation, false);
    return TK_OK;
}

/* Words move whole, as between neighbours: another thread may read them. */
static bool self_put(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                     size_t nbytes)
{
    (void)peer;
    if (nbytes == 0)
        return false;
    tk_copy_whole((void *)remote, local, nbytes);
    tk_count_transfer(tk_path_puts_self, tk_counter_put_bytes_self, nbytes);
    tk_counter_add(&op->pending, -1);
    return true;
}

static bool self_get(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local,
                     size_t nbytes)
{
    (void)peer;
    if (nbytes == 0)
        return false;
    tk_copy_whole(local, (void *)remote, nbytes);
    tk_count_transfer(tk_path_gets_self, tk_counter_get_bytes_self, nbytes);
    tk_counter_add(&op->pending, -1);
    return true;
}

static enum tk_status self_rma(struct tk_peer *peer, const struct tk_rma *rma,
                               struct tk_rma_state *state)
{
    (void)peer;
    if (rma->is_put)
        tk_copy_whole((void *)rma->remote, rma->local, rma->nbytes);
    else
        tk_copy_whole(rma->local, (void *)rma->remote, rma->nbytes);
    state->done = rma->nbytes;
    if (rma->is_put && !rma->is_payload && rma->nbytes > 0)
        tk_count_transfer(tk_path_puts_self, tk_counter_put_bytes_self, rma->nbytes);
    else if (!rma->is_put && rma->nbytes > 0)
        tk_count_transfer(tk_path_gets_self, tk_counter_get_bytes_self, rma->nbytes);
    return TK_OK;
}

static bool nothing_arrives(void)
{
    return false;
}

const struct tk_transport tk_transport_self = {
    .name = "self",
    .reach = TK_REACH_SELF,
    .rma = {.put = self_put, .get = self_get, .post = self_rma},
    .am = {.send_short = tk_send_short_whole,
           .send_small = tk_send_small_short,
           .send = self_send,
           .reserve = self_reserve,
           .reserve_place = self_reserve_place,
           .send_reserved = self_send_reserved,
           .release = self_release,
           .packed_max = 0}, /* a Long's payload is copied once, to its place */
    .poll = nothing_arrives,
    .reap = nothing_arrives,
    .reap_in_handler = nothing_arrives,
};
