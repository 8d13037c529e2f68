/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Links: creation of their queue pairs, and connection with those of the peer. No lock: start-up
 * only. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "base/report.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/verbs_private.h"

static enum tk_status failed(const struct tk_link *link, const char *what, int error)
{
    const struct tk_port_address *a = &tk_rail_of(link)->address;
    tk_log_error("%s:%u: %s for rank %u failed: %s%s", a->device, a->port, what, link->peer->rank,
                 strerror(error),
                 error == ENOMEM ? " (the device is out of queue pairs or of queue memory: lower "
                                   "GASNET_NETWORKDEPTH_PP or "
                                   "GASNET_AM_CREDITS_PP, or start fewer ranks)"
                                 : "");
    return TK_FAIL;
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
    link->standing = tk_notice_buffers();
    if (is_primary) {
        link->credits = tk_verbs.credits_pp;
        link->standing += 2 * tk_verbs.credits_pp;
        link->control_expected = 1;
    }
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
                .max_recv_wr = (uint32_t)(tk_verbs.keeps || is_primary ? tk_receives_max() : 1),
                .max_send_sge = 2, /* head and payload */
                .max_recv_sge = 1,
                .max_inline_data = (uint32_t)tk_verbs.inline_limit},
    };
    link->peer = peer;
    link->rail = rail;
    prepare(link, is_primary);
    if (tk_verbs.keeps && tk_notes_open(link) != TK_OK)
        return TK_FAIL;
    if (tk_verbs.keeps)
        tk_life_name(link);
    if (create(link, &attr) != TK_OK)
        return TK_FAIL;
    int error = tk_link_init(link);
    return error ? failed(link, "modify_qp to INIT", error) : TK_OK;
}

/* No packet of an earlier life may be taken for one that is expected now: those that a connection
 * sends after one another have numbers close together, and these are far apart. */
static uint32_t first_psn(uint32_t life)
{
    enum { psn_bits = 24, scatter = 0x9e3779 };
    return life * scatter & ((1u << psn_bits) - 1);
}

int tk_link_init(struct tk_link *link)
{
    return tk_qp_init(link->qp, tk_rail_of(link), IBV_QPT_RC,
                      IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ);
}

int tk_link_ready(struct tk_link *link, const struct tk_port_address *to, uint32_t qp,
                  uint32_t life, const char **what)
{
    const struct tk_rail *rail = tk_rail_of(link);
    const struct tk_route route = {.rail = rail,
                                   .to = to,
                                   .type = IBV_QPT_RC,
                                   .to_qp = qp,
                                   .to_psn = first_psn(life),
                                   .psn = first_psn(life),
                                   .reads_out = rail->reads_out};
    *what = "modify_qp to RTR";
    int error = tk_qp_rtr(link->qp, &route);
    if (error)
        return error;
    *what = "modify_qp to RTS";
    return tk_qp_rts(link->qp, &route);
}

enum tk_status tk_link_connect(struct tk_link *link, const struct tk_port_address *to, uint32_t qp)
{
    const char *what;
    int error = tk_link_ready(link, to, qp, 0, &what);
    if (link->notes) {
        link->notes->life.to = *to;
        link->notes->life.to_qp = qp;
    }
    return error ? failed(link, what, error) : TK_OK;
}

void tk_link_close(struct tk_link *link)
{
    if (link->qp)
        ibv_destroy_qp(link->qp);
    link->qp = NULL;
    tk_notes_close(link);
}
