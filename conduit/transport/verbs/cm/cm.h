/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pairs that librdmacm connects, as the rest of the transport sees them: which rails,
 * start-up, and connections that come back. They are made, reset and closed like all others;
 * librdmacm only connects them. */
#ifndef TK_VERBS_CM_H
#define TK_VERBS_CM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/status.h"

struct tk_conn;
struct tk_peer_info;
struct tk_tx;

/* ---- start-up and end, single-threaded ---- */

/* Marks the rails (tk_rail.by_cm) once they are chosen. */
enum tk_status tk_cm_choose(void);

/* Opens a listener for each such rail; the second adds their addresses to a peer info that has
 * space for them. */
enum tk_status tk_cm_open(void);
void tk_cm_publish(struct tk_peer_info *info);

/* Where the caller puts the secret that connects of this job carry, once the peer infos are known;
 * NULL: librdmacm connects no rail. */
enum { tk_cm_secret_size = 16 };
uint8_t *tk_cm_secret(void);

/* Call it before any other buffer of the connection is posted. */
enum tk_status tk_cm_expect_greeting(struct tk_conn *conn);

/* Call it when the peer infos are known: connects all queue pairs of such rails, and sends a
 * greeting over each. */
enum tk_status tk_cm_connect(void);

/* The alternative for connections on demand: only reads what peers published. */
enum tk_status tk_cm_serve(void);

void tk_cm_close(void);

/* For logs: how librdmacm connects the rail. */
void tk_cm_describe(uint32_t rail, char *text, size_t size);

/* The pause between two looks for events, in ns; tests shorten it. */
extern TK_HIDDEN uint64_t tk_cm_look_pause;

/* ---- connections on demand; with the lock of demands ---- */

/* Connects all queue pairs to a rank, which have their receive buffers and are published. If that
 * is in progress in this epoch, only asks the peer again, provided that this rank wants the
 * connection (is_wanted). */
void tk_cm_pair_open(const struct tk_conn *conns, uint32_t epoch, bool is_wanted);
void tk_cm_pair_close(const struct tk_conn *conns);

enum tk_cm_outcome {
    TK_CM_CONNECTING,
    TK_CM_CONNECTED,
    TK_CM_BROKEN, /* the network failed: retry with other queue pairs */
    TK_CM_REFUSED /* the peer refused; the cause was logged */
};
/* Over iWARP: exchanges as many first messages as is possible now. */
void tk_cm_pair_greet(const struct tk_conn *conns);
enum tk_cm_outcome tk_cm_pair_outcome(const struct tk_conn *conns);

/* Finds a rank that wants to be connected, and the epoch. Start with *next == 0; false: no more. A
 * rank is reported again until its connections are open. */
struct tk_cm_came {
    uint32_t rank, epoch;
    bool is_there;
};
bool tk_cm_came(uint32_t *next, struct tk_cm_came *came);

/* The number of receive buffers for greetings, besides those for later messages. */
int tk_cm_first_buffers(const struct tk_conn *conn);

/* Call these two without the lock of the ends. tk_cm_is_greeting(): is the connection held, so that
 * only greetings are sent over it? If a greeting fails, librdmacm reports the end of the
 * connection. */
bool tk_cm_is_greeting(const struct tk_tx *tx);
void tk_cm_greeting_came(const struct tk_conn *conn);

/* All peers are connected: stops listening. */
void tk_cm_serve_no_more(void);

/* Credits that the rank always grants each peer. */
int tk_cm_credits_of(uint32_t rank);

bool tk_cm_has_heard(void);        /* a message of any rank of this job came */
bool tk_cm_is_quiet(uint64_t now); /* nothing has come, and no look is due; no lock */
int tk_cm_file(void);              /* a file that becomes readable with an event; -1: none */

/* ---- connections that come back; with the lock of moves ---- */

/* Prepares to connect: the queue pair is in INIT again, for this incarnation. */
void tk_cm_reset(struct tk_conn *conn, uint32_t epoch);

/* Begins to connect: the other end is open in the same incarnation, or is tried without knowing.
 * Starts the time limit. May be called again. */
void tk_cm_go(struct tk_conn *conn);

/* Reads events, refuses connects that are not for us and fails ends that take too long. Only reads
 * the clock if it was called a moment ago. */
void tk_cm_look(void);

bool tk_cm_is_going(const struct tk_conn *conn);
bool tk_cm_is_up(const struct tk_conn *conn);
bool tk_cm_has_failed(const struct tk_conn *conn); /* the cause was logged */

#endif
