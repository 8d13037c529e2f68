/* SPDX-License-Identifier: BSD-3-Clause */
/* Which ports are down, and which HCAs are broken. Every member keeps its own copy of the state of
 * the whole fabric, changed by requests (control.c) that go to all members; one that joins later
 * copies it from a settled member. Owns the down bits of the segment (atomic, written under
 * shca.lock or before the helper thread runs) and shca.fatal. */
#include "config.h"

#include "shca.h"

_Atomic uint32_t shca_any_down;

static void recount(void)
{
    uint32_t any = 0;

    for (int i = 0; i < SHCA_MAX_HCA; i++)
        any |= atomic_load(&shca.seg->down[i]);
    atomic_store(&shca_any_down, any);
}

static void copy_state(const struct shca_segment *from, void *copied)
{
    if (!atomic_load(&from->settled))
        return;
    for (int i = 0; i < SHCA_MAX_HCA; i++)
        atomic_store(&shca.seg->down[i], atomic_load(&from->down[i]));
    *(bool *)copied = true;
}

void shca_link_join(void)
{
    bool copied = false;

    for (uint32_t slot = 0; slot < SHCA_MEMBERS && !copied; slot++)
        if (slot != shca.slot)
            shca_peer_peek(slot, copy_state, &copied);
    for (int i = 0; i < SHCA_MAX_HCA && !copied; i++)
        atomic_store(&shca.seg->down[i], shca_config.down[i]);
    atomic_store(&shca.seg->settled, 1);
    /* A peer that joins right now must not be unknown for the next millisecond: a datagram to it
     * would be lost. */
    shca_registry_stale();
    recount();
}

bool shca_link_down(int hca, int port)
{
    /* A forked child has no segment until it opens a device of its own. */
    uint32_t bits = shca.seg ? atomic_load(&shca.seg->down[hca]) : shca_config.down[hca];

    return bits & 1u << port;
}

static bool fabric_port_down(uint32_t fabric_port)
{
    uint32_t at = fabric_port - 1, ports = (uint32_t)shca_config.ports;

    /* 0: an address nobody has; a multicast address. */
    if (fabric_port == 0 || at >= ports * (uint32_t)shca_config.hcas)
        return false;
    return shca_link_down((int)(at / ports), (int)(at % ports) + 1);
}

bool shca_path_cut_slow(uint32_t from, uint32_t to)
{
    return fabric_port_down(from) || fabric_port_down(to);
}

void shca_link_set(int hca, int port, bool down)
{
    uint32_t bit = 1u << port, old;

    pthread_mutex_lock(&shca.lock);
    old = atomic_load(&shca.seg->down[hca]);
    atomic_store(&shca.seg->down[hca], down ? old | bit : old & ~bit);
    recount();
    pthread_mutex_unlock(&shca.lock);
    if (!(old & bit) == down)
        shca_contexts_tell(hca, down ? IBV_EVENT_PORT_ERR : IBV_EVENT_PORT_ACTIVE, (uint32_t)port);
}

/* ---- a broken HCA ---- */

static void break_qp(struct shca_qp *qp)
{
    shca_lock(&qp->sq_lock);
    if (shca_qp_state(qp) != IBV_QPS_RESET)
        shca_qp_error(qp);
    shca_unlock(&qp->sq_lock);
}

void shca_fatal(int hca)
{
    uint32_t bit = 1u << hca;

    pthread_mutex_lock(&shca.lock);
    /* The bit comes first: a post that sees the queue pair in ERR also sees why. */
    if (atomic_fetch_or(&shca.fatal, bit) & bit) {
        pthread_mutex_unlock(&shca.lock);
        return;
    }
    for (uint32_t i = 0; i < shca.qp_high; i++)
        if (shca.qps[i] && shca_ctx(shca.qps[i]->qp.context)->hca == hca)
            break_qp(shca.qps[i]);
    pthread_mutex_unlock(&shca.lock);
    shca_contexts_tell(hca, IBV_EVENT_DEVICE_FATAL, 0);
}

int shca_unusable(struct ibv_context *ctx)
{
    if (shca_ctx(ctx)->inherited)
        return EINVAL;
    return shca_is_fatal(ctx) ? EIO : 0;
}
