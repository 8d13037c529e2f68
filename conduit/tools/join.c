/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Work of the tools once the job has started and the rank is known. No state. */
#include "config.h"

#include "gasnet_tools.h"
#include "tools/tools.h"

void tk_tools_join_job(void)
{
    gasnett_backtrace_init(NULL);
    tk_tools_display_kept();
    if (tk_tools_is_on("GASNET_FREEZE", false))
        gasnett_freezeForDebuggerNow(&gasnet_frozen, "gasnet_frozen");
}
