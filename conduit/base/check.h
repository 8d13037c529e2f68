/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks of debug builds only (--enable-debug, and the debug twins): a promise that other code has
 * to keep, and the message that ends the job when it is broken. */
#ifndef TK_BASE_CHECK_H
#define TK_BASE_CHECK_H

#include "base/report.h"

#ifdef TK_DEBUG
#    define TK_IS_DEBUG 1
#    define TK_CHECK(condition, ...)                                                               \
        do {                                                                                       \
            if (!(condition))                                                                      \
                tk_panic(__VA_ARGS__);                                                             \
        } while (0)
#else
#    define TK_IS_DEBUG 0
#    define TK_CHECK(condition, ...)                                                               \
        do {                                                                                       \
        } while (0)
#endif

#endif
