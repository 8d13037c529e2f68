/* SPDX-License-Identifier: BSD-3-Clause */
/* See rails.h. Owns rma_rails, for the life of the process. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "rails.h"

struct rma_rails rma_rails;

/* A rank's findings. */
struct found {
    uint32_t count, is_ethernet;
    char why[wl_why_max];
};

static void *make(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory)
        wl_job_die("no memory for %zu rails", count);
    return memory;
}

/* All ranks end alike. */
static void compare(const struct found *all, int64_t ports, int64_t base)
{
    int64_t least = base + (ports ? ports : 1);
    for (gex_Rank_t rank = 0; rank < wl_job.size; rank++)
        if (all[rank].count == 0)
            wl_job_refuse(wl_exit_skip, "rank %u: %s", (unsigned)rank, all[rank].why);
    for (gex_Rank_t rank = 0; rank < wl_job.size; rank++) {
        if (all[rank].count < least)
            wl_job_refuse(wl_exit_bad,
                          "--base-port %lld --ports %lld: rank %u has %u rails "
                          "(GASNET_NUM_QPS and GASNET_IBV_PORTS choose more)",
                          (long long)base, (long long)ports, (unsigned)rank, all[rank].count);
        if ((!ports && all[rank].count != all[0].count) ||
            all[rank].is_ethernet != all[0].is_ethernet)
            wl_job_refuse(wl_exit_bad, "rank %u has %u rails of %s, rank 0 %u of %s",
                          (unsigned)rank, all[rank].count,
                          all[rank].is_ethernet ? "Ethernet" : "InfiniBand", all[0].count,
                          all[0].is_ethernet ? "Ethernet" : "InfiniBand");
    }
}

void rma_rails_open(int64_t ports, int64_t base)
{
    struct found mine = {0}, *all = make(wl_job.size, sizeof(*all));
    if (trunkline_rails_open(&rma_rails.rail, &rma_rails.count))
        snprintf(mine.why, sizeof(mine.why), "%s", trunkline_rails_error());
    mine.count = rma_rails.count;
    mine.is_ethernet = mine.count && rma_rails.rail[0].is_ethernet;
    wl_job_share(&mine, all, sizeof(mine));
    compare(all, ports, base);
    free(all);
    rma_rails.rail += base;
    rma_rails.count = ports ? (unsigned)ports : rma_rails.count - (unsigned)base;
}

void rma_rails_names(char *text, size_t size)
{
    *text = 0;
    for (unsigned i = 0; i < rma_rails.count; i++) {
        size_t length = strlen(text);
        snprintf(text + length, size - length, "%s%s", i ? "+" : "", rma_rails.rail[i].name);
    }
}

void rma_rails_agree(bool good, const char *what)
{
    struct found mine = {.count = good}, *all = make(wl_job.size, sizeof(*all));
    if (!good)
        snprintf(mine.why, sizeof(mine.why), "%s", trunkline_rails_error());
    wl_job_share(&mine, all, sizeof(mine));
    for (gex_Rank_t rank = 0; rank < wl_job.size; rank++)
        if (!all[rank].count)
            wl_job_refuse(wl_exit_bad, "rank %u: %s: %s", (unsigned)rank, what, all[rank].why);
    free(all);
}

void rma_rails_share(const void *mine, void *all, size_t size)
{
    if (trunkline_rails_share(mine, all, size))
        wl_job_die("%s", trunkline_rails_error());
}

bool rma_block_open(struct rma_block *block, unsigned number, bool own_context)
{
    enum { access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
    return !trunkline_domain_open(&block->domain, &rma_rails.rail[number], own_context) &&
           !trunkline_memory_open(&block->memory, &block->domain, wl_job.segment,
                                  wl_job.segment_size, access);
}

void rma_rails_register(void)
{
    bool good = true;
    uint32_t *mine = make(rma_rails.count, sizeof(*mine));
    rma_rails.domains = make(rma_rails.count, sizeof(*rma_rails.domains));
    rma_rails.memory = make(rma_rails.count, sizeof(struct ibv_mr *));
    rma_rails.keys = make((size_t)rma_rails.count * wl_job.size, sizeof(*rma_rails.keys));
    for (unsigned i = 0; good && i < rma_rails.count; i++) {
        struct rma_block block;
        good = rma_block_open(&block, i, false);
        if (!good)
            break;
        rma_rails.domains[i] = block.domain;
        rma_rails.memory[i] = block.memory;
        mine[i] = block.memory->rkey;
    }
    rma_rails_agree(good, "the segment");
    rma_rails_share(mine, rma_rails.keys, rma_rails.count * sizeof(*mine));
    free(mine);
}

void rma_rails_broken(const trunkline_qp_t *qp, const struct ibv_wc *wc, gex_Rank_t peer)
{
    wl_job_die("%s: queue pair %s to rank %u: %s (vendor error 0x%x, wr_id 0x%llx)", qp->rail->name,
               qp->name, (unsigned)peer, ibv_wc_status_str(wc->status), wc->vendor_err,
               (unsigned long long)wc->wr_id);
}

void rma_rails_put(const trunkline_qp_t *qp, gex_Rank_t peer, const struct ibv_mr *memory,
                   char *local, uint64_t value, uint64_t remote, uint32_t key, int64_t timeout_ms)
{
    struct ibv_sge sge = {(uintptr_t)local, sizeof(value), memory->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1}, *bad;
    struct ibv_wc wc;
    uint64_t limit = wl_now() + (uint64_t)timeout_ms * 1000000;
    int taken;
    memcpy(local, &value, sizeof(value));
    wr.opcode = IBV_WR_RDMA_WRITE;
    wr.send_flags = IBV_SEND_SIGNALED;
    wr.wr.rdma.remote_addr = remote;
    wr.wr.rdma.rkey = key;
    int error = ibv_post_send(qp->qp, &wr, &bad);
    if (error)
        wl_job_die("%s: a write to rank %u can't be posted: %s", qp->name, (unsigned)peer,
                   strerror(error));
    while ((taken = ibv_poll_cq(qp->send_cq, 1, &wc)) == 0 && wl_now() < limit)
        gasnet_AMPoll();
    if (taken <= 0)
        wl_job_die("%s: a write to rank %u is not complete in %lld ms", qp->name, (unsigned)peer,
                   (long long)timeout_ms);
    if (wc.status != IBV_WC_SUCCESS)
        rma_rails_broken(qp, &wc, peer);
}
