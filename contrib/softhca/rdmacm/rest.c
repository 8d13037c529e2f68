/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared receive queues of identifiers, and the functions of librdmacm that softhca does not have:
 * multicast, the exchange of vendors' options, and rsockets, whose library would take our
 * identifiers for its own. Owns nothing. */
#include "config.h"

#include "rdmacm/rdmacm.h"

SHCA_PUBLIC int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
    SHCA_CM_INSIDE(rdma_create_srq_ex, id, attr);
    struct ibv_srq *srq;

    SHCA_CM_PASS(shca_cm_of(id), rdma_create_srq_ex, attr);
    if (!id->verbs || id->srq)
        return shca_cm_fail(EINVAL);
    if (!(attr->comp_mask & IBV_SRQ_INIT_ATTR_PD) || !attr->pd) {
        attr->pd = id->pd;
        attr->comp_mask |= IBV_SRQ_INIT_ATTR_PD;
    }
    /* An XRC queue needs the program's own CQ and domain. */
    srq = ibv_create_srq_ex(id->verbs, attr);
    if (!srq)
        return -1;
    if (!id->pd)
        id->pd = srq->pd;
    id->srq = srq;
    return 0;
}

SHCA_PUBLIC int rdma_create_srq(struct rdma_cm_id *id, struct ibv_pd *pd,
                                struct ibv_srq_init_attr *init)
{
    SHCA_CM_INSIDE(rdma_create_srq, id, pd, init);
    struct ibv_srq_init_attr_ex attr = {0};
    int status;

    memcpy(&attr, init, sizeof *init); /* begins like it, by contract of the header */
    attr.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
    attr.srq_type = IBV_SRQT_BASIC;
    attr.pd = pd ? pd : id->pd;
    status = rdma_create_srq_ex(id, &attr);
    memcpy(init, &attr, sizeof *init);
    return status;
}

SHCA_PUBLIC void rdma_destroy_srq(struct rdma_cm_id *id)
{
    SHCA_CM_INSIDE_VOID(rdma_destroy_srq, id);
    struct shca_cm *own = shca_cm_of(id);

    if (own->state == SHCA_CM_HOST) {
        shca_cm_inside++;
        SHCA_CM_REAL(rdma_destroy_srq)(shca_cm_host_of(own));
        shca_cm_inside--;
        shca_cm_host_done(own, 0);
        return;
    }
    ibv_destroy_srq(id->srq);
    id->srq = NULL;
}

SHCA_PUBLIC int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
    SHCA_CM_INSIDE(rdma_join_multicast, id, addr, context);

    SHCA_CM_PASS(shca_cm_of(id), rdma_join_multicast, addr, context);
    return shca_cm_fail(ENOSYS);
}

SHCA_PUBLIC int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
                                       void *context)
{
    SHCA_CM_INSIDE(rdma_join_multicast_ex, id, attr, context);

    SHCA_CM_PASS(shca_cm_of(id), rdma_join_multicast_ex, attr, context);
    return shca_cm_fail(ENOSYS);
}

SHCA_PUBLIC int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
    SHCA_CM_INSIDE(rdma_leave_multicast, id, addr);

    SHCA_CM_PASS(shca_cm_of(id), rdma_leave_multicast, addr);
    return shca_cm_fail(ENOSYS);
}

SHCA_PUBLIC int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
    SHCA_CM_INSIDE(rdma_set_local_ece, id, ece);

    SHCA_CM_PASS(shca_cm_of(id), rdma_set_local_ece, ece);
    return shca_cm_fail(ENOSYS);
}

SHCA_PUBLIC int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
    SHCA_CM_INSIDE(rdma_get_remote_ece, id, ece);

    SHCA_CM_PASS(shca_cm_of(id), rdma_get_remote_ece, ece);
    return shca_cm_fail(ENOSYS);
}

SHCA_PUBLIC int rdma_reject_ece(struct rdma_cm_id *id, const void *data, uint8_t length)
{
    SHCA_CM_INSIDE(rdma_reject_ece, id, data, length);
    return rdma_reject(id, data, length);
}

/* Without a socket of this kind the other functions of <rdma/rsocket.h> cannot be used. */
SHCA_PUBLIC int rsocket(int domain, int type, int protocol);

SHCA_PUBLIC int rsocket(int domain, int type, int protocol)
{
    (void)domain;
    (void)type;
    (void)protocol;
    return shca_cm_fail(ENOSYS);
}
