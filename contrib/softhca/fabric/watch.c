/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Detects the death of peers. The helper thread learns of it by their pidfd. Where the kernel
 * provides none (before Linux 5.3, or refused by a container), it checks each such peer ten times a
 * second; the start time distinguishes a process from a later one with the same pid. Owns the list
 * of those peers; watch_lock protects it. */
#include "config.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "fabric/fabric.h"

static const uint64_t period_ns = UINT64_C(100000000);

static pthread_mutex_t watch_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shca_peer *watched;
static uint64_t next_check;

/* proc(5): the fields behind the name, which may itself hold blanks and parentheses, are state (3),
 * ... and starttime (22). */
uint64_t shca_start_time(uint32_t pid)
{
    char path[64], text[1024], state;
    uint64_t start = 0;
    ssize_t n;
    char *at;
    int fd;

    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    n = read(fd, text, sizeof text - 1);
    close(fd);
    text[n > 0 ? n : 0] = 0;
    at = strrchr(text, ')');
    if (!at || sscanf(at + 1,
                      " %c %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s "
                      "%" SCNu64,
                      &state, &start) != 2)
        return 0;
    return state == 'Z' || state == 'X' ? 0 : start;
}

void shca_watch_add(struct shca_peer *p)
{
    pthread_mutex_lock(&watch_lock);
    p->watch_next = watched;
    watched = p;
    pthread_mutex_unlock(&watch_lock);
}

void shca_watch_remove(struct shca_peer *p)
{
    pthread_mutex_lock(&watch_lock);
    for (struct shca_peer **at = &watched; *at; at = &(*at)->watch_next)
        if (*at == p) {
            *at = p->watch_next;
            break;
        }
    pthread_mutex_unlock(&watch_lock);
}

void shca_engine_unwatch(struct shca_peer *p)
{
    epoll_ctl(shca_helper.epoll_fd, EPOLL_CTL_DEL, p->liveness, NULL);
    if (p->pidfd >= 0)
        epoll_ctl(shca_helper.epoll_fd, EPOLL_CTL_DEL, p->pidfd, NULL);
}

static void check_peers(void)
{
    for (struct shca_peer **at = &watched; *at;) {
        struct shca_peer *p = *at;

        if (shca_start_time(p->pid) == p->start) {
            at = &p->watch_next;
            continue;
        }
        *at = p->watch_next;
        shca_engine_unwatch(p);
        atomic_store(&p->dead, 1); /* last: from here on the peer table may free it */
    }
}

uint64_t shca_watch_run(void)
{
    uint64_t now, wait = UINT64_MAX;

    pthread_mutex_lock(&watch_lock);
    if (watched) {
        now = tk_now();
        if (now >= next_check) {
            check_peers();
            next_check = now + period_ns;
        }
        wait = next_check - now;
    }
    pthread_mutex_unlock(&watch_lock);
    return wait;
}

int shca_engine_watch(struct shca_peer *p)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = p};
    struct epoll_event end = {.events = EPOLLERR, .data.ptr = p};

    if (shca_helper_start() != 0)
        return EAGAIN;
    if (epoll_ctl(shca_helper.epoll_fd, EPOLL_CTL_ADD, p->liveness, &end) != 0)
        return errno;
    if (p->pidfd < 0) {
        shca_watch_add(p);
        shca_helper_wake();
        return 0;
    }
    return epoll_ctl(shca_helper.epoll_fd, EPOLL_CTL_ADD, p->pidfd, &e) == 0 ? 0 : errno;
}

void shca_watch_inherited(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    watch_lock = fresh;
    watched = NULL;
}
