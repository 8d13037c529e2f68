/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The pattern at the beginning of buffers that Prepare provides, in debug builds: a buffer
 * committed unchanged was probably never written. Owns the pattern, set at start-up; no lock. */
#include "config.h"

#include <string.h>
#include <strings.h>

#include "base/bits.h"
#include "base/report.h"
#include "message/message.h"
#include "settings/settings.h"
#include "tools/tools.h"

static unsigned char pattern[8];

/* Names for "not a number" that users know from other tools. */
static bool pattern_parse(const char *text, uint64_t *value)
{
    int64_t number;
    *value = UINT64_C(0x7ff7ffffffffffff); /* a signalling NaN */
    if (!strcasecmp(text, "NAN") || !strcasecmp(text, "sNAN") || !strcasecmp(text, "qNAN"))
        return true;
    bool is_number = tk_tools_whole_number(text, 0, &number);
    *value = (uint64_t)number;
    return is_number;
}

enum tk_status tk_pattern_open(void)
{
    uint64_t value;
    if (!pattern_parse(tk_settings.sd_initval, &value)) {
        tk_log_error("GASNET_SD_INITVAL='%s' is not a 64-bit integer (decimal or 0x...) or "
                     "NAN",
                     tk_settings.sd_initval);
        return TK_FAIL;
    }
    memcpy(pattern, &value, sizeof(pattern));
    return TK_OK;
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
