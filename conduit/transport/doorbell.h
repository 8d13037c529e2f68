/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How an idle process sleeps until a neighbour writes to its memory, and how the neighbour finds
 * out that it must wake the process: one word in the sleeper's shared memory.
 *
 * The neighbour writes its message, then reads the word. The sleeper marks in the word that it
 * sleeps, then looks once more for messages. At least one must see the other, so each needs a full
 * fence between its two steps. A neighbour takes its two steps with every message, the sleeper
 * seldom. So the sleeper executes the neighbours' fences too, by membarrier(2). Where the kernel
 * refuses that, the sleeper sets TK_BELL_FENCED in the word, and a neighbour that sees it makes its
 * own fence.
 *
 * A sleeper that also waits for files (the events of a device) can't wait on a futex. It waits by
 * poll(2) for the files and for a datagram socket with an abstract name of its own, to which the
 * neighbour sends. Both kinds of sleepers use one word, so one proof covers both. No lock. */
#ifndef TK_DOORBELL_H
#define TK_DOORBELL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/bits.h"
#include "base/platform.h"

enum {
    TK_BELL_ASLEEP = 1, /* a thread sleeps, or is about to: clear this and wake all */
    TK_BELL_FENCED = 2, /* never cleared: neighbours fence before they look */
    TK_BELL_POLLED = 4, /* one thread sleeps, or is about to, until its socket is readable: clear
                           this and send to the socket */
    TK_BELL_DEAF = 8,   /* never cleared: a neighbour could not reach the socket */
    TK_BELL_RUNG = 16,  /* the bits from here on count: a thread that has seen ASLEEP and is not in
                           the kernel yet must not mistake another thread's ASLEEP for its own */
    TK_BELL_ANYBODY = TK_BELL_ASLEEP | TK_BELL_POLLED
};

/* In the sleeper's shared memory, zeroed. A cache line of its own: neighbours read it with every
 * message, and writes to other data must not evict it from their caches. */
struct tk_doorbell {
    _Alignas(TK_CACHE_LINE) _Atomic uint32_t word;
    uint64_t socket; /* what makes its name unique; written before POLLED is ever set */
};

/* Call it while the process has one thread: the kernel then registers it for membarrier at once.
 * With several threads it waits for a grace period of RCU, 10 to 50 ms. */
void tk_doorbell_prepare(void);

/* By the owner, before other processes see it. */
void tk_doorbell_open(struct tk_doorbell *own);

/* By each neighbour, before it rings for the first time. */
void tk_doorbell_attach(struct tk_doorbell *bell);

/* Slow path: a thread sleeps, or there is no membarrier. */
void tk_doorbell_look(struct tk_doorbell *bell);

/* Call after writing anything that a sleeper waits for. An owner whose threads wait for each
 * other's local_event_seq rings its own bell. Thread-safe; async-signal-safe. */
static inline void tk_doorbell_ring(struct tk_doorbell *bell)
{
    atomic_signal_fence(memory_order_seq_cst); /* the sleeper's membarrier completes the fence */
    uint32_t word = atomic_load_explicit(&bell->word, memory_order_relaxed);
    tk_if_unlikely(word & (TK_BELL_ANYBODY | TK_BELL_FENCED)) tk_doorbell_look(bell);
}

/* Sleeps until a neighbour rings, look(what) is true, a signal comes or `nsec` nanoseconds are over
 * (then returns false). look() is called once, must not block or send, and must see whatever a
 * neighbour may have written. True guarantees nothing: look again. Any number of threads of the
 * owner may sleep. It costs some microseconds even if a message is already there: look and spin
 * first. */
bool tk_doorbell_sleep(struct tk_doorbell *own, bool (*look)(void *what), void *what,
                       uint64_t nsec);

/* Makes the socket that wakes a sleeper in poll(), unless it exists. Called by the owner. False: it
 * can't be made. */
bool tk_doorbell_open_socket(struct tk_doorbell *own);

/* Can neighbours reach the socket, as far as is known? If not, a sleeper must not rely on being
 * woken. */
bool tk_doorbell_has_socket(struct tk_doorbell *own);

/* As tk_doorbell_sleep(), and also until one of `count` files can be read; files[0] is left for the
 * socket, and the events of the others are set. One thread of the owner at a time. */
struct pollfd;
bool tk_doorbell_sleep_on(struct tk_doorbell *own, bool (*look)(void *what), void *what,
                          struct pollfd *files, unsigned count, uint64_t nsec);

#endif
