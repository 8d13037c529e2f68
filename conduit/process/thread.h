/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Threads of the library's own. */
#ifndef TK_BASE_THREAD_H
#define TK_BASE_THREAD_H

#include <stdint.h>

#include "base/status.h"

/* Starts fn(NULL) in a thread that nobody waits for and that takes no signals: it must never run a
 * client's handler. Its stack is the system's default or `stack_min` bytes, whichever is more, and
 * `stack_pad` bytes. TK_FAIL: has complained. */
enum tk_status tk_thread_start(void *(*fn)(void *), uint64_t stack_min, uint64_t stack_pad);

#endif
