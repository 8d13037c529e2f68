/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which GASNET_IBV_PORTS a rank uses: the one with the number of its socket, if the rank is bound
 * inside one socket and that variable is set; otherwise, and always with
 * GASNET_IBV_PORTS_TYPE=auto, the one without a number. No lock: start-up only. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "settings/settings.h"
#include "topology/locality.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/library.h"

static const char stem[] = "GASNET_IBV_PORTS_";

/* Avoids reading the machine's topology when no variable needs it. */
static bool any_is_numbered(void)
{
    for (char *const *env = tk_environment(); env && *env; env++) {
        const char *digit = *env + sizeof(stem) - 1;
        if (!strncmp(*env, stem, sizeof(stem) - 1) && *digit >= '0' && *digit <= '9')
            return true;
    }
    return false;
}

static void use_number(struct tk_port_family *family, int number)
{
    char name[sizeof(family->name)];
    snprintf(name, sizeof(name), "%s%d", stem, number);
    const char *value = tk_getenv(name);
    if (!value || !*value)
        return;
    memcpy(family->name, name, sizeof(name));
    family->filter = value;
}

enum tk_status tk_port_family_find(struct tk_port_family *family)
{
    int number;
    *family = (struct tk_port_family){.name = "GASNET_IBV_PORTS", .filter = tk_settings.ibv_ports};
    family->is_auto = tk_parse_auto(tk_settings.ibv_ports_type, &family->rails);
    if (family->is_auto || !any_is_numbered())
        return TK_OK;
    if (tk_locality_index(tk_settings.ibv_ports_type, &number) != TK_OK) {
        tk_log_error("GASNET_IBV_PORTS_TYPE='%s' is no type of hwloc's for parts of a machine: "
                     "Package (or Socket), NUMANode, Group, L3Cache, L2Cache, L1Cache, Core, PU",
                     tk_settings.ibv_ports_type);
        return TK_FAIL;
    }
    if (number >= 0)
        use_number(family, number);
    return TK_OK;
}
