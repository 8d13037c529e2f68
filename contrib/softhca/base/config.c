/* SPDX-License-Identifier: BSD-3-Clause */
/* The settings of this process, read once from the environment when the program first asks for
 * devices. Owns shca_config; written under pthread_once, read-only afterwards. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "shca.h"

struct shca_config shca_config;

static int config_status;

void shca_say(const char *fmt, ...)
{
    char line[512];
    va_list ap;
    int n = snprintf(line, sizeof line, "softhca: ");

    va_start(ap, fmt);
    n += vsnprintf(line + n, sizeof line - (size_t)n - 1, fmt, ap);
    va_end(ap);
    if (n > (int)sizeof line - 2)
        n = (int)sizeof line - 2;
    line[n++] = '\n';
    /* One write: lines of several processes do not mix. */
    if (write(STDERR_FILENO, line, (size_t)n) < 0)
        return;
}

/* The program may change its environment later. */
static const char *keep(const char *text)
{
    return text ? strdup(text) : NULL;
}

static int load_faults(const char *text)
{
    char why[400];

    if (!text || shca_fault_set(text, why, sizeof why) == 0)
        return 0;
    shca_say("SOFTHCA_FAULT: %s", why);
    return EINVAL;
}

static void load(void)
{
    struct shca_config *c = &shca_config;
    char why[400];

    config_status = shca_settings_parse(environ, c, why, sizeof why);
    if (config_status != 0) {
        shca_say("%s", why);
        return;
    }
    c->fabric_name = keep(c->fabric_name);
    c->down_list = keep(c->down_list);
    c->unplugged_list = keep(c->unplugged_list);
    c->rate_list = keep(c->rate_list);
    c->speed_list = keep(c->speed_list);
    c->fault = keep(c->fault);
    c->stats = keep(c->stats);
    c->real = keep(c->real);
    config_status = load_faults(c->fault);
    if (c->rate_list)
        atomic_store(&shca_detour, true);
}

int shca_config_load(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load);
    return config_status;
}
