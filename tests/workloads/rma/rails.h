/* SPDX-License-Identifier: BSD-3-Clause */
/* The rails of a workload over raw verbs: some of those that the conduit selects, the job's segment
 * registered on each, and everybody's keys. One thread owns them; threads of floods only read. */
#ifndef RMA_RAILS_H
#define RMA_RAILS_H

#include "job.h"
#include "trunkline_rails.h"

struct rma_rails {
    const trunkline_rail_t *rail; /* the first in use */
    unsigned count;               /* in use */
    trunkline_domain_t *domains;  /* one for each */
    struct ibv_mr **memory;       /* wl_job.segment, on each */
    uint32_t *keys;               /* by rank and rail; see rma_key() */
};
extern struct rma_rails rma_rails;

/* Collective: opens rails base .. base + ports - 1, `ports` 0: all from base on. Ends the job with
 * 77 if a rank has no port, and with 2 if a rank has too few ports or ports that differ from rank
 * 0's. */
void rma_rails_open(int64_t ports, int64_t base);

/* "softhca0:1+softhca1:1": those in use on this rank, for people. */
void rma_rails_names(char *text, size_t size);

/* Collective, after wl_job_segment(). */
void rma_rails_register(void);

/* One more control block on rail `number`, with the segment registered. */
struct rma_block {
    trunkline_domain_t domain;
    struct ibv_mr *memory;
};
bool rma_block_open(struct rma_block *block, unsigned number, bool own_context);

static inline uint32_t rma_key(gex_Rank_t rank, unsigned rail)
{
    return rma_rails.keys[(size_t)rank * rma_rails.count + rail];
}

/* Collective: `good` on all ranks, or the job ends with status 2 and a line: `what`, then
 * trunkline_rails_error() of the first rank whose `good` is false. */
void rma_rails_agree(bool good, const char *what);

/* Collective: `size` bytes of each rank to all; a failure of the launcher ends the job. */
void rma_rails_share(const void *mine, void *all, size_t size);

/* Writes `value` to a peer, from `local`, which is registered as `memory`, and waits until that is
 * complete. For queue pairs that have nothing else under way. Ends the job when it can't. / */
void rma_rails_put(const trunkline_qp_t *qp, gex_Rank_t peer, const struct ibv_mr *memory,
                   char *local, uint64_t value, uint64_t remote, uint32_t key, int64_t timeout_ms);

/* Prints device, queue pair and peer of a failed completion and ends the job. */
void rma_rails_broken(const trunkline_qp_t *qp, const struct ibv_wc *wc, gex_Rank_t peer)
    __attribute__((noreturn));

#endif
