/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See deferred.h. Owns tk_verbs.deferred, a list with a lock of its own. A buffer of a single
 * connection goes into the list itself; a shared queue has none to spare, so its messages are
 * copied. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/pool.h"
#include "base/report.h"
#include "transport/transport.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/deferred.h"
#include "transport/verbs/data/receive.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/verbs_state.h"

static void set_first(struct tk_buffer *first)
{
    __atomic_store_n(&tk_verbs.deferred.first, first, __ATOMIC_RELAXED);
}

void tk_deferred_put(struct tk_buffer *buffer, uint32_t size)
{
    buffer->sge.length = size;
    buffer->item.next = NULL;
    tk_lock(&tk_verbs.deferred.lock);
    if (tk_verbs.deferred.first)
        tk_verbs.deferred.last->item.next = &buffer->item;
    else
        set_first(buffer);
    tk_verbs.deferred.last = buffer;
    tk_unlock(&tk_verbs.deferred.lock);
}

void tk_deferred_put_copy(struct tk_conn *conn, const char *data, uint32_t size)
{
    struct tk_buffer *copy = malloc(sizeof(*copy) + size);
    if (!copy)
        tk_panic("out of memory for a message of %u bytes", size);
    copy->conn = conn;
    copy->data = memcpy(copy + 1, data, size);
    tk_deferred_put(copy, size);
}

static struct tk_buffer *take(void)
{
    if (!tk_deferred_has_some())
        return NULL;
    tk_lock(&tk_verbs.deferred.lock);
    struct tk_buffer *buffer = tk_verbs.deferred.first;
    if (buffer)
        set_first((struct tk_buffer *)buffer->item.next);
    tk_unlock(&tk_verbs.deferred.lock);
    return buffer;
}

static void give_back(struct tk_buffer *buffer)
{
    if (tk_srq_in_use()) {
        free(buffer);
        return;
    }
    buffer->sge.length = tk_buffer_size;
    tk_pool_give(&tk_rail_of(buffer->conn)->recv_pool, buffer);
}

bool tk_deferred_hand_up_all(void)
{
    struct tk_buffer *buffer;
    bool any = false;
    while ((buffer = take()) != NULL) {
        struct tk_message_head *head = (struct tk_message_head *)buffer->data;
        size_t front = tk_message_front(head->category == TK_LONG, head->nargs);
        tk_message_hand_up(buffer->conn, head, buffer->data + front, buffer->sge.length - front);
        give_back(buffer);
        any = true;
    }
    return any;
}
