/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pairs: creation and the way from RESET to RTS (IBA 10.3). Together with peer/ the only
 * place where InfiniBand and RoCE differ: a peer is reached by LID, or by GID with a global route
 * header. No lock: start-up only. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "base/bits.h"
#include "base/report.h"
#include "settings/settings.h"
#include "transport/verbs/verbs_credit.h"
#include "transport/verbs/verbs_private.h"

enum {
    hop_limit = 64, /* of a routed RoCE network; the usual IP default */
    rnr_timer =
        12, /* 0.64 ms (IBA 9.7.5.2.8); credits keep receivers ready, so it should never run */
    rnr_retry_for_ever = 7 /* 7 means without limit: a receiver that is slow is no error */
};

static enum tk_status failed(const struct tk_link *link, const char *what, int error)
{
    const struct tk_port_address *a = &tk_rail_of(link)->address;
    tk_complain("%s:%u: %s for rank %u failed: %s%s", a->device, a->port, what, link->peer->rank,
                strerror(error),
                error == ENOMEM ? " (the device is out of queue pairs or of queue memory: lower "
                                  "GASNET_NETWORKDEPTH_PP or "
                                  "GASNET_AM_CREDITS_PP, or start fewer ranks)"
                                : "");
    return TK_FAIL;
}

static enum tk_status to_init(struct tk_link *link)
{
    const struct tk_rail *rail = tk_rail_of(link);
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .pkey_index = (uint16_t)rail->pkey_index,
        .port_num = rail->address.port,
        .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ,
    };
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    int error = ibv_modify_qp(link->qp, &attr, mask);
    return error ? failed(link, "modify_qp to INIT", error) : TK_OK;
}

static void prepare(struct tk_link *link, bool is_primary)
{
    tk_lock_init(&link->lock);
    link->quiet_work.link = link;
    link->quiet_work.opcode = IBV_WR_SEND;
    link->quiet_sge.addr = (uintptr_t)&link->quiet_data;
    link->quiet_wr.wr_id = (uintptr_t)&link->quiet_work;
    link->quiet_wr.opcode = IBV_WR_SEND;
    link->quiet_wr.send_flags = IBV_SEND_INLINE;
    link->quiet_wr.sg_list = &link->quiet_sge;
    link->quiet_wr.num_sge = 1;
    tk_counter_set(&link->room, tk_verbs.depth_pp);
    if (!is_primary)
        return;
    link->credits = tk_verbs.credits_pp;
    link->control_expected = 1;
    link->surplus = -tk_credit_buffers_needed(link);
}

/* Devices do not say how much inline data they allow; too much is refused, so less is tried. */
static enum tk_status create(struct tk_link *link, struct ibv_qp_init_attr *attr)
{
    struct ibv_pd *pd = tk_rail_of(link)->device->pd;
    while (!(link->qp = ibv_create_qp(pd, attr)) && tk_verbs.inline_limit > 0) {
        tk_verbs.inline_limit /= 2;
        attr->cap.max_inline_data = (uint32_t)tk_verbs.inline_limit;
    }
    if (!link->qp)
        return failed(link, "create_qp", errno);
    if (attr->cap.max_inline_data < tk_verbs.inline_limit)
        tk_verbs.inline_limit = attr->cap.max_inline_data;
    return TK_OK;
}

enum tk_status tk_link_open(struct tk_link *link, struct tk_peer *peer, uint32_t rail,
                            bool is_primary)
{
    const struct tk_device *device = tk_verbs.rails[rail].device;
    struct ibv_qp_init_attr attr = {
        .send_cq = device->send_cq,
        .recv_cq = device->recv_cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = (uint32_t)tk_verbs.depth_pp,
                .max_recv_wr = is_primary ? (uint32_t)(2 * tk_verbs.credits_pp + 1) : 1,
                .max_send_sge = 2, /* head and payload */
                .max_recv_sge = 1,
                .max_inline_data = (uint32_t)tk_verbs.inline_limit},
    };
    link->peer = peer;
    link->rail = rail;
    prepare(link, is_primary);
    return create(link, &attr) == TK_OK ? to_init(link) : TK_FAIL;
}

static void set_route(struct ibv_ah_attr *ah, const struct tk_rail *rail,
                      const struct tk_port_address *to)
{
    ah->port_num = rail->address.port;
    ah->dlid = to->lid;
    if (!tk_address_needs_gid(to))
        return;
    ah->is_global = 1;
    ah->grh.sgid_index = (uint8_t)rail->gid_index;
    ah->grh.hop_limit = hop_limit;
    memcpy(ah->grh.dgid.raw, to->gid, sizeof(to->gid));
}

static enum tk_status to_rtr(struct tk_link *link, const struct tk_port_address *to, uint32_t qp)
{
    const struct tk_rail *rail = tk_rail_of(link);
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .path_mtu = (enum ibv_mtu)tk_min(rail->address.mtu, to->mtu),
        .dest_qp_num = qp,
        .max_dest_rd_atomic = rail->address.reads,
        .min_rnr_timer = rnr_timer,
    };
    int mask = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    set_route(&attr.ah_attr, rail, to);
    int error = ibv_modify_qp(link->qp, &attr, mask);
    return error ? failed(link, "modify_qp to RTR", error) : TK_OK;
}

static enum tk_status to_rts(struct tk_link *link, const struct tk_port_address *to)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .timeout = (uint8_t)tk_settings.qp_timeout,
        .retry_cnt = (uint8_t)tk_settings.qp_retry_count,
        .rnr_retry = rnr_retry_for_ever,
        .max_rd_atomic = (uint8_t)tk_min((size_t)tk_rail_of(link)->reads_out, to->reads),
    };
    int mask = IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
               IBV_QP_MAX_QP_RD_ATOMIC;
    int error = ibv_modify_qp(link->qp, &attr, mask);
    return error ? failed(link, "modify_qp to RTS", error) : TK_OK;
}

enum tk_status tk_link_connect(struct tk_link *link, const struct tk_port_address *to, uint32_t qp)
{
    const struct tk_rail *rail = tk_rail_of(link);
    if (rail->address.is_ethernet != to->is_ethernet) {
        tk_complain("%s:%u is %s here, but rank %u on %s uses %s:%u, which is %s; choose ports of "
                    "one network with "
                    "GASNET_IBV_PORTS",
                    rail->address.device, rail->address.port,
                    rail->address.is_ethernet ? "Ethernet" : "InfiniBand", link->peer->rank,
                    link->peer->host, to->device, to->port,
                    to->is_ethernet ? "Ethernet" : "InfiniBand");
        return TK_FAIL;
    }
    return to_rtr(link, to, qp) == TK_OK ? to_rts(link, to) : TK_FAIL;
}

void tk_link_close(struct tk_link *link)
{
    if (link->qp)
        ibv_destroy_qp(link->qp);
    link->qp = NULL;
}
