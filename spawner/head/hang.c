/* SPDX-License-Identifier: BSD-3-Clause */
/* See hang.h. Owns the listening socket, its callers, and the answers of the guards. */
#include "config.h"

#include "hang.h"

#include "spawner/util/launcher_clock.h"
#include "spawner/util/hail.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Guards on this host answer within milliseconds, gdb within seconds. */
enum { ANSWERS_MS = 3000, STACKS_MS = 25000, LOOK_MIN_MS = 100 };

/* A socket buffer holds the text of even a large job, so a slow caller cannot block the head. */
enum { TEXT_MAX = 96 << 10 };

static int64_t next_look(const struct hang *h)
{
    int64_t interval = h->job->stall_ms / 4;
    if (!h->job->stall_ms)
        return CLOCK_NEVER;
    return clock_ms() + (interval > LOOK_MIN_MS ? interval : LOOK_MIN_MS);
}

void hang_open(struct hang *h)
{
    h->listener = hail_listen("explain");
    h->deadline = CLOCK_NEVER;
    h->look_at = next_look(h);
}

static void answer(struct hang *h, const uint8_t *text, size_t length)
{
    length = length < TEXT_MAX ? length : TEXT_MAX;
    for (unsigned i = 0; i < h->caller_count; i++) {
        ssize_t ignored = send(h->callers[i], text, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        (void)ignored;
        close(h->callers[i]);
    }
    h->caller_count = 0;
}

static void add_line(struct hang *h, const char *line)
{
    bytes_append(&h->explain.text, line, strlen(line));
}

static void begin_text(struct hang *h)
{
    char line[600];
    const char *slash = strrchr(h->job->program, '/');
    snprintf(line, sizeof(line), "gasnetrun_ibv: job %d, %u process%s of %.300s:\n", (int)getpid(),
             h->job->ranks, h->job->ranks == 1 ? "" : "es", slash ? slash + 1 : h->job->program);
    add_line(h, line);
    if (h->missing) {
        snprintf(line, sizeof(line), "  %u host%s not answered in time\n", h->missing,
                 h->missing == 1 ? " has" : "s have");
        add_line(h, line);
    }
}

static void finish(struct hang *h)
{
    const uint8_t *text = bytes_front(&h->explain.text);
    answer(h, text, h->explain.text.length);
    if (h->is_for_log)
        h->log(h->owner, (const char *)text, h->explain.text.length);
    explain_free(&h->explain);
    h->phase = HANG_IDLE;
    h->deadline = CLOCK_NEVER;
    h->is_for_log = h->is_look = false;
    h->look_at = next_look(h);
}

static void drop(struct hang *h)
{
    explain_free(&h->explain);
    h->phase = HANG_IDLE;
    h->deadline = CLOCK_NEVER;
    h->is_look = false;
    h->look_at = next_look(h);
}

static void ask_for_stacks(struct hang *h)
{
    h->phase = HANG_STACKS;
    h->missing = h->explain.suspect_count;
    h->deadline = clock_ms() + STACKS_MS;
    for (uint32_t i = 0; i < h->explain.suspect_count; i++) {
        uint32_t rank = h->explain.suspects[i];
        tree_send(h->tree, job_host_of(h->job, rank), WIRE_WANT_STACK, 0, rank, NULL, 0);
    }
    if (!h->missing)
        finish(h);
}

/* Each wait that is too long is reported once. */
static bool is_stalled(struct hang *h)
{
    bool stalls = h->explain.longest >= (uint64_t)h->job->stall_ms * 1000000;
    bool is_new = stalls && h->reported != h->explain.longest_since;
    if (stalls)
        h->reported = h->explain.longest_since;
    return is_new;
}

static void answers_came(struct hang *h)
{
    begin_text(h);
    explain_join(&h->explain);
    bool is_new = h->job->stall_ms && is_stalled(h);
    if (h->is_look && is_new)
        h->is_for_log = true;
    if (!h->is_for_log && !h->caller_count)
        drop(h);
    else
        ask_for_stacks(h);
}

/* A guard that has not got its job yet takes no other order. */
static void begin(struct hang *h)
{
    if (h->phase != HANG_IDLE)
        return; /* these answers serve this caller too */
    if (!explain_init(&h->explain, h->job->ranks)) {
        explain_free(&h->explain);
        return;
    }
    h->phase = HANG_ASKED;
    h->missing = 0;
    h->deadline = clock_ms() + ANSWERS_MS;
    for (uint32_t i = 0; i < h->job->host_count; i++)
        if (h->is_there(h->owner, i)) {
            tree_send(h->tree, i, WIRE_EXPLAIN, 0, 0, NULL, 0);
            h->missing++;
        }
    if (!h->missing)
        answers_came(h);
}

void hang_ask(struct hang *h)
{
    h->is_for_log = true;
    begin(h);
}

bool hang_take(struct hang *h, const struct wire_frame *f)
{
    switch (f->type) {
    case WIRE_WAITS:
        if (h->phase == HANG_ASKED)
            explain_take(&h->explain, f->rank, f->payload, f->length);
        return true;
    case WIRE_WAITS_END:
        if (h->phase == HANG_ASKED && --h->missing == 0)
            answers_came(h);
        return true;
    case WIRE_STACK:
        if (h->phase != HANG_STACKS)
            return true;
        explain_add_stack(&h->explain, f->rank, (const char *)f->payload, f->length);
        if (--h->missing == 0)
            finish(h);
        return true;
    default:
        return false;
    }
}

struct pollfd hang_poll(const struct hang *h)
{
    return (struct pollfd){h->caller_count < HANG_CALLERS ? h->listener : -1, POLLIN, 0};
}

void hang_serve(struct hang *h)
{
    int fd = hail_accept(h->listener);
    if (fd < 0)
        return;
    h->callers[h->caller_count++] = fd;
    begin(h);
}

void hang_watch(struct hang *h)
{
    int64_t now = clock_ms();
    if (h->phase != HANG_IDLE && now >= h->deadline) {
        if (h->phase == HANG_ASKED)
            answers_came(h);
        else
            finish(h);
    }
    if (h->phase == HANG_IDLE && now >= h->look_at) {
        h->is_look = true;
        begin(h);
    }
}

int64_t hang_deadline(const struct hang *h)
{
    return h->phase == HANG_IDLE ? h->look_at : h->deadline;
}

void hang_close(struct hang *h)
{
    static const char over[] = "gasnetrun_ibv: the job has ended\n";
    answer(h, (const uint8_t *)over, sizeof(over) - 1);
    if (h->listener >= 0)
        close(h->listener);
    explain_free(&h->explain);
    /* The head may still wait for a reader of its output. */
    h->listener = -1;
    h->phase = HANG_IDLE;
    h->look_at = CLOCK_NEVER;
}
