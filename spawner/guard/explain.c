/* SPDX-License-Identifier: BSD-3-Clause */
/* The guard's part of explaining a hang: answers the head's requests for the waits of ranks, and
 * for stacks, one rank after another: by gdb, else by the rank itself. Owns that gdb and its
 * output; one thread, no lock. */
#include "config.h"

#include "guard_private.h"
#include "spawner/children/children.h"
#include "spawner/util/launcher_clock.h"
#include "session.h"
#include "stacks.h"
#include "waits.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Symbols of a large program take some seconds. */
enum { STACK_MS = 20000, OWN_MS = 2000, OWN_LOOK_MS = 20, STACK_BYTES = 12 << 10 };

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

static void start_next_stack(struct guard *g);

static void send_stack(struct guard *g, uint32_t rank, const char *text, size_t length)
{
    guard_send(g, WIRE_STACK, rank, text, length);
}

static void end_stack(struct guard *g, const char *text, size_t length)
{
    uint32_t rank = g->stack.rank;
    g->stack.gdb = 0;
    g->stack.asked = 0;
    g->stack.deadline = CLOCK_NEVER;
    send_stack(g, rank, text, length);
}

/* gdb failed; `why` is its message, or why it was not started. */
static void ask_rank(struct guard *g, const char *why)
{
    char reason[120], text[400];
    struct waits_rank w;
    struct tk_rank_slot slot = session_slot(g->session, g->stack.rank);
    waits_read(g->session, g->stack.rank, g->pids[g->stack.rank - g->first], &w);
    g->stack.gdb = 0;
    g->stack.pid = (pid_t)slot.pid;
    g->stack.asked = stacks_ask(g->session, g->stack.rank, &slot, w.state, reason, sizeof(reason));
    if (!g->stack.asked) {
        int n = snprintf(text, sizeof(text), "%s; %s", why, reason);
        end_stack(g, text, (size_t)n);
        return;
    }
    g->stack.deadline = clock_ms() + OWN_LOOK_MS;
    g->stack.own_until = clock_ms() + OWN_MS;
}

static void look_at_answers(struct guard *g)
{
    static const char none[] = "its threads have not answered the signal to show them";
    char text[STACK_BYTES];
    bool all =
        stacks_read(g->session, g->stack.rank, g->stack.pid, g->stack.asked, text, sizeof(text));
    g->stack.deadline = clock_ms() + OWN_LOOK_MS;
    if (!all && clock_ms() < g->stack.own_until)
        return;
    stacks_end(g->session, g->stack.rank);
    if (*text)
        end_stack(g, text, strlen(text));
    else
        end_stack(g, none, sizeof(none) - 1);
    start_next_stack(g);
}

static void start_stack(struct guard *g, uint32_t rank)
{
    char why[200];
    struct waits_rank w;
    waits_read(g->session, rank, g->pids[rank - g->first], &w);
    if (!w.state) {
        send_stack(g, rank, w.why, strlen(w.why));
        return;
    }
    g->stack.rank = rank;
    g->stack.file = waits_start_stack((pid_t)w.pid, &g->stack.gdb, why, sizeof(why));
    if (g->stack.file < 0)
        ask_rank(g, why);
    else
        g->stack.deadline = clock_ms() + STACK_MS;
}

static void start_next_stack(struct guard *g)
{
    while (!g->stack.gdb && !g->stack.asked && g->stack.waiting > 0) {
        uint32_t rank = g->stack.ranks[0];
        memmove(g->stack.ranks, g->stack.ranks + 1, --g->stack.waiting * sizeof(rank));
        start_stack(g, rank);
    }
}

void guard_want_stack(struct guard *g, uint32_t rank)
{
    if (rank - g->first >= g->count || g->stack.waiting == STACKS_MAX || g->killing)
        return;
    g->stack.ranks[g->stack.waiting++] = rank;
    start_next_stack(g);
}

/* The reason that gdb prints if it may not attach: the line about ptrace, or the last line. */
static void find_reason(const char *text, char *why, size_t size)
{
    const char *line = strstr(text, "ptrace"), *end;
    if (!line) {
        end = text + strlen(text);
        while (end > text && end[-1] == '\n')
            end--;
        for (line = end; line > text && line[-1] != '\n'; line--)
            continue;
    }
    snprintf(why, size, "gdb says: %.*s", (int)strcspn(line, "\n"), line);
}

bool guard_stack_ended(struct guard *g, pid_t pid)
{
    char text[STACK_BYTES], why[200];
    if (!pid || pid != g->stack.gdb)
        return false;
    ssize_t n = pread(g->stack.file, text, sizeof(text) - 1, 0);
    close(g->stack.file);
    text[n > 0 ? n : 0] = 0;
    if (strstr(text, "\n#0 ")) {
        end_stack(g, text, strlen(text));
    } else {
        find_reason(text, why, sizeof(why));
        ask_rank(g, why);
    }
    start_next_stack(g);
    return true;
}

/* A process to which gdb was attached continues when gdb is killed. */
void guard_watch_stack(struct guard *g)
{
    if (clock_ms() < g->stack.deadline)
        return;
    if (g->stack.asked) {
        look_at_answers(g);
    } else if (g->stack.gdb) {
        child_signal(g->stack.gdb, SIGKILL);
        g->stack.deadline = CLOCK_NEVER;
    }
}
