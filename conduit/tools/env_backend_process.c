/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The tools' environment without a conduit: the process's own. No state, no lock. */
#include "config.h"

#include <stdlib.h>

#include "tools/tools.h"

const char *tk_tools_lookup(const char *name)
{
    return getenv(name);
}

const char *tk_tools_lookup_decoded(const char *name)
{
    return getenv(name);
}

int64_t tk_tools_rank(void)
{
    return 0;
}

bool tk_tools_in_job(void)
{
    return false;
}
