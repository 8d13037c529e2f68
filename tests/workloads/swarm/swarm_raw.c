/* SPDX-License-Identifier: BSD-3-Clause */
/* swarm over raw verbs: a queue pair for each connection, and three ways to know what is complete:
 * every operation's own completion; or one in --unsig operations of a queue pair, and then reads by
 * the bytes that arrive, writes not at all. Owns queue pairs and workers; a worker belongs to the
 * thread of its flood. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rails.h"
#include "swarm.h"

enum { reap_max = 16, seq_bits = 32, inline_most = 512 };

/* Our end of a connection. */
struct line {
    trunkline_qp_t qp;
    struct ibv_cq *cq;
    uint64_t posts;     /* so far */
    uint64_t confirmed; /* of these, by the last completion: queue pairs work in order */
    uint64_t remote;    /* address of the partner's segment */
    uint32_t remote_key, local_key;
    gex_Rank_t peer;
    char *outbox; /* writes that are not inline, where slots are free before they are complete */
};

struct worker {
    struct line *lines; /* by k */
    struct ibv_cq *cq;  /* of all lines, or NULL */
    struct line *chain; /* whose requests are not rung for yet */
    unsigned chained;
    struct ibv_send_wr *wrs;
    struct ibv_sge *sges;
};

static struct worker *workers;
static struct ibv_mr **outbox_memory;
static char *outboxes;

static uint32_t per_thread(void)
{
    return swarm_size.n * swarm_size.m;
}

static unsigned rail_of(uint32_t thread, uint32_t k)
{
    return (thread + (swarm.rail_map ? k / swarm_size.n : 0)) % rma_rails.count;
}

static size_t outbox_cells(void)
{
    return 2 * (size_t)swarm.unsig;
}

/* ---- Making and connecting */

static bool needs_outbox(void)
{
    return !swarm.allsig && swarm.write_percent > 0;
}

static bool open_line(uint32_t thread, uint32_t k)
{
    struct worker *worker = &workers[thread];
    struct line *line = &worker->lines[k];
    struct swarm_end end = {wl_job.me, thread, k};
    unsigned rail = rail_of(thread, k);
    char name[swarm_name_max];
    swarm_name(swarm_size, end, name);
    const trunkline_qp_options_t options = {
        .name = name,
        .type = swarm.transport ? IBV_QPT_UC : IBV_QPT_RC,
        .send_depth = (uint32_t)swarm.sq_depth,
        .inline_size = swarm.size < inline_most ? (uint32_t)swarm.size : inline_most,
        .send_cq = worker->cq,
        .reads = swarm.max_rd_atomic < rma_rails.rail[rail].reads_out
                     ? (int)swarm.max_rd_atomic
                     : rma_rails.rail[rail].reads_out};
    if (trunkline_qp_open(&line->qp, &rma_rails.domains[rail], &rma_rails.rail[rail], &options))
        return false;
    line->cq = line->qp.send_cq;
    line->local_key = rma_rails.memory[rail]->lkey;
    line->peer = swarm_peer(swarm_size, end);
    line->remote = (uintptr_t)wl_job.segments[line->peer];
    line->remote_key = rma_key(line->peer, rail);
    if (needs_outbox() && swarm.size > line->qp.inline_size) {
        line->outbox =
            outboxes + ((size_t)thread * per_thread() + k) * outbox_cells() * swarm_memory.stride;
        line->local_key = outbox_memory[rail]->lkey;
    }
    return true;
}

/* Writes of all threads together have less than this under way in selective mode: two rounds of
 * signals for each line, and one more at the end. */
static uint32_t cq_depth(void)
{
    return swarm.allsig ? (uint32_t)swarm.window : 3 * per_thread();
}

static bool open_worker(uint32_t thread)
{
    struct worker *worker = &workers[thread];
    worker->lines = calloc(per_thread(), sizeof(*worker->lines));
    worker->wrs = calloc((size_t)swarm.postlist, sizeof(*worker->wrs));
    worker->sges = calloc((size_t)swarm.postlist, sizeof(*worker->sges));
    if (!worker->lines || !worker->wrs || !worker->sges)
        wl_job_die("no memory for %u connections", per_thread());
    if (swarm.cq &&
        trunkline_cq_open(&worker->cq, &rma_rails.domains[rail_of(thread, 0)], cq_depth(), NULL))
        return false;
    for (uint32_t k = 0; k < per_thread(); k++)
        if (swarm_connected(swarm_size, (struct swarm_end){wl_job.me, thread, k}) &&
            !open_line(thread, k))
            return false;
    return true;
}

/* Memory outside of the struct rma_memory. */
static bool open_outboxes(void)
{
    size_t size = (size_t)swarm_size.w * per_thread() * outbox_cells() * swarm_memory.stride;
    outbox_memory = calloc(rma_rails.count, sizeof(struct ibv_mr *));
    outboxes = aligned_alloc(GASNET_PAGESIZE,
                             (size + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE);
    if (!outbox_memory || !outboxes)
        wl_job_die("no memory for %zu bytes of writes under way", size);
    for (unsigned rail = 0; rail < rma_rails.count; rail++)
        if (trunkline_memory_open(&outbox_memory[rail], &rma_rails.domains[rail], outboxes, size,
                                  IBV_ACCESS_LOCAL_WRITE))
            return false;
    return true;
}

static void refuse_what_is_too_much(void)
{
    const trunkline_rail_t *rail = rma_rails.rail;
    uint64_t qps = swarm_connected_ends(swarm_size);
    if (swarm.max_rd_given && swarm.max_rd_atomic > rail->reads_out)
        wl_job_refuse(wl_exit_bad, "--max-rd-atomic %lld: %s allows %d",
                      (long long)swarm.max_rd_atomic, rail->name, rail->reads_out);
    if (swarm.sq_depth > rail->limits.max_qp_wr)
        wl_job_refuse(wl_exit_bad, "--sq-depth %lld: %s allows %d", (long long)swarm.sq_depth,
                      rail->name, rail->limits.max_qp_wr);
    if (qps > (uint64_t)rail->limits.max_qp)
        wl_job_refuse(wl_exit_bad,
                      "%llu queue pairs for each process (threads * (ranks - 1) * vms), %s has %d",
                      (unsigned long long)qps, rail->name, rail->limits.max_qp);
    if (swarm.size > rail->message_max)
        wl_job_refuse(wl_exit_bad, "--size %lld: the largest message of %s has %u bytes",
                      (long long)swarm.size, rail->name, rail->message_max);
}

static void connect_all(void)
{
    size_t count = (size_t)swarm_size.w * per_thread();
    trunkline_address_t *mine = calloc(count, sizeof(*mine));
    trunkline_address_t *all = calloc(count * wl_job.size, sizeof(*all));
    bool good = true;
    if (!mine || !all)
        wl_job_die("no memory for addresses of %zu connections", count);
    for (size_t i = 0; i < count; i++)
        mine[i] = workers[i / per_thread()].lines[i % per_thread()].qp.address;
    rma_rails_share(mine, all, count * sizeof(*mine));
    for (size_t i = 0; good && i < count; i++) {
        struct line *line = &workers[i / per_thread()].lines[i % per_thread()];
        struct swarm_end end = {wl_job.me, (uint32_t)(i / per_thread()),
                                (uint32_t)(i % per_thread())};
        struct swarm_end partner = swarm_partner(swarm_size, end);
        size_t at = partner.process * count + (size_t)partner.thread * per_thread() + partner.k;
        if (line->qp.qp)
            good = !trunkline_qp_connect(&line->qp, &all[at]);
    }
    rma_rails_agree(good, "connections");
    free(mine);
    free(all);
}

void swarm_raw_open(void)
{
    bool good = true;
    rma_rails_open(swarm.ports, swarm.base_port);
    refuse_what_is_too_much();
    rma_rails_register();
    workers = calloc(swarm_size.w, sizeof(*workers));
    if (!workers)
        wl_job_die("no memory for %u threads", swarm_size.w);
    if (needs_outbox())
        good = open_outboxes();
    for (uint32_t t = 0; good && t < swarm_size.w; t++)
        good = open_worker(t);
    rma_rails_agree(good, "queue pairs");
    connect_all();
}

/* The other ends are no longer in use. */
void swarm_raw_close(void)
{
    for (uint32_t t = 0; t < swarm_size.w; t++) {
        for (uint32_t k = 0; k < per_thread(); k++)
            trunkline_qp_close(&workers[t].lines[k].qp);
        if (workers[t].cq)
            ibv_destroy_cq(workers[t].cq);
    }
}

/* ---- Posting */

static bool ring(struct rma_flood *f)
{
    struct worker *worker = f->own;
    struct ibv_send_wr *bad;
    unsigned count = worker->chained;
    if (count == 0)
        return false;
    worker->chained = 0;
    uint64_t since = rma_lap_begin(f);
    int error = ibv_post_send(worker->chain->qp.qp, worker->wrs, &bad);
    rma_lap(f, rma_posting, since);
    if (error)
        wl_job_die("%s: %u requests can't be posted: %s", worker->chain->qp.name, count,
                   strerror(error));
    return true;
}

static void flush(struct rma_flood *f)
{
    f->doorbells += ring(f);
}

static void take(struct rma_flood *f, const struct ibv_wc *wc)
{
    struct worker *worker = f->own;
    struct line *line = &worker->lines[wc->wr_id >> seq_bits];
    uint32_t seq = (uint32_t)wc->wr_id, expected = (uint32_t)line->confirmed;
    if (wc->status != IBV_WC_SUCCESS)
        rma_rails_broken(&line->qp, wc, line->peer);
    f->cqes++;
    if (swarm.allsig ? seq != expected
                     : seq - expected >= (uint32_t)(line->posts - line->confirmed))
        rma_flood_fail(f, rma_account, "%s: completion %u where %u was due", line->qp.name, seq,
                       expected);
    line->confirmed += seq - expected + 1;
}

static bool poll(struct rma_flood *f, const struct line *line)
{
    struct ibv_wc wcs[reap_max];
    uint64_t since = rma_lap_begin(f);
    int count = ibv_poll_cq(line->cq, reap_max, wcs);
    rma_lap(f, rma_polling, since);
    if (count < 0)
        wl_job_die("%s: its completion queue can't be polled", line->qp.name);
    for (int i = 0; i < count; i++)
        take(f, &wcs[i]);
    return count > 0;
}

/* Until the first `posts` of the line are complete. */
static void reap(struct rma_flood *f, struct line *line, const struct rma_target *target,
                 uint64_t posts)
{
    struct rma_patience patience = {0, 0};
    flush(f);
    while (line->confirmed < posts)
        if (!poll(f, line) && !rma_flood_wait(f, &patience, "signalled operation", target))
            return;
}

/* Of U operations on a line the first makes a completion, which is taken before the last: at most
 * 2U - 1 are in its queue. */
static bool is_signalled(struct rma_flood *f, struct line *line, const struct rma_target *target)
{
    uint64_t unsig = (uint64_t)swarm.unsig, place = line->posts % unsig;
    if (swarm.allsig)
        return true;
    if (place == unsig - 1)
        reap(f, line, target, unsig > 1 ? line->posts - place + 1 : line->posts);
    return place == 0;
}

static void post(struct rma_flood *f, struct rma_slot *slot, enum ibv_wr_opcode opcode,
                 const char *local, size_t at)
{
    struct worker *worker = f->own;
    struct line *line = slot->target->line;
    bool is_inline = opcode == IBV_WR_RDMA_WRITE && f->memory->size <= line->qp.inline_size;
    bool signalled = is_signalled(f, line, slot->target);
    struct ibv_send_wr *wr = &worker->wrs[worker->chained];
    struct ibv_sge *sge = &worker->sges[worker->chained];
    *sge = (struct ibv_sge){(uintptr_t)local, (uint32_t)f->memory->size, line->local_key};
    if (opcode == IBV_WR_RDMA_READ)
        sge->lkey = rma_rails.memory[slot->target->rail]->lkey;
    wr->wr_id = (uint64_t)(line - worker->lines) << seq_bits | (uint32_t)line->posts;
    wr->next = NULL;
    wr->sg_list = sge;
    wr->num_sge = 1;
    wr->opcode = opcode;
    wr->send_flags = (signalled ? IBV_SEND_SIGNALED : 0) | (is_inline ? IBV_SEND_INLINE : 0);
    wr->wr.rdma.remote_addr = line->remote + at;
    wr->wr.rdma.rkey = line->remote_key;
    if (worker->chained)
        wr[-1].next = wr;
    worker->chain = line;
    worker->chained++;
    slot->ticket = line->posts++;
    if (line->posts - line->confirmed > f->line_outstanding)
        f->line_outstanding = line->posts - line->confirmed;
    if (worker->chained == f->batch)
        flush(f);
}

static void start_read(struct rma_flood *f, struct rma_slot *slot, size_t at)
{
    if (!swarm.allsig)
        memset(slot->local, 0, f->memory->size);
    post(f, slot, IBV_WR_RDMA_READ, slot->local, at);
}

static void start_write(struct rma_flood *f, struct rma_slot *slot, size_t at)
{
    struct line *line = slot->target->line;
    const char *local = slot->local;
    if (line->outbox)
        local = memcpy(line->outbox + line->posts % outbox_cells() * f->memory->stride, local,
                       f->memory->size);
    post(f, slot, IBV_WR_RDMA_WRITE, local, at);
}

/* ---- Completion */

static bool done(struct rma_flood *f, struct rma_slot *slot)
{
    struct line *line = slot->target->line;
    if (!swarm.allsig)
        return slot->write || rma_has_arrived(slot->local, f->memory->size);
    if (line->confirmed > slot->ticket)
        return true;
    poll(f, line);
    return line->confirmed > slot->ticket;
}

/* Unsignaled work is known to be complete by the completion of an empty signaled write behind it.
 */
static void drain_line(struct rma_flood *f, const struct rma_target *target)
{
    struct worker *worker = f->own;
    struct line *line = target->line;
    struct ibv_send_wr wr = {.wr_id = (uint64_t)(line - worker->lines) << seq_bits |
                                      (uint32_t)line->posts,
                             .opcode = IBV_WR_RDMA_WRITE,
                             .send_flags = IBV_SEND_SIGNALED},
                       *bad;
    wr.wr.rdma.remote_addr = line->remote;
    wr.wr.rdma.rkey = line->remote_key;
    if (line->confirmed < line->posts) {
        int error = ibv_post_send(line->qp.qp, &wr, &bad);
        if (error)
            wl_job_die("%s: a last request can't be posted: %s", line->qp.name, strerror(error));
        line->posts++;
    }
    reap(f, line, target, line->posts);
    if (line->confirmed != line->posts)
        rma_flood_fail(f, rma_account, "%s: %llu of %llu requests are complete", line->qp.name,
                       (unsigned long long)line->confirmed, (unsigned long long)line->posts);
}

static void drain(struct rma_flood *f)
{
    flush(f);
    for (size_t i = 0; i < f->target_count && !f->broken; i++)
        drain_line(f, &f->targets[i]);
    if (f->line_outstanding > swarm_raw_bound())
        rma_flood_fail(f, rma_window, "rank %u thread %u: %llu were outstanding on a queue pair",
                       (unsigned)wl_job.me, f->thread, (unsigned long long)f->line_outstanding);
}

static const struct rma_path path = {
    .read = start_read, .write = start_write, .flush = flush, .done = done, .drain = drain};

uint64_t swarm_raw_bound(void)
{
    return swarm.allsig ? (uint64_t)swarm.window : 2 * (uint64_t)swarm.unsig - 1;
}

void swarm_raw_bind(struct rma_flood *flood)
{
    flood->path = &path;
    flood->own = &workers[flood->thread];
    flood->batch = (unsigned)swarm.postlist;
    flood->is_untimed = !swarm.allsig && swarm.write_percent > 0;
}

void swarm_raw_target(struct rma_target *target, struct swarm_end end)
{
    struct line *line = &workers[end.thread].lines[end.k];
    line->posts = line->confirmed = 0;
    target->line = line;
    target->rail = rail_of(end.thread, end.k);
}

/* One after the other, before the floods. */
void swarm_raw_greet(struct swarm_end end, uint64_t hash, size_t at)
{
    struct line *line = &workers[end.thread].lines[end.k];
    rma_rails_put(&line->qp, line->peer, rma_rails.memory[rail_of(end.thread, end.k)],
                  wl_job.segment + rma_at_local(&swarm_memory, end.thread, 0), hash,
                  line->remote + at, line->remote_key, swarm.common.timeout_ms);
}
