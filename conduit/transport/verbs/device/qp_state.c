/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Transitions of a queue pair from RESET to RTS (IBA 10.3), for connections and for the client's
 * own. A peer is addressed by LID, or by GID with a global route header: see device/path.c. No
 * state. */
#include "config.h"

#include <string.h>

#include "base/first_use.h"
#include "settings/settings.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/device/qp_state.h"
#include "transport/verbs/library.h"

enum {
    hop_limit = 64, /* of a routed RoCE network; the usual IP default */
    rnr_timer = 12, /* 0.64 ms (IBA 9.7.5.2.8); credits keep receivers ready, so it is used only
                       while a peer with on-demand paging loads a page */
    rnr_retry_for_ever = 7 /* 7 means without limit: a slow receiver is no error */
};

int tk_qp_init(struct ibv_qp *qp, const struct tk_rail *rail, enum ibv_qp_type type, int access)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_INIT,
        .pkey_index = (uint16_t)rail->pkey_index,
        .port_num = rail->address.port,
        .qp_access_flags = (unsigned)access,
        .qkey = tk_datagram_key,
    };
    int mask = IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT;
    return ibv_modify_qp(qp, &attr,
                         mask | (type == IBV_QPT_UD ? IBV_QP_QKEY : IBV_QP_ACCESS_FLAGS));
}

TK_FIRST_USE int tk_route_set(struct ibv_ah_attr *ah, const struct tk_rail *rail,
                              const struct tk_path *path)
{
    ah->port_num = rail->address.port;
    ah->dlid = path->lid;
    ah->sl = (uint8_t)tk_settings.ibv_sl;
    if (!path->is_global)
        return 0;
    int row = tk_gid_row_now(rail->context, rail->address.port, &path->from);
    if (row < 0)
        return tk_gid_lost;
    ah->is_global = 1;
    ah->grh.sgid_index = (uint8_t)row;
    ah->grh.hop_limit = hop_limit;
    ah->grh.traffic_class = (uint8_t)tk_settings.ibv_traffic_class;
    memcpy(ah->grh.dgid.raw, path->to.raw, sizeof(path->to.raw));
    return 0;
}

TK_FIRST_USE void tk_qp_rtr_limits(struct ibv_qp_attr *attr, const struct tk_route *route)
{
    attr->min_rnr_timer = rnr_timer;
    attr->path_mtu = (enum ibv_mtu)route->path->mtu;
    attr->max_dest_rd_atomic = route->path->reads_in;
}

TK_FIRST_USE void tk_qp_rts_limits(struct ibv_qp_attr *attr, const struct tk_route *route)
{
    attr->timeout = (uint8_t)tk_settings.qp_timeout;
    attr->retry_cnt = route->rail->retry_count;
    attr->rnr_retry = rnr_retry_for_ever;
    attr->max_rd_atomic = route->path->reads_out;
}

TK_FIRST_USE int tk_qp_rtr(struct ibv_qp *qp, const struct tk_route *route)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTR,
        .dest_qp_num = route->to_qp,
        .rq_psn = route->to_psn,
    };
    int mask = IBV_QP_STATE;
    if (route->type != IBV_QPT_UD) {
        mask |= IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN;
        tk_qp_rtr_limits(&attr, route);
        int error = tk_route_set(&attr.ah_attr, route->rail, route->path);
        if (error)
            return error;
    }
    if (route->type == IBV_QPT_RC || route->type == IBV_QPT_XRC_RECV)
        mask |= IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    return ibv_modify_qp(qp, &attr, mask);
}

TK_FIRST_USE int tk_qp_rts(struct ibv_qp *qp, const struct tk_route *route)
{
    struct ibv_qp_attr attr = {
        .qp_state = IBV_QPS_RTS,
        .sq_psn = route->psn,
    };
    int mask = IBV_QP_STATE | IBV_QP_SQ_PSN;
    if (route->type == IBV_QPT_RC || route->type == IBV_QPT_XRC_SEND) {
        mask |= IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC;
        tk_qp_rts_limits(&attr, route);
    }
    return ibv_modify_qp(qp, &attr, mask);
}
