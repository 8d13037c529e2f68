/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state of this process between RUNNING and its end, as drawn in exit.h: one state, changed
 * only by the transitions below, which have the names of the events that the drawing shows. They
 * make no system call, take no lock and read no clock (the time is handed in), so every rule has a
 * unit test, and signal handlers may call each of them.
 *
 * Exactly one transition out of RUNNING succeeds. Only its caller, or the library's helper thread
 * if a signal caused it, continues from there; all other callers get `false`. */
#ifndef TK_EXIT_STATE_H
#define TK_EXIT_STATE_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum tk_exit_phase {
    TK_EXIT_RUNNING,
    TK_EXIT_LEAVING,     /* one thread leaves; not yet at the point where it can be resumed */
    TK_EXIT_AGREE,       /* the network is served; after the grace period, ELECT at the same time */
    TK_EXIT_PART,        /* in the launcher's fence, while AGREE and ELECT continue */
    TK_EXIT_HANDED_OVER, /* LEAVING from a signal handler: by the helper, without the network */
    TK_EXIT_OVER,        /* all ranks arrived and agreed on the code */
    TK_EXIT_TO_CLIENT,   /* as OVER; exit() then runs the functions that the client registered */
    TK_EXIT_ABORT        /* the launcher is asked to end the job */
};

/* Only lock-free atomics, for signal handlers. All zeros: RUNNING. */
struct tk_exit_state {
    atomic_int phase;
    _Atomic(pthread_t) leaver; /* the thread that leaves; valid outside of RUNNING */
    atomic_int code;           /* of the exit, as far as is known */
    atomic_int signal;         /* the signal that began the end; 0: none */
    atomic_int peers_code;     /* 1 + the code of another rank's exit that this rank answers */
    atomic_bool is_asked;      /* SIGTERM: the launcher ends the job and has decided its status */
    atomic_bool is_notified;   /* the client needs no SIGQUIT any more */
    atomic_bool is_code_known; /* to the launcher: ending late with 0 hides no failure */
    atomic_bool has_network;
    pid_t pid;       /* of the rank; a forked child of the client's has another */
    int given;       /* TO_CLIENT: the code that exit() was called with */
    char reason[32]; /* ABORT because of a failure: for the launcher */
    uint64_t grace_end, deadline;
};

/* The state of this process. */
extern struct tk_exit_state tk_exit_state;

/* At start-up: the first before signal handlers are installed; the second when exits may use the
 * network, as the last step, because a signal handler may leave at any time. */
void tk_state_open(struct tk_exit_state *s, pid_t pid);
void tk_state_network_ready(struct tk_exit_state *s);

/* ---- out of RUNNING. False: another thread or handler was first, and nothing has changed.
 *
 * Call the transitions by the current thread with signals blocked: otherwise a handler that leaves
 * too would find that the leaver is not known yet, and would stop this thread for ever. */

/* RUNNING -> LEAVING, by the current thread */
bool tk_state_leave(struct tk_exit_state *s, int code);

/* RUNNING -> ABORT with 1, by the current thread: lost peer, failed start-up; a neighbour died.
 * `reason` is cut to what fits. */
bool tk_state_fail(struct tk_exit_state *s, const char *reason);

/* RUNNING -> ABORT, in a signal handler; the helper continues */
bool tk_state_end_by_signal(struct tk_exit_state *s, int code, int signal);

/* ---- after RUNNING. Called in any other state, they change nothing. */

/* Starts the clock; the client is no longer notified. */
void tk_state_begin(struct tk_exit_state *s, uint64_t now, uint64_t grace, uint64_t timeout);

/* LEAVING -> AGREE: output is flushed, no client handler runs any more. From here on the leaver may
 * resume, tk_state_may_resume(), if it is entered again. */
void tk_state_agree(struct tk_exit_state *s);

/* AGREE -> PART: all agree, or the grace is over */
void tk_state_part(struct tk_exit_state *s);

/* LEAVING -> HANDED_OVER */
void tk_state_hand_over(struct tk_exit_state *s);

/* PART, HANDED_OVER -> OVER: all came */
void tk_state_over(struct tk_exit_state *s);

/* OVER -> TO_CLIENT: by exit(`given`), with the client's functions still to run. If one of them
 * hangs, the watchdog reports a failure although the launcher knows the code. */
void tk_state_to_client(struct tk_exit_state *s, int given);

/* anything but RUNNING -> ABORT: not all came by the deadline, or it was ABORT already */
void tk_state_abort(struct tk_exit_state *s);

/* The current thread does the work from here on: the helper thread, once it was called. */
void tk_state_take_over(struct tk_exit_state *s);

/* ---- what becomes known, in any state */

/* The largest code of all ranks counts. */
void tk_state_learn(struct tk_exit_state *s, int code);

/* Another rank has exited with that code, and this rank must respond. True for one caller only, in
 * RUNNING. */
bool tk_state_answer(struct tk_exit_state *s, int code);

/* SIGTERM. */
void tk_state_ask(struct tk_exit_state *s);

/* The client got SIGQUIT, or has requested the end. True for the first call. */
bool tk_state_notify(struct tk_exit_state *s);

/* The launcher knows that all ranks have this code. */
void tk_state_code_known(struct tk_exit_state *s);

/* ---- queries */

enum tk_exit_phase tk_state_phase(const struct tk_exit_state *s);
bool tk_state_is_running(const struct tk_exit_state *s);
bool tk_state_is_leaver(const struct tk_exit_state *s);
bool tk_state_may_resume(const struct tk_exit_state *s);
bool tk_state_has_network(const struct tk_exit_state *s);
bool tk_state_is_asked(const struct tk_exit_state *s);
bool tk_state_is_notified(const struct tk_exit_state *s);
bool tk_state_is_code_known(const struct tk_exit_state *s);

/* Ranks that did not arrive may be notified, so ELECT. */
bool tk_state_is_grace_over(const struct tk_exit_state *s, uint64_t now);

/* The code of the exit, as far as is known. */
int tk_state_code(const struct tk_exit_state *s);

/* The code that an exit with `code` ends with. Once this rank has answered another rank's exit, it
 * exits only because of that exit (in its SIGQUIT handler, or in a thread that reads what the
 * handler wrote), so the code of the exit that began it is kept. */
int tk_state_code_of_exit(const struct tk_exit_state *s, int code);

/* The code of a process that does not reach OVER in time: 0 would hide that it hangs, unless the
 * launcher knows that 0 is the code of all. */
int tk_state_late_code(const struct tk_exit_state *s);

/* TO_CLIENT, and the client's code differs from the agreed one */
bool tk_state_exits_with_another(const struct tk_exit_state *s);

#endif
