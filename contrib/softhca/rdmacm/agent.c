/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The thread that stands in for the kernel's connection manager: it waits for the sockets of this
 * process's identifiers and for timers. Started by the first identifier that needs it, so that
 * programs without rdma_cm have none. Owns its descriptors and shca_cm_lock. */
#include "config.h"

#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "rdmacm/rdmacm.h"

pthread_mutex_t shca_cm_lock = PTHREAD_MUTEX_INITIALIZER;
_Thread_local unsigned shca_cm_inside;

static int epoll_fd = -1, kick_fd = -1;
static void (*on_ready)(struct shca_cm_socket *s);
static uint64_t (*on_time)(uint64_t now);

static void agent_handle(const struct epoll_event *e)
{
    uint64_t drain;

    if (e->data.ptr)
        on_ready(e->data.ptr);
    else if (read(kick_fd, &drain, sizeof drain) < 0)
        return;
}

static int wait_ms(uint64_t due, uint64_t now)
{
    uint64_t ns = due > now ? due - now : 0;

    if (due == UINT64_MAX)
        return -1;
    ns = (ns + 999999) / 1000000;
    return ns > INT_MAX ? INT_MAX : (int)ns;
}

/* A program that closes all descriptors closes ours too: do not spin. */
static void agent_sleep(int fd, int ms)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    struct timespec t = {.tv_nsec = 10000000};

    if (poll(&p, 1, ms) > 0 && (p.revents & POLLNVAL))
        nanosleep(&t, NULL);
}

static void *agent_run(void *unused)
{
    struct epoll_event e;
    int ms, fd;

    (void)unused;
    pthread_setname_np(pthread_self(), "softhca-cm");
    pthread_mutex_lock(&shca_cm_lock);
    for (;;) {
        /* Handles one event at a time, under the lock: the object that it names can't be freed
         * meanwhile. */
        while (epoll_wait(epoll_fd, &e, 1, 0) == 1)
            agent_handle(&e);
        ms = wait_ms(on_time(tk_now()), tk_now());
        fd = epoll_fd;
        pthread_mutex_unlock(&shca_cm_lock);
        agent_sleep(fd, ms);
        pthread_mutex_lock(&shca_cm_lock);
    }
    return NULL;
}

static int agent_thread(void)
{
    pthread_attr_t attr;
    sigset_t all, old;
    pthread_t thread;
    int e;

    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    /* Signals belong to the program: this thread blocks all of them. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    e = pthread_create(&thread, &attr, agent_run, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    return e;
}

static void agent_close(void)
{
    if (epoll_fd >= 0)
        close(epoll_fd);
    if (kick_fd >= 0)
        close(kick_fd);
    epoll_fd = kick_fd = -1;
}

int shca_cm_agent_start(void (*ready)(struct shca_cm_socket *s), uint64_t (*timers)(uint64_t now))
{
    struct epoll_event none = {.events = EPOLLIN, .data.ptr = NULL};
    int e = 0;

    if (epoll_fd >= 0)
        return 0;
    on_ready = ready;
    on_time = timers;
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (epoll_fd < 0 || kick_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, kick_fd, &none) != 0)
        e = errno;
    else
        e = agent_thread();
    if (e != 0)
        agent_close();
    return e;
}

int shca_cm_agent_watch(struct shca_cm_socket *s)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = s};

    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, s->fd, &e) == 0 ? 0 : errno;
}

void shca_cm_agent_ignore(struct shca_cm_socket *s)
{
    epoll_ctl(epoll_fd, EPOLL_CTL_DEL, s->fd, NULL);
}

void shca_cm_agent_wake(void)
{
    uint64_t one = 1;

    if (kick_fd >= 0 && write(kick_fd, &one, sizeof one) < 0)
        return; /* the counter is full: enough wake-ups are pending */
}

void shca_cm_agent_inherited(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    shca_cm_lock = fresh;
    agent_close();
}
