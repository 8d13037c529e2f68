/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How two ranks connect by datagrams that may be lost, duplicated and late: a function of state and
 * event, without a device; tests search all sequences for two ranks. Owns nothing.
 *
 *     asks first    IDLE - ASKING (REQUEST) ------------ UP (CONFIRM)
 *     is asked      IDLE --------- ANSWERED (ACCEPT) ------ UP
 *
 * A queue pair that is not ready to receive drops packets, and the sender retries only after its
 * timeout, which is long. So each end sends over the connection only when it knows that the other
 * is ready: the asker knows by the ACCEPT, which a rank sends only when ready; the other knows by
 * the CONFIRM or, equivalently, by a message over the connection itself.
 *
 * Both may ask at once: then the lower rank's request counts, and the higher one answers it with
 * the queue pairs that it has made. The lower one ignores the other request and repeats its own
 * until it is answered. Each end repeats a message until it is answered; nothing else depends on
 * time. */
#ifndef TK_VERBS_HANDSHAKE_H
#define TK_VERBS_HANDSHAKE_H

#include <stdbool.h>

enum tk_handshake_state {
    TK_HANDSHAKE_IDLE,
    TK_HANDSHAKE_ASKING,   /* queue pairs exist, with receive buffers */
    TK_HANDSHAKE_ANSWERED, /* they are ready to receive and to send; perhaps not yet the other end's
                            */
    TK_HANDSHAKE_UP        /* messages may be sent */
};

enum tk_handshake_message {
    TK_HANDSHAKE_SILENCE,
    TK_HANDSHAKE_REQUEST,
    TK_HANDSHAKE_ACCEPT,
    TK_HANDSHAKE_CONFIRM,
    tk_handshake_messages
};

enum tk_handshake_event {
    TK_HANDSHAKE_WANTED, /* there is something to send */
    TK_HANDSHAKE_PROVED, /* a message came over the connection */
    TK_HANDSHAKE_TIMED,  /* the answer did not come in time */
    TK_HANDSHAKE_CAME_REQUEST,
    TK_HANDSHAKE_CAME_ACCEPT,
    TK_HANDSHAKE_CAME_CONFIRM
};

/* What to do, in this order. */
struct tk_handshake_step {
    bool opens;    /* make the queue pairs and post their receive buffers */
    bool connects; /* make them ready, by the numbers that came with the message */
    enum tk_handshake_message sends;
    enum tk_handshake_state next;
};

/* is_lower: our rank is the lower one of the two */
struct tk_handshake_step tk_handshake_next(enum tk_handshake_state state,
                                           enum tk_handshake_event event, bool is_lower);

/* The event that corresponds to a message's arrival. */
static inline enum tk_handshake_event tk_handshake_came(enum tk_handshake_message message)
{
    return (enum tk_handshake_event)(TK_HANDSHAKE_CAME_REQUEST + (int)message -
                                     TK_HANDSHAKE_REQUEST);
}

#endif
