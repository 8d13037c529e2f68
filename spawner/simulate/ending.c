/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a job in order: ranks leave (leaving.c), enter the last fence and exit, and the head
 * judges their exits by its policy (spawner/head/policy.c). */
#include "config.h"

#include "launcher.h"

#include "exit/decide.h"
#include "spawner/head/policy.h"
#include "spawner/util/log.h"

#include <signal.h>

/* An entry of a report (spawner/wire/report.h), and the reports of a host: ranks finalize, and
 * exit. */
enum { entry_bytes = 12, reports_of_host = 2 };

static bool policy_open(struct simulation *s, struct policy *policy)
{
    if (!policy_init(policy, s->in.ranks, 0, 0)) {
        s->has_failed = true;
        return false;
    }
    for (uint32_t r = 0; r < s->in.ranks; r++) {
        policy_launched(policy, r, 1);
        policy_connected(policy, r, (int64_t)(s->ends[SIM_RANKS] / 1000000));
    }
    return true;
}

/* The head asks its policy after each frame. */
static void judge(struct simulation *s, struct policy *policy, int code, int64_t ms)
{
    for (uint32_t r = 0; r < s->in.ranks; r++)
        policy_finalized(policy, r);
    for (uint32_t h = 0, rank = 0; h < s->in.hosts; h++) {
        for (uint32_t i = 0; i < s->hosts[h].ranks; i++)
            policy_exited(policy, rank++, code << 8, ms);
        if (policy_must_end(policy, ms))
            s->frames.kill = sim_branches(s); /* those that have not left yet */
        policy_deadline(policy);
    }
    s->wanted = code;
    s->status = policy_all_gone(policy) ? policy_status(policy) : EXIT_RUNTIME;
}

/* Ranks that have not agreed by their deadline end the job with a failure. */
static void end_late(struct simulation *s)
{
    s->wanted = (int)s->in.code;
    s->status = EXIT_RUNTIME;
    s->ends[SIM_EXIT] = s->ends[SIM_CALLS] + (uint64_t)(tk_exit_timeout_of(s->in.ranks) * 1e9);
}

static void end_in_order(struct simulation *s, int code)
{
    struct policy policy;
    uint64_t first, last;
    s->pmix_puts += s->end.puts;
    sim_fence(s, sim_data_of_hosts(s).left);
    sim_spread_hosts(s, &first, &last);
    s->frames.done = s->in.hosts;
    s->frames.left = sim_branches(s);
    sim_head_works(s, sim_branches(s), 0);
    s->frames.report_least += reports_of_host * (uint64_t)s->in.hosts;
    uint64_t end = sim_from_all(s, 0, first, last);
    sim_head_works(s, reports_of_host * (uint64_t)s->in.hosts,
                   reports_of_host * entry_bytes * (uint64_t)s->in.ranks);
    s->ends[SIM_EXIT] = end;
    if (!policy_open(s, &policy))
        return;
    judge(s, &policy, code, (int64_t)(end / 1000000));
    policy_free(&policy);
}

void sim_end(struct simulation *s)
{
    s->end.head_frames = s->head_frames;
    s->end.head_bytes = s->head_bytes;
    int code = sim_leave(s);
    if (s->has_failed)
        return;
    if (s->is_late)
        end_late(s);
    else
        end_in_order(s, code);
}
