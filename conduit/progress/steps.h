/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The part of progress.h that is calls alone and the same in all threading modes: what is polled
 * and done after polls, and waiting by steps. */
#ifndef TK_STEPS_H
#define TK_STEPS_H

#include <stdbool.h>

#include "base/wait_record.h"

struct tk_transport;

/* For checks: else see tk_in_handler (progress.h). */
bool tk_is_in_handler(void);

/* The transport that is polled, or several, whose list stays the caller's; set once at start-up. A
 * job of one has none. */
void tk_progress_use(const struct tk_transport *transport);
void tk_progress_use_all(const struct tk_transport *const *transports, unsigned count);

/* After that: ranks outnumber CPUs, so empty polls in a row give the CPU away. */
void tk_progress_crowded(void);

/* Work to be done after polls, outside of handlers (barriers, exit). It returns whether anything
 * came to its end that a thread may wait for: a waiter must not sleep then. Start-up only; few. */
void tk_progress_add(bool (*work)(void));

/* One turn of waiting for another process, the launcher's: polls, and sleeps at once if there was
 * nothing, since that process needs a CPU. *turn is zero at first. Ends by messages, a ring, an
 * answer of the launcher, or a time that is longest where neighbours are all there is. */
void tk_wait_asleep(unsigned *turn);

/* The same as a function to be passed to tk_bootstrap_fence(). */
void tk_poll_asleep(void);

/* How to wait. By load, until a client asks for another way: spin while there are CPUs for all
 * ranks of the host, else as TK_WAIT_SPINBLOCK. SPIN never sleeps, and gives the CPU away only when
 * ranks outnumber CPUs. */
enum tk_wait_mode { TK_WAIT_BY_LOAD, TK_WAIT_SPIN, TK_WAIT_BLOCK, TK_WAIT_SPINBLOCK };
void tk_wait_mode(enum tk_wait_mode mode);

/* The bell that neighbours ring; start-up only. NULL: there are none. */
struct tk_doorbell;
void tk_progress_bell(struct tk_doorbell *own);

/* Rings it, by any thread of this process: something has changed that a look finds. */
void tk_progress_ring(void);

/* For what neighbours publish in other ways than by messages (and then ring): is there anything
 * that polling or the work after it would find? Asked before each sleep, so that what was published
 * before the bell could ring is seen; must not send or wait. Start-up only; few. */
void tk_progress_look(bool (*look)(void));

/* One turn of waiting: a poll (in a handler: tk_reap_in_handler()), then the back-off that *empty,
 * zero at first, asks for. It may sleep for long: what is waited for comes by messages, by our own
 * operations, or with a ring (tk_neighbour_wake()). */
void tk_wait_step(unsigned *empty);

/* The same for callers that may wait for something else too, such as memory that others write. */
void tk_wait_step_silent(unsigned *empty);

/* The same for a wait that the record of waits is to name; tk_wait_over() ends the loop. */
void tk_wait_step_for(unsigned *empty, const struct tk_wait_why *why);

#endif
