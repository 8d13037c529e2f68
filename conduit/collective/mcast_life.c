/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The life of a group: the coordinator, which is its first member, asks the switch's controller for
 * it and offers it to the others; all join and read the switch's status; a broadcast to all tests
 * it; then the coordinator lets all use it. A group that was found broken is created again in the
 * same way, after 1, 2, 4 ... s; meanwhile broadcasts use trees. Nothing here blocks: polls advance
 * it. With the group's lock held. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "base/report.h"
#include "collective/mcast_private.h"
#include "message/message.h"
#include "settings/settings.h"

enum {
    member_ms =
        50, /* additional time for each member if a rank waits for all: a host may have many */
    retry_max = 64, /* s */
    failed = 2,     /* of those that are ready */
    status_version = 1,
    status_levels = 1, /* bit */
};
static const uint64_t step_limit = 15 * TK_SECOND; /* longer than its request */
/* Two acknowledgement timeouts, but a host that is busy may need longer for anything; a device
 * reports a switch that is not reached. */
static const uint64_t status_least = 10 * TK_SECOND;

/* From the coordinator to the others. */
struct offer {
    struct sockaddr_storage at;
    struct tk_mcsw_job job;
    uint32_t group, era;
};

static bool is_coordinator(const struct tk_mcast_group *group)
{
    return group->me == 0;
}

/* ---- ends of an attempt */

static void lose_connection(struct tk_mcast_group *group)
{
    if (group->has_connection)
        tk_mcsw_close(&group->client);
    group->has_connection = false;
}

static void attempt_failed(struct tk_mcast_group *group, const char *why)
{
    if (!group->why[0])
        snprintf(group->why, sizeof(group->why), "%s", why);
    group->link->device->stop(group->link);
    lose_connection(group);
    group->is_good = group->test_flies = false;
    group->is_decided = true;
    group->life = TK_MCAST_LOST;
    if (!is_coordinator(group)) {
        tk_mcast_notify(group, 0, TK_MCAST_READY, group->era, failed, 0);
        return;
    }
    tk_mcast_notify_all(group, TK_MCAST_USE, group->era, false);
    group->retry = group->retry ? (uint32_t)tk_min(2 * group->retry, retry_max) : 1;
    group->retry_at = tk_now() + group->retry * TK_SECOND;
}

void tk_mcast_use_era(struct tk_mcast_group *group, uint32_t era, bool good)
{
    if (era != group->era && !(group->life == TK_MCAST_REST && !good))
        return;
    group->is_decided = true;
    if (good) {
        group->is_good = group->was_good = true;
        group->life = TK_MCAST_REST;
    } else if (group->life != TK_MCAST_LOST) {
        tk_mcast_break(group, "", false);
        if (!group->why[0])
            snprintf(group->why, sizeof(group->why), "rank %u gave it up", tk_mcast_ranks[0]);
        group->link->device->stop(group->link);
        group->life = TK_MCAST_LOST;
    }
}

/* Messages in flight may have arrived at some receivers: their roots ask. */
void tk_mcast_break(struct tk_mcast_group *group, const char *how, bool tell)
{
    if (!group->is_good && group->life != TK_MCAST_TEST)
        return;
    group->is_decided = true;
    group->is_good = group->holds = group->is_wanted = false;
    group->link->device->stop(group->link);
    for (unsigned i = 0; i < tk_mcast_slots; i++)
        if (group->uses[i].state == TK_MCAST_FLYING)
            group->uses[i].state = TK_MCAST_FAILED;
    group->flying = group->releases = 0;
    if (tell) {
        tk_mcast_notify_all(group, TK_MCAST_BROKEN, group->era, 0);
        if (tk_settings.verboseenv)
            tk_log_info("broadcasts go by trees: the group of the multicast switch broke (%s)",
                        how);
    }
    group->life = TK_MCAST_LOST;
    group->retry = 1;
    group->retry_at = tk_now() + TK_SECOND;
}

/* ---- joining */

static uint32_t more_ms(const struct tk_mcast_group *group)
{
    return member_ms * group->members;
}

static void go(struct tk_mcast_group *group, enum tk_mcast_life life)
{
    group->life = life;
    group->deadline = tk_now() + step_limit + more_ms(group) * UINT64_C(1000000);
}

/* Other events need no action here: their cause makes broadcasts fail, which ends the group. */
static void count_leaver(void *context, const struct tk_mcsw_event *event)
{
    struct tk_mcast_group *group = context;
    if (event->kind == TK_MCSW_MEMBER_LEFT && event->group == group->group)
        group->left++;
}

static void dial(struct tk_mcast_group *group, enum tk_mcast_life life)
{
    lose_connection(group);
    tk_mcsw_dial(&group->client, &group->at, &group->job, tk_mcast_request_ms);
    group->client.event = count_leaver;
    group->client.context = group;
    group->left = 0;
    group->has_connection = true;
    go(group, life);
}

/* Of a group of two levels. */
static uint32_t leaves_of(const struct tk_mcast_group *group)
{
    return group->members > TK_MCSW_LEAF ? (group->members + TK_MCSW_LEAF - 1) / TK_MCSW_LEAF : 0;
}

static void join(struct tk_mcast_group *group)
{
    struct tk_mcsw_member mine;
    const char *why;
    group->lease = (uint64_t)group->client.info.lease * 1000000;
    if (!group->link->device->reset(group->link, &group->client.info, &mine, &why)) {
        attempt_failed(group, why);
        return;
    }
    if (mine.mtu < tk_mcast_control_bytes(leaves_of(group))) {
        attempt_failed(group, "a control for so many members is longer than the path MTU");
        return;
    }
    mine.rank = group->me;
    group->mine = mine;
    tk_mcast_window_forget(group);
    tk_mcsw_join(&group->client, group->group, &mine, tk_mcast_request_ms + more_ms(group));
    go(group, TK_MCAST_JOIN);
}

static void read_status(struct tk_mcast_group *group)
{
    struct tk_mcast_memory *memory = group->memory;
    if (group->client.place.leaves != leaves_of(group)) {
        attempt_failed(group, "the switch cuts the group into another number of leaves");
        return;
    }
    memset(memory->status, 0, sizeof(memory->status));
    if (!group->link->device->connect(group->link, &group->client.info, &group->client.place) ||
        !group->link->device->read_status(group->link, memory->status, sizeof(memory->status),
                                          tk_mcast_id_status)) {
        attempt_failed(group, "the device does not connect to the switch");
        return;
    }
    go(group, TK_MCAST_STATUS);
    uint64_t least = status_least + more_ms(group) * UINT64_C(1000000);
    group->deadline = tk_now() + tk_max(2 * (UINT64_C(4096) << tk_settings.mcast_timeout), least);
}

static void say_ready(struct tk_mcast_group *group, bool got)
{
    if (is_coordinator(group))
        tk_mcast_is_ready(group, 0, group->era, got);
    else
        tk_mcast_notify(group, 0, TK_MCAST_READY, group->era, got, 0);
}

/* Magic, version and capabilities. */
static void status_came(struct tk_mcast_group *group, bool has_failed, const char *how)
{
    const uint8_t *status = group->memory->status;
    if (has_failed || status[0] != 0x4d || status[1] != 0x43) {
        attempt_failed(group, has_failed ? how : "what answers is no multicast switch");
        return;
    }
    if (status[2] != status_version || (leaves_of(group) && !(status[3] & status_levels))) {
        attempt_failed(group, "the switch is of another version, or can't have two levels");
        return;
    }
    go(group, TK_MCAST_TEST);
    say_ready(group, false);
}

static void completed(struct tk_mcast_group *group, uint64_t id, bool has_failed, const char *how)
{
    if (id == tk_mcast_id_release && !has_failed)
        group->releases--;
    else if (id == tk_mcast_id_status && group->life == TK_MCAST_STATUS)
        status_came(group, has_failed, how);
    else if (id == tk_mcast_id_test && group->life == TK_MCAST_TEST && has_failed)
        attempt_failed(group, how);
    else if (id == tk_mcast_id_test && group->life == TK_MCAST_TEST)
        say_ready(group, true);
}

/* ---- the coordinator */

static void make_offer(struct tk_mcast_group *group)
{
    struct offer offer = {
        .at = group->at, .job = group->job, .group = group->client.group, .era = group->era + 1};
    while (group->offered + 1 < group->members &&
           tk_mcast_send_offer(group, group->offered + 1, &offer, sizeof(offer)))
        group->offered++;
    if (group->offered + 1 < group->members)
        return;
    group->era++;
    group->group = group->client.group;
    group->ready = group->got = (struct tk_bitset){{0}};
    group->test_flies = false;
    join(group);
}

void tk_mcast_is_ready(struct tk_mcast_group *group, uint32_t member, uint32_t era, uint32_t got)
{
    if (group->life == TK_MCAST_LOST || group->life == TK_MCAST_REST || era != group->era)
        return;
    if (got == failed) {
        char why[64];
        snprintf(why, sizeof(why), "rank %u does not reach the switch", tk_mcast_ranks[member]);
        attempt_failed(group, why);
        return;
    }
    tk_bitset_add(got ? &group->got : &group->ready, member);
    if (!tk_bitset_equal(&group->got, &group->all))
        return;
    tk_mcast_notify_all(group, TK_MCAST_USE, group->era, true);
    tk_mcast_use_era(group, group->era, true);
    group->retry = 0;
}

static void test(struct tk_mcast_group *group)
{
    if (!is_coordinator(group)) {
        if (atomic_load_explicit(&group->memory->test, memory_order_acquire) != group->era ||
            group->tested == group->era)
            return;
        group->tested = group->era;
        say_ready(group, true);
    } else if (tk_bitset_equal(&group->ready, &group->all) && !group->test_flies) {
        group->test_flies = true;
        if (!tk_mcast_post_test(group))
            attempt_failed(group, "the device takes no request for it");
    }
}

/* ---- the others */

void tk_mcast_offered(struct tk_mcast_group *group, const void *bytes, size_t size)
{
    struct offer offer;
    if (size != sizeof(offer) || !group->link)
        return;
    memcpy(&offer, bytes, size);
    tk_mcast_break(group, "", false);
    group->at = offer.at;
    group->job = offer.job;
    group->group = offer.group;
    group->era = offer.era;
    group->tested = 0;
    go(group, TK_MCAST_JOIN_DIAL);
    lose_connection(group);
}

/* ---- steps */

static void answered(struct tk_mcast_group *group)
{
    switch (group->life) {
    case TK_MCAST_DIAL:
    case TK_MCAST_JOIN_DIAL:
        tk_mcsw_probe(&group->client, tk_mcast_request_ms);
        go(group, group->life == TK_MCAST_DIAL ? TK_MCAST_CREATE : TK_MCAST_PROBE);
        return;
    case TK_MCAST_PROBE:
        join(group);
        return;
    case TK_MCAST_JOIN:
        read_status(group);
        return;
    case TK_MCAST_CREATE:
        if (group->client.group) {
            make_offer(group);
            return;
        }
        if (group->members > group->client.info.members) {
            attempt_failed(group, "the job has more neighbourhoods than the switch takes");
            return;
        }
        tk_mcsw_create(&group->client, group->members, tk_mcast_request_ms);
        return;
    default:
        return;
    }
}

static bool asks(const struct tk_mcast_group *group)
{
    return group->life >= TK_MCAST_DIAL && group->life <= TK_MCAST_JOIN;
}

static void ask(struct tk_mcast_group *group)
{
    if (group->life == TK_MCAST_JOIN_DIAL && !group->has_connection) {
        dial(group, TK_MCAST_JOIN_DIAL);
        return;
    }
    enum tk_mcsw_status status = tk_mcsw_step(&group->client);
    if (status == TK_MCSW_REFUSED)
        attempt_failed(group, group->client.why);
    else if (status == TK_MCSW_DONE)
        answered(group);
}

/* True if anything came to its end. */
bool tk_mcast_live(struct tk_mcast_group *group)
{
    enum tk_mcast_life life = group->life;
    if (life == TK_MCAST_REST)
        return tk_mcast_window_care(group);
    if (life == TK_MCAST_NONE || life == TK_MCAST_GONE)
        return false;
    if (life == TK_MCAST_LOST) {
        if (is_coordinator(group) && tk_mcast_on && tk_now() > group->retry_at) {
            group->offered = 0;
            group->client.group = 0;
            dial(group, TK_MCAST_DIAL);
        }
        return false;
    }
    if (asks(group))
        ask(group);
    else if (life == TK_MCAST_TEST)
        test(group);
    if (group->life != TK_MCAST_LOST && tk_now() > group->deadline)
        attempt_failed(group, "the switch does not answer");
    return group->life != life;
}

/* True if anything came to its end. */
bool tk_mcast_reap(struct tk_mcast_group *group)
{
    uint64_t id;
    bool has_failed, any = false;
    const char *how;
    while (group->link->device->poll(group->link, &id, &has_failed, &how)) {
        any = true;
        if (has_failed && group->is_good)
            group->trouble = how;
        else if (id < tk_mcast_slots && !has_failed)
            tk_mcast_use_arrived(group, (unsigned)id);
        else if (id >= tk_mcast_slots)
            completed(group, id, has_failed, how);
    }
    if (group->trouble)
        tk_mcast_break(group, group->trouble, true);
    group->trouble = NULL;
    return any;
}
