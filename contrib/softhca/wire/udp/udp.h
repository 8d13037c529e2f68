/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The wire to other hosts: RoCE v2 packets in UDP datagrams. The end of each connection is a state
 * machine of contrib/roce; this room connects it with sockets on one side and with the objects of
 * verbs on the other. Locks, in order: shca_udp.lock (who receives) -> sq_lock of a queue pair,
 * which serializes its end point -> completion queue, responder lock, tx lock of a port. */
#ifndef SHCA_UDP_H
#define SHCA_UDP_H

#include <netinet/in.h>

#include "endpoint/endpoint.h"
#include "packet/icrc.h"
#include "wire/request.h"

enum {
    SHCA_UDP_BATCH = 32, /* packets of one system call */
    SHCA_UDP_PORTS = SHCA_MAX_HCA * SHCA_MAX_PRT + 1,
};

struct shca_udp_tx;

/* One address of a port. */
struct shca_udp_socket {
    int fd; /* -1: none */
    struct shca_inet at;
    uint32_t scope;    /* the interface of a link-local address */
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

/* What a queue pair on this wire has besides a qp; protected by its sq_lock. */
struct shca_udp {
    struct roce_endpoint *e;
    struct shca_inet peer; /* RC and UC: packets of others are dropped; port 0: any */
    struct shca_peer *self;
    struct shca_receive receive; /* taken, not yet complete */
    struct shca_inet from;       /* of the packet that is being handled */
    uint64_t repeated;           /* packets that the end point sent again and shca_udp counts */
    uint32_t posted;             /* the end point has the requests before it */
    bool locked; /* the responder lock is held from taking a datagram's receive to its end */
    bool broken; /* the responder failed, because of: */
    enum ibv_event_type why;
    bool sends_broken;      /* the requester failed */
    bool draining;          /* SQ_DRAINED is due when nothing is left */
    _Atomic uint64_t again; /* when its end point has to be called */
};

struct shca_udp_state {
    struct shca_lock lock; /* of receiving, and of removal from the table */
    _Atomic int users;     /* queue pairs on this wire */
    struct shca_qp *_Atomic qps[SHCA_QPS];
    _Atomic uint64_t next;  /* the earliest `again`, or earlier */
    _Atomic uint64_t until; /* the helper thread wakes by itself before then */
    _Atomic bool attentive; /* the helper thread waits for packets */
    _Atomic bool delivered; /* a completion was made since it was cleared */
    _Atomic uint64_t sent, received, strangers, damaged, lost, repeated;
};
extern struct shca_udp_state shca_udp;
extern struct shca_udp_port shca_udp_port[SHCA_UDP_PORTS];

/* ---- for verbs/ ---- */
/* Opens the sockets of an HCA's ports, once; 0 or errno. */
int shca_udp_open(int hca);
void shca_udp_inherited(void); /* after fork() */
/* The program will sleep until an event of a CQ. */
void shca_udp_attend(void);
/* Decides with the transition to RTR which wire a queue pair uses. False: its address is none, or
 * there is no memory. Then the transition itself. Both hold sq_lock. */
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
/* What the ICRC covers of the headers in front of a packet. */
struct roce_path shca_udp_path(const struct shca_inet *from, const struct shca_inet *to);

/* ---- network.c ---- */
/* 0, or errno after one line. */
int shca_udp_network(const char *text, struct shca_udp_network *n);

/* ---- qp.c ---- */
/* Gives a queue pair what it needs on this wire; false: no memory. */
bool shca_udp_equip(struct shca_qp *qp);
/* Sends what its end point has; takes note of what it reported. Holds sq_lock. */
void shca_udp_touch(struct shca_qp *qp, uint64_t now);
/* Calls the end points whose time has come. */
void shca_udp_timers(uint64_t now);

/* ---- rx.c ---- */
void shca_udp_progress(void);
uint64_t shca_udp_sleep(void);

/* ---- tx.c ---- */
struct shca_udp_tx *shca_udp_tx_open(void);
/* Sends what the end point of a queue pair has; true: there may be more now. Holds sq_lock. */
bool shca_udp_send(struct shca_qp *qp, uint64_t now);

#endif
