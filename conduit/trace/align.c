/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See align.h. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "common/clock.h"
#include "trace/align.h"

static int64_t offset_at(const struct tk_trace_alignment *a, uint64_t at)
{
    if (!a->end.at || a->end.at <= a->start.at)
        return a->start.ns;
    /* Grows with `at`, at most half as fast, so nested calls stay nested. */
    double passed = ((double)at - (double)a->start.at) / (double)(a->end.at - a->start.at);
    return a->start.ns + (int64_t)((double)(a->end.ns - a->start.ns) * passed);
}

uint64_t tk_trace_aligned(const struct tk_trace_alignment *alignment, uint64_t at)
{
    return at + (uint64_t)offset_at(alignment, at);
}

static uint64_t distance(int64_t a, int64_t b)
{
    return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

uint64_t tk_trace_error(const struct tk_trace_alignment *alignment)
{
    return tk_max(alignment->start.error, alignment->end.error);
}

bool tk_trace_align_end(struct tk_trace_alignment *alignment, const struct tk_trace_offset *end)
{
    uint64_t drift = distance(end->ns, alignment->start.ns);
    alignment->end = *end;
    if (drift > alignment->start.error + end->error && drift < (end->at - alignment->start.at) / 2)
        return true;
    alignment->end.ns = alignment->start.ns;
    alignment->end.error += drift;
    return false;
}

/* ---- lines ---- */

/* A time in a line; the blanks after it belong to it, except for one that separates words. */
struct place {
    char *at;
    size_t width;
    uint64_t ns;
};

static struct place place_at(char *at, const char *end, bool json)
{
    struct place place = {.at = at};
    for (; at < end && ((*at >= '0' && *at <= '9') || *at == '.'); at++)
        if (*at != '.')
            place.ns = 10 * place.ns + (uint64_t)(*at - '0');
    bool is_last = true;
    for (; at < end && *at == ' '; at++)
        is_last = at + 1 == end;
    place.width = (size_t)(at - place.at) - (json || is_last ? 0 : 1);
    return place;
}

/* `unit`: ns per unit before the decimal point; 1: there is no point. */
static void write_at(const struct place *place, uint64_t ns, uint64_t unit)
{
    char text[48];
    int length = snprintf(text, sizeof(text), "%" PRIu64, ns / unit);
    if (unit > 1)
        length += snprintf(text + length, sizeof(text) - (size_t)length, ".%0*" PRIu64,
                           unit == TK_SECOND ? 9 : 3, ns % unit);
    if ((size_t)length > place->width)
        return;
    memcpy(place->at, text, (size_t)length);
    memset(place->at + length, ' ', place->width - (size_t)length);
}

static char *behind(char *from, const char *end, const char *mark)
{
    char *found = memmem(from, (size_t)(end - from), mark, strlen(mark));
    return found ? found + strlen(mark) : NULL;
}

static void correct_line(const struct tk_trace_alignment *alignment, char *line, const char *end,
                         bool json)
{
    char *begins = json ? behind(line, end, ",\"ts\":") : line;
    if (!begins || *line == '#')
        return;
    char *lasts = behind(begins, end, json ? ",\"dur\":" : " ns=");
    struct place begin = place_at(begins, end, json);
    uint64_t was = begin.ns - (uint64_t)alignment->start.ns;
    uint64_t is = tk_trace_aligned(alignment, was);
    write_at(&begin, is, json ? 1000 : TK_SECOND);
    if (!lasts)
        return;
    struct place duration = place_at(lasts, end, json);
    write_at(&duration, tk_trace_aligned(alignment, was + duration.ns) - is, json ? 1000 : 1);
}

void tk_trace_correct(const struct tk_trace_alignment *alignment, char *bytes, size_t length,
                      bool json)
{
    char *end = bytes + length;
    while (bytes < end) {
        char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        char *next = newline ? newline + 1 : end;
        correct_line(alignment, bytes, newline ? newline : end, json);
        bytes = next;
    }
}
