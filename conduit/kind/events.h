/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Events of a device that no copy uses now. Creating one may take the driver a system call, so they
 * are kept. Thread-safe. */
#ifndef TK_KIND_EVENTS_H
#define TK_KIND_EVENTS_H

#include <stdint.h>
#include <stdlib.h>

#include "base/lock.h"
#include "base/report.h"

struct tk_kind_event {
    void *handle; /* of the vendor */
    struct tk_kind_event *next;
};

struct tk_kind_events {
    tk_lock_t lock;
    struct tk_kind_event *free;
};

static inline struct tk_kind_event *tk_kind_event_new(void *handle)
{
    struct tk_kind_event *event = calloc(1, sizeof(*event));
    if (!event)
        tk_panic("out of memory for an event of a device");
    event->handle = handle;
    return event;
}

static inline struct tk_kind_event *tk_kind_event_take(struct tk_kind_events *events)
{
    tk_lock(&events->lock);
    struct tk_kind_event *event = events->free;
    if (event)
        events->free = event->next;
    tk_unlock(&events->lock);
    return event;
}

static inline void tk_kind_event_give(struct tk_kind_events *events, struct tk_kind_event *event)
{
    tk_lock(&events->lock);
    event->next = events->free;
    events->free = event;
    tk_unlock(&events->lock);
}

#endif
