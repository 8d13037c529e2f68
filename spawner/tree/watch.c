/* SPDX-License-Identifier: BSD-3-Clause */
/* Guards that do not answer: each is asked at intervals, and must answer the order to end the job.
 * A process that was itself stopped for a while does not count that time against the guards. */
#include "config.h"

#include "spawner/util/launcher_clock.h"
#include "spawner/util/procinfo.h"
#include "tree.h"
#include "tree_private.h"

#include <stdio.h>

/* The kernel kills the ranks when the guard dies; this bounds the wait for its end. */
enum { SWEEP_MS = 5000 };

void tree_kill(struct tree *t, uint32_t grace_ms)
{
    t->ending = true;
    agent_set_cancel(&t->agents);
    for (uint32_t i = 0; i < t->count; i++) {
        struct tree_branch *b = &t->branches[i];
        if (!b->is_open || b->control.ended)
            continue;
        wire_send_number(&b->control, WIRE_KILL, 0, grace_ms);
        if (!b->answered && b->answer_by == CLOCK_NEVER)
            b->answer_by = clock_ms() + TREE_ANSWER_MS;
    }
}

static void describe(const struct tree *t, const struct tree_branch *b, char *text, size_t size)
{
    char doing[400];
    if (!tree_is_forked(t, b->host)) {
        snprintf(text, size, "host %s: its guard does not answer", t->job->hosts[b->host].name);
        return;
    }
    procinfo_describe(b->agent->pid, NULL, doing, sizeof(doing));
    char what[600];
    snprintf(what, sizeof(what), "the guard (pid %d) does not answer, killing it: %s",
             (int)b->agent->pid, doing);
    branch_explain(t, b->host, what, text, size);
}

/* Both sockets end with the guard. But the end of a host that was switched off shows only on a
 * socket on which data is sent, and no data is sent on the output socket: once the first socket has
 * ended, the other one counts as ended too when no more data arrives on it. Data that has arrived
 * already may wait for the reader of our output. */
static void watch_output(struct tree_branch *b)
{
    struct pollfd p = {b->output.fd, POLLIN, 0};

    if (!b->is_open || !b->control.ended)
        return;
    if (b->output.ended) {
        b->answer_by = CLOCK_NEVER;
    } else if (b->answer_by == CLOCK_NEVER || (clock_ms() >= b->answer_by && poll(&p, 1, 0) > 0)) {
        b->answer_by = clock_ms() + SWEEP_MS;
    } else if (clock_ms() >= b->answer_by) {
        b->output.ended = true;
        b->answer_by = CLOCK_NEVER;
    }
}

/* A guard that has not taken the order to end the job is stopped or stuck in the kernel: it is
 * killed, and the kernel kills the ranks and the server with it. A guard that survives SIGKILL is
 * left behind. */
static void watch_answer(struct tree *t, struct tree_branch *b)
{
    char text[700];

    watch_output(b);
    if (b->control.ended || clock_ms() < b->answer_by)
        return;
    if (!b->abandoned) {
        describe(t, b, text, sizeof(text));
        t->events->note(t->owner, text);
        b->abandoned = true;
        b->answer_by = clock_ms() + SWEEP_MS;
        branch_kill(t, b);
        return;
    }
    b->answer_by = CLOCK_NEVER;
    b->control.ended = b->output.ended = true;
    t->events->stuck(t->owner, b->host, b->agent->pid);
    branch_lose(t, b, "the guard process does not end even by SIGKILL; it is left behind");
}

static void ask(struct tree *t, struct tree_branch *b)
{
    char what[100];

    if (!b->is_open || b->control.ended || b->abandoned)
        return;
    if (b->silent < TREE_SILENT_MAX) {
        b->silent++;
        wire_send(&b->control, WIRE_PING, 0, 0, NULL, 0);
        return;
    }
    snprintf(what, sizeof(what),
             "no sign of life for %g s; the host, or its guard, is stopped or cut off",
             TREE_SILENT_MAX * t->job->heartbeat_ms / 1000.0);
    branch_explain(t, b->host, what, b->why, sizeof(b->why));
    b->abandoned = true;
    b->answer_by = clock_ms() + SWEEP_MS;
    branch_kill(t, b);
}

static void watch_silence(struct tree *t, int64_t now)
{
    if (now < t->tick_at)
        return;
    bool late = now - t->tick_at > t->job->heartbeat_ms;
    t->tick_at = now + t->job->heartbeat_ms;
    for (uint32_t i = 0; i < t->count; i++) {
        if (late)
            t->branches[i].silent = 0;
        ask(t, &t->branches[i]);
    }
}

void tree_watch(struct tree *t)
{
    watch_silence(t, clock_ms());
    for (uint32_t i = 0; i < t->count; i++)
        watch_answer(t, &t->branches[i]);
}

int64_t tree_deadline(const struct tree *t)
{
    int64_t deadline = clock_earlier(t->tick_at, agent_set_deadline(&t->agents));
    for (uint32_t i = 0; i < t->count; i++)
        deadline = clock_earlier(deadline, t->branches[i].answer_by);
    return deadline;
}
