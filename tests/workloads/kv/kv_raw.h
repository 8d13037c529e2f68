/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the transports over raw verbs: rails, queue pairs between each client and each server,
 * a datagram queue pair of each rank, and senders that signal one request in many. For raw*.c. */
#ifndef KV_RAW_H
#define KV_RAW_H

#include "kv.h"
#include "trunkline_rails.h"

enum {
    kv_rails_max = 8,
    kv_spare = 4 /* receives of a server beyond all windows, for duplicates */
};

/* A send queue. One work request in `group` is signalled, and its completion is taken before the
 * last one of its group is posted, so no more than 2 * group - 1 are ever in the queue. Up to
 * `list_most` are posted in one piece. */
struct kv_sender {
    trunkline_qp_t qp;
    uint32_t group, list_most, list;
    uint64_t count;
    bool unreaped;
    struct ibv_send_wr *wrs;
    struct ibv_sge *sges;
    char *ring; /* 2 * group images of answers; NULL for clients with images of their own */
    struct ibv_mr *ring_mr;
};

/* A client, as its server sees it, or vice versa. */
struct kv_peer {
    struct kv_sender pair; /* the two ends of one connection */
    uint64_t segment;
    uint32_t rkey; /* of that segment on the rail of this connection */
    trunkline_address_t ud;
    struct ibv_ah *ah;
};

struct kv_raw {
    const trunkline_rail_t *rails;
    unsigned rail_count;
    trunkline_domain_t domains[kv_rails_max];
    struct ibv_mr *segment[kv_rails_max];
    struct ibv_cq *receives[kv_rails_max]; /* of datagrams and notices */
    struct kv_sender *ud; /* for datagrams; a server's by rail, a client's by server or one */
    uint32_t ud_count;
    struct kv_peer *peers; /* of a server the clients, of a client the servers */
    uint32_t peer_count;
};
extern struct kv_raw kv_raw;

/* Further properties of a transport, by name. */
bool kv_raw_writes(void);    /* requests are written into slots */
bool kv_raw_notifies(void);  /* ... and a completion announces them */
void kv_raw_switch(void);    /* from now on, in all runs: K3 found no order (--notify auto) */
bool kv_raw_datagrams(void); /* requests are datagrams */
bool kv_raw_answers_by_write(void);

static inline unsigned kv_rail_of(uint32_t client)
{
    return client % kv_raw.rail_count;
}

void kv_raw_open(void);
void kv_raw_close(void);

/* ---- Senders */

void kv_sender_open(struct kv_sender *sender, unsigned rail, const trunkline_qp_options_t *options,
                    uint32_t group, uint32_t list_most, bool ring);
void kv_sender_close(struct kv_sender *sender);

/* Returns the next work request; the caller fills it in and passes it back with its data. */
struct ibv_send_wr *kv_sender_next(struct kv_sender *sender, enum ibv_wr_opcode opcode);
void kv_sender_put(struct kv_sender *sender, struct ibv_send_wr *wr, const void *data, size_t size,
                   uint32_t lkey);
void kv_sender_flush(struct kv_sender *sender);

/* Where its image ends; for senders with a ring. */
static inline char *kv_sender_end(const struct kv_sender *sender, const struct ibv_send_wr *wr)
{
    return sender->ring + (wr->wr_id % (2 * (uint64_t)sender->group) + 1) * kv_answer_max;
}

/* After a poll that found nothing: no pause for a while, then the CPU is left to others, and a
 * while later, when there are more ranks than CPUs (--backoff), for 50 us. Messages are served
 * meanwhile. */
void kv_raw_pause(uint32_t *idle);

/* Buffers of a receive queue, one behind the other; size 0: none, for notices. Completions have the
 * place of the buffer, and `tag` in the upper half. */
struct kv_receives {
    struct ibv_qp *qp;
    char *buffers;
    size_t size;
    uint32_t lkey, of, tag;
};
void kv_raw_post_receives(const struct kv_receives *receives, uint32_t first, uint32_t count);

/* The queue pair of this rank for datagrams to and from that peer. */
struct kv_sender *kv_raw_ud(uint32_t peer);

/* ---- The two roles */

void kv_raw_server_open(void);
void kv_raw_server_close(void);
void kv_raw_server_notices(void); /* posts receives for them */
void kv_raw_serve(void);
void kv_raw_reply(const struct kv_reply *reply);

void kv_raw_client_open(void);
void kv_raw_client_close(void);
void kv_raw_request(struct kv_pending *pending);
void kv_raw_await(struct kv_pending *pending);

/* K3: 100 000 writes whose last byte must arrive last; before anything else. */
void kv_raw_probe(void);

#endif
