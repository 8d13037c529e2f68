/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The sender of rendezvous messages (rendezvous.h). Owns the sources in tk_verbs.rndv. Their lock
 * is taken under a connection's. */
#include "config.h"

#include <string.h>

#include "base/atomic.h"
#include "base/lock.h"
#include "base/pool.h"
#include "stats/stats.h"
#include "transport/transport.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/rendezvous.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/verbs_state.h"

/* Offset of the word: behind the part of the buffer that a message may use, even one that begins a
 * little later (tk_am_buffer_size). */
enum { word_at = tk_buffer_stride - sizeof(uint64_t) };
_Static_assert((int)word_at >= (int)tk_am_buffer_size && word_at % sizeof(uint64_t) == 0,
               "the word has no place of its own");

static uint64_t *word_of(const struct tk_buffer *buffer)
{
    return (uint64_t *)(void *)(buffer->data + word_at);
}

/* Has the peer's device written the word? */
static bool is_read(const struct tk_buffer *buffer)
{
    return __atomic_load_n(word_of(buffer), __ATOMIC_ACQUIRE) != 0;
}

static struct tk_buffer *source_next(const struct tk_buffer *buffer)
{
    return (struct tk_buffer *)buffer->item.next;
}

static void sources_add(struct tk_buffer *buffer)
{
    struct tk_rndv_state *state = tk_verbs.rndv;
    buffer->item.next = NULL;
    tk_lock(&state->source_lock);
    if (state->sources_first)
        state->sources_last->item.next = &buffer->item;
    else
        state->sources_first = buffer;
    state->sources_last = buffer;
    tk_unlock(&state->source_lock);
}

/* Takes the oldest source that has been read, not only the first: peers read in any order. */
static struct tk_buffer *sources_take(void)
{
    struct tk_rndv_state *state = tk_verbs.rndv;
    struct tk_buffer *before = NULL;
    tk_lock(&state->source_lock);
    struct tk_buffer *buffer = state->sources_first;
    for (; buffer && !is_read(buffer); buffer = source_next(buffer))
        before = buffer;
    if (buffer) {
        if (before)
            before->item.next = buffer->item.next;
        else
            state->sources_first = source_next(buffer);
        if (state->sources_last == buffer)
            state->sources_last = before;
    }
    tk_unlock(&state->source_lock);
    if (buffer)
        tk_counter_add(&buffer->conn->rndv_count, -1);
    return buffer;
}

/* Returns the address of a message that the client built in a buffer of ours; copies any other
 * message into the source. */
static const char *gather(const struct tk_buffer *source, const struct tk_outgoing *m)
{
    if ((uintptr_t)m->head - (uintptr_t)source->data < tk_am_buffer_size)
        return (const char *)m->head;
    memcpy(source->data, m->head, m->head_size);
    memcpy(source->data + m->head_size, m->payload, m->nbytes);
    return source->data;
}

void tk_rndv_request(struct tk_tx *tx, const struct tk_outgoing *m, struct tk_rndv_request *request)
{
    struct tk_buffer *source = tx->bounce, *other = sources_take();
    source->conn = tx->conn;
    *request = (struct tk_rndv_request){
        .head = {.kind = TK_RENDEZVOUS},
        .address = (uintptr_t)gather(source, m),
        .word = (uintptr_t)word_of(source),
        .key = source->keys[tk_verbs.rail_count + tx->conn->rail], /* remote keys are last */
        .size = (uint32_t)(m->head_size + m->nbytes)};
    __atomic_store_n(word_of(source), 0, __ATOMIC_RELAXED);
    tk_counter_add(&tx->conn->rndv_count, 1);
    sources_add(source);
    tx->bounce = other ? other : tk_large_buffer_take();
    tk_count(tk_counter_messages_offered);
}

void tk_rndv_reclaim(void)
{
    for (struct tk_buffer *buffer; (buffer = sources_take()) != NULL;)
        tk_pool_give(&tk_verbs.large_pool, buffer);
}
