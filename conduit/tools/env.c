/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Values of environment variables. A value that can't be parsed ends the program with status 2:
 * continuing with another value would not do what the user asked for. No state. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/number.h"
#include "gasnet_tools.h"
#include "tools/tools.h"

char *gasnett_getenv(const char *keyname)
{
    return (char *)tk_tools_lookup_decoded(keyname);
}

void gasnett_setenv(const char *key, const char *value)
{
    if (setenv(key, value, 1) != 0)
        gasnett_fatalerror_nopos("gasnett_setenv(\"%s\"): %s", key, strerror(errno));
}

void gasnett_unsetenv(const char *key)
{
    if (unsetenv(key) != 0)
        gasnett_fatalerror_nopos("gasnett_unsetenv(\"%s\"): %s", key, strerror(errno));
}

/* An empty value counts as unset: job scripts write X= to clear a variable. */
static const char *set_value(const char *name)
{
    const char *text = tk_tools_lookup_decoded(name);
    return text && *text ? text : NULL;
}

char *gasnett_getenv_withdefault(const char *keyname, const char *defaultval)
{
    const char *text = tk_tools_lookup_decoded(keyname);
    gasnett_envstr_display(keyname, text ? text : defaultval, !text);
    return (char *)(text ? text : defaultval);
}

int gasnett_getenv_yesno_withdefault(const char *keyname, int defaultval)
{
    bool value = defaultval != 0;
    const char *text = set_value(keyname);
    if (text && !tk_tools_truth(text, &value))
        tk_tools_refuse("%s='%s' is not one of y, yes, 1, n, no, 0", keyname, text);
    gasnett_envstr_display(keyname, value ? "YES" : "NO", !text);
    return value;
}

int64_t gasnett_getenv_int_withdefault(const char *keyname, int64_t defaultval,
                                       uint64_t mem_size_multiplier)
{
    int64_t value = defaultval;
    const char *text = set_value(keyname);
    if (text && !tk_number_whole(text, mem_size_multiplier, &value))
        tk_tools_refuse("%s='%s' is not %s", keyname, text,
                        mem_size_multiplier ? "a size: a number and a unit B, KB, MB, GB or TB"
                                            : "a whole number of 64 bits, decimal or 0x...");
    gasnett_envint_display(keyname, value, !text, mem_size_multiplier != 0);
    return value;
}

double gasnett_getenv_dbl_withdefault(const char *keyname, double defaultval)
{
    double value = defaultval;
    const char *text = set_value(keyname);
    if (text && !tk_number_real(text, &value))
        tk_tools_refuse("%s='%s' is not a number or a fraction as 3/4", keyname, text);
    gasnett_envdbl_display(keyname, value, !text);
    return value;
}
