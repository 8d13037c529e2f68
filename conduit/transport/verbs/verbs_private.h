/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the files of transport/verbs share. A device in use has the objects that serve all its
 * ports; a rail is one port in use; a connection is one RC queue pair to one peer over a rail. Each
 * pair of ranks has the same number of connections, one of which is primary: it carries everything
 * small, in order. The others carry pieces of large transfers, and the notices by which another one
 * becomes primary when a connection dies (failover/failover.c).
 *
 * Locks: a connection's lock guards its credits, its receive queue and the order of its sends. The
 * lock of a pool or of a lane may be taken under it. The locks of the completion queues are only
 * tried, and are released before a completion is handled. */
#ifndef TK_VERBS_PRIVATE_H
#define TK_VERBS_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/lock.h"
#include "base/pool.h"
#include "bootstrap/host_table.h"
#include "memory/memory.h"
#include "peer/peer.h"
#include "transport/transport.h"
#include "transport/verbs/data/credit_loan.h"
#include "transport/verbs/data/rma_plan.h"
#include "transport/verbs/library.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/device_private.h"
#include "transport/verbs/verbs_state.h"
#include "transport/verbs/data/lane_type.h"
#include "transport/verbs/device/places.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/verbs.h"

enum {
    tk_inline_max = 512, /* inline sends are gathered on the stack; no device gains from more */
    tk_conns_max = 64,   /* to a peer: tk_rma_state.unfenced has a bit for each */
    tk_unsignaled_max =
        128, /* bytes of an unsignaled message: Shorts, and a few words of payload */
    /* Stands for a time that was not read yet: a client that sends as fast as credits come back is
     * refused at almost each message, and reading the clock takes 20 to 40 ns. */
    tk_starved_unseen = 1
};

struct tk_conn;
struct tk_pinned;
struct tk_tx_entry;
struct tk_rank_pair;
struct tk_rail;
struct tk_cm;
struct tk_demand;
struct tk_datagrams;
struct tk_loan;
struct tk_rndv_state;
struct tk_srq;
struct tk_xrc;

struct tk_conn {
    _Alignas(TK_CACHE_LINE) tk_lock_t lock;
    int8_t control_expected; /* 1 until the exit notice came, which has its own buffer */
    uint16_t queue;          /* identifies the wait queue for credits; 0: none */
    int rx_base;             /* receive buffers that are needed when no request is in flight */
    struct ibv_qp *qp;
    struct tk_peer *peer;
    struct tk_lane *lane;   /* the same for all connections to a rank */
    struct ibv_qp *target;  /* receives for this connection; NULL: qp does */
    uint8_t number;         /* among those to the peer */
    bool takes_small;       /* the peer's receive buffers are small; larger messages by rendezvous
                               (data/rendezvous.h) */
    uint8_t rail;           /* its index */
    bool is_closing;        /* its posted buffers are being flushed */
    bool is_for_atomics;    /* carries only atomics: the peer, which may be ourselves, has another
                               transport */
    bool is_fenced;         /* puts have reads behind them: see data/stripe.c */
    bool is_ready;          /* has the receive buffers of a primary connection, or will at once */
    bool has_received_last; /* last receives that events reported, unhandled */
    size_t short_put_max;   /* bytes; inline_limit, or 0 where it is fenced */
    uint64_t carried, cost; /* by large transfers: bytes times cost so far; cost per byte */
    int credits;            /* requests that we may send now */
    int credits_to_return;  /* credits of the peer's that we hold back */
    int rx_extra;           /* receive buffers in the queue beyond those needed */
    int unsignaled;         /* messages posted without a completion since the last one with */
    uint16_t waiting;       /* threads in the wait queue; 0 in SEQ; see data/credit.c */
    bool is_held;           /* nothing is sent: it has neither space nor credits; the same lock */
    bool ack_due : 1;       /* an ACK could not be sent for lack of space; the same lock */
    bool has_sent_control : 1;  /* its exit notice; the same lock */
    tk_counter_t returned;      /* in PAR: slots that came back; with the lane's lock */
    tk_counter_t broken;        /* not 0: an error was logged; what is posted never completes */
    tk_counter_t space;         /* free slots of the send queue, in PAR less `returned` */
    struct tk_tx unsignaled_tx; /* names the connection in errors of unsignaled messages */
    uint64_t starved_since;     /* when a report saw that a request lacked a credit; 0: never */
    struct ibv_send_wr
        unsignaled_wr; /* of unsignaled messages; only the length changes between them */
    struct ibv_sge unsignaled_sge;
    union {
        struct tk_short message;
        char bytes[tk_unsignaled_max];
    } unsignaled_data;

    struct tk_tx_log *tx_log; /* NULL: no failover group */
    tk_counter_t reserved;    /* slots taken by am reservations */
    tk_counter_t rndv_count;  /* rendezvous messages in flight, in either direction */
    tk_counter_t state;       /* enum tk_connection_state, see failover/connection_state.h */
    struct tk_path path;      /* once it was connected */
    struct tk_loan *loan;     /* NULL: it has receive buffers of its own; see data/srq.h */

    /* If connections are closed for others (conn/incarnation.h); with the lock of demands. */
    uint32_t epoch;     /* connections to the peer that are closed, or almost */
    uint32_t last_used; /* a time; only while it is watched (conn/qp_evict.c) */
    uint64_t spared;    /* it is not closed before that time: a thread waited for it */
    int held_credits;   /* that may not be used now; with the connection's lock */
    uint32_t served;    /* threads that left the wait queue; the same lock */
};

static inline size_t tk_conns_bytes(size_t conns)
{
    return conns * sizeof(struct tk_conn);
}

static inline size_t tk_conns_of_bytes(size_t ranks)
{
    return ranks * sizeof(struct tk_conn *);
}

static inline struct tk_conn *tk_conns_to(uint32_t rank)
{
    return __atomic_load_n(&tk_verbs.conns_of[rank], __ATOMIC_ACQUIRE);
}

/* Both ends of a pair derive the same number, and a rank's peers are spread over its connections.
 */
static inline uint32_t tk_primary_number(uint32_t rank)
{
    return (tk_peers.me + rank) % tk_verbs.conns_pp;
}

/* The connection that carries messages. Another thread may be switching the primary: a thread that
 * has locked the old one then finds no space in it. */
static inline struct tk_conn *tk_primary(const struct tk_peer *peer)
{
    return __atomic_load_n(&peer->connection, __ATOMIC_RELAXED);
}

/* Another thread may have switched the primary since `conn` was looked up, and `conn` may be in use
 * again. With its lock. */
static inline bool tk_is_passed_over(const struct tk_conn *conn, const struct tk_peer *peer)
{
    return TK_THREADED && conn != tk_primary(peer);
}

/* For callers that change its credits: locked, and still the primary one. */
static inline struct tk_conn *tk_primary_lock(const struct tk_peer *peer)
{
    struct tk_conn *conn = tk_primary(peer);
    tk_lock(&conn->lock);
    while (tk_is_passed_over(conn, peer)) {
        tk_unlock(&conn->lock);
        conn = tk_primary(peer);
        tk_lock(&conn->lock);
    }
    return conn;
}

static inline unsigned tk_lane_count(void)
{
    return TK_THREADED ? tk_verbs.lane_count : 1;
}

static inline struct tk_lane *tk_lane_of(const struct tk_conn *conn)
{
    return TK_THREADED ? conn->lane : tk_verbs.lanes;
}

/* Free slots of its send queue; `space` is written with the connection's lock. In PAR both words
 * wrap, one down, one up. */
static inline int tk_conn_space(const struct tk_conn *conn)
{
    uint32_t space = (uint32_t)tk_counter_read(&conn->space);
    return (int)(TK_THREADED ? space + (uint32_t)tk_counter_read(&conn->returned) : space);
}

static inline struct tk_sends *tk_sends_of(const struct tk_device *device, struct tk_lane *lane)
{
    return device->sends ? &device->sends[lane - tk_verbs.lanes] : &lane->sends;
}

/* By the number of a lane. */
static inline struct ibv_cq *tk_send_cq(const struct tk_device *device, unsigned lane)
{
    return tk_sends_of(device, &tk_verbs.lanes[lane])->cq;
}

/* Of this thread: the lane from which it last took a work request; and the number of polls since
 * that changed, which tells when the others are due: one addition wraps to 0 every eighth time. */
enum { tk_lane_poll_step = 256 / 8, tk_lanes_due_next = 256 - tk_lane_poll_step };
struct tk_lane_place {
    struct tk_lane *lane;
    uint8_t polls; /* times the step */
};
extern TK_HIDDEN TK_PER_THREAD_NEAR struct tk_lane_place tk_lane_mine;

static inline struct tk_rail *tk_rail_of(const struct tk_conn *conn)
{
    return &tk_verbs.rails[conn->rail];
}

static inline const struct tk_path *tk_path_of(const struct tk_conn *conn)
{
    return &conn->path;
}

/* conn/qp_state.c: 0, or what errno would be */
struct tk_route {
    const struct tk_rail *rail;
    const struct tk_path *path; /* NULL for datagrams */
    enum ibv_qp_type type;
    uint32_t to_qp, to_psn, psn;
};
enum { tk_datagram_key = 0x7472756e }; /* of the client's queue pairs */
int tk_qp_init(struct ibv_qp *qp, const struct tk_rail *rail, enum ibv_qp_type type, int access);
int tk_qp_rtr(struct ibv_qp *qp, const struct tk_route *route);
int tk_qp_rts(struct ibv_qp *qp, const struct tk_route *route);
void tk_route_set(struct ibv_ah_attr *ah, const struct tk_rail *rail, const struct tk_path *path);

/* Limits that both ends agree on and that settings define, for connections whose other attributes
 * come from librdmacm. */
void tk_qp_rtr_limits(struct ibv_qp_attr *attr, const struct tk_route *route);
void tk_qp_rts_limits(struct ibv_qp_attr *attr, const struct tk_route *route);

/* conn/connect.c; the last two return 0 or an errno; `incarnation`: how often it was connected
 * before */
enum tk_status tk_conn_open(struct tk_conn *conn, struct tk_peer *peer, uint32_t number,
                            bool is_primary);
/* Opens its queue pair before its peer is known. A failure is no error: it recurs, and is
 * explained, when a peer needs one. */
bool tk_conn_open_ahead(struct tk_conn *conn);
void tk_conn_give(struct tk_conn *conn, struct tk_peer *peer);  /* it is this peer's */
bool tk_conn_suits(const struct tk_conn *ahead, uint32_t rank); /* it is of the rank's lane */
/* `qp`: the number of the other end's, or what conn/xrc.h describes. */
enum tk_status tk_conn_connect(struct tk_conn *conn, const struct tk_port_address *to,
                               const uint32_t *qp);
int tk_conn_ready(struct tk_conn *conn, uint32_t qp, uint32_t incarnation, const char **what);
int tk_conn_init(struct tk_conn *conn);
/* Prevents, or again allows, sending over it; with its lock, or while no other thread sees it. Work
 * in flight continues. */
void tk_conn_hold(struct tk_conn *conn);
void tk_conn_release(struct tk_conn *conn);
void tk_conn_hold_credits(struct tk_conn *conn); /* also those that came back meanwhile */
void tk_conn_close(struct tk_conn *conn);
/* How much the devices take inline, before any connection is made. */
enum tk_status tk_conn_probe_inline(void);

/* conn/pair.c: all connections to a rank */
enum tk_status tk_nobody_open(void);
/* With queue pairs. Other threads do not see them until they are published. TK_FAIL: the cause was
 * logged; TK_BUSY: lent receive buffers must come back first. */
enum tk_status tk_pair_open(uint32_t rank, struct tk_conn **conns);
enum tk_status tk_pair_fill(struct tk_conn *conns); /* posts receive buffers */
/* Makes receive buffers for the next peer: registering them takes longer than everything else of
 * its first message. */
enum tk_status tk_pair_make_ahead(void);
/* The same with its queue pair, if one is made ahead (limits.h). */
void tk_pair_open_ahead(void);
bool tk_pair_is_ahead_for(uint32_t rank);
void tk_pair_drop(struct tk_conn *conns);
/* Connections opened on demand are held until this. */
void tk_pair_release(struct tk_conn *conns);
/* Holds them again, if nothing is in flight. */
bool tk_pair_freeze(struct tk_conn *conns);
/* Our credits in use, and the peer's that we hold back; while they are held. */
struct tk_pair_balance {
    int32_t out, owed;
};
struct tk_pair_balance tk_pair_balance(struct tk_conn *conns);
/* Closes held connections. First their buffers come back; until then the second returns false. Then
 * the queue pairs are destroyed, and the entries remain for the next connections to the peer. */
void tk_pair_shut(struct tk_conn *conns);
bool tk_pair_end(struct tk_conn *conns);
/* Did the buffer belong to such a connection? Then it was given back. */
bool tk_pair_flushed(struct tk_buffer *buffer);
void tk_pair_publish(uint32_t rank, struct tk_conn *conns);
/* By the numbers of the other end's queue pairs; the other end always grants us so many credits. */
enum tk_status tk_pair_connect(struct tk_conn *conns, const uint32_t *qps, int credits);
void tk_pair_close(uint32_t rank);
/* A connection for atomics alone, to a rank that another transport serves. */
enum tk_status tk_pair_open_for_atomics(struct tk_peer *peer);

/* data/credit.c: all with the connection's lock held */
void tk_recv_refused(struct tk_conn *conn, struct tk_buffer *buffer, int error);
enum tk_status tk_credit_post_buffer(struct tk_conn *conn);

/* data/send.c */
enum tk_status tk_verbs_send(struct tk_peer *peer, struct tk_outgoing *message);
enum tk_status tk_verbs_send_short(struct tk_peer *peer, struct tk_message_head head,
                                   const int32_t *args, tk_short_busy *busy);
enum tk_status tk_verbs_send_small(struct tk_peer *peer, unsigned tag, uint64_t args,
                                   tk_small_busy *busy);
/* For Mediums whose whole payload is copied. */
enum tk_status tk_verbs_send_medium(struct tk_peer *peer, uint64_t head, const int32_t *args,
                                    const void *payload, size_t nbytes, tk_medium_busy *busy);
enum tk_status tk_logged_send_medium(struct tk_peer *peer, uint64_t head, const int32_t *args,
                                     const void *payload, size_t nbytes, tk_medium_busy *busy);
enum tk_status tk_logged_send_short(struct tk_peer *peer, struct tk_message_head head,
                                    const int32_t *args, tk_short_busy *busy);
enum tk_status tk_logged_send_small(struct tk_peer *peer, unsigned tag, uint64_t args,
                                    tk_small_busy *busy);
enum tk_status tk_message_post(struct tk_conn *conn, struct tk_outgoing *message);

void tk_message_post_tx(struct tk_conn *conn, struct tk_tx *tx, struct tk_outgoing *message);

/* Posts the message in unsignaled_data, whose slot is taken, and logs it. */
void tk_unsignaled_post_logged(struct tk_conn *conn, size_t size);

/* data/am_reserve.c */
enum tk_status tk_verbs_reserve(struct tk_am_reservation *reservation, bool place, bool buffer);
enum tk_status tk_verbs_reserve_place(struct tk_am_reservation *reservation);
enum tk_status tk_verbs_send_reserved(struct tk_am_reservation *reservation,
                                      struct tk_outgoing *message);
void tk_verbs_release(struct tk_am_reservation *reservation, bool keep_credit);
void tk_verbs_leave_queue(const struct tk_peer *peer, struct tk_wait_ticket *ticket);

/* data/gather.c */
unsigned tk_verbs_gather_max(const struct tk_region *home, const void *at, size_t nbytes);
enum tk_status tk_verbs_gather(struct tk_peer *peer, const struct tk_gather *gather);

/* data/atomic.c */
void tk_atomics_allow(void); /* once the rails are chosen */
void tk_atomics_agree(void); /* with the peer infos of all ranks */
enum tk_atomic_scope tk_verbs_atomic_scope(void);
enum tk_status tk_verbs_atomic(struct tk_peer *peer, struct tk_op *op,
                               const struct tk_device_atomic *atomic);
enum tk_status tk_verbs_atomic_open(struct tk_peer *peer, struct tk_atomic_end *ours);
enum tk_status tk_verbs_atomic_connect(struct tk_peer *peer, const struct tk_atomic_end *theirs);
void tk_verbs_atomic_ready(struct tk_peer *peer);

/* mcast/link.c */
extern TK_HIDDEN const struct tk_mcast_device tk_verbs_multicast;

/* data/poll.c */
bool tk_verbs_poll(void); /* of one device */
bool tk_verbs_reap(void);
bool tk_devices_poll(void); /* of all, if there are several */
bool tk_shared_poll(void);  /* data/poll_shared.c: of all, with shared receive queues */
bool tk_devices_reap(void);
bool tk_lanes_reap_others(void);  /* of lanes that are not this thread's */
void tk_lanes_reap(void);         /* of all lanes, busy or not */
bool tk_shared_logged_poll(void); /* shared queues in failover groups */
bool tk_shared_logged_reap(void);
bool tk_logged_poll(void); /* in failover groups */
bool tk_logged_reap(void);

/* By role (enum tk_device_role): queues that this thread polls even while another thread does.
 */
extern TK_HIDDEN TK_PER_THREAD unsigned tk_queues_insisted;
int tk_cq_take_insisting(struct ibv_cq *cq, unsigned role, struct ibv_wc *wc, int max);

/* data/events.c */
struct tk_device_events;
extern TK_HIDDEN const struct tk_device_events tk_verbs_events;
void tk_channels_open(struct tk_device *device); /* before its queues; if a thread will sleep */
void tk_channels_close(struct tk_device *device);
struct tk_transport;
void tk_channels_serve(const struct tk_transport *transport); /* before a thread sleeps on them */

/* data/error.c */
void tk_post_failed(struct tk_tx *tx, int error);
void tk_tx_failed(struct tk_tx *tx, const struct ibv_wc *wc);
void tk_datagram_failed(struct tk_tx *tx, const struct ibv_wc *wc);
void tk_recv_failed(struct tk_conn *conn, const struct ibv_wc *wc);
void tk_buffers_exhausted(struct tk_conn *conn);
void tk_conns_exhausted(const struct tk_peer *peer); /* no connection reaches it any more */
_Noreturn void tk_wire_error(struct tk_conn *conn, const char *what);
void tk_explain_registration(const struct tk_device *device, const char *what, size_t size,
                             int error);
void tk_warn_registration(const struct tk_device *device, size_t size,
                          int error); /* for a transfer */

#endif
