/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared by the files of progress: back-off of waiting threads (backoff.c), how they and the
 * threads of the library (threads.c) sleep (sleep.c), and the state of the polled transports that
 * this needs (poll.c). */
#ifndef TK_PROGRESS_PRIVATE_H
#define TK_PROGRESS_PRIVATE_H

#include <stdbool.h>

#include "base/bits.h"
#include "base/mode.h"
#include "base/wait_record.h"
#include "transport/device_events.h"

/* The kinds of events that may end a wait, for a thread about to sleep. */
enum tk_wake_source {
    TK_WAKE_BELL,   /* only events that ring our bell */
    TK_WAKE_SPACE,  /* also space in a neighbour's ring of messages, for which no bell rings */
    TK_WAKE_SILENT, /* also other events without a bell: memory that others write */
    TK_WAKE_REPLY,  /* in a handler: silent too, and arrived requests are not served now */
    TK_WAKE_DEVICE  /* with a reservation: silent too, and no message is served now */
};

/* After the *empty-th empty poll in a row. */
void tk_back_off(unsigned empty, enum tk_wake_source wake, const struct tk_wait_why *why);

/* Empty polls of this thread in a row, where ranks outnumber CPUs: after some of them polling
 * yields the CPU. The wait loops reset it and yield themselves. */
extern TK_HIDDEN TK_PER_THREAD unsigned tk_empty_polls;

/* Whether every event rings the bell; or rings it or is reported by a device (tk_sleep_use()). */
bool tk_all_rings(void);
bool tk_all_report(void);

/* ---- sleep.c */

/* The source of device events, and the function that checks whether they ring; NULL: none. Start-up
 * only, after the bell. */
void tk_sleep_use(const struct tk_device_events *reporting, bool (*rung_for)(bool requests_too));

/* From here on threads of the client may sleep, so each must wake others. Called before the first
 * of them sleeps. */
void tk_sleep_expect(void);

/* Sleeps on devices too, while neighbours can reach the socket by which they wake us then. */
bool tk_can_sleep_by_events(void);

/* The count of events by other threads; read before a condition is checked for the last time. */
int32_t tk_sleep_events_seen(void);

/* TK_SLEPT_NOT: there was already something to serve. */
enum tk_slept { TK_SLEPT_OUT, TK_SLEPT_WOKEN, TK_SLEPT_NOT };

/* Serves device events that arrived meanwhile and returns TK_SLEPT_WOKEN, or sleeps until something
 * wakes it, including an event of another thread after those `seen`; TK_SLEPT_OUT: the time was
 * over. by_clock: the time if a device does not report all events. In a handler devices are not
 * waited for. */
enum tk_slept tk_sleep_until(enum tk_wake_source wake, int32_t seen, uint64_t by_bell,
                             uint64_t by_clock);

/* The same for a thread of the library, which waits for devices in these roles (enum
 * tk_device_role) and, if it receives, for neighbours. Returns how long it slept. */
uint64_t tk_sleep_in_thread(uint32_t roles, uint64_t nsec, bool *found);

#endif
