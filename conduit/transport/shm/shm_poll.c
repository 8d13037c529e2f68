/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Receiving from neighbours: takes messages from our two rings and handles them in place. Handlers
 * run without a lock, so several threads run them at the same time. */
#include "config.h"

#include "base/report.h"
#include "stats/stats.h"
#include "transport/shm/shm_private.h"

/* A poll leaves a ring when it reaches a multiple of 16 messages, so that other work is served. */
static const uint64_t batch = 15 * TK_RING_SLOT;

enum { fetch_above = 512, fetch_max = 8192, fetch_step = 512 };
_Static_assert((int)fetch_step <= (int)fetch_above, "the last step is a whole one");

/* Always inline: GCC drops calls of functions that only prefetch. */
static inline void __attribute__((always_inline)) fetch_one_step(const char *at)
{
#pragma GCC unroll 8
    for (size_t line = 0; line < fetch_step; line += TK_CACHE_LINE)
        __builtin_prefetch(at + line);
}

static _Noreturn void wire_error(unsigned from, const char *what)
{
    const struct tk_peer *peer = NULL;
    if (from < tk_shm.size)
        peer = tk_peer(tk_topology.nbrhd_ranks[from]);
    if (!peer)
        tk_panic("%s from neighbour %u, but there are only %u", what, from, tk_shm.size);
    tk_panic("%s from neighbour rank %u (%s, pid %d); the ranks of a job must be built against one "
             "version of this library",
             what, peer->rank, peer->host, peer->pid);
}

/* The message comes from another process: check it before trusting anything in it. */
static size_t poll_check(const struct tk_message_head *head, size_t nbytes, unsigned from)
{
    if (from >= tk_shm.size || !head || nbytes < sizeof(*head) || head->nargs > tk_max_args ||
        head->category > TK_LONG || head->kind > TK_CONTROL)
        wire_error(from, "a malformed message came");
    size_t front = tk_message_front(head->category == TK_LONG, head->nargs);
    if (nbytes < front)
        wire_error(from, "a message came that is shorter than its head says");
    return front;
}

/* Starts fetching a payload from the sender's cache while its handler is looked up. Out-of-order
 * execution covers shorter copies, string instructions the longer ones. Only for a peer whose last
 * request was answered: it waits for our reply. Other messages may be a flood whose handlers never
 * read the payload, and a line that stays in its writer's cache is written again without a request
 * to ours. It fetches in steps, the last one at the end of the payload: a loop over single lines
 * takes three times the instructions. */
static inline void __attribute__((always_inline)) fetch(const char *payload, size_t nbytes)
{
    if (nbytes <= fetch_above || nbytes > fetch_max)
        return;
    const char *last = payload + tk_align_up(nbytes, TK_CACHE_LINE) - fetch_step;
    do {
        fetch_one_step(payload);
        payload += fetch_step;
    } while (payload < last);
    fetch_one_step(last);
}

static inline void __attribute__((always_inline))
fetch_if_awaited(const struct tk_shm_conn *link, const char *payload, size_t nbytes)
{
    if (__atomic_load_n(&link->was_answered, __ATOMIC_RELAXED))
        fetch(payload, nbytes);
}

static inline void note_answer(struct tk_shm_conn *link, const struct tk_arrival *arrival)
{
    if (arrival->replied != __atomic_load_n(&link->was_answered, __ATOMIC_RELAXED) &&
        arrival->head->kind == TK_REQUEST)
        __atomic_store_n(&link->was_answered, arrival->replied, __ATOMIC_RELAXED);
}

static inline void poll_hand_up(const struct tk_ring_item *item)
{
    struct tk_message_head *head = (struct tk_message_head *)(void *)item->blob;
    size_t front = poll_check(head, item->nbytes, item->from);
    struct tk_shm_conn *link = &tk_shm.links[item->from];
    struct tk_arrival arrival = {.peer = tk_shm.peers[item->from],
                                 .head = head,
                                 .payload = item->blob + front,
                                 .nbytes = item->nbytes - front};
    if (item->rest) {
        arrival.payload = item->rest;
        arrival.nbytes = item->rest_size;
        fetch_if_awaited(link, item->rest, item->rest_size);
    }
    tk_deliver(&arrival);
    note_answer(link, &arrival);
}

/* Nearly all messages without a tag are Mediums of the client: one comparison recognises such a
 * head. */
static inline bool poll_is_medium(const struct tk_ring_parts *parts, unsigned from)
{
    const uint64_t head = tk_head_number((struct tk_message_head *)(void *)parts->head);
    return from < tk_shm.size && tk_head_is_medium(head) &&
           tk_short_size(tk_head_nargs(head)) == parts->head_size;
}

_Static_assert(sizeof(struct tk_arrival) == 4 * sizeof(void *) + 2 * sizeof(unsigned),
               "poll_hand_up_medium() sets each member");

static inline void poll_hand_up_medium(const struct tk_ring_parts *parts, unsigned from)
{
    struct tk_shm_conn *link = &tk_shm.links[from];
    struct tk_arrival arrival; /* an initializer would clear the whole struct first */
    arrival.peer = tk_shm.peers[from];
    arrival.head = (struct tk_message_head *)(void *)parts->head;
    arrival.payload = parts->rest;
    arrival.nbytes = parts->rest_size;
    arrival.tag = 0;
    arrival.replied = false;
    fetch_if_awaited(link, parts->rest, parts->rest_size);
    tk_deliver_medium(&arrival);
    note_answer(link, &arrival);
}

static inline void poll_hand_up_short(char *blob, unsigned tag, unsigned from)
{
    tk_if_unlikely(from >= tk_shm.size || tk_tag_nargs(tag) > tk_shm_slot_args)
        wire_error(from, "a malformed message came");
    tk_deliver_short(tk_shm.peers[from], tag, (const int32_t *)(void *)blob);
}

static uint64_t __attribute__((noinline)) serve_any(struct tk_ring_in *ring, struct tk_ring_look at)
{
    struct tk_ring_item item;
    tk_ring_pass_any(ring, &at, &item);
    poll_hand_up(&item);
    tk_ring_done(ring, &item);
    return item.end;
}

/* Serves a message without a tag. Returns the position behind it. */
static uint64_t __attribute__((noinline))
serve_untagged(struct tk_ring_in *ring, struct tk_ring_look at)
{
    struct tk_ring_parts parts;
    const unsigned from = tk_ring_from(&at);
    tk_if_unlikely(!tk_ring_part(ring, &at, &parts) ||
                   !poll_is_medium(&parts, from)) return serve_any(ring, at);
    tk_ring_pass(ring, &at, parts.end);
    poll_hand_up_medium(&parts, from);
    tk_ring_done_from(ring, parts.start, parts.end);
    return parts.end;
}

/* Not inline, so that an empty poll saves no registers for it. */
static bool __attribute__((noinline)) retire_both(void)
{
    tk_ring_retire_left(&tk_shm.replies);
    tk_ring_retire_left(&tk_shm.requests);
    return false;
}

/* Not inline, for the same reason. */
static bool __attribute__((noinline)) serve(struct tk_ring_in *ring)
{
    struct tk_ring_look at;
    uint64_t end;
    if (!tk_ring_begin(ring, &at)) { /* PAR: another thread takes the message */
        tk_ring_stand_back();
        return false;
    }
    do {
        tk_if_unlikely(!tk_ring_is_tagged(&at))
        {
            end = serve_untagged(ring, at);
            continue;
        }
        end = tk_ring_pass_tagged(ring, &at);
        poll_hand_up_short(at.slot->blob, tk_ring_size(&at), tk_ring_from(&at));
        if (TK_THREADED) {
            tk_compute_again(ring);
            tk_compute_again(end);
        }
        tk_ring_done_slot(ring, end);
    } while ((end & batch) && tk_ring_begin_next(ring, &at));
    /* Polls that find messages do not look for space that is ready to be given back. If one ring is
     * never empty, all polls find messages, and a sender to the other ring may wait for that space.
     * A look once in a batch costs less than an instruction per message. */
    tk_if_unlikely(!(end & batch) && (tk_ring_is_behind(&tk_shm.replies) ||
                                      tk_ring_is_behind(&tk_shm.requests))) retire_both();
    return true;
}

bool tk_shm_poll_replies(void)
{
    struct tk_ring_look at;
    if (tk_ring_look(&tk_shm.replies, &at))
        return serve(&tk_shm.replies);
    tk_ring_retire_left(&tk_shm.replies);
    return false;
}

/* Not inline: a poll that finds nothing, or one request, saves no registers. */
static bool __attribute__((noinline)) serve_both(void)
{
    struct tk_ring_look at;
    bool any = serve(&tk_shm.replies);
    if (tk_ring_look(&tk_shm.requests, &at))
        any |= serve(&tk_shm.requests);
    return any;
}

bool tk_shm_poll(void)
{
    struct tk_ring_look at;
    tk_if_unlikely(tk_ring_look(&tk_shm.replies, &at)) return serve_both();
    if (tk_ring_look(&tk_shm.requests, &at))
        return serve(&tk_shm.requests);
    tk_if_unlikely(tk_ring_is_behind(&tk_shm.replies) ||
                   tk_ring_is_behind(&tk_shm.requests)) return retire_both();
    return tk_count_empty_poll(tk_counter_empty_polls_neighbours);
}

bool tk_shm_has_come(bool requests_too)
{
    return tk_ring_has_come(&tk_shm.replies) ||
           (requests_too && tk_ring_has_come(&tk_shm.requests));
}

/* Operations over shared memory are complete when the call returns. */
bool tk_shm_reap(void)
{
    return false;
}
