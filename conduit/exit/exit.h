/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The end of the job, from every kind of beginning:
 *
 *   RUNNING --gasnet_exit / return from main / exit()--> LEAVING: flush output, then wait for the
 * others (a fence through |                                                 the launcher), serving
 * the network meanwhile |                                                      |-- all came
 * ------------------------------> good-bye, _exit(code) | |-- not all within `grace`: exit notices
 * to all peers |                                                      '-- not all by the deadline:
 * the launcher is asked to end |                                                          the job,
 * then _exit(code)
 *      |--exit notice from a peer--> SIGQUIT is raised; whatever its handler does, LEAVING with the
 * peer's code
 *      |--SIGINT, SIGTERM, ...-----> SIGQUIT is raised; its default is gasnet_exit(1)
 *      '--lost peer, fatal error---> the launcher is asked to end the job, then _exit(1)
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
