/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment; see environ.h. */
#include "config.h"

#include "environ.h"
#include "spawner/base/log.h"

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

/* The ranks inherit what this leaves, so that they need not have the same rule. */
static const char *tidy(const char *name)
{
    size_t length;
    const char *value = getenv(name);
    if (!value)
        return NULL;
    const char *start = tk_setting_trim(value, &length);
    if (length == 0) {
        unsetenv(name);
        return NULL;
    }
    if (length < strlen(value)) {
        char *copy = strndup(start, length);
        if (copy)
            setenv(name, copy, 1);
        free(copy);
    }
    return getenv(name);
}

bool environ_load(struct tk_settings *out)
{
    bool is_right = true;
    for (size_t i = 0; i < tk_setting_count; i++) {
        const struct tk_setting *s = &tk_setting_table[i];
        char why[512];
        tk_setting_reset(s, out);
        const char *value = tidy(s->name);
        if (!value || s->scope != TK_SCOPE_LAUNCHER ||
            tk_setting_parse(s, value, out, why, sizeof(why)) == TK_OK)
            continue;
        log_error("%s", why);
        is_right = false;
    }
    return is_right;
}

uint32_t environ_ms(double seconds)
{
    return (uint32_t)(seconds * 1000 + 0.999); /* 0 may mean something else than a little */
}

bool environ_is_yes(const char *name)
{
    static struct tk_settings values;
    const char *text = getenv(name);
    char why[512];
    for (size_t i = 0; text && i < tk_setting_count; i++) {
        const struct tk_setting *s = &tk_setting_table[i];
        if (strcmp(s->name, name) != 0 || s->type != TK_SETTING_BOOL)
            continue;
        tk_setting_reset(s, &values);
        return tk_setting_parse(s, text, &values, why, sizeof(why)) == TK_OK &&
               *(const bool *)((const char *)&values + s->offset);
    }
    return false;
}
