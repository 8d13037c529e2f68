/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pairs that librdmacm connects, as the rest of the transport sees it: which rails, start-up,
 * and connections that come back. The queue pairs are made, reset and closed as all others are;
 * here they only find each other. */
#ifndef TK_VERBS_CM_H
#define TK_VERBS_CM_H

#include "transport/verbs/verbs_private.h"

/* ---- start-up and end, single-threaded ---- */

/* Marks the rails (tk_rail.by_cm) once they are chosen. */
enum tk_status tk_cm_choose(void);

/* A listener for each such rail, and what peers must know of them is published. */
enum tk_status tk_cm_open(void);

/* Before any other buffer of the connection is posted. */
enum tk_status tk_cm_expect_greeting(struct tk_conn *conn);

/* From the peers' infos on: connects all queue pairs of such rails, each of them greeted. */
enum tk_status tk_cm_connect(void);

/* Instead of that: ranks are connected on demand. What peers published is read. */
enum tk_status tk_cm_serve(void);

void tk_cm_close(void);

/* For people: how librdmacm connects the rail. */
void tk_cm_describe(uint32_t rail, char *text, size_t size);

/* How long events are not looked for after the last look, in ns; tests shorten it. */
extern TK_HIDDEN uint64_t tk_cm_look_pause;

/* ---- connections on demand; with the lock of demands ---- */

/* Connects all queue pairs to a rank, which have their receive buffers and are published; nothing
 * new if that is under way in this epoch. is_wanted: by us; the peer is asked again. */
void tk_cm_pair_open(const struct tk_conn *conns, uint32_t epoch, bool is_wanted);
void tk_cm_pair_close(const struct tk_conn *conns);

enum tk_cm_outcome {
    TK_CM_CONNECTING,
    TK_CM_CONNECTED,
    TK_CM_BROKEN, /* by the network: may be tried again with other queue pairs */
    TK_CM_REFUSED /* by the peer; the cause was logged */
};
/* Over iWARP: exchanges first messages, as far as that goes now. */
void tk_cm_pair_greet(const struct tk_conn *conns);
enum tk_cm_outcome tk_cm_pair_outcome(const struct tk_conn *conns);

/* A rank wants to be connected, in this epoch: begins with *next == 0, false: no further one. It is
 * reported again until its connections are open. */
struct tk_cm_came {
    uint32_t rank, epoch;
    bool is_there;
};
bool tk_cm_came(uint32_t *next, struct tk_cm_came *came);

/* Is each connection on demand greeted before it is used? */
static inline bool tk_cm_greets(void)
{
    return tk_verbs.has_iwarp && !tk_verbs.is_static;
}

/* Receive buffers for that, beside those for what comes later. */
int tk_cm_first_buffers(const struct tk_conn *conn);

/* These with any lock but the ends' own. The first: while a connection is held, nothing but a
 * greeting is sent; if it fails librdmacm reports the connection's end. */
bool tk_cm_is_greeting(const struct tk_tx *tx);
void tk_cm_greeting_came(const struct tk_conn *conn);

/* All peers are connected. */
void tk_cm_serve_no_more(void);

/* Credits that it grants each peer for good. */
int tk_cm_credits_of(uint32_t rank);

bool tk_cm_has_heard(void);        /* of any rank of this job */
bool tk_cm_is_quiet(uint64_t now); /* nothing has come, and it is not time to look; no lock */
int tk_cm_file(void);              /* may be slept on until something comes; -1: none */

/* ---- connections that come back; with the lock of moves ---- */

/* The queue pair is in INIT once more, for this incarnation. */
void tk_cm_reset(struct tk_conn *conn, uint32_t epoch);

/* The other end is open in the same incarnation, or is to be tried: from now on the time runs. May
 * be repeated. */
void tk_cm_go(struct tk_conn *conn);

/* Reads events, refuses what is not for us and ends what takes too long. Costs a look at the clock
 * if it was called a moment ago. */
void tk_cm_look(void);

bool tk_cm_is_going(const struct tk_conn *conn);
bool tk_cm_is_up(const struct tk_conn *conn);
bool tk_cm_has_failed(const struct tk_conn *conn); /* the cause was logged */

#endif
