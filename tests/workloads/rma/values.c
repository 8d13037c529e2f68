/* SPDX-License-Identifier: BSD-3-Clause */
/* See values.h. Owns nothing. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "values.h"

enum { every_max = 1000000 };

/* "1/N", or the word that stands for `meant`. */
static bool set_share(uint64_t *every, const char *name, const char *text, const char *word,
                      uint64_t meant, char *why, size_t size)
{
    char *end;
    if (!strcmp(text, word)) {
        *every = meant;
        return true;
    }
    if (!strncmp(text, "1/", 2) && text[2] >= '0' && text[2] <= '9') {
        errno = 0;
        *every = strtoull(text + 2, &end, 10);
        if (!errno && !*end && *every >= 1 && *every <= every_max)
            return true;
    }
    snprintf(why, size, "--%s '%s' is not %s or 1/N, N from 1 to %d", name, text, word, every_max);
    return false;
}

bool rma_values_set(struct rma_values *values, char *why, size_t size)
{
    return set_share(&values->lat_every, "lat", values->lat, "all", 1, why, size) &&
           set_share(&values->cycles_every, "cycles", values->cycles, "off", 0, why, size);
}
