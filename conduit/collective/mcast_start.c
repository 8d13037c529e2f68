/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Start of the groups, and the work after polls that keeps them going. Owns the table of groups,
 * which is constant once tk_mcast_begin() has returned. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/clock.h"
#include "base/lock.h"
#include "base/report.h"
#include "collective/exchange.h"
#include "collective/mcast_private.h"
#include "exit/exit.h"
#include "progress/progress.h"
#include "settings/settings.h"

/* ---- work after polls */

/* A receiver's slot changes without a message, so no doorbell rings. */
static bool progress(void)
{
    bool any = false;
    for (unsigned i = 0; i < tk_mcast_group_count; i++) {
        struct tk_mcast_group *group = &tk_mcast_groups[i];
        if (!group->link || !tk_trylock(&group->lock))
            continue;
        any |= tk_mcast_reap(group);
        any |= tk_mcast_live(group);
        tk_mcast_lock_care(group);
        tk_mcast_answer(group);
        tk_mcast_send_due(group);
        tk_unlock(&group->lock);
    }
    return any;
}

/* ---- start */

/* Combines the results of all ranks; every rank comes to the same conclusion. */
struct found {
    bool is_good;
    char why[200];
};

static struct tk_mcast_memory *memory_open(uint32_t members)
{
    void *memory = mmap(NULL, tk_mcast_memory_bytes(members), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* Each member keeps slots for every other member, so in a large job neighbours share one member. */
static void find_members(void)
{
    tk_mcast_all_ranks = tk_peers.size <= (uint32_t)tk_settings.mcast_ranks;
    for (uint32_t r = tk_peers.size; r-- > 0;)
        tk_mcast_ranks[tk_mcast_member(r)] = r;
}

static uint32_t member_count(void)
{
    return tk_mcast_all_ranks ? tk_peers.size : tk_topology.nbrhds;
}

static struct tk_mcast_link *link_open(struct tk_mcast_memory *memory, size_t size,
                                       const char **why)
{
    *why = "the job has no RDMA port that packets of RoCE v2 go by";
    for (unsigned i = 0; i < tk_transports.count; i++)
        if (tk_transports.at[i]->multicast)
            return tk_transports.at[i]->multicast->open(memory, size, why);
    return NULL;
}

static bool group_open(struct tk_mcast_group *group, unsigned index, struct found *found)
{
    const char *why = "no memory for the rings of slots";
    tk_lock_init(&group->lock);
    group->index = index;
    group->me = tk_mcast_member(tk_peers.me);
    group->members = member_count();
    group->all = tk_bitset_below(group->members);
    group->memory = memory_open(group->members);
    if (group->memory)
        group->link = link_open(group->memory, tk_mcast_memory_bytes(group->members), &why);
    if (!group->link)
        snprintf(found->why, sizeof(found->why), "%s", why);
    return group->link != NULL;
}

/* Rank 0 publishes where the switch is, and the secret that proves that a rank belongs to the job.
 */
static bool find_switch(struct tk_mcast_group *group, struct found *found)
{
    uint8_t key[TK_MCSW_KEY];
    bool has_key = tk_settings.mcast_key[0] != 0;
    if (!tk_mcsw_resolve(tk_settings.mcast_ctrl, &group->at, found->why, sizeof(found->why)) ||
        (has_key && !tk_mcsw_key_read(tk_settings.mcast_key, key, found->why, sizeof(found->why))))
        return false;
    if (tk_mcsw_job_make(&group->job, has_key ? key : NULL))
        return true;
    snprintf(found->why, sizeof(found->why), "the kernel gives no random bytes");
    return false;
}

static bool open_groups(struct found *found)
{
    tk_mcast_groups = calloc((size_t)tk_settings.mcast_groups, sizeof(*tk_mcast_groups));
    if (!tk_mcast_groups)
        tk_panic("out of memory for groups of a multicast switch");
    tk_mcast_group_count = (unsigned)tk_settings.mcast_groups;
    bool is_member = tk_mcast_ranks[tk_mcast_member(tk_peers.me)] == tk_peers.me, good = true;
    for (unsigned i = 0; i < tk_mcast_group_count; i++) {
        struct tk_mcast_group *group = &tk_mcast_groups[i];
        group->is_decided = !is_member;
        if (is_member && !group_open(group, i, found))
            good = false;
        if (tk_peers.me == 0 && good && i == 0)
            good = find_switch(group, found);
        group->at = tk_mcast_groups[0].at;
        group->job = tk_mcast_groups[0].job;
    }
    return good;
}

/* Waits until all ranks are ready for messages about groups, or one of them can't be: then no rank
 * begins. */
static bool all_agree(struct found *mine)
{
    struct found *all = calloc(tk_peers.size, sizeof(*all));
    if (!all)
        tk_panic("out of memory for what %u ranks found", tk_peers.size);
    tk_exchange(&tk_tm, TK_CALL_INIT, mine, all, sizeof(*mine));
    bool good = true;
    for (uint32_t r = 0; r < tk_peers.size && good; r++)
        if (!all[r].is_good) {
            good = false;
            *mine = all[r];
        }
    free(all);
    return good;
}

static void make_groups(struct found *found)
{
    found->is_good = true;
    for (unsigned i = 0; i < tk_mcast_group_count && tk_peers.me == 0; i++)
        tk_mcast_groups[i].life = TK_MCAST_LOST;
    tk_mcast_on = true; /* the coordinator's attempt is the first of those after a loss */
    for (unsigned i = 0; i < tk_mcast_group_count; i++) {
        struct tk_mcast_group *group = &tk_mcast_groups[i];
        unsigned empty = 0;
        while (!group->is_decided)
            tk_wait_step_silent(&empty);
        if (group->link && !group->is_good) {
            found->is_good = false;
            memcpy(found->why, group->why, sizeof(found->why));
        }
    }
}

static void close_groups(void)
{
    for (unsigned i = 0; i < tk_mcast_group_count; i++) {
        struct tk_mcast_group *group = &tk_mcast_groups[i];
        if (group->has_connection)
            tk_mcsw_close(&group->client);
        if (group->link)
            group->link->device->close(group->link);
        if (group->memory)
            munmap(group->memory, tk_mcast_memory_bytes(group->members));
        free(group->in);
        free(group->out);
    }
    tk_mcast_group_count = 0;
    free(tk_mcast_groups);
    tk_mcast_groups = NULL;
}

/* Only rank 0 reports; the others wait for the launcher, which it asks to end the job. */
static void do_without(const char *why)
{
    bool must = strcmp(tk_settings.mcast, "require") == 0;
    if (tk_peers.me == 0 && must) {
        tk_log_error("GASNET_MCAST=require: there is no multicast switch for this job: %s", why);
        tk_exit_failed();
    }
    if (tk_peers.me == 0 && tk_settings.verboseenv)
        tk_log_info("broadcasts go by trees: no multicast switch: %s", why);
    if (must)
        tk_exchange_barrier(&tk_tm, TK_CALL_INIT);
}

static void begin(struct found *found)
{
    find_members();
    found->is_good = open_groups(found);
    if (!all_agree(found))
        return;
    tk_progress_add(progress);
    tk_counter_add(&tk_deferred_work_wanted, 1);
    tk_counter_add(&tk_deferred_work_lacks_space, 1); /* slots change without a ring */
    make_groups(found);
    tk_exit_add(tk_mcast_leave);
    if (all_agree(found))
        return;
    tk_counter_add(&tk_deferred_work_wanted, -1);
    tk_counter_add(&tk_deferred_work_lacks_space, -1);
    found->is_good = false;
}

void tk_mcast_begin(void)
{
    struct found found = {.is_good = false};
    bool must = strcmp(tk_settings.mcast, "require") == 0;
    if (must && !TK_WITH_MCAST)
        do_without("this library was configured with --disable-mcast");
    if (!TK_WITH_MCAST || strcmp(tk_settings.mcast, "off") == 0 ||
        (!must && !tk_settings.mcast_ctrl[0]))
        return;
    if (tk_topology.nbrhds < 2)
        return; /* all ranks share memory: the switch is not needed */
    if (!tk_settings.mcast_ctrl[0])
        snprintf(found.why, sizeof(found.why), "GASNET_MCAST_CTRL names none");
    else if (tk_topology.nbrhds > tk_mcast_members)
        snprintf(found.why, sizeof(found.why),
                 "the job has %u neighbourhoods, and a group at most %d", tk_topology.nbrhds,
                 tk_mcast_members);
    else
        begin(&found);
    tk_mcast_on = found.is_good;
    tk_tm.coll->is_switched = tk_mcast_on && tk_mcast_fits(&tk_tm);
    if (tk_mcast_on)
        return;
    close_groups();
    do_without(found.why);
}

bool tk_mcast_fits(const struct trunkline_tm *tm)
{
    if (tm->is_plural || tm->leaders.ranks.count < 2)
        return false;
    for (uint32_t i = 0; i < tm->leaders.ranks.count; i++) {
        uint32_t rank = tk_team_jobrank((gex_TM_t)tm, tk_list_at(&tm->leaders.ranks, i));
        if (tk_mcast_ranks[tk_mcast_member(rank)] != rank)
            return false;
    }
    return true;
}

void tk_mcast_open(void)
{
    tk_mcast_receive_open();
}
