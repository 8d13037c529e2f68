/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment; see environ.h. */
#include "config.h"

#include "environ.h"
#include "spawner/base/say.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

static bool is_foreign_pmix(const char *entry)
{
    return !strncmp(entry, "PMIX_", 5) && strncmp(entry, "PMIX_MCA_", 9) != 0;
}

void environ_forget_pmix(void)
{
    char **to = environ;
    for (char **from = environ; *from; from++)
        if (!is_foreign_pmix(*from))
            *to++ = *from;
    *to = NULL;
}

bool environ_seconds(const char *name, uint32_t fallback, uint32_t most, uint32_t *ms)
{
    const char *text = getenv(name);
    char *end;
    *ms = fallback * 1000;
    if (!text || !*text)
        return true;
    errno = 0;
    double seconds = strtod(text, &end);
    if (*end || errno || !(seconds >= 0 && seconds <= most)) {
        say("%s=%s: not a number of seconds between 0 and %u", name, text, most);
        return false;
    }
    *ms = (uint32_t)(seconds * 1000 + 0.999); /* 0 may mean something else than a little */
    return true;
}

static bool is_one_of(const char *text, const char *const *words)
{
    for (; *words; words++)
        if (!strcasecmp(text, *words))
            return true;
    return false;
}

bool environ_is_yes(const char *name)
{
    static const char *const yes[] = {"1", "yes", "y", "true", "on", NULL};
    const char *text = getenv(name);
    return text && is_one_of(text, yes);
}

bool environ_is_truth(const char *name)
{
    static const char *const no[] = {"0", "no", "n", "false", "off", "", NULL};
    const char *text = getenv(name);
    if (!text || environ_is_yes(name) || is_one_of(text, no))
        return true;
    say("%s=%s: not one of 0, 1, no, yes, n, y, false, true, off, on", name, text);
    return false;
}
