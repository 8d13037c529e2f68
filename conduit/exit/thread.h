/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a thread does at the end of its process, beside the state of that (state.h). */
#ifndef TK_EXIT_THREAD_H
#define TK_EXIT_THREAD_H

#include <signal.h>

#include "base/mode.h"

/* What the current thread does; set and read by it and its signal handlers only. */
struct tk_exit_thread {
    /* The signal because of which it runs a client's SIGQUIT handler; 0: none. */
    volatile sig_atomic_t signal;
    /* 1 while the library raises SIGQUIT itself where it holds nothing: there is a signal handler
     * on the stack, but one that interrupted nothing. */
    volatile sig_atomic_t raises_quit;
};

extern TK_PER_THREAD struct tk_exit_thread tk_exit_thread;

#endif
