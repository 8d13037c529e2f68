/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Events: an operation of a stream that does nothing, and is kept. Owns the list of events. */
#include "config.h"

#include <stdlib.h>

#include "contrib/softgpu/device/device.h"

enum { EVENT_BLOCKING_SYNC = 1, EVENT_DISABLE_TIMING = 2 };

struct sgpu_event {
    struct sgpu_event *next;
    struct sgpu_context *context;
    struct sgpu_op *mark; /* NULL: not recorded */
    unsigned flags;
};

static struct sgpu_event *events;

int sgpu_event_create(struct sgpu_context *c, unsigned flags, struct sgpu_event **out)
{
    int status = sgpu_fault_call(SGPU_FAULT_STREAM, c->device);
    struct sgpu_event *e;

    if (status != SGPU_OK)
        return status;
    if (flags & ~(unsigned)(EVENT_BLOCKING_SYNC | EVENT_DISABLE_TIMING))
        return flags & 4 ? SGPU_NOT_SUPPORTED : SGPU_INVALID_VALUE; /* 4: for other processes */
    e = calloc(1, sizeof *e);
    if (!e)
        return SGPU_OUT_OF_MEMORY;
    e->context = c;
    e->flags = flags;
    e->next = events;
    *out = events = e;
    return SGPU_OK;
}

void sgpu_event_destroy(struct sgpu_event *e)
{
    struct sgpu_event **at = &events;

    while (*at != e)
        at = &(*at)->next;
    *at = e->next;
    if (e->mark)
        sgpu_op_put(e->mark);
    free(e);
}

struct sgpu_event *sgpu_event_find(const void *handle)
{
    struct sgpu_event *e = events;

    while (e && e != handle)
        e = e->next;
    return e;
}

struct sgpu_context *sgpu_event_context(const struct sgpu_event *e)
{
    return e->context;
}

void sgpu_events_end(const struct sgpu_context *c)
{
    struct sgpu_event *next;

    for (struct sgpu_event *e = events; e; e = next) {
        next = e->next;
        if (e->context == c)
            sgpu_event_destroy(e);
    }
}

int sgpu_event_record(struct sgpu_event *e, struct sgpu_stream *s)
{
    struct sgpu_op *mark = sgpu_op_create(SGPU_OP_MARK);
    int status = mark ? sgpu_stream_submit(s, mark, NULL) : SGPU_OUT_OF_MEMORY;

    if (status != SGPU_OK) {
        if (mark)
            sgpu_op_put(mark);
        return status;
    }
    if (e->mark)
        sgpu_op_put(e->mark);
    e->mark = mark;
    return SGPU_OK;
}

int sgpu_event_query(struct sgpu_event *e)
{
    if (e->context->failed)
        return e->context->failed;
    return e->mark && !e->mark->done ? SGPU_NOT_READY : SGPU_OK;
}

int sgpu_event_wait(struct sgpu_event *e)
{
    struct sgpu_context *c = e->context;
    struct sgpu_op *mark = e->mark ? sgpu_op_get(e->mark) : NULL;

    if (mark) {
        sgpu_op_wait(mark);
        sgpu_op_put(mark);
    }
    return c->failed;
}

int sgpu_event_elapsed(struct sgpu_event *from, struct sgpu_event *to, float *ms)
{
    if (!from->mark || !to->mark || ((from->flags | to->flags) & EVENT_DISABLE_TIMING))
        return SGPU_INVALID_HANDLE;
    if (!from->mark->done || !to->mark->done)
        return SGPU_NOT_READY;
    *ms = (float)((double)to->mark->finished - (double)from->mark->finished) / 1e6F;
    return SGPU_OK;
}

int sgpu_stream_wait_event(struct sgpu_stream *s, struct sgpu_event *e)
{
    struct sgpu_op *mark = e->mark && !e->mark->done ? sgpu_op_create(SGPU_OP_MARK) : NULL;
    int status;

    if (!e->mark || e->mark->done)
        return SGPU_OK;
    if (!mark)
        return SGPU_OUT_OF_MEMORY;
    status = sgpu_stream_submit(s, mark, e->mark);
    sgpu_op_put(mark);
    return status;
}
