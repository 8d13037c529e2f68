/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Checks of what clients pass. Those of TK_CHECK exist in debug builds only (--enable-debug). */
#ifndef TK_CHECK_H
#define TK_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/report.h"
#include "gasnetex.h"
#include "progress/progress.h"

#ifdef TK_DEBUG
#    define TK_CHECK(condition, ...)                                                               \
        do {                                                                                       \
            if (!(condition))                                                                      \
                tk_panic(__VA_ARGS__);                                                             \
        } while (0)
#else
#    define TK_CHECK(condition, ...)                                                               \
        do {                                                                                       \
        } while (0)
#endif

#define TK_CHECK_MAY_COMMUNICATE(call)                                                             \
    TK_CHECK(tk_in_handler == 0, "%s was called from a handler, where only replies are allowed",   \
             call)

#define TK_CHECK_RANK(call, rank)                                                                  \
    TK_CHECK((rank) < tk_peers.size, "%s: rank %u is not in the team of %u", call,                 \
             (unsigned)(rank), tk_peers.size)

#endif
