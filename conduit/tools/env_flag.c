/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Truth of the tools' own variables. No state. Must not print anything: crash handlers call it. */
#include "config.h"

#include <strings.h>

#include "tools/tools.h"

bool tk_tools_is_on(const char *name, bool otherwise)
{
    bool value;
    const char *text = tk_tools_lookup(name);
    if (!text)
        return otherwise;
    if (tk_tools_truth(text, &value))
        return value;
    if (!strcasecmp(text, "true") || !strcasecmp(text, "on"))
        return true;
    return strcasecmp(text, "false") && strcasecmp(text, "off") ? otherwise : false;
}
