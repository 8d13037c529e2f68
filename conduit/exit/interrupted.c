/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Whether this thread runs a signal handler, whoever installed it. Nothing tells but the stack: the
 * unwinder knows the frames that a signal interrupted. Needs no lock and no memory; code without
 * unwind tables hides what lies above it, and is then taken for no signal handler. */
#include "config.h"

#include <unwind.h>

#include "exit/exit_private.h"
#include "exit/state.h"

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
