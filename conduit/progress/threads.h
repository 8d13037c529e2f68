/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads of the library that serve the network while the client computes: GASNET_RCV_THREAD runs
 * handlers of messages, GASNET_SND_THREAD completes what was sent. One of each for each device; in
 * a job whose ranks all share memory one that receives. Of PAR libraries only. */
#ifndef TK_PROGRESS_THREADS_H
#define TK_PROGRESS_THREADS_H

#include <stdbool.h>

/* As gex_ProgressThreadInfo_t has it. */
struct tk_progress_thread_info {
    const char *device;
    unsigned roles; /* enum tk_device_role */
    void *(*run)(void *);
    void *argument;
};

/* At the end of start-up: makes the list, as the settings ask for. Warns where they ask for what
 * this library does not have. */
void tk_progress_threads_open(void);

/* How many there are; the number-th. A client that has asked for it starts them, once each. */
unsigned tk_progress_threads_count(void);
struct tk_progress_thread_info tk_progress_thread(unsigned number);

/* Starts all of them. One that can't be started ends the job: the client counts on it. */
void tk_progress_threads_start(void);

/* Some thread of the library may run handlers. */
bool tk_progress_threads_receive(void);

/* The job ends: none of them begins with anything any more. Async-signal-safe. */
void tk_progress_threads_stop(void);

/* Is the calling thread one of them? */
bool tk_is_progress_thread(void);

/* At the end, if it was asked for: what each cost. */
void tk_progress_threads_report(void);

#endif
