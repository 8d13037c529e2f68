/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Completions: of our own work (reap) and of what peers sent (poll). One thread at a time takes
 * completions from a queue, others return at once; what was taken is acted upon without that lock,
 * so handlers run at the same time in PAR. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/report.h"
#include "transport/verbs/verbs_private.h"
#include "transport/verbs/verbs_work.h"

enum { small_message = 256 /* copying this much costs less than swapping buffers */ };

static inline void plain_done(struct tk_work *work)
{
    struct tk_op *op = work->op;
    tk_work_give_plain(work);
    tk_counter_add(&op->pending, -1);
}

/* Not inline: the loop around it should be short for what is plain. */
static void __attribute__((noinline)) work_done(struct tk_work *work, const struct ibv_wc *wc)
{
    tk_if_unlikely(wc->status != IBV_WC_SUCCESS)
    {
        tk_work_failed(work, wc);
        return;
    }
    tk_counter_add(&tk_verbs.works_out, -1);
    struct tk_op *op = work->op;
    if (work->get_to)
        memcpy(work->get_to, work->bounce->data, work->nbytes);
    tk_counter_t *sources = work->sources;
    tk_work_give(work);
    if (!op)
        return;
    if (sources)
        tk_counter_add(sources, -1);
    /* Last: whoever sees zero may free the operation. */
    tk_counter_add(&op->pending, -1);
}

static int take(struct ibv_cq *cq, tk_lock_t *lock, struct ibv_wc *wc)
{
    if (!tk_trylock(lock))
        return 0;
    int n = ibv_poll_cq(cq, tk_poll_batch, wc);
    tk_unlock(lock);
    tk_if_unlikely(n < 0) tk_panic("ibv_poll_cq failed with error %d", n);
    return n;
}

bool tk_verbs_reap(void)
{
    struct ibv_wc wc[tk_poll_batch];
    if (tk_counter_read(&tk_verbs.works_out) == 0)
        return false;
    int n = take(tk_verbs.rail.send_cq, &tk_verbs.rail.send_cq_lock, wc);
    for (int i = 0; i < n; i++) {
        struct tk_work *work = (struct tk_work *)(uintptr_t)wc[i].wr_id;
        if (!work->is_plain || wc[i].status != IBV_WC_SUCCESS) {
            work_done(work, &wc[i]);
            continue;
        }
        tk_counter_add(&tk_verbs.works_out, -1);
        plain_done(work);
    }
    return n > 0;
}

/* Where a message lies while its handler runs, and what has to be given back afterwards. */
struct place {
    char *bytes;
    struct tk_buffer *buffer;
    void *copy;
};

static void copy_out(struct place *place, struct tk_link *link, size_t size)
{
    place->copy = malloc(size);
    if (!place->copy)
        tk_panic("out of memory for a message of %zu bytes", size);
    place->bytes = memcpy(place->copy, place->buffer->data, size);
    tk_recv_post(link, place->buffer);
    place->buffer = NULL;
}

/* Posts the replacement of the buffer that came, before any handler can give the sender its credit
 * back. */
static void replace_buffer(struct place *place, struct tk_link *link, size_t size, char *small)
{
    if (link->posted >= tk_credit_buffers_needed(link))
        return;
    if (size <= small_message) {
        place->bytes = memcpy(small, place->buffer->data, size);
        tk_recv_post(link, place->buffer);
        place->buffer = NULL;
        return;
    }
    struct tk_buffer *spare = tk_pool_take(&tk_verbs.recv_pool);
    if (spare)
        tk_recv_post(link, spare);
    else
        copy_out(place, link, size);
}

static void check_head(struct tk_link *link, const struct tk_message_head *head, size_t size)
{
    size_t least = sizeof(*head);
    tk_if_unlikely(size < least || head->nargs > tk_max_args || head->category > TK_LONG ||
                   head->kind > TK_CONTROL) tk_wire_error(link, "a malformed message came");
    least += 4u * head->nargs + (head->category == TK_LONG ? sizeof(struct tk_long_head) : 0);
    tk_if_unlikely(size < least)
        tk_wire_error(link, "a message came that is shorter than its head says");
}

static void account(struct tk_link *link, const struct tk_message_head *head)
{
    int credits = head->credits;
    link->posted--;
    if (head->kind == TK_REPLY || head->kind == TK_ACK)
        credits++;
    if (head->kind == TK_CONTROL)
        link->control_expected = 0;
    if (credits)
        tk_credit_return(link, credits);
}

static void hand_up(struct tk_link *link, char *bytes, size_t size)
{
    struct tk_message_head *head = (struct tk_message_head *)bytes;
    size_t front = sizeof(*head) + 4u * head->nargs +
                   (head->category == TK_LONG ? sizeof(struct tk_long_head) : 0);
    front = tk_min(tk_align_up(front, 8), size);
    struct tk_arrival arrival = {
        .peer = link->peer, .head = head, .payload = bytes + front, .nbytes = size - front};
    tk_deliver(&arrival);
    if (head->kind != TK_REQUEST || arrival.replied)
        return;
    tk_lock(&link->lock);
    tk_credit_owe(link);
    tk_unlock(&link->lock);
}

static void arrived(struct tk_buffer *buffer, size_t size)
{
    _Alignas(8) char small[small_message];
    struct tk_link *link = buffer->link;
    struct place place = {.bytes = buffer->data, .buffer = buffer};
    struct tk_message_head *head = (struct tk_message_head *)buffer->data;
    check_head(link, head, size);
    uint8_t kind = head->kind;
    tk_lock(&link->lock);
    account(link, head);
    replace_buffer(&place, link, size, small);
    tk_unlock(&link->lock);
    if (kind != TK_ACK)
        hand_up(link, place.bytes, size);
    free(place.copy);
    if (place.buffer)
        tk_pool_give(&tk_verbs.recv_pool, place.buffer);
}

bool tk_verbs_poll(void)
{
    struct ibv_wc wc[tk_poll_batch];
    bool any = tk_verbs_reap();
    int n = take(tk_verbs.rail.recv_cq, &tk_verbs.rail.recv_cq_lock, wc);
    for (int i = 0; i < n; i++) {
        struct tk_buffer *buffer = (struct tk_buffer *)(uintptr_t)wc[i].wr_id;
        tk_if_unlikely(wc[i].status != IBV_WC_SUCCESS)
        {
            tk_recv_failed(buffer->link, &wc[i]);
            continue;
        }
        arrived(buffer, wc[i].byte_len);
    }
    tk_if_unlikely(tk_counter_read(&tk_verbs.acks_due) > 0) tk_acks_send();
    return any || n > 0;
}
