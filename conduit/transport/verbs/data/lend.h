/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rules by which receive buffers of one shared queue are promised to many connections; pure
 * counting, without a device. A credit that a peer has is a promise: a buffer is there for its
 * request. Each connection has `base` credits that are never taken from it, so every sender can go
 * on; what is left of the queue is lent to those that ask for it, and called back for those that
 * have less.
 *
 * The lender (receiver) counts a credit as promised from before it is lent until word came that it
 * was given back, and the borrower (sender) counts it as its own only in between. So there are
 * never more credits than buffers, whatever is on its way. The caller's lock protects each
 * object. */
#ifndef TK_VERBS_LEND_H
#define TK_VERBS_LEND_H

#include <stdbool.h>

/* ---- how a queue is divided ---- */

struct tk_lend_plan {
    int conns;    /* that share what is lent; further ones have their base alone */
    int most;     /* credits of a connection */
    int buffers;  /* of the queue, with that many connections */
    int replies;  /* kept for answers to requests of ours: as many as may be in flight at once */
    int batch;    /* buffers that were used are posted again so many at a time */
    int held;     /* handlers that may read a payload where it came at once */
    int notices;  /* of each connection: buffers for messages that take no credit */
    int capacity; /* what is left to be promised: requests and notices */
    int base;     /* credits of each connection that are never called back */
};

struct tk_lend_wish {
    int buffers; /* at most */
    int conns;
    int credits_pp, credits_total; /* the most that makes sense */
    int notices; /* of each connection: its exit notice, and what failover has to report */
    int held;
};

/* The fewest buffers with which `conns` connections work. */
int tk_lend_buffers_min(const struct tk_lend_wish *wish);
/* With so many nothing ever needs to be called back. */
int tk_lend_buffers_max(const struct tk_lend_wish *wish);
/* Of no fewer buffers than the minimum. */
struct tk_lend_plan tk_lend_plan(const struct tk_lend_wish *wish);
/* As many of wish->conns as leave half of the buffers to be lent, and for replies; at least 1. */
int tk_lend_conns_fit(const struct tk_lend_wish *wish);

/* What the queue has when there are so many connections: as much as they can use, up to the plan,
 * and beyond its number of connections the base of each. */
struct tk_lend_stock {
    int buffers, capacity;
};
struct tk_lend_stock tk_lend_stock(const struct tk_lend_plan *plan, int conns);

/* ---- the receiver: one lender for each queue, an account for each connection ---- */

struct tk_lender {
    int capacity, promised; /* promised: base credits, lent ones, and notices */
    int lent;               /* of these: beyond the base */
    int base, most;         /* credits of a connection */
    int notices;            /* of a connection */
};

struct tk_account {
    int granted;      /* credits that the peer has, or that are on their way; 0: closed */
    bool is_recalled; /* some were asked back, and the answer has not come */
};

enum tk_lend_answer {
    TK_LEND_NO,   /* all is reserved: not before a connection is closed */
    TK_LEND_BUSY, /* not before something lent came back: call it back, and try again */
    TK_LEND_YES
};

/* Reserves buffers for a new connection. */
enum tk_lend_answer tk_lender_reserve(struct tk_lender *lender, struct tk_account *account);
/* The connection is closed, and its peer sends nothing more. */
void tk_lender_release(struct tk_lender *lender, struct tk_account *account);
/* The peer asks for `wanted` more: returns how many it gets now. */
int tk_lender_lend(struct tk_lender *lender, struct tk_account *account, int wanted);
/* How many to ask back from this one, for a connection that has `least` credits, or for one that is
 * to be opened; 0: none. The account counts as recalled then, until tk_lender_answered(). */
int tk_lender_recall(const struct tk_lender *lender, struct tk_account *account, int least);
int tk_lender_recall_all(const struct tk_lender *lender, struct tk_account *account);
void tk_lender_answered(struct tk_account *account);
/* Word came that the peer has given so many back. */
void tk_lender_returned(struct tk_lender *lender, struct tk_account *account, int count);

/* ---- the sender: one for each connection ---- */

struct tk_borrower {
    int base, most;
    int limit;      /* credits that are ours, used or not: base and what was lent */
    int owed;       /* to be given back as they come back from requests in flight */
    int given;      /* of `limit`: out of use, but the lender has no word of it yet */
    int backoff;    /* credits that come back before it is asked again, when there was nothing */
    int patience;   /* how many of these are left */
    bool wants;     /* a request found no credit */
    bool is_asking; /* not answered yet */
};

struct tk_ask {
    int want, give;
};

void tk_borrower_open(struct tk_borrower *b, int base, int most);

/* A request found no credit. */
static inline void tk_borrower_starves(struct tk_borrower *b)
{
    b->wants = b->limit < b->most;
}

/* Is there something to give back, now or when it comes back? */
static inline bool tk_borrower_owes(const struct tk_borrower *b)
{
    return b->owed || b->given;
}

/* Is there something to do when a credit came back? */
static inline bool tk_borrower_is_busy(const struct tk_borrower *b)
{
    return b->wants || tk_borrower_owes(b);
}

/* Of `credits` unused ones, how many are to be taken out of use now: they are owed. */
int tk_borrower_collect(struct tk_borrower *b, int credits);
/* A message came: is it time to ask for more, or to give back what was collected? Takes one of
 * `credits`, as any request. */
bool tk_borrower_asks(struct tk_borrower *b, int credits, struct tk_ask *ask);
/* That was posted. */
void tk_borrower_asked(struct tk_borrower *b, const struct tk_ask *ask);
/* Its answer came: so many more. */
void tk_borrower_granted(struct tk_borrower *b, int count);
/* The lender wants `count` back, and we have `credits` unused: returns how many of these are taken
 * out of use now. *give: what the answer gives back. */
int tk_borrower_recalled(struct tk_borrower *b, int count, int credits, int *give);

#endif
