/* SPDX-License-Identifier: BSD-3-Clause
 *
 * All executions of a few threads under a weak memory model, for small pieces of lock-free code.
 * The real source is compiled with weak_hooks.h in front of it, which turns its atomic accesses,
 * its copies and its system calls into calls of this file. Threads are fibers; at every atomic
 * access any of them may go on (every order is tried), and a load may return any store that the
 * C11 rules of coherence and happens-before allow, not only the last one. So a missing release or
 * acquire shows as stale data or as a race on plain memory, and a store that is late shows too.
 *
 * Not covered: stores to one place that become visible in another order than they were executed in,
 * and loads that return what is stored later in time. Spurious failures of a weak
 * compare-and-swap are not tried. A state reached before is not searched again. */
#ifndef WEAK_MEMORY_H
#define WEAK_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum { weak_threads_max = 4 };

struct weak_program {
    void (*start)(void); /* makes the memory new; called before each execution */
    void (*thread[weak_threads_max])(void);
    void (*end)(void); /* all threads have returned; may be NULL */
    /* 0: all executions. Else the executions with at most this many deviations: a thread is
     * interrupted although it could continue, or a load returns a store other than the last. */
    unsigned bound;
};

/* Tries all executions. NULL: all are correct; else the error of the first wrong one. */
const char *weak_search(const struct weak_program *program);

/* Prints the last execution, step by step, on standard error. */
void weak_tell(void);

/* Statistics of the last search. */
struct weak_count {
    unsigned long executions, states;
};
extern struct weak_count weak_count;

/* ---- From start() ---- */

/* Plain memory that threads share: races are detected for each `unit` bytes of it. */
void weak_share(const void *memory, size_t size, size_t unit);

/* Atomics in there belong to one thread: no other order of accesses to them would matter. */
void weak_private(const void *memory, size_t size);

/* What to break, and where. */
enum weak_flaw {
    weak_no_release,   /* a store or exchange there releases nothing */
    weak_no_acquire,   /* a load there acquires nothing */
    weak_torn_exchange /* an exchange there is a load, compare-and-swap a comparison, and a store */
};
void weak_break(enum weak_flaw flaw, const void *memory, size_t size);
void weak_repair(void);

/* membarrier(2): as it is, refused by the kernel, or promising and doing nothing. */
enum weak_membarrier { weak_membarrier_works, weak_membarrier_refused, weak_membarrier_lies };
extern enum weak_membarrier weak_membarrier;

/* A device: a completion makes its file readable once, if it was armed. All threads see its steps
 * in one order. */
enum { weak_socket = 100, weak_device = 101 };
void weak_device_completes(void);
void weak_device_arm(void);
bool weak_device_take(void); /* a completion */
void weak_device_take_event(void);

/* ---- From threads ---- */

/* All that this thread has read so far is in `what` and in private memory: states that differ only
 * in their history are the same. */
void weak_here(uint64_t what);

/* No work was found: continues after a store that this thread has not seen. When no thread can
 * continue, that is an error. */
void weak_pause(void);

/* As weak_pause(), but if no thread can continue this one has done its part. */
void weak_idle(void);

/* This thread serves others: it is not an error if it sleeps for ever at the end. */
void weak_serves(void);

/* Reads, or writes, shared plain memory in place. */
void weak_look(const void *memory, size_t size);
void weak_touch(const void *memory, size_t size);

/* This execution is wrong. Does not return. */
_Noreturn void weak_fail(const char *why);

/* ---- From hooks ---- */

uint64_t weak_load(const volatile void *at, size_t size, int order);
void weak_store(volatile void *at, size_t size, uint64_t value, int order);
bool weak_cas(volatile void *at, size_t size, void *expected, uint64_t desired, int order);
enum weak_change { weak_set, weak_add, weak_or, weak_and };
uint64_t weak_exchange(volatile void *at, size_t size, enum weak_change change, uint64_t value,
                       int order);
void weak_copy(void *to, const void *from, size_t n);
long weak_syscall(long number, ...);

/* poll(2) without time limit, and the only datagram socket. */
struct pollfd;
int weak_poll(struct pollfd *files, unsigned long count);
struct sockaddr;
int weak_bind(const struct sockaddr *address, size_t size);
ssize_t weak_send(const struct sockaddr *to, size_t size);
ssize_t weak_receive(void *to);

#endif
