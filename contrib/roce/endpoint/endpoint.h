/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The end of a connection in software: a queue pair's requester and responder as state machines.
 * No I/O, no clock, no threads and no memory of others: the caller passes packets and the time in,
 * and fetches packets; memory and receives are accessed through callbacks. The caller serializes
 * all calls for one end point; different ones are independent. doc: contrib/roce/README. */
#ifndef ROCE_ENDPOINT_H
#define ROCE_ENDPOINT_H

#include "packet/packet.h"

/* ns of any clock that does not go back. */
typedef uint64_t roce_time;
#define ROCE_NEVER UINT64_MAX

enum roce_status {
    ROCE_SUCCESS,
    ROCE_LOCAL_LENGTH,     /* IBV_WC_LOC_LEN_ERR */
    ROCE_LOCAL_OPERATION,  /* LOC_QP_OP_ERR */
    ROCE_LOCAL_PROTECTION, /* LOC_PROT_ERR */
    ROCE_FLUSHED,          /* WR_FLUSH_ERR */
    ROCE_BAD_RESPONSE,     /* BAD_RESP_ERR */
    ROCE_REMOTE_INVALID,   /* REM_INV_REQ_ERR */
    ROCE_REMOTE_ACCESS,    /* REM_ACCESS_ERR */
    ROCE_REMOTE_OPERATION, /* REM_OP_ERR */
    ROCE_RETRIES_EXCEEDED, /* RETRY_EXC_ERR */
    ROCE_RNR_EXCEEDED,     /* RNR_RETRY_EXC_ERR */
    ROCE_NOT_READY,        /* of receive_take only: no receive is posted */
};

enum roce_request_kind {
    ROCE_DO_SEND,
    ROCE_DO_WRITE,
    ROCE_DO_READ,
    ROCE_DO_COMPARE_SWAP,
    ROCE_DO_FETCH_ADD,
};

enum {
    ROCE_WITH_IMM = 1,
    ROCE_SOLICITED = 2,
    ROCE_FENCED = 4,          /* waits for the reads and atomics before it */
    ROCE_WITH_INVALIDATE = 8, /* a send; the key is in imm */
};

/* A work request. The end point keeps a copy until it completes. */
struct roce_request {
    uint64_t id;  /* the caller's */
    void *owner;  /* the caller's, such as the work request with its scatter list */
    uint8_t kind; /* enum roce_request_kind */
    uint8_t flags;
    uint32_t length; /* bytes of the caller's buffers; 8 for atomics */
    uint32_t imm;
    uint32_t rkey;
    uint64_t va;                /* remote */
    uint64_t swap_add, compare; /* atomics */
    uint32_t srqn;              /* XRC */
    uint32_t dest_qpn, qkey;    /* UD */
};

/* A message that arrived. */
struct roce_message {
    uint32_t length; /* of a send: bytes in the receive; of a write with immediate: written bytes */
    uint32_t imm;    /* or the key to invalidate */
    uint32_t src_qpn; /* UD */
    uint32_t srqn;    /* XRC */
    bool write, with_imm, with_invalidate, solicited;
};

/* A piece of this end's memory as a remote request names it. */
struct roce_reach {
    uint64_t va;
    uint64_t length;
    uint32_t rkey;
    uint32_t srqn;  /* XRC: the keys are of the domain of this queue */
    uint8_t access; /* ROCE_ACCESS_... */
};

enum {
    ROCE_ACCESS_WRITE = 1,
    ROCE_ACCESS_READ = 2,
    ROCE_ACCESS_ATOMIC = 4,
};

enum roce_event {
    ROCE_EVENT_ESTABLISHED,     /* the first request arrived (IBV_EVENT_COMM_EST) */
    ROCE_EVENT_REQUEST_ERROR,   /* a responder's error: QP_REQ_ERR; the end point has failed */
    ROCE_EVENT_ACCESS_ERROR,    /* QP_ACCESS_ERR; the end point has failed */
    ROCE_EVENT_FATAL,           /* QP_FATAL, an error of this side's own; has failed */
    ROCE_EVENT_REQUESTER_ERROR, /* a request completed with an error, the others are flushed: RC
                                   and XRC have failed, UC and UD only cannot send (SQE) */
};

/* The callbacks of an end point. context is that of roce_open. No callback may call an end point,
 * its own or another, except roce_post from `complete`. */
struct roce_calls {
    /* Copies bytes of a request's buffers: out of them (send, write), or into them (read, atomic).
     * Returns ROCE_SUCCESS, or the status with which the request fails. Retransmission fetches
     * again. */
    enum roce_status (*fetch)(void *context, const struct roce_request *r, uint32_t offset,
                              void *to, uint32_t length);
    enum roce_status (*store)(void *context, const struct roce_request *r, uint32_t offset,
                              const void *from, uint32_t length);
    /* Each request completes once, in order. */
    void (*complete)(void *context, const struct roce_request *r, enum roce_status status);

    /* Whether a remote request may use this memory. Called once for each request, with its whole
     * range (for empty ones only with XRC: whether the queue exists). ROCE_SUCCESS,
     * ROCE_REMOTE_ACCESS, ROCE_REMOTE_OPERATION, or ROCE_REMOTE_INVALID (XRC: no such queue). */
    enum roce_status (*check)(void *context, const struct roce_reach *reach);
    /* Then the bytes, packet by packet; checks again, because a region may be deregistered in
     * between. */
    enum roce_status (*write)(void *context, const struct roce_reach *reach, const void *from);
    enum roce_status (*read)(void *context, const struct roce_reach *reach, void *to);
    /* Executes an atomic on 8 bytes; va is aligned. Called once for each request. */
    enum roce_status (*atomic)(void *context, const struct roce_reach *reach, bool compare_swap,
                               uint64_t swap_add, uint64_t compare, uint64_t *original);

    /* Takes the next receive (of the queue pair or its shared queue) for a message; one at a time.
     * ROCE_SUCCESS, ROCE_NOT_READY, or ROCE_REMOTE_INVALID (XRC: no such queue). */
    enum roce_status (*receive_take)(void *context, uint32_t srqn);
    /* Fills it. ROCE_SUCCESS; ROCE_REMOTE_INVALID: does not fit (the caller completes the receive
     * with LOC_LEN_ERR); ROCE_REMOTE_OPERATION: its buffer is invalid (LOC_PROT_ERR). */
    enum roce_status (*receive_fill)(void *context, uint32_t offset, const void *from,
                                     uint32_t length);
    void (*receive_done)(void *context, const struct roce_message *m);

    void (*event)(void *context, enum roce_event event); /* may be NULL */
};

/* The attributes of a queue pair; verbs' names, verbs' units. */
struct roce_attributes {
    uint8_t transport; /* ROCE_RC, ROCE_UC, ROCE_UD, ROCE_XRC */
    bool initiator;    /* XRC: this half only sends requests, and drops incoming ones */
    uint32_t qpn, dest_qpn;
    uint32_t send_psn, receive_psn;
    uint32_t path_mtu; /* bytes: 256, 512, ..., 4096; UD: the longest message */
    uint16_t pkey;
    uint32_t qkey;         /* UD */
    uint8_t access;        /* ROCE_ACCESS_... that the queue pair allows */
    uint8_t timeout;       /* 4.096 us * 2^timeout, 0: for ever (packets are still repeated) */
    uint8_t retry_count;   /* 0..7 timeouts without progress */
    bool retry_for_ever;   /* retry_count 7 means for ever, as in Linux' rxe */
    uint8_t rnr_retry;     /* 7: for ever */
    uint8_t min_rnr_timer; /* code of the delay that this responder asks for */
    uint16_t max_rd_atomic, max_dest_rd_atomic; /* up to 128 */
    /* Of this implementation; 0: the default. */
    uint32_t requests;       /* depth of the send queue (64) */
    uint32_t window_packets; /* most packets in flight (64) */
    uint32_t window_first;   /* of these at first and after a pause (4) */
    uint32_t window_bytes;   /* most payload in flight (64 KiB), one packet at least */
    uint32_t ack_every;      /* packets after which an acknowledgement is requested (16) */
    uint32_t read_packets;   /* a long read is requested in pieces of so many packets (16) */
    uint64_t
        repeat_first; /* ns to the first repetition, before a round trip was measured (20 ms) */
    uint64_t repeat_least; /* ns; adaptive times do not go below (1 ms) */
};

/* Counts since the start. Drops are packets that changed nothing. */
struct roce_counters {
    uint64_t sent, received;           /* packets */
    uint64_t repeated;                 /* packets sent again */
    uint64_t timeouts, rnr, halvings;  /* of the requester; rnr: NAKs received */
    uint64_t naks_received, naks_sent; /* without RNR */
    uint64_t acks_sent, rnr_sent, congestion_sent;
    uint64_t duplicates, gaps; /* duplicate requests; requests that came too early */
    uint64_t stale;            /* responses that match no outstanding request */
    uint64_t drop_transport, drop_qpn, drop_pkey, drop_qkey, drop_state, drop_receive, drop_invalid;
};

struct roce_endpoint;

/* NULL: no memory. Both directions are off: packets are dropped, requests wait. Bad attributes
 * (unknown transport, invalid MTU, more than 128 reads) give NULL with errno EINVAL. */
struct roce_endpoint *roce_open(const struct roce_attributes *a, const struct roce_calls *calls,
                                void *context);
void roce_close(struct roce_endpoint *e); /* completes nothing */

/* The transitions of verbs. Attributes that later ones set are read from *a again: RTR takes
 * dest_qpn, receive_psn, path_mtu, access, min_rnr_timer, max_dest_rd_atomic, pkey, qkey; RTS
 * send_psn, timeout, retries, max_rd_atomic, windows, and as RTR access, min_rnr_timer, qkey.
 * transport, qpn and requests stay. */
void roce_ready_to_receive(struct roce_endpoint *e, const struct roce_attributes *a);
void roce_ready_to_send(struct roce_endpoint *e, const struct roce_attributes *a);
/* Changes in RTS: access, min_rnr_timer, qkey. */
void roce_adjust(struct roce_endpoint *e, const struct roce_attributes *a);
/* SQD: no new request is begun while paused; those begun are finished. */
void roce_pause(struct roce_endpoint *e, bool paused);
bool roce_drained(const struct roce_endpoint *e); /* nothing that was begun is left */
/* ERR: every request completes as flushed, in order; later posts too. A receive that was taken and
 * not done is the caller's. A last NAK is still sent if one is due. */
void roce_fail(struct roce_endpoint *e);
/* RESET: forgets all requests without completing them. */
void roce_reset(struct roce_endpoint *e);
/* UC and UD: from SQE back to RTS. Until then posts are flushed. */
void roce_resume(struct roce_endpoint *e);

/* Appends a request. Returns 0, or ENOMEM: the queue is full; EMSGSIZE: longer than 2 GiB (UD: than
 * the MTU); EINVAL: the transport does not support the operation. */
int roce_post(struct roce_endpoint *e, const struct roce_request *r);
uint32_t roce_posted(const struct roce_endpoint *e); /* not yet completed */

/* Hands in a packet for this queue pair, ICRC and source address already verified. congested: its
 * IP header had ECN 11 (congestion experienced), or it came through a queue that is nearly full;
 * the sender will be informed. */
void roce_input(struct roce_endpoint *e, roce_time now, const struct roce_packet *p,
                bool congested);

/* Whether the packet has the next number in sequence, or that of a request that waits for its
 * response. RC and XRC; a sender that does not know the numbers has to guess them. Changes
 * nothing. */
bool roce_expects(const struct roce_endpoint *e, const struct roce_packet *p);

/* Fetches the next packet to be sent now: writes it to out (ROCE_PACKET_MAX bytes) and returns its
 * bytes from the BTH to the padding, without ICRC; 0: nothing to send now. *r: the request that it
 * belongs to (UD: where to), NULL for responses. Valid until the next call. The last packet of a UD
 * or UC request completes it inside this call. */
size_t roce_output(struct roce_endpoint *e, roce_time now, uint8_t *out,
                   const struct roce_request **r);

/* The same for responses only, which need no space on a wire whose limit is for requests. */
size_t roce_answer_output(struct roce_endpoint *e, roce_time now, uint8_t *out);
/* The same for requests only, because peers wait for them; acknowledgements may follow. */
size_t roce_request_output(struct roce_endpoint *e, roce_time now, uint8_t *out,
                           const struct roce_request **r);
/* Whether only an acknowledgement is due, which later ones will include. */
bool roce_only_acknowledges(struct roce_endpoint *e, roce_time now);

/* The time at which roce_output must be called again even if nothing arrives and nothing is
 * posted. */
roce_time roce_deadline(const struct roce_endpoint *e);

/* Whether roce_output may have something now. For callers that keep a list of busy end points. */
bool roce_wants_output(struct roce_endpoint *e, roce_time now);

/* The wire learned that packets of this end were lost or delayed by congestion (as by a CNP). */
void roce_congestion(struct roce_endpoint *e, roce_time now);

const struct roce_counters *roce_counters(const struct roce_endpoint *e);
bool roce_failed(const struct roce_endpoint *e);

/* The timers of the specification: ns of an RNR timer code (table 45) and of an ack timeout code.
 */
uint64_t roce_rnr_ns(unsigned code);
uint64_t roce_timeout_ns(unsigned code);

#endif
