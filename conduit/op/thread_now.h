/* SPDX-License-Identifier: BSD-3-Clause
 *
 * tk_thread_enter() of threads.h for each step of a wait, by one load and one branch. A header of
 * its own because it depends on the client's mode. */
#ifndef TK_THREAD_NOW_H
#define TK_THREAD_NOW_H

#include <stdbool.h>

#include "base/bits.h"
#include "base/client_mode.h"
#include "op/threads.h"

extern TK_PER_CLIENT_THREAD bool tk_thread_is_counted;

static inline void tk_thread_enter_again(void)
{
    tk_if_unlikely(!tk_thread_is_counted) tk_thread_enter();
}

#endif
