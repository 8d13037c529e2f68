/* SPDX-License-Identifier: BSD-3-Clause */
/* See inject.h. Owns the flag that a fault has occurred; any thread sets it. */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inject.h"

enum { last_occasion = 1000000000 };

static atomic_bool came;

static bool refuse(const struct wl_fault *table, const char *text, char *why, size_t size)
{
    int used = snprintf(why, size, "--inject '%s' is not one of none", text);
    for (; table->name && used > 0 && (size_t)used < size; table++)
        used += snprintf(why + used, size - (size_t)used, "|%s", table->name);
    if (used > 0 && (size_t)used < size)
        snprintf(why + used, size - (size_t)used, ", with :1 to :%d for the occasion",
                 last_occasion);
    return false;
}

bool wl_inject_parse(struct wl_injection *injection, const struct wl_fault *table, const char *text,
                     char *why, size_t size)
{
    *injection = (struct wl_injection){-1, 1, 0};
    if (!text || !strcmp(text, "none"))
        return true;
    size_t length = strcspn(text, ":");
    for (int i = 0; table[i].name; i++)
        if (strlen(table[i].name) == length && !strncmp(table[i].name, text, length))
            injection->fault = i;
    if (injection->fault < 0)
        return refuse(table, text, why, size);
    if (!text[length])
        return true;
    char *end;
    errno = 0;
    long long at = strtoll(text + length + 1, &end, 10);
    if (errno || *end || text[length + 1] < '0' || text[length + 1] > '9' || at < 1 ||
        at > last_occasion)
        return refuse(table, text, why, size);
    injection->at = (uint64_t)at;
    return true;
}

bool wl_inject_counted(struct wl_injection *injection)
{
    if (++injection->seen != injection->at)
        return false;
    atomic_store_explicit(&came, true, memory_order_relaxed);
    return true;
}

bool wl_inject_came(void)
{
    return atomic_load_explicit(&came, memory_order_relaxed);
}
