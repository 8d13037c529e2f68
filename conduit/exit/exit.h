/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The end of the job. The states and all transitions between them (state.h implements them):
 *
 *   RUNNING
 *     |-- gasnet_exit(), exit(), return from main ----------------------------> LEAVING
 *     |-- exit notice from a peer: the client's SIGQUIT handler, if any, ------> LEAVING
 *     |     then the peer's code, whatever code that handler exits with
 *     |-- gasnet_exit() or exit() in a signal handler: the helper thread, --> LEAVING
 *     |     without the network, and with three times `grace` as its deadline
 *     |-- SIGINT, SIGTERM, ...: SIGQUIT is raised; by default, or if the
 *     |     client's handler returns, with 128 and the signal's number -------> ABORT
 *     |-- a neighbour died and the launcher does not end us: the helper ------> ABORT
 *     '-- lost peer, failed start-up ------------------------------------------> ABORT
 *
 *   LEAVING: output is flushed, client handlers no longer run, and the network is served
 *     |-- AGREE: a maximum over all exit codes: among neighbours by flags, among first ranks of
 *     |     neighbourhoods by dissemination, among neighbours again
 *     |     |-- complete: all ranks leave and have the same code ----------------> PART
 *     |     '-- not within `grace`: ranks that do not leave must be notified ----> ELECT
 *     |-- ELECT, while AGREE continues: ranks that leave ask rank 0, and the first to ask leads
 *     |     |-- this rank leads: an exit request with its code to each other ----> PART
 *     |     |-- another leads, or an exit request has arrived ------------------> PART
 *     |     '-- rank 0 is silent (dead, stopped, does not poll): the lowest rank that
 *     |           leaves leads: each waits longer, the higher its rank is -------> PART
 *     |-- PART, while AGREE and ELECT continue: a fence through the launcher
 *     |     |-- all ranks entered it ------------------------------------------> _exit(code)
 *     |     '-- not all by the deadline: with 1 if the code is 0 -------------> ABORT
 *
 *   ABORT: the launcher is asked to end the job, then _exit(code)
 *
 * A notified rank leaves too, so AGREE completes once all have been notified: with the leader's
 * code or a larger one. N leaving ranks send at most N log N small messages to agree, log N each,
 * and 4 N to elect and notify. Where connections are made on demand, leaders of neighbourhoods form
 * a tree: each sends 3 messages to agree, and passes a notice on to 3 others and its neighbours
 * (elect.c). A rank that leaves in a signal handler takes part by flags and in
 * the fence only. If it is the first of one of several neighbourhoods, AGREE cannot complete; the
 * fence then carries the code of each rank, and all take the largest.
 *
 * A watchdog (SIGALRM, 3 seconds after the deadline; after 3 seconds if a signal ends the process)
 * covers every path out of RUNNING. Deadline: GASNET_EXITTIMEOUT, or min(MAX, MIN +
 * ranks * FACTOR). */
#ifndef TK_EXIT_H
#define TK_EXIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Installs signal handlers and the hook on exit(); registers the exit notice. After settings,
 * before clients run. */
void tk_exit_open(void);

/* Never returns. From any thread, from handlers and from signal handlers. */
_Noreturn void tk_exit(int code);

/* Ends the job with code 1, after an error that has been logged. At any point of start-up too. */
_Noreturn void tk_exit_failed(void);

/* Bytes of a table by rank. A leader has a table of the ranks that it notified; rank 0 has another
 * table of the ranks that asked. */
static inline size_t tk_exit_table_bytes(size_t ranks)
{
    return ranks * sizeof(uint8_t);
}

/* Start-up is over: exits may use the network. */
void tk_exit_network_ready(void);

/* The leaving thread calls the function repeatedly while a process leaves with the network, until
 * it returns true: the function makes other ranks release what they hold for this process. `all`:
 * all ranks are leaving, so no client uses the library any more. If this takes too long, the
 * process ends without it. Not called in exits by signals. */
void tk_exit_add(bool (*give_back)(bool all));

#endif
