/* SPDX-License-Identifier: BSD-3-Clause
 *
 * State of one thread during the exit; state.h has the state of the process. */
#ifndef TK_EXIT_THREAD_H
#define TK_EXIT_THREAD_H

#include <signal.h>

#include "base/mode.h"

/* What the current thread does; set and read by it and its signal handlers only. */
struct tk_exit_thread {
    /* The signal that made it run a client's SIGQUIT handler; 0: none. */
    volatile sig_atomic_t signal;
    /* 1 while the library itself raises SIGQUIT at a point where it holds no lock: a signal handler
     * is on the stack, but it did not interrupt other code. */
    volatile sig_atomic_t raises_quit;
};

extern TK_PER_THREAD struct tk_exit_thread tk_exit_thread;

#endif
