/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files of the end point. Packets that were sent or are to be sent are numbered from
 * 0 with 64 bits (a "number"); the PSN is the start value plus the low bits of it. So a queue may
 * hold more than 2^24 packets. Owns the layout of an end point; its caller serializes. */
#ifndef ROCE_PRIVATE_H
#define ROCE_PRIVATE_H

#include <string.h>

#include "endpoint/endpoint.h"
#include "packet/psn.h"

/* A posted request. Amounts before it are counted, so that the amount between two packets is a
 * difference. */
struct roce_entry {
    struct roce_request r;
    uint64_t first;    /* number of its first packet */
    uint64_t packets;  /* a read: of its responses */
    uint64_t bytes;    /* payload of all requests before it */
    uint64_t requests; /* reads (their pieces) and atomics before it */
};

struct roce_queue {
    struct roce_entry *entry; /* ring */
    uint32_t mask, limit;
    uint32_t head, send, tail; /* oldest, being sent, end; they wrap */
    struct roce_entry end;     /* what the next one posted begins with */
    uint64_t una;              /* oldest number that is not acknowledged, in the head */
    uint64_t next;             /* to be sent, in `send` */
    uint64_t high;             /* end of what was ever sent */
    bool flushing;
};

struct roce_window {
    uint32_t packets, slow_start,
        partial;     /* in flight; threshold; acknowledged since the last + 1 */
    uint64_t halved; /* the window is not halved again before this number is acknowledged */
};

struct roce_timer {
    roce_time since;    /* of the last progress or repetition */
    roce_time progress; /* of the last sign of life */
    uint32_t tries;     /* repetitions since */
    uint32_t doubled;   /* the time is 2^this longer */
    uint64_t smooth, variance, repeat;
    bool timing; /* a round trip is being measured */
    uint64_t timed;
    roce_time timed_at;
    bool rnr_waiting;
    roce_time rnr_until;
    uint32_t rnr_tries;
};

struct roce_requester {
    struct roce_queue q;
    struct roce_window window;
    struct roce_timer timer;
    uint32_t unasked;       /* packets since the last one that asked for an acknowledgement */
    bool on, paused, stuck; /* stuck: SQE */
    uint64_t rewound;       /* first number of the last repetition; UINT64_MAX: none */
    uint64_t broken_at;     /* this number fails with `broken`; UINT64_MAX: none */
    enum roce_status broken;
    struct roce_request shown; /* copy of the request of the last packet */
};

/* A response that takes packets of its own: a read's, or an atomic's. */
struct roce_answer {
    uint32_t first, end, next; /* PSNs */
    uint32_t msn;
    bool atomic;
    uint64_t original;
    struct roce_reach reach;
};

struct roce_saved {
    uint32_t psn;
    bool valid;
    uint64_t original;
};

enum roce_reply {
    ROCE_REPLY_NONE,
    ROCE_REPLY_ACK,
    ROCE_REPLY_NAK, /* of the expected PSN; also RNR */
    ROCE_REPLY_FINAL,
};

struct roce_responder {
    bool on, established;
    uint32_t expected, msn;
    enum roce_reply reply;
    uint8_t syndrome; /* of a NAK */
    bool nak_sent;    /* since the last packet in order: silence */
    bool failed;      /* final: the answer to every further request */
    uint8_t final;
    /* The message that is arriving. */
    uint8_t message; /* enum roce_kind; ROCE_KIND_NONE: none */
    bool taken;      /* a receive */
    bool spoiled;    /* a receive was completed with an error */
    uint32_t offset;
    uint32_t total;
    struct roce_reach cursor; /* of a write: what is still to come */
    /* Answers to be sent, in order, and the atomics whose results may be asked for again. */
    struct roce_answer *answer;
    uint32_t mask, head, tail;
    struct roce_saved *saved;
    uint32_t saves, save_next;
    bool congestion_due;
    roce_time congestion_next;
};

struct roce_endpoint {
    struct roce_attributes a;
    struct roce_calls calls;
    void *context;
    bool failed;
    struct roce_requester tx;
    struct roce_responder rx;
    struct roce_counters counters;
};

enum {
    ROCE_READS_MAX = 128,
    ROCE_WINDOW_MAX = 1 << 15,
    ROCE_READ_LONGEST = 1 << 22, /* numbers; half of what can be ordered */
};

static inline bool roce_connected(const struct roce_endpoint *e)
{
    return e->a.transport == ROCE_RC || e->a.transport == ROCE_XRC;
}

/* The queue pair is in error: its responder sends only a final NAK. */
static inline void roce_silence(struct roce_endpoint *e)
{
    if (e->rx.failed)
        return;
    e->rx.head = e->rx.tail;
    e->rx.reply = ROCE_REPLY_NONE;
}

static inline bool roce_is_answered(const struct roce_request *r)
{
    return r->kind >= ROCE_DO_READ;
}

/* ---- queue.c ---- */
static inline struct roce_entry *roce_entry_at(struct roce_queue *q, uint32_t index)
{
    return index == q->tail ? &q->end : &q->entry[index & q->mask];
}
uint32_t roce_payload_at(const struct roce_endpoint *e, const struct roce_entry *r, uint64_t k);
uint64_t roce_bytes_at(const struct roce_endpoint *e, const struct roce_entry *r, uint64_t number);
/* Pieces up to this number; begun ones too (up = true), or only whole ones. */
uint64_t roce_pieces_at(const struct roce_endpoint *e, const struct roce_entry *r, uint64_t number,
                        bool up);
/* Everything before this number is acknowledged: completes. */
void roce_queue_advance(struct roce_endpoint *e, uint64_t to);
void roce_queue_rewind(struct roce_queue *q);
/* Moves the send cursor behind n packets. */
void roce_queue_sent(struct roce_queue *q, uint64_t n);
void roce_queue_flush(struct roce_endpoint *e, enum roce_status first);
/* Fails the oldest request with this status, and with it the end point (UC, UD: only its send
 * side). */
void roce_requester_fail(struct roce_endpoint *e, enum roce_status status);

/* ---- window.c ---- */
void roce_window_start(struct roce_endpoint *e);
void roce_window_rest(struct roce_endpoint *e);
void roce_window_acked(struct roce_endpoint *e, uint64_t packets);
void roce_window_halve(struct roce_endpoint *e);
void roce_window_collapse(struct roce_endpoint *e);
/* Whether there is space for a packet that takes n numbers and carries that many bytes. */
bool roce_window_open(struct roce_endpoint *e, uint64_t n, uint64_t bytes);

/* ---- timer.c ---- */
void roce_timer_start(struct roce_endpoint *e);
void roce_timer_sent(struct roce_endpoint *e, roce_time now, uint64_t number, bool asks);
void roce_timer_progress(struct roce_endpoint *e, roce_time now);
void roce_timer_alive(struct roce_endpoint *e, roce_time now);
roce_time roce_timer_deadline(const struct roce_endpoint *e);
/* The oldest packet timed out: repeats, or fails. */
void roce_timer_check(struct roce_endpoint *e, roce_time now);
/* The other end is not ready (RNR NAK). False: the retries are used up. */
bool roce_timer_rnr(struct roce_endpoint *e, roce_time now, unsigned code);

/* ---- requester.c ---- */
bool roce_requester_ready(struct roce_endpoint *e);
size_t roce_requester_output(struct roce_endpoint *e, roce_time now, uint8_t *out);

/* ---- response.c ---- */
void roce_response_input(struct roce_endpoint *e, roce_time now, const struct roce_packet *p);

/* ---- answer.c ---- */
bool roce_answer_room(const struct roce_responder *rx);
void roce_answer_add(struct roce_endpoint *e, const struct roce_answer *a);
/* Whether [first, end) will be sent anyway. */
bool roce_answer_pending(const struct roce_responder *rx, uint32_t first, uint32_t end);
void roce_answer_save(struct roce_responder *rx, uint32_t psn, uint64_t original);
const struct roce_saved *roce_answer_saved(const struct roce_responder *rx, uint32_t psn);
size_t roce_responder_output(struct roce_endpoint *e, roce_time now, uint8_t *out);
bool roce_responder_ready(const struct roce_endpoint *e);

/* ---- refuse.c ---- */
/* The responder gives up: final NAK at this PSN, event, everything flushed. */
void roce_responder_fail(struct roce_endpoint *e, uint8_t nak, uint32_t psn);

/* ---- execute.c ---- */
/* The result of executing a request packet that is in order. */
enum roce_outcome {
    ROCE_DONE,
    ROCE_DROPPED, /* as if it had been lost */
    ROCE_RNR,
    ROCE_REFUSED_INVALID,
    ROCE_REFUSED_ACCESS,
    ROCE_REFUSED_OPERATION,
};
enum roce_outcome roce_execute(struct roce_endpoint *e, const struct roce_packet *p);
/* Drops the partly received message; the next one uses the receive that it took. */
void roce_execute_abort(struct roce_endpoint *e);
/* The numbers that a read fills. */
uint32_t roce_read_numbers(const struct roce_endpoint *e, uint32_t length);

/* ---- responder.c ---- */
void roce_request_input(struct roce_endpoint *e, const struct roce_packet *p);

/* ---- datagram.c ---- */
void roce_unreliable_input(struct roce_endpoint *e, const struct roce_packet *p);
void roce_datagram_input(struct roce_endpoint *e, const struct roce_packet *p);

#endif
