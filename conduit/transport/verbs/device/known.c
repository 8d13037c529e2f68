/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See known.h. Attributes do not say which types of queue pairs a device has: where they are those
 * of a device without connections, one is tried. */
#include "config.h"

#include <errno.h>
#include <stdbool.h>

#include "transport/verbs/device/known.h"
#include "transport/verbs/library.h"

enum { vendor_efa = 0x1d0f, vendor_mana = 0x1414, vendor_omni_path = 0x1175 };

/* A device with connections answers at least one read at a time (IBA 11.2.1.2 needs the number). */
static bool may_lack_connections(const struct ibv_context *context,
                                 const struct ibv_device_attr *attr)
{
    enum ibv_transport_type transport = context->device->transport_type;
    return (transport != IBV_TRANSPORT_IB && transport != IBV_TRANSPORT_IWARP) ||
           (attr->max_qp_rd_atom < 1 && attr->max_qp_init_rd_atom < 1);
}

/* A lack of memory or of rights is reported later, where it counts. */
static bool says_unsupported(int error)
{
    return error == EOPNOTSUPP || error == EINVAL || error == ENOSYS;
}

static bool is_refused(struct ibv_pd *pd, struct ibv_cq *cq)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    struct ibv_qp *qp = ibv_create_qp(pd, &attr);
    int error = qp ? 0 : errno;
    if (qp)
        ibv_destroy_qp(qp);
    return says_unsupported(error);
}

static bool lacks_connections(struct ibv_context *context)
{
    struct ibv_pd *pd = ibv_alloc_pd(context);
    struct ibv_cq *cq = ibv_create_cq(context, 2, NULL, NULL, 0);
    bool lacks = pd && cq && is_refused(pd, cq);
    if (cq)
        ibv_destroy_cq(cq);
    if (pd)
        ibv_dealloc_pd(pd);
    return lacks;
}

const char *tk_known_lack(struct ibv_context *context, const struct ibv_device_attr *attr)
{
    if (!may_lack_connections(context, attr) || !lacks_connections(context))
        return NULL;
    if (attr->vendor_id == vendor_efa)
        return "has no reliable connections (RC), which this library needs: EFA is used by "
               "libfabric, GASNet's ofi-conduit";
    if (attr->vendor_id == vendor_mana)
        return "has no reliable connections (RC) with this kernel: use a newer one, or an instance "
               "with InfiniBand";
    return "has no reliable connections (RC), which this library needs: use another device";
}

const char *tk_known_advice(uint32_t vendor)
{
    return vendor == vendor_omni_path
               ? "does verbs in software, which is slow: Omni-Path is faster by PSM2, GASNet's "
                 "ofi-conduit over libfabric"
               : NULL;
}
