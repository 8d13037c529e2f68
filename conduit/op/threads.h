/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The number of client threads with resources in the library: each has its own operations and sets
 * of implicit ones, and is no longer counted when it ends. GASNET_MAX_THREADS limits it. An atomic
 * counter. */
#ifndef TK_THREADS_H
#define TK_THREADS_H

/* No limit before this is called, which is at start-up. */
void tk_thread_limit(int limit);

/* Called wherever a thread gets resources of its own: counts it, once. Exceeding the limit ends the
 * program with a message. */
void tk_thread_enter(void);

/* The calling thread does not belong to the client and is not counted. */
void tk_thread_exempt(void);

#endif
