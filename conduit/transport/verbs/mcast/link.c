/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Owns the queue pairs, the completion queue and the registration of one member of a group of a
 * multicast switch. No lock: the caller serializes. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "memory/memory.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "transport/multicast.h"
#include "transport/verbs/conn/psn.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/qp_state.h"
#include "transport/verbs/library.h"
#include "transport/verbs/mcast/link.h"
#include "transport/verbs/verbs.h"
#include "transport/verbs/verbs_state.h"

enum {
    retries = 6, /* 7 means for ever on Soft-RoCE */
    hops = 64,
    refused_again = 12,       /* 0.64 ms: minimum RNR timer of the receive queue pair, unused */
    psn_mask = 0xffffff,      /* 24 bits */
    psn_step = 1 << 22 | 4711 /* between incarnations: packets in flight count as old */
};

struct link {
    struct tk_mcast_link head; /* first */
    struct ibv_cq *cq;
    struct ibv_qp *sqp, *rqp;
    struct ibv_mr *mr;
    const struct tk_rail *rail;
    struct tk_gid own;
    unsigned plane;
    uint8_t mtu; /* enum ibv_mtu */
    uint32_t sqpsn, rqpsn;
    char *memory;
    bool is_on;
};

/* ---- opening */

static struct link *link_of(struct tk_mcast_link *head)
{
    return (struct link *)head;
}

static struct ibv_qp *qp_open(const struct tk_rail *rail, struct ibv_cq *cq, unsigned sends)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = cq,
        .recv_cq = cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = sends, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    return ibv_create_qp(rail->device->pd, &attr);
}

static void link_close(struct tk_mcast_link *head)
{
    struct link *link = link_of(head);
    if (link->sqp)
        ibv_destroy_qp(link->sqp);
    if (link->rqp)
        ibv_destroy_qp(link->rqp);
    if (link->cq)
        ibv_destroy_cq(link->cq);
    if (link->mr)
        ibv_dereg_mr(link->mr);
    free(link);
}

static struct tk_mcast_link *link_open(void *memory, size_t size, const char **why)
{
    struct link *link = calloc(1, sizeof(*link));
    *why = "the device has no queue pair, completion queue or registration left";
    if (!link || !tk_verbs_is_open() || tk_verbs.rails[0].is_iwarp) {
        *why = "the job has no RDMA port that packets of RoCE v2 go by";
        free(link);
        return NULL;
    }
    const struct tk_rail *rail = &tk_verbs.rails[0];
    link->head.device = &tk_verbs_multicast;
    link->rail = rail;
    link->memory = memory;
    link->cq = ibv_create_cq(rail->context, tk_mcast_depth, NULL, NULL, 0);
    link->mr = ibv_reg_mr(rail->device->pd, memory, size,
                          IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (link->cq && link->mr) {
        link->sqp = qp_open(rail, link->cq, tk_mcast_depth);
        link->rqp = qp_open(rail, link->cq, 1);
    }
    if (link->sqp && link->rqp && tk_psn_random(&link->sqpsn) && tk_psn_random(&link->rqpsn))
        return &link->head;
    link_close(&link->head);
    return NULL;
}

/* ---- states */

static bool has_prefix(const uint8_t gid[16], const char *prefix, size_t size)
{
    return memcmp(gid, prefix, size) == 0;
}

/* The plane through which a GID reaches the switch; -1: none. */
static int plane_of(const uint8_t gid[16], const struct tk_mcsw_info *info)
{
    bool is_softhca = has_prefix(gid, "\xfd\x53\x48\x43\x41\x00\x00\x01", 8);
    bool is_plain = has_prefix(gid, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12);
    if (is_plain && info->planes & 1u << TK_MCSW_FRAMES)
        return TK_MCSW_FRAMES;
    if ((is_softhca || is_plain) && info->planes & 1u << TK_MCSW_UDP)
        return TK_MCSW_UDP;
    return -1;
}

static bool choose_gid(struct link *link, const struct tk_mcsw_info *info)
{
    const struct tk_port_address *a = &link->rail->address;
    for (int i = 0; i < a->gid_count; i++) {
        int plane = plane_of(a->gids[i].raw, info);
        if (plane < 0)
            continue;
        link->own = a->gids[i];
        link->plane = (unsigned)plane;
        return true;
    }
    return false;
}

static bool qp_to(struct ibv_qp *qp, enum ibv_qp_state state)
{
    struct ibv_qp_attr attr = {.qp_state = state};
    return ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0;
}

static bool qp_begin(struct link *link, struct ibv_qp *qp, int access)
{
    return qp_to(qp, IBV_QPS_RESET) && tk_qp_init(qp, link->rail, IBV_QPT_RC, access) == 0;
}

/* Drops completions of the previous incarnation. */
static void drain(struct link *link)
{
    struct ibv_wc wc;
    while (ibv_poll_cq(link->cq, 1, &wc) > 0)
        ;
}

static bool link_reset(struct tk_mcast_link *head, const struct tk_mcsw_info *info,
                       struct tk_mcsw_member *member, const char **why)
{
    struct link *link = link_of(head);
    *why = "the port has no address of the kind that the switch has";
    if (!choose_gid(link, info))
        return false;
    *why = "the device did not reset its queue pairs";
    for (link->mtu = link->rail->address.mtu; link->mtu > 1 && 128u << link->mtu > info->mtu;)
        link->mtu--;
    link->is_on = false;
    if (!qp_begin(link, link->sqp, 0) || !qp_begin(link, link->rqp, IBV_ACCESS_REMOTE_WRITE))
        return false;
    drain(link);
    link->sqpsn = (link->sqpsn + psn_step) & psn_mask;
    link->rqpsn = (link->rqpsn + psn_step) & psn_mask;
    *member = (struct tk_mcsw_member){.plane = link->plane,
                                      .mtu = 128u << link->mtu,
                                      .sqpn = link->sqp->qp_num,
                                      .sqpsn = link->sqpsn,
                                      .rqpn = link->rqp->qp_num,
                                      .rqpsn = link->rqpsn,
                                      .base = (uintptr_t)link->memory,
                                      .rkey = link->mr->rkey};
    memcpy(member->gid, link->own.raw, sizeof(member->gid));
    return true;
}

static bool qp_rtr(struct link *link, struct ibv_qp *qp, const uint8_t *to, uint32_t to_qp,
                   uint32_t psn)
{
    struct tk_path path = {.from = link->own, .is_global = true};
    memcpy(path.to.raw, to, sizeof(path.to.raw));
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTR,
                               .dest_qp_num = to_qp,
                               .rq_psn = psn,
                               .path_mtu = (enum ibv_mtu)link->mtu,
                               .max_dest_rd_atomic = 1,
                               .min_rnr_timer = refused_again};
    if (tk_route_set(&attr.ah_attr, link->rail, &path) != 0)
        return false;
    attr.ah_attr.grh.hop_limit = hops;
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                             IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER) == 0;
}

/* A request that is refused because of the lock is retried for ever: RNR. */
static bool qp_rts(struct ibv_qp *qp, uint32_t psn)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS,
                               .sq_psn = psn,
                               .timeout = (uint8_t)tk_settings.mcast_timeout,
                               .retry_cnt = retries,
                               .rnr_retry = 7,
                               .max_rd_atomic = 1};
    return ibv_modify_qp(qp, &attr,
                         IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                             IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC) == 0;
}

static bool link_connect(struct tk_mcast_link *head, const struct tk_mcsw_info *info,
                         const struct tk_mcsw_place *place)
{
    struct link *link = link_of(head);
    link->is_on =
        qp_rtr(link, link->rqp, info->vip[link->plane].copies, place->vsqpn, link->rqpsn) &&
        qp_rtr(link, link->sqp, info->vip[link->plane].requests, place->vrqpn, 0) &&
        qp_rts(link->rqp, 0) && qp_rts(link->sqp, link->sqpsn);
    return link->is_on;
}

static void link_stop(struct tk_mcast_link *head)
{
    struct link *link = link_of(head);
    link->is_on = false;
    qp_to(link->rqp, IBV_QPS_ERR);
    qp_to(link->sqp, IBV_QPS_ERR);
}

/* ---- use */

/* The two largest keys have a special meaning to the switch. */
static bool link_window(const struct tk_mcast_link *head, struct tk_mcast_window *window)
{
    const struct link *link = (const struct link *)head;
    if (!tk_verbs.segment || tk_segment_area.size == 0 ||
        tk_verbs.segment->remote[0] >= TK_MCSW_WINDOW_KEY)
        return false;
    *window = (struct tk_mcast_window){.base = (uintptr_t)tk_segment_area.base,
                                       .size = tk_segment_area.size,
                                       .rkey = tk_verbs.segment->remote[0],
                                       .most = link->rail->message_max};
    return true;
}

static uint32_t remote_key(const struct tk_mcast_write *w)
{
    return w->to == tk_mcast_control ? UINT32_MAX : w->to_window ? TK_MCSW_WINDOW_KEY : 0;
}

static bool link_post(struct tk_mcast_link *head, const struct tk_mcast_write *list, unsigned count,
                      uint64_t id)
{
    struct link *link = link_of(head);
    struct ibv_send_wr wr[tk_mcast_list_max], *bad;
    struct ibv_sge sge[tk_mcast_list_max];
    for (unsigned i = 0; i < count; i++) {
        const struct tk_mcast_write *w = &list[i];
        bool is_last = i + 1 == count;
        sge[i] =
            (struct ibv_sge){.addr = (uintptr_t)w->from,
                             .length = (uint32_t)w->nbytes,
                             .lkey = w->to_window ? tk_verbs.segment->local[0] : link->mr->lkey};
        wr[i] = (struct ibv_send_wr){.wr_id = id,
                                     .next = is_last ? NULL : &wr[i + 1],
                                     .sg_list = &sge[i],
                                     .num_sge = 1,
                                     .opcode = IBV_WR_RDMA_WRITE,
                                     .send_flags = is_last ? IBV_SEND_SIGNALED : 0,
                                     .wr.rdma = {w->to, remote_key(w)}};
    }
    return link->is_on && ibv_post_send(link->sqp, wr, &bad) == 0;
}

static bool link_read_status(struct tk_mcast_link *head, void *to, size_t nbytes, uint64_t id)
{
    struct link *link = link_of(head);
    struct ibv_sge sge = {
        .addr = (uintptr_t)to, .length = (uint32_t)nbytes, .lkey = link->mr->lkey};
    struct ibv_send_wr *bad, wr = {.wr_id = id,
                                   .sg_list = &sge,
                                   .num_sge = 1,
                                   .opcode = IBV_WR_RDMA_READ,
                                   .send_flags = IBV_SEND_SIGNALED,
                                   .wr.rdma = {tk_mcast_control, UINT32_MAX}};
    return link->is_on && ibv_post_send(link->sqp, &wr, &bad) == 0;
}

static bool link_poll(struct tk_mcast_link *head, uint64_t *id, bool *failed, const char **how)
{
    struct link *link = link_of(head);
    struct ibv_wc wc;
    if (ibv_poll_cq(link->cq, 1, &wc) <= 0)
        return false;
    *id = wc.wr_id;
    *failed = wc.status != IBV_WC_SUCCESS;
    *how = ibv_wc_status_str(wc.status);
    return true;
}

const struct tk_mcast_device tk_verbs_multicast = {.open = link_open,
                                                   .close = link_close,
                                                   .reset = link_reset,
                                                   .connect = link_connect,
                                                   .stop = link_stop,
                                                   .window = link_window,
                                                   .post = link_post,
                                                   .read_status = link_read_status,
                                                   .poll = link_poll};
