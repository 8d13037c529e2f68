/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Incarnations of the connection of two ranks, where a rank may have fewer connections than peers:
 * the connection is opened (handshake.h), closed when other peers need the space more, and opened
 * again. A function of state and datagram, without a device; tests search all sequences for two
 * ranks. Owns nothing.
 *
 *     asks to close   UP - PARTING (PART) -------------------- CLOSING (OVER) - IDLE
 *     is asked        UP ------------------ AGREED (AGREE) ----------- CLOSING - IDLE
 *
 * The rank that asks has nothing in flight and sends nothing more, but may withdraw its question
 * until the other agrees. The other may be waiting by then, so an AGREE to a withdrawn question is
 * answered with CANCEL. The rank that agrees has nothing in flight either; the credits of both
 * prove that all their messages were handled. It sends nothing until OVER or CANCEL comes. So when
 * the first queue pair is closed the other end is silent. A message over the connection proves that
 * the other end sends again.
 *
 * Connections of two ranks are numbered: the epoch counts those that are closed. Each datagram
 * carries its sender's epoch. A datagram of a past epoch is answered with OVER, and an end that
 * sees a later epoch than its own knows that the other has closed its end. Questions to close are
 * numbered too, so that no answer is mistaken for the answer to a later one.
 *
 * A rank without space for a connection denies it (BUSY): the asker then closes what it made for
 * it, which frees space for others, and asks again later. A rank that waits for an answer never
 * delays its own answers to others, so ranks can't wait in a circle. */
#ifndef TK_VERBS_INCARNATION_H
#define TK_VERBS_INCARNATION_H

#include <stdint.h>

#include "transport/verbs/conn/handshake.h"

enum tk_incarnation_state {
    TK_INCARNATION_IDLE = TK_HANDSHAKE_IDLE,
    TK_INCARNATION_ASKING = TK_HANDSHAKE_ASKING,
    TK_INCARNATION_ANSWERED = TK_HANDSHAKE_ANSWERED,
    TK_INCARNATION_UP = TK_HANDSHAKE_UP,
    TK_INCARNATION_PARTING, /* we send nothing, and asked to close */
    TK_INCARNATION_AGREED,  /* we send nothing; the other end asked to close */
    TK_INCARNATION_CLOSING  /* closing this end's queue pairs; the epoch already counts it */
};

/* Kinds of datagrams beside those of enum tk_handshake_message. */
enum tk_incarnation_message {
    TK_INCARNATION_BUSY = tk_handshake_messages, /* denies a REQUEST */
    TK_INCARNATION_PART,
    TK_INCARNATION_AGREE,
    TK_INCARNATION_REFUSE,
    TK_INCARNATION_CANCEL,
    TK_INCARNATION_OVER,
    tk_incarnation_messages
};

/* The contents of a datagram. */
struct tk_incarnation_word {
    uint8_t what; /* enum tk_handshake_message or tk_incarnation_message */
    uint32_t epoch;
    uint32_t number;   /* of the question */
    int32_t out, owed; /* PART: the sender's credits in use, and our credits that it holds back */
};

struct tk_incarnation {
    uint8_t state; /* enum tk_incarnation_state */
    uint32_t epoch;
    uint32_t number; /* of the question, while parting or agreed */
};

enum tk_incarnation_event {
    TK_INCARNATION_WANTED =
        TK_HANDSHAKE_WANTED, /* there is something to send, and space to connect */
    TK_INCARNATION_PROVED = TK_HANDSHAKE_PROVED, /* a message came over the connection */
    TK_INCARNATION_TIMED = TK_HANDSHAKE_TIMED,
    TK_INCARNATION_USED,   /* this rank sends over the connection that was about to be closed */
    TK_INCARNATION_PARTED, /* nothing is in flight, and we stop sending: ask to close */
    TK_INCARNATION_CLOSED  /* the queue pairs are gone */
};

/* Conditions other than the state. */
struct tk_incarnation_facts {
    bool is_lower;  /* our rank is the lower one of the two */
    bool has_space; /* there is space for one more connection */
    bool agrees;    /* PART: nothing is in flight or wanted here, we stop sending, and the counts of
                       credits match */
    uint32_t next;  /* PARTED: an unused number for the question */
};

/* What to do, in this order. */
struct tk_incarnation_step {
    bool opens;    /* make the queue pairs and post their receive buffers */
    bool connects; /* make them ready, by the numbers that came with the datagram */
    bool closes;   /* the queue pairs, and report when that is done */
    bool thaws;    /* messages may be sent again */
    struct tk_incarnation_word sends; /* which datagram; TK_HANDSHAKE_SILENCE: none */
};

/* How long an answer is waited for until the datagram is first sent again, in the unit of `least`
 * and `longest`, the settings. A peer that waits for its CPU answers no sooner if it is asked
 * again, but then answers again too: `crowd` is how many times as long the peer waits for its turn
 * as one that is alone. */
static inline uint64_t tk_incarnation_patience(uint64_t least, uint64_t longest, unsigned crowd)
{
    return least * crowd <= longest ? least * crowd : least > longest ? least : longest;
}

struct tk_incarnation_step tk_incarnation_act(struct tk_incarnation *incarnation,
                                              enum tk_incarnation_event event,
                                              const struct tk_incarnation_facts *facts);
struct tk_incarnation_step tk_incarnation_came(struct tk_incarnation *incarnation,
                                               const struct tk_incarnation_word *word,
                                               const struct tk_incarnation_facts *facts);

#endif
