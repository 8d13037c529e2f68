/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between the files of exit/ only. Calls go down this list and never back:
 *   exit -> signals, interrupted -> helper, bus -> leave, watch, signal_report -> agree, elect,
 *   summary, watchdog -> state (state.h) */
#ifndef TK_EXIT_PRIVATE_H
#define TK_EXIT_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "transport/neighbour.h"

/* ---- agree.c: a barrier of all ranks that ends with one code */

/* Before anything arrives. */
void tk_agree_open(void);

/* Once neighbours are mapped and peers connected; start-up only. */
void tk_agree_connect(void);

/* By the leaving thread. The code of this rank, 0 to 255. */
void tk_agree_begin(int code);

/* One step. True: all ranks have come, and tk_agree_code() is that of all. */
bool tk_agree_step(void);

/* The same without the network: with several neighbourhoods their first ranks never complete it. */
bool tk_agree_step_by_flags(void);

/* The largest code known so far. */
int tk_agree_code(void);

/* ---- elect.c: election of the rank that notifies the others, and the notices */

enum tk_role {
    TK_ROLE_OPEN,   /* undecided */
    TK_ROLE_LEADER, /* this rank notifies the others */
    TK_ROLE_MEMBER  /* another rank does, or has notified this one */
};

/* As for agree.c. */
void tk_elect_open(void);
void tk_elect_connect(void);

/* Rank 0 answers questions, as far as there is room. Any thread, not in handlers. */
void tk_elect_serve(void);

/* By the leaving thread, `waited` ns after its grace ended. */
enum tk_role tk_elect_step(uint64_t waited);

/* By the leader, repeatedly: sends each other rank one exit request, as far as there is room. */
void tk_elect_notify(int code);

/* The code of an exit request that has arrived; -1: none has. */
int tk_elect_requested(void);

/* ---- summary.c: GASNET_STATS_SUMMARY. When this rank has written its own; before the fence; after
 * it, if all came. */
void tk_summary_take(void);
void tk_summary_put(void);
void tk_summary_write(void);

/* ---- stack.c: the handler of the signal on which a thread shows its stack to the launcher. From
 * now on the launcher may send it. */
void tk_on_stack_signal(int number);
void tk_stack_offer(int number);

/* ---- leave.c */

/* As for agree.c. */
void tk_leave_open(void);
void tk_leave_connect(void);

/* tk_exit_add() */
void tk_leave_add(bool (*give_back)(bool all));

/* All of LEAVING. Returns when all ranks have come, with the code of all in the state, disconnected
 * from the launcher. */
void tk_leave(void);

/* By the same thread, from anywhere inside tk_leave(): the rest of it. */
void tk_leave_rest(void);

/* Where the code is 0 and a file that the user asked for could not be written: it becomes 74. */
void tk_leave_count_lost_output(void);

/* Only its begin: deadlines and the watchdog. And its rest without the network, for the helper:
 * ends the process. */
void tk_leave_begin(void);
_Noreturn void tk_leave_without_network(void);

/* ABORT */
_Noreturn void tk_abort_job(int code, const char *why);

/* ---- watchdog.c */

/* Seconds that an exit may take: GASNET_EXITTIMEOUT, or what follows from the number of ranks. */
double tk_exit_timeout(void);

/* From here on this process ends within the deadline and some seconds. Async-signal-safe. */
void tk_start_watchdog(void);

/* The same time again, from now. */
void tk_restart_watchdog(void);

/* Unblocks SIGALRM in this thread: the client's threads may all block it. */
void tk_take_alarm(void);

/* ---- signal_report.c. Async-signal-safe. */

/* The exit code that stands for a signal, and the name of a terminating one. */
int tk_code_of_signal(int number);
const char *tk_signal_name(int number);

/* By handlers of fatal signals: "pid 123" and then `what`, as an error; and then the end. */
void tk_report_death(const char *what);
void tk_die_of(int number);

/* ---- bus.c: SIGBUS for memory of the library. After all others are caught; not if the user wants
 * SIGBUS left alone. */
void tk_bus_open(void);

/* ---- signals.c */

/* Installs the handlers of fatal, terminating and quitting signals. After tk_state_open(). */
void tk_signals_open(void);

/* Runs the client's SIGQUIT handler if there is one, once. Not from a signal handler. */
void tk_signal_quit(void);

/* interrupted.c. True in a signal handler, also one of the client's: the interrupted code may hold
 * any lock, so an exit must be left to the helper. Async-signal-safe; takes microseconds. */
bool tk_is_interrupted(void);

/* ---- helper.c: the thread that ends the job for signal handlers and dead neighbours */

/* Without it, for want of resources, exits in signal handlers end this process alone. */
void tk_helper_open(void);

/* From when neighbours may be sent to; start-up only. */
void tk_helper_watch_neighbours(void);

/* The watchdog's time for what the helper does. After tk_start_watchdog(). Async-signal-safe. */
void tk_helper_watchdog(void);

/* By a thread that leaves in a signal handler: the helper leaves for it. False: no helper runs.
 * Async-signal-safe. */
bool tk_helper_hand_over(void);

/* Has the job ended by the helper because of signal `number`, and returns. Async-signal-safe. */
void tk_exit_by_signal(int code, int number);

/* ---- watch.c: the events that the helper waits for. TK_FAIL: has logged an error. */
enum tk_status tk_watch_open(void);

/* From when neighbours may be sent to; start-up only. */
void tk_watch_neighbours(void);

/* Ends the wait, for good. Async-signal-safe. */
void tk_watch_call(void);

/* Waits for that call, NULL then, or until a neighbour that did not leave in order is dead. */
struct tk_peer *tk_watch_wait(enum tk_rank_liveness *how);

#endif
