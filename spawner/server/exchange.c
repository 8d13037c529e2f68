/* SPDX-License-Identifier: BSD-3-Clause */
/* Fences and data of ranks over hosts. libpmix asks on its own thread, answers come on the main
 * thread; one lock protects the table of open requests. libpmix is never called with the lock held.
 * / */
#include "config.h"

#include "server_private.h"
#include "spawner/wire/exchange.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* A request that libpmix waits for: a fence by its name, or data of a rank by an id. */
struct waiting {
    struct waiting *next;
    struct bytes name; /* of a fence; empty for a data request */
    uint32_t id;
    pmix_modex_cbfunc_t done;
    void *object;
};

/* The number of fences so far of one list of ranks. */
struct numbered {
    struct numbered *next;
    struct bytes list; /* the name of its fence number 0 */
    uint32_t used;
};

/* A data request of another host to our libpmix. */
struct foreign {
    uint32_t id, host;
};

static pthread_mutex_t exchange_lock = PTHREAD_MUTEX_INITIALIZER;
static struct waiting *waiting;
static struct numbered *lists;
static uint32_t last_id;
static const struct server_job *server;

void server_open_exchange(const struct server_job *job)
{
    server = job;
}

static bool same_bytes(const struct bytes *a, const void *data, size_t length)
{
    return a->length == length && !memcmp(bytes_front(a), data, length);
}

static int compare_ranks(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The ranks of a fence, sorted; EXCHANGE_ALL for all of the job. NULL without memory, or for ranks
 * of another job. The caller frees. */
static uint32_t *list_ranks(const pmix_proc_t procs[], size_t count, uint32_t *used)
{
    uint32_t *ranks = malloc((count + 1) * sizeof(*ranks));

    *used = (uint32_t)count;
    for (size_t i = 0; ranks && i < count; i++) {
        ranks[i] = procs[i].rank;
        if (procs[i].rank == PMIX_RANK_WILDCARD)
            *used = EXCHANGE_ALL;
        if (strncmp(procs[i].nspace, server->job->nspace, PMIX_MAX_NSLEN) == 0)
            continue;
        free(ranks);
        return NULL;
    }
    if (ranks && *used != EXCHANGE_ALL)
        qsort(ranks, count, sizeof(*ranks), compare_ranks);
    return ranks;
}

/* The number of the next fence of a list; under the lock. */
static uint32_t next_number(uint32_t count, const uint32_t *ranks)
{
    struct bytes name = {0};
    struct numbered *n = lists;

    exchange_pack_name(&name, 0, count, ranks);
    while (n && !same_bytes(&n->list, bytes_front(&name), name.length))
        n = n->next;
    if (n) {
        bytes_free(&name);
        return n->used++;
    }
    n = calloc(1, sizeof(*n));
    if (!n)
        return 0;
    *n = (struct numbered){lists, name, 1};
    lists = n;
    return 0;
}

static void add_waiting(struct waiting *w)
{
    w->next = waiting;
    waiting = w;
}

pmix_status_t server_fence(const pmix_proc_t procs[], size_t count, pmix_status_t status,
                           const char *data, size_t length, pmix_modex_cbfunc_t done, void *object)
{
    struct bytes frame = {0};
    uint32_t used, *ranks = list_ranks(procs, count, &used);
    struct waiting *w = calloc(1, sizeof(*w));

    if (!ranks || !w) {
        free(ranks);
        free(w);
        return ranks ? PMIX_ERR_NOMEM : PMIX_ERR_NOT_SUPPORTED;
    }
    *w = (struct waiting){.done = done, .object = object};
    pack_number(&frame, (uint32_t)status);
    pthread_mutex_lock(&exchange_lock);
    exchange_pack_name(&frame, next_number(used, ranks), used, ranks);
    bytes_append(&w->name, bytes_front(&frame) + 4, frame.length - 4);
    add_waiting(w);
    pthread_mutex_unlock(&exchange_lock);
    free(ranks);
    bytes_append(&frame, data, length);
    server_send(WIRE_FENCE, 0, bytes_front(&frame), frame.length);
    bytes_free(&frame);
    return PMIX_SUCCESS;
}

pmix_status_t server_ask(const pmix_proc_t *proc, pmix_modex_cbfunc_t done, void *object)
{
    const struct job *job = server->job;
    uint8_t id[4];

    if (strncmp(proc->nspace, job->nspace, PMIX_MAX_NSLEN) != 0 || proc->rank >= job->ranks ||
        job_host_of(job, proc->rank) == job->host)
        return PMIX_ERR_NOT_FOUND; /* libpmix has all data of this host's ranks */
    struct waiting *w = calloc(1, sizeof(*w));
    if (!w)
        return PMIX_ERR_NOMEM;
    *w = (struct waiting){.done = done, .object = object};
    pthread_mutex_lock(&exchange_lock);
    w->id = ++last_id;
    wire_put_number(id, w->id);
    add_waiting(w);
    pthread_mutex_unlock(&exchange_lock);
    server_send(WIRE_DMX_REQUEST, proc->rank, id, sizeof(id));
    return PMIX_SUCCESS;
}

/* Removes and returns the entry of a fence (`name` is not NULL) or a data request. */
static struct waiting *take_waiting(const uint8_t *name, size_t length, uint32_t id)
{
    struct waiting *found = NULL;
    pthread_mutex_lock(&exchange_lock);
    for (struct waiting **at = &waiting; *at; at = &(*at)->next) {
        struct waiting *w = *at;
        if (name ? !same_bytes(&w->name, name, length) : w->name.length || w->id != id)
            continue;
        *at = w->next;
        found = w;
        break;
    }
    pthread_mutex_unlock(&exchange_lock);
    return found;
}

static pmix_status_t status_of(uint32_t status)
{
    return status == EXCHANGE_GONE ? PMIX_ERR_NOT_FOUND : (pmix_status_t)status;
}

/* libpmix calls free() on the copy when it has read it. */
static void conclude(struct waiting *w, uint32_t status, const uint8_t *data, size_t length)
{
    char *copy = w && length ? malloc(length) : NULL;

    if (!w)
        return;
    if (length && !copy)
        w->done(PMIX_ERR_NOMEM, NULL, 0, w->object, NULL, NULL);
    else if (length)
        w->done(status_of(status), memcpy(copy, data, length), length, w->object, free, copy);
    else
        w->done(status_of(status), NULL, 0, w->object, NULL, NULL);
    bytes_free(&w->name);
    free(w);
}

static void on_own_data(pmix_status_t status, char *data, size_t length, void *object)
{
    struct foreign *f = object;
    struct bytes frame = {0};

    pack_number(&frame, f->id);
    pack_number(&frame, f->host);
    pack_number(&frame, (uint32_t)status);
    if (data)
        bytes_append(&frame, data, length);
    server_send(WIRE_DMX_REPLY, 0, bytes_front(&frame), frame.length);
    bytes_free(&frame);
    free(f);
}

/* libpmix answers when the rank has committed its data. */
static void answer(const struct wire_frame *frame)
{
    pmix_proc_t proc;
    struct foreign *f = malloc(sizeof(*f));

    if (!f || frame->length != 8) {
        free(f);
        return;
    }
    *f = (struct foreign){wire_number(frame->payload), wire_number(frame->payload + 4)};
    PMIX_LOAD_PROCID(&proc, server->job->nspace, frame->rank);
    pmix_status_t rc = PMIx_server_dmodex_request(&proc, on_own_data, f);
    if (rc != PMIX_SUCCESS)
        on_own_data(rc, NULL, 0, f);
}

void server_take(const struct wire_frame *frame)
{
    struct exchange_fence fence;
    struct exchange_reply reply;

    if (frame->type == WIRE_FENCE_DONE &&
        exchange_unpack_fence(frame->payload, frame->length, &fence))
        conclude(take_waiting(fence.name, fence.name_length, 0), fence.status, fence.data,
                 fence.length);
    else if (frame->type == WIRE_DMX_REPLY &&
             exchange_unpack_reply(frame->payload, frame->length, &reply))
        conclude(take_waiting(NULL, 0, reply.id), reply.status, reply.data, reply.length);
    else if (frame->type == WIRE_DMX_REQUEST)
        answer(frame);
}
