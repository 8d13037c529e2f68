/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The library's own threads. */
#ifndef TK_BASE_THREAD_H
#define TK_BASE_THREAD_H

#include <stdint.h>

#include "base/status.h"

/* Starts fn(argument) in a detached thread with all signals blocked: it must never run a client's
 * handler. Its stack is the system's default or `stack_min` bytes, whichever is more, plus
 * `stack_pad` bytes. TK_FAIL: the cause has been printed. */
enum tk_status tk_thread_start_with(void *(*fn)(void *), void *argument, uint64_t stack_min,
                                    uint64_t stack_pad);

/* The same without an argument. */
enum tk_status tk_thread_start(void *(*fn)(void *), uint64_t stack_min, uint64_t stack_pad);

#endif
