/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Registered memory: slabs of message buffers, and segments. Buffers are of one size, so that any
 * free one serves any message. Pages of a slab come into being on first use: a rank with 63 peers
 * posts 50 MB of buffers and touches few. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>

#include "base/report.h"
#include "transport/verbs/verbs_private.h"

enum { recv_growth = 16 /* buffers: 1 MiB, small beside what is posted for one peer */ };

struct ibv_mr *tk_register(struct tk_rail *rail, void *base, size_t size, const char *what)
{
    int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ;
    struct ibv_mr *mr = ibv_reg_mr(rail->pd, base, size, access);
    if (!mr)
        tk_explain_registration(rail, what, size, errno);
    return mr;
}

enum tk_status tk_verbs_register(struct tk_region *region)
{
    struct ibv_mr *mr = tk_register(&tk_verbs.rail, region->base, region->size, "segment");
    if (!mr)
        return TK_FAIL;
    region->handle = mr;
    region->local_key = mr->lkey;
    region->remote_key = mr->rkey;
    return TK_OK;
}

void tk_verbs_unregister(struct tk_region *region)
{
    ibv_dereg_mr(region->handle);
    region->handle = NULL;
}

void tk_verbs_use_segment(const struct tk_region *region)
{
    tk_verbs.segment_mr = region ? region->handle : NULL;
}

static void buffer_open(struct tk_buffer *buffer, char *data, uint32_t key)
{
    buffer->data = data;
    buffer->key = key;
    buffer->sge = (struct ibv_sge){.addr = (uintptr_t)data, .length = tk_buffer_size, .lkey = key};
    buffer->wr =
        (struct ibv_recv_wr){.wr_id = (uintptr_t)buffer, .sg_list = &buffer->sge, .num_sge = 1};
}

static enum tk_status slab_open(struct tk_rail *rail, struct tk_pool *pool, unsigned count,
                                const char *what)
{
    struct tk_slab *slab = calloc(1, sizeof(*slab));
    if (!slab || !(slab->buffers = calloc(count, sizeof(*slab->buffers)))) {
        free(slab);
        tk_complain("out of memory for %u buffers", count);
        return TK_FAIL;
    }
    if (tk_area_open(&slab->area, what, (size_t)count * tk_buffer_stride, false) != TK_OK)
        goto free_slab;
    slab->mr = tk_register(rail, slab->area.base, slab->area.size, what);
    if (!slab->mr)
        goto close_area;
    for (unsigned i = count; i-- > 0;) {
        char *data = (char *)slab->area.base + (size_t)i * tk_buffer_stride;
        buffer_open(&slab->buffers[i], data, slab->mr->lkey);
        tk_pool_give(pool, &slab->buffers[i]);
    }
    slab->next = tk_verbs.slabs;
    tk_verbs.slabs = slab;
    return TK_OK;
close_area:
    tk_area_close(&slab->area);
free_slab:
    free(slab->buffers);
    free(slab);
    return TK_FAIL;
}

enum tk_status tk_buffers_open(struct tk_rail *rail, unsigned recv_count, unsigned bounce_count)
{
    tk_pool_init(&tk_verbs.recv_pool);
    tk_pool_init(&tk_verbs.bounce_pool);
    if (slab_open(rail, &tk_verbs.recv_pool, recv_count, "receive buffers") != TK_OK)
        return TK_FAIL;
    return slab_open(rail, &tk_verbs.bounce_pool, bounce_count, "bounce buffers");
}

enum tk_status tk_recv_pool_grow(void)
{
    static tk_lock_t growing = TK_LOCK_INIT;
    tk_lock(&growing);
    enum tk_status status =
        slab_open(&tk_verbs.rail, &tk_verbs.recv_pool, recv_growth, "receive buffers");
    tk_unlock(&growing);
    return status;
}

void tk_buffers_close(void)
{
    while (tk_verbs.slabs) {
        struct tk_slab *slab = tk_verbs.slabs;
        tk_verbs.slabs = slab->next;
        ibv_dereg_mr(slab->mr);
        tk_area_close(&slab->area);
        free(slab->buffers);
        free(slab);
    }
}
