/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The end of the job, from every kind of beginning:
 *
 *   RUNNING
 *     |-- gasnet_exit(), exit(), return from main ----------------------------> LEAVING
 *     |-- exit notice from a peer: the client's SIGQUIT handler, if any, ------> LEAVING
 *     |     then the peer's code
 *     |-- gasnet_exit() or exit() in a signal handler: a thread of our own, --> LEAVING
 *     |     without the network and with `grace` for a deadline
 *     |-- SIGINT, SIGTERM, ...: SIGQUIT is raised; by default -----------------> ABORT
 *     '-- lost peer, failed start-up ------------------------------------------> ABORT
 *
 *   LEAVING: output is flushed, a fence through the launcher begun, the network served meanwhile
 *     |-- all came ------------------------------------------------------------> _exit(code)
 *     |-- not all within `grace`: exit notices to all peers, back to LEAVING
 *     '-- not all by the deadline ---------------------------------------------> ABORT
 *
 *   ABORT: the launcher is asked to end the job, then _exit(code)
 *
 * A watchdog (SIGALRM with the deadline and some seconds) stands behind every path that leaves
 * RUNNING. Deadline: GASNET_EXITTIMEOUT, or min(MAX, MIN + ranks * FACTOR). */
#ifndef TK_EXIT_H
#define TK_EXIT_H

#include <stdbool.h>

/* Installs signal handlers and the hook on exit(); registers the exit notice. After settings,
 * before clients run. */
void tk_exit_open(void);

/* Never returns. From any thread, from handlers and from signal handlers. */
_Noreturn void tk_exit(int code);

/* Something went wrong and has been told: ends the job with code 1. Also during start-up, however
 * far it came. */
_Noreturn void tk_exit_failed(void);

/* Start-up is over: exits may use the network. */
void tk_exit_network_ready(void);

#endif
