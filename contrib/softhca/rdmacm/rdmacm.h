/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connection management: librdmacm's functions for the ports of softhca. A thread of its own
 * (agent.c) takes the place of the kernel's CM, over Unix sockets whose abstract names are the port
 * numbers: the kernel keeps them unique, queues requests, and reports the death of either end. Owns
 * the types; shca_cm_lock protects every identifier, channel and event of the process. */
#ifndef SHCA_RDMACM_H
#define SHCA_RDMACM_H

#include <netinet/in.h>
#include <rdma/rdma_cma.h>
#include <rdma/rdma_verbs.h>

#include "verbs/verbs.h"

/* Private data of the messages of InfiniBand's CM, minus the part that rdma_cm itself uses. */
enum {
    SHCA_CM_REQ_DATA = 56,
    SHCA_CM_REP_DATA = 196,
    SHCA_CM_REJ_DATA = 148,
    SHCA_CM_SIDR_REQ_DATA = 180,
    SHCA_CM_SIDR_REP_DATA = 136,
    SHCA_CM_DATA = 196,
};

/* Reasons of a rejection (InfiniBand specification 12.6.7.2), and of a datagram service. */
enum {
    SHCA_CM_REJ_TIMEOUT = 4,
    SHCA_CM_REJ_NO_SERVICE = 8,
    SHCA_CM_REJ_CONSUMER = 28,
    SHCA_CM_SIDR_UNSUPPORTED = 1,
    SHCA_CM_SIDR_REJECT = 2,
};

enum shca_cm_state {
    SHCA_CM_IDLE,
    SHCA_CM_BOUND,
    SHCA_CM_LISTEN,
    SHCA_CM_ADDR_QUERY,
    SHCA_CM_ADDR_RESOLVED,
    SHCA_CM_ROUTE_RESOLVED,
    SHCA_CM_REQ_SENT,
    SHCA_CM_REP_RCVD,
    SHCA_CM_REQ_HELD, /* a request that does not fit into its listener's queue, or that arrived
                       * through a cut */
    SHCA_CM_REQ_RCVD,
    SHCA_CM_REP_SENT,
    SHCA_CM_ESTABLISHED,
    SHCA_CM_DREQ_SENT,
    SHCA_CM_DREQ_RCVD,
    SHCA_CM_TIMEWAIT,
    SHCA_CM_CLOSED,
    SHCA_CM_HOST, /* it belongs to the host (host.c) */
};

enum shca_cm_kind {
    SHCA_CM_REQ = 1,
    SHCA_CM_MRA, /* the request is with the program, which may take its time */
    SHCA_CM_REP,
    SHCA_CM_RTU,
    SHCA_CM_REJ,
    SHCA_CM_DREQ,
    SHCA_CM_DREP,
};

/* One datagram between two agents; both ends have the same layout, or they would not have found
 * each other (support/registry_name.c). */
struct shca_cm_message {
    uint32_t kind;
    uint32_t reason;
    uint32_t src, dst; /* IPv4, host order */
    uint16_t src_port, dst_port;
    uint32_t from; /* the sender's fabric port, */
    union ibv_gid gid;
    uint32_t qpn, psn, qkey;
    uint8_t datagram, srq, mtu, v2;
    uint8_t responder_resources, initiator_depth, flow_control;
    uint8_t retry_count, rnr_retry_count;
    uint8_t length;
    uint8_t data[SHCA_CM_DATA];
};

struct shca_cm_address {
    uint32_t ip; /* host order */
    uint16_t port;
    bool any;
};

struct shca_cm_channel {
    struct rdma_event_channel pub;
    int tokens; /* a semaphore that counts the events; the same descriptor, or one behind it */
    struct rdma_event_channel *host;
    struct shca_cm_event *head, **tail;
    uint32_t spent; /* tokens that were read from the descriptor for events dropped since */
};

struct shca_cm_event {
    struct rdma_cm_event pub;
    struct shca_cm *id; /* its channel gets the event */
    struct rdma_cm_event *host;
    struct shca_cm *request; /* of CONNECT_REQUEST: the new identifier */
    struct shca_cm_event *next;
    uint8_t data[256];
};

/* A socket that the agent waits for. */
struct shca_cm_socket {
    int fd;
    uint32_t ip; /* the address whose port number it holds */
    struct shca_cm *id;
};

struct shca_cm {
    struct rdma_cm_id pub;
    struct shca_cm *next, *prev;
    _Atomic enum shca_cm_state state; /* read without the lock where a stale value is safe */
    struct rdma_cm_id *host;          /* behind it; NULL: none */
    bool sync;                        /* it has a channel of its own, and calls wait */
    bool datagram;                    /* UDP: a look-up instead of a connection */
    bool active, connected, refused;
    bool deaf;          /* its port is down: what waits in the link stays there */
    uint32_t port, far; /* fabric ports of both ends, 0: any or unknown */
    struct shca_cm_socket *names;
    int n_names;
    int backlog, queued;
    struct shca_cm *listener; /* of a request that was not delivered yet */
    struct shca_cm_socket link;
    struct shca_cm_message out, peer; /* being sent; the other end's REQ or REP */
    bool pending;
    uint64_t give_up, due;
    uint32_t psn, qkey, qpn;
    uint32_t given_qpn; /* that the program named in its parameters, 0: none */
    uint8_t responder_resources, initiator_depth, retry_count, rnr_retry_count, timeout;
    uint32_t unacked; /* events that the program has and has not acknowledged */
    struct ibv_qp_init_attr *ep_attr;
    void *ep_data;
    size_t ep_length;
    struct ibv_sa_path_rec path;
};

extern pthread_mutex_t shca_cm_lock;

void *shca_cm_real(const char *symbol); /* the librdmacm behind us; NULL when there is none */

static inline struct shca_cm *shca_cm_of(struct rdma_cm_id *id)
{
    return shca_container(id, struct shca_cm, pub);
}

static inline struct shca_cm_channel *shca_cm_channel_of(struct rdma_event_channel *ch)
{
    return shca_container(ch, struct shca_cm_channel, pub);
}

/* Every function that librdmacm's clients call fails this way. */
static inline int shca_cm_fail(int e)
{
    if (e == 0)
        return 0;
    errno = e;
    return -1;
}

/* ---- address.c ---- */
int shca_cm_address_read(const struct sockaddr *a, struct shca_cm_address *out);
void shca_cm_address_write(struct sockaddr_storage *out, int family, uint32_t ip, uint16_t port);
/* The fabric port with an address; 0: none. Then: whether it is an address of softhca's network. */
uint32_t shca_cm_address_route(uint32_t ip);
bool shca_cm_address_near(uint32_t ip);
/* Called if no peer is found; prints one line, once, for a user who expected another host. */
void shca_cm_report_far(void);
/* The path to the other end of a connection. */
void shca_cm_address_path(uint32_t from, uint32_t to, const union ibv_gid *gid,
                          struct ibv_ah_attr *out);
uint32_t shca_cm_address_gid_index(uint32_t port);
/* Whether a port's cable is out, or the port down. */
bool shca_cm_address_down(uint32_t port);

/* ---- agent.c ---- */
/* Starts the thread, once; it calls both with the lock held. */
int shca_cm_agent_start(void (*ready)(struct shca_cm_socket *s), uint64_t (*timers)(uint64_t now));
int shca_cm_agent_watch(struct shca_cm_socket *s);
void shca_cm_agent_ignore(struct shca_cm_socket *s);
void shca_cm_agent_wake(void);
void shca_cm_agent_inherited(void);

/* ---- channel.c ---- */
void shca_cm_event_push(struct shca_cm_event *e);
/* Waits as the descriptor's flags say; NULL with errno. */
struct shca_cm_event *shca_cm_channel_take(struct shca_cm_channel *ch);
/* Takes the unread events of an identifier out of its channel: a list. */
struct shca_cm_event *shca_cm_channel_strip(struct shca_cm_channel *ch, struct shca_cm *id);
void shca_cm_event_post(struct shca_cm *id, enum rdma_cm_event_type type, int status);

/* ---- wire.c ---- */
/* Claims a port number of an address; 0 or errno. */
int shca_cm_wire_claim(struct shca_cm_socket *s, bool datagram, uint32_t ip, uint16_t port);
int shca_cm_wire_listen(struct shca_cm_socket *s);
int shca_cm_wire_connect(struct shca_cm_socket *s, bool datagram, uint32_t ip, uint16_t port);
int shca_cm_wire_accept(struct shca_cm_socket *listener, struct shca_cm_socket *out);
bool shca_cm_wire_send(struct shca_cm_socket *s, const struct shca_cm_message *m);
/* 1: a message; 0: no message now; -1: the other end is gone. */
int shca_cm_wire_receive(struct shca_cm_socket *s, struct shca_cm_message *m);
bool shca_cm_wire_gone(const struct shca_cm_socket *s); /* the other end has closed */
void shca_cm_wire_close(struct shca_cm_socket *s);

/* ---- device.c ---- */
struct ibv_context *shca_cm_device_context(uint32_t port);
struct ibv_pd *shca_cm_device_pd(uint32_t port);
void shca_cm_device_inherited(void);

/* ---- host.c ---- */
/* Whether the host has devices that rdma_cm serves. */
bool shca_cm_host_usable(void);
int shca_cm_host_channel(struct shca_cm_channel *ch);
void shca_cm_host_channel_end(struct shca_cm_channel *ch);
int shca_cm_host_make(struct shca_cm *id);
void shca_cm_host_end(struct shca_cm *id);
int shca_cm_host_bind(struct shca_cm *id, struct sockaddr *addr);
int shca_cm_host_listen(struct shca_cm *id, int backlog);
int shca_cm_host_resolve(struct shca_cm *id, struct sockaddr *src, struct sockaddr *dst, int ms);
int shca_cm_host_migrate(struct shca_cm *id, struct rdma_event_channel *to);
/* An event of the host's part of a channel; NULL: no event now. */
struct shca_cm_event *shca_cm_host_take(struct shca_cm_channel *ch);
void shca_cm_host_ack(struct rdma_cm_event *e);
struct rdma_cm_id *shca_cm_host_of(struct shca_cm *id);
int shca_cm_host_done(struct shca_cm *id, int status);

/* The host's librdmacm calls its own functions by their names, which are ours: a call from inside
 * of one of its functions belongs to it. */
extern _Thread_local unsigned shca_cm_inside;
#define SHCA_CM_REAL(name) ((__typeof__(name) *)shca_cm_real(#name))
#define SHCA_CM_INSIDE(name, ...)                                                                  \
    do {                                                                                           \
        if (shca_cm_inside)                                                                        \
            return SHCA_CM_REAL(name)(__VA_ARGS__);                                                \
    } while (0)
#define SHCA_CM_INSIDE_VOID(name, ...)                                                             \
    do {                                                                                           \
        if (shca_cm_inside) {                                                                      \
            SHCA_CM_REAL(name)(__VA_ARGS__);                                                       \
            return;                                                                                \
        }                                                                                          \
    } while (0)
/* Forwards a call to the identifier behind, if this one belongs to the host. */
#define SHCA_CM_PASS(id, name, ...)                                                                \
    do {                                                                                           \
        if ((id)->state == SHCA_CM_HOST) {                                                         \
            int status_;                                                                           \
            shca_cm_inside++;                                                                      \
            status_ = SHCA_CM_REAL(name)(shca_cm_host_of(id), ##__VA_ARGS__);                      \
            shca_cm_inside--;                                                                      \
            return shca_cm_host_done(id, status_);                                                 \
        }                                                                                          \
    } while (0)

/* ---- id.c ---- */
/* Makes an identifier; without a channel it gets its own. NULL with errno. */
struct shca_cm *shca_cm_id_make(struct rdma_event_channel *ch, void *context,
                                enum rdma_port_space ps, enum ibv_qp_type type);

/* ---- object.c; with the lock held, but for bind ---- */
struct shca_cm *shca_cm_object_make(struct rdma_event_channel *ch, void *context,
                                    enum rdma_port_space ps, enum ibv_qp_type type);
void shca_cm_object_free(struct shca_cm *id);
struct shca_cm_event *shca_cm_event_make(struct shca_cm *id, enum rdma_cm_event_type type,
                                         int status);
/* The first one, or the one behind `after`. */
struct shca_cm *shca_cm_object_next(struct shca_cm *after);
/* Sets the device of an identifier; 0 or errno. */
int shca_cm_object_bind(struct shca_cm *id, uint32_t port);
void shca_cm_object_forget(void);

/* ---- exchange.c: the protocol; with the lock held ---- */
int shca_cm_exchange_start(void);
/* Makes a message; the caller completes it in id->out and then sends it. */
struct shca_cm_message *shca_cm_exchange_draft(struct shca_cm *id, enum shca_cm_kind kind);
void shca_cm_exchange_send(struct shca_cm *id);
/* Sets `give_up` to that many ns from now. */
void shca_cm_exchange_expect(struct shca_cm *id, uint64_t within);
/* Accepts requests that waited for space in the queue of their listener. */
void shca_cm_exchange_admit(struct shca_cm *listener);
/* Closes everything that an identifier has; also the requests of a listener. */
void shca_cm_exchange_leave(struct shca_cm *id);
void shca_cm_exchange_timewait(struct shca_cm *id);
void shca_cm_exchange_inherited(void);
/* Time limits for an end that does not answer, and for one whose program takes its time. */
#define SHCA_CM_ANSWER_NS  (UINT64_C(4096) << 20)
#define SHCA_CM_PROGRAM_NS (UINT64_C(4096) << 24)

/* ---- qp.c ---- */
/* Makes the queue pair ready to receive and send, with what the other end has sent. */
/* The queue pair that the connection manager connects: the identifier's; of iWARP also one that the
 * program only named. NULL: the program connects it. */
struct ibv_qp *shca_cm_qp_of(const struct shca_cm *id);
int shca_cm_qp_connect(struct shca_cm *id, uint8_t responder_resources, uint8_t initiator_depth);
void shca_cm_qp_break(struct shca_cm *id);

/* ---- event.c ---- */
/* With a channel of its own a call ends with the event that it causes. */
int shca_cm_event_await(struct shca_cm *id);
/* Waits until the program has acknowledged its events. With the lock held. */
void shca_cm_event_settle(struct shca_cm *id);

#endif
