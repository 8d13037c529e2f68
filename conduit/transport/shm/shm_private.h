/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of transport/shm share. Each rank has one file of memory, mapped by its
 * neighbours, in which they leave messages for it: a line with a nonce and its liveness, a line for
 * its doorbell, two rings, flags of rooms above, the payloads of the rings, and scratch for
 * collectives. Requests and replies have a ring each: a thread that handles a request may wait for
 * space for its reply, and meanwhile serves replies, which wait for nothing. */
#ifndef TK_SHM_PRIVATE_H
#define TK_SHM_PRIVATE_H

#include "base/bits.h"
#include "memory/memory.h"
#include "peer/peer.h"
#include "transport/doorbell.h"
#include "transport/shm/ring.h"
#include "transport/shm/shm.h"
#include "transport/transport.h"

/* Small enough to stay in a second-level cache, large enough for a few of the largest messages. */
enum {
    tk_shm_slots = 1024,
    tk_shm_lines = tk_message_max <= 65536 ? 4096 : 4 * (tk_message_max / TK_CACHE_LINE),
    tk_shm_payload = tk_shm_lines * TK_CACHE_LINE
};

/* A Short with at most this many arguments travels as a tag and its arguments, in a slot. */
enum { tk_shm_slot_args = tk_ring_slot_max / sizeof(int32_t) };

_Static_assert((int)tk_shm_slot_args <= (int)tk_tag_args_max, "the tag can count them");
_Static_assert(tk_message_max <= tk_shm_payload / 2, "the ring holds any message");

/* Our connection to a neighbour. */
struct tk_shm_conn {
    struct tk_ring_out requests, replies;
    struct tk_doorbell *bell;
    char *flags, *scratch;
    struct tk_peer *peer;
    struct tk_rings_place place;
    bool was_answered;                /* the last request that it sent to us was answered; a hint */
    const _Atomic uint32_t *liveness; /* NULL: nothing of it is mapped */
};

struct tk_shm {
    struct tk_area area; /* ours */
    char *base;          /* the area, mapped as neighbours map it */
    size_t front;        /* bytes in front of the payloads */
    size_t scratch; /* bytes behind the payloads, for collectives; only touched pages are present */
    struct tk_ring_in requests, replies;
    struct tk_shm_conn *links; /* by index in the neighbourhood; ours is unused */
    struct tk_peer **peers;    /* likewise */
    uint32_t size;             /* of the neighbourhood */
};

extern TK_HIDDEN struct tk_shm tk_shm;

static inline size_t tk_shm_rings_bytes(size_t front)
{
    return front + 2 * (size_t)tk_shm_payload;
}

static inline size_t tk_shm_rings_size(void)
{
    return tk_shm_rings_bytes(tk_shm.front);
}

static inline size_t tk_shm_file_size(void)
{
    return tk_shm_rings_size() + tk_shm.scratch;
}

/* The size of a mapping; the scratch is last. */
static inline size_t tk_shm_mapped_size(void)
{
    return tk_shm.front + 4 * (size_t)tk_shm_payload + tk_shm.scratch;
}

/* Private memory of the process in addition: an entry for each rank of the neighbourhood. */
static inline size_t tk_shm_links_bytes(size_t size)
{
    return tk_align_up(size * sizeof(struct tk_shm_conn), TK_CACHE_LINE);
}

static inline size_t tk_shm_peers_bytes(size_t size)
{
    return size * sizeof(struct tk_peer *);
}

/* Parts of a mapping. */
struct tk_shm_parts {
    struct tk_doorbell *bell;
    struct tk_ring_shared *requests, *replies;
    char *flags;
    char *request_payload, *reply_payload;
    char *scratch;
};
/* shm_layout.c */
struct tk_shm_parts tk_shm_parts(char *base);

/* Bytes in front of the payloads, whole pages. */
size_t tk_shm_front(void);

/* The liveness word of the rank whose file is mapped there: behind the nonce. */
static inline _Atomic uint32_t *tk_shm_liveness_at(char *base)
{
    return (_Atomic uint32_t *)(void *)(base + sizeof(((struct tk_rings_place *)0)->nonce));
}

/* shm_memory.c */
char *tk_shm_map_rings(int fd);

/* Maps the neighbour's rings, once. NULL: it can't be mapped; the cause was logged. */
struct tk_shm_conn *tk_shm_conn_make(struct tk_peer *peer);

/* Ends the job, unless it is leaving anyway. */
void tk_shm_lose(struct tk_peer *peer);

/* shm_post.c */
enum tk_status tk_shm_send(struct tk_peer *peer, struct tk_outgoing *message);
enum tk_status tk_shm_send_short(struct tk_peer *peer, struct tk_message_head head,
                                 const int32_t *args, tk_short_busy *busy);
enum tk_status tk_shm_send_small(struct tk_peer *peer, unsigned tag, uint64_t args,
                                 tk_small_busy *busy);
enum tk_status tk_shm_send_medium(struct tk_peer *peer, uint64_t head, const int32_t *args,
                                  const void *payload, size_t nbytes, tk_medium_busy *busy);
enum tk_status tk_shm_reserve(struct tk_am_reservation *reservation, bool place, bool buffer);
enum tk_status tk_shm_reserve_place(struct tk_am_reservation *reservation);
enum tk_status tk_shm_send_reserved(struct tk_am_reservation *reservation,
                                    struct tk_outgoing *message);
void tk_shm_release(struct tk_am_reservation *reservation, bool keep_credit);
void tk_shm_leave_queue(const struct tk_peer *peer, struct tk_wait_ticket *ticket);

/* shm_rma.c */
bool tk_shm_put(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                size_t nbytes);
bool tk_shm_get(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local,
                size_t nbytes);
enum tk_status tk_shm_rma(struct tk_peer *peer, const struct tk_rma *rma,
                          struct tk_rma_state *state);

/* shm_poll.c */
bool tk_shm_poll(void);
bool tk_shm_reap(void);
bool tk_shm_poll_replies(void);
bool tk_shm_has_come(bool requests_too);

#endif
