/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups of datagrams. Each process lists its own attachments in its segment; a sender
 * goes through the lists of all processes that have any. Which ones may have is remembered (cache),
 * and looked up anew when somebody attached: who attaches counts up a word in the segment of every
 * member, and who joins later begins with a look. A queue pair that is in a group gets its own
 * messages too, as on hardware that was not told to block them.
 *
 * The table is changed under shca.lock, and each entry under the responder lock of its queue pair.
 * cache_lock protects the cache. */
#include "config.h"

#include "wire/request.h"

#define FIRST_MLID 0xc000
#define LAST_MLID  0xfffe

static struct shca_lock cache_lock;
static uint16_t cached[SHCA_MEMBERS];
static uint32_t n_cached, cached_epoch;
static bool cache_filled;

/* ---- attaching ---- */

static bool same_group(struct shca_mcast_sh *e, const union ibv_gid *gid, uint32_t mlid)
{
    return atomic_load_explicit(&e->mgid[0], memory_order_relaxed) == gid->global.subnet_prefix &&
           atomic_load_explicit(&e->mgid[1], memory_order_relaxed) == gid->global.interface_id &&
           atomic_load_explicit(&e->mlid, memory_order_relaxed) == mlid;
}

static struct shca_mcast_sh *find(const struct shca_qp *qp, const union ibv_gid *gid, uint32_t mlid)
{
    struct shca_mcast_sh *t = shca_mcast_table(shca.seg);

    for (uint32_t i = 0; i < atomic_load(&shca.seg->mcast_high); i++)
        if (atomic_load(&t[i].qpn) == qp->qp.qp_num && same_group(&t[i], gid, mlid))
            return &t[i];
    return NULL;
}

static struct shca_mcast_sh *find_free(void)
{
    struct shca_mcast_sh *t = shca_mcast_table(shca.seg);

    for (uint32_t i = 0; i < SHCA_MCASTS; i++)
        if (atomic_load(&t[i].qpn) == 0) {
            if (atomic_load(&shca.seg->mcast_high) <= i)
                atomic_store(&shca.seg->mcast_high, i + 1);
            return &t[i];
        }
    return NULL;
}

static void set_entry(struct shca_qp *qp, struct shca_mcast_sh *e, const union ibv_gid *gid,
                      uint32_t mlid)
{
    shca_rx_lock(shca.seg, qp->sh, shca.pid);
    if (gid) {
        atomic_store(&e->mgid[0], gid->global.subnet_prefix);
        atomic_store(&e->mgid[1], gid->global.interface_id);
        atomic_store(&e->mlid, mlid);
    }
    atomic_store(&e->qpn, gid ? qp->qp.qp_num : 0);
    shca_rx_unlock(qp->sh);
}

/* Every member looks at the lists again before its next multicast. */
static void tell_members(void)
{
    uint16_t slots[SHCA_MEMBERS];
    uint32_t n = shca_registry_slots(slots);

    for (uint32_t i = 0; i < n; i++) {
        struct shca_peer *p = shca_peer_get(slots[i]);

        if (!p)
            continue;
        atomic_fetch_add(&p->seg->mcast_epoch, 1);
        shca_peer_put(p);
    }
}

/* The tables hold LIDs only where ports have them. */
static int check(const struct shca_qp *qp, const union ibv_gid *gid, uint16_t lid, uint32_t *mlid)
{
    *mlid = shca_config.roce ? 0 : lid;
    if (shca_ctx(qp->qp.context)->inherited || qp->qp.qp_type != IBV_QPT_UD ||
        !shca_gid_multicast(gid))
        return EINVAL;
    return shca_config.roce || (lid >= FIRST_MLID && lid <= LAST_MLID) ? 0 : EINVAL;
}

SHCA_PUBLIC int ibv_attach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid)
{
    typedef int fn(struct ibv_qp *, const union ibv_gid *, uint16_t);
    struct shca_qp *qp = shca_container(ibqp, struct shca_qp, qp);
    struct shca_mcast_sh *e = NULL;
    uint32_t mlid;
    bool member;
    int status;

    if (!shca_owns(ibqp->context))
        SHCA_PASS(fn, "ibv_attach_mcast", ENOSYS, ibqp, gid, lid);
    status = check(qp, gid, lid, &mlid);
    if (status != 0)
        return status;
    pthread_mutex_lock(&shca.lock);
    member = find(qp, gid, mlid) != NULL;
    if (!member && (e = find_free())) {
        set_entry(qp, e, gid, mlid);
        qp->mcasts++;
    }
    pthread_mutex_unlock(&shca.lock);
    if (e)
        tell_members();
    return member || e ? 0 : ENOMEM;
}

SHCA_PUBLIC int ibv_detach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid)
{
    typedef int fn(struct ibv_qp *, const union ibv_gid *, uint16_t);
    struct shca_qp *qp = shca_container(ibqp, struct shca_qp, qp);
    struct shca_mcast_sh *e;
    uint32_t mlid;
    int status;

    if (!shca_owns(ibqp->context))
        SHCA_PASS(fn, "ibv_detach_mcast", ENOSYS, ibqp, gid, lid);
    status = check(qp, gid, lid, &mlid);
    if (status != 0)
        return status;
    pthread_mutex_lock(&shca.lock);
    e = find(qp, gid, mlid);
    if (e) {
        set_entry(qp, e, NULL, 0);
        qp->mcasts--;
    }
    while (shca.seg->mcast_high > 0 &&
           atomic_load(&shca_mcast_table(shca.seg)[shca.seg->mcast_high - 1].qpn) == 0)
        atomic_fetch_sub(&shca.seg->mcast_high, 1);
    pthread_mutex_unlock(&shca.lock);
    return e ? 0 : EINVAL;
}

/* ---- sending ---- */

static bool has_members(uint32_t slot)
{
    struct shca_peer *p = shca_peer_get(slot);
    bool any = p && atomic_load(&p->seg->mcast_high) > 0;

    if (p)
        shca_peer_put(p);
    return any;
}

/* The processes that had attachments when somebody last attached. */
static uint32_t listeners(uint16_t *slots)
{
    uint32_t epoch = atomic_load(&shca.seg->mcast_epoch), n;

    shca_lock(&cache_lock);
    if (!cache_filled || cached_epoch != epoch) {
        uint32_t all = shca_registry_slots(slots);

        n_cached = 0;
        for (uint32_t i = 0; i < all; i++)
            if (has_members(slots[i]))
                cached[n_cached++] = slots[i];
        cache_filled = true;
        cached_epoch = epoch;
    }
    n = n_cached;
    memcpy(slots, cached, n * sizeof slots[0]);
    shca_unlock(&cache_lock);
    return n;
}

void shca_multicast_inherited(void)
{
    /* Another thread may have held the lock, and the child begins with other epochs. */
    atomic_store(&cache_lock.word, 0);
    cache_filled = false;
}

static void forget(uint16_t slot)
{
    shca_lock(&cache_lock);
    for (uint32_t i = 0; i < n_cached; i++)
        if (cached[i] == slot)
            cached[i--] = cached[--n_cached];
    shca_unlock(&cache_lock);
}

static void send_to(struct shca_peer *p, struct shca_qp *qp, const struct shca_op *op,
                    const struct shca_source *packet, uint32_t length)
{
    struct shca_mcast_sh *e = shca_mcast_table(p->seg);
    uint32_t high = atomic_load(&p->seg->mcast_high), mlid = shca_config.roce ? 0 : op->dlid;
    enum ibv_wc_status ignored;

    for (uint32_t i = 0; i < high && i < SHCA_MCASTS; i++, e++) {
        uint32_t qpn = atomic_load(&e->qpn);
        struct shca_qp_sh *t = &shca_qp_table(p->seg)[qpn & (SHCA_QPS - 1)];

        if (qpn == 0 || !same_group(e, &op->dgid, mlid))
            continue;
        shca_rx_lock(p->seg, t, shca.pid);
        if (atomic_load(&e->qpn) == qpn && same_group(e, &op->dgid, mlid) && t->qpn == qpn &&
            shca_accepts_ud(qp, op, t) && !shca_path_cut(t->port, t->port))
            shca_deliver(p, qp, op, t, packet, length, &ignored);
        shca_rx_unlock(t);
    }
}

void shca_multicast(struct shca_qp *qp, const struct shca_op *op, const struct shca_source *packet,
                    uint32_t length)
{
    uint16_t slots[SHCA_MEMBERS];
    uint32_t n;

    if (!op->grh || !shca_gid_multicast(&op->dgid))
        return;
    n = listeners(slots);
    for (uint32_t i = 0; i < n; i++) {
        struct shca_peer *p = shca_peer_get(slots[i]);

        if (!p) {
            forget(slots[i]);
            continue;
        }
        if (!atomic_load(&p->dead))
            send_to(p, qp, op, packet, length);
        shca_peer_put(p);
    }
}
