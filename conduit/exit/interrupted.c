/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whether this thread runs a signal handler, the library's or a client's. Only the stack shows it:
 * the unwinder knows the frames that a signal interrupted. Takes no lock and allocates nothing;
 * code without unwind tables hides the frames above it, and then no handler is found. */
#include "config.h"

#include <unwind.h>

#include "exit/exit_private.h"
#include "exit/state.h"
#include "exit/thread.h"

static _Unwind_Reason_Code look(struct _Unwind_Context *frame, void *count)
{
    int is_interrupted = 0;
    _Unwind_GetIPInfo(frame, &is_interrupted);
    if (is_interrupted)
        ++*(unsigned *)count;
    return _URC_NO_REASON;
}

bool tk_is_interrupted(void)
{
    unsigned count = 0;
    _Unwind_Backtrace(look, &count);
    return count > (unsigned)tk_exit_thread.raises_quit;
}
