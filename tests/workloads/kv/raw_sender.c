/* SPDX-License-Identifier: BSD-3-Clause */
/* Send queues with one signal in many; see kv_raw.h. Owns nothing but what its senders own. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "kv_raw.h"

static void *make(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        wl_job_die("no memory for %zu work requests", count);
    return memory;
}

void kv_sender_open(struct kv_sender *sender, unsigned rail, const trunkline_qp_options_t *options,
                    uint32_t group, uint32_t list_most, bool ring)
{
    *sender = (struct kv_sender){.group = group, .list_most = list_most};
    if (trunkline_qp_open(&sender->qp, &kv_raw.domains[rail], &kv_raw.rails[rail], options))
        wl_job_die("%s", trunkline_rails_error());
    sender->wrs = make(list_most, sizeof(*sender->wrs));
    sender->sges = make(list_most, sizeof(*sender->sges));
    if (!ring)
        return;
    sender->ring = make(2 * (size_t)group, kv_answer_max);
    if (trunkline_memory_open(&sender->ring_mr, &kv_raw.domains[rail], sender->ring,
                              2 * (size_t)group * kv_answer_max, IBV_ACCESS_LOCAL_WRITE))
        wl_job_die("%s", trunkline_rails_error());
}

void kv_sender_close(struct kv_sender *sender)
{
    trunkline_qp_close(&sender->qp);
    if (sender->ring_mr)
        ibv_dereg_mr(sender->ring_mr);
    free(sender->ring);
    free(sender->wrs);
    free(sender->sges);
    memset(sender, 0, sizeof(*sender));
}

void kv_sender_flush(struct kv_sender *sender)
{
    struct ibv_send_wr *bad;
    if (!sender->list)
        return;
    sender->wrs[sender->list - 1].next = NULL;
    int error = ibv_post_send(sender->qp.qp, sender->wrs, &bad);
    if (error)
        wl_job_die("%s does not take a work request: %s", sender->qp.name, strerror(error));
    kv_mine.doorbells++;
    kv_mine.lists++;
    kv_mine.listed += sender->list;
    sender->list = 0;
}

/* A completion that is due; that of a broken connection has a bad status. */
static void reap(struct kv_sender *sender)
{
    uint64_t limit = wl_now() + (uint64_t)kv.common.timeout_ms * 1000000;
    struct ibv_wc wc;
    int got;
    while ((got = ibv_poll_cq(sender->qp.send_cq, 1, &wc)) == 0)
        if (wl_now() > limit)
            wl_job_die("%s: no completion in %lld ms", sender->qp.name,
                       (long long)kv.common.timeout_ms);
    if (got < 0 || wc.status != IBV_WC_SUCCESS)
        wl_job_die("%s: %s", sender->qp.name,
                   got < 0 ? "its completion queue broke" : ibv_wc_status_str(wc.status));
    kv_mine.cqes++;
    sender->unreaped = false;
}

struct ibv_send_wr *kv_sender_next(struct kv_sender *sender, enum ibv_wr_opcode opcode)
{
    uint64_t place = sender->count % sender->group;
    if (place == sender->group - 1 && sender->unreaped) {
        kv_sender_flush(sender);
        reap(sender);
    }
    uint32_t i = sender->list++;
    struct ibv_send_wr *wr = &sender->wrs[i];
    *wr = (struct ibv_send_wr){.wr_id = sender->count++,
                               .sg_list = &sender->sges[i],
                               .num_sge = 1,
                               .next = wr + 1,
                               .opcode = opcode};
    if (place == 0) {
        wr->send_flags = IBV_SEND_SIGNALED;
        sender->unreaped = true;
    }
    return wr;
}

void kv_sender_put(struct kv_sender *sender, struct ibv_send_wr *wr, const void *data, size_t size,
                   uint32_t lkey)
{
    kv_mine.wire_bytes += size;
    *wr->sg_list = (struct ibv_sge){(uint64_t)(uintptr_t)data, (uint32_t)size, lkey};
    if (kv.use_inline && size <= sender->qp.inline_size)
        wr->send_flags |= IBV_SEND_INLINE;
    kv_mine.posts++;
    kv_mine.inlined += (wr->send_flags & IBV_SEND_INLINE) != 0;
    if (sender->list == sender->list_most)
        kv_sender_flush(sender);
}
