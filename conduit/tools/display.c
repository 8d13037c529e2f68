/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Display of settings. Owns the list of keys that were displayed, or wait for the rank to be known,
 * under a lock of its own; no function of another file is called with it held. */
#include "config.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "gasnet_tools.h"
#include "tools/tools.h"

/* In the order of first display; lives as long as the program. */
struct shown {
    struct shown *next;
    char *kept; /* text waiting to be displayed */
    char key[];
};

static pthread_mutex_t display_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shown *display_first, **display_last = &display_first;

int gasnett_verboseenv(void)
{
    return tk_tools_is_on("GASNET_VERBOSEENV", false) && tk_tools_rank() == 0;
}

/* Before the job has started, this process may be rank 0. */
static bool may_matter(void)
{
    return tk_tools_is_on("GASNET_VERBOSEENV", false) && tk_tools_rank() <= 0;
}

static bool is_new(const char *key, const char *text)
{
    for (struct shown *s = display_first; s; s = s->next)
        if (!strcmp(s->key, key))
            return false;
    struct shown *s = calloc(1, sizeof(*s) + strlen(key) + 1);
    if (!s)
        return true;
    strcpy(s->key, key);
    if (tk_tools_rank() < 0)
        s->kept = strdup(text);
    *display_last = s;
    display_last = &s->next;
    return true;
}

static void show(const char *key, const char *value, int is_dflt)
{
    char text[1024];
    if (!may_matter())
        return;
    snprintf(text, sizeof(text), "ENV parameter: %s = %s%s", key, value,
             is_dflt ? " (default)" : "");
    pthread_mutex_lock(&display_lock);
    bool is_shown = is_new(key, text) && tk_tools_rank() == 0;
    pthread_mutex_unlock(&display_lock);
    if (is_shown)
        tk_log_info("%s", text);
}

/* No lock: start-up has one thread. */
void tk_tools_display_kept(void)
{
    for (struct shown *s = display_first; s; s = s->next) {
        if (s->kept && gasnett_verboseenv())
            tk_log_info("%s", s->kept);
        free(s->kept);
        s->kept = NULL;
    }
}

void gasnett_envint_display(const char *key, int64_t val, int is_dflt, int is_mem_size)
{
    char number[48];
    show(key, gasnett_format_number(val, number, sizeof(number), is_mem_size), is_dflt);
}

void gasnett_envstr_display(const char *key, const char *val, int is_dflt)
{
    show(key, !val ? "*not set*" : *val ? val : "*empty*", is_dflt);
}

void gasnett_envdbl_display(const char *key, double val, int is_dflt)
{
    char number[48];
    snprintf(number, sizeof(number), "%g", val);
    show(key, number, is_dflt);
}
