/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Opening the XRC target of another process. Owns nothing. */
#include "config.h"

#include <stdlib.h>

#include "fault/fault.h"
#include "wire/request.h"

/* ---- handles on an existing target ---- */

static int check_open(struct ibv_context *ctx, const struct ibv_qp_open_attr *a)
{
    const uint32_t need = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;

    if (a->comp_mask & ~(need | IBV_QP_OPEN_ATTR_CONTEXT))
        return EOPNOTSUPP;
    if ((a->comp_mask & need) != need || !a->xrcd || a->xrcd->context != ctx ||
        a->qp_type != IBV_QPT_XRC_RECV || a->qp_num >> SHCA_QP_BITS >= SHCA_MEMBERS)
        return EINVAL;
    return shca_unusable(ctx);
}

static int xrc_attach(struct shca_qp *qp, uint32_t qpn)
{
    struct shca_qp_sh *t;
    int e = EINVAL;

    qp->home = shca_peer_get(qpn >> SHCA_QP_BITS);
    if (!qp->home)
        return EINVAL;
    t = qp->sh = &shca_qp_table(qp->home->seg)[qpn & (SHCA_QPS - 1)];
    pthread_mutex_lock(&shca.lock);
    shca_rx_lock(qp->home->seg, t, shca.pid);
    if (t->qpn == qpn && t->type == IBV_QPT_XRC_RECV && t->domain == qp->xrcd->domain) {
        shca_target_count(qp, 1);
        e = 0;
    }
    shca_rx_unlock(t);
    pthread_mutex_unlock(&shca.lock);
    if (e != 0)
        shca_peer_put(qp->home);
    return e;
}

struct ibv_qp *shca_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *a)
{
    struct shca_qp *qp = NULL;
    int e = check_open(ctx, a);

    if (e == 0 && !(qp = shca_queue_handle_alloc(ctx, SHCA_CALL_CREATE_QP, sizeof *qp)))
        e = ENOMEM;
    if (e == 0) {
        qp->xrcd = shca_container(a->xrcd, struct shca_xrcd, xrcd);
        e = xrc_attach(qp, a->qp_num);
    }
    if (e != 0) {
        shca_lines_free(qp);
        errno = e;
        return NULL;
    }
    qp->init.qp_type = qp->qp.qp_type = IBV_QPT_XRC_RECV;
    qp->init.qp_context = qp->qp.qp_context =
        a->comp_mask & IBV_QP_OPEN_ATTR_CONTEXT ? a->qp_context : NULL;
    qp->qp.context = ctx;
    qp->qp.qp_num = a->qp_num;
    qp->qp.state = shca_qp_state(qp);
    pthread_mutex_init(&qp->qp.mutex, NULL);
    pthread_cond_init(&qp->qp.cond, NULL);
    qp->xrcd->users++;
    return &qp->qp;
}
