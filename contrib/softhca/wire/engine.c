/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The work of a process's helper thread (fabric/helper.c creates it). It sleeps in epoll and wakes
 * for three reasons: a peer died (its pidfd became readable), a stalled send queue is due for
 * another try, or the softhca command has sent a request. Polling the CQ also retries, so a program
 * that polls never depends on this thread. Owns nothing. */
#include "config.h"

#include <limits.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "wire/control.h"
#include "wire/wire.h"

/* A dead peer is reported by two descriptors; it may be freed after the first. */
static bool handled(const struct epoll_event *events, int n)
{
    for (int i = 0; i < n; i++)
        if (events[i].data.ptr == events[n].data.ptr)
            return true;
    return false;
}

static void handle(const struct epoll_event *e)
{
    struct shca_peer *p = e->data.ptr;
    uint64_t drain;

    if (e->data.ptr == &shca_helper.control_mark) {
        shca_control_serve(shca.claim_fd);
    } else if (p) {
        shca_engine_unwatch(p);
        if (p->pidfd < 0)
            shca_watch_remove(p);
        atomic_store(&p->dead, 1); /* last: from here on the peer table may free it */
    } else if (read(shca_helper.kick_fd, &drain, sizeof drain) < 0) {
        return;
    }
}

static int to_ms(uint64_t ns)
{
    if (ns == UINT64_MAX)
        return -1;
    ns = (ns + 999999) / 1000000;
    return ns > INT_MAX ? INT_MAX : (int)ns;
}

/* A program that closes all descriptors (to become a daemon) closes ours too: stalled queues still
 * need their timers, but the thread must not spin. */
static void wait_blind(void)
{
    struct timespec t = {.tv_nsec = 1000000};

    if (errno != EINTR)
        nanosleep(&t, NULL);
}

static void *run(void *unused)
{
    (void)unused;
    pthread_setname_np(pthread_self(), "softhca");
    for (;;) {
        struct epoll_event events[16];
        uint64_t link = shca_link_run(), retry = shca_pending_run(), check = shca_watch_run();
        uint64_t next = retry < check ? retry : check;
        uint64_t (*sleep_of)(void) = atomic_load(&shca_far_sleep);
        uint64_t far = sleep_of ? sleep_of() : UINT64_MAX, late = shca_contexts_run();

        int n;

        next = far < next ? far : next;
        next = late < next ? late : next;
        n = epoll_wait(shca_helper.epoll_fd, events, 16, to_ms(link < next ? link : next));
        if (n < 0)
            wait_blind();
        for (int i = 0; i < n; i++)
            if (!handled(events, i))
                handle(&events[i]);
    }
    return NULL;
}

int shca_engine_start(void)
{
    shca_helper.body = run;
    return shca_helper_start();
}
