/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The loop; see loop.h. Owns the epoll descriptor. */
#include "config.h"

#include "daemon/loop.h"

#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { events_of_round = 64 };

static int epoll_fd = -1;
static volatile sig_atomic_t stopped;
int mcd_status = 1;

uint64_t mcd_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

bool mcd_loop_open(void)
{
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return epoll_fd >= 0;
}

bool mcd_loop_add(struct mcd_source *s, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = s};

    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, s->fd, &e) == 0;
}

void mcd_loop_change(struct mcd_source *s, uint32_t events)
{
    struct epoll_event e = {.events = events, .data.ptr = s};

    epoll_ctl(epoll_fd, EPOLL_CTL_MOD, s->fd, &e);
}

void mcd_loop_close(struct mcd_source *s)
{
    if (s->fd >= 0)
        close(s->fd);
    s->fd = -1;
}

void mcd_loop_stop(void)
{
    stopped = 1;
}

/* Unblocks signals only during the wait, so that none comes between the check of `stopped` and the
 * wait. */
void mcd_loop_run(const struct mcd_hooks *hooks)
{
    struct epoll_event events[events_of_round];
    uint64_t next = mcd_now();
    sigset_t open;

    sigprocmask(SIG_SETMASK, NULL, &open);
    sigdelset(&open, SIGTERM);
    sigdelset(&open, SIGINT);
    sigdelset(&open, SIGHUP);
    while (!stopped) {
        uint64_t now = mcd_now();
        int ms = now >= next ? 0 : (int)((next - now) / 1000000) + 1;
        int n = epoll_pwait(epoll_fd, events, events_of_round, ms, &open);

        for (int i = 0; i < n; i++) {
            struct mcd_source *s = events[i].data.ptr;

            if (s->fd >= 0)
                s->ready(s, events[i].events);
        }
        now = mcd_now();
        if (now >= next) {
            hooks->tick(now);
            next = now + (uint64_t)MCD_TICK_MS * 1000000;
        }
        hooks->round();
    }
}
