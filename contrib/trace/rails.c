/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See parse.h: the rails of an event. Pure. */
#include "config.h"

#include <string.h>

#include "contrib/trace/parse.h"

static bool read_rail(struct trace_word word, struct trace_rail *rail)
{
    const char *colon = word.length ? memchr(word.at, ':', word.length) : NULL;
    if (!colon)
        return false;
    size_t length = (size_t)(colon - word.at);
    const struct trace_word bytes = {colon + 1, word.length - length - 1};
    return trace_number32((struct trace_word){word.at, length}, &rail->rail) &&
           rail->rail < trace_rails_max && trace_number(bytes, &rail->bytes);
}

/* 0: it is not a list. */
static unsigned read_rails(struct trace_word rest, struct trace_rail rails[trace_rails_max])
{
    unsigned count = 0;
    while (rest.length > 0 && count < trace_rails_max) {
        const char *comma = memchr(rest.at, ',', rest.length);
        size_t length = comma ? (size_t)(comma - rest.at) : rest.length;
        if (!read_rail((struct trace_word){rest.at, length}, &rails[count++]))
            return 0;
        if (comma && ++length == rest.length)
            return 0;
        rest = (struct trace_word){rest.at + length, rest.length - length};
    }
    return rest.length ? 0 : count;
}

unsigned trace_rails_of(const struct trace_item *item, struct trace_rail rails[trace_rails_max])
{
    if (item->rail == trace_no_rail)
        return read_rails(item->rails, rails);
    rails[0] = (struct trace_rail){.rail = item->rail, .bytes = item->bytes};
    return 1;
}

bool trace_rails_read(struct trace_word rail, struct trace_word rails, struct trace_item *item)
{
    struct trace_rail list[trace_rails_max];
    item->rails = rails;
    if (rails.length && !read_rails(rails, list))
        return false;
    return !rail.length || (trace_number32(rail, &item->rail) && item->rail < trace_rails_max);
}
