/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What neighbours sent: taken from our two rings, handled where it lies. Handlers run without a
 * lock, those of several threads at the same time. */
#include "config.h"

#include "base/report.h"
#include "transport/shm/shm_private.h"

enum { batch = 16 /* messages of a ring before others have their turn */ };

static _Noreturn void wire_error(const struct tk_ring_item *item, const char *what)
{
    const struct tk_peer *peer = NULL;
    if (item->from < tk_topology.nbrhd_size)
        peer = tk_peer(tk_topology.nbrhd_ranks[item->from]);
    if (!peer)
        tk_panic("%s from a neighbour that there is not, %u of %u", what, item->from,
                 tk_topology.nbrhd_size);
    tk_panic("%s from neighbour rank %u (%s, pid %d); the ranks of a job must be built against one "
             "version of this library",
             what, peer->rank, peer->host, peer->pid);
}

static inline size_t front_of(const struct tk_message_head *head)
{
    size_t place = head->category == TK_LONG ? sizeof(struct tk_long_head) : 0;
    return tk_align_up(sizeof(*head) + place + 4u * head->nargs, 8);
}

/* Comes from another process: nothing in it is trusted before it is checked. */
static inline size_t check(const struct tk_ring_item *item)
{
    const struct tk_message_head *head = (const struct tk_message_head *)(void *)item->blob;
    tk_if_unlikely(!head || item->from >= tk_topology.nbrhd_size || item->nbytes < sizeof(*head) ||
                   head->nargs > tk_max_args || head->category > TK_LONG || head->kind > TK_CONTROL)
        wire_error(item, "a malformed message came");
    size_t front = front_of(head);
    tk_if_unlikely(item->nbytes < front)
        wire_error(item, "a message came that is shorter than its head says");
    return front;
}

static inline void hand_up(const struct tk_ring_item *item)
{
    size_t front = check(item);
    struct tk_arrival arrival = {.peer = tk_shm.links[item->from].peer,
                                 .head = (struct tk_message_head *)(void *)item->blob,
                                 .payload = item->blob + front,
                                 .nbytes = item->nbytes - front};
    tk_deliver(&arrival);
}

static bool serve(struct tk_ring_in *ring)
{
    struct tk_ring_item item;
    int n = 0;
    while (n < batch && tk_ring_take(ring, &item)) {
        hand_up(&item);
        tk_ring_done(ring, &item);
        n++;
    }
    return n > 0;
}

bool tk_shm_poll_replies(void)
{
    return tk_ring_ready(&tk_shm.replies) && serve(&tk_shm.replies);
}

bool tk_shm_poll(void)
{
    bool any = tk_shm_poll_replies();
    if (tk_ring_ready(&tk_shm.requests))
        any = serve(&tk_shm.requests) || any;
    return any;
}

/* What we do is complete when it is done. */
bool tk_shm_reap(void)
{
    return false;
}
