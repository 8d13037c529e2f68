/* SPDX-License-Identifier: BSD-3-Clause */
/* See events.h. */
#include "config.h"

#include "events.h"

#include <stdlib.h>

static bool is_before(const struct sim_event *a, const struct sim_event *b)
{
    return a->time < b->time || (a->time == b->time && (int32_t)(a->order - b->order) < 0);
}

static bool grow(struct sim_events *e)
{
    uint32_t space = e->space ? 2 * e->space : 1024;
    struct sim_event *at = realloc(e->at, space * sizeof(*at));
    if (!at)
        return false;
    e->at = at;
    e->space = space;
    return true;
}

bool sim_events_add(struct sim_events *e, uint64_t time, uint32_t what, uint32_t a, uint32_t b,
                    uint64_t c)
{
    if (e->count == e->space && !grow(e))
        return false;
    const struct sim_event event = {time, e->added++, what, a, b, c};
    uint32_t i = e->count++;
    while (i > 0 && is_before(&event, &e->at[(i - 1) / 2])) {
        e->at[i] = e->at[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    e->at[i] = event;
    return true;
}

bool sim_events_next(struct sim_events *e, struct sim_event *event)
{
    if (e->count == 0)
        return false;
    *event = e->at[0];
    const struct sim_event last = e->at[--e->count];
    uint32_t i = 0, below;
    while ((below = 2 * i + 1) < e->count) {
        if (below + 1 < e->count && is_before(&e->at[below + 1], &e->at[below]))
            below++;
        if (!is_before(&e->at[below], &last))
            break;
        e->at[i] = e->at[below];
        i = below;
    }
    e->at[i] = last;
    return true;
}

void sim_events_free(struct sim_events *e)
{
    free(e->at);
    *e = (struct sim_events){0};
}
