/* SPDX-License-Identifier: BSD-3-Clause
 *
 * XRC targets, which several processes may hold (ibv_open_qp). Each notes in a page of the
 * creator's segment how many handles it has, next to its pid, so that those of dead processes do
 * not count; the close of the last live handle ends the target. It also ends with the process that
 * created it, where it lives. Owns the handles of targets; shca.lock protects the counts of this
 * process. */
#include "config.h"

#include "wire/wire.h"

/* The shared page of a target. */
struct target {
    struct ibv_qp_attr attr;      /* as last modified by any holder */
    uint64_t users[SHCA_MEMBERS]; /* of each member slot: pid << 32 | handles */
};

static struct target *target_of(const struct shca_qp *qp)
{
    struct shca_segment *seg = qp->home ? qp->home->seg : shca.seg;

    return (struct target *)(void *)((char *)seg + qp->sh->target);
}

void shca_target_count(struct shca_qp *qp, int by)
{
    uint64_t *mine = &target_of(qp)->users[shca.slot];
    uint32_t n = *mine >> 32 == shca.pid ? (uint32_t)*mine : 0;

    n += (uint32_t)by;
    *mine = n ? (uint64_t)shca.pid << 32 | n : 0;
}

static bool anyone_left(struct shca_qp *qp)
{
    const struct target *g = target_of(qp);

    for (uint32_t i = 0; i < SHCA_MEMBERS; i++)
        if (g->users[i] != 0 &&
            (g->users[i] >> 32 == shca.pid || !shca_holder_gone((uint32_t)(g->users[i] >> 32))))
            return true;
    return false;
}

int shca_target_create(struct shca_qp *qp)
{
    qp->sh->target = shca_heap_alloc(sizeof(struct target));
    if (qp->sh->target == 0)
        return ENOMEM;
    qp->sh->domain = qp->xrcd->domain;
    shca_target_count(qp, 1);
    return 0;
}

void shca_target_reap(struct shca_qp_sh *sh)
{
    if (sh->target)
        shca_heap_free(sh->target, sizeof(struct target));
    sh->target = 0;
}

bool shca_target_close(struct shca_qp *qp)
{
    struct shca_qp_sh *sh = qp->sh;
    bool last;

    shca_rx_lock(shca.seg, sh, shca.pid);
    shca_target_count(qp, -1);
    last = !anyone_left(qp);
    if (!qp->home)
        sh->async.fd = -1; /* the pipe's readers are gone */
    if (last) {
        atomic_store(&sh->state, IBV_QPS_RESET);
        sh->qpn = 0;
    }
    shca_rx_unlock(sh);
    return last;
}

void shca_target_load(struct shca_qp *qp)
{
    shca_rx_lock(shca.seg, qp->sh, shca.pid);
    qp->attr = target_of(qp)->attr;
    qp->dest_port = qp->sh->dest_port;
    shca_rx_unlock(qp->sh);
}

void shca_target_store(struct shca_qp *qp)
{
    shca_rx_lock(shca.seg, qp->sh, shca.pid);
    target_of(qp)->attr = qp->attr;
    shca_rx_unlock(qp->sh);
}
