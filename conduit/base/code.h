/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Is it the library's own code that a fault happened in? For signal handlers: reads constant data
 * only, takes no lock. */
#ifndef TK_CODE_H
#define TK_CODE_H

#include <stdbool.h>

/* `context` is the third argument of a handler with SA_SIGINFO. False also for inline functions of
 * the headers, which are the client's code, for libraries that ours calls, and in a build without
 * code_extent.h. */
bool tk_code_faulted(const void *context);

#endif
