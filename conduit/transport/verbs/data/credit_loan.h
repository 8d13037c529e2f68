/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rules that divide the receive buffers of a shared queue among many connections: pure
 * counting, without a device. A credit is a promise to the peer: a buffer exists for its request.
 * Each connection has `base` credits that are never reclaimed, so every sender makes progress; the
 * rest of the queue is lent to peers that request more, and reclaimed for peers that have less.
 *
 * The lender (receiver) counts a credit as promised before it grants it and until it learns that
 * the credit was returned. The borrower (sender) counts it as its own only in between. So there are
 * never more credits than buffers, whatever messages are in flight. The caller's lock protects each
 * object. */
#ifndef TK_VERBS_CREDIT_LOAN_H
#define TK_VERBS_CREDIT_LOAN_H

#include <stdbool.h>

/* ---- how a queue is divided ---- */

struct tk_loan_plan {
    int conns;    /* connections that share the lent credits; further ones have only their base */
    int most;     /* credits of a connection, at most */
    int buffers;  /* of the queue, with that many connections */
    int replies;  /* kept for replies: as many requests as we may have in flight */
    int batch;    /* used buffers are posted again in groups of this many */
    int held;     /* handlers that may read a payload in its receive buffer at the same time */
    int notices;  /* for each connection: buffers for messages that take no credit */
    int bounded;  /* beyond `buffers`: for messages that take no credit because their protocol
                     bounds them (TK_BOUNDED), from all peers together */
    int capacity; /* what remains for requests and notices */
    int base;     /* credits of each connection that are never reclaimed */
};

struct tk_loan_input {
    int buffers; /* at most */
    int conns;
    int credits_pp, credits_total; /* more are of no use */
    int notices; /* for each connection: its exit notice, and failover's notices */
    int held;
    int bounded; /* as in the plan */
};

/* The minimum of buffers for `conns` connections. */
int tk_loan_buffers_min(const struct tk_loan_input *input);
/* The number of buffers with which no credit is ever reclaimed. */
int tk_loan_buffers_max(const struct tk_loan_input *input);
/* For at least the minimum of buffers. */
struct tk_loan_plan tk_loan_plan(const struct tk_loan_input *input);
/* The largest number of connections, at most input->conns, that leaves half of the buffers for
 * loans and replies; at least 1. */
int tk_loan_conns_fit(const struct tk_loan_input *input);

/* The stock of a queue with so many connections: as much as they can use, up to the plan; each
 * connection beyond the plan's number adds its base. And the buffers for bounded messages. */
struct tk_loan_stock {
    int buffers, capacity;
};
struct tk_loan_stock tk_loan_stock(const struct tk_loan_plan *plan, int conns);

/* ---- the receiver: one lender for each queue, an account for each connection ---- */

struct tk_lender {
    int capacity, promised; /* promised: base credits, lent ones, and notices */
    int lent;               /* those beyond the base */
    int base, most;         /* credits of a connection */
    int notices;            /* for each connection */
};

struct tk_account {
    int granted;        /* credits that the peer has, or that are in flight to it; 0: closed */
    bool is_reclaiming; /* a RECLAIM is in flight */
};

enum tk_reserve_result {
    TK_RESERVE_FULL, /* all is reserved until a connection is closed */
    TK_RESERVE_BUSY, /* too many are lent: reclaim some, and try again */
    TK_RESERVE_OK
};

/* Reserves the base of a new connection. */
enum tk_reserve_result tk_lender_reserve(struct tk_lender *lender, struct tk_account *account);
/* The connection is closed, and its peer sends nothing more. */
void tk_lender_release(struct tk_lender *lender, struct tk_account *account);
/* The peer requests `wanted` more credits: returns how many it gets now. */
int tk_lender_grant(struct tk_lender *lender, struct tk_account *account, int wanted);
/* The number of credits to reclaim from this connection: the first for a connection that has only
 * `least` credits, the second for one that must be opened. If it is not 0, the account counts as
 * reclaiming until tk_lender_reclaim_end(). */
int tk_lender_reclaim(const struct tk_lender *lender, struct tk_account *account, int least);
int tk_lender_reclaim_all(const struct tk_lender *lender, struct tk_account *account);
void tk_lender_reclaim_end(struct tk_account *account);
/* The peer has returned `count` credits. */
void tk_lender_returned(struct tk_lender *lender, struct tk_account *account, int count);

/* ---- the sender: one for each connection ---- */

struct tk_borrower {
    int base, most;
    int limit;          /* credits that are ours, used or not: base and what was lent */
    int owed;           /* to give back when they return from requests in flight */
    int given;          /* out of use, but still part of `limit`: the lender does not know yet */
    int backoff;        /* credits that must come back after a refusal before the next request */
    int patience;       /* how many of these must still come back */
    bool wants;         /* a message found no credit */
    bool is_requesting; /* a request is unanswered */
};

struct tk_loan_request {
    int want, give;
};

void tk_borrower_open(struct tk_borrower *b, int base, int most);

/* A message found no credit. */
static inline void tk_borrower_starves(struct tk_borrower *b)
{
    b->wants = b->limit < b->most;
}

/* Does it have credits to give back, now or when they return? */
static inline bool tk_borrower_owes(const struct tk_borrower *b)
{
    return b->owed || b->given;
}

/* Does a credit that comes back need tk_loan_step()? */
static inline bool tk_borrower_is_busy(const struct tk_borrower *b)
{
    return b->wants || tk_borrower_owes(b);
}

/* Takes credits that are owed out of use. Returns how many of the `credits` unused ones. */
int tk_borrower_collect(struct tk_borrower *b, int credits);
/* A message came: is a request for more credits due, or one that gives back collected credits? The
 * request takes one of `credits`. */
bool tk_borrower_requests(struct tk_borrower *b, int credits, struct tk_loan_request *request);
/* The request was posted. */
void tk_borrower_requested(struct tk_borrower *b, const struct tk_loan_request *request);
/* The request was answered: `count` credits were granted. */
void tk_borrower_granted(struct tk_borrower *b, int count);
/* The lender reclaims `count` credits, and `credits` are unused here: returns how many of these to
 * take out of use now. *give: the number that the reply gives back. */
int tk_borrower_reclaimed(struct tk_borrower *b, int count, int credits, int *give);

#endif
