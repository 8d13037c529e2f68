/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How a process that has nothing to do sleeps until a neighbour writes to its memory, and how the
 * neighbour finds out that it must be woken: one word in the sleeper's shared memory.
 *
 * The neighbour writes what it has to say, then looks at the word. The sleeper says in the word
 * that it sleeps, then looks once more at what there is to see. Either of them must see the other,
 * so between the two steps of each there has to be a full fence. A neighbour passes here with every
 * message and the sleeper seldom: the sleeper makes the neighbours' fences too, by membarrier(2).
 * Where the kernel refuses that, TK_BELL_FENCED stands in the word, and a neighbour that sees it
 * makes its own.
 *
 * A sleeper that also waits for files (the events of a device) can't wait on a futex: it waits by
 * poll(2) for those and for a datagram socket with an abstract name of its own, to which the
 * neighbour sends. Both kinds of sleepers are in one word, so there is one proof for both. No lock.
 */
#ifndef TK_DOORBELL_H
#define TK_DOORBELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/platform.h"

enum {
    TK_BELL_ASLEEP = 1, /* somebody sleeps, or is about to: take this away and wake all */
    TK_BELL_FENCED = 2, /* for ever: neighbours fence before they look */
    TK_BELL_POLLED = 4, /* one thread sleeps, or is about to, until its socket can be read: take
                           this away and send to it */
    TK_BELL_DEAF = 8,   /* for ever: a neighbour could not reach the socket */
    TK_BELL_RUNG = 16,  /* the bits from here on count: a thread that has seen ASLEEP and is not in
                           the kernel yet must not take another thread's ASLEEP for its own */
    TK_BELL_ANYBODY = TK_BELL_ASLEEP | TK_BELL_POLLED
};

/* In the sleeper's shared memory, zeroed; a line of its own, since neighbours read it with every
 * message and nothing else there may take it from them. */
struct tk_doorbell {
    _Alignas(TK_CACHE_LINE) _Atomic uint32_t word;
    uint64_t socket; /* what makes its name unique; written before POLLED is ever set */
};

/* While the process has one thread, which need not be: the kernel then registers it for membarrier
 * at once, and otherwise waits for a grace period of RCU, 10 to 50 ms. */
void tk_doorbell_prepare(void);

/* By the owner, before it is seen by others. */
void tk_doorbell_open(struct tk_doorbell *own);

/* By each neighbour, before it rings for the first time. */
void tk_doorbell_attach(struct tk_doorbell *bell);

/* The rare case: a thread sleeps, or there is no membarrier. */
void tk_doorbell_look(struct tk_doorbell *bell);

/* After anything is written that a sleeper waits for. An owner whose threads wait for each other's
 * local_event_seq rings its own bell. Thread-safe; async-signal-safe. */
static inline void tk_doorbell_ring(struct tk_doorbell *bell)
{
    atomic_signal_fence(memory_order_seq_cst); /* the sleeper's membarrier does the rest */
    uint32_t word = atomic_load_explicit(&bell->word, memory_order_relaxed);
    tk_if_unlikely(word & (TK_BELL_ANYBODY | TK_BELL_FENCED)) tk_doorbell_look(bell);
}

/* Sleeps until a neighbour rings, look(what) is true, a signal comes or `nsec` nanoseconds are over
 * (false then): whichever comes first. look() is called once, must not block or send, and must see
 * whatever a neighbour may have written. True promises nothing: look again. Any number of threads
 * of the owner. Costs some microseconds even when there is something: look and spin before. */
bool tk_doorbell_sleep(struct tk_doorbell *own, bool (*look)(void *what), void *what,
                       uint64_t nsec);

/* Makes the socket by which a sleeper that waits for files too is woken, if there is none yet. By
 * the owner. False: there can be none. */
bool tk_doorbell_open_socket(struct tk_doorbell *own);

/* Can neighbours reach it, as far as is known? If not, a sleeper must not count on being woken. */
bool tk_doorbell_has_socket(struct tk_doorbell *own);

/* As tk_doorbell_sleep(), and until one of `count` files can be read; files[0] is left for the
 * socket, and the events of the others are set. One thread of the owner at a time. */
struct pollfd;
bool tk_doorbell_sleep_on(struct tk_doorbell *own, bool (*look)(void *what), void *what,
                          struct pollfd *files, unsigned count, uint64_t nsec);

#endif
