/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A verbs device made of queues in memory, for tests of transport/verbs. Nothing moves by itself:
 * the test decides when a posted request is carried to the other side and when it is acknowledged,
 * so that it can try every order that a network may choose, and repeat one. Violations of the rules
 * of verbs are counted. Single-threaded. */
#ifndef FAKE_VERBS_H
#define FAKE_VERBS_H

#include <stdbool.h>
#include <stdint.h>

#include "transport/verbs/library.h" /* the fake has its names */

enum {
    fake_devices_max = 4,
    fake_ports_max = 2,
    fake_gids_max = 8,
    fake_pkeys_max = 4,
    fake_qps_max = 256
};

struct fake_port {
    struct ibv_port_attr attr;
    struct ibv_gid_entry gids[fake_gids_max]; /* attr.gid_tbl_len of them */
    uint16_t pkeys[fake_pkeys_max];           /* attr.pkey_tbl_len of them */
};

/* Calls that can be made to fail. */
enum fake_call {
    FAKE_OPEN_DEVICE,
    FAKE_QUERY_DEVICE,
    FAKE_QUERY_PORT,
    FAKE_ALLOC_PD,
    FAKE_CREATE_CHANNEL,
    FAKE_CREATE_CQ,
    FAKE_NOTIFY_CQ,
    FAKE_REG_MR,
    FAKE_CREATE_QP,
    FAKE_MODIFY_QP,
    FAKE_POST_SEND,
    FAKE_POST_RECV,
    FAKE_POLL_CQ,
    FAKE_CREATE_SRQ,
    fake_calls
};

struct fake {
    struct ibv_device devices[fake_devices_max];
    struct fake_port ports[fake_devices_max][fake_ports_max + 1]; /* from 1, as verbs counts */
    struct ibv_device_attr attr; /* of all devices; phys_port_cnt too */
    int device_count;
    uint32_t inline_max;     /* create_qp refuses more */
    uint32_t send_sge_max;   /* create_qp has no memory for longer lists; 0: any */
    uint32_t send_slots_max; /* nor for more requests times ranges; 0: any */

    /* After `allowed` more calls, this one fails with `error`, for good. */
    struct {
        int allowed, error;
    } failing[fake_calls];

    void (*before_create_qp)(void); /* may be NULL */
    bool is_prompt; /* a request is complete when posting returns, as on a software device */

    /* Objects that exist */
    int contexts, pds, channels, cqs, qps, mrs, srqs;

    /* Violations of the rules of verbs */
    unsigned rnr;             /* a message found no receive buffer, and waits for one */
    unsigned too_long;        /* ... or one that was too small */
    unsigned sq_overruns;     /* more requests posted than the queue holds */
    unsigned inline_overruns; /* more inline than the queue pair takes */
    unsigned rq_overruns;
    unsigned cq_overruns;
    unsigned too_early; /* requests sent over iWARP before the connecting side sent anything */
    unsigned bad_keys;  /* memory that the key does not cover, or not on this device */

    /* The next event of the first device that is open; 0: none. Given once. */
    enum ibv_event_type event;
    int event_port;
    struct ibv_qp *event_qp; /* not NULL: it is about this one instead, and of its device, */
    int event_late;          /* and comes after this many calls that returned no event */
    bool no_last_wqe;        /* queue pairs in ERR raise no event, as seen on Soft-RoCE */

    /* The last work request, as it was posted */
    struct ibv_send_wr last;
    struct ibv_sge last_sge[2];
    unsigned posted;     /* work requests posted so far */
    unsigned send_calls; /* calls that posted them */
};

extern struct fake fake;

/* One InfiniBand device "fake0" with one active port, LID 1, MTU 4096, and nothing that fails.
 * Discards all earlier state. */
void fake_reset(void);

/* A RoCE port instead: LID 0, Ethernet; add GIDs with fake_gid(). */
void fake_make_ethernet(struct fake_port *port);
void fake_gid(struct fake_port *port, enum ibv_gid_type type, const char *ipv6);

/* Sum of all violations: 0 for a client that keeps the rules. */
unsigned fake_sins(void);

/* Carries the oldest request that waits on this queue pair: data arrives, and a completion for the
 * receiver when it is a message. False when none waits. */
bool fake_carry(struct ibv_qp *qp);

/* Completes the oldest request that was carried. False when there is none. */
bool fake_ack(struct ibv_qp *qp);

/* Does both on all queue pairs until nothing moves. True if anything did. */
bool fake_settle(void);

/* The oldest request fails with `status`, all behind it are flushed, and so are receives. A request
 * that reaches a broken queue pair breaks the sender's, because no acknowledgement comes. */
void fake_break(struct ibv_qp *qp, enum ibv_wc_status status);
bool fake_is_broken(struct ibv_qp *qp);

/* A message from nowhere, as a faulty peer might send it. */
void fake_inject(struct ibv_qp *to, const void *bytes, uint32_t size);

/* What an iWARP device's kernel driver does to the queue pairs with these numbers; the first
 * accepts. `is_lazy`: as siw, it processes no incoming request before a second one is there. The
 * other function: what the driver does when either end is destroyed. */
void fake_join(uint32_t accepts, uint32_t connects, bool is_lazy);
void fake_part(uint32_t qp);

/* Receive buffers in the queue, slots of the send queue that are in use. */
int fake_receives(struct ibv_qp *qp);
int fake_sends(struct ibv_qp *qp);

/* Receive buffers in a shared queue. The device has shared queues only if the test sets
 * attr.max_srq and attr.max_srq_wr. */
int fake_srq_receives(struct ibv_srq *srq);

/* Attributes that the last modify_qp to each state gave. */
const struct ibv_qp_attr *fake_attr(struct ibv_qp *qp, enum ibv_qp_state state);
const struct ibv_qp_init_attr *fake_init_attr(struct ibv_qp *qp);

#endif
