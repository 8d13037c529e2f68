/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Makes our segment the second memory region that the switch writes to, so that payloads go
 * straight to their destination. We notify the controller when a segment exists, and again after a
 * group is re-created. Callers hold the group's lock, except for tk_mcast_settle(). */
#include "config.h"

#include "base/lock.h"
#include "collective/mcast_private.h"
#include "progress/progress.h"

static bool is_same(const struct tk_mcast_window *a, const struct tk_mcast_window *b)
{
    return a->base == b->base && a->size == b->size && a->rkey == b->rkey;
}

/* The region that the switch knows has become unusable, or may even be other memory by now. */
static bool is_current(const struct tk_mcast_group *group)
{
    struct tk_mcast_window now;
    return group->window.size && group->link->device->window(group->link, &now) &&
           is_same(&group->window, &now);
}

uint64_t tk_mcast_window_offset(const struct tk_mcast_group *group, const void *at, size_t nbytes)
{
    uint64_t offset = (uintptr_t)at - group->window.base;
    if (!is_current(group) || offset >= group->window.size ||
        nbytes > group->window.size - offset || nbytes > group->window.most)
        return tk_mcast_nowhere;
    return offset;
}

static void ask(struct tk_mcast_group *group, const struct tk_mcast_window *window)
{
    struct tk_mcsw_member mine = group->mine;
    mine.base = window->base;
    mine.rkey = window->rkey;
    group->window = (struct tk_mcast_window){.size = 0};
    group->asked = *window;
    group->asks_window = true;
    tk_mcsw_repair(&group->client, group->group, TK_MCSW_REPAIR_WINDOW, &mine, tk_mcast_request_ms);
}

/* If a switch refuses, the same request is not repeated. */
bool tk_mcast_window_care(struct tk_mcast_group *group)
{
    struct tk_mcast_window now;
    if (group->asks_window) {
        enum tk_mcsw_status status = tk_mcsw_step(&group->client);
        group->asks_window = status == TK_MCSW_GOING;
        if (status == TK_MCSW_DONE)
            group->window = group->asked;
        return !group->asks_window;
    }
    if (group->is_good && group->has_connection && group->link->device->window(group->link, &now) &&
        !is_same(&group->asked, &now))
        ask(group, &now);
    return false;
}

void tk_mcast_window_forget(struct tk_mcast_group *group)
{
    group->window = group->asked = (struct tk_mcast_window){.size = 0};
    group->asks_window = false;
}

static bool is_settled(struct tk_mcast_group *group)
{
    struct tk_mcast_window now;
    tk_lock(&group->lock);
    bool settled = !group->is_good || !group->link->device->window(group->link, &now) ||
                   (!group->asks_window && is_same(&group->asked, &now));
    tk_unlock(&group->lock);
    return settled;
}

void tk_mcast_settle(void)
{
    unsigned empty = 0;
    for (unsigned i = 0; i < tk_mcast_group_count; i++)
        while (tk_mcast_groups[i].link && !is_settled(&tk_mcast_groups[i]))
            tk_wait_step_silent(&empty);
}
