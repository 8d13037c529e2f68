/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The library that this program is linked with: its release, its build, and what it was linked
 * with. No state. */
#include "config.h"

#include "contrib/info/info.h"

#include <pmix.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

/* Of conduit/api/ident.c: "$Name: value $". */
extern const char trunkline_ident_config[], trunkline_ident_version[], trunkline_ident_segment[],
    trunkline_ident_medium[], trunkline_ident_system[], trunkline_ident_build[];

static void print_ident(const char *name, const char *ident)
{
    const char *value = strstr(ident, ": ");
    const char *end = value ? strrchr(value, ' ') : NULL;
    if (end)
        info_fact(name, "%.*s", (int)(end - value - 2), value + 2);
}

void info_build(void)
{
    struct utsname host;
    info_section("Library");
    info_fact("release", "%s", PACKAGE_STRING);
    print_ident("GASNet-EX interface", trunkline_ident_version);
    print_ident("segment", trunkline_ident_segment);
    print_ident("largest Medium", trunkline_ident_medium);
    print_ident("configuration", trunkline_ident_config);
    print_ident("system", trunkline_ident_system);
    print_ident("build", trunkline_ident_build);
    info_fact("PMIx", "%s", PMIx_Get_version());
    if (uname(&host) == 0)
        info_fact("host", "%s, %s %s %s", host.nodename, host.sysname, host.release, host.machine);
}
