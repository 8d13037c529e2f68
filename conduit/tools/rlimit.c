/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Raises limits of the process as far as it is allowed. No state. */
#include "config.h"

#include <stdio.h>
#include <sys/resource.h>

#include "gasnet_tools.h"
#include "tools/tools.h"

int gasnett_maximize_rlimit(int res, const char *lim_desc)
{
    char variable[128];
    struct rlimit limit;
    snprintf(variable, sizeof(variable), "GASNET_MAXIMIZE_%s", lim_desc);
    if (!gasnett_getenv_yesno_withdefault(variable, 1))
        return 0;
    if (getrlimit(res, &limit) != 0)
        return 0;
    if (limit.rlim_cur == limit.rlim_max)
        return 1;
    limit.rlim_cur = limit.rlim_max;
    return setrlimit(res, &limit) == 0;
}

int gasnett_maximize_rlimits(void)
{
    static const struct {
        int res;
        const char *name;
    } limits[] = {
        {RLIMIT_CPU, "RLIMIT_CPU"},       {RLIMIT_DATA, "RLIMIT_DATA"},
        {RLIMIT_FSIZE, "RLIMIT_FSIZE"},   {RLIMIT_RSS, "RLIMIT_RSS"},
        {RLIMIT_STACK, "RLIMIT_STACK"},   {RLIMIT_AS, "RLIMIT_AS"},
        {RLIMIT_NOFILE, "RLIMIT_NOFILE"}, {RLIMIT_MEMLOCK, "RLIMIT_MEMLOCK"},
        {RLIMIT_NPROC, "RLIMIT_NPROC"},
    };
    int all = 1;
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++)
        all &= gasnett_maximize_rlimit(limits[i].res, limits[i].name);
    return all;
}
