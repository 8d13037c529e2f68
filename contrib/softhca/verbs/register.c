/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The calls that register memory by its address: memory of the host, or of an accelerator with peer
 * memory. No state, no lock. */
#include "config.h"

#include "verbs/verbs.h"

/* Accelerator memory faults like an unmapped address; ask the peer memory clients. */
static struct ibv_mr *mr_register_any(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                      unsigned access)
{
    struct ibv_mr *mr = shca_mr_register(pd, addr, length, iova, access);

    return mr || errno != EFAULT ? mr : shca_mr_register_peer(pd, addr, length, iova, access);
}

SHCA_PUBLIC struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
    typedef struct ibv_mr *fn(struct ibv_pd *, void *, size_t, int);

    if (!shca_owns(pd->context))
        SHCA_PASS(fn, "ibv_reg_mr", NULL, pd, addr, length, access);
    return mr_register_any(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

SHCA_PUBLIC struct ibv_mr *ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length,
                                           uint64_t iova, int access)
{
    typedef struct ibv_mr *fn(struct ibv_pd *, void *, size_t, uint64_t, int);

    if (!shca_owns(pd->context))
        SHCA_PASS(fn, "ibv_reg_mr_iova", NULL, pd, addr, length, iova, access);
    return mr_register_any(pd, addr, length, iova, (unsigned)access);
}

SHCA_PUBLIC struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length,
                                            uint64_t iova, unsigned access)
{
    typedef struct ibv_mr *fn(struct ibv_pd *, void *, size_t, uint64_t, unsigned);

    if (!shca_owns(pd->context))
        SHCA_PASS(fn, "ibv_reg_mr_iova2", NULL, pd, addr, length, iova, access);
    return mr_register_any(pd, addr, length, iova, access);
}
