/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Queue pairs of clients on raw rails: made, connected, closed. They go from RESET to RTS as
 * connections do. No state. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/bits.h"
#include "base/report.h"
#include "peer/peer.h"
#include "transport/verbs/conn/psn.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/device/qp_state.h"
#include "transport/verbs/library.h"
#include "transport/verbs/raw/raw.h"
#include "transport/verbs/raw/raw_private.h"

_Static_assert((int)tk_datagram_key == (int)trunkline_qkey,
               "the key that clients know is not the one in use");

static enum tk_status raw_failed(const trunkline_qp_t *qp, const char *what, int error)
{
    tk_log_error("%s: %s%s%s failed: %s%s", qp->rail->name, what, *qp->name ? " for " : "",
                 qp->name, strerror(error),
                 error == ENOMEM ? " (the device is out of queue pairs or of queue memory)" : "");
    return TK_FAIL;
}

static enum tk_status raw_refuse(const trunkline_rail_t *rail, const char *what, uint32_t asked,
                                 int most)
{
    tk_log_error("%s allows %d %s, %u are asked for", rail->name, most, what, asked);
    return TK_FAIL;
}

enum tk_status tk_raw_qp_check(const trunkline_domain_t *domain, const trunkline_rail_t *rail,
                               const trunkline_qp_options_t *options)
{
    const struct ibv_device_attr *limits = &rail->limits;
    uint32_t depth = (uint32_t)tk_max(options->send_depth, options->recv_depth);
    uint32_t pieces = (uint32_t)tk_max(options->send_pieces, options->recv_pieces);
    if (options->type != IBV_QPT_RC && options->type != IBV_QPT_UC && options->type != IBV_QPT_UD) {
        tk_log_error("%s: queue pairs of type %d are not made here, only RC, UC and UD", rail->name,
                     (int)options->type);
        return TK_FAIL;
    }
    if (tk_raw_rail(rail)->context->device->transport_type == IBV_TRANSPORT_IWARP) {
        tk_log_error("%s is an iWARP port, whose queue pairs only librdmacm connects: that of raw "
                     "rails goes by addresses",
                     rail->name);
        return TK_FAIL;
    }
    if (domain->context->device != rail->context->device) {
        tk_log_error("%s: the domain is one of %s, which is another device", rail->name,
                     domain->rail->name);
        return TK_FAIL;
    }
    if (depth > (uint32_t)limits->max_qp_wr)
        return raw_refuse(rail, "work requests in a queue", depth, limits->max_qp_wr);
    if (pieces > (uint32_t)limits->max_sge)
        return raw_refuse(rail, "pieces of memory in a work request", pieces, limits->max_sge);
    if (options->reads < 0 || options->reads > rail->reads_out)
        return raw_refuse(rail, "reads at once on a queue pair", (uint32_t)options->reads,
                          rail->reads_out);
    return TK_OK;
}

/* Makes the completion queues that the client did not provide. */
static enum tk_status open_cqs(trunkline_qp_t *qp, const trunkline_domain_t *domain,
                               const trunkline_qp_options_t *options)
{
    uint32_t depth = (uint32_t)tk_max(options->send_depth, 1);
    qp->send_cq = options->send_cq;
    qp->recv_cq = options->recv_cq;
    if (!qp->recv_cq && !qp->send_cq)
        depth += options->recv_depth;
    if (!qp->send_cq) {
        if (tk_raw_cq_open(&qp->send_cq, domain, depth, NULL) != TK_OK)
            return TK_FAIL;
        qp->owns_cq = 1;
    }
    if (!qp->recv_cq)
        qp->recv_cq = qp->send_cq;
    return TK_OK;
}

/* Devices do not report how much inline data they allow, and refuse too much: tries less until one
 * accepts. */
static enum tk_status raw_create(trunkline_qp_t *qp, const trunkline_domain_t *domain,
                                 const trunkline_qp_options_t *options)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = qp->send_cq,
        .recv_cq = qp->recv_cq,
        .srq = options->srq,
        .qp_type = options->type,
        .sq_sig_all = options->signal_all != 0,
        .cap = {.max_send_wr = (uint32_t)tk_max(options->send_depth, 1),
                .max_recv_wr = (uint32_t)tk_max(options->recv_depth, 1),
                .max_send_sge = (uint32_t)tk_max(options->send_pieces, 1),
                .max_recv_sge = (uint32_t)tk_max(options->recv_pieces, 1),
                .max_inline_data = options->inline_size},
    };
    while (!(qp->qp = ibv_create_qp(domain->pd, &attr)) && attr.cap.max_inline_data > 0)
        attr.cap.max_inline_data /= 2;
    if (!qp->qp)
        return raw_failed(qp, "create_qp", errno);
    qp->inline_size = attr.cap.max_inline_data;
    return TK_OK;
}

/* Chooses a random first packet number, so that packets of strangers, or of an earlier queue pair
 * with the same number, are not mistaken for the peer's. */
static enum tk_status set_address(trunkline_qp_t *qp, enum ibv_qp_type type)
{
    uint32_t psn;
    if (!tk_psn_random(&psn))
        return raw_failed(qp, "random bytes", errno);
    const struct tk_port_address *a = &tk_raw_rail(qp->rail)->address;
    qp->address = (trunkline_address_t){.qpn = qp->qp->qp_num,
                                        .psn = psn,
                                        .lid = a->lid,
                                        .mtu = a->mtu,
                                        .reads = a->reads,
                                        .is_ethernet = a->is_ethernet,
                                        .type = (uint8_t)type,
                                        .gid_type = a->gids[0].type};
    memcpy(qp->address.gid, a->gids[0].raw, sizeof(a->gids[0].raw));
    snprintf(qp->address.rail, sizeof(qp->address.rail), "%.31s", qp->rail->name);
    return TK_OK;
}

enum tk_status tk_raw_qp_open(trunkline_qp_t *qp, const trunkline_domain_t *domain,
                              const trunkline_rail_t *rail, const trunkline_qp_options_t *options)
{
    enum { usual_access = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ };
    *qp =
        (trunkline_qp_t){.rail = rail, .reads = options->reads ? options->reads : rail->reads_out};
    snprintf(qp->name, sizeof(qp->name), "%s", options->name ? options->name : "");
    enum tk_status status = open_cqs(qp, domain, options);
    if (status == TK_OK)
        status = raw_create(qp, domain, options);
    if (status == TK_OK) {
        int access = options->access ? options->access : usual_access;
        int error = tk_qp_init(qp->qp, tk_raw_rail(rail), options->type, access);
        status = error ? raw_failed(qp, "modify_qp to INIT", error) : TK_OK;
    }
    if (status == TK_OK)
        status = set_address(qp, options->type);
    if (status != TK_OK)
        tk_raw_qp_close(qp);
    return status;
}

/* Uses the best GID of each end: an address carries one. */
static struct tk_path path_to(const trunkline_qp_t *qp, const trunkline_address_t *to)
{
    const struct tk_port_address *a = &tk_raw_rail(qp->rail)->address;
    struct tk_path path = {.from = a->gids[0],
                           .to = a->gids[0],
                           .lid = to->lid,
                           .mtu = (uint8_t)tk_min(a->mtu, to->mtu),
                           .reads_in = a->reads,
                           .reads_out = (uint8_t)tk_min((size_t)qp->reads, to->reads)};
    memcpy(path.to.raw, to->gid, sizeof(path.to.raw));
    path.is_global = a->needs_gid || to->lid == 0 ||
                     (!a->is_ethernet && !tk_gid_is_same_network(&path.from, &path.to));
    return path;
}

/* Checks the address, which comes from another process. */
static enum tk_status fits(const trunkline_qp_t *qp, const trunkline_address_t *to)
{
    const trunkline_address_t *mine = &qp->address;
    bool is_alike = to->type == mine->type && to->is_ethernet == mine->is_ethernet;
    if (is_alike && to->gid_type != mine->gid_type) {
        tk_log_error("%s%s%s can't be connected with queue pair %u of %.31s: its GID is of another "
                     "type (RoCE v1, v2): choose with GASNET_IBV_GID_INDEX",
                     qp->rail->name, *qp->name ? " " : "", qp->name, to->qpn, to->rail);
        return TK_FAIL;
    }
    if (is_alike)
        return TK_OK;
    tk_log_error("%s%s%s can't be connected with queue pair %u of %.31s: that is %s on %s",
                 qp->rail->name, *qp->name ? " " : "", qp->name, to->qpn, to->rail,
                 to->type == mine->type ? "of the same type" : "of another type",
                 to->is_ethernet ? "Ethernet" : "InfiniBand");
    return TK_FAIL;
}

enum tk_status tk_raw_qp_connect(trunkline_qp_t *qp, const trunkline_address_t *to)
{
    struct tk_path path;
    struct tk_route route = {.rail = tk_raw_rail(qp->rail),
                             .type = (enum ibv_qp_type)qp->address.type,
                             .psn = qp->address.psn};
    if (route.type != IBV_QPT_UD) {
        if (fits(qp, to) != TK_OK)
            return TK_FAIL;
        path = path_to(qp, to);
        route.path = &path;
        route.to_qp = to->qpn;
        route.to_psn = to->psn;
    }
    int error = tk_qp_rtr(qp->qp, &route);
    if (error)
        return raw_failed(qp, "modify_qp to RTR", error);
    error = tk_qp_rts(qp->qp, &route);
    return error ? raw_failed(qp, "modify_qp to RTS", error) : TK_OK;
}

enum tk_status tk_raw_qp_reach(struct ibv_ah **ah, const trunkline_qp_t *qp,
                               const trunkline_address_t *to)
{
    struct ibv_ah_attr attr = {.dlid = 0};
    if (fits(qp, to) != TK_OK)
        return TK_FAIL;
    const struct tk_path path = path_to(qp, to);
    int error = tk_route_set(&attr, tk_raw_rail(qp->rail), &path);
    if (error)
        return raw_failed(qp, "create_ah", error);
    *ah = ibv_create_ah(qp->qp->pd, &attr);
    return *ah ? TK_OK : raw_failed(qp, "create_ah", errno);
}

void tk_raw_qp_close(trunkline_qp_t *qp)
{
    if (qp->qp)
        ibv_destroy_qp(qp->qp);
    if (qp->owns_cq && qp->send_cq)
        ibv_destroy_cq(qp->send_cq);
    *qp = (trunkline_qp_t){.qp = NULL};
}
