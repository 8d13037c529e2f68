/* SPDX-License-Identifier: BSD-3-Clause */
/* A host fails while all ranks are in a barrier. Two notice: the guard above it, at once if its
 * connections are closed and else by their silence; and ranks that send it messages, when their
 * device gives up. Both tell the head, whose policy (spawner/head/policy.c) ends the job, and all
 * other guards end their ranks. */
#include "config.h"

#include "launcher.h"

#include "exit/state.h"
#include "settings/settings.h"
#include "spawner/head/policy.h"
#include "spawner/tree/shape.h"
#include "spawner/tree/tree.h"
#include "spawner/util/log.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* An order, the code of an abort, an entry of a report, and a sentence. */
enum { order_bytes = 4, code_bytes = 4, entry_bytes = 12, text_bytes = 100 };

static const uint64_t never = UINT64_MAX;

struct accusation {
    uint64_t time;
    uint32_t rank, lost;
};

static struct {
    struct simulation *s;
    struct policy policy;
    uint32_t host, end;    /* the hosts that are lost: the one that fails, and those below it */
    struct accusation *by; /* in the order in which ranks send */
    uint32_t count, space;
    uint64_t loss; /* when the guard above has noticed */
} failing;

static bool is_lost(uint32_t host)
{
    return host >= failing.host && host < failing.end;
}

/* The head itself has started the guard of that host. */
static bool is_below_head(const struct simulation *s, uint32_t host)
{
    uint32_t degree = (uint32_t)tk_settings.ssh_out_degree;
    for (uint32_t i = 0; i < sim_branches(s); i++)
        if (shape_begin(0, s->in.hosts, degree, i) == host)
            return true;
    return false;
}

/* Until a device gives up a message: its timeout, 4.096 us times a power of two, for each try. A
 * device may wait up to four times as long. Timeout 0: it never does. */
static uint64_t giving_up(void)
{
    return (UINT64_C(4096) << tk_settings.qp_timeout) * (uint64_t)(tk_settings.qp_retry_count + 1);
}

/* A rank that has lost a peer fails, and asks the launcher to end the job; only the failed host's
 * own ranks are gone, so guards below it that are lost with it accuse nobody. */
static void accuse(void *unused, uint32_t from, uint32_t to, uint64_t time)
{
    struct simulation *s = failing.s;
    struct tk_exit_state state = {.pid = 1};
    (void)unused;
    if (s->host_of[to] != failing.host || tk_settings.qp_timeout == 0 ||
        !tk_state_fail(&state, "peer unreachable"))
        return;
    if (failing.count == failing.space) {
        uint32_t space = failing.space ? 2 * failing.space : 64;
        struct accusation *more = realloc(failing.by, space * sizeof(*more));
        s->has_failed |= !more;
        if (!more)
            return;
        failing.by = more;
        failing.space = space;
    }
    failing.by[failing.count++] =
        (struct accusation){time + giving_up() + sim_levels(s) * sim_frame_time(s, text_bytes),
                            s->first[from], s->first[to]};
}

static int by_time(const void *a, const void *b)
{
    const struct accusation *x = a, *y = b;
    return x->time < y->time ? -1 : x->time > y->time;
}

static void launch(struct simulation *s)
{
    for (uint32_t r = 0; r < s->in.ranks; r++) {
        policy_launched(&failing.policy, r, 1);
        policy_connected(&failing.policy, r, (int64_t)(s->ends[SIM_RANKS] / 1000000));
    }
}

static void take_abort(struct simulation *s, const struct accusation *a)
{
    char text[32];
    int length = snprintf(text, sizeof(text), "peer %u unreachable", a->lost);
    s->frames.abort++;
    sim_head_works(s, 1, code_bytes + (uint64_t)length);
    policy_aborted(&failing.policy, a->rank, 1, text, (size_t)length, (int64_t)(a->time / 1000000));
}

static void take_loss(struct simulation *s, uint64_t now)
{
    static const char why[] = "its guard does not answer";
    for (uint32_t h = failing.host; h < failing.end; h++)
        policy_lost(&failing.policy, s->first[s->hosts[h].first], s->hosts[h].ranks);
    policy_launcher_failed(&failing.policy, why, sizeof(why) - 1, (int64_t)(now / 1000000));
}

/* Until the policy ends the job, what comes first counts. Returns when that is; `never` where
 * nobody notices. */
static uint64_t decide(struct simulation *s)
{
    uint32_t next = 0;
    bool is_known = false;
    for (;;) {
        int64_t deadline = policy_deadline(&failing.policy);
        uint64_t ends = deadline == INT64_MAX ? never : (uint64_t)deadline * 1000000;
        uint64_t abort = next < failing.count ? failing.by[next].time : never;
        uint64_t loss = is_known ? never : failing.loss;
        if (ends == never && abort == never && loss == never)
            return never;
        if (ends <= abort && ends <= loss) {
            if (policy_must_end(&failing.policy, deadline))
                return ends;
        } else if (abort <= loss) {
            take_abort(s, &failing.by[next++]);
        } else {
            take_loss(s, loss);
            is_known = true;
        }
    }
}

/* All others end by the launcher's SIGTERM, whatever they had begun. */
static void end_others(struct simulation *s, uint64_t now)
{
    struct tk_exit_state state = {.pid = 1};
    tk_state_ask(&state);
    if (!tk_state_end_by_signal(&state, 128 + SIGTERM, SIGTERM))
        s->status = -1;
    for (uint32_t h = 0; h < s->in.hosts; h++)
        for (uint32_t i = 0; !is_lost(h) && i < s->hosts[h].ranks; i++)
            policy_exited(&failing.policy, s->first[s->hosts[h].first] + i, SIGTERM,
                          (int64_t)(now / 1000000));
}

/* Guards of the hosts lost, and those below them, take no part. Another guard reports the loss; the
 * head sees that of its own branches. */
static void count_frames(struct simulation *s)
{
    bool is_head_branch = is_below_head(s, failing.host);
    uint64_t reached = sim_branches(s) - is_head_branch;
    s->frames.lost = !is_head_branch;
    s->frames.kill = s->frames.ending = s->frames.left = reached;
    s->frames.done = s->in.hosts - (failing.end - failing.host);
    sim_head_works(s, s->frames.done + 3 * reached, entry_bytes * (uint64_t)s->in.ranks);
}

/* A guard that is silent takes no order either: it is given up after that, if it was not before. */
static uint64_t given_up(uint64_t decided)
{
    uint64_t ordered = decided + TREE_ANSWER_MS * UINT64_C(1000000);
    if (failing.loss <= decided)
        return decided;
    return failing.loss < ordered ? failing.loss : ordered;
}

static void fail(struct simulation *s)
{
    uint64_t heartbeat = (uint64_t)(tk_settings.ssh_heartbeat * 1e9);
    uint64_t begins = s->ends[SIM_CALLS];
    failing.loss = begins + (s->in.is_silent ? (TREE_SILENT_MAX + 1) * heartbeat : 0) +
                   sim_levels(s) * sim_frame_time(s, text_bytes);
    if (s->in.is_silent && heartbeat == 0)
        failing.loss = never;
    launch(s);
    sim_get_stuck(s, failing.host, failing.end, accuse, NULL);
    if (failing.count)
        qsort(failing.by, failing.count, sizeof(*failing.by), by_time);
    uint64_t decided = decide(s);
    s->hangs = decided == never;
    if (s->hangs)
        return;
    uint64_t now = decided + sim_to_all(s, order_bytes);
    end_others(s, now);
    now += sim_levels(s) * sim_frame_time(s, entry_bytes) +
           s->in.ranks / s->in.hosts * s->costs.rank_guard;
    if (given_up(decided) > now)
        now = given_up(decided);
    if (failing.loss > decided)
        take_loss(s, now);
    s->wanted = EXIT_RUNTIME;
    s->status = policy_all_gone(&failing.policy) ? policy_status(&failing.policy) : -1;
    count_frames(s);
    sim_each_rank(s, s->costs.rank_guard, 0);
    s->ends[SIM_FAILURE] = s->ends[SIM_EXIT] = now;
}

void sim_fail(struct simulation *s)
{
    uint32_t degree = (uint32_t)tk_settings.ssh_out_degree;
    s->end.head_frames = s->head_frames;
    s->end.head_bytes = s->head_bytes;
    failing.s = s;
    failing.host = (uint32_t)s->in.fails;
    failing.end = shape_end(s->in.hosts, degree, failing.host);
    if (policy_init(&failing.policy, s->in.ranks, 0, 0))
        fail(s);
    else
        s->has_failed = true;
    policy_free(&failing.policy);
    free(failing.by);
    failing.by = NULL;
    failing.count = failing.space = 0;
}
