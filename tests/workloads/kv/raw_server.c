/* SPDX-License-Identifier: BSD-3-Clause */
/* A server over raw verbs: polls the last byte of each client's current slot in turn (or a
 * completion queue), passes requests through the two-stage pipeline, and sends the answers. After
 * --fail-lim empty polls in a row a dummy flushes the pipeline. Owns the pipeline and the buffers
 * of datagrams. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "kv_raw.h"

enum { looks_max = 512 };

static struct {
    struct kv_pipeline pipeline;
    uint64_t *taken; /* requests taken from each client */
    uint32_t next, fails, idle;
    struct kv_receives datagrams[kv_rails_max];
    struct ibv_mr *datagrams_mr[kv_rails_max];
    uint32_t posted[kv_rails_max], held[kv_rails_max]; /* receives; datagrams not answered yet */
    bool starving;
} serving;

static void answer(void *arg, const struct kv_item *item);

/* ---- Start and end */

static void open_datagrams(unsigned rail)
{
    uint32_t count = kv_clients * (uint32_t)kv.window + kv_spare;
    size_t each = kv_grh + kv.value_max + kv_layout.header_image;
    char *buffers = calloc(count, each);
    if (!buffers || trunkline_memory_open(&serving.datagrams_mr[rail], &kv_raw.domains[rail],
                                          buffers, count * each, IBV_ACCESS_LOCAL_WRITE))
        wl_job_die("no memory for %u datagrams", count);
    serving.datagrams[rail] = (struct kv_receives){.qp = kv_raw.ud[rail].qp.qp,
                                                   .buffers = buffers,
                                                   .size = each,
                                                   .lkey = serving.datagrams_mr[rail]->lkey,
                                                   .of = count};
    kv_raw_post_receives(&serving.datagrams[rail], 0, count);
    serving.posted[rail] = count;
}

static void post_notices(uint32_t client, uint32_t count)
{
    struct kv_receives notices = {.qp = kv_raw.peers[client].pair.qp.qp, .of = 1};
    kv_raw_post_receives(&notices, 0, count);
}

void kv_raw_server_notices(void)
{
    for (uint32_t c = 0; c < kv_clients; c++)
        post_notices(c, (uint32_t)kv.window + kv_spare);
}

void kv_raw_server_open(void)
{
    memset(&serving, 0, sizeof(serving));
    serving.pipeline.store = kv_server_store();
    serving.pipeline.answer = answer;
    serving.pipeline.immediate = !kv.pipeline;
    serving.taken = calloc(kv_clients, sizeof(*serving.taken));
    if (!serving.taken)
        wl_job_die("no memory for %u clients", kv_clients);
    for (unsigned rail = 0; kv_raw_datagrams() && rail < kv_raw.rail_count; rail++)
        open_datagrams(rail);
    if (kv_raw_notifies())
        kv_raw_server_notices();
}

void kv_raw_server_close(void)
{
    for (unsigned rail = 0; rail < kv_raw.rail_count; rail++) {
        if (serving.datagrams_mr[rail])
            ibv_dereg_mr(serving.datagrams_mr[rail]);
        free(serving.datagrams[rail].buffers);
    }
    free(serving.taken);
}

/* ---- Answers */

/* Written so that it ends where the image of an answer in the client's memory ends. */
static void write_answer(const struct kv_reply *reply, struct kv_peer *peer)
{
    struct kv_sender *sender = &peer->pair;
    struct ibv_send_wr *wr = kv_sender_next(sender, IBV_WR_RDMA_WRITE);
    char *end = kv_sender_end(sender, wr);
    size_t size = kv_answer_write(end, reply->op, reply->seq, reply->status, reply->value,
                                  reply->len, kv_mark_of((uint64_t)kv.window, reply->seq));
    size_t slot = kv_slot_index(wl_job.me, (uint64_t)kv.window, reply->seq);
    wr->wr.rdma.remote_addr = peer->segment + (slot + 1) * kv_slot - size;
    wr->wr.rdma.rkey = peer->rkey;
    kv_sender_put(sender, wr, end - size, size, sender->ring_mr->lkey);
}

static void send_answer(const struct kv_reply *reply, struct kv_peer *peer)
{
    struct kv_sender *sender = &kv_raw.ud[kv_rail_of(reply->client)];
    struct ibv_send_wr *wr = kv_sender_next(sender, IBV_WR_SEND_WITH_IMM);
    char *end = kv_sender_end(sender, wr);
    size_t size =
        kv_answer_write(end, reply->op, reply->seq, reply->status, reply->value, reply->len, 1);
    wr->imm_data = htobe32((uint32_t)wl_job.me << 16 | reply->seq % (uint32_t)kv.window);
    wr->wr.ud.ah = peer->ah;
    wr->wr.ud.remote_qpn = peer->ud.qpn;
    wr->wr.ud.remote_qkey = trunkline_qkey;
    kv_sender_put(sender, wr, end - size, size, sender->ring_mr->lkey);
}

void kv_raw_reply(const struct kv_reply *reply)
{
    struct kv_peer *peer = &kv_raw.peers[reply->client];
    if (kv_raw_answers_by_write())
        write_answer(reply, peer);
    else
        send_answer(reply, peer);
}

static void return_receive(unsigned rail, uint32_t place)
{
    serving.held[rail]--;
    serving.starving |= kv_server_fault(kv_starve_server);
    if (serving.starving)
        return;
    kv_raw_post_receives(&serving.datagrams[rail], place, 1);
    serving.posted[rail]++;
}

/* The receive buffer goes back before the answer leaves, for with the answer the client may send
 * again. item->r is its place. */
static void answer(void *arg, const struct kv_item *item)
{
    static struct kv_reply reply;
    unsigned rail = kv_rail_of(item->client);
    (void)arg;
    if (kv_raw_datagrams())
        return_receive(rail, (uint32_t)item->r);
    if (kv_server_finish(item, &reply))
        kv_raw_reply(&reply);
}

static void flush_answers(void)
{
    for (unsigned rail = 0; rail < kv_raw.rail_count; rail++)
        kv_sender_flush(&kv_raw.ud[rail]);
    for (uint32_t c = 0; kv_raw_answers_by_write() && c < kv_clients; c++)
        kv_sender_flush(&kv_raw.peers[c].pair);
}

/* ---- Requests */

static char *slot_end(uint32_t client)
{
    size_t slot = kv_slot_index(client, (uint64_t)kv.window, serving.taken[client]);
    return wl_job.segment + (slot + 1) * kv_slot;
}

/* K6: the mark says which lap through the slots this is. */
static bool take_slot(uint32_t client, struct kv_item *item)
{
    char *end = slot_end(client);
    uint8_t mark = __atomic_load_n((uint8_t *)end - kv_at_mark, __ATOMIC_ACQUIRE);
    uint8_t expected = kv_mark_of((uint64_t)kv.window, serving.taken[client]);
    if (!mark && !kv_raw_notifies())
        return false;
    if (kv_layout.compat ? !mark : mark != expected)
        kv_fail(kv_k6, "server %u: mark %u in a slot of client %u, where %u belongs",
                (unsigned)wl_job.me, mark, client, expected);
    bool whole = kv_server_accept(client, end, 0, true, item);
    /* A request that keeps its mark is found again, which lets K6 be seen failing. */
    serving.taken[client] += kv_record_mark(end) == 0;
    return whole;
}

static bool look_at_slots(struct kv_item *item)
{
    uint32_t client = serving.next;
    serving.next = client + 1 == kv_clients ? 0 : client + 1;
    return take_slot(client, item);
}

/* K15: no datagram is ever dropped, for as many receives are posted as clients may send before they
 * get an answer. */
static void use_receive(unsigned rail)
{
    uint32_t posted = --serving.posted[rail];
    uint32_t coming = kv_clients * (uint32_t)kv.window - ++serving.held[rail];
    if (posted < kv_mine.receives_min)
        kv_mine.receives_min = posted;
    if ((int32_t)coming > 0 && posted < coming)
        kv_fail(kv_k15, "server %u: %u receives are posted, %u requests may come",
                (unsigned)wl_job.me, posted, coming);
}

/* A completion names the client; notices of one client come in the order of its slots. */
static bool look_at_queue(struct kv_item *item)
{
    unsigned rail = serving.next;
    struct ibv_wc wc;
    serving.next = rail + 1 == kv_raw.rail_count ? 0 : rail + 1;
    int got = ibv_poll_cq(kv_raw.receives[rail], 1, &wc);
    if (got == 0)
        return false;
    if (got < 0 || wc.status != IBV_WC_SUCCESS)
        wl_job_die("receiving over %s: %s", kv_raw.rails[rail].name,
                   got < 0 ? "its completion queue broke" : ibv_wc_status_str(wc.status));
    kv_mine.cqes++;
    uint32_t client = be32toh(wc.imm_data);
    if (client >= kv_clients)
        wl_job_die("a request of client %u, there are %u", client, kv_clients);
    if (kv_raw_notifies()) {
        post_notices(client, 1);
        return take_slot(client, item);
    }
    item->r = (uint32_t)wc.wr_id;
    use_receive(rail);
    const struct kv_receives *datagrams = &serving.datagrams[rail];
    char *end = datagrams->buffers + item->r * datagrams->size + wc.byte_len;
    return kv_server_accept(client, end, wc.byte_len - kv_grh, false, item);
}

static bool empty(void)
{
    return !serving.pipeline.older.real && !serving.pipeline.newer.real;
}

static void push(const struct kv_item *item)
{
    kv_pipeline_push(&serving.pipeline, item);
    kv_mine.pushes = serving.pipeline.pushes;
    kv_mine.dummies = serving.pipeline.dummies;
}

static void found_nothing(uint32_t pass)
{
    serving.fails++;
    /* An answer is not kept when a whole pass brought no more requests. */
    if (serving.fails == pass)
        flush_answers();
    if (serving.fails < (uint32_t)kv.fail_lim)
        return;
    serving.fails = 0;
    if (!empty()) {
        push(NULL);
        flush_answers();
    }
}

void kv_raw_serve(void)
{
    bool slots = kv_raw_writes() && !kv_raw_notifies();
    uint32_t pass = slots ? kv_clients : kv_raw.rail_count;
    struct kv_item item = {.real = true};
    for (int i = 0; i < looks_max; i++) {
        kv_mine.polls++;
        if (slots ? look_at_slots(&item) : look_at_queue(&item)) {
            serving.fails = serving.idle = 0;
            serving.pipeline.hasty |= kv_server_fault(kv_newer_first);
            push(&item);
        } else {
            found_nothing(pass);
            serving.idle++;
        }
    }
    gasnet_AMPoll();
    if (serving.idle > looks_max)
        kv_raw_pause(&serving.idle);
}
