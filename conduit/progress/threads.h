/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads of the library that serve the network while the client computes: GASNET_RCV_THREAD runs
 * handlers of messages, GASNET_SND_THREAD completes what was sent. One of each for each device; in
 * a job whose ranks all share memory only one that receives. PAR libraries only. */
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

/* At the end of start-up: makes the list from the settings. Warns if they request threads in a
 * library without them. */
void tk_progress_threads_open(void);

/* The number of threads; the thread with this number. A client that requested it starts them, once
 * each. */
unsigned tk_progress_threads_count(void);
struct tk_progress_thread_info tk_progress_thread(unsigned number);

/* Starts all of them. One that can't be started ends the job: the client counts on it. */
void tk_progress_threads_start(void);

/* Whether some thread of the library may run handlers. */
bool tk_progress_threads_receive(void);

/* The job ends: no thread begins anything new. Async-signal-safe. */
void tk_progress_threads_stop(void);

/* Whether the calling thread is one of them. */
bool tk_is_progress_thread(void);

/* At the end, if requested: logs the cost of each. */
void tk_progress_threads_report(void);

#endif
