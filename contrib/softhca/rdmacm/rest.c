/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Shared receive queues of identifiers, and the functions of librdmacm that softhca does not have:
 * multicast and the exchange of vendors' options. Owns nothing. */
#include "config.h"

#include "rdmacm/rdmacm.h"

SHCA_PUBLIC int rdma_create_srq_ex(struct rdma_cm_id *id, struct ibv_srq_init_attr_ex *attr)
{
    struct ibv_srq *srq;

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
    ibv_destroy_srq(id->srq);
    id->srq = NULL;
}

SHCA_PUBLIC int rdma_join_multicast(struct rdma_cm_id *id, struct sockaddr *addr, void *context)
{
    (void)id;
    (void)addr;
    (void)context;
    return shca_cm_fail(ENOSYS);
}

SHCA_PUBLIC int rdma_join_multicast_ex(struct rdma_cm_id *id, struct rdma_cm_join_mc_attr_ex *attr,
                                       void *context)
{
    (void)id;
    (void)attr;
    (void)context;
    return shca_cm_fail(ENOSYS);
}

SHCA_PUBLIC int rdma_leave_multicast(struct rdma_cm_id *id, struct sockaddr *addr)
{
    (void)id;
    (void)addr;
    return shca_cm_fail(ENOSYS);
}

SHCA_PUBLIC int rdma_set_local_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
    (void)id;
    (void)ece;
    return shca_cm_fail(ENOSYS);
}

SHCA_PUBLIC int rdma_get_remote_ece(struct rdma_cm_id *id, struct ibv_ece *ece)
{
    (void)id;
    (void)ece;
    return shca_cm_fail(ENOSYS);
}

SHCA_PUBLIC int rdma_reject_ece(struct rdma_cm_id *id, const void *data, uint8_t length)
{
    return rdma_reject(id, data, length);
}
