/* SPDX-License-Identifier: BSD-3-Clause */
/* How the job ends on a host: the phases of a guard after its ranks were started. Every process and
 * file of the job on this host is gone before the guard is. One thread, no lock. */
#include "config.h"

#include "guard_private.h"
#include "session.h"
#include "spawner/util/launcher_clock.h"
#include "spawner/util/log.h"
#include "spawner/util/procinfo.h"
#include "spawner/children/children.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Once no process of the job is left, only a descriptor passed to a process outside of the job can
 * keep a pipe open. */
enum { DRAIN_MS = 1000 };

/* SIGKILL is repeated at this pace, for processes that were forked while it was being sent. */
enum { KILL_AGAIN_MS = 100 };

/* A process that lives longer than this after SIGKILL is uninterruptible and cannot be ended. */
enum { SWEEP_MS = 5000 };

/* The guards below that were forked here die too, so their directories are removed here. */
static void remove_sessions(struct guard *g)
{
    if (!g->job->keep)
        session_remove(g->session);
    session_remove_hosts(g->job, g->job->host + 1, g->end);
}

void guard_abandon(struct guard *g)
{
    children_signal(g->pids, g->count, SIGKILL);
    children_signal_all(SIGKILL, NULL, 0);
    children_sweep(clock_ms() + SWEEP_MS);
    remove_sessions(g);
    _exit(EXIT_RUNTIME);
}

static void kill_everything(struct guard *g)
{
    children_signal(g->pids, g->count, SIGKILL);
    children_signal_all(SIGKILL, g->apart, tree_pids(&g->tree, g->apart));
    int64_t now = clock_ms();
    if (g->patience == CLOCK_NEVER)
        g->patience = now + SWEEP_MS;
    else if (now - KILL_AGAIN_MS > g->deadline)
        g->patience += now - g->deadline; /* a guard without CPU has killed nobody */
    g->deadline = now + KILL_AGAIN_MS;
}

void guard_end_ranks(struct guard *g, uint32_t grace_ms)
{
    if (g->phase == GUARD_SENDING && grace_ms == 0)
        guard_drop_files(g); /* the user does not want to wait for a long trace */
    if (g->phase >= GUARD_DRAINING)
        return;
    g->killing = true;
    if (grace_ms == 0) {
        kill_everything(g);
        return;
    }
    children_signal(g->pids, g->count, SIGTERM);
    children_signal(g->pids, g->count, SIGCONT); /* a stopped process would not see SIGTERM */
    g->deadline = clock_ms() + grace_ms;
}

/* Whether no process of the job is left on this host. Guards of other hosts, or the processes that
 * represent them, are children too. */
static bool childless(struct guard *g)
{
    siginfo_t info;
    size_t apart = tree_pids(&g->tree, g->apart);
    if (apart)
        return children_signal_all(0, g->apart, apart) == 0;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
}

static void begin_cleaning(struct guard *g)
{
    g->phase = GUARD_CLEANING;
    child_signal(g->server_pid, SIGKILL);
    if (g->killing && g->deadline != CLOCK_NEVER)
        g->deadline = clock_earlier(g->deadline, clock_ms() + g->job->grace_ms);
    else
        g->deadline = clock_ms() + g->job->grace_ms;
    size_t apart = tree_pids(&g->tree, g->apart);
    if (g->server_pid)
        g->apart[apart++] = g->server_pid;
    children_signal_all(SIGTERM, g->apart, apart);
}

static bool pumps_open(const struct guard *g)
{
    for (uint32_t i = 0; i < 2 * g->count; i++)
        if (g->pumps[i].fd >= 0)
            return true;
    return false;
}

/* This host is over. */
static void end_host(struct guard *g)
{
    if (!g->job->keep)
        session_remove(g->session);
    wire_send(&g->output, WIRE_OUTPUT_END, 0, 0, NULL, 0);
    guard_send(g, WIRE_DONE, 0, NULL, 0);
    g->phase = GUARD_RELAYING;
    g->deadline = g->patience = CLOCK_NEVER;
}

/* Time counts only while the head keeps up, so that a user who pages through the output gets all of
 * it. */
static void guard_drain(struct guard *g)
{
    if (g->output.out.length)
        g->deadline = clock_ms() + DRAIN_MS;
    if (clock_ms() < g->deadline && pumps_open(g))
        return;
    for (uint32_t i = 0; i < 2 * g->count; i++)
        pump_close(&g->pumps[i], &g->output);
    g->phase = GUARD_SENDING;
    g->deadline = CLOCK_NEVER;
}

/* Called when no process is left below and all output has been passed up. If a guard below was
 * killed, this guard cleans up its processes and files. */
static void leave_if_over(struct guard *g)
{
    if (!tree_is_over(&g->tree) || !tree_is_silent(&g->tree))
        return;
    if (!childless(g)) {
        children_signal_all(SIGKILL, NULL, 0);
        if (!g->left_some)
            children_sweep(clock_ms() + SWEEP_MS);
    }
    session_remove_hosts(g->job, g->job->host + 1, g->end);
    wire_send_now(&g->output, WIRE_OUTPUT_END, 0, 0, NULL, 0);
    wire_send_now(&g->control, WIRE_LEFT, 0, 0, NULL, 0);
    _exit(0);
}

/* Appends a process to a list in a sentence; false if it does not fit. */
static bool add_unkillable(const struct guard *g, pid_t pid, char *text, size_t size)
{
    char name[40], doing[200];
    size_t used = strlen(text);

    snprintf(name, sizeof(name), "pid %d", (int)pid);
    for (uint32_t i = 0; i < g->count; i++)
        if (g->pids[i] == pid)
            snprintf(name, sizeof(name), "rank %u (pid %d)", g->first + i, (int)pid);
    procinfo_describe(pid, NULL, doing, sizeof(doing));
    if (snprintf(text + used, size - used, "%s%s is %s", used ? ", " : "", name, doing) <
        (int)(size - used))
        return true;
    text[used] = 0;
    return false;
}

/* Gives up a process in an uninterruptible sleep, or one that has changed its user. */
static void leave_unkillable(struct guard *g)
{
    enum { NAMED_MAX = 3 };
    char text[330] = "", more[32] = ""; /* the head keeps 511 bytes of a sentence */
    pid_t left[NAMED_MAX];

    g->patience = CLOCK_NEVER;
    if (g->phase == GUARD_DRAINING || g->phase == GUARD_SENDING || childless(g))
        return;
    unsigned count = children_list(left, NAMED_MAX, g->apart, tree_pids(&g->tree, g->apart));
    unsigned named = 0;
    g->left_some = true;
    while (named < count && named < NAMED_MAX && add_unkillable(g, left[named], text, sizeof(text)))
        named++;
    if (named < count)
        snprintf(more, sizeof(more), ", and %u more", count - named);
    guard_show_failure(
        g, "processes of the job do not end even by SIGKILL; they are left behind: %s%s", text,
        more);
    g->phase = GUARD_DRAINING;
    g->deadline = clock_ms() + DRAIN_MS;
}

static void report_late_server(struct guard *g)
{
    char doing[400];
    procinfo_describe(g->server_pid, NULL, doing, sizeof(doing));
    guard_report_failure(g, "the PMIx server (pid %d) did not start within 60 s; it is %s",
                         (int)g->server_pid, doing);
    g->deadline = CLOCK_NEVER;
}

void guard_advance(struct guard *g)
{
    bool late = clock_ms() >= g->deadline;

    if (g->phase == GUARD_STARTING && late && !g->killing)
        report_late_server(g);
    bool over = g->alive == 0 && (g->killing || g->phase == GUARD_RUNNING);
    if (g->phase <= GUARD_RUNNING && over)
        begin_cleaning(g);
    if (g->phase == GUARD_CLEANING && childless(g)) {
        g->phase = GUARD_DRAINING;
        g->deadline = clock_ms() + DRAIN_MS;
    }
    if (g->phase < GUARD_DRAINING && late && (g->killing || g->phase == GUARD_CLEANING))
        kill_everything(g);
    if (clock_ms() >= g->patience)
        leave_unkillable(g);
    if (g->phase == GUARD_DRAINING)
        guard_drain(g);
    if (g->phase == GUARD_SENDING && guard_send_files(g))
        end_host(g);
    if (g->phase == GUARD_RELAYING)
        leave_if_over(g);
}
