/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Did a fault happen in the library's own code? For signal handlers: reads constant data only,
 * takes no lock. */
#ifndef TK_CODE_H
#define TK_CODE_H

#include <stdbool.h>

/* `context` is the third argument of a handler with SA_SIGINFO. False also for inline functions of
 * the headers, which are the client's code, for other libraries, and in a build without
 * code_extent.h. */
bool tk_code_faulted(const void *context);

#endif
