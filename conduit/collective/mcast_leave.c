/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The end of groups in an orderly exit: a lock that was kept is released at once; then, when all
 * ranks leave, members leave their groups and the coordinator, as the last one, destroys them. In
 * other exits broken connections and the lease end the groups. */
#include "config.h"

#include "base/lock.h"
#include "collective/mcast_private.h"

enum { request_ms = 1000 };

static bool is_coordinator(const struct tk_mcast_group *group)
{
    return group->me == 0;
}

/* A member leaves only if it has been ready and does not wait for an answer. */
static bool has_to_leave(const struct tk_mcast_group *group)
{
    return group->link && group->has_connection &&
           (group->life == TK_MCAST_REST || group->life == TK_MCAST_GONE);
}

static bool is_silent(struct tk_mcast_group *group)
{
    if (group->is_good && group->holds)
        tk_mcast_release(group);
    tk_mcast_reap(group);
    return !group->is_good || (!group->flying && !group->releases);
}

/* The coordinator leaves last: others cannot leave a group that is destroyed. */
static void ask(struct tk_mcast_group *group)
{
    if (is_coordinator(group)) {
        tk_mcsw_step(&group->client);
        if (group->left + 1 < group->members && group->client.fd >= 0)
            return;
        tk_mcsw_destroy(&group->client, group->group, request_ms);
    } else {
        tk_mcsw_leave(&group->client, group->group, group->me, request_ms);
    }
    group->is_good = false;
    group->life = TK_MCAST_GONE;
}

/* True: it has left. One request at a time. */
static bool step(struct tk_mcast_group *group, bool all)
{
    if (!has_to_leave(group))
        return true;
    if (group->asks_window && !tk_mcast_window_care(group))
        return false;
    if (group->life == TK_MCAST_REST && is_silent(group) && all && has_to_leave(group))
        ask(group);
    if (group->life != TK_MCAST_GONE || tk_mcsw_step(&group->client) == TK_MCSW_GOING)
        return !has_to_leave(group);
    tk_mcsw_close(&group->client);
    group->has_connection = false;
    return true;
}

/* A thread of the client may hold a lock for ever. */
bool tk_mcast_leave(bool all)
{
    bool done = true;
    for (unsigned i = 0; i < tk_mcast_group_count; i++) {
        struct tk_mcast_group *group = &tk_mcast_groups[i];
        if (!group->link)
            continue;
        if (!tk_trylock(&group->lock)) {
            done = false;
            continue;
        }
        done &= step(group, all);
        tk_unlock(&group->lock);
    }
    return done;
}
