/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The transport contract: one table of functions, filled in by transport/self, transport/shm and
 * transport/verbs. A transport moves messages and memory between this process and a peer. Rooms
 * above use a transport through this table only. A function that finds no resources (credit, queue
 * slot, buffer) returns TK_BUSY and never spins: the caller decides how to wait (progress/wait.c).
 * All functions are thread-safe in PAR. */
#ifndef TK_TRANSPORT_H
#define TK_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/bits.h"
#include "base/counter.h"
#include "base/platform.h"
#include "base/status.h"
#include "transport/neighbour.h"

struct tk_doorbell;
struct tk_op;
struct tk_pinned;
struct tk_region;
struct tk_wait_ticket;
struct tk_wait_rows;

enum tk_message_kind {
    TK_REQUEST, /* takes a credit; answered by a REPLY, an ACK or, later, a credit on another
                   message */
    TK_REPLY, /* gives the credit back; uses the buffer that the requester posted before it sent */
    TK_ACK,   /* as REPLY, without a handler */
    TK_CONTROL, /* at most one each way per job (exit notice); it has a receive buffer of its own */
    /* Between transports: never delivered to the rooms above */
    TK_NOTICE,
    TK_LOAN,      /* verbs/data/credit_loan_messages.c */
    TK_GREETING,  /* verbs/cm/iwarp_first_send.c */
    TK_RENDEZVOUS /* verbs/data/rendezvous.h */
};

enum tk_message_category { TK_SHORT, TK_MEDIUM, TK_LONG };

enum {
    tk_max_args = 16,
    /* Bytes, header included: the manual's MaxMedium (--with-ibv-max-medium). */
    tk_message_max = TK_MAX_MEDIUM
};

/* The first bytes of every message on the wire; arguments (int32_t each) follow, then, at a
 * multiple of 8 bytes, the payload. Byte order is the host's: a job runs on one architecture. A
 * Medium costs 8 + 4*nargs, rounded up to 8. */
struct tk_message_head {
    uint8_t kind;
    uint8_t handler;
    uint8_t nargs;
    uint8_t credits; /* returned with this message; used by the transport only */
    uint8_t category;
    uint8_t packed; /* Long: the payload follows; otherwise it was put before */
    uint16_t reserved;
};

/* A head as one number, its first byte the lowest. The order of the members is chosen so that few
 * instructions convert a tag (below) to a head and back. */
enum {
    tk_head_handler_shift = 8,
    tk_head_nargs_shift = 16,
    tk_head_credits_shift = 24,
    tk_head_category_shift = 32,
    tk_head_reserved_shift = 48
};

static inline uint64_t tk_head_number(const struct tk_message_head *head)
{
    uint64_t number;
    memcpy(&number, head, sizeof(number));
    return TK_IS_BIG_ENDIAN ? __builtin_bswap64(number) : number;
}

/* The head of a client's Medium. */
static inline uint64_t tk_head_of_medium(enum tk_message_kind kind, uint8_t handler, unsigned nargs)
{
    return (uint64_t)TK_MEDIUM << tk_head_category_shift |
           (nargs << tk_head_nargs_shift | (unsigned)handler << tk_head_handler_shift |
            (unsigned)kind);
}

static inline uint8_t tk_head_handler(uint64_t head)
{
    return (uint8_t)(head >> tk_head_handler_shift);
}

static inline bool tk_head_is_reply(uint64_t head)
{
    return head & TK_REPLY;
}

static inline unsigned tk_head_nargs(uint64_t head)
{
    return head >> tk_head_nargs_shift & UINT8_MAX;
}

static inline struct tk_message_head tk_head_of_number(uint64_t number)
{
    struct tk_message_head head;
    number = TK_IS_BIG_ENDIAN ? __builtin_bswap64(number) : number;
    memcpy(&head, &number, sizeof(head));
    return head;
}

/* In front of the arguments of a Long. */
struct tk_long_head {
    uint64_t dest;
    uint32_t nbytes;
    uint32_t reserved;
};

enum {
    tk_message_head_max =
        sizeof(struct tk_message_head) + sizeof(struct tk_long_head) + 4 * tk_max_args
};

/* A whole message without payload, as it travels. */
struct tk_short {
    struct tk_message_head head;
    int32_t args[tk_max_args];
};

/* The head of a Short in 16 bits, for transports that have only these to spare: the highest bit is
 * 1, then the kind, the number of arguments and the handler. */
enum {
    tk_tag_bit = 0x8000,
    tk_tag_reply = 0x1000,
    tk_tag_args_shift = 8,
    tk_tag_args_max = 15,
    tk_tag_handler = 0xff
};

static inline unsigned tk_tag(bool is_reply, unsigned nargs, uint8_t handler)
{
    return tk_tag_bit | (is_reply ? tk_tag_reply : 0u) | nargs << tk_tag_args_shift | handler;
}

static inline unsigned tk_tag_nargs(unsigned tag)
{
    return tag >> tk_tag_args_shift & tk_tag_args_max;
}

enum {
    /* Handler and number of arguments: a head has them this many bits higher, above the kind. */
    tk_tag_call = tk_tag_handler | tk_tag_args_max << tk_tag_args_shift,
    tk_tag_reply_shift = 12,
    tk_handler_of_client = 0x80 /* GEX_AM_INDEX_BASE, a bit that those of the library lack */
};
_Static_assert(TK_REQUEST == 0 && TK_REPLY == 1 && TK_SHORT == 0 &&
                   1 << tk_tag_reply_shift == (int)tk_tag_reply &&
                   (int)tk_head_nargs_shift == tk_head_handler_shift + (int)tk_tag_args_shift,
               "a head is the bits of a tag in other places");

static inline struct tk_message_head tk_tag_head(unsigned tag)
{
    return tk_head_of_number((tag & tk_tag_call) << tk_head_handler_shift |
                             (tag >> tk_tag_reply_shift & TK_REPLY));
}

/* Is it the head of a Short for a client's handler, so that a tag can express all of it but the
 * credits? */
static inline bool tk_head_has_tag(uint64_t head)
{
    const uint64_t credits = (uint64_t)UINT8_MAX << tk_head_credits_shift;
    const uint64_t call = tk_tag_call & ~(unsigned)tk_handler_of_client;
    return (head & ~(credits | call << tk_head_handler_shift | TK_REPLY)) ==
           tk_handler_of_client << tk_head_handler_shift;
}

/* Is it what tk_head_of_medium() makes? */
static inline bool tk_head_is_medium(uint64_t head)
{
    const uint64_t free = (uint64_t)UINT8_MAX << tk_head_nargs_shift |
                          (uint64_t)INT8_MAX << tk_head_handler_shift | TK_REPLY;
    return (head & ~free) == tk_head_of_medium(TK_REQUEST, tk_handler_of_client, 0);
}

/* For a head that has a tag: handler and number of arguments are adjacent in memory and form one
 * number. */
_Static_assert(offsetof(struct tk_message_head, handler) + 1 ==
                       offsetof(struct tk_message_head, nargs) &&
                   (int)tk_tag_args_shift == 8,
               "they stand as in a tag");
static inline unsigned tk_head_tag(const struct tk_message_head *head)
{
    uint16_t call;
    memcpy(&call, (const char *)head + offsetof(struct tk_message_head, handler), sizeof(call));
    call = TK_IS_BIG_ENDIAN ? __builtin_bswap16(call) : call;
    return tk_tag_bit + ((unsigned)head->kind << tk_tag_reply_shift) + call;
}

/* Where the payload of a message begins. */
static inline size_t tk_message_front(bool is_long, unsigned nargs)
{
    return tk_align_up(sizeof(struct tk_message_head) +
                           (is_long ? sizeof(struct tk_long_head) : 0) + 4u * nargs,
                       8);
}

static inline size_t tk_short_size(unsigned nargs)
{
    return tk_message_front(false, nargs);
}

static inline void tk_short_build(struct tk_short *at, struct tk_message_head head,
                                  const int32_t *args)
{
    at->head = head;
    unsigned nargs = at->head.nargs;
    for (unsigned i = 0; i < nargs; i++)
        at->args[i] = args[i];
    if (nargs & 1)
        at->args[nargs] = 0; /* padding must not carry stack contents to others */
}

/* A message to be sent. `head` has head_size bytes, a multiple of 8. When `source` is non-NULL the
 * payload may be sent from where it lies, and source->pending then counts it until it may be
 * changed; otherwise it is copied before return. */
struct tk_outgoing {
    struct tk_message_head *head;
    size_t head_size;
    const void *payload;
    size_t nbytes;
    struct tk_op *source;
};

/* A buffer reserved for a message: the payload may begin at a multiple of 16 bytes although the
 * head in front of it is only a multiple of 8. */
enum { tk_am_buffer_alignment = 16, tk_am_buffer_size = tk_message_max + tk_am_buffer_alignment };

/* Resources for a message to `peer`, taken before the message exists: reserve() fills this in,
 * send_reserved() or release() consumes it. */
struct tk_am_reservation {
    struct tk_peer *peer;
    uint8_t kind;    /* enum tk_message_kind */
    void *tx;        /* used by the transport only */
    uint64_t ticket; /* used by the transport only */
    char *buffer;    /* if requested: tk_am_buffer_size bytes, aligned to 16 */
};

/* A received message. Valid during the call of the deliver function. */
struct tk_arrival {
    struct tk_peer *peer;
    struct tk_message_head *head;
    void *payload; /* what follows head and arguments; 8-byte aligned */
    size_t nbytes;
    unsigned tag; /* not 0: a Short that arrived without a head (head is not set) */
    bool replied; /* set by the sender of the reply */
};

/* One put or get: what the caller requests. The caller fills it in, leaves unused fields 0, and
 * does not change it until rma() has returned TK_OK or nothing is posted. A transport only reads
 * it. */
struct tk_rma {
    uintptr_t remote;
    char *local;
    size_t nbytes;
    size_t whole;          /* bytes of the transfer of which this is a part; 0: it is not a part */
    struct tk_op *op;      /* op->pending counts the pieces in flight */
    tk_counter_t *sources; /* put: pieces whose source is in use; may be NULL */
    bool is_put;
    bool copy_source;  /* put: the caller waits for the source: copying it may be faster */
    bool is_lent;      /* put: the same, but registered memory is sent in place (progress/lend.h) */
    bool is_payload;   /* the payload of a message: counted as such */
    bool immediate;    /* post as many pieces as an idle queue holds, or nothing */
    bool is_blocking;  /* the caller blocks until all pieces complete: optimise for latency */
    bool sources_only; /* op->pending counts only the pieces whose source is still being read */
    bool is_pair;      /* not between endpoints 0: the three below name the memory */
    uint32_t endpoint; /* of the peer */
    const uint32_t *remote_keys;  /* by rail */
    const struct tk_region *home; /* local memory that needs no registration; may be NULL */
    bool is_on_device; /* pair: local memory, in `home`, is a device's, which no CPU may touch */
    bool wants_flush;  /* pair, put: a read follows on each connection that it used */
};

/* Devices such as mlx5 may deliver the data of a small RDMA read in the completion, from where the
 * provider's poll function copies it by the CPU. The largest completion holds 64 bytes. Gets to a
 * device's memory are larger, as are their pieces. */
enum { tk_rma_scattered_max = 64 };

/* How far a transport is with a tk_rma. The caller zeroes it before the first call of rma() and
 * passes the same struct to each further one; only the transport changes it. The caller may read
 * `done`; the other fields have no meaning outside the transport. */
struct tk_rma_state {
    size_t done;       /* bytes posted; op->pending counts what is still in flight of them */
    uint64_t unfenced; /* a bit for each connection that needs a read behind its writes */
    int32_t returns;   /* connections that had been reopened when `unfenced` was still 0 */
    bool may_hold;     /* the local memory was found fit for registration on the fly */
};

/* A put or a get between one range of remote memory and several of local memory. */
struct tk_local_piece {
    void *at;
    size_t nbytes;
};

enum { tk_gather_max = 16 };

struct tk_gather {
    uintptr_t remote;
    const uint32_t *remote_keys;
    const struct tk_region *home; /* as in struct tk_rma */
    const struct tk_local_piece *pieces;
    unsigned count;
    struct tk_op *op;
    tk_counter_t *sources;
    bool is_put;
};

/* An atomic operation on 8 aligned bytes of a peer's memory, by its device. */
struct tk_device_atomic {
    uintptr_t remote;
    uint64_t operand;    /* the addend, or the value to compare with */
    uint64_t swap;       /* the new value if they are equal */
    void *result;        /* destination of the previous value; NULL: none */
    uint32_t remote_key; /* on the peer's first rail */
    bool is_swap;        /* compare and swap; else fetch and add */
};

/* With what else the atomics of devices are atomic. */
enum tk_atomic_scope {
    TK_ATOMIC_NONE,   /* devices have no atomics */
    TK_ATOMIC_DEVICE, /* with those of the same device only */
    TK_ATOMIC_GLOBAL  /* with CPUs too */
};

/* One end of a connection that carries only atomics, as the other end needs it. */
struct tk_atomic_end {
    struct tk_port_address address;
    uint32_t qp;
};

/* Mediums with GEX_EVENT_NOW: shorter payloads are copied behind their heads. Sent in place they
 * would be a second range of memory in the work request, which costs more up to about this size
 * (over softhca 70 ns, in which 4 KiB are copied). */
enum { tk_medium_lent_min = 8 << 10 };

/* Called by send_short(), send_small() and send_medium() in place of returning TK_BUSY, as a tail
 * call with their own arguments: so the sender need not save the arguments across the call, which
 * would cost the fast path instructions. NULL: they return TK_BUSY. The transport itself never
 * waits. */
typedef enum tk_status tk_short_busy(struct tk_peer *peer, struct tk_message_head head,
                                     const int32_t *args);
enum { tk_small_args_max = 2 }; /* of send_small() */
typedef enum tk_status tk_small_busy(struct tk_peer *peer, unsigned tag, uint64_t args);
typedef enum tk_status tk_medium_busy(struct tk_peer *peer, uint64_t head, const int32_t *args,
                                      const void *payload, size_t nbytes);

struct tk_mcast_device;
struct tk_device_events;

/* Whose memory a transport reaches. */
enum tk_reach { TK_REACH_NETWORK, TK_REACH_NEIGHBOUR, TK_REACH_SELF };

struct tk_transport {
    const char *name;
    enum tk_reach reach;
    const struct tk_mcast_device *multicast; /* multicast.h; NULL: it has none */
    const struct tk_device_events *events;   /* device_events.h; NULL: it has none */
    size_t packed_max; /* largest payload of a Long that may travel with its head */
    size_t stripe_min; /* payloads from this size on are faster when striped over connections, which
                          are not ordered: the head is sent after them; 0: one connection */
    enum tk_status (*send)(struct tk_peer *peer, struct tk_outgoing *message);
    /* Sends a message without payload, with its head and head.nargs arguments. */
    enum tk_status (*send_short)(struct tk_peer *peer, struct tk_message_head head,
                                 const int32_t *args, tk_short_busy *busy);
    /* The same for up to two arguments, the second one in the upper half. */
    enum tk_status (*send_small)(struct tk_peer *peer, unsigned tag, uint64_t args,
                                 tk_small_busy *busy);
    /* A Medium with its head (tk_head_number()) and the arguments that it counts; the payload is
     * copied before return. send() is as good for payloads of medium_below bytes and more. */
    size_t medium_below;
    enum tk_status (*send_medium)(struct tk_peer *peer, uint64_t head, const int32_t *args,
                                  const void *payload, size_t nbytes, tk_medium_busy *busy);
    /* Takes what depends on the peer (a request's credit) and, if requested, a slot in our own send
     * queue and a buffer. All of it or, with TK_BUSY, nothing. */
    enum tk_status (*reserve)(struct tk_am_reservation *reservation, bool place, bool buffer);
    /* Adds a slot to a reservation that has none, in front of a payload that goes by rma(), for a
     * caller that may not wait behind it. TK_BUSY: nothing was done. release() takes it back, but
     * of a transport whose rma() is never TK_BUSY. */
    enum tk_status (*reserve_place)(struct tk_am_reservation *reservation);
    /* Sends with what was reserved. TK_BUSY while a resource is missing that was not requested
     * then; completions of our own device free it. A message in reservation->buffer has its head
     * directly in front of its payload. */
    enum tk_status (*send_reserved)(struct tk_am_reservation *reservation,
                                    struct tk_outgoing *message);
    /* Gives everything back, or all but the credit. */
    void (*release)(struct tk_am_reservation *reservation, bool keep_credit);
    /* Fast path, for transfers whose completion only decrements op->pending: a small put, whose
     * source is free on return, and a get in one piece to registered memory. The caller has counted
     * it in op->pending. False: nothing was done; use rma(). Always false for 0 bytes. */
    bool (*put)(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                size_t nbytes);
    bool (*get)(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local,
                size_t nbytes);
    /* The same for a put in one piece from registered memory, whose source is in use until it
     * completes. May be NULL. */
    bool (*put_from)(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                     size_t nbytes);
    /* The same for the payload of a Long, counted as a payload, before its head: op->pending counts
     * it while its source is in use. */
    bool (*payload_from)(struct tk_peer *peer, struct tk_op *op, uintptr_t remote,
                         const void *local, size_t nbytes);
    /* Posts as many pieces as there are resources for; TK_BUSY when some are left: call it again
     * with an equal request and the same state. After TK_OK the transport refers to neither. */
    enum tk_status (*rma)(struct tk_peer *peer, const struct tk_rma *rma,
                          struct tk_rma_state *state);
    /* How many pieces of this local memory one gather() takes; 0: none. Both functions may be
     * NULL. */
    unsigned (*gather_max)(const struct tk_region *home, const void *at, size_t nbytes);
    /* Counts itself in op->pending and, a put, in *sources. TK_BUSY: nothing was done. */
    enum tk_status (*gather)(struct tk_peer *peer, const struct tk_gather *gather);
    /* PAR: the wait of a ticket that is in a queue of this transport is over. */
    void (*leave_queue)(const struct tk_peer *peer, struct tk_wait_ticket *ticket);
    /* Receives: runs handlers. True if anything had arrived. */
    bool (*poll)(void);
    /* Completes our own operations only: runs no handler. Legal in handlers. */
    bool (*reap)(void);
    /* For a handler that waits for resources: as reap(), but may run handlers of replies if only
     * that frees resources that other ranks wait for. */
    bool (*reap_in_handler)(void);
    /* Has anything arrived (requests_too: including requests)? Called before a thread sleeps; later
     * arrivals ring the doorbell. NULL: the transport has no doorbell. */
    bool (*has_come)(bool requests_too);
    /* A thread that has a reservation may run handlers while it waits to use it. */
    bool reservation_is_no_hold;

    /* ---- connections on demand: all of these or none ---- */

    /* The table for peers that are not connected yet: its functions begin to connect and return
     * TK_BUSY.
     */
    const struct tk_transport *unconnected;
    /* Peers of this transport have these tables from now on; at start-up. */
    void (*use_tables)(const struct tk_transport *connected,
                       const struct tk_transport *unconnected);
    /* At start-up, after the last fence: begins to connect those of these ranks that are its peers;
     * polls continue that. */
    enum tk_status (*connect_ranks)(const uint32_t *ranks, uint32_t count);
    bool (*is_connected)(uint32_t rank);
    /* Only in the table for unconnected peers: a handler of a message of this peer is about to
     * reply, and begins with rma(). */
    void (*replies)(struct tk_peer *peer);

    /* ---- start and end; all of these may be NULL. One thread. ---- */

    /* Before the peer infos are exchanged: fills in ours, which may move. `turn` is our number
     * among the ranks of this host. The transport gets the peers that no earlier transport has
     * taken. */
    enum tk_status (*open)(struct tk_peer_info **info, uint32_t turn);
    /* With the peer infos of all ranks: can these ranks be connected? All ranks derive the same
     * answer; if it is no, rank 0 logs why. */
    bool (*agree)(void);
    /* Starts to serve its peers: they get the returned table, which is this one or another with the
     * same functions below. NULL: it failed, which was logged. */
    const struct tk_transport *(*connect)(void);
    void (*close)(void);

    /* ---- memory; all of these may be NULL ---- */

    /* Registers region->base and ->size and fills in the rest; the remote keys are what peers must
     * present. */
    enum tk_status (*register_region)(struct tk_region *region);
    void (*unregister_region)(struct tk_region *region);
    /* Does registering make all pages of a region present? */
    bool (*pins)(void);
    /* Makes it the segment of endpoint 0; tk_segment_area is the same memory; NULL: no segment any
     * more. */
    void (*use_segment)(const struct tk_region *region);
    /* The keys, for each rail, that peers must present for a region registered on the fly. */
    const uint32_t *(*remote_keys)(const struct tk_pinned *pinned);

    /* ---- atomics; all of these or none ---- */

    /* What devices of all ranks can do: the same answer on all ranks. */
    enum tk_atomic_scope (*atomic_scope)(void);
    /* For peers of any transport, including ourselves; see the next two. op->pending counts it
     * before the call. TK_BUSY: no space now, nothing was done. */
    enum tk_status (*atomic)(struct tk_peer *peer, struct tk_op *op,
                             const struct tk_device_atomic *atomic);
    /* A rank of another transport needs a connection for atomics. Each end makes its own (for
     * ourselves the same one), connects it when it knows the other end, and makes it ready when the
     * other end is connected too: before that it has no space for atomics. TK_FAIL: the cause was
     * logged. One thread at a time. */
    enum tk_status (*atomic_open)(struct tk_peer *peer, struct tk_atomic_end *ours);
    enum tk_status (*atomic_connect)(struct tk_peer *peer, const struct tk_atomic_end *theirs);
    void (*atomic_ready)(struct tk_peer *peer);

    /* ---- reports; all of these may be NULL ---- */

    /* Describes how it reaches the peer. */
    void (*describe)(const struct tk_peer *peer, char *text, size_t size);
    /* Called rarely, by a waiter without progress: logs which peer keeps us waiting. */
    void (*report_stall)(void);
    /* Likewise: adds operations in flight with peers to the record of waits. */
    void (*describe_waits)(struct tk_wait_rows *rows);
    /* At the end of a job: logs the counts that settings ask for. */
    void (*report_end)(void);

    /* ---- memory shared with neighbours: all of these or none; see transport/neighbour.h ---- */

    void *(*flags)(uint32_t neighbour);
    void *(*scratch)(uint32_t neighbour);
    void (*wake)(uint32_t rank);
    /* The doorbell that neighbours ring; progress/ sleeps on it. */
    struct tk_doorbell *(*bell)(void);
    uintptr_t (*offset)(struct tk_peer *peer, uint32_t endpoint);
    enum tk_status (*try_segment)(struct tk_peer *peer, const struct tk_bound *bound);
    void (*admit)(void);
    void (*set_liveness)(enum tk_rank_liveness liveness);
    const _Atomic uint32_t *(*liveness_of)(uint32_t index);
};

/* The transports in use, in polling order. Only start/ knows which ones exist, and puts them here;
 * written at start-up. */
enum { tk_transports_max = 4 };
struct tk_transports {
    const struct tk_transport *at[tk_transports_max];
    unsigned count;
    const struct tk_transport
        *node_local; /* the one that shares memory with neighbours; may be NULL */
};
extern TK_HIDDEN struct tk_transports tk_transports;

/* A transport replaces one of the same name. */
void tk_transport_use(const struct tk_transport *transport);
void tk_transport_drop(const struct tk_transport *transport);

/* Registers with each transport that can. If one fails, the others are undone. */
enum tk_status tk_transports_register(struct tk_region *region);
void tk_transports_unregister(struct tk_region *region);
bool tk_transports_pin(void);

/* At start-up: are some peers connected only when they are first used? */
bool tk_transports_connect_later(void);
void tk_transports_use_segment(const struct tk_region *region);
void tk_transports_report_stall(void);
void tk_transports_describe_waits(struct tk_wait_rows *rows);
void tk_transports_report_end(void);
void tk_transports_close(void);

/* A send_short for transports without a fast path: calls their send. */
enum tk_status tk_send_short_whole(struct tk_peer *peer, struct tk_message_head head,
                                   const int32_t *args, tk_short_busy *busy);

/* A send_medium that calls the transport's send. */
enum tk_status tk_send_medium_whole(struct tk_peer *peer, uint64_t head, const int32_t *args,
                                    const void *payload, size_t nbytes, tk_medium_busy *busy);

/* A send_small for transports without a fast path: calls their send_short. */
enum tk_status tk_send_small_short(struct tk_peer *peer, unsigned tag, uint64_t args,
                                   tk_small_busy *busy);

/* put() and get() for transports without a fast path: always false. */
bool tk_put_never(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                  size_t nbytes);
bool tk_get_never(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local,
                  size_t nbytes);

/* Delivery: set by the rooms above before anything can arrive. The second takes messages for which
 * tk_head_is_medium() is true, the third Shorts that arrive with a tag; it returns whether a reply
 * was sent. */
extern TK_HIDDEN void (*tk_deliver)(struct tk_arrival *arrival);
extern TK_HIDDEN void (*tk_deliver_medium)(struct tk_arrival *arrival);
extern TK_HIDDEN bool (*tk_deliver_short)(struct tk_peer *from, unsigned tag, const int32_t *args);

/* Communication errors end the job: the transport logs the error, then calls this. NULL while the
 * job exits: vanishing peers are no error then. `peer` does not answer, and its end may be the
 * cause; tk_no_peer: no peer is involved. */
extern void (*tk_lost_peer)(uint32_t peer);
static const uint32_t tk_no_peer = UINT32_MAX;

#endif
