/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The transport contract: one table of functions, filled in by transport/self, transport/shm and
 * transport/verbs. A transport moves messages and memory between this process and a peer. Rooms
 * above use a transport through this table only. A function that finds no resources (credit, queue
 * slot, buffer) returns TK_BUSY and never spins: the caller decides how to wait (progress/wait.c).
 * The table has groups: struct tk_transport, below, says which are optional. Functions are
 * thread-safe in PAR unless their group or their comment says which thread calls them. */
#ifndef TK_TRANSPORT_H
#define TK_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/platform.h"
#include "base/status.h"
#include "transport/message_head.h"
#include "transport/neighbour.h"
#include "transport/rma_request.h"

struct tk_device_events;
struct tk_mcast_device;
struct tk_op;
struct tk_pinned;
struct tk_region;
struct tk_wait_ticket;
struct tk_wait_rows;

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

/* Mediums with GEX_EVENT_NOW: shorter payloads are copied behind their heads. Sent in place they
 * would be a second range of memory in the work request, which costs more up to about this size
 * (over softhca 70 ns, in which 4 KiB are copied). */
enum { tk_medium_lent_min = 8 << 10 };

/* Where send_short(), send_small() and send_medium() would return TK_BUSY, they call this instead,
 * as a tail call with their own arguments. So the sender need not save the arguments across the
 * call, which would cost the fast path instructions. NULL: they return TK_BUSY. The transport
 * itself never waits. */
typedef enum tk_status tk_short_busy(struct tk_peer *peer, struct tk_message_head head,
                                     const int32_t *args);
enum { tk_small_args_max = 2 }; /* of send_small() */
typedef enum tk_status tk_small_busy(struct tk_peer *peer, unsigned tag, uint64_t args);
typedef enum tk_status tk_medium_busy(struct tk_peer *peer, uint64_t head, const int32_t *args,
                                      const void *payload, size_t nbytes);

/* ---- active messages: required, any thread ---- */

struct tk_transport_am {
    /* Sends a message without payload, with its head and head.nargs arguments. */
    enum tk_status (*send_short)(struct tk_peer *peer, struct tk_message_head head,
                                 const int32_t *args, tk_short_busy *busy);
    /* The same for up to two arguments, the second one in the upper half. */
    enum tk_status (*send_small)(struct tk_peer *peer, unsigned tag, uint64_t args,
                                 tk_small_busy *busy);
    /* A Medium with its head (tk_head_number()) and the arguments that it counts; the payload is
     * copied before return. send() is as good for payloads of medium_below bytes and more. NULL if
     * medium_below is 0. */
    enum tk_status (*send_medium)(struct tk_peer *peer, uint64_t head, const int32_t *args,
                                  const void *payload, size_t nbytes, tk_medium_busy *busy);
    size_t medium_below;
    /* Any message. */
    enum tk_status (*send)(struct tk_peer *peer, struct tk_outgoing *message);
    /* Fast path for a Long that is not packed: puts the payload to `remote`, in the segment of
     * endpoint 0, and sends the head behind it. message->source->pending counts the payload while
     * it is in use. False: nothing was done; use rma.post(), then send(). May be NULL. */
    bool (*send_long)(struct tk_peer *peer, struct tk_outgoing *message, uintptr_t remote);
    /* Takes what depends on the peer (a request's credit) and, if requested, a slot in our own send
     * queue and a buffer. All of it or, with TK_BUSY, nothing. */
    enum tk_status (*reserve)(struct tk_am_reservation *reservation, bool place, bool buffer);
    /* Adds a slot to a reservation that has none. A caller that posts the payload by rma.post()
     * and may not wait after that calls it first. TK_BUSY: nothing was done. release() takes
     * the slot back, except in a transport whose rma.post() never returns TK_BUSY: its callers
     * always send. */
    enum tk_status (*reserve_place)(struct tk_am_reservation *reservation);
    /* Sends with the reserved resources. TK_BUSY while a resource is missing that reserve() was not
     * asked for; completions of our own device free it. A message in reservation->buffer has its
     * head directly in front of its payload. */
    enum tk_status (*send_reserved)(struct tk_am_reservation *reservation,
                                    struct tk_outgoing *message);
    /* Gives everything back, or all but the credit. */
    void (*release)(struct tk_am_reservation *reservation, bool keep_credit);
    /* A handler of a message of this peer is about to reply, and begins with rma.post(). NULL: the
     * transport need not know. Called in handlers. */
    void (*before_reply)(struct tk_peer *peer);
    /* PAR: a thread whose ticket is in a queue of this transport stops waiting. NULL: it has no
     * queues. */
    void (*leave_queue)(const struct tk_peer *peer, struct tk_wait_ticket *ticket);
    size_t packed_max; /* largest payload of a Long that may travel with its head */
    size_t stripe_min; /* payloads from this size on are faster when striped over connections, which
                          are not ordered: the head is sent after them; 0: one connection */
    /* A thread that holds a reservation may run handlers while it waits to use it. */
    bool reservation_is_no_hold;
};

/* ---- puts and gets: required, any thread ---- */

struct tk_transport_rma {
    /* Fast path, for transfers whose completion only decrements op->pending: a small put, whose
     * source is free on return, and a get in one piece to registered memory. The caller has counted
     * it in op->pending. False: nothing was done; use post(). Always false for 0 bytes. */
    bool (*put)(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                size_t nbytes);
    bool (*get)(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local,
                size_t nbytes);
    /* The same for a put in one piece from registered memory, whose source is in use until it
     * completes. May be NULL. */
    bool (*put_from)(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                     size_t nbytes);
    /* Posts as many pieces as there are resources for; TK_BUSY when some are left: call it again
     * with an equal request and the same state. After TK_OK the transport refers to neither. */
    enum tk_status (*post)(struct tk_peer *peer, const struct tk_rma *rma,
                           struct tk_rma_state *state);
    /* The number of pieces of this local memory that one gather() takes; 0: it takes none. Both
     * functions may be NULL. */
    unsigned (*gather_max)(const struct tk_region *home, const void *at, size_t nbytes);
    /* Counts itself in op->pending and, a put, in *sources. TK_BUSY: nothing was done. */
    enum tk_status (*gather)(struct tk_peer *peer, const struct tk_gather *gather);
};

/* ---- reports: each may be NULL ---- */

struct tk_transport_reports {
    /* Describes how it reaches the peer. Any thread. */
    void (*describe)(const struct tk_peer *peer, char *text, size_t size);
    /* Called rarely, by a waiter without progress: logs which peer keeps us waiting. Any thread. */
    void (*stall)(void);
    /* Likewise: adds operations in flight with peers to the record of waits. */
    void (*waits)(struct tk_wait_rows *rows);
    /* At the end of a job: logs the counts that settings ask for. The thread that exits. */
    void (*end)(void);
};

/* ---- start and end: one thread ---- */

struct tk_transport_lifecycle {
    /* Before the peer infos are exchanged: fills in ours, which may be reallocated. `turn` is our
     * number among the ranks of this host. The transport gets the peers that no earlier transport
     * took. */
    enum tk_status (*open)(struct tk_peer_info **info, uint32_t turn);
    /* With the peer infos of all ranks: opens the transport again if ranks must use less of what
     * they found. Then it sets *is_again, in all ranks, and the peer infos are exchanged once more.
     */
    enum tk_status (*narrow)(struct tk_peer_info **info, uint32_t turn, bool *is_again);
    /* With the peer infos of all ranks: can these ranks be connected? All ranks derive the same
     * answer; if it is no, rank 0 logs why. */
    bool (*agree)(void);
    /* Starts to serve its peers. They get the returned table: this one, or another with the same
     * optional groups. NULL: it failed; the cause was logged. */
    const struct tk_transport *(*connect)(void);
    void (*close)(void);
};

/* ---- connections on demand: at start-up, one thread, but for is_connected() ---- */

struct tk_transport_demand {
    bool (*is_connected)(uint32_t rank); /* also at the end of the job */
    /* After the last fence: begins to connect those of these ranks that are its peers; polls
     * continue the work. */
    enum tk_status (*connect_ranks)(const uint32_t *ranks, uint32_t count);
    /* Peers of this transport have these tables from now on. */
    void (*use_tables)(const struct tk_transport *connected,
                       const struct tk_transport *unconnected);
};

/* ---- memory that must be registered: any thread ---- */

struct tk_transport_memory {
    /* Registers the memory at region->base of region->size bytes, and fills in the rest. Peers must
     * present the remote keys. */
    enum tk_status (*register_region)(struct tk_region *region);
    void (*unregister_region)(struct tk_region *region);
    /* Does registering make all pages of a region present? */
    bool (*pins)(void);
    /* Makes the region the segment of endpoint 0; tk_segment_area is the same memory. NULL: removes
     * the segment. The caller serializes. */
    void (*use_segment)(const struct tk_region *region);
    /* The keys, for each rail, that peers must present for a region registered on the fly. */
    const uint32_t *(*remote_keys)(const struct tk_pinned *pinned);
};

/* ---- atomics by devices ---- */

/* An atomic operation on 8 aligned bytes of a peer's memory, by its device. */
struct tk_device_atomic {
    uintptr_t remote;
    uint64_t operand;    /* the addend, or the value to compare with */
    uint64_t swap;       /* the new value if they are equal */
    void *result;        /* destination of the previous value; NULL: none */
    uint32_t remote_key; /* on the peer's first rail */
    bool is_swap;        /* compare and swap; else fetch and add */
};

/* The other accesses with respect to which device atomics are atomic. */
enum tk_atomic_scope {
    TK_ATOMIC_NONE,   /* devices have no atomics */
    TK_ATOMIC_DEVICE, /* atomics of the same device only */
    TK_ATOMIC_GLOBAL  /* atomics of CPUs too */
};

/* One end of a connection that carries only atomics, as the other end needs it. */
struct tk_atomic_end {
    struct tk_port_address address;
    uint32_t qp;
};

struct tk_transport_atomics {
    /* For peers of any transport, including ourselves. The caller has counted it in op->pending.
     * TK_BUSY: no space now, nothing was done. Any thread. */
    enum tk_status (*post)(struct tk_peer *peer, struct tk_op *op,
                           const struct tk_device_atomic *atomic);
    /* The scope that the devices of all ranks have; the same answer on all ranks. Any thread. */
    enum tk_atomic_scope (*scope)(void);
    /* open(), connect() and ready(): a peer of another transport needs a connection for atomics.
     * Each end opens its own (one end serves for ourselves), connects it when it knows the other
     * end, and makes it ready when the other end is connected too. Until then it has no space for
     * atomics. TK_FAIL: the cause was logged. One thread at a time. */
    enum tk_status (*open)(struct tk_peer *peer, struct tk_atomic_end *ours);
    enum tk_status (*connect)(struct tk_peer *peer, const struct tk_atomic_end *theirs);
    void (*ready)(struct tk_peer *peer);
};

/* ---- the table ---- */

/* The ranks whose memory a transport reaches. */
enum tk_reach { TK_REACH_NETWORK, TK_REACH_NEIGHBOUR, TK_REACH_SELF };

/* `rma` and `am` are members, so that a call loads one pointer; `reports` is one because a copy of
 * the table may replace a single report. The groups that are pointers are optional: NULL, or a
 * table with all functions. */
struct tk_transport {
    const char *name;
    enum tk_reach reach;
    struct tk_transport_rma rma;
    struct tk_transport_am am;
    /* Receives: runs handlers. True if anything had arrived. Not in handlers. */
    bool (*poll)(void);
    /* Completes our own operations only; runs no handler. Legal in handlers. */
    bool (*reap)(void);
    /* For a handler that waits for resources: as reap(), but it may run handlers of replies where
     * nothing else frees resources that other ranks wait for. */
    bool (*reap_in_handler)(void);
    /* Has a message arrived (requests count only if requests_too)? Called before a thread sleeps;
     * later arrivals ring the doorbell. NULL: the transport has no doorbell. */
    bool (*has_come)(bool requests_too);
    struct tk_transport_reports reports;

    const struct tk_transport_lifecycle *lifecycle; /* NULL: there is nothing to start or end */
    const struct tk_transport_demand *demand;       /* NULL: peers are connected from the start */
    /* With demand: the table for peers that are not connected yet. Its functions begin to connect
     * and return TK_BUSY. */
    const struct tk_transport *unconnected;
    const struct tk_transport_memory *memory;       /* NULL: memory needs no registration */
    const struct tk_transport_atomics *atomics;     /* NULL: no atomics by devices */
    const struct tk_transport_neighbour *neighbour; /* neighbour.h; NULL: it shares no memory */
    const struct tk_mcast_device *multicast;        /* multicast.h; NULL: no multicast */
    const struct tk_device_events *events;          /* device_events.h; NULL: nothing to sleep on */
};

/* x86-64 instructions address these members with a displacement of one byte. */
_Static_assert(offsetof(struct tk_transport, am.send) < 128, "the fast paths come first");

/* The transports in use, in polling order. Only start/ knows which ones exist, and puts them here;
 * written at start-up. */
enum { tk_transports_max = 4 };
struct tk_transports {
    const struct tk_transport *at[tk_transports_max];
    unsigned count;
    const struct tk_transport_neighbour *node_local; /* of the first one that has it; may be NULL */
};
extern TK_HIDDEN struct tk_transports tk_transports;

/* A transport replaces one of the same name. */
void tk_transport_use(const struct tk_transport *transport);
void tk_transport_drop(const struct tk_transport *transport);

/* Registers the region with each transport that needs it. If one fails, the others are undone. */
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

/* An am.send_short for transports without a fast path: calls their send. */
enum tk_status tk_send_short_whole(struct tk_peer *peer, struct tk_message_head head,
                                   const int32_t *args, tk_short_busy *busy);

/* An am.send_medium that calls the transport's send. */
enum tk_status tk_send_medium_whole(struct tk_peer *peer, uint64_t head, const int32_t *args,
                                    const void *payload, size_t nbytes, tk_medium_busy *busy);

/* An am.send_small for transports without a fast path: calls their send_short. */
enum tk_status tk_send_small_short(struct tk_peer *peer, unsigned tag, uint64_t args,
                                   tk_small_busy *busy);

/* rma.put() and rma.get() for transports without a fast path: always false. */
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
 * job exits, when peers may vanish without error. `peer` does not answer, perhaps because it died;
 * tk_no_peer: no peer is involved. */
extern void (*tk_lost_peer)(uint32_t peer);
static const uint32_t tk_no_peer = UINT32_MAX;

#endif
