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
#include "transport/verbs/verbs.h"

enum {
    tk_buffer_size =
        tk_message_max, /* of a receive and of a bounce buffer: the largest Medium with its head */
    /* The distance is a little more than the size: otherwise the heads of all buffers would map to
     * the same few cache sets. tk_am_buffer_size needs it too. */
    tk_buffer_gap = TK_CACHE_LINE,
    tk_buffer_stride = tk_buffer_size + tk_buffer_gap,
    tk_inline_max = 512, /* inline sends are gathered on the stack; no device gains from more */
    tk_conns_max = 64,   /* to a peer: tk_rma_state.unfenced has a bit for each */
    tk_unsignaled_max =
        128,            /* bytes of an unsignaled message: Shorts, and a few words of payload */
    tk_poll_batch = 16, /* completions taken at a time: one cache line each on most devices */
    tk_lanes_max = TK_THREADED ? 8 : 1,
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

/* Memory registered with all devices: one object for each, and the keys by rail. */
struct tk_registration {
    struct ibv_mr **mrs; /* by the device's index */
    uint32_t *remote;
    uint32_t local[];
};

/* A registered piece of tk_buffer_size bytes, or of as many as a receive buffer has. */
struct tk_buffer {
    struct tk_pool_item item;
    struct tk_conn *conn; /* while posted for receiving */
    char *data;
    const uint32_t *keys;  /* by rail; a receive buffer has only the key of its own device */
    struct ibv_recv_wr wr; /* posts it for receiving */
    struct ibv_sge sge;    /* length: that of the message, while one waits in it */
};

/* What the completion of a work request does. Kinds other than the first use only `op`, which they
 * always have; the last also uses `held`. */
enum tk_tx_kind {
    TK_TX_GENERAL,
    TK_TX_PLAIN, /* only decrements its operation */
    TK_TX_HELD   /* the same, and releases local memory registered on the fly */
};

/* A work request in flight (tx descriptor): one cache line, of one lane. */
struct tk_tx {
    struct tk_pool_item item;
    struct tk_conn *conn;
    uint32_t nbytes;
    int covers;               /* earlier unsignaled messages that its completion covers */
    struct tk_op *op;         /* NULL: no thread waits for it */
    struct tk_buffer *bounce; /* given back on completion */
    union {
        void *get_to;           /* get through the bounce buffer: destination of the data */
        struct tk_pinned *held; /* local memory registered on the fly; released on completion */
    };
    tk_counter_t *sources; /* counts it too while its source is in use; may be NULL */
    uint8_t opcode;        /* enum ibv_wr_opcode, for messages; stored at once with: */
    uint8_t kind;          /* enum tk_tx_kind */
    bool is_held;          /* which member of the union; neither may be */
};
_Static_assert(sizeof(struct tk_tx) == TK_CACHE_LINE,
               "those of the lanes, which begin at a line, have one each");

/* How a connection reaches its other end: what the ports of both ends have in common. */
struct tk_path {
    struct tk_gid from, to; /* where is_global */
    uint16_t lid;           /* of the other end; the members below name it in logs: */
    uint8_t port;
    bool is_global;
    uint8_t mtu;                 /* enum ibv_mtu */
    uint8_t reads_in, reads_out; /* concurrent RDMA reads, as responder and as requester */
    char device[28];             /* the beginning of its name */
};

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

/* A completion queue, and its lock in a cache line of its own. */
struct tk_sends {
    _Alignas(TK_CACHE_LINE) tk_lock_t lock;
    struct ibv_cq *cq;
};

/* Work requests for some of the peers, and the queue in which they complete. PAR has as many lanes
 * as CPUs: threads with different peers mostly use different lanes, and so do not write the same
 * words with each put. Aligned to two cache lines because some processors fetch lines in pairs. */
struct tk_lane {
    _Alignas(TK_THREADED ? 2 * TK_CACHE_LINE : TK_CACHE_LINE)
        tk_lock_t lock; /* of the next two, and `returned` of connections */
    tk_counter_t out;   /* its work requests in use; 0: nothing to reap */
    struct tk_pool_item *free;
    struct tk_sends sends; /* of the first device */
};

struct tk_device {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *recv_cq;
    struct ibv_comp_channel *send_events, *recv_events; /* NULL: no thread sleeps until they come */
    struct tk_device *next;
    unsigned index;
    bool has_fixed_cqs;     /* ibv_resize_cq is missing: they are made for all peers */
    struct tk_sends *sends; /* by lane; NULL for the first device, which uses those in the lanes */
    _Alignas(TK_CACHE_LINE) tk_lock_t recv_cq_lock;
    struct tk_srq *srq;    /* NULL: each connection has receive buffers of its own */
    struct ibv_xrcd *xrcd; /* NULL: neighbours share neither it nor its queue pairs */
};

struct tk_rail {
    struct tk_pool recv_pool;
    struct ibv_context *context;
    struct tk_device *device;
    struct tk_port_address address;
    int pkey_index;
    uint8_t retry_count;  /* of our queue pairs, as the device takes it */
    bool is_retry_capped; /* it is not what the setting asked for */
    uint32_t vendor;      /* of the device */
    bool is_iwarp;
    bool by_cm;            /* librdmacm connects its queue pairs: cm/cm.h */
    char why[128];         /* why it was chosen, for the start-up record */
    uint32_t message_max;  /* of the port */
    uint32_t peers;        /* peers whose primary connection it has */
    unsigned recv_buffers; /* buffers that its pool was made with, or grew by since */
    uint32_t conns_open;   /* connections on demand: how many are open, and how many of those */
    uint32_t primaries;    /* are primary ones */
    uint64_t down_since;   /* by the device's events; 0: it is up, or that was handled */
    uint64_t look_again;   /* when to check whether its connections can be reopened; 0: it never was
                              down; atomic */
    tk_counter_t failures, returns; /* of its connections */
};

/* Registered slabs of buffers; see data/memory.c. */
struct tk_slab {
    struct tk_area area;
    struct tk_registration *registration;
    struct tk_slab *next;
    struct tk_buffer buffers[];
};

static inline size_t tk_buffer_stride_of(size_t size)
{
    return size + tk_buffer_gap;
}

/* Memory of a slab of so many buffers. Send buffers begin half a page later than receive buffers,
 * and than what clients mostly have at the begin of pages: a copy to an address slightly behind its
 * source, modulo the page size, has to be cut (tk_copy_large()), which makes a Medium of 4 KiB 15
 * calls more. */
enum { tk_send_buffers_at = 2048 };
static inline size_t tk_slab_area_bytes(size_t count, size_t size)
{
    return tk_send_buffers_at + count * tk_buffer_stride_of(size);
}

/* Sizes of allocations: for a slab of so many buffers, besides its area; for a registration; for
 * work requests; for the connections to a peer, and by rank, connected or not. */
static inline size_t tk_slab_bytes(size_t count)
{
    return sizeof(struct tk_slab) + count * sizeof(struct tk_buffer);
}

static inline size_t tk_registration_bytes(size_t rails, size_t devices)
{
    return sizeof(struct tk_registration) + 2 * rails * sizeof(uint32_t) + sizeof(uint64_t) +
           devices * sizeof(struct ibv_mr *);
}

static inline size_t tk_txs_bytes(size_t count)
{
    return count * sizeof(struct tk_tx);
}

static inline size_t tk_conns_bytes(size_t conns)
{
    return conns * sizeof(struct tk_conn);
}

static inline size_t tk_conns_of_bytes(size_t ranks)
{
    return ranks * sizeof(struct tk_conn *);
}

/* A rank is: a neighbour or ourselves; a peer of this transport; a peer, and puts to it have reads
 * behind them (data/stripe.c). With TK_RANK_SMALL: its receive buffers are small
 * (data/rendezvous.h). */
enum tk_rank_kind {
    TK_RANK_NOT_OURS,
    TK_RANK_PLAIN,
    TK_RANK_FENCED,
    TK_RANK_SMALL = 4 /* a bit besides the others */
};

static inline size_t tk_kinds_bytes(size_t ranks)
{
    return ranks * sizeof(uint8_t);
}

/* A rank's end of a rail. */
struct tk_place {
    uint32_t address;     /* where it begins */
    uint32_t datagram_qp; /* 0: none */
};

struct tk_verbs {
    struct tk_device device; /* the first, and on most hosts the only one; ->next has the others */
    struct tk_rail *rails;
    struct tk_cm *cm; /* NULL: librdmacm connects no rail */
    uint32_t rail_count;
    uint32_t device_count;
    uint32_t conns_pp;         /* to each peer */
    uint32_t peers;            /* peers of this transport */
    struct tk_conn **conns_of; /* by rank: conns_pp in a row, or `nobody` */
    struct tk_conn *nobody;    /* conns_pp connections without queue pair and without space */
    struct tk_registration *segment;
    size_t inline_limit;   /* the minimum of all queue pairs */
    size_t put_from_max;   /* bytes of a put in place that goes in one piece */
    size_t short_get_max;  /* bytes of a get that never needs another connection */
    size_t logged_get_max; /* the same with logging; otherwise 0 */
    struct tk_rma_limits rma_limits;
    uint32_t message_max; /* the minimum of all ports */
    int remote_access;    /* rights of peers: read, write, and atomics if they are allowed */
    enum tk_atomic_scope atomics; /* of all ranks */
    int list_max;                 /* ranges of local memory in one request, on all devices */
    bool pins;                    /* see tk_verbs_pins() */
    bool is_paged;                /* registered memory other than buffers is paged on demand */
    bool has_iwarp;               /* a rail is of that kind */
    bool
        failover_enabled; /* what is posted is logged, to be posted again over another connection */
    bool needs_more;      /* work requests, than RC alone does: see data/tx.h */
    struct tk_buffer *fence_sink; /* target of reads behind puts, never used */
    struct tk_slab *slabs;
    struct tk_pool bounce_pool;
    struct tk_pool large_pool; /* of the same kind, for rendezvous messages: data/rendezvous.h */
    uint32_t recv_small;       /* bytes of a receive buffer; 0: any message fits */
    uint32_t small_max;        /* bytes of a peer's receive buffer, if that is small */
    struct tk_rndv_state *rndv;
    tk_counter_t rndv_count; /* messages that we read, or will; part of the pending work */
    tk_counter_t rndv_stuck; /* those of them that found no space in a send queue */
    struct tk_lane lanes[tk_lanes_max];
    uint32_t lane_count;
    struct tk_tx *txs;
    int credits_pp, slack, batch_slack;
    struct tk_loan_plan srq_plan; /* .buffers is 0: receive queues are not shared */
    uint32_t recv_min; /* not 0: GASNET_RBUF_COUNT is too small, and this is the minimum */
    int depth_pp, depth_total;
    int bounces; /* buffers in bounce_pool and out of it */
    struct {
        tk_lock_t lock;
        struct tk_buffer *first, *last; /* messages that came while no handler could run */
    } deferred;
    int unsignaled_max; /* unsignaled messages in a row on a connection; 0 where they are logged,
                           and where not even two arguments go inline */
    int logged_unsignaled_max;  /* the same for those */
    tk_counter_t credits_total; /* requests that this process may still have in flight */
    tk_counter_t
        pending_work;     /* ACKs and moves to other connections that polls are to go on with */
    tk_counter_t returns; /* connections that were reopened; see tk_fence() */
    tk_counter_t
        received_last; /* those whose last receive an event has reported, not handled yet */
    struct tk_rank_pair *pairs; /* by rank; see failover/failover.c. NULL: nothing is logged */
    bool is_static;             /* all peers are connected at start-up */
    int credits_all;            /* the initial value of credits_total */
    bool is_total_bound; /* it is less than the credits of all peers; otherwise it is not counted */
    struct tk_datagrams *datagrams; /* NULL: none in use; conn/datagram.h */
    struct tk_demand *demand;       /* NULL: nothing is connected on demand; conn/demand.h */
    struct tk_xrc *xrc; /* NULL: each pair of ranks has queue pairs of its own; conn/xrc.h */
    /* Addresses of peers' ports: device/places.c. Ranks of a host share them. */
    struct tk_host_table place_table;   /* contains both, and is the same in all ranks */
    const struct tk_place *places;      /* by rank and rail */
    const uint32_t *addresses;          /* each as long as its number of GIDs requires */
    uint8_t *kind_of;                   /* by rank: enum tk_rank_kind */
    struct tk_conn *ahead;              /* for the next peer, or NULL; with the lock of demands */
    uint32_t expected;                  /* that peer, as far as it can be predicted */
    uint8_t secret[tk_job_secret_size]; /* the job's: conn/psn.h */
};

extern TK_HIDDEN struct tk_verbs tk_verbs;

/* Inside the segment of endpoint 0? */
static inline bool tk_is_registered(const void *address, size_t size)
{
    return tk_verbs.segment && tk_area_holds(&tk_segment_area, address, size);
}

/* Keys of local memory in the segment of endpoint 0, or in that of the local endpoint if it is
 * another (`home`, may be NULL). NULL: in neither. */
static inline const uint32_t *tk_local_keys(const struct tk_region *home, const void *at,
                                            size_t nbytes)
{
    if (tk_is_registered(at, nbytes))
        return tk_verbs.segment->local;
    return home && tk_region_holds(home, at, nbytes) ? home->local_keys : NULL;
}

static inline uint32_t tk_recv_size(void)
{
    return tk_verbs.recv_small ? tk_verbs.recv_small : tk_buffer_size;
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

/* device/port_list.c: the variable that a rank uses, and its value */
struct tk_port_family {
    char name[32];
    const char *filter;
    bool is_auto;   /* the ranks of the host share ports */
    uint32_t rails; /* that each of them gets then */
};
enum tk_status tk_port_family_find(struct tk_port_family *family);

/* device/device.c: why ibv_open_device() failed, by the errno that it left. */
void tk_device_explain_closed(int error, char *text, size_t size);

/* Keys of partitions: IBA 10.9.1 */
enum { tk_pkey_bits = 0x7fff, tk_pkey_full = 0x8000, tk_pkey_default = 0xffff };

/* device/ports.c; NULL, or why the port can't be used. */
const char *tk_port_take(struct tk_rail *rail, struct ibv_context *context, int port);

/* Mb/s */
uint32_t tk_port_rate(const struct ibv_port_attr *attr);

/* device/gid_index.c: GASNET_IBV_GID_INDEX; -1: it names none for this port */
int tk_gid_index_of(const char *device, int port);

/* device/gid_choose.c, which sees no device; a row of a port's table, as far as rules ask for it */
struct tk_gid_row {
    struct tk_gid gid;
    bool is_down; /* its interface */
};
enum { tk_gid_text_size = 48 };
/* The best entries of a table, which are offered to peers, the best first: one of each type and
 * network. Returns how many. */
unsigned tk_gids_offer(const struct tk_gid_row *rows, unsigned count, struct tk_gid *offered);
/* What a port offers as a set of kinds; two ports reach each other by GID if they share one. */
uint32_t tk_gid_kinds(const struct tk_port_address *address);
/* The best pair of GIDs, one of each; both ends must pass the addresses in the same order. False:
 * they share no kind. */
bool tk_gid_pair_find(const struct tk_port_address *one, const struct tk_port_address *other,
                      struct tk_gid *from, struct tk_gid *to);
bool tk_gid_is_same_network(const struct tk_gid *a, const struct tk_gid *b);
const char *tk_gid_type_text(const struct tk_gid *gid);
void tk_gid_text(const struct tk_gid *gid, char text[tk_gid_text_size]);
enum { tk_gids_text_size = 256 };
const char *tk_gids_text(const struct tk_port_address *address, char text[tk_gids_text_size]);

/* device/gid_table.c: reads the table of a port, its row `wanted` only if that is not -1 */
unsigned tk_gid_table_offer(struct ibv_context *context, int port, int length, int wanted,
                            struct tk_gid *offered);

/* device/path.c; is_first: both ends must name the ports in the same order. False: they can't reach
 * each other. */
bool tk_path_find(struct tk_path *path, const struct tk_port_address *mine,
                  const struct tk_port_address *theirs, bool is_first);
/* Logs that these two ports can't reach each other. */
void tk_gids_log_apart(const char *one, const struct tk_port_address *a, const char *other,
                       const struct tk_port_address *b);
/* "mlx5_0:1 (GID ...) to mlx5_1:1 (GID ...)": the path of a connection, for logs. */
enum { tk_path_text_size = 256 };
const char *tk_path_text(const struct tk_conn *conn, char text[tk_path_text_size]);
/* The address of a port, and why it was chosen: for the start-up record. */
void tk_path_describe(const struct tk_rail *rail, char *text, size_t size);

/* device/paging.c: once the rails are chosen, before atomics are; and when peer infos have come */
void tk_paging_choose(void);
void tk_paging_report(void);

/* device/network.c */
enum { tk_gid_size = 16 };
struct tk_network {
    bool is_ethernet;
    uint8_t prefix[tk_gid_size];
};
void tk_network_of(struct tk_network *network, const struct tk_rail *rail);
bool tk_network_is_same(const struct tk_network *a, const struct tk_network *b);

/* device/rail_select.c; turn: our number among the ranks of this host */
struct tk_choice {
    struct tk_rail *rails;
    uint32_t count;
    char unused[512]; /* other ports of this host, and why they are not used */
};
/* A port that a rank could use; distance: tk_spread_never, or larger is farther. */
struct tk_rail_claim {
    char device[32];
    int port, distance;
    bool is_taken;
};
/* Asks the other ranks of the host which of these this one is to take. False: they do not answer,
 * and it decides alone. */
typedef bool tk_rail_sharer(struct tk_rail_claim *claims, uint32_t count, uint32_t wanted);
/* Finding no usable port is no failure: `count` is 0 then. `share` may be NULL; each rank of the
 * host calls it once if GASNET_IBV_PORTS_TYPE is auto. */
enum tk_status tk_rails_choose(struct tk_choice *choice, uint32_t turn, tk_rail_sharer *share);
/* The same for a process without a job; calls report() for each port found; port 0: the whole
 * device. */
typedef void (*tk_port_verdict)(const char *device, int port, bool is_used, const char *text);
enum tk_status tk_rails_explain(struct tk_choice *choice, tk_port_verdict report);
extern TK_HIDDEN const char tk_no_device[];    /* in `unused`, where that is so */
void tk_rails_report_none(const char *unused); /* in one line, with the remedy */

/* device/rail_share.c: by the launcher's server, before the first fence */
tk_rail_sharer tk_rails_share;

/* device/device.c: the devices of the rails chosen */
enum tk_status tk_devices_open(void);
enum tk_status tk_devices_open_queues(void);
/* Makes space in the completion queues for one more peer's connections. */
enum tk_status tk_devices_fit(void);
void tk_devices_close(void);

/* data/memory.c */
enum tk_status tk_bounce_pool_open(unsigned count);
enum tk_status tk_large_pool_open(unsigned count);
/* Never NULL: registers more if necessary, and ends the job if that fails. */
struct tk_buffer *tk_large_buffer_take(void);
enum tk_status tk_fence_sink_open(void);
enum tk_status tk_recv_pool_open(struct tk_rail *rail, unsigned count);
enum tk_status tk_recv_pool_grow(struct tk_rail *rail);
/* Grows the pool to `wanted` buffers; with the lock of demands. */
enum tk_status tk_recv_pool_fit(struct tk_rail *rail, unsigned wanted);
/* For so many connections of the rail; primary ones among them take most of them. */
unsigned tk_recv_buffers_wanted(uint32_t conns, uint32_t primaries);
/* Takes a buffer to receive over the rail, and registers more if necessary. NULL: that failed, and
 * the cause was logged. */
struct tk_buffer *tk_recv_buffer_take(struct tk_rail *rail);
void tk_buffers_close(void);
void tk_segment_forget(void); /* at the end of the process, which must not unregister it then */

/* device/places.c: keeps the addresses of all ranks from their infos, which may then be freed. */
enum tk_status tk_places_learn(const uint32_t *host_of);
void tk_places_forget(void);

static inline size_t tk_places_bytes(size_t ranks, size_t rails)
{
    return ranks * rails * sizeof(struct tk_place);
}

/* The size of an address with so many GIDs, in the units by which a place counts. */
static inline uint32_t tk_address_units(unsigned gids)
{
    size_t size = offsetof(struct tk_port_address, gids) + gids * sizeof(struct tk_gid);
    return (uint32_t)((size + sizeof(uint32_t) - 1) / sizeof(uint32_t));
}

static inline const struct tk_place *tk_place_of(uint32_t rank, uint32_t rail)
{
    return &tk_verbs.places[(size_t)rank * tk_verbs.rail_count + rail];
}

/* Is the rank a peer of this transport? From tk_verbs_connect() on. */
static inline bool tk_is_verbs_peer(uint32_t rank)
{
    return tk_verbs.kind_of[rank] != TK_RANK_NOT_OURS;
}

static inline const struct tk_port_address *tk_address_of(uint32_t rank, uint32_t rail)
{
    return (const void *)(tk_verbs.addresses + tk_place_of(rank, rail)->address);
}

/* device/last_wqe.c: do all devices report, by an asynchronous event, that a queue pair in ERR
 * takes no more from its shared receive queue? Tries it; call it before anything else reads their
 * events. */
bool tk_last_wqe_comes(void);

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
