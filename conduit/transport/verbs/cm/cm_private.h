/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files of cm/ only. All state is in tk_verbs.cm. Start-up and exit are
 * single-threaded; in between, the functions of cm.h take the lock that guards it. Lock order:
 * after the locks of demands, moves and connections. */
#ifndef TK_VERBS_CM_PRIVATE_H
#define TK_VERBS_CM_PRIVATE_H

#include "transport/verbs/library.h" /* before the headers of verbs */

#include <rdma/rdma_cma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/counter.h"
#include "base/status.h"
#include "peer/peer.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/verbs_state.h"

struct tk_rail;

enum {
    tk_cm_text_max = 64 /* an IPv6 address with interface, and a port */
};

/* ---- private_data.c: what a connect carries, and what a refusal says ---- */

/* The private data of a connect has 56 bytes on InfiniBand (rdma_connect(3)) and more on iWARP. */
struct tk_cm_request {
    uint32_t magic;
    uint16_t version;
    uint16_t rail;
    uint32_t from, to; /* ranks */
    uint32_t conn;     /* number of the connection */
    uint32_t epoch;
    uint32_t is_conn_request; /* the higher rank asks for a connection: the lower rank refuses this
                                 connect, then connects itself */
    uint8_t secret[tk_cm_secret_size];
};
_Static_assert(sizeof(struct tk_cm_request) <= 56, "private data of a connect on InfiniBand");

enum tk_cm_verdict {
    TK_CM_WELCOME,
    TK_CM_FOREIGN,   /* not of this job, or for another rank or rail */
    TK_CM_CROSSING,  /* the higher rank must not connect */
    TK_CM_LATE,      /* of a past incarnation */
    TK_CM_DUPLICATE, /* a connect of the same queue pair is in progress */
    TK_CM_EARLY,     /* this end is not open yet: ask again */
    TK_CM_HEARD,     /* the answer to a connection request */
    tk_cm_verdicts
};

struct tk_cm_refusal {
    uint32_t magic;
    uint32_t verdict;
};

void tk_cm_request_make(struct tk_cm_request *request, const struct tk_conn *conn, uint32_t epoch);

/* Does it belong to this job and to the listener of `rail`? Then *request is valid: its ranks and
 * its number are in range. */
enum tk_cm_verdict tk_cm_request_read(struct tk_cm_request *request, const void *data, size_t size,
                                      uint32_t rail);
struct tk_cm_refusal tk_cm_refusal_make(enum tk_cm_verdict verdict);

/* tk_cm_verdicts: the network or the kernel refused, not a rank of this job. */
enum tk_cm_verdict tk_cm_refusal_read(const void *data, size_t size);
const char *tk_cm_verdict_text(enum tk_cm_verdict verdict);

/* ---- address.c: listeners ---- */

struct tk_cm_listener {
    struct rdma_cm_id *id; /* NULL: librdmacm does not connect this rail */
    struct tk_cm_place place;
};

void tk_cm_close_listeners(void);
enum tk_status tk_cm_listen(struct tk_cm_listener *listener, const struct tk_rail *rail);
void tk_cm_place_sockaddr(const struct tk_cm_place *place, struct sockaddr_storage *address);
void tk_cm_place_text(const struct tk_cm_place *place, char *text, size_t size);

/* ---- endpoint_state.c: one end of one connection ---- */

enum tk_cm_state {
    TK_CM_CLOSED,   /* there is nothing to connect */
    TK_CM_AWAITS,   /* the higher rank: a connect may come */
    TK_CM_HOLDS,    /* the lower rank: waits for tk_cm_end_begin(), or to ask again */
    TK_CM_RESOLVES, /* address, then route */
    TK_CM_ASKED,    /* waits for the answer */
    TK_CM_ANSWERED, /* the higher rank has accepted, and waits for the acknowledgement */
    TK_CM_GREETS,   /* over iWARP, on demand: connected, first messages are exchanged
                       (iwarp_first_send.c) */
    TK_CM_UP,       /* messages may be sent */
    TK_CM_FAILED
};

struct tk_cm_end {
    struct rdma_cm_id *id;
    uint64_t deadline; /* 0: none; at start-up there is one for all ends */
    uint64_t again;    /* when to ask again; 0: never on a timer */
    uint32_t epoch;
    uint16_t early; /* refusals because the other end was not open yet */
    uint8_t state;  /* enum tk_cm_state */
    bool is_greeted;
    bool has_greeted; /* over iWARP, on demand: the first message was sent */
    uint8_t pushes;   /* writes of 0 bytes sent behind the greeting */
    bool was_refused; /* the peer itself refused, which is final */
    bool is_logged;   /* its failure was logged once */

    /* With connections on demand. */
    bool was_requested; /* set for the first connection to a rank: the peer asked for it */
    struct tk_cm_conn_request *conn_request;
    struct rdma_cm_id *kept; /* a connect that waits until the queue pair exists */
    uint32_t kept_epoch;
};

/* A connection request uses a queue pair of its own, which never carries data. A connect that
 * crosses another one or is refused would make the connection's queue pair unusable on iWARP, and
 * the kernel would treat that connect as stale. */
struct tk_cm_conn_request {
    struct rdma_cm_id *id;
    struct ibv_qp *qp;
};

/* Epochs of first connections are lower than those of connections that come back, so each end can
 * tell the two kinds apart. */
#define TK_CM_FIRST (UINT32_C(3) << 30)

static inline bool tk_cm_is_first(uint32_t epoch)
{
    return (int32_t)epoch < 0;
}

struct tk_cm {
    tk_lock_t lock;
    struct rdma_event_channel *channel;
    struct tk_cm_listener *listeners; /* by rail */
    struct tk_cm_place *places;       /* by rank and rail */
    struct tk_cm_end *ends;           /* by rank, and connection to it */
    uint32_t *credits;                /* by rank: credits that it always grants each peer */
    uint32_t end_count;
    uint32_t failed;     /* ends */
    uint32_t waiting;    /* ends that wait for an event or a time */
    uint32_t kept_count; /* connects and connection requests that wait */
    uint32_t in_flight;  /* our ends in RESOLVES or ASKED */
    uint32_t refused;    /* connects */
    uint64_t next_look;
    uint32_t left;     /* ends that are not connected and greeted yet, at start-up */
    uint64_t deadline; /* for all of these */
    bool is_starting;
    bool is_on_demand;
    bool has_heard; /* from any rank */
    uint8_t secret[tk_cm_secret_size];
};

static inline struct tk_cm_end *tk_cm_end_of(const struct tk_conn *conn)
{
    uint32_t rank = conn->peer->rank, number = (uint32_t)(conn - tk_conns_to(rank));
    return &tk_verbs.cm->ends[rank * tk_verbs.conns_pp + number];
}

static inline struct tk_conn *tk_cm_conn_of(const struct tk_cm_end *end)
{
    uint32_t i = (uint32_t)(end - tk_verbs.cm->ends);
    return tk_conns_to(i / tk_verbs.conns_pp) + i % tk_verbs.conns_pp;
}

static inline const struct tk_cm_place *tk_cm_place_of_peer(const struct tk_conn *conn)
{
    return &tk_verbs.cm->places[conn->peer->rank * tk_verbs.rail_count + conn->rail];
}

static inline bool tk_cm_is_under_way(const struct tk_cm_end *end)
{
    return end->state == TK_CM_RESOLVES || end->state == TK_CM_ASKED ||
           end->state == TK_CM_ANSWERED || end->state == TK_CM_GREETS;
}

static inline bool tk_cm_is_waiting(const struct tk_cm_end *end)
{
    return tk_cm_is_under_way(end) || end->state == TK_CM_AWAITS || end->state == TK_CM_HOLDS;
}

/* Of two ranks the lower one connects, so connects never cross. */
static inline bool tk_cm_is_asker(const struct tk_conn *conn)
{
    return tk_peers.me < conn->peer->rank;
}

static inline struct tk_cm_end *tk_cm_ends_of(uint32_t rank)
{
    return &tk_verbs.cm->ends[rank * tk_verbs.conns_pp];
}

void tk_cm_end_open(struct tk_cm_end *end, uint32_t epoch); /* AWAITS or HOLDS */
void tk_cm_end_drop(struct tk_cm_end *end);                 /* CLOSED */
void tk_cm_addresses(const struct tk_conn *conn, struct sockaddr_storage *source,
                     struct sockaddr_storage *target);
void tk_cm_end_begin(struct tk_cm_end *end); /* for the lower rank: asks */
void tk_cm_end_again(struct tk_cm_end *end); /* the network lost or refused the connect */
void tk_cm_end_resolved(struct tk_cm_end *end, bool is_route);
void tk_cm_end_answered(struct tk_cm_end *end);
void tk_cm_end_up(struct tk_cm_end *end);
void tk_cm_end_greeted(struct tk_cm_end *end); /* goes to UP if it is connected */
void tk_cm_end_refused(struct tk_cm_end *end, enum tk_cm_verdict verdict, int status);
void tk_cm_end_rebuffed(struct tk_cm_end *end,
                        enum tk_cm_verdict verdict); /* the refusal is final */

/* `status` is a status of rdma_cm or an errno; 0: `what` is complete. */
void tk_cm_end_fail(struct tk_cm_end *end, const char *what, int status);

/* May the other end connect in this epoch? */
enum tk_cm_verdict tk_cm_end_judge(const struct tk_cm_end *end, uint32_t epoch);

/* Accepts the connect on this id, which belongs to the end from now on. */
void tk_cm_end_accept(struct tk_cm_end *end, struct rdma_cm_id *id);

/* ---- connect_request.c ---- */

void tk_cm_conn_request_begin(struct tk_cm_end *end); /* does nothing if one is in progress */
void tk_cm_conn_request_resolved(struct tk_cm_end *end, bool is_route);
void tk_cm_conn_request_answered(struct tk_cm_end *end, enum tk_cm_verdict verdict);
void tk_cm_conn_request_end(struct tk_cm_end *end);

/* ---- on_demand.c ---- */

enum tk_cm_verdict tk_cm_connect_keep(struct tk_cm_end *end, struct rdma_cm_id *id, uint32_t epoch);
enum tk_cm_verdict tk_cm_conn_request_came(uint32_t rank);
void tk_cm_connect_drop(struct tk_cm_end *end); /* the peer gave up its connect */

/* ---- start.c ---- */

enum tk_status tk_cm_open_ends(void); /* for all peers, from what they published */

/* ---- startup_handshake.c ---- */

/* One step of start-up, without waiting; false: finished or failed. */
bool tk_cm_connect_step(void);

/* ---- events.c ---- */

/* Reads all events that have come. */
void tk_cm_events_read(void);

/* Fails ends that exceed their time, and asks again for those that were refused temporarily. */
void tk_cm_events_timed(uint64_t now);

#endif
