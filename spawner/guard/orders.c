/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames through a guard: orders from above for this host and those below, reports from below, and
 * the exchange between the PMIx server of this host and those of others. Fills the guard's state;
 * no lock. / */
#include "config.h"

#include "guard_private.h"
#include "spawner/util/launcher_clock.h"
#include "spawner/children/children.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

static void orders_mute(struct guard *g, uint16_t stream)
{
    /* The ranks get a broken pipe, as they would without the launcher. */
    for (uint32_t i = 0; i < 2 * g->count; i++)
        if (g->pumps[i].stream == stream)
            pump_close(&g->pumps[i], &g->output);
}

static void start_if_possible(struct guard *g)
{
    if (g->server_ready && g->may_go && g->phase == GUARD_STARTING && !g->killing)
        guard_start_ranks(g);
}

/* Settings that depend on the answers of the hosts. */
static void keep_late_env(struct guard *g, const struct wire_frame *f)
{
    const char *text = (const char *)f->payload, *end = text + f->length;
    size_t count = 0, used = 0;

    if (!f->length || end[-1])
        return;
    for (const char *c = text; c < end; c += strlen(c) + 1)
        count++;
    g->late_env = calloc(count + 1, sizeof(*g->late_env));
    for (const char *c = text; g->late_env && c < end; c += strlen(c) + 1)
        g->late_env[used++] = strdup(c);
}

static void to_server(struct guard *g, const struct wire_frame *f)
{
    if (!g->server.ended)
        wire_relay(&g->server, f);
}

/* The head is about to stop itself and the job with it (Ctrl-Z): then its silence means nothing. */
static void watch_while_running(struct guard *g, int signal)
{
    if (g->tick_at == CLOCK_NEVER && !g->is_head_stopped)
        return;
    if (signal == SIGSTOP || signal == SIGCONT) {
        g->is_head_stopped = signal == SIGSTOP;
        g->tick_at = signal == SIGSTOP ? CLOCK_NEVER : clock_ms() + g->job->heartbeat_ms;
        g->silent = 0;
    }
}

/* An order for this host. */
static void obey(struct guard *g, const struct wire_frame *f)
{
    uint32_t number = f->length >= 4 ? wire_number(f->payload) : 0;

    switch (f->type) {
    case WIRE_GO:
        g->may_go = true;
        keep_late_env(g, f);
        start_if_possible(g);
        break;
    case WIRE_SIGNAL:
        children_signal(g->pids, g->count, (int)number);
        watch_while_running(g, (int)number);
        break;
    case WIRE_WANT_MARKS:
        guard_take_marks(g);
        break;
    case WIRE_EXPLAIN:
        guard_send_waits(g);
        break;
    case WIRE_TOP:
        guard_send_counts(g, f->rank);
        break;
    case WIRE_WANT_STACK:
        guard_want_stack(g, f->rank);
        break;
    case WIRE_MUTE:
        orders_mute(g, f->aux);
        break;
    case WIRE_FENCE_DONE:
    case WIRE_DMX_REQUEST:
    case WIRE_DMX_REPLY:
        to_server(g, f);
        break;
    default:
        break;
    }
}

/* Handles orders that each guard passes to the guards below by itself. False if the frame is
 * another order. */
static bool obey_step_by_step(struct guard *g, const struct wire_frame *f)
{
    if (f->type == WIRE_PING) {
        wire_send(&g->control, WIRE_PONG, 0, 0, NULL, 0);
        return true;
    }
    if (f->type != WIRE_KILL)
        return false;
    uint32_t grace_ms = f->length >= 4 ? wire_number(f->payload) : 0;
    wire_send(&g->control, WIRE_ENDING, 0, 0, NULL, 0);
    tree_kill(&g->tree, grace_ms);
    guard_end_ranks(g, grace_ms);
    return true;
}

void guard_take_orders(struct guard *g)
{
    struct wire_frame f;
    while (wire_next(&g->control, &f)) {
        if (obey_step_by_step(g, &f))
            continue;
        tree_send(&g->tree, f.host, (enum wire_type)f.type, f.aux, f.rank, f.payload, f.length);
        if (f.host == g->job->host || f.host == WIRE_ALL)
            obey(g, &f);
    }
}

void guard_take_input(struct guard *g)
{
    struct wire_frame f;
    while (wire_next(&g->output, &f))
        if (f.type == WIRE_STDIN)
            feed_put(&g->feed, f.payload, f.length);
}

static void take_from_server(struct guard *g, const struct wire_frame *f)
{
    switch (f->type) {
    case WIRE_ENV:
        guard_keep_env(g, f);
        break;
    case WIRE_READY:
        g->server_ready = true;
        start_if_possible(g);
        break;
    case WIRE_CONNECTED:
        guard_report(g, REPORT_CONNECTED, f->rank, 0);
        if (++g->connected_count == g->count)
            guard_hurry_reports(g);
        break;
    case WIRE_FINALIZED:
        guard_report(g, REPORT_FINALIZED, f->rank, 0);
        if (f->rank - g->first < g->count)
            g->finalized[f->rank - g->first] = true;
        if (++g->finalized_count == g->count)
            guard_hurry_reports(g);
        break;
    case WIRE_ABORT:
    case WIRE_FAILED:
        guard_send(g, (enum wire_type)f->type, f->rank, f->payload, f->length);
        break;
    case WIRE_FENCE:
    case WIRE_DMX_REQUEST:
    case WIRE_DMX_REPLY:
        wire_send(&g->control, (enum wire_type)f->type, f->aux, f->rank, f->payload, f->length);
        break;
    default:
        break;
    }
}

void guard_read_server(struct guard *g)
{
    struct wire_frame f;
    bool more = true;
    while (more) {
        more = wire_fill(&g->server);
        while (wire_next(&g->server, &f))
            take_from_server(g, &f);
    }
}

static void orders_control(void *owner, const struct wire_frame *f)
{
    struct guard *g = owner;
    wire_relay(&g->control, f);
}

static void orders_output(void *owner, const struct wire_frame *f)
{
    struct guard *g = owner;
    wire_relay(&g->output, f);
}

static void orders_lost(void *owner, uint32_t host, const char *why)
{
    struct guard *g = owner;
    wire_send_host(&g->control, host, WIRE_LOST, 0, 0, why, strlen(why));
}

/* Its ranks end when it does; nothing more can be done about them from here. */
static void orders_stuck(void *owner, uint32_t host, pid_t guard)
{
    (void)owner, (void)host, (void)guard;
}

static void orders_note(void *owner, const char *text)
{
    struct guard *g = owner;
    wire_send(&g->control, WIRE_NOTE, 0, 0, text, strlen(text));
}

const struct tree_events guard_tree_events = {orders_control, orders_output, orders_lost,
                                              orders_stuck, orders_note};
