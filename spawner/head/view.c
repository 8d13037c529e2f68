/* SPDX-License-Identifier: BSD-3-Clause */
/* See view.h. Owns the listening socket, the caller, and the answer. */
#include "config.h"

#include "view.h"

#include "spawner/util/launcher_clock.h"
#include "spawner/util/hail.h"
#include "spawner/wire/counts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Guards read memory, which takes microseconds; a caller that is stopped must not keep others out.
 */
enum { COUNTS_MS = 3000, GIVE_MS = 5000, SAMPLE_MS = 1000 };

void view_open(struct view *v)
{
    v->listener = hail_listen("top");
    v->caller = -1;
    v->phase = VIEW_IDLE;
    v->deadline = CLOCK_NEVER;
    v->sample_at = v->sample ? clock_ms() + SAMPLE_MS : CLOCK_NEVER;
}

static void end_answer(struct view *v)
{
    if (v->caller >= 0)
        close(v->caller);
    v->caller = -1;
    v->phase = VIEW_IDLE;
    v->deadline = CLOCK_NEVER;
    bytes_free(&v->answer);
}

/* The answer is allocated at its full length at once. */
static uint8_t *place_of(struct view *v, uint32_t rank)
{
    return v->answer.memory + v->answer.start + sizeof(struct counts_job) +
           (size_t)rank * sizeof(struct counts_rank);
}

static void give(struct view *v)
{
    while (v->answer.length > 0) {
        ssize_t n =
            send(v->caller, bytes_front(&v->answer), v->answer.length, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno == EAGAIN)
            return;
        if (n <= 0)
            break;
        bytes_consume(&v->answer, (size_t)n);
    }
    end_answer(v);
}

static void name_hosts(struct view *v)
{
    for (uint32_t i = 0; i < v->job->host_count; i++) {
        const struct job_host *host = &v->job->hosts[i];
        for (uint32_t r = host->first; r < host->first + host->count; r++)
            snprintf((char *)place_of(v, r) + offsetof(struct counts_rank, host),
                     sizeof(((struct counts_rank *)0)->host), "%s", host->name);
    }
}

static void take_sample(struct view *v)
{
    int64_t wait = v->sample(v->samples, bytes_front(&v->answer));
    v->sample_at = wait ? clock_ms() + wait : CLOCK_NEVER;
    end_answer(v);
}

static void counts_came(struct view *v)
{
    const struct job *job = v->job;
    const char *slash = strrchr(job->program, '/');
    struct counts_job head = {.magic = COUNTS_MAGIC,
                              .rank_size = sizeof(struct counts_rank),
                              .ranks = job->ranks,
                              .hosts = job->host_count,
                              .silent = v->missing,
                              .pid = (uint32_t)getpid()};
    snprintf(head.program, sizeof(head.program), "%s", slash ? slash + 1 : job->program);
    memcpy(v->answer.memory + v->answer.start, &head, sizeof(head));
    name_hosts(v);
    if (v->caller < 0) {
        take_sample(v);
        return;
    }
    v->phase = VIEW_GIVING;
    v->deadline = clock_ms() + GIVE_MS;
    give(v);
}

static void ask_guards(struct view *v)
{
    size_t size = sizeof(struct counts_job) + (size_t)v->job->ranks * sizeof(struct counts_rank);
    memset(bytes_reserve(&v->answer, size), 0, size);
    bytes_commit(&v->answer, size);
    v->phase = VIEW_ASKED;
    v->missing = 0;
    v->question++;
    v->deadline = clock_ms() + COUNTS_MS;
    for (uint32_t i = 0; i < v->job->host_count; i++)
        if (v->is_there(v->owner, i)) {
            tree_send(v->tree, i, WIRE_TOP, 0, v->question, NULL, 0);
            v->missing++;
        }
    if (!v->missing)
        counts_came(v);
}

/* No sample is taken of a job that has not begun or is over. */
static void begin_sample(struct view *v)
{
    bool is_any_there = false;
    for (uint32_t i = 0; i < v->job->host_count; i++)
        is_any_there |= v->is_there(v->owner, i);
    if (is_any_there)
        ask_guards(v);
    else
        v->sample_at = clock_ms() + SAMPLE_MS;
}

bool view_take(struct view *v, const struct wire_frame *f)
{
    if (f->type == WIRE_COUNTS) {
        bool fits = f->rank < v->job->ranks && f->length == sizeof(struct counts_rank);
        if (v->phase == VIEW_ASKED && fits)
            memcpy(place_of(v, f->rank), f->payload, f->length);
        return true;
    }
    if (f->type != WIRE_COUNTS_END)
        return false;
    if (v->phase == VIEW_ASKED && f->rank == v->question && --v->missing == 0)
        counts_came(v);
    return true;
}

struct pollfd view_poll(const struct view *v)
{
    if (v->phase == VIEW_GIVING)
        return (struct pollfd){v->caller, POLLOUT, 0};
    return (struct pollfd){v->phase == VIEW_IDLE ? v->listener : -1, POLLIN, 0};
}

void view_serve(struct view *v)
{
    if (v->phase == VIEW_GIVING) {
        give(v);
    } else if (v->phase == VIEW_IDLE) {
        v->caller = hail_accept(v->listener);
        if (v->caller >= 0)
            ask_guards(v);
    }
}

void view_watch(struct view *v)
{
    if (clock_ms() < view_deadline(v))
        return;
    if (v->phase == VIEW_IDLE)
        begin_sample(v);
    else if (v->phase == VIEW_ASKED)
        counts_came(v);
    else
        end_answer(v);
}

int64_t view_deadline(const struct view *v)
{
    return v->phase == VIEW_IDLE ? v->sample_at : v->deadline;
}

void view_close(struct view *v)
{
    end_answer(v);
    if (v->listener >= 0)
        close(v->listener);
    v->listener = -1;
}
