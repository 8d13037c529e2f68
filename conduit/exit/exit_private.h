/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between the files of exit/ only. Calls go down this list and never back:
 *   exit -> signals, interrupted -> helper, bus -> leave, watch, signal_report -> elect, summary,
 *   watchdog -> agree -> state (state.h), decide (decide.h) */
#ifndef TK_EXIT_PRIVATE_H
#define TK_EXIT_PRIVATE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "exit/decide.h"
#include "transport/neighbour.h"

/* ---- agree.c: a barrier of all ranks that ends with one code */

/* Called before any message arrives. */
void tk_agree_open(void);

/* Called at start-up, once neighbours are mapped and peers are connected. */
void tk_agree_connect(void);

/* Called by the leaving thread. `code`: the code of this rank, 0 to 255. */
void tk_agree_begin(int code);

/* Makes one step. True: all ranks have arrived, and tk_agree_code() is the code of all. */
bool tk_agree_step(void);

/* Makes one step without the network. With several neighbourhoods it never returns true on the
 * first rank of each. */
bool tk_agree_step_by_flags(void);

/* The largest code known so far. */
int tk_agree_code(void);

/* Whether all have agreed, and the first rank of the neighbourhood adds the code to the last fence.
 */
bool tk_agree_is_carried(void);

/* Whether the leaders of neighbourhoods form a tree. */
bool tk_agree_has_tree(void);

/* The steps among leaders; none on a rank that is not the first of its neighbourhood. */
const struct tk_leaders *tk_agree_leaders(void);

/* How many ranks above it this rank waits for in the trees: 0 if it waits for one below, or among
 * leaders without a tree. */
uint32_t tk_agree_depth(void);

/* About the largest that it is on any rank; 0: no tree. */
uint32_t tk_agree_depth_max(void);

/* ---- elect.c: election of the rank that notifies the others, and the notices */

/* Called together with tk_agree_open() and tk_agree_connect(). */
void tk_elect_open(void);
void tk_elect_connect(void);

/* Rank 0 answers queries, and first ranks of neighbourhoods pass notices on, as many as the queues
 * have space for. Called by any thread, not in handlers. */
void tk_elect_serve(void);

/* Called by the leaving thread, `waited` ns after its grace period of `grace` ns ended. */
enum tk_role tk_elect_step(uint64_t waited, uint64_t grace);

/* Called by the leader, repeatedly, with the times of tk_elect_step(): each other rank gets an exit
 * request, along the tree if there is one. If not all agree in tk_notice_patience() this rank sends
 * them itself, as many at a time as the queues have space for. */
void tk_elect_notify(int code, uint64_t waited, uint64_t grace);

/* The code of an exit request that has arrived; -1: none has. */
int tk_elect_requested(void);

/* ---- summary.c: GASNET_STATS_SUMMARY. tk_summary_take() is called when this rank has written its
 * own statistics, tk_summary_put() before the fence, tk_summary_write() after the fence if all
 * ranks arrived. */
void tk_summary_take(void);
void tk_summary_put(void);
void tk_summary_write(void);

/* ---- stack.c: the handler of the signal on which a thread shows its stack to the launcher. After
 * tk_stack_offer() the launcher may send the signal. */
void tk_on_stack_signal(int number);
void tk_stack_offer(int number);

/* ---- leave.c */

/* Call these when the comments on tk_agree_open() and tk_agree_connect() say; they call both. */
void tk_leave_open(void);
void tk_leave_connect(void);

/* tk_exit_add() */
void tk_leave_add(bool (*give_back)(bool all));

/* Runs all of LEAVING. Returns when all ranks have arrived; the state then holds the code of all,
 * and this process is disconnected from the launcher. */
void tk_leave(void);

/* Called by the leaving thread when it exits again inside tk_leave(): completes the rest of
 * tk_leave(). */
void tk_leave_rest(void);

/* Changes a code of 0 to 74 if a file that the user asked for could not be written. */
void tk_leave_count_lost_output(void);

/* tk_leave_begin() is only the first part of tk_leave(): it sets the deadlines and starts the
 * watchdog. tk_leave_without_network() is the rest for the helper: it ends the process. */
void tk_leave_begin(void);
_Noreturn void tk_leave_without_network(void);

/* Runs ABORT. */
_Noreturn void tk_abort_job(int code, const char *why);

/* ---- watchdog.c */

/* Seconds that an exit may take: GASNET_EXITTIMEOUT, or computed from the number of ranks. */
double tk_exit_timeout(void);

/* Starts the watchdog: this process ends at most some seconds after the deadline.
 * Async-signal-safe. */
void tk_start_watchdog(void);

/* Gives the watchdog its full time again, from now. */
void tk_restart_watchdog(void);

/* Unblocks SIGALRM in this thread: the client's threads may all block it. */
void tk_take_alarm(void);

/* ---- signal_report.c. Async-signal-safe. */

/* The exit code that represents a signal, and the name of a terminating signal. */
int tk_code_of_signal(int number);
const char *tk_signal_name(int number);

/* Called by handlers of fatal signals. tk_report_death() logs "pid 123" and `what` as an error;
 * tk_die_of() ends the process by the signal. */
void tk_report_death(const char *what);
void tk_die_of(int number);

/* ---- bus.c: handles SIGBUS for memory of the library. Called after the handlers of all other
 * signals are installed, and not at all if the user wants SIGBUS left alone. */
void tk_bus_open(void);

/* ---- signals.c */

/* Installs the handlers of fatal, terminating and quitting signals. After tk_state_open(). */
void tk_signals_open(void);

/* Runs the client's SIGQUIT handler if there is one, once. Not from a signal handler. */
void tk_signal_quit(void);

/* interrupted.c. True in a signal handler, the client's handlers included: the interrupted code may
 * hold any lock, so the helper must perform an exit. Async-signal-safe; takes microseconds. */
bool tk_is_interrupted(void);

/* ---- helper.c: the thread that ends the job for signal handlers and dead neighbours */

/* Starts the helper. If it cannot be started for lack of resources, an exit in a signal handler
 * ends this process only. */
void tk_helper_open(void);

/* Called at start-up, once messages may be sent to neighbours. */
void tk_helper_watch_neighbours(void);

/* Sets the watchdog to the time that the helper has. Called after tk_start_watchdog().
 * Async-signal-safe. */
void tk_helper_watchdog(void);

/* Called by a thread that leaves in a signal handler: the helper leaves in its place. False: no
 * helper runs. Async-signal-safe. */
bool tk_helper_hand_over(void);

/* Makes the helper end the job because of signal `number`, and returns. Async-signal-safe. */
void tk_exit_by_signal(int code, int number);

/* ---- watch.c: the events that the helper waits for. TK_FAIL: has logged an error. */
enum tk_status tk_watch_open(void);

/* Called at start-up, once messages may be sent to neighbours. */
void tk_watch_neighbours(void);

/* Ends tk_watch_wait(), now and in future calls. Async-signal-safe. */
void tk_watch_call(void);

/* Waits until tk_watch_call() is called and returns NULL, or until a neighbour dies without a
 * regular exit and returns that neighbour. */
struct tk_peer *tk_watch_wait(enum tk_rank_liveness *how);

#endif
