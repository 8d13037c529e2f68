/* SPDX-License-Identifier: BSD-3-Clause */
/* A client over raw verbs: requests as writes into its slots at the server or as datagrams, answers
 * as datagrams or as writes into its own slots. Datagrams need buffers before they come: --cl-batch
 * are posted, and each time that --cl-semi were used, as many again (K15). They are in the segment.
 * Owns nothing. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "kv_raw.h"

enum { taken_at_once = 16 };

/* Of a queue pair for datagrams. */
struct receiving {
    struct kv_receives receives;
    uint32_t next, used, posted;
};

static struct {
    struct receiving *queues;
    uint32_t idle;
} receiving;

static unsigned rail(void)
{
    return kv_rail_of(kv_client);
}

static void post_receives(struct receiving *queue, uint32_t count)
{
    kv_raw_post_receives(&queue->receives, queue->next, count);
    queue->next = (queue->next + count) % (uint32_t)kv.cl_batch;
    queue->posted += count;
}

static void open_queue(uint32_t number)
{
    size_t all = (size_t)kv.cl_batch * kv_buffer_size();
    receiving.queues[number].receives =
        (struct kv_receives){.qp = kv_raw.ud[number].qp.qp,
                             .buffers = wl_job.segment + kv_buffers() + number * all,
                             .size = kv_buffer_size(),
                             .lkey = kv_raw.segment[rail()]->lkey,
                             .of = (uint32_t)kv.cl_batch,
                             .tag = number};
    post_receives(&receiving.queues[number], (uint32_t)kv.cl_batch);
}

void kv_raw_client_open(void)
{
    memset(&receiving, 0, sizeof(receiving));
    receiving.queues = calloc(kv_raw.ud_count, sizeof(*receiving.queues));
    if (!receiving.queues)
        wl_job_die("no memory for %u queues", kv_raw.ud_count);
    for (uint32_t number = 0; number < kv_raw.ud_count; number++)
        open_queue(number);
}

void kv_raw_client_close(void)
{
    free(receiving.queues);
}

/* ---- Requests */

static size_t image_of(const struct kv_pending *pending)
{
    return kv_image_size(pending->op, pending->len);
}

static void write_request(struct kv_pending *pending)
{
    struct kv_peer *peer = &kv_raw.peers[pending->server];
    size_t image = image_of(pending);
    size_t slot = kv_slot_index(kv_client, (uint64_t)kv.window, pending->r);
    bool notify = kv_raw_notifies();
    struct ibv_send_wr *wr =
        kv_sender_next(&peer->pair, notify ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE);
    wr->imm_data = notify ? htobe32(kv_client) : 0;
    wr->wr.rdma.remote_addr = peer->segment + (slot + 1) * kv_slot - image;
    wr->wr.rdma.rkey = peer->rkey;
    kv_sender_put(&peer->pair, wr, pending->image - image, image, kv_raw.segment[rail()]->lkey);
}

static void send_request(struct kv_pending *pending)
{
    struct kv_peer *peer = &kv_raw.peers[pending->server];
    struct kv_sender *sender = kv_raw_ud(pending->server);
    size_t image = image_of(pending);
    struct ibv_send_wr *wr = kv_sender_next(sender, IBV_WR_SEND_WITH_IMM);
    wr->imm_data = htobe32(kv_client);
    wr->wr.ud.ah = peer->ah;
    wr->wr.ud.remote_qpn = peer->ud.qpn;
    wr->wr.ud.remote_qkey = trunkline_qkey;
    kv_sender_put(sender, wr, pending->image - image, image, kv_raw.segment[rail()]->lkey);
}

void kv_raw_request(struct kv_pending *pending)
{
    if (kv_raw_datagrams())
        send_request(pending);
    else
        write_request(pending);
}

/* ---- Answers */

/* `slot` is that of the request, for answers that do not name it. */
static void take_image(uint32_t server, uint32_t slot, const char *end, size_t most)
{
    struct kv_answer answer = {.seq = kv_layout.compat ? kv_client_seq(server, slot) : 0};
    if (!kv_answer_read(end, most, &answer)) {
        kv_fail(kv_k4, "client %u: an answer of server %u is none", kv_client, server);
        return;
    }
    kv_client_take(server, answer.seq, answer.status, answer.value, answer.len);
}

/* K15: at least a window of receives is always posted. */
static void use_receive(struct receiving *queue)
{
    queue->posted--;
    queue->used++;
    if (queue->posted < kv_mine.receives_min)
        kv_mine.receives_min = queue->posted;
    if (queue->posted < (uint32_t)kv.window)
        kv_fail(kv_k15, "client %u: %u receives are posted, the window is %lld", kv_client,
                queue->posted, (long long)kv.window);
    if (queue->used < (uint32_t)kv.cl_semi)
        return;
    queue->used = 0;
    if (wl_inject(&kv.injection, kv_starve))
        return;
    post_receives(queue, (uint32_t)kv.cl_semi);
}

static bool take_datagrams(void)
{
    struct ibv_wc wc[taken_at_once];
    int got = ibv_poll_cq(kv_raw.receives[rail()], taken_at_once, wc);
    for (int i = 0; i < got; i++) {
        if (wc[i].status != IBV_WC_SUCCESS)
            wl_job_die("receiving over %s: %s", kv_raw.rails[rail()].name,
                       ibv_wc_status_str(wc[i].status));
        kv_mine.cqes++;
        struct receiving *queue = &receiving.queues[wc[i].wr_id >> 32];
        uint32_t imm = be32toh(wc[i].imm_data), place = (uint32_t)wc[i].wr_id;
        take_image(imm >> 16, imm & UINT16_MAX,
                   queue->receives.buffers + place * kv_buffer_size() + wc[i].byte_len,
                   wc[i].byte_len - kv_grh);
        use_receive(queue);
    }
    return got > 0;
}

/* A client clears the mark in its own slots, so that it sees each answer once. */
static bool take_written(const struct kv_pending *pending)
{
    size_t slot = kv_slot_index(pending->server, (uint64_t)kv.window, pending->r);
    char *end = wl_job.segment + (slot + 1) * kv_slot;
    if (!__atomic_load_n((uint8_t *)end - kv_at_mark, __ATOMIC_ACQUIRE))
        return false;
    end[-kv_at_mark] = 0;
    take_image(pending->server, 0, end, kv_slot);
    return true;
}

void kv_raw_await(struct kv_pending *pending)
{
    if (kv_raw_answers_by_write() ? take_written(pending) : take_datagrams())
        receiving.idle = 0;
    else
        kv_raw_pause(&receiving.idle);
}
