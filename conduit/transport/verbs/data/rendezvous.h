/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Rendezvous messages. Receive buffers of shared queues are small (GASNET_RBUF_SIZE): each message
 * takes the next buffer of the queue, whatever its size, and each of thousands of peers needs two.
 * A larger message, request or reply, is not sent: the sender sends a rendezvous request that says
 * where in its registered memory the message lies, head included. The receiver reads it into one of
 * a few large buffers, writes a word into the sender's memory, after which the source may be used
 * again, and runs the handler.
 *
 *     sender                                     receiver
 *     copies the message into a source
 *     sends the request, as a small message -->  frees the small buffer, queues the request
 *                                           <--  reads the source, when a large buffer is free
 *                                           <--  writes the word, then runs the handler
 *     finds the word when it needs a source
 *
 * Why it works:
 *
 * - A rendezvous request takes the credit of the AM request that it stands for; one for a reply
 *   uses the buffer that the requester kept for that reply. All credits that come with the message
 *   are counted when it has been read, so the reply's own credit returns only when its source is
 *   free.
 *
 * - A read and the word wait only for our own send queue. Only a read or a handler holds a large
 *   buffer, and neither waits for another process. So one large buffer is enough for any number of
 *   senders, requests and replies alike.
 *
 * - A sender never waits for a source: otherwise a handler that replies could wait for a peer to
 *   poll, while that peer's handler waits for us. Each message that may not have been read has a
 *   source of its own; credits bound their number. More memory is registered as needed.
 *
 * - A rendezvous request puts a free large buffer in place of the bounce buffer that becomes its
 *   source. So the number of bounce buffers for work that only our own device completes stays the
 *   same.
 *
 * - The word is a write and not a message: a message would need a receive buffer, and an answer to
 *   a reply has none. The sender looks for the word in memory when it needs a source, and never
 *   sleeps for it.
 *
 * - Completed reads are handled by polls, which run handlers, so never while a handler runs.
 *
 * - A connection is not closed for others while either end has a rendezvous message on it
 *   (tk_conn.rndv_count). If such a connection dies, the job ends, as with any other transfer; in a
 *   failover group receive buffers are large, and there is no rendezvous.
 *
 * Locks: the lock of the request queue, or that of sources, is taken under a connection's; a pool's
 * lock under it. */
#ifndef TK_VERBS_RENDEZVOUS_H
#define TK_VERBS_RENDEZVOUS_H

#include <stddef.h>
#include <stdint.h>

#include "base/counter.h"
#include "base/status.h"
#include "transport/transport.h"
#include "transport/verbs/data/rendezvous_queue.h"

struct tk_buffer;
struct tk_conn;
struct tk_tx;

/* Sent in place of the message. */
struct tk_rndv_request {
    struct tk_message_head head; /* only its kind is used */
    uint64_t address, word; /* of the message, and of the word to write when it has been read */
    uint32_t key;           /* of both, for the port of the connection */
    uint32_t size;
};

/* All rendezvous state of a process. */
struct tk_rndv_state {
    tk_lock_t lock; /* guards the state of the receiver: */
    struct tk_rndv_queue queue;
    struct tk_rndv_list unacked; /* read; no space yet to write the word */
    struct tk_rndv_list free;
    struct tk_rndv *newest;
    tk_lock_t source_lock; /* sources of our messages, oldest first: */
    struct tk_buffer *sources_first, *sources_last;
};

enum tk_status tk_rndv_open(void); /* before bounce buffers */
void tk_rndv_close(void);

/* ---- the sender: rendezvous_request.c ---- */

/* Fills in the request for `message`. The buffer of `tx` becomes its source, and `tx` gets another
 * buffer. With the connection's lock. */
void tk_rndv_request(struct tk_tx *tx, const struct tk_outgoing *message,
                     struct tk_rndv_request *request);

/* Frees the sources that have been read: connections without rendezvous messages may be closed. */
void tk_rndv_reclaim(void);

/* ---- the receiver; without locks ---- */

/* A rendezvous request of `size` bytes came; it is copied. */
void tk_rndv_request_came(struct tk_conn *conn, const void *request, size_t size);

/* Begins reads while there are buffers and space. */
void tk_rndv_start(void);

/* Returns a message that has been read. The caller runs its handler, then gives it back. NULL: none
 * now. */
struct tk_rndv *tk_rndv_take(void);
void tk_rndv_give(struct tk_rndv *rndv);

#endif
