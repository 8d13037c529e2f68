/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How many client threads the library keeps something for: each has its own operations and sets of
 * implicit ones, and gives its place back when it ends. GASNET_MAX_THREADS is what a client was
 * allowed to have. Counted with an atomic counter. */
#ifndef TK_THREADS_H
#define TK_THREADS_H

/* No limit before this is called, which is at start-up. */
void tk_thread_limit(int limit);

/* From wherever a thread gets something of its own: counts it, once. One thread more than the limit
 * ends the program with a message. */
void tk_thread_enter(void);

/* The calling thread is none of the client's and does not count. */
void tk_thread_exempt(void);

#endif
