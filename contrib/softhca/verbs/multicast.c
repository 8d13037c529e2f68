/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Attaching queue pairs to multicast groups. The table of attachments is changed under shca.lock,
 * and each entry under the responder lock of its queue pair. Owns nothing. */
#include "config.h"

#include "verbs/verbs.h"

enum {
    first_mlid = 0xc000,
    last_mlid = 0xfffe,
};

static struct shca_mcast_sh *multicast_find(const struct shca_qp *qp, const union ibv_gid *gid,
                                            uint32_t mlid)
{
    struct shca_mcast_sh *t = shca_mcast_table(shca.seg);

    for (uint32_t i = 0; i < atomic_load(&shca.seg->mcast_high); i++)
        if (atomic_load(&t[i].qpn) == qp->qp.qp_num && shca_multicast_same(&t[i], gid, mlid))
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

/* Makes every member read the lists again before its next multicast. */
static void notify_members(void)
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

/* The tables hold LIDs only if ports have them. */
static int multicast_check(const struct shca_qp *qp, const union ibv_gid *gid, uint16_t lid,
                           uint32_t *mlid)
{
    bool ethernet = shca_is_ethernet(shca_hca_of(qp->qp.context));

    *mlid = ethernet ? 0 : lid;
    if (shca_ctx(qp->qp.context)->inherited || qp->qp.qp_type != IBV_QPT_UD ||
        !shca_gid_multicast(gid))
        return EINVAL;
    return ethernet || (lid >= first_mlid && lid <= last_mlid) ? 0 : EINVAL;
}

/* Members are found in shared memory. */
static void report_near(void)
{
    static _Atomic bool reported;

    if (shca_config.udp_list && !atomic_exchange(&reported, true))
        shca_log("multicast groups end at this host: no datagram for one goes by packets "
                 "(SOFTHCA_UDP=%s)",
                 shca_config.udp_list);
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
    status = multicast_check(qp, gid, lid, &mlid);
    if (status != 0)
        return status;
    report_near();
    pthread_mutex_lock(&shca.lock);
    member = multicast_find(qp, gid, mlid) != NULL;
    if (!member && (e = find_free())) {
        set_entry(qp, e, gid, mlid);
        qp->mcasts++;
    }
    pthread_mutex_unlock(&shca.lock);
    if (e)
        notify_members();
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
    status = multicast_check(qp, gid, lid, &mlid);
    if (status != 0)
        return status;
    pthread_mutex_lock(&shca.lock);
    e = multicast_find(qp, gid, mlid);
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
