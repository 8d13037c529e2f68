/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The pattern at the beginning of buffers that Prepare provides, in debug builds: a buffer
 * committed unchanged was probably never written. Owns the pattern, set at start-up; no lock. */
#include "config.h"

#include <string.h>

#include "base/bits.h"
#include "message/message.h"
#include "settings/settings.h"

static unsigned char pattern[8];

void tk_pattern_open(void)
{
    uint64_t value;
    tk_parse_pattern(tk_settings.sd_initval, &value);
    memcpy(pattern, &value, sizeof(pattern));
}

static size_t covered(size_t size)
{
    return tk_settings.sd_init ? tk_min(size, (size_t)tk_settings.sd_initlen) : 0;
}

void tk_pattern_fill(void *buffer, size_t size)
{
    unsigned char *at = buffer;
    for (size_t i = 0; i < covered(size); i++)
        at[i] = pattern[i % sizeof(pattern)];
}

/* A few bytes may be equal by chance: the whole 8-byte pattern must be there. */
bool tk_pattern_is_left(const void *buffer, size_t size)
{
    const unsigned char *at = buffer;
    size_t length = covered(size);
    for (size_t i = 0; i < length; i++)
        if (at[i] != pattern[i % sizeof(pattern)])
            return false;
    return length >= sizeof(pattern);
}
