/* SPDX-License-Identifier: BSD-3-Clause */
/* The guard's part of gasnetrun_ibv --top: reads the counters, waits and memory of this host's
 * ranks from outside. Only reads, and only when asked; one thread, no lock. */
#include "config.h"

#include "guard_private.h"
#include "spawner/wire/counts.h"
#include "waits.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* More threads than have ever run at once; a longer list is invalid. */
enum { BLOCKS_MAX = 1 << 14 };

/* After that time a wait counts as over even if the record does not say that it ended. */
static const uint64_t still_fresh = UINT64_C(1000000000);

static bool add_part(pid_t pid, uint64_t address, uint64_t sign, struct tk_stats *sum)
{
    struct tk_stats part;
    if (!waits_copy(pid, address, &part, sizeof(part)))
        return false;
    tk_stats_add(sum, &part, sign);
    return true;
}

/* As tk_stats_sum(), from outside. */
static bool sum_of(pid_t pid, const struct tk_wait_counters *at, struct tk_stats *sum)
{
    struct {
        struct tk_stats stats;
        uint64_t next;
    } block;
    uint64_t address;
    *sum = (struct tk_stats){0};
    if (!add_part(pid, at->shared, 1, sum) || !waits_copy(pid, at->list, &address, sizeof(address)))
        return false;
    for (unsigned i = 0; address && i < BLOCKS_MAX; i++) {
        if (!waits_copy(pid, address, &block, sizeof(block)))
            return false;
        tk_stats_add(sum, &block.stats, 1);
        address = block.next;
    }
    if (!add_part(pid, at->at_reset, UINT64_MAX, sum))
        return false;
    tk_stats_fold(sum);
    return true;
}

static bool is_over(const struct waits_rank *w, const struct tk_wait_thread *t)
{
    bool may_be = t->why.kind == TK_WAITS_CONDITION || t->why.kind == TK_WAITS_LAUNCHER;
    return t->why.kind == TK_WAITS_NOT || (may_be && w->now - t->beat > still_fresh);
}

/* Of several waiting threads, the one that has waited longest. */
static void take_wait(const struct waits_rank *w, struct counts_rank *c)
{
    uint64_t since = UINT64_MAX;
    for (unsigned i = 0; i < tk_wait_threads; i++) {
        const struct tk_wait_thread *t = &w->page.threads[i];
        if (!w->thread_state[i] || is_over(w, t) || t->since >= since)
            continue;
        since = t->since;
        c->wait_kind = t->why.kind;
        c->wait_peer = t->why.peer;
        c->wait_state = w->thread_state[i];
        c->wait_ns = w->now > since ? w->now - since : 0;
    }
}

static void take_memory(struct counts_rank *c)
{
    char path[64], line[256];
    unsigned long long number;
    snprintf(path, sizeof(path), "/proc/%u/status", c->pid);
    FILE *status = fopen(path, "re");
    while (status && fgets(line, sizeof(line), status)) {
        if (sscanf(line, "VmRSS: %llu", &number) == 1)
            c->resident_kb = number;
        else if (sscanf(line, "RssAnon: %llu", &number) == 1)
            c->private_kb = number;
        else if (sscanf(line, "Threads: %llu", &number) == 1)
            c->threads = (uint32_t)number;
    }
    if (status)
        fclose(status);
}

static void take_counters(const struct waits_rank *w, struct counts_rank *c)
{
    const struct tk_wait_counters *at = &w->page.counters;
    struct tk_stats sum;
    if (at->layout != tk_stats_layout) {
        snprintf(c->why, sizeof(c->why), "its counters are those of another build of the library");
        return;
    }
    c->has_counters = sum_of((pid_t)w->pid, at, &sum);
    if (!c->has_counters)
        snprintf(c->why, sizeof(c->why), "its memory can't be read: %s", strerror(errno));
    for (unsigned i = 0; c->has_counters && i < tk_stats_rows_max; i++)
        c->values[i] = tk_stats_value(&sum, &tk_stats_rows[i]);
}

void waits_counts(const struct waits_rank *w, struct counts_rank *c)
{
    *c = (struct counts_rank){.pid = w->pid,
                              .is_there = true,
                              .is_done = w->is_done,
                              .state = w->state,
                              .wait_peer = tk_wait_nobody};
    if (w->state)
        take_memory(c);
    if (!w->has_record) {
        snprintf(c->why, sizeof(c->why), "%s", w->why);
        return;
    }
    c->rails = w->page.counters.rails;
    c->ns = w->now > w->page.opened ? w->now - w->page.opened : 0;
    take_wait(w, c);
    take_counters(w, c);
}

void guard_send_counts(struct guard *g, uint32_t question)
{
    struct waits_rank w;
    struct counts_rank c;
    for (uint32_t i = 0; i < g->count; i++) {
        waits_read(g->session, g->first + i, g->pids[i], &w);
        w.is_done = g->finalized[i];
        waits_counts(&w, &c);
        guard_send(g, WIRE_COUNTS, g->first + i, &c, sizeof(c));
    }
    guard_send(g, WIRE_COUNTS_END, question, NULL, 0);
}
