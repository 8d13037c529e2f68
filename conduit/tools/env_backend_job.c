/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tools in a conduit's library: the environment is the job's, and there is a rank once the job
 * has started. No state, no lock. */
#include "config.h"

#include "base/report.h"
#include "settings/settings.h"
#include "tools/public.h"
#include "tools/tools.h"

const char *tk_tools_lookup(const char *name)
{
    return tk_getenv(name);
}

int64_t tk_tools_rank(void)
{
    return tk_report_rank();
}

bool tk_tools_in_job(void)
{
    return true;
}

void tk_tools_join_job(void)
{
    gasnett_backtrace_init(NULL);
    tk_tools_display_kept();
    if (tk_tools_is_on("GASNET_FREEZE", false))
        gasnett_freezeForDebuggerNow(&gasnet_frozen, "gasnet_frozen");
}
