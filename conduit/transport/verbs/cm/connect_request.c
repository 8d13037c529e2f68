/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connection requests. Of two ranks the lower one connects. A higher rank that wants a connection
 * sends a connect with a queue pair that serves only this purpose. The lower rank refuses that
 * connect when it polls, and then connects itself. A failed request is dropped, and repeated with
 * the connection's next attempt. Owns the requests' ids and queue pairs. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "peer/peer.h"
#include "transport/verbs/cm/cm_private.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

enum { resolve_ms = 5000 };

static struct ibv_qp *create_qp(const struct tk_device *device)
{
    struct ibv_qp_init_attr attr = {
        .send_cq = tk_send_cq(device, 0),
        .recv_cq = device->recv_cq,
        .qp_type = IBV_QPT_RC,
        .cap = {.max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1}};
    return ibv_create_qp(device->pd, &attr);
}

/* Destroys the id first: on iWARP it holds the queue pair. */
void tk_cm_conn_request_end(struct tk_cm_end *end)
{
    struct tk_cm_conn_request *conn_request = end->conn_request;
    if (!conn_request)
        return;
    end->conn_request = NULL;
    if (conn_request->id)
        rdma_destroy_id(conn_request->id);
    if (conn_request->qp)
        ibv_destroy_qp(conn_request->qp);
    free(conn_request);
}

/* A failed request counts as lost. */
static void conn_request_failed(struct tk_cm_end *end, const char *what)
{
    const struct tk_conn *conn = tk_cm_conn_of(end);
    const struct tk_port_address *a = &tk_rail_of(conn)->address;
    if (!end->is_logged && !tk_is_leaving())
        tk_log_warn("%s:%u: %s to ask rank %u (%s) for a connection by librdmacm failed: %s; it is "
                    "tried again (further failures are not logged)",
                    a->device, a->port, what, conn->peer->rank, conn->peer->host, strerror(errno));
    end->is_logged = true;
    tk_cm_conn_request_end(end);
}

void tk_cm_conn_request_begin(struct tk_cm_end *end)
{
    const struct tk_conn *conn = tk_cm_conn_of(end);
    struct sockaddr_storage source, target;
    if (end->conn_request)
        return;
    end->conn_request = calloc(1, sizeof(*end->conn_request));
    if (!end->conn_request)
        tk_panic("out of memory for a connection (%zu bytes)", sizeof(*end->conn_request));
    end->conn_request->qp = create_qp(tk_rail_of(conn)->device);
    if (!end->conn_request->qp) {
        conn_request_failed(end, "create_qp");
        return;
    }
    tk_cm_addresses(conn, &source, &target);
    if (rdma_create_id(tk_verbs.cm->channel, &end->conn_request->id, end, RDMA_PS_TCP)) {
        end->conn_request->id = NULL;
        conn_request_failed(end, "rdma_create_id");
    } else if (rdma_resolve_addr(end->conn_request->id, (struct sockaddr *)&source,
                                 (struct sockaddr *)&target, resolve_ms)) {
        conn_request_failed(end, "rdma_resolve_addr");
    }
}

static void conn_request(struct tk_cm_end *end)
{
    const struct tk_conn *conn = tk_cm_conn_of(end);
    struct tk_cm_request request;
    struct rdma_conn_param param = {.private_data = &request,
                                    .private_data_len = sizeof(request),
                                    .retry_count = 7,
                                    .rnr_retry_count = 7,
                                    .qp_num = end->conn_request->qp->qp_num};
    tk_cm_request_make(&request, conn, TK_CM_FIRST);
    request.is_conn_request = 1;
    if (rdma_connect(end->conn_request->id, &param))
        conn_request_failed(end, "rdma_connect");
}

void tk_cm_conn_request_answered(struct tk_cm_end *end, enum tk_cm_verdict verdict)
{
    tk_cm_conn_request_end(end);
    if (end->state == TK_CM_AWAITS && (verdict == TK_CM_FOREIGN || verdict == TK_CM_CROSSING))
        tk_cm_end_rebuffed(end, verdict);
}

void tk_cm_conn_request_resolved(struct tk_cm_end *end, bool is_route)
{
    if (is_route)
        conn_request(end);
    else if (rdma_resolve_route(end->conn_request->id, resolve_ms))
        conn_request_failed(end, "rdma_resolve_route");
}
