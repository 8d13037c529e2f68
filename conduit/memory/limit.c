/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How large a segment may be. No state. */
#include "config.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/report.h"
#include "memory/memory.h"
#include "settings/settings.h"

/* Message buffers and libraries of a process; only subtracted from a limit that says "including
 * internals" (/H). */
static const uint64_t internal_bytes = 64u << 20;

static enum tk_status refuse(const char *text)
{
    tk_complain("GASNET_MAX_SEGSIZE='%s' is not a size (as 512M, 2GB) or a fraction (as 0.85), "
                "followed by nothing, /P or /H",
                text);
    return TK_FAIL;
}

/* Where many ranks share little, the library's own need is small too: it goes by what is used. */
static double without_internals(double bytes)
{
    double internals = (double)internal_bytes;
    return bytes - (internals < bytes / 4 ? internals : bytes / 4);
}

enum tk_status tk_segment_limit(const char *text, uint64_t host_memory, unsigned ranks_on_host,
                                uint64_t *limit)
{
    char number[64];
    double bytes;
    size_t length = strcspn(text, "/");
    const char *share = text + length;
    bool per_host = !strcasecmp(share, "/H");
    if ((*share && !per_host && strcasecmp(share, "/P")) || length == 0 || length >= sizeof(number))
        return refuse(text);
    memcpy(number, text, length);
    number[length] = 0;
    bool has_unit = isalpha((unsigned char)number[length - 1]);
    if (tk_parse_size(number, "B", &bytes) != TK_OK || !(bytes > 0) || bytes >= 0x1p62)
        return refuse(text);
    if (!has_unit && bytes <= 1)
        bytes *= (double)host_memory;
    if (per_host)
        bytes = without_internals(bytes / ranks_on_host);
    if (bytes > (double)host_memory)
        bytes = (double)host_memory;
    if (bytes < (double)tk_page_size())
        bytes = (double)tk_page_size();
    *limit = (uint64_t)bytes & ~(uint64_t)(tk_page_size() - 1);
    return TK_OK;
}
