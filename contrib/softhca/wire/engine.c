/* SPDX-License-Identifier: BSD-3-Clause */
/* The one helper thread of a process. It sleeps in epoll and wakes for three things: a peer died
 * (its pidfd became readable), a stalled send queue is due for another try, or the softhca command
 * asks. Polling the CQ also retries, so a program that polls never waits for this thread. Owns the
 * list of stalled queue pairs; list_lock protects it and is taken before any sq_lock (which is only
 * tried under it). */
#include "config.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "wire/control.h"
#include "shca.h"

static struct shca_lock list_lock;
static struct shca_qp *list;
static pthread_mutex_t start_lock = PTHREAD_MUTEX_INITIALIZER;
static int epoll_fd = -1, kick_fd = -1;
static char control_mark; /* its address marks requests among the events */

uint64_t shca_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void kick(void)
{
    uint64_t one = 1;

    if (kick_fd >= 0 && write(kick_fd, &one, sizeof one) < 0)
        return; /* the counter is full: the thread has been kicked enough */
}

void shca_engine_kick(void)
{
    shca_engine_start();
    kick();
}

void shca_pending_add(struct shca_qp *qp)
{
    shca_engine_start();
    shca_lock(&list_lock);
    if (!qp->pending) {
        qp->pending = true;
        qp->pending_next = list;
        list = qp;
        shca.pending++;
    }
    shca_unlock(&list_lock);
    kick();
}

static void unlink_at(struct shca_qp **at)
{
    struct shca_qp *qp = *at;

    *at = qp->pending_next;
    qp->pending = false;
    shca.pending--;
}

void shca_pending_remove(struct shca_qp *qp)
{
    shca_lock(&list_lock);
    for (struct shca_qp **at = &list; *at; at = &(*at)->pending_next)
        if (*at == qp) {
            unlink_at(at);
            break;
        }
    shca_unlock(&list_lock);
}

/* One stalled queue: true when nothing is left to do for it. */
static bool run_one(struct shca_qp *qp, uint64_t now, uint64_t *next)
{
    bool idle;

    /* Who holds the lock is posting to this queue pair and runs the queue itself. */
    if (!shca_trylock(&qp->sq_lock)) {
        *next = now + 100000;
        return false;
    }
    if (qp->next_try <= now || shca_fault_due(&qp->fault) ||
        (qp->peer && atomic_load(&qp->peer->dead)) || shca_qp_state(qp) == IBV_QPS_ERR)
        shca_sq_run(qp);
    idle = qp->sq_exec == qp->sq_tail;
    if (!idle && qp->waiting != SHCA_WAIT_NEVER && qp->next_try < *next)
        *next = qp->next_try;
    shca_unlock(&qp->sq_lock);
    return idle;
}

uint64_t shca_pending_run(void)
{
    uint64_t now, next = UINT64_MAX, early;

    if (!shca_trylock(&list_lock))
        return 1000000;
    now = shca_now();
    for (struct shca_qp **at = &list; *at;)
        if (run_one(*at, now, &next))
            unlink_at(at);
        else
            at = &(*at)->pending_next;
    shca_unlock(&list_lock);
    early = shca_early_run(now);
    next = early < next ? early : next;
    if (next == UINT64_MAX)
        return next;
    now = shca_now();
    return next > now ? next - now : 0;
}

void shca_engine_unwatch(struct shca_peer *p)
{
    epoll_ctl(epoll_fd, EPOLL_CTL_DEL, p->life, NULL);
    if (p->pidfd >= 0)
        epoll_ctl(epoll_fd, EPOLL_CTL_DEL, p->pidfd, NULL);
}

/* A peer that died has two descriptors that say so; it may be freed after the first. */
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

    if (e->data.ptr == &control_mark) {
        shca_control_serve(shca.claim_fd);
    } else if (p) {
        shca_engine_unwatch(p);
        if (p->pidfd < 0)
            shca_watch_remove(p);
        atomic_store(&p->dead, 1); /* last: from here on the peer table may free it */
    } else if (read(kick_fd, &drain, sizeof drain) < 0) {
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

/* A program that closes all descriptors (a daemon in the making) takes ours too: what is stalled
 * still needs its timers, but the thread must not spin. */
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
        uint64_t link = shca_link_run(), retry = shca_pending_run(), look = shca_watch_run();
        uint64_t next = retry < look ? retry : look;
        int n = epoll_wait(epoll_fd, events, 16, to_ms(link < next ? link : next));

        if (n < 0)
            wait_blind();
        for (int i = 0; i < n; i++)
            if (!handled(events, i))
                handle(&events[i]);
    }
    return NULL;
}

static int open_fds(void)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = NULL};

    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    kick_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (epoll_fd < 0 || kick_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, kick_fd, &e) != 0)
        return errno;
    e.data.ptr = &control_mark;
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, shca.claim_fd, &e) == 0 ? 0 : errno;
}

static void close_fds(void)
{
    if (epoll_fd >= 0)
        close(epoll_fd);
    if (kick_fd >= 0)
        close(kick_fd);
    epoll_fd = kick_fd = -1;
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
    e = pthread_create(&thread, &attr, run, NULL);
    pthread_attr_destroy(&attr);
    return e;
}

static int start_locked(void)
{
    sigset_t all, old;
    int e = open_fds();

    if (e != 0)
        return e;
    /* The program's signals are the program's: this thread takes none. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    e = create_thread(512 * 1024);
    if (e == EINVAL) /* the program's thread-local variables, which lie there too, are larger */
        e = create_thread(0);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return e;
}

int shca_engine_start(void)
{
    static bool told;
    int e = 0;

    pthread_mutex_lock(&start_lock);
    if (epoll_fd < 0) {
        e = start_locked();
        if (e != 0) {
            close_fds();
            if (!told)
                shca_say("cannot start the helper thread: %s", strerror(e));
            told = true;
        }
    }
    pthread_mutex_unlock(&start_lock);
    return e;
}

int shca_engine_watch(struct shca_peer *p)
{
    struct epoll_event e = {.events = EPOLLIN, .data.ptr = p};
    struct epoll_event end = {.events = EPOLLERR, .data.ptr = p};

    if (shca_engine_start() != 0)
        return EAGAIN;
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, p->life, &end) != 0)
        return errno;
    if (p->pidfd < 0) {
        shca_watch_add(p);
        kick();
        return 0;
    }
    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, p->pidfd, &e) == 0 ? 0 : errno;
}

void shca_engine_inherited(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    start_lock = fresh;
    close_fds();
    shca_watch_inherited();
    list = NULL;
    atomic_store(&list_lock.word, 0);
}
