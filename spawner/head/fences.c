/* SPDX-License-Identifier: BSD-3-Clause */
/* Open fences and requests; see fences.h. */
#include "config.h"

#include "fences.h"
#include "spawner/wire/exchange.h"
#include "spawner/wire/wire.h"

#include <stdlib.h>
#include <string.h>

struct fence {
    struct fence *next;
    struct bytes name, data;
    uint32_t status;
    uint32_t wanted, present;
    bool *takes_part, *came; /* by host */
};

struct question {
    struct question *next;
    uint32_t asker, target, id;
};

static bool mark_hosts(const struct job *job, const struct exchange_fence *f, struct fence *n)
{
    if (f->count == EXCHANGE_ALL) {
        memset(n->takes_part, true, job->host_count);
        n->wanted = job->host_count;
        return true;
    }
    for (uint32_t i = 0; i < f->count; i++) {
        uint32_t rank = wire_number(f->ranks + 4 * (size_t)i);
        if (rank >= job->ranks)
            return false;
        bool *mark = &n->takes_part[job_host_of(job, rank)];
        n->wanted += !*mark;
        *mark = true;
    }
    return true;
}

static void fence_free(struct fence *n)
{
    bytes_free(&n->name);
    bytes_free(&n->data);
    free(n->takes_part);
    free(n->came);
    free(n);
}

static struct fence *fence_open(struct fences *t, const struct exchange_fence *f)
{
    struct fence *n = calloc(1, sizeof(*n));
    if (!n)
        return NULL;
    n->takes_part = calloc(t->job->host_count, sizeof(bool));
    n->came = calloc(t->job->host_count, sizeof(bool));
    if (!n->takes_part || !n->came || !mark_hosts(t->job, f, n)) {
        fence_free(n);
        return NULL;
    }
    bytes_append(&n->name, f->name, f->name_length);
    n->next = t->open;
    t->open = n;
    return n;
}

static struct fence *fence_find(struct fences *t, const struct exchange_fence *f)
{
    for (struct fence *n = t->open; n; n = n->next)
        if (n->name.length == f->name_length &&
            !memcmp(bytes_front(&n->name), f->name, f->name_length))
            return n;
    return fence_open(t, f);
}

static void fence_close(struct fences *t, struct fence *n)
{
    struct fence **at = &t->open;
    while (*at != n)
        at = &(*at)->next;
    *at = n->next;
    fence_free(n);
}

static void fence_conclude(struct fences *t, struct fence *n, struct fence_result *result)
{
    *result = (struct fence_result){.everywhere = n->wanted == t->job->host_count,
                                    .takes_part = n->takes_part};
    n->takes_part = NULL;
    pack_number(&result->payload, n->status);
    bytes_append(&result->payload, bytes_front(&n->name), n->name.length);
    bytes_append(&result->payload, bytes_front(&n->data), n->data.length);
    fence_close(t, n);
}

bool fences_add(struct fences *t, uint32_t host, const uint8_t *payload, size_t length,
                struct fence_result *result)
{
    struct exchange_fence f;
    if (host >= t->job->host_count || !exchange_unpack_fence(payload, length, &f))
        return false;
    struct fence *n = fence_find(t, &f);
    if (!n || !n->takes_part[host] || n->came[host])
        return false;
    n->came[host] = true;
    if (!n->status)
        n->status = f.status;
    bytes_append(&n->data, f.data, f.length);
    if (++n->present < n->wanted)
        return false;
    fence_conclude(t, n, result);
    return true;
}

void fences_ask(struct fences *t, uint32_t asker, uint32_t target, uint32_t id)
{
    struct question *q = malloc(sizeof(*q));
    if (!q)
        return; /* then the request is only not answered when the target's host ends */
    *q = (struct question){t->questions, asker, target, id};
    t->questions = q;
}

static void question_close(struct question **at)
{
    struct question *q = *at;
    *at = q->next;
    free(q);
}

void fences_answered(struct fences *t, uint32_t asker, uint32_t id)
{
    for (struct question **at = &t->questions; *at; at = &(*at)->next)
        if ((*at)->asker == asker && (*at)->id == id) {
            question_close(at);
            return;
        }
}

bool fences_unanswered(struct fences *t, uint32_t target, uint32_t *asker, uint32_t *id)
{
    for (struct question **at = &t->questions; *at; at = &(*at)->next)
        if ((*at)->target == target) {
            *asker = (*at)->asker;
            *id = (*at)->id;
            question_close(at);
            return true;
        }
    return false;
}

void fences_free(struct fences *t)
{
    while (t->open)
        fence_close(t, t->open);
    while (t->questions)
        question_close(&t->questions);
}
