/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment; see environ.h. */
#include "config.h"

#include "environ.h"
#include "spawner/util/log.h"

#include <stdlib.h>
#include <string.h>
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

/* The ranks inherit the result, so that the launcher and all ranks see one value. */
static void tidy(const char *name)
{
    size_t length;
    const char *value = getenv(name);
    if (!value)
        return;
    const char *start = tk_setting_trim(value, &length);
    if (length == 0) {
        unsetenv(name);
        return;
    }
    if (length < strlen(value)) {
        char *copy = strndup(start, length);
        if (copy)
            setenv(name, copy, 1);
        free(copy);
    }
}

static void refuse(const char *line)
{
    log_error("%s", line);
}

bool environ_load(struct tk_settings *out)
{
    for (size_t i = 0; i < tk_setting_count; i++)
        tidy(tk_setting_table[i].name);
    return tk_settings_parse(environ, out, refuse) == TK_OK;
}

bool environ_is_set(const char *name)
{
    return getenv(name) != NULL;
}

const char *environ_value(const char *name)
{
    return getenv(name);
}

/* Rounded up, as 0 means "no limit" for some settings. */
static uint32_t milliseconds(double seconds)
{
    return (uint32_t)(seconds * 1000 + 0.999);
}

void environ_set_limits(struct job *job, const struct tk_settings *s, bool is_terminal)
{
    bool is_bounded = !is_terminal || environ_is_set("GASNET_OUTPUT_TIMEOUT");
    job->grace_ms = milliseconds(s->kill_grace);
    job->start_ms = milliseconds(s->start_timeout);
    job->reader_ms = is_bounded ? milliseconds(s->output_timeout) : 0;
}

static bool is_exported(const char *list, const char *entry)
{
    size_t length = strcspn(entry, "=");
    for (const char *at = list; at && *at;) {
        size_t n = strcspn(at, ",");
        if (n == length && !strncmp(at, entry, n))
            return true;
        at += n + (at[n] == ',');
    }
    return false;
}

/* Of the loader's variables only what run/device.c has set. */
static bool loads_softhca(const char *entry)
{
    return (!strncmp(entry, "LD_PRELOAD=", 11) && strstr(entry, "libsofthca.so")) ||
           (!strncmp(entry, "ASAN_OPTIONS=", 13) && strstr(entry, "verify_asan_link_order=0"));
}

bool environ_travels(const char *entry, const char *exported)
{
    static const char *const families[] = {"GASNET_", "SOFTHCA_", "TRUNKLINE_", "PMIX_MCA_"};
    for (size_t i = 0; i < sizeof(families) / sizeof(*families); i++)
        if (!strncmp(entry, families[i], strlen(families[i])))
            return true;
    return loads_softhca(entry) || is_exported(exported, entry);
}

char **environ_select(const char *exported)
{
    size_t count = 0, used = 0;
    while (environ[count])
        count++;
    char **list = calloc(count + 1, sizeof(*list));
    for (size_t i = 0; i < count && list; i++)
        if (environ_travels(environ[i], exported))
            list[used++] = environ[i];
    return list;
}

const char *environ_session_parent(const struct tk_settings *s)
{
    const char *system = getenv("TMPDIR"); /* not a setting, but the convention of hosts */
    if (*s->tmpdir)
        return s->tmpdir;
    return system && *system ? system : "/tmp";
}
