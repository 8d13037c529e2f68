/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The part of progress.h that consists of calls only and is the same in all threading modes: what
 * is polled and done after polls, and waiting by steps. */
#ifndef TK_STEPS_H
#define TK_STEPS_H

#include <stdbool.h>

#include "base/wait_record.h"

struct tk_transport;

/* For checks: else see tk_in_handler (progress.h). */
bool tk_is_in_handler(void);

/* Sets the polled transport, or several, whose list belongs to the caller; once at start-up. A job
 * of one has none. */
void tk_progress_use(const struct tk_transport *transport);
void tk_progress_use_all(const struct tk_transport *const *transports, unsigned count);

/* After that: ranks outnumber CPUs, so a series of empty polls yields the CPU. */
void tk_progress_crowded(void);

/* Work to be done after polls, outside of handlers (barriers, exit). It returns whether anything
 * completed that a thread may wait for: then a waiter must not sleep. Start-up only; few. */
void tk_progress_add(bool (*work)(void));

/* One step of waiting for another process, the launcher's: polls, and sleeps at once if the poll
 * found nothing, since that process needs a CPU. *turn is zero at first. A message, a ring, an
 * answer of the launcher or a time-out ends the sleep; the time-out is longest in a job without a
 * network. */
void tk_wait_asleep(unsigned *turn);

/* The same as a function to be passed to tk_bootstrap_fence(). */
void tk_poll_asleep(void);

/* How to wait. By default it depends on load: spin while there are CPUs for all ranks of the host,
 * otherwise as TK_WAIT_SPINBLOCK. SPIN never sleeps, and yields only when ranks outnumber CPUs. */
enum tk_wait_mode { TK_WAIT_BY_LOAD, TK_WAIT_SPIN, TK_WAIT_BLOCK, TK_WAIT_SPINBLOCK };
void tk_wait_mode(enum tk_wait_mode mode);

/* Sets the bell that neighbours ring; start-up only. NULL: no neighbours. */
struct tk_doorbell;
void tk_progress_bell(struct tk_doorbell *own);

/* Rings it, by any thread of this process: something changed that a poll will find. */
void tk_progress_ring(void);

/* Registers a function for data that neighbours publish without messages (and then ring): it
 * returns whether polling, or the work after it, would find anything. Called before each sleep, so
 * that data published before the bell could ring is seen; must not send or wait. Start-up only;
 * few. */
void tk_progress_look(bool (*look)(void));

/* One step of waiting: a poll (in a handler: tk_reap_in_handler()), then the back-off for *empty,
 * zero at first. It may sleep for long, because the awaited event comes by a message, by our own
 * operations, or with a ring (tk_neighbour_wake()). */
void tk_wait_step(unsigned *empty);

/* The same for callers that may wait for something else too, such as memory that others write. */
void tk_wait_step_silent(unsigned *empty);

/* The same for a wait that the record of waits shows; call tk_wait_over() after the loop. */
void tk_wait_step_for(unsigned *empty, const struct tk_wait_why *why);

#endif
