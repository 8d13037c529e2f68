/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Maximum size of a segment. No state. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/report.h"
#include "memory/memory.h"
#include "settings/settings.h"

/* Message buffers and libraries of a process; only subtracted from a limit that says "including
 * internals" (/H). */
static const uint64_t internal_bytes = 64u << 20;

/* A client may have given it (gasnet_max_segsize_str). */
static enum tk_status segsize_refuse(const char *text)
{
    tk_log_error("GASNET_MAX_SEGSIZE='%s' is not a size (as 512M, 2GB) or a fraction (as 0.85), "
                 "followed by nothing, /P or /H",
                 text);
    return TK_FAIL;
}

/* If many ranks share little memory, the library itself takes little too: it takes memory as it is
 * used. */
static double without_internals(double bytes)
{
    double internals = (double)internal_bytes;
    return bytes - (internals < bytes / 4 ? internals : bytes / 4);
}

/* Untouched pages take no memory, so an explicit size may exceed what is left, provided that all
 * ranks of the host can touch somewhat more than a tenth of theirs. A fraction of the host's memory
 * is a fraction of its free memory, and memory that a device pins must be available as a whole. */
static double bound(double bytes, bool is_share, const struct tk_segment_bounds *bounds)
{
    enum { times_share = 8 };
    double share = (double)bounds->left / bounds->ranks;
    double pinnable = (double)bounds->pinnable / bounds->ranks;
    bool is_pinned = bounds->pinnable != UINT64_MAX;
    double max = is_share || is_pinned ? without_internals(share) : times_share * share;
    if (is_pinned && max > without_internals(pinnable))
        max = without_internals(pinnable);
    if (max > (double)bounds->memory)
        max = (double)bounds->memory;
    return bytes < max ? bytes : max;
}

enum tk_status tk_segment_limit(const char *text, const struct tk_segment_bounds *bounds,
                                uint64_t *limit)
{
    struct tk_segsize asked;
    if (!tk_parse_segsize(text, &asked))
        return segsize_refuse(text);
    double bytes = asked.bytes;
    if (!asked.has_unit && bytes <= 1)
        bytes *= (double)bounds->memory;
    if (asked.is_per_host)
        bytes = without_internals(bytes / bounds->ranks);
    bytes = bound(bytes, asked.is_per_host, bounds);
    if (bytes < (double)tk_page_size())
        bytes = (double)tk_page_size();
    *limit = (uint64_t)bytes & ~(uint64_t)(tk_page_size() - 1);
    return TK_OK;
}
