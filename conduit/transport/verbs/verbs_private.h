/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of transport/verbs share. A rail is one port in use; a link is the connection to
 * one peer over it.
 *
 * Locks: a link's lock guards its credits, its receive queue and the order of its sends. A pool's
 * lock may be taken under it. The locks of the completion queues are only tried, and are free again
 * before a completion is acted upon. */
#ifndef TK_VERBS_PRIVATE_H
#define TK_VERBS_PRIVATE_H

#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/lock.h"
#include "base/pool.h"
#include "memory/memory.h"
#include "peer/peer.h"
#include "transport/transport.h"
#include "transport/verbs/verbs.h"

enum {
    tk_buffer_size =
        tk_message_max, /* of a receive and of a bounce buffer: the largest Medium with its head */
    /* Apart in memory by a little more than their size: heads of all buffers would else fall into
     * the same few sets of the cache. Also what tk_room_size needs. */
    tk_buffer_stride = tk_buffer_size + TK_CACHE_LINE,
    tk_inline_most = 512, /* inline sends are gathered on the stack; no device gains from more */
    tk_quiet_most = 128, /* what is copied to be sent quietly: Shorts, and a few words of payload */
    tk_poll_batch = 16   /* completions taken at a time: one cache line each on most devices */
};

struct tk_link;

/* A registered piece of tk_buffer_size bytes. */
struct tk_buffer {
    struct tk_pool_item item;
    struct tk_link *link; /* while posted for receiving */
    char *data;
    uint32_t key;
    struct ibv_recv_wr wr; /* posts it for receiving */
    struct ibv_sge sge;
};

/* A work request under way. */
struct tk_work {
    struct tk_pool_item item;
    struct tk_link *link;
    uint32_t nbytes;
    int covers;               /* quiet messages posted before it that its completion stands for */
    struct tk_op *op;         /* may be NULL: nobody waits for it */
    struct tk_buffer *bounce; /* given back on completion */
    void *get_to;             /* get through the bounce buffer: where the data belongs */
    tk_counter_t *sources;    /* counts it too, while it reads its source; may be NULL */
    uint8_t opcode;           /* enum ibv_wr_opcode, for messages */
    bool is_plain; /* completion only counts: bounce, get_to and sources are not looked at */
};

struct tk_link {
    _Alignas(TK_CACHE_LINE) tk_lock_t lock;
    struct ibv_qp *qp;
    struct tk_peer *peer;
    int credits;               /* requests that we may send now */
    int banked;                /* credits of the peer's that we hold back */
    int surplus;               /* receive buffers in the queue beyond those needed */
    int quiet;                 /* messages posted without a completion since the last one with */
    int control_expected;      /* 1 until the peer's exit notice came: it has a buffer of its own */
    bool ack_due;              /* an ACK could not be sent for lack of room */
    tk_counter_t broken;       /* not 0: an error was told; what is posted never completes */
    tk_counter_t room;         /* free slots of the send queue */
    struct tk_work quiet_work; /* names the link in errors of quiet messages */
    uint64_t starved_since;
    struct ibv_send_wr
        quiet_wr; /* of quiet messages; from one to the next only the length changes */
    struct ibv_sge quiet_sge;
    union {
        struct tk_short message;
        char bytes[tk_quiet_most];
    } quiet_data;
};

struct tk_rail {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *send_cq, *recv_cq;
    struct tk_port_address address;
    int gid_index, pkey_index;
    const char *why; /* of the choice, for the start-up record */
    uint32_t rate_mbps;
    uint32_t message_max; /* of the port */
    int reads_out;        /* RDMA reads we may have under way on a queue pair */
    size_t inline_limit;
    _Alignas(TK_CACHE_LINE) tk_lock_t send_cq_lock;
    _Alignas(TK_CACHE_LINE) tk_lock_t recv_cq_lock;
};

/* Registered slabs of buffers; see verbs_memory.c. */
struct tk_slab {
    struct tk_area area;
    struct ibv_mr *mr;
    struct tk_buffer *buffers;
    struct tk_slab *next;
};

struct tk_verbs {
    struct tk_rail rail;
    struct tk_link *links; /* by rank; ours is unused */
    struct ibv_mr *segment_mr;
    struct tk_slab *slabs;
    struct tk_pool recv_pool, bounce_pool, work_pool;
    struct tk_work *works;
    int credits_pp, slack;
    int depth_pp, depth_total;
    int bounces;                /* buffers in bounce_pool and out of it */
    int quiet_max;              /* quiet messages in a row on a link */
    tk_counter_t credits_total; /* requests that this process may still have in flight */
    tk_counter_t acks_due;
    tk_counter_t works_out; /* work requests under way: an idle send CQ need not be polled */
};

extern TK_HIDDEN struct tk_verbs tk_verbs;

/* verbs_ports.c */
enum tk_status tk_port_choose(struct tk_rail *rail);

/* Mb/s */
uint32_t tk_port_rate(const struct ibv_port_attr *attr);

/* verbs_memory.c */
enum tk_status tk_buffers_open(struct tk_rail *rail, unsigned recv_count, unsigned bounce_count);
enum tk_status tk_recv_pool_grow(void);
struct ibv_mr *tk_register(struct tk_rail *rail, void *base, size_t size, const char *what);
void tk_buffers_close(void);

/* verbs_connect.c */
enum tk_status tk_link_open(struct tk_rail *rail, struct tk_link *link, struct tk_peer *peer);
enum tk_status tk_link_connect(struct tk_rail *rail, struct tk_link *link,
                               const struct tk_port_address *to, uint32_t qp);
void tk_link_close(struct tk_link *link);

/* verbs_credit.c: all with the link's lock held */
void tk_recv_refused(struct tk_link *link, struct tk_buffer *buffer, int error);
void tk_credit_owe(struct tk_link *link);
void tk_acks_send(void);

/* verbs_post.c */
bool tk_is_registered(const void *address, size_t size);
enum tk_status tk_verbs_send(struct tk_peer *peer, struct tk_outgoing *message);
enum tk_status tk_verbs_send_short(struct tk_peer *peer, struct tk_message_head head,
                                   const int32_t *args);
enum tk_status tk_message_post(struct tk_link *link, struct tk_outgoing *message);

void tk_message_post_work(struct tk_link *link, struct tk_work *work, struct tk_outgoing *message);

/* verbs_room.c */
enum tk_status tk_verbs_reserve(struct tk_room *room, bool place, bool buffer);
enum tk_status tk_verbs_send_reserved(struct tk_room *room, struct tk_outgoing *message);
void tk_verbs_release(struct tk_room *room, bool keep_credit);

/* verbs_rma.c */
bool tk_verbs_put(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                  size_t nbytes);
bool tk_verbs_get(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local,
                  size_t nbytes);
enum tk_status tk_verbs_rma(struct tk_peer *peer, struct tk_rma *rma);

/* verbs_poll.c */
bool tk_verbs_poll(void);
bool tk_verbs_reap(void);

/* verbs_error.c */
void tk_post_failed(struct tk_work *work, int error);
void tk_work_failed(struct tk_work *work, const struct ibv_wc *wc);
void tk_recv_failed(struct tk_link *link, const struct ibv_wc *wc);
void tk_buffers_exhausted(struct tk_link *link);
_Noreturn void tk_wire_error(struct tk_link *link, const char *what);
void tk_explain_registration(struct tk_rail *rail, const char *what, size_t size, int error);

#endif
