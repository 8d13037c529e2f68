/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Small local pieces whose remote side is contiguous: gathered in registered memory of our own and
 * put from there, or got into it and scattered. The target's CPU is not involved. Owns that memory,
 * allocated at first use, and the buffers in use; one lock, under which the transport posts. No
 * handler takes it. */
#include "config.h"

#include "base/bits.h"
#include "base/lock.h"
#include "memory/memory.h"
#include "op/op.h"
#include "progress/progress.h"
#include "vector/copy.h"
#include "vector/vector_private.h"

enum {
    stage_size = 64 * 1024, /* as a bounce buffer */
    stage_count = 16        /* 1 MiB: more than the default depth of a queue moves at once */
};

struct stage {
    struct stage *next;
    struct tk_op op;     /* the network's pieces of this buffer */
    struct tk_op *whole; /* what this is a piece of */
    struct tk_peer *peer;
    struct tk_rma rma;
    struct tk_rma_state state;
    bool is_posted;         /* all of it */
    struct tk_stream local; /* get */
    char *data;
};

static struct {
    tk_lock_t lock;
    struct tk_area area;
    struct tk_region region;
    bool is_open, is_failed;
    struct stage all[stage_count];
    struct stage *free, *flying;
} stages = {.lock = TK_LOCK_INIT};

static bool open_memory(void)
{
    if (stages.is_open || stages.is_failed)
        return stages.is_open;
    stages.is_failed = true;
    if (tk_area_open(&stages.area, "buffers of non-contiguous transfers", stage_size * stage_count,
                     false) != TK_OK)
        return false;
    stages.region.base = stages.area.base;
    stages.region.size = stages.area.size;
    if (tk_transports_register(&stages.region) != TK_OK) {
        tk_area_close(&stages.area);
        return false;
    }
    for (int i = 0; i < stage_count; i++) {
        stages.all[i].data = (char *)stages.area.base + (size_t)i * stage_size;
        stages.all[i].next = stages.free;
        stages.free = &stages.all[i];
    }
    stages.is_open = true;
    return true;
}

bool tk_vector_can_stage(void)
{
    tk_lock(&stages.lock);
    bool can = open_memory();
    tk_unlock(&stages.lock);
    return can;
}

static bool is_landed(struct stage *s)
{
    if (!s->is_posted)
        s->is_posted = tk_peer_transport(s->peer)->rma.post(s->peer, &s->rma, &s->state) == TK_OK;
    return s->is_posted && tk_op_done(&s->op);
}

static void land(struct stage *s)
{
    struct tk_op *whole = s->whole;
    if (!s->rma.is_put) {
        tk_copy_scatter(&s->local, s->data, s->rma.nbytes);
        tk_stream_close(&s->local);
    }
    s->next = stages.free;
    stages.free = s;
    tk_counter_add(&tk_deferred_work_wanted, -1);
    /* Last: a thread that sees zero may free the operation. */
    tk_counter_add(&whole->pending, -1);
}

static bool stages_progress(void)
{
    bool any = false;
    if (!tk_trylock(&stages.lock))
        return false;
    for (struct stage **at = &stages.flying; *at;) {
        struct stage *s = *at;
        if (!is_landed(s)) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        land(s);
        any = true;
    }
    tk_unlock(&stages.lock);
    return any;
}

/* Uses a local region of our own and the keys of the remote segment, as between endpoints other
 * than 0. */
static void load(struct stage *s, struct tk_vector *v, size_t nbytes)
{
    tk_op_init(&s->op);
    s->whole = v->pieces;
    s->peer = v->peer;
    s->state = (struct tk_rma_state){.done = 0};
    s->rma = (struct tk_rma){.remote = (uintptr_t)v->remote.at,
                             .local = s->data,
                             .nbytes = nbytes,
                             .op = &s->op,
                             .is_put = v->is_put,
                             .is_pair = true,
                             .endpoint = v->rma.is_pair ? v->rma.endpoint : 0,
                             .remote_keys =
                                 v->rma.is_pair ? v->rma.remote_keys : tk_peers.keys[v->peer->rank],
                             .home = &stages.region};
    tk_stream_skip(&v->remote, nbytes);
    if (v->is_put) {
        tk_copy_gather(s->data, &v->local, nbytes);
    } else {
        tk_stream_copy(&s->local, &v->local);
        tk_stream_drop(&v->local, nbytes);
    }
}

static bool post_one(struct tk_vector *v)
{
    tk_lock(&stages.lock);
    struct stage *s = stages.free;
    if (s) {
        stages.free = s->next;
        load(s, v, tk_min(v->remote.left, stage_size));
        tk_counter_add(&v->pieces->pending, 1);
        tk_counter_add(&tk_deferred_work_wanted, 1);
        s->is_posted = tk_peer_transport(v->peer)->rma.post(v->peer, &s->rma, &s->state) == TK_OK;
        s->next = stages.flying;
        stages.flying = s;
    }
    tk_unlock(&stages.lock);
    return s != NULL;
}

bool tk_vector_by_stages(struct tk_vector *v)
{
    while (v->remote.left > 0)
        if (!post_one(v))
            return false;
    return true;
}

void tk_vector_stages_open(void)
{
    tk_progress_add(stages_progress);
}
