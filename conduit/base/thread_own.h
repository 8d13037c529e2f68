/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Data of a client thread other than the words of hot paths. Those words are in static TLS: a
 * program has only a few hundred bytes of it for all libraries that it loads at run time, and one
 * such word makes all thread-local variables of a library static. So large or rarely used data is
 * in memory that a thread allocates at its first use and releases at its end, found by one word of
 * TLS. No lock. */
#ifndef TK_THREAD_OWN_H
#define TK_THREAD_OWN_H

#include <stddef.h>

enum tk_own {
    TK_OWN_LOCKS,       /* message/hsl.c */
    TK_OWN_PREPARED,    /* message/prepare.c */
    TK_OWN_PEER,        /* api/negotiated.c */
    TK_OWN_RAILS_ERROR, /* api/rails.c */
    TK_OWN_NOTICE,      /* vector/vector.c */
    TK_OWN_EXCHANGE,    /* collective/exchange.c */
    TK_OWN_TRACE,       /* trace/record.c */
    TK_OWN_TRACE_MASK,
    TK_OWN_RAILS,   /* stats/stats.h */
    TK_OWN_WAIT,    /* base/wait_record.c */
    TK_OWN_BACKOFF, /* progress/backoff.c */
    TK_OWN_GRANTED, /* transport/shm/ring_queue.c */
    tk_owns
};

/* Memory of this thread, aligned for any type, initially zero. Lack of memory ends the program with
 * a message. Each caller has a value of its own, and one size. Async-signal-safe. */
void *tk_thread_own(enum tk_own what, size_t size);

/* The same, or NULL if it was not requested yet. */
void *tk_thread_owned(enum tk_own what);

#endif
