/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Event channels. The descriptor of a channel is a semaphore that counts its unread events, so it
 * can be polled, and a read blocks or fails according to its flags. Owns the channels and unread
 * events; shca_cm_lock protects them. */
#include "config.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "rdmacm/rdmacm.h"

/* If the host's own channels are used too, the program's descriptor covers both. */
static int channel_open(struct shca_cm_channel *ch)
{
    struct epoll_event ready = {.events = EPOLLIN};
    int e;

    ch->tokens = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    ch->pub.fd = ch->tokens;
    if (ch->tokens < 0)
        return errno;
    if (!shca_cm_host_usable())
        return 0;
    ch->pub.fd = epoll_create1(EPOLL_CLOEXEC);
    if (ch->pub.fd >= 0 && fcntl(ch->tokens, F_SETFL, O_NONBLOCK) == 0 &&
        epoll_ctl(ch->pub.fd, EPOLL_CTL_ADD, ch->tokens, &ready) == 0)
        return 0;
    e = errno;
    close(ch->tokens);
    if (ch->pub.fd >= 0)
        close(ch->pub.fd);
    return e;
}

SHCA_PUBLIC struct rdma_event_channel *rdma_create_event_channel(void)
{
    SHCA_CM_INSIDE(rdma_create_event_channel);
    int e = shca_config_load();
    struct shca_cm_channel *ch = e == 0 ? calloc(1, sizeof *ch) : NULL;

    if (!ch) {
        errno = e ? e : ENOMEM;
        return NULL;
    }
    ch->tail = &ch->head;
    e = channel_open(ch);
    if (e == 0)
        return &ch->pub;
    free(ch);
    errno = e;
    return NULL;
}

SHCA_PUBLIC void rdma_destroy_event_channel(struct rdma_event_channel *pub)
{
    SHCA_CM_INSIDE_VOID(rdma_destroy_event_channel, pub);
    struct shca_cm_channel *ch = shca_cm_channel_of(pub);

    shca_cm_host_channel_end(ch);
    if (ch->tokens != ch->pub.fd)
        close(ch->tokens);
    close(ch->pub.fd);
    free(ch);
}

void shca_cm_event_push(struct shca_cm_event *e)
{
    struct shca_cm_channel *ch = shca_cm_channel_of(e->id->pub.channel);
    uint64_t one = 1;

    e->next = NULL;
    *ch->tail = e;
    ch->tail = &e->next;
    if (write(ch->tokens, &one, sizeof one) < 0)
        return; /* 2^64 unread events */
}

void shca_cm_event_post(struct shca_cm *id, enum rdma_cm_event_type type, int status)
{
    struct shca_cm_event *e = shca_cm_event_make(id, type, status);

    if (e)
        shca_cm_event_push(e);
}

static struct shca_cm_event *channel_pop(struct shca_cm_channel *ch)
{
    struct shca_cm_event *e = ch->head;

    if (ch->spent > 0) {
        ch->spent--;
        return NULL;
    }
    ch->head = e->next;
    if (!ch->head)
        ch->tail = &ch->head;
    return e;
}

static void count_given(struct shca_cm_event *e)
{
    e->id->unacked++;
    if (e->request)
        e->request->unacked++;
}

static struct shca_cm_event *take_own(struct shca_cm_channel *ch)
{
    struct shca_cm_event *e = NULL;
    uint64_t token;

    while (!e) {
        /* Without the lock: it may wait for ever. */
        if (read(ch->tokens, &token, sizeof token) != (ssize_t)sizeof token)
            return NULL;
        pthread_mutex_lock(&shca_cm_lock);
        e = channel_pop(ch);
        if (e)
            count_given(e);
        pthread_mutex_unlock(&shca_cm_lock);
    }
    return e;
}

struct shca_cm_event *shca_cm_channel_take(struct shca_cm_channel *ch)
{
    struct pollfd ready = {.fd = ch->pub.fd, .events = POLLIN};
    struct shca_cm_event *e = take_own(ch);

    while (!e && ch->pub.fd != ch->tokens) {
        e = shca_cm_host_take(ch);
        if (e) {
            pthread_mutex_lock(&shca_cm_lock);
            count_given(e);
            pthread_mutex_unlock(&shca_cm_lock);
            break;
        }
        if (errno != EAGAIN || (fcntl(ch->pub.fd, F_GETFL) & O_NONBLOCK) || poll(&ready, 1, -1) < 0)
            return NULL;
        e = take_own(ch);
    }
    return e;
}

/* A thread that has read the token of a dropped event must try again. */
static void drop_token(struct shca_cm_channel *ch)
{
    uint64_t token;
    struct iovec to = {&token, sizeof token};

    if (preadv2(ch->tokens, &to, 1, -1, RWF_NOWAIT) != (ssize_t)sizeof token)
        ch->spent++;
}

struct shca_cm_event *shca_cm_channel_strip(struct shca_cm_channel *ch, struct shca_cm *id)
{
    struct shca_cm_event *taken = NULL, **last = &taken;

    for (struct shca_cm_event **at = &ch->head; *at;) {
        struct shca_cm_event *e = *at;

        if (e->id != id) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        e->next = NULL;
        *last = e;
        last = &e->next;
        drop_token(ch);
    }
    ch->tail = &ch->head;
    while (*ch->tail)
        ch->tail = &(*ch->tail)->next;
    return taken;
}

SHCA_PUBLIC const char *rdma_event_str(enum rdma_cm_event_type event)
{
    static const char *const names[] = {
        [RDMA_CM_EVENT_ADDR_RESOLVED] = "RDMA_CM_EVENT_ADDR_RESOLVED",
        [RDMA_CM_EVENT_ADDR_ERROR] = "RDMA_CM_EVENT_ADDR_ERROR",
        [RDMA_CM_EVENT_ROUTE_RESOLVED] = "RDMA_CM_EVENT_ROUTE_RESOLVED",
        [RDMA_CM_EVENT_ROUTE_ERROR] = "RDMA_CM_EVENT_ROUTE_ERROR",
        [RDMA_CM_EVENT_CONNECT_REQUEST] = "RDMA_CM_EVENT_CONNECT_REQUEST",
        [RDMA_CM_EVENT_CONNECT_RESPONSE] = "RDMA_CM_EVENT_CONNECT_RESPONSE",
        [RDMA_CM_EVENT_CONNECT_ERROR] = "RDMA_CM_EVENT_CONNECT_ERROR",
        [RDMA_CM_EVENT_UNREACHABLE] = "RDMA_CM_EVENT_UNREACHABLE",
        [RDMA_CM_EVENT_REJECTED] = "RDMA_CM_EVENT_REJECTED",
        [RDMA_CM_EVENT_ESTABLISHED] = "RDMA_CM_EVENT_ESTABLISHED",
        [RDMA_CM_EVENT_DISCONNECTED] = "RDMA_CM_EVENT_DISCONNECTED",
        [RDMA_CM_EVENT_DEVICE_REMOVAL] = "RDMA_CM_EVENT_DEVICE_REMOVAL",
        [RDMA_CM_EVENT_MULTICAST_JOIN] = "RDMA_CM_EVENT_MULTICAST_JOIN",
        [RDMA_CM_EVENT_MULTICAST_ERROR] = "RDMA_CM_EVENT_MULTICAST_ERROR",
        [RDMA_CM_EVENT_ADDR_CHANGE] = "RDMA_CM_EVENT_ADDR_CHANGE",
        [RDMA_CM_EVENT_TIMEWAIT_EXIT] = "RDMA_CM_EVENT_TIMEWAIT_EXIT",
    };

    if ((unsigned)event >= sizeof names / sizeof names[0])
        return "UNKNOWN EVENT";
    return names[event];
}
