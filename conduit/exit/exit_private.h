/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Between the files of exit/ only. */
#ifndef TK_EXIT_PRIVATE_H
#define TK_EXIT_PRIVATE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/mode.h"
#include "base/status.h"
#include "transport/neighbour.h"

/* ---- agree.c: all ranks come, and have one code then */

/* Before anything arrives. */
void tk_agree_open(void);

/* When neighbours are mapped and may be sent to; start-up only. */
void tk_agree_connect(void);

/* By the thread that leaves. Our code, 0 to 255. */
void tk_agree_begin(int code);

/* One look at what the others said. True: all ranks have come, and tk_agree_code() is that of all.
 */
bool tk_agree_step(void);

/* The same without the network: the first rank of a neighbourhood among others comes to no end. */
bool tk_agree_step_by_flags(void);

/* The largest that is known so far. */
int tk_agree_code(void);

/* ---- elect.c: who tells those that did not come, and telling */

enum tk_role {
    TK_ROLE_OPEN,   /* to be decided */
    TK_ROLE_LEADER, /* we tell the others */
    TK_ROLE_MEMBER  /* somebody else does, or has told us */
};

/* As for agree.c. */
void tk_elect_open(void);
void tk_elect_connect(void);

/* Rank 0 answers those that asked, as far as there is room. Any thread, not in handlers. */
void tk_elect_serve(void);

/* By the thread that leaves, `waited` ns after it began to wonder who leads. */
enum tk_role tk_elect_step(uint64_t waited);

/* By the leader, again and again: each other rank is told once, as far as there is room. */
void tk_elect_tell(int code);

/* The code that a leader sent us; -1: none did. */
int tk_elect_requested(void);

/* ---- leave.c */

/* What this process ends with, as far as is known. */
extern volatile sig_atomic_t tk_final_code;

/* As for agree.c. */
void tk_leave_open(void);
void tk_leave_connect(void);
bool tk_network_is_ready(void);

/* All of LEAVING. Returns when all ranks have come, with the code of all in tk_final_code, after
 * the good-bye to the launcher. */
void tk_leave(void);

/* By the same thread, from anywhere inside of tk_leave(): the rest of it. */
void tk_leave_rest(void);

/* Its begin alone: the time runs, and tk_final_code is ours. And all of the rest that there is to
 * it where the network is not to be touched, for our helper: calls poll() while waiting. */
void tk_leave_begin(void);
void tk_leave_without_network(void (*poll)(void));

/* ABORT */
_Noreturn void tk_abort_job(int code, const char *why);

/* From here on this process ends within the deadline and some seconds. Async-signal-safe. */
void tk_start_watchdog(void);

/* Some thread must take its alarm, and the client's may all block it. */
void tk_take_alarm(void);

/* After tk_leave(), when exit() goes on. */
void tk_leave_to_client(void);

/* By the launcher: the watchdog may end us with 0. */
void tk_code_is_known(void);

/* ---- signals.c */

/* Installs the handlers of fatal, terminating and quitting signals. */
void tk_signals_open(void);

/* The exit code that stands for a signal, and the signal's name. Async-signal-safe. */
int tk_code_of_signal(int number);
const char *tk_signal_name(int number);

/* By handlers of fatal signals: "pid 123" and then `what`, as an error; and then the end. */
void tk_tell_of_death(const char *what);
void tk_die_of(int number);

/* ---- bus.c: SIGBUS for memory of the library. After all others are caught; not if the user wants
 * SIGBUS left alone. */
void tk_bus_open(void);

/* Runs the client's SIGQUIT handler if there is one, once. Not from a signal handler. */
void tk_signal_quit(void);

/* The number of the signal because of which this thread runs a SIGQUIT handler; 0: of none. */
extern TK_PER_THREAD volatile sig_atomic_t tk_in_signal;

/* 1 while tk_signal_quit() runs a client's handler on this thread: a signal handler on the stack,
 * but nothing was interrupted that holds anything. */
extern TK_PER_THREAD unsigned tk_quit_is_raised;

/* The client needs no notice of the end by SIGQUIT any more: it wanted the end, or it has had one.
 */
extern volatile sig_atomic_t tk_quit_is_done;

/* interrupted.c. True in a signal handler, also one of the client's: the interrupted code may hold
 * any lock, so an exit must be left to the helper. Async-signal-safe; takes microseconds. */
bool tk_is_interrupted(void);

/* ---- exit.c, for our own signal handlers */

/* Has the job ended by another thread because of signal `number`, and returns. */
void tk_exit_by_signal(int code, int number);

/* SIGTERM: how launchers end ranks. They need not be asked to end the job then, and may no longer
 * answer. */
void tk_exit_was_asked_for(void);
bool tk_exit_is_asked_for(void);

/* ---- watch.c: what a thread of our own waits for. TK_FAIL: has complained. */
enum tk_status tk_watch_open(void);

/* From when neighbours may be sent to; start-up only. */
void tk_watch_neighbours(void);

/* Ends the wait, for good. Async-signal-safe. */
void tk_watch_call(void);

/* Waits for that call, NULL then, or until a neighbour that did not leave in order is dead. */
struct tk_peer *tk_watch_wait(enum tk_rank_liveness *how);

#endif
