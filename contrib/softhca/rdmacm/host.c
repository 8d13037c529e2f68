/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The host's own devices: an identifier that binds or resolves an address that is not softhca's
 * gets an identifier of the host's librdmacm behind it, to which calls are forwarded. The program
 * keeps its own; the fields that it may read are copied after each call and event. A wildcard
 * listens on both. Owns the identifiers behind; like its own identifiers, the program must use each
 * from one thread at a time. */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "rdmacm/rdmacm.h"

static bool usable;

/* One of the host's functions. */
#define HOST(status, name, ...)                                                                    \
    do {                                                                                           \
        shca_cm_inside++;                                                                          \
        status = SHCA_CM_REAL(name)(__VA_ARGS__);                                                  \
        shca_cm_inside--;                                                                          \
    } while (0)

static void end_channel(struct rdma_event_channel *ch)
{
    shca_cm_inside++;
    SHCA_CM_REAL(rdma_destroy_event_channel)(ch);
    shca_cm_inside--;
}

static void look_once(void)
{
    struct rdma_event_channel *ch = NULL;

    if (shca_cm_real("rdma_create_event_channel"))
        HOST(ch, rdma_create_event_channel);
    usable = ch != NULL;
    if (ch)
        end_channel(ch);
}

/* A host without the kernel's modules refuses the first channel. */
bool shca_cm_host_usable(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    if (!shca_config.only)
        pthread_once(&once, look_once);
    return usable;
}

/* ---- channels ---- */

int shca_cm_host_channel(struct shca_cm_channel *ch)
{
    struct epoll_event ready = {.events = EPOLLIN};

    if (ch->host)
        return 0;
    HOST(ch->host, rdma_create_event_channel);
    if (!ch->host || fcntl(ch->host->fd, F_SETFL, O_NONBLOCK) != 0 ||
        epoll_ctl(ch->pub.fd, EPOLL_CTL_ADD, ch->host->fd, &ready) != 0)
        return errno;
    return 0;
}

void shca_cm_host_channel_end(struct shca_cm_channel *ch)
{
    if (ch->host)
        end_channel(ch->host);
}

/* ---- identifiers ---- */

static void pull(struct shca_cm *id)
{
    struct rdma_cm_id old = id->pub;

    id->pub = *id->host;
    id->pub.channel = old.channel;
    id->pub.context = old.context;
    id->pub.event = old.event;
}

/* Fields that the program may have set itself. */
static void push(struct shca_cm *id)
{
    id->host->pd = id->pub.pd ? id->pub.pd : id->host->pd;
    id->host->qp = id->pub.qp;
    id->host->srq = id->pub.srq;
}

int shca_cm_host_done(struct shca_cm *id, int status)
{
    pull(id);
    return status;
}

struct rdma_cm_id *shca_cm_host_of(struct shca_cm *id)
{
    push(id);
    return id->host;
}

int shca_cm_host_make(struct shca_cm *id)
{
    struct shca_cm_channel *ch = shca_cm_channel_of(id->pub.channel);
    int e = shca_cm_host_channel(ch), status;

    if (e != 0)
        return e;
    HOST(status, rdma_create_id, ch->host, &id->host, id, id->pub.ps);
    if (status != 0)
        return errno;
    id->host->qp_type = id->pub.qp_type;
    return 0;
}

void shca_cm_host_end(struct shca_cm *id)
{
    int status;

    if (!id->host)
        return;
    HOST(status, rdma_destroy_id, id->host);
    (void)status;
    id->host = NULL;
}

int shca_cm_host_bind(struct shca_cm *id, struct sockaddr *addr)
{
    int e = id->host ? 0 : shca_cm_host_make(id), status = 0;

    if (e == 0)
        HOST(status, rdma_bind_addr, id->host, addr);
    return e ? e : status ? errno : 0;
}

int shca_cm_host_listen(struct shca_cm *id, int backlog)
{
    int status;

    HOST(status, rdma_listen, id->host, backlog);
    return status ? errno : 0;
}

int shca_cm_host_resolve(struct shca_cm *id, struct sockaddr *src, struct sockaddr *dst, int ms)
{
    int e = id->host ? 0 : shca_cm_host_make(id), status = 0;

    if (e == 0)
        HOST(status, rdma_resolve_addr, id->host, src, dst, ms);
    if (status != 0)
        e = errno;
    if (e == 0) {
        id->state = SHCA_CM_HOST;
        pull(id);
    }
    return e;
}

int shca_cm_host_migrate(struct shca_cm *id, struct rdma_event_channel *to)
{
    struct shca_cm_channel *ch = shca_cm_channel_of(to);
    struct epoll_event ready = {.events = EPOLLIN};
    int e = id->host ? shca_cm_host_channel(ch) : 0, status = 0;

    if (e == 0 && id->host)
        HOST(status, rdma_migrate_id, id->host, ch->host);
    /* The kernel moves the events without waking a waiting thread. */
    if (e == 0 && id->host)
        epoll_ctl(ch->pub.fd, EPOLL_CTL_MOD, ch->host->fd, &ready);
    return e ? e : status ? errno : 0;
}

/* ---- events ---- */

/* For a request of the host the program gets an identifier of ours. */
static struct shca_cm *adopt(struct shca_cm *listener, struct rdma_cm_id *host)
{
    struct shca_cm *id;

    pthread_mutex_lock(&shca_cm_lock);
    id = shca_cm_object_make(listener->pub.channel, listener->pub.context, listener->pub.ps,
                             listener->pub.qp_type);
    if (id) {
        id->state = SHCA_CM_HOST;
        id->host = host;
        host->context = id;
        pull(id);
    }
    pthread_mutex_unlock(&shca_cm_lock);
    return id;
}

static struct shca_cm_event *translate(struct rdma_cm_event *from)
{
    struct shca_cm *listener = from->listen_id ? from->listen_id->context : NULL;
    struct shca_cm *id = listener ? adopt(listener, from->id) : from->id->context;
    struct shca_cm_event *e = id ? shca_cm_event_make(id, from->event, from->status) : NULL;

    if (!e)
        return NULL;
    pull(id);
    e->pub = *from;
    e->pub.id = &id->pub;
    e->pub.listen_id = listener ? &listener->pub : NULL;
    e->host = from;
    if (listener) {
        e->request = id;
        e->id = listener;
    }
    return e;
}

struct shca_cm_event *shca_cm_host_take(struct shca_cm_channel *ch)
{
    struct rdma_cm_event *from;
    int status = -1;

    errno = EAGAIN;
    if (ch->host)
        HOST(status, rdma_get_cm_event, ch->host, &from);
    return status == 0 ? translate(from) : NULL;
}

void shca_cm_host_ack(struct rdma_cm_event *e)
{
    int status;

    HOST(status, rdma_ack_cm_event, e);
    (void)status;
}
