/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The wire to other hosts: RoCE v2 packets in UDP datagrams. The end of each connection is a state
 * machine of contrib/roce; this folder connects it with sockets on one side and with the objects of
 * verbs on the other. Locks, in order: shca_udp.lock (held by the receiving thread) -> sq_lock of a
 * queue pair, which serializes its end point -> completion queue, responder lock, tx lock of a
 * port. */
#ifndef SHCA_UDP_H
#define SHCA_UDP_H

#include <netinet/in.h>

#include "endpoint/endpoint.h"
#include "packet/icrc.h"
#include "wire/request.h"

enum {
    SHCA_UDP_BATCH = 32, /* datagrams of one system call */
    SHCA_UDP_PORTS = SHCA_MAX_HCA * SHCA_MAX_PRT + 1,
};

struct shca_udp_tx;

/* One address of a port. */
struct shca_udp_socket {
    int fd; /* -1: none */
    struct shca_inet at;
    uint32_t scope;    /* the interface of a link-local address */
    uint32_t flows;    /* consecutive receives that found packets; shca_udp.lock, like the next */
    int room;          /* size of the receive buffer, in the kernel's units; 0: unknown yet */
    _Atomic bool used; /* queue pairs may get packets from it */
};

/* A port's sockets, by fabric port. */
struct shca_udp_port {
    struct shca_udp_socket socket[SHCA_INET_KINDS];
    struct shca_udp_tx *tx;
};

/* A socket's name, as the kernel wants it. */
union shca_udp_name {
    struct sockaddr any;
    struct sockaddr_in ipv4;
    struct sockaddr_in6 ipv6;
};

/* The network that SOFTHCA_UDP names, as far as this host is on it. */
struct shca_udp_network {
    struct shca_inet at[SHCA_INET_KINDS]; /* mtu 0: no such address */
    uint32_t scope;
};

/* Where a packet goes, and by which socket. */
struct shca_udp_to {
    const struct shca_udp_socket *by;
    const union shca_udp_name *name;
    socklen_t length;
};

/* How long a packet is held back: until a time, or until a number of empty polls of the program. */
struct shca_udp_wait {
    uint64_t until;
    uint32_t polls; /* 0: not that */
};

struct shca_udp_trouble;

/* The ICRC after those headers that are equal in all packets of a length on one path. */
struct shca_udp_icrc {
    struct {
        uint32_t length, state; /* length 0: none */
    } of[2];
    unsigned next;
};

static inline bool shca_udp_icrc_find(const struct shca_udp_icrc *i, size_t length, uint32_t *state)
{
    bool first = i->of[0].length == length;

    *state = i->of[!first].state;
    return first || i->of[1].length == length;
}

static inline void shca_udp_icrc_keep(struct shca_udp_icrc *i, size_t length, uint32_t state)
{
    i->next = !i->next;
    i->of[i->next].length = (uint32_t)length;
    i->of[i->next].state = state;
}

/* The role in which the peer sends a packet. Cards may answer from another UDP port than they ask
 * from. */
enum shca_udp_source { SHCA_FROM_REQUESTER, SHCA_FROM_RESPONDER, SHCA_UDP_SOURCES };

/* The state of a queue pair on this wire in addition to its qp; protected by its sq_lock. */
struct shca_udp {
    struct roce_endpoint *e;
    struct shca_inet peer; /* RC and UC: packets of others are dropped */
    /* UDP ports that its packets come from, 0: not known yet. A softhca has one for all. */
    uint16_t source[SHCA_UDP_SOURCES];
    struct shca_udp_icrc icrc_in, icrc_out; /* of the path to that peer, and back */
    struct shca_peer *self;
    struct shca_receive receive; /* taken, not yet complete */
    uint32_t srqn;               /* XRC: of the queue that it was taken from */
    struct shca_inet from;       /* of the packet that is being handled */
    uint64_t repeated;           /* packets that the end point sent again and shca_udp counts */
    uint32_t posted;             /* the end point has the requests before it */
    uint64_t put_off;            /* when sending was deferred to the next poll, 0: it is not
                                  * deferred */
    uint32_t seen_runs;          /* calls of shca_udp_progress at the last post that was sent */
    uint32_t arrival_runs;       /* the same when a packet came */
    uint8_t habit;               /* how often the program answered without a poll */
    uint8_t posts_off;           /* posts that were put off */
    bool listed;                 /* by put_off.c */
    uint8_t prompt;              /* how many more sends are not deferred */
    bool locked; /* the responder lock is held from taking a datagram's receive to its end */
    bool broken; /* the responder failed, because of: */
    enum ibv_event_type why;
    bool sends_broken;      /* the requester failed */
    bool draining;          /* SQ_DRAINED is due when nothing is left */
    _Atomic uint64_t again; /* when its end point has to be called */
    /* its entry in the heap of timer.c, which protects them */
    _Atomic uint64_t key;
    uint32_t place; /* 0: none */
    /* bytes of the request whose packet is being made: up to its end, and in it */
    uint32_t moved, payload;
    /* a port with a limit: when its last packet has passed; it had another one waiting */
    uint64_t begun; /* it has had something to send since */
    uint64_t wire_until;
    bool waited;
    /* rules */
    bool dies;                        /* when the packets that it has are sent */
    uint64_t behind;                  /* no packet goes before that time */
    struct shca_udp_trouble *trouble; /* for each place of the send queue; NULL: no rule yet */
    uint32_t late;                    /* requests that are done and not yet complete */
    enum shca_fault_op arrived;       /* the packet that is being handled */
    bool arrived_silently;
    uint32_t arrived_psn, rnr_psn;
    uint64_t rnr_until;
};

/* Why a packet was dropped before its end point saw it; names in drops.c. */
enum shca_udp_drop {
    SHCA_DROP_SHORT,
    SHCA_DROP_OPCODE,
    SHCA_DROP_VERSION,
    SHCA_DROP_PAD,
    SHCA_DROP_PAYLOAD,
    SHCA_DROP_ICRC, /* the last of those that are damaged */
    SHCA_DROP_QUEUE,
    SHCA_DROP_ADDRESS,
    SHCA_DROP_PORT,
    SHCA_UDP_DROPS,
};

struct shca_udp_state {
    struct shca_lock lock; /* of receiving, and of removal from the table */
    _Atomic bool missed;   /* a thread that wanted to receive found the lock taken */
    _Atomic int users;     /* queue pairs on this wire */
    _Atomic uint32_t runs; /* calls of shca_udp_progress */
    _Atomic bool segments; /* the kernel cuts datagrams */
    struct shca_qp *_Atomic qps[SHCA_QPS];
    _Atomic uint64_t next;       /* the earliest `again`, or earlier */
    _Atomic uint64_t until;      /* the helper thread wakes by itself before then */
    _Atomic bool attentive;      /* the helper thread waits for packets */
    _Atomic bool delivered;      /* a completion was made since it was cleared */
    _Atomic int put_off;         /* queue pairs that have something for the next poll */
    _Atomic uint32_t held;       /* packets that wait on their way, */
    _Atomic uint32_t held_polls; /* and those of them that wait for polls */
    _Atomic uint64_t sent, received, lost, repeated, deadlines, drops[SHCA_UDP_DROPS];
    struct roce_counters gone; /* of end points that were closed; lock */
};
extern struct shca_udp_state shca_udp;
extern struct shca_udp_port shca_udp_port[SHCA_UDP_PORTS];

/* ---- for verbs/ ---- */
/* Opens the sockets of an HCA's ports, once; 0 or errno. */
int shca_udp_open(int hca);
void shca_udp_inherited(void); /* after fork() */
/* The program is about to sleep until an event of a CQ. */
void shca_udp_attend(void);
/* The first decides at the transition to RTR which wire a queue pair uses. False: its address is
 * invalid, or out of memory. The second makes the transition itself. Both hold sq_lock. */
bool shca_udp_select(struct shca_qp *qp, uint32_t from, uint32_t to, int mask);
void shca_udp_modified(struct shca_qp *qp, uint32_t from, uint32_t to);
void shca_udp_reset(struct shca_qp *qp); /* holds sq_lock */
void shca_udp_close(struct shca_qp *qp);

/* ---- calls.c ---- */
extern const struct roce_calls shca_udp_calls;
enum ibv_wc_status shca_udp_check(struct shca_qp *qp, const struct shca_op *op);

/* ---- datagram.c ---- */
/* The 40 bytes before the payload of a received datagram. */
void shca_udp_grh(const struct shca_qp *qp, uint32_t length, struct ibv_grh *g);
/* Sends a datagram to a group, through shared memory. */
void shca_udp_group(struct shca_qp *qp, const struct shca_op *op);

/* ---- explain.c ---- */
/* Takes what the kernel has to report about packets that were sent before; false: nothing. */
bool shca_udp_errors(const struct shca_udp_socket *s);
/* The kernel did not take a packet to this address. */
void shca_udp_refused(const struct shca_inet *to, int error);
/* A queue pair has repeated a request as often as it may: one line with the cause, if known. */
void shca_udp_explain(const struct shca_qp *qp);

/* ---- name.c ---- */
socklen_t shca_udp_name(const struct shca_inet *a, uint32_t scope, union shca_udp_name *name);
void shca_udp_named(const union shca_udp_name *name, struct shca_inet *a);
/* The part of a packet's headers that the ICRC covers. */
struct roce_path shca_udp_path(const struct shca_inet *from, const struct shca_inet *to);
/* Whether packets to this address may leave as segments of one datagram. */
bool shca_udp_segments(const struct shca_inet *to);

/* ---- network.c ---- */
/* 0, or errno after one line. */
int shca_udp_network(const char *text, struct shca_udp_network *n);

/* ---- drops.c ---- */
enum shca_udp_drop shca_udp_drop_of(enum roce_verdict v);
uint64_t shca_udp_damaged(void);
uint64_t shca_udp_strangers(void);
/* Writes the counters of dropped packets for SOFTHCA_STATS; returns the length, like snprintf. */
int shca_udp_report(char *out, size_t room);
/* An end point is closed; holds shca_udp.lock. */
void shca_udp_keep_counters(const struct roce_endpoint *e);
void shca_udp_drops_inherited(void); /* a child counts anew */

/* ---- early.c ---- */
/* Whether the data of this write is to be stored later. */
bool shca_udp_early(struct shca_qp *qp, const struct roce_reach *reach, const void *from);
void shca_udp_early_settle(int hca);       /* stores what waits at an HCA */
uint64_t shca_udp_early_run(uint64_t now); /* when the next one is due */
void shca_udp_early_inherited(void);
void shca_udp_early_end(void);

/* ---- fate.c ---- */
struct shca_fault_subject shca_udp_subject(const struct shca_qp *qp, enum shca_fault_op op);
enum shca_fault_op shca_udp_op(const struct roce_request *r); /* NULL: a response */
bool shca_udp_limited(const struct shca_qp *qp); /* whether its port has a limit (SOFTHCA_RATE) */
/* Whether its last packet has not passed the wire yet. */
bool shca_udp_wire_busy(const struct shca_qp *qp, uint64_t now);
/* Under rules or a limit: whether to send the packet now. If not it is lost, or delayed. */
bool shca_udp_goes(struct shca_qp *qp, const struct roce_request *r, const struct shca_udp_to *to,
                   const uint8_t *packet, size_t n, uint64_t now);

/* ---- faults.c ---- */
/* A request is begun: judges it, and changes what is done if it is to fail. */
void shca_udp_fault_request(struct shca_qp *qp, struct shca_wqe *w, struct roce_request *r);
bool shca_udp_provokes(struct shca_qp *qp, const struct roce_request *r);
/* Around the sending of one of its packets; true: this process ends when it is sent. */
void shca_udp_before(struct shca_qp *qp, const struct roce_request *r);
bool shca_udp_after(struct shca_qp *qp, const struct roce_request *r);
void shca_udp_stored(struct shca_qp *qp, const struct roce_request *r);
/* It is done: completes it, perhaps later. */
void shca_udp_complete(struct shca_qp *qp, uint32_t index, enum ibv_wc_status status);
void shca_udp_late_run(struct shca_qp *qp, uint64_t now);
uint64_t shca_udp_late_next(struct shca_qp *qp, uint64_t now);
/* A packet has arrived: whether its receiver pretends to have no receive. */
void shca_udp_arrives(struct shca_qp *qp, const struct roce_packet *p);
bool shca_udp_not_ready(struct shca_qp *qp);
void shca_udp_fault_reset(struct shca_qp *qp);

/* ---- held.c ---- */
/* Sends a packet later; false: there is no space. */
bool shca_udp_hold(const struct shca_qp *qp, const struct shca_udp_to *to, const uint8_t *packet,
                   size_t n, const struct shca_udp_wait *wait);
uint64_t shca_udp_let_go(uint64_t now); /* when the next one is due */
void shca_udp_held_inherited(void);
void shca_udp_held_end(void);

/* ---- put_off.c ---- */
/* Whether sending may wait for the next poll: of an acknowledgement after that many packets, or of
 * a post. Hold sq_lock, also for the next. */
bool shca_udp_put_off_answer(struct shca_qp *qp, unsigned packets, uint64_t now);
bool shca_udp_put_off_post(struct shca_qp *qp, uint64_t now);
void shca_udp_put_off_done(struct shca_qp *qp, uint64_t now); /* it is being sent */
void shca_udp_put_off_run(uint64_t now,
                          void (*touch)(struct shca_qp *qp,
                                        uint64_t now)); /* sends what was before now */
void shca_udp_put_off_end(struct shca_qp *qp);          /* it breaks or is destroyed: sends deferred
                                                         * answers */
void shca_udp_put_off_close(struct shca_qp *qp);
void shca_udp_put_off_inherited(void);

/* ---- qp.c ---- */
/* Gives a queue pair what it needs on this wire; false: no memory. */
bool shca_udp_equip(struct shca_qp *qp);
/* Sends what its end point has; takes note of what it reported. Holds sq_lock. */
void shca_udp_touch(struct shca_qp *qp, uint64_t now);
/* Calls the end points whose time has come. */
void shca_udp_timers(uint64_t now);

/* ---- source.c ---- */
/* Sets those UDP ports of the peer that are known from the beginning. */
void shca_udp_source_begin(struct shca_qp *qp);
/* Whether the packet comes from the port that the peer has for such packets, if it is known. */
bool shca_udp_source_fits(const struct shca_udp *u, uint8_t opcode, uint16_t port);
/* Called with a packet whose ICRC is right before its end point takes it: learns the peer's
 * port. */
void shca_udp_source_learn(struct shca_udp *u, const struct roce_packet *p, uint16_t port);
/* Whether all packets of the peer come from this port. */
static inline bool shca_udp_source_is(const struct shca_udp *u, uint16_t port)
{
    return port != 0 && u->source[SHCA_FROM_REQUESTER] == port &&
           u->source[SHCA_FROM_RESPONDER] == port;
}

/* ---- rx.c ---- */
void shca_udp_progress(void);

/* ---- attend.c ---- */
/* The program is expected to poll again soon, as before. */
bool shca_udp_polls(void);
/* After packets were taken. */
void shca_udp_watch_program(void);
uint64_t shca_udp_sleep(void);
void shca_udp_attend_inherited(void);

/* ---- timer.c ---- */
bool shca_udp_timer_open(struct shca_qp *qp); /* false: no memory */
void shca_udp_timer_close(struct shca_qp *qp);
/* When its end point is to be called again; holds sq_lock. */
void shca_udp_timer_set(struct shca_qp *qp, uint64_t when);
struct shca_qp *shca_udp_timer_take(uint64_t now); /* one whose time may have come, NULL: none */
uint64_t shca_udp_timer_next(void);
void shca_udp_timer_inherited(void);
void shca_udp_due(uint64_t when); /* something is to be done then */

/* ---- batch.c ---- */
struct shca_udp_tx *shca_udp_tx_open(void);
void shca_udp_tx_lock(struct shca_udp_tx *tx);
void shca_udp_tx_unlock(struct shca_udp_tx *tx);
/* Returns the place for the next packet; may send waiting packets for that. */
uint8_t *shca_udp_tx_room(struct shca_udp_tx *tx);
/* The packet was written there. segments: it may share a datagram with neighbours, see
 * shca_udp_segments(). */
void shca_udp_tx_add(struct shca_udp_tx *tx, const struct shca_udp_socket *by,
                     const struct shca_inet *to, size_t bytes, bool segments);
void shca_udp_tx_flush(struct shca_udp_tx *tx);

/* ---- tx.c ---- */
enum shca_udp_order { SHCA_UDP_ANSWERS_FIRST, SHCA_UDP_REQUESTS_FIRST, SHCA_UDP_ANSWERS_ONLY };
/* Sends what the end point of a queue pair has; true: there may be more now. Holds sq_lock. */
bool shca_udp_send(struct shca_qp *qp, enum shca_udp_order order, uint64_t now);

#endif
