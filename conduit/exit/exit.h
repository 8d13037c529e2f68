/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The end of the job, from every kind of beginning:
 *
 *   RUNNING
 *     |-- gasnet_exit(), exit(), return from main ----------------------------> LEAVING
 *     |-- exit notice from a peer: the client's SIGQUIT handler, if any, ------> LEAVING
 *     |     then the peer's code, whatever that handler leaves with
 *     |-- gasnet_exit() or exit() in a signal handler: a thread of our own, --> LEAVING
 *     |     without the network and with three times `grace` for a deadline
 *     |-- SIGINT, SIGTERM, ...: SIGQUIT is raised; by default, or if the
 *     |     client's handler returns, with 128 and the signal's number -------> ABORT
 *     |-- a neighbour died and the launcher does not end us: a thread of ours -> ABORT
 *     '-- lost peer, failed start-up ------------------------------------------> ABORT
 *
 *   LEAVING: output is flushed, no handler of the client's runs any more, and the network is served
 *     |-- AGREE: a reduction over exit codes, the largest wins, in three steps: among neighbours by
 *     |     flags, among the first ranks of neighbourhoods by dissemination, among neighbours
 *     |     |-- it is over: all ranks have come and have one code ----------------> PART
 *     |     '-- not within `grace`: somebody has to tell those that did not come -> ELECT
 *     |-- ELECT, while AGREE goes on: rank 0 is asked who leads, and names the first who asked
 *     |     |-- we do: an exit request with our code to each other rank ---------> PART
 *     |     |-- another does, or a request has come to us ----------------------> PART
 *     |     '-- rank 0 is silent (dead, stopped, does not poll): the rank that is lowest among
 *     |           those that leave leads, found by waiting longer the higher the rank -> PART
 *     |-- PART, while AGREE and ELECT go on: a fence through the launcher
 *     |     |-- all came ------------------------------------------------------> _exit(code)
 *     |     '-- not all by the deadline: with 1 where the code is 0 -------------> ABORT
 *
 *   ABORT: the launcher is asked to end the job, then _exit(code)
 *
 * Whoever is told leaves too, so AGREE ends as soon as all have been: with the leader's code, or a
 * larger one. N ranks that leave send at most N log N small messages to agree, of which log N each,
 * and 4 N to elect and to tell. A rank that leaves in a signal handler takes part by flags and in
 * the fence. Only if it is the first of one of several neighbourhoods do the others not agree so;
 * the fence brings them the code of each then, and all keep the largest.
 *
 * A watchdog (SIGALRM with the deadline and 3 seconds; 3 seconds where a signal is what ends us)
 * stands behind every path that leaves RUNNING. Deadline: GASNET_EXITTIMEOUT, or min(MAX, MIN +
 * ranks * FACTOR). */
#ifndef TK_EXIT_H
#define TK_EXIT_H

#include <stdbool.h>

/* Installs signal handlers and the hook on exit(); registers the exit notice. After settings,
 * before clients run. */
void tk_exit_open(void);

/* Is GASNET_NO_CATCH_SIGNAL a list of signals? Prints what is wrong. */
enum tk_status tk_signals_check(void);

/* Never returns. From any thread, from handlers and from signal handlers. */
_Noreturn void tk_exit(int code);

/* Something went wrong and has been told: ends the job with code 1. Also during start-up, however
 * far it came. */
_Noreturn void tk_exit_failed(void);

/* Start-up is over: exits may use the network. */
void tk_exit_network_ready(void);

#endif
