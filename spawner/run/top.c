/* SPDX-License-Identifier: BSD-3-Clause */
/* See top.h. Owns the samples. Does not change the job, and changes only the contents of the
 * terminal. */
#include "config.h"

#include "top.h"

#include "ask.h"
#include "others.h"
#include "spawner/util/hail.h"
#include "spawner/util/log.h"
#include "top_table.h"
#include "web.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Longer than the launcher waits for guards and for a caller before us. */
enum { ANSWER_MS = 20000, REDRAW_MS = 1000, RANKS_MAX = OPTIONS_RANKS_MAX };

enum answer { ANSWER_WHOLE, ANSWER_LATE, ANSWER_OVER, ANSWER_OTHER_BUILD };

static enum answer read_all(int fd, void *to, size_t size)
{
    for (size_t done = 0; done < size;) {
        struct pollfd p = {fd, POLLIN, 0};
        int ready = poll(&p, 1, ANSWER_MS);
        if (ready == 0)
            return ANSWER_LATE;
        ssize_t n = ready < 0 ? -1 : read(fd, (char *)to + done, size - done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return ANSWER_OVER;
        done += (size_t)n;
    }
    return ANSWER_WHOLE;
}

static enum answer read_sample(int fd, struct top_sample *s)
{
    enum answer answer = read_all(fd, &s->job, sizeof(s->job));
    if (answer != ANSWER_WHOLE)
        return answer;
    bool fits = s->job.magic == COUNTS_MAGIC && s->job.rank_size == sizeof(*s->ranks) &&
                s->job.ranks <= RANKS_MAX;
    free(s->ranks);
    s->ranks = fits ? calloc(s->job.ranks, sizeof(*s->ranks)) : NULL;
    if (!s->ranks)
        return ANSWER_OTHER_BUILD;
    answer = read_all(fd, s->ranks, s->job.ranks * sizeof(*s->ranks));
    s->job.program[sizeof(s->job.program) - 1] = 0;
    for (uint32_t i = 0; i < s->job.ranks; i++) {
        s->ranks[i].host[sizeof(s->ranks[i].host) - 1] = 0;
        s->ranks[i].why[sizeof(s->ranks[i].why) - 1] = 0;
    }
    return answer;
}

/* The source of samples: the launcher or, for ranks of another launcher, their memory. */
struct source {
    pid_t pid;
    struct others_job others; /* ranks NULL: not used */
    int fd;                   /* the first connection; -1: not open */
};

static enum answer next_sample(struct source *from, struct top_sample *s)
{
    if (from->others.ranks)
        return others_sample(&from->others, s) ? ANSWER_WHOLE : ANSWER_OVER;
    if (from->fd < 0)
        from->fd = hail_connect("top", from->pid);
    if (from->fd < 0)
        return ANSWER_OVER;
    enum answer answer = read_sample(from->fd, s);
    close(from->fd);
    from->fd = -1;
    return answer;
}

static int report(enum answer answer, pid_t pid)
{
    if (answer == ANSWER_LATE)
        log_error("--top: the launcher %d does not answer; is it stopped itself?", (int)pid);
    else if (answer == ANSWER_OVER)
        log_error("--top: the job of launcher %d is over", (int)pid);
    else
        log_error("--top: the launcher %d is that of another build; use its own gasnetrun_ibv",
                  (int)pid);
    return EXIT_RUNTIME;
}

static struct top_screen screen_now(void)
{
    struct top_screen s = {.out = stdout, .is_terminal = isatty(STDOUT_FILENO)};
    struct winsize size;
    if (s.is_terminal && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) {
        s.rows = size.ws_row;
        s.columns = size.ws_col;
    }
    return s;
}

static void show_table(const struct options *o, const struct top_sample *now,
                       const struct top_sample *former)
{
    struct top_screen screen = screen_now();
    bool is_drawn = screen.is_terminal && !o->once;
    if (o->once)
        screen.rows = 0;
    screen.is_terminal = is_drawn;
    if (is_drawn)
        fputs(former ? "\033[H" : "\033[H\033[2J", stdout);
    else if (former)
        fputc('\n', stdout);
    top_table(&screen, now, former);
    if (is_drawn)
        fputs("\033[J", stdout);
}

/* main() reports the error of standard output, and the server its own. */
static bool show(const struct options *o, const struct web *web, const struct top_sample *now,
                 const struct top_sample *former)
{
    FILE *out = o->web ? web->to : stdout;
    if (o->web || o->json)
        top_json(out, now);
    else
        show_table(o, now, former);
    return fflush(out) == 0 && !ferror(out);
}

/* False: nobody wants the next table. */
static bool await_next(const struct options *o, const struct web *web)
{
    if (o->web)
        return web_wait(web, REDRAW_MS);
    poll(NULL, 0, REDRAW_MS);
    return true;
}

/* One table after the other, until the job is over; its end is not an error. */
static int go_on(const struct options *o, struct source *from, const struct web *web)
{
    struct top_sample samples[2] = {0};
    unsigned count = 0;
    int status = 0;
    for (;; count++) {
        struct top_sample *now = &samples[count % 2], *former = &samples[(count + 1) % 2];
        enum answer answer = next_sample(from, now);
        if (answer != ANSWER_WHOLE) {
            bool is_end = answer == ANSWER_OVER && count > 0;
            status = is_end ? 0 : report(answer, from->pid);
            break;
        }
        bool is_written = show(o, web, now, count ? former : NULL);
        if (!is_written || o->once || !await_next(o, web))
            break;
    }
    free(samples[0].ranks);
    free(samples[1].ranks);
    return status;
}

/* The server has failed, or the job is over. */
static int go_on_for_web(const struct options *o, struct source *from)
{
    struct web web;
    int status = web_open(&web, o->port);
    if (status)
        return status;
    status = go_on(o, from, &web);
    int of_server = web_close(&web);
    return status ? status : of_server;
}

int top_run(const struct options *o)
{
    struct source from = {.fd = -1};
    int status = ask_find("top", o->job, &from.pid);
    if (status)
        return status;
    if (!others_open(from.pid, &from.others)) {
        from.fd = ask_open("top", from.pid);
        if (from.fd < 0)
            return EXIT_RUNTIME;
    }
    status = o->web ? go_on_for_web(o, &from) : go_on(o, &from, NULL);
    others_close(&from.others);
    return status;
}
