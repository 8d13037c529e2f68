/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tools' environment in a conduit's library: the job's environment, and its rank once the job
 * has started. No state, no lock. */
#include "config.h"

#include "base/report.h"
#include "settings/settings.h"
#include "tools/tools.h"

const char *tk_tools_lookup(const char *name)
{
    return tk_getenv(name);
}

const char *tk_tools_lookup_decoded(const char *name)
{
    return tk_getenv_decoded(name);
}

int64_t tk_tools_rank(void)
{
    return tk_report_rank();
}

bool tk_tools_in_job(void)
{
    return true;
}
