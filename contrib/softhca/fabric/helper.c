/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The helper thread of a process (one per process): its descriptors, its start, and how it is
 * woken. Its work is in wire/engine.c, which passes its function down once. Owns shca_helper;
 * start_lock protects its creation. */
#include "config.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "fabric/fabric.h"

struct shca_helper shca_helper = {.epoll_fd = -1, .kick_fd = -1};

static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;

void shca_helper_wake(void)
{
    uint64_t one = 1;

    if (shca_helper.kick_fd >= 0 && write(shca_helper.kick_fd, &one, sizeof one) < 0)
        return; /* the counter is full: enough wake-ups are pending */
}

void shca_helper_kick(void)
{
    shca_helper_start();
    shca_helper_wake();
}

static int open_fds(void)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};

    shca_helper.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    shca_helper.kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (shca_helper.epoll_fd < 0 || shca_helper.kick_fd < 0 ||
        epoll_ctl(shca_helper.epoll_fd, EPOLL_CTL_ADD, shca_helper.kick_fd, &e) != 0)
        return errno;
    e.data.ptr = &shca_helper.control_mark;
    return epoll_ctl(shca_helper.epoll_fd, EPOLL_CTL_ADD, shca.claim_fd, &e) == 0 ? 0 : errno;
}

static void close_fds(void)
{
    if (shca_helper.epoll_fd >= 0)
        close(shca_helper.epoll_fd);
    if (shca_helper.kick_fd >= 0)
        close(shca_helper.kick_fd);
    shca_helper.epoll_fd = shca_helper.kick_fd = -1;
}

static int create_thread(size_t stack)
{
    pthread_attr_t attr;
    pthread_t thread;
    int e;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    if (stack)
        pthread_attr_setstacksize(&attr, stack);
    e = pthread_create(&thread, &attr, shca_helper.body, NULL);
    pthread_attr_destroy(&attr);
    return e;
}

static int start_locked(void)
{
    sigset_t all, old;
    int e = open_fds();

    if (e != 0)
        return e;
    /* Signals belong to the program: this thread blocks all of them. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    e = create_thread(512 * 1024);
    if (e == EINVAL) /* too small for the program's thread-local variables, also on it */
        e = create_thread(0);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return e;
}

int shca_helper_start(void)
{
    static bool reported;
    int e = 0;

    pthread_mutex_lock(&start_lock);
    if (shca_helper.epoll_fd < 0) {
        e = start_locked();
        if (e != 0) {
            close_fds();
            if (!reported)
                shca_log("cannot start the helper thread: %s", strerror(e));
            reported = true;
        }
    }
    pthread_mutex_unlock(&start_lock);
    return e;
}

void shca_helper_inherited(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    start_lock = fresh;
    close_fds();
}
