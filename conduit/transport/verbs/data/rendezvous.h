/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages that are pulled: receive buffers of shared queues are small (GASNET_RBUF_SIZE), for a
 * connection takes the next buffer of its one queue, whatever the size of the message, and each of
 * thousands of peers needs two. Of a message that is larger, request or reply, only an offer is
 * sent: where in the sender's registered memory the whole of it lies, its own head included. The
 * receiver reads it into one of a few large buffers, runs its handler, and writes a word into the
 * sender's memory: the source may be used again.
 *
 *     sender                                     receiver
 *     copies the message into a source
 *     sends the offer, as any small message -->  gives the small buffer back, queues the offer
 *                                           <--  reads the source, when a large buffer is free
 *                                           <--  writes the word, then runs the handler
 *     finds the word when it needs a source
 *
 * What holds it together:
 *
 * - The offer of a request takes the request's credit, that of a reply the buffer that the
 * requester kept for it. All credits that come with the message are counted when it has been read,
 * so the reply's own is back no sooner than its source is free.
 * - A read and the word wait for nothing but our own send queue, and a large buffer is held by
 *   nothing but a read and a handler, neither of which waits for another process. So one large
 *   buffer is enough for any number of senders, requests and replies alike.
 * - A sender never waits for a source: then a handler that replies would wait for a peer to poll,
 *   whose handler may wait for us. There is one for each message that is not known to have been
 *   read, of which credits allow no more than for requests under way: more memory is registered.
 * - Each offer trades a free large buffer for the bounce buffer that has become its source, so
 *   there are as many bounce buffers as before for what only our own device is to complete.
 * - The word is a write and not a message: a message would need a buffer where it comes, and an
 *   answer to a reply has none. The sender looks for it in memory, never sleeps for it.
 * - Nobody reads in a handler's time: completed reads are found by polls, which run handlers.
 * - A connection is not closed for others while an end has something to pull or to be pulled over
 *   it (tk_conn.pulls). One that dies ends the job, as with any other transfer; where connections
 *   stand in for each other receive buffers are large, and nothing is pulled.
 *
 * Locks: that of the queue of offers, or of sources, is taken under a connection's; a pool's under
 * it. */
#ifndef TK_VERBS_RENDEZVOUS_H
#define TK_VERBS_RENDEZVOUS_H

#include "transport/verbs/data/rendezvous_queue.h"
#include "transport/verbs/verbs_private.h"

/* Instead of the message. */
struct tk_rndv_request {
    struct tk_message_head head; /* its kind is all there is to it */
    uint64_t address, word;      /* of the message, and what is written when it has been read */
    uint32_t key;                /* of both, for the port of the connection */
    uint32_t size;
};

/* All of it that a process has. */
struct tk_rndv_state {
    tk_lock_t lock; /* of what it reads: */
    struct tk_rndv_queue queue;
    struct tk_rndv_list unacked; /* handled, but there was no room to tell their senders */
    struct tk_rndv_list free;
    struct tk_rndv *newest;
    tk_lock_t source_lock; /* of what is read here, as far as is known, the oldest first: */
    struct tk_buffer *sources_first, *sources_last;
};

enum tk_status tk_rndv_open(void); /* before bounce buffers */
void tk_rndv_close(void);

/* ---- the sender: rendezvous_request.c ---- */

/* Fills in the offer of `message`, whose source will be the buffer of `tx`; that gets another one.
 * With the connection's lock. */
void tk_rndv_request(struct tk_tx *tx, const struct tk_outgoing *message,
                     struct tk_rndv_request *request);

/* Looks which messages have been read: connections that nothing is pulled over may be closed. */
void tk_rndv_reclaim(void);

/* ---- the receiver; without locks ---- */

/* An offer came, of `size` bytes; it is copied. */
void tk_rndv_request_came(struct tk_conn *conn, const void *request, size_t size);

/* Begins what there is room for. */
void tk_rndv_start(void);

/* A message that has been read, for its handler; NULL: none now. It is given back afterwards. */
struct tk_rndv *tk_rndv_take(void);
void tk_rndv_give(struct tk_rndv *rndv);

#endif
