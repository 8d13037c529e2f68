/* SPDX-License-Identifier: BSD-3-Clause */
/* Branches and their frames; see tree.h. watch.c monitors the branches. */
#include "config.h"

#include "shape.h"
#include "spawner/children/children.h"
#include "spawner/util/launcher_clock.h"
#include "spawner/wire/hello.h"
#include "spawner/wire/job_frame.h"
#include "tree.h"
#include "tree_private.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

bool tree_is_forked(const struct tree *t, uint32_t host)
{
    return t->job->agent == JOB_AGENT_FORK || t->job->hosts[host].is_virtual;
}

void branch_explain(const struct tree *t, uint32_t host, const char *what, char *text, size_t size)
{
    if (t->job->host_count == 1)
        snprintf(text, size, "%s", what);
    else
        snprintf(text, size, "host %s: %s", t->job->hosts[host].name, what);
}

/* Marks both channels as ended on this side, even if the other end does not know it yet. */
static void branch_cut(struct tree_branch *b)
{
    b->control.ended = b->output.ended = true;
    b->answer_by = CLOCK_NEVER;
}

void branch_lose(struct tree *t, struct tree_branch *b, const char *why)
{
    if (b->lost || b->left)
        return;
    b->lost = true;
    b->answer_by = CLOCK_NEVER;
    t->events->lost(t->owner, b->host, why);
}

void branch_kill(struct tree *t, struct tree_branch *b)
{
    child_signal(b->agent->pid, SIGKILL);
    if (tree_is_forked(t, b->host))
        return; /* the end of its sockets follows */
    branch_cut(b);
    branch_lose(t, b, b->why);
}

static void branch_open(struct tree *t, struct tree_branch *b)
{
    struct agent *a = b->agent;

    if (a->state == AGENT_FAILED) {
        branch_cut(b);
        branch_lose(t, b, a->why);
        return;
    }
    wire_open(&b->control, a->control, WIRE_ALL);
    wire_open(&b->output, a->output, WIRE_ALL);
    b->is_open = true;
    if (t->ending)
        wire_send_number(&b->control, WIRE_KILL, 0, 0);
}

static void take_ready_agents(struct tree *t)
{
    for (struct agent *a; (a = agent_set_next(&t->agents));)
        for (uint32_t i = 0; i < t->count; i++)
            if (t->branches[i].agent == a)
                branch_open(t, &t->branches[i]);
}

bool tree_grow(struct tree *t, const struct job *job, uint32_t first, uint32_t end,
               agent_guard *guard, const struct tree_events *events, void *owner)
{
    *t = (struct tree){.job = job, .events = events, .owner = owner, .tick_at = CLOCK_NEVER};
    uint32_t count = first < end ? shape_blocks(first, end, job->out_degree) : 0;
    t->branches = calloc((size_t)count + 1, sizeof(*t->branches));
    if (!t->branches || !agent_set_open(&t->agents, job, count, guard))
        return false;
    if (count)
        job_frame_pack(job, clock_ms(), &t->job_frame);
    if (count && job->heartbeat_ms && job->host_count > 1)
        t->tick_at = clock_ms() + job->heartbeat_ms;
    for (; t->count < count; t->count++) {
        struct tree_branch *b = &t->branches[t->count];
        b->host = shape_begin(first, end, job->out_degree, t->count);
        b->end = shape_begin(first, end, job->out_degree, t->count + 1);
        b->answer_by = CLOCK_NEVER;
        b->control.fd = b->output.fd = -1;
        b->agent = &t->agents.agents[t->count];
        agent_set_start(&t->agents, b->host);
    }
    take_ready_agents(t);
    return true;
}

void tree_send(struct tree *t, uint32_t host, enum wire_type type, uint16_t aux, uint32_t rank,
               const void *payload, size_t length)
{
    for (uint32_t i = 0; i < t->count; i++) {
        struct tree_branch *b = &t->branches[i];
        if (b->is_open && (host == WIRE_ALL || (host >= b->host && host < b->end)))
            wire_send_host(&b->control, host, type, aux, rank, payload, length);
    }
}

void tree_send_number(struct tree *t, enum wire_type type, uint32_t number)
{
    uint8_t p[4];
    wire_put_number(p, number);
    tree_send(t, WIRE_ALL, type, 0, 0, p, sizeof(p));
}

void tree_flush(struct tree *t)
{
    for (uint32_t i = 0; i < t->count; i++) {
        wire_flush(&t->branches[i].control);
        wire_flush(&t->branches[i].output);
    }
}

static void branch_refuse(struct tree *t, struct tree_branch *b, const char *what)
{
    branch_explain(t, b->host, what, b->why, sizeof(b->why));
    branch_kill(t, b);
}

/* The launcher on the other host must be the same build as this one, on the same architecture. */
static bool branch_fits(struct tree *t, struct tree_branch *b, const struct wire_frame *f)
{
    struct hello here, there;
    char why[200] = "a message of its guard is damaged";

    hello_here(&here, HELLO_PORTS_UNKNOWN);
    if (hello_unpack(&there, f->payload, f->length) && hello_fits(&here, &there, why, sizeof(why)))
        return true;
    branch_refuse(t, b, why);
    return false;
}

/* Handles the first frame of a branch: a guard of the same version asks for the job. */
static bool branch_greet(struct tree *t, struct tree_branch *b, const struct wire_frame *f)
{
    if (f->type != WIRE_HELLO) {
        branch_refuse(t, b, "what answers there is not a guard of this launcher");
        return false;
    }
    if (f->aux != WIRE_VERSION) {
        branch_refuse(t, b, "the launcher there is of another version");
        return false;
    }
    if (!tree_is_forked(t, b->host) && !branch_fits(t, b, f))
        return false;
    b->said_hello = true;
    wire_send_host(&b->control, b->host, WIRE_JOB, 0, 0, bytes_front(&t->job_frame),
                   t->job_frame.length);
    return true;
}

/* A frame must come from a host of the branch. */
static bool branch_take(struct tree *t, struct tree_branch *b, struct wire_frame *f)
{
    if (!b->said_hello) {
        f->host = b->host;
        return branch_greet(t, b, f);
    }
    if (f->type == WIRE_PONG) /* a guard may not know its host yet */
        return true;
    if (f->host >= b->host && f->host < b->end)
        return true;
    branch_refuse(t, b, "a message of its guard is damaged");
    return false;
}

static void branch_read_control(struct tree *t, struct tree_branch *b)
{
    struct wire_frame f;
    if (wire_fill(&b->control))
        b->silent = 0;
    while (!b->lost && wire_next(&b->control, &f)) {
        if (!branch_take(t, b, &f))
            return;
        if (f.type == WIRE_ENDING) {
            b->answered = true;
            b->answer_by = CLOCK_NEVER;
        } else if (f.type == WIRE_LEFT) {
            b->left = true;
        } else if (f.type != WIRE_PONG) {
            t->events->control(t->owner, &f);
        }
    }
}

static void branch_read_output(struct tree *t, struct tree_branch *b)
{
    struct wire_frame f;
    if (wire_fill(&b->output))
        b->silent = 0;
    while (wire_next(&b->output, &f))
        t->events->output(t->owner, &f);
}

/* Decides how a branch ended. Called after everything that it sent has been read. */
static void branch_judge_end(struct tree *t, struct tree_branch *b)
{
    static const char of_one[] = "the guard process of the job was killed";
    char text[300];

    if (b->output.broken && !b->lost && !b->why[0])
        branch_refuse(t, b, "a message of its guard is damaged");
    if (!b->control.ended || b->lost || b->left)
        return;
    if (b->why[0]) {
        branch_lose(t, b, b->why);
        return;
    }
    const char *what = tree_is_forked(t, b->host) ? "its guard process was killed"
                                                  : "the connection to its guard broke";
    if (b->agent->why[0]) {
        branch_lose(t, b, b->agent->why); /* what ssh printed */
        return;
    }
    if (b->control.broken)
        what = "a message of its guard is damaged";
    else if (t->job->host_count == 1)
        what = of_one;
    branch_explain(t, b->host, what, text, sizeof(text));
    branch_lose(t, b, text);
}

size_t tree_poll_max(const struct tree *t)
{
    return 2 * (size_t)t->count + agent_set_poll_max(&t->agents);
}

static struct pollfd poll_entry(const struct wire_channel *c, bool want_input)
{
    short events = wire_poll_events(c, want_input);
    return (struct pollfd){c->ended || !events ? -1 : c->fd, events, 0};
}

size_t tree_poll(struct tree *t, struct pollfd *p, bool want_output)
{
    for (uint32_t i = 0; i < t->count; i++) {
        struct tree_branch *b = &t->branches[i];
        p[2 * i] = b->is_open ? poll_entry(&b->control, true) : (struct pollfd){-1, 0, 0};
        p[2 * i + 1] = b->is_open ? poll_entry(&b->output, want_output) : (struct pollfd){-1, 0, 0};
    }
    return 2 * (size_t)t->count + agent_set_poll(&t->agents, p + 2 * (size_t)t->count);
}

void tree_serve(struct tree *t, const struct pollfd *p, size_t count)
{
    enum { GONE = POLLIN | POLLHUP | POLLERR };

    agent_set_serve(&t->agents, p + 2 * (size_t)t->count, count - 2 * (size_t)t->count);
    take_ready_agents(t);
    for (uint32_t i = 0; i < t->count; i++) {
        struct tree_branch *b = &t->branches[i];
        if (!b->is_open)
            continue;
        if (p[2 * i].fd >= 0 && p[2 * i].revents)
            branch_read_control(t, b);
        if (p[2 * i + 1].fd >= 0 && (p[2 * i + 1].revents & GONE))
            branch_read_output(t, b);
        branch_judge_end(t, b);
    }
}

bool tree_reaped(struct tree *t, pid_t pid, int status)
{
    return agent_set_ended(&t->agents, pid, status);
}

size_t tree_pids(const struct tree *t, pid_t *pids)
{
    size_t n = 0;
    for (uint32_t i = 0; i < t->count; i++)
        if (t->branches[i].agent->pid)
            pids[n++] = t->branches[i].agent->pid;
    return n;
}

bool tree_is_over(const struct tree *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        if (!t->branches[i].lost && !t->branches[i].control.ended)
            return false;
    return true;
}

bool tree_is_silent(const struct tree *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        if (!t->branches[i].output.ended)
            return false;
    return true;
}

struct wire_channel *tree_input_channel(struct tree *t)
{
    bool is_there = t->count && t->branches[0].is_open && !t->branches[0].output.ended;
    return is_there ? &t->branches[0].output : NULL;
}

void tree_count(const struct tree *t, uint64_t *frames, uint64_t *bytes)
{
    *frames = *bytes = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        *frames += t->branches[i].control.frames;
        *bytes += t->branches[i].control.moved;
    }
}

void tree_count_kind(const struct tree *t, enum wire_type type, uint64_t *frames, uint64_t *bytes)
{
    *frames = *bytes = 0;
    for (uint32_t i = 0; i < t->count; i++) {
        *frames += t->branches[i].control.kinds[type].frames;
        *bytes += t->branches[i].control.kinds[type].bytes;
    }
}

void tree_free(struct tree *t)
{
    for (uint32_t i = 0; i < t->count; i++)
        if (t->branches[i].is_open) {
            wire_close(&t->branches[i].control);
            wire_close(&t->branches[i].output);
        }
    agent_set_close(&t->agents);
    bytes_free(&t->job_frame);
    free(t->branches);
    *t = (struct tree){0};
}
