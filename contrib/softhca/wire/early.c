/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes that complete before their data is in memory (the fault "early"). An acknowledgement means
 * that the responder has the data, not that the data is in memory: only later requests through the
 * same HCA are sure to find it there (specification 9.5). Held writes are stored in order, when
 * their time is over, when this process sends something else to that HCA of that process, or when
 * it exits. Owns the list of them; early_lock protects it and is taken before responder locks. The
 * exception is the responder lock of a request that is just being held, and that request is
 * therefore added to the list afterwards. */
#include "config.h"

#include <stdlib.h>
#include <unistd.h>

#include "wire/request.h"

struct shca_held {
    struct shca_held *next;
    struct shca_peer *peer;
    struct shca_qp_sh *target;
    uint32_t qpn, pd, rkey;
    uint32_t hca; /* of the target */
    uint64_t remote_addr, due;
    uint32_t length;
    char data[];
};

static struct shca_lock early_lock;
static struct shca_held *first;
static _Atomic uint32_t count;

static uint32_t hca_of(uint32_t fabric_port)
{
    return (fabric_port - 1) / (uint32_t)shca_config.ports;
}

/* ---- holding ---- */

static void take_data(struct shca_held *h, const struct shca_source *src)
{
    size_t at = 0;

    for (unsigned i = 0; i < src->n; i++) {
        memcpy(h->data + at, src->iov[i].iov_base, src->iov[i].iov_len);
        at += src->iov[i].iov_len;
    }
}

bool shca_early_hold(struct shca_qp *qp, const struct shca_op *op, struct shca_qp_sh *t,
                     const struct shca_source *src)
{
    struct shca_peer *p = qp->xrc_srq ? NULL : shca_peer_get(qp->peer->slot);
    struct shca_held *h = p == qp->peer && p ? malloc(sizeof *h + op->length) : NULL;

    if (!h) {
        if (p)
            shca_peer_put(p);
        return false;
    }
    *h = (struct shca_held){.peer = p,
                            .target = t,
                            .qpn = t->qpn,
                            .pd = t->pd,
                            .rkey = op->rkey,
                            .hca = hca_of(t->port),
                            .remote_addr = op->remote_addr,
                            .length = op->length};
    take_data(h, src);
    qp->fault.held = h;
    return true;
}

void shca_early_enter(struct shca_qp *qp)
{
    struct shca_held *h = qp->fault.held, **at = &first;

    if (!h)
        return;
    qp->fault.held = NULL;
    h->due = tk_now() + qp->fault.verdict.early;
    shca_lock(&early_lock);
    for (; *at; at = &(*at)->next)
        if ((*at)->peer == h->peer && (*at)->hca == h->hca && (*at)->due > h->due)
            h->due = (*at)->due; /* it does not overtake earlier ones */
    *at = h;
    atomic_fetch_add(&count, 1);
    shca.pending++;
    shca_unlock(&early_lock);
    shca_helper_kick();
}

/* ---- storing; the caller holds early_lock ---- */

static void store(struct shca_held *h)
{
    struct iovec data = {h->data, h->length};
    struct shca_piece piece;
    struct shca_mr_sh *m;
    uint64_t va;

    if (atomic_load(&h->peer->dead))
        return;
    shca_rx_lock(h->peer->seg, h->target, shca.pid);
    /* If the queue pair is gone, ibv_dereg_mr would not wait for this store. */
    m = h->target->qpn == h->qpn ? shca_mr_check(h->peer->seg, h->rkey, h->remote_addr, h->length,
                                                 IBV_ACCESS_REMOTE_WRITE, h->pd, &va)
                                 : NULL;
    if (m) {
        shca_piece_of(h->peer, m, h->rkey, va, h->length, &piece);
        shca_move_out(h->peer, &piece, 1, &data, 1);
    }
    shca_rx_unlock(h->target);
}

static void early_store(struct shca_held **at)
{
    struct shca_held *h = *at;

    store(h);
    *at = h->next;
    atomic_fetch_sub(&count, 1);
    shca.pending--;
    shca_peer_put(h->peer);
    free(h);
}

void shca_early_settle(const struct shca_qp *qp, const struct shca_op *op)
{
    bool ud = qp->qp.qp_type == IBV_QPT_UD;
    uint32_t slot = (ud ? op->dest_qpn : qp->attr.dest_qp_num) >> SHCA_QP_BITS;
    uint32_t hca = hca_of(ud ? op->dest_port : qp->dest_port);

    if (atomic_load_explicit(&count, memory_order_relaxed) == 0)
        return;
    shca_lock(&early_lock);
    for (struct shca_held **at = &first; *at;)
        if ((*at)->peer->slot == slot && (*at)->hca == hca)
            early_store(at);
        else
            at = &(*at)->next;
    shca_unlock(&early_lock);
}

/* Stores the writes that are due by then; returns when the next one is due. */
static uint64_t store_until(uint64_t moment)
{
    uint64_t next = UINT64_MAX;

    if (atomic_load_explicit(&count, memory_order_relaxed) == 0)
        return next;
    shca_lock(&early_lock);
    for (struct shca_held **at = &first; *at;)
        if ((*at)->due <= moment) {
            early_store(at);
        } else {
            next = (*at)->due < next ? (*at)->due : next;
            at = &(*at)->next;
        }
    shca_unlock(&early_lock);
    return next;
}

uint64_t shca_early_run(uint64_t now)
{
    return store_until(now);
}

/* An exit must not lose acknowledged data. */
void shca_early_end(void)
{
    if (shca.seg && shca.pid == (uint32_t)getpid())
        store_until(UINT64_MAX);
}

__attribute__((destructor)) static void early_finish(void)
{
    shca_early_end();
}

void shca_early_inherited(void)
{
    atomic_store(&early_lock.word, 0);
    first = NULL;
    atomic_store(&count, 0);
}
