/* SPDX-License-Identifier: BSD-3-Clause */
/* The guard's part of explaining a hang: answers the head's questions for what ranks wait for, and
 * for stacks, one gdb after the other. Owns that gdb and its output; one thread, no lock. */
#include "config.h"

#include "guard_private.h"
#include "spawner/base/clock.h"
#include "waits.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

/* Symbols of a large program take some seconds. */
enum { STACK_MS = 20000, STACK_BYTES = 12 << 10 };

void guard_send_waits(struct guard *g)
{
    struct waits_rank w;
    for (uint32_t i = 0; i < g->count; i++) {
        waits_read(g->session, g->first + i, g->pids[i], &w);
        w.is_done = g->finalized[i];
        guard_send(g, WIRE_WAITS, g->first + i, &w, sizeof(w));
    }
    guard_send(g, WIRE_WAITS_END, 0, NULL, 0);
}

static void send_stack(struct guard *g, uint32_t rank, const char *text, size_t length)
{
    guard_send(g, WIRE_STACK, rank, text, length);
}

static void start_next_stack(struct guard *g)
{
    char why[200];
    struct waits_rank w;
    while (!g->stack.gdb && g->stack.waiting > 0) {
        uint32_t rank = g->stack.ranks[0];
        memmove(g->stack.ranks, g->stack.ranks + 1, --g->stack.waiting * sizeof(rank));
        waits_read(g->session, rank, g->pids[rank - g->first], &w);
        if (!w.state) {
            send_stack(g, rank, w.why, strlen(w.why));
            continue;
        }
        g->stack.file = waits_start_stack((pid_t)w.pid, &g->stack.gdb, why, sizeof(why));
        if (g->stack.file < 0) {
            g->stack.gdb = 0;
            send_stack(g, rank, why, strlen(why));
            continue;
        }
        g->stack.rank = rank;
        g->stack.deadline = clock_ms() + STACK_MS;
    }
}

void guard_want_stack(struct guard *g, uint32_t rank)
{
    if (rank - g->first >= g->count || g->stack.waiting == STACKS_MAX || g->killing)
        return;
    g->stack.ranks[g->stack.waiting++] = rank;
    start_next_stack(g);
}

bool guard_stack_ended(struct guard *g, pid_t pid)
{
    char text[STACK_BYTES];
    if (!pid || pid != g->stack.gdb)
        return false;
    ssize_t n = pread(g->stack.file, text, sizeof(text), 0);
    close(g->stack.file);
    g->stack.gdb = 0;
    g->stack.deadline = CLOCK_NEVER;
    send_stack(g, g->stack.rank, text, n > 0 ? (size_t)n : 0);
    start_next_stack(g);
    return true;
}

/* What gdb has attached goes on when gdb is killed. */
void guard_watch_stack(struct guard *g)
{
    if (g->stack.gdb && clock_ms() >= g->stack.deadline) {
        kill(g->stack.gdb, SIGKILL);
        g->stack.deadline = CLOCK_NEVER;
    }
}
