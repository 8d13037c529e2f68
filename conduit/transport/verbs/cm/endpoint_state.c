/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One end of a connection, from INIT to RTS. Of a pair the lower rank connects and the higher one
 * listens, so connects never cross:
 *
 *     lower    HOLDS - RESOLVES (address, route) - ASKED - UP
 *     higher   AWAITS - ANSWERED (accepted) - UP
 *
 * Over iWARP connections on demand are greeted before they are UP (iwarp_first_send.c).
 *
 * A refusal that means "not yet", or that comes from the network, is no failure: the lower rank
 * goes back to HOLDS and asks again until its time is over. The queue pair belongs to the
 * connection and not to librdmacm, because rdma_create_qp would tie it to librdmacm's context of
 * the device. So this file moves it through its states, with the attributes of rdma_init_qp_attr
 * and our own limits, and the lower rank completes the connection by rdma_establish. On iWARP the
 * kernel's driver does both, because a queue pair there is a TCP connection.
 *
 * Owns the ends' ids. An id may be destroyed only when all its events that were read are
 * acknowledged: events.c acknowledges before it calls functions of this file. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/report.h"
#include "common/clock.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/cm/cm_private.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/device/qp_state.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

enum {
    early_max = 40, /* refusals because the other end was not open yet: about two seconds */
    resolve_ms = 5000,
    looks_before_again = 50 /* about 50 ms */
};

uint64_t tk_cm_look_pause = TK_SECOND / 1000;

/* Counts ends that ask, or are about to: more than a few at once would overrun listeners. */
static bool is_in_flight(const struct tk_cm_end *end)
{
    return end->state == TK_CM_RESOLVES || end->state == TK_CM_ASKED;
}

static void set_state(struct tk_cm_end *end, enum tk_cm_state state)
{
    tk_verbs.cm->in_flight -= is_in_flight(end);
    tk_verbs.cm->waiting -= tk_cm_is_waiting(end);
    end->state = (uint8_t)state;
    tk_verbs.cm->in_flight += is_in_flight(end);
    tk_verbs.cm->waiting += tk_cm_is_waiting(end);
}

static void drop_id(struct tk_cm_end *end)
{
    if (end->id)
        rdma_destroy_id(end->id);
    end->id = NULL;
}

void tk_cm_end_open(struct tk_cm_end *end, uint32_t epoch)
{
    drop_id(end);
    set_state(end, tk_cm_is_asker(tk_cm_conn_of(end)) ? TK_CM_HOLDS : TK_CM_AWAITS);
    end->epoch = epoch;
    end->early = 0;
    end->again = 0;
    end->is_greeted = end->has_greeted = end->was_refused = false;
    end->pushes = 0;
    end->deadline = 0;
}

void tk_cm_end_drop(struct tk_cm_end *end)
{
    drop_id(end);
    set_state(end, TK_CM_CLOSED);
}

/* ---- failing ---- */

/* A first connection is retried automatically, so failures of the network are logged only once. */
static void log_failure(struct tk_cm_end *end, const char *what)
{
    const struct tk_conn *conn = tk_cm_conn_of(end);
    const struct tk_port_address *a = &tk_rail_of(conn)->address;
    char ours[tk_cm_text_max], theirs[tk_cm_text_max];
    bool is_first = tk_cm_is_first(end->epoch);
    tk_cm_place_text(&tk_verbs.cm->listeners[conn->rail].place, ours, sizeof(ours));
    tk_cm_place_text(tk_cm_place_of_peer(conn), theirs, sizeof(theirs));
    if (tk_verbs.cm->is_starting || (is_first && end->was_refused))
        tk_log_error("%s:%u (%s) can't be connected by librdmacm with rank %u (%s, %s), queue pair "
                     "%u: %s",
                     a->device, a->port, ours, conn->peer->rank, conn->peer->host, theirs,
                     conn->qp->qp_num, what);
    else if (!is_first)
        tk_log_warn("%s:%u (%s) is not connected by librdmacm with rank %u (%s, %s) again, queue "
                    "pair %u, incarnation %u: %s; it is tried again later",
                    a->device, a->port, ours, conn->peer->rank, conn->peer->host, theirs,
                    conn->qp->qp_num, end->epoch, what);
    else if (!end->is_logged && !tk_is_leaving())
        tk_log_warn("%s:%u (%s) was not connected by librdmacm with rank %u (%s, %s): %s; it is "
                    "tried again (further failures are not logged)",
                    a->device, a->port, ours, conn->peer->rank, conn->peer->host, theirs, what);
    end->is_logged = true;
}

static void end_break(struct tk_cm_end *end)
{
    drop_id(end);
    set_state(end, TK_CM_FAILED);
    tk_verbs.cm->failed++;
}

void tk_cm_end_fail(struct tk_cm_end *end, const char *what, int status)
{
    char number[80] = "", text[256];
    /* Statuses are negative errnos, or reasons of a refusal (IBA 12.6.7.2). */
    if (status < 0)
        snprintf(number, sizeof(number), ", status %d (%s)", status, strerror(-status));
    else if (status > 0)
        snprintf(number, sizeof(number), ", status %d", status);
    end_break(end);
    snprintf(text, sizeof(text), "%s%s", what, number);
    log_failure(end, text);
}

/* A call of librdmacm failed and set errno. */
static void call_failed(struct tk_cm_end *end, const char *what)
{
    tk_cm_end_fail(end, what, errno ? -errno : -EIO);
}

/* ---- the queue pair ---- */

static struct tk_route route_of(const struct tk_conn *conn)
{
    return (struct tk_route){
        .rail = tk_rail_of(conn), .path = tk_path_of(conn), .type = IBV_QPT_RC};
}

/* librdmacm finds the route, but settings for service level or traffic class take precedence. */
static void set_classes(struct ibv_ah_attr *ah)
{
    if (tk_settings.ibv_sl)
        ah->sl = (uint8_t)tk_settings.ibv_sl;
    if (tk_settings.ibv_traffic_class && ah->is_global)
        ah->grh.traffic_class = (uint8_t)tk_settings.ibv_traffic_class;
}

/* Returns 0 or an errno. librdmacm knows the path, the packet numbers and the partition. */
static int enter(const struct tk_cm_end *end, enum ibv_qp_state state)
{
    const struct tk_conn *conn = tk_cm_conn_of(end);
    const struct tk_route route = route_of(conn);
    struct ibv_qp_attr attr = {.qp_state = state};
    int mask;
    if (rdma_init_qp_attr(end->id, &attr, &mask))
        return errno ? errno : EIO;
    if (state == IBV_QPS_INIT)
        attr.qp_access_flags = (unsigned)tk_verbs.remote_access;
    if (state == IBV_QPS_RTR) {
        tk_qp_rtr_limits(&attr, &route);
        set_classes(&attr.ah_attr);
    }
    if (state == IBV_QPS_RTS)
        tk_qp_rts_limits(&attr, &route);
    return ibv_modify_qp(conn->qp, &attr, mask);
}

/* False: it failed, which was logged. */
static bool make_ready(struct tk_cm_end *end)
{
    static const enum ibv_qp_state states[] = {IBV_QPS_INIT, IBV_QPS_RTR, IBV_QPS_RTS};
    static const char *const names[] = {"modify_qp to INIT", "modify_qp to RTR",
                                        "modify_qp to RTS"};
    if (tk_rail_of(tk_cm_conn_of(end))->is_iwarp)
        return true;
    for (int i = 0; i < 3; i++) {
        int error = enter(end, states[i]);
        if (!error)
            continue;
        tk_cm_end_fail(end, names[i], -error);
        return false;
    }
    return true;
}

static struct rdma_conn_param param_of(const struct tk_conn *conn)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RTS};
    const struct tk_route route = route_of(conn);
    tk_qp_rtr_limits(&attr, &route);
    tk_qp_rts_limits(&attr, &route);
    return (struct rdma_conn_param){.responder_resources = attr.max_dest_rd_atomic,
                                    .initiator_depth = attr.max_rd_atomic,
                                    .retry_count = attr.retry_cnt,
                                    .rnr_retry_count = attr.rnr_retry,
                                    .qp_num = conn->qp->qp_num};
}

/* ---- the lower rank ---- */

void tk_cm_addresses(const struct tk_conn *conn, struct sockaddr_storage *source,
                     struct sockaddr_storage *target)
{
    struct tk_cm_place from = tk_verbs.cm->listeners[conn->rail].place;
    struct tk_cm_place to = *tk_cm_place_of_peer(conn);
    from.port = 0;
    to.scope = from.scope; /* the peer's interface number means nothing here */
    tk_cm_place_sockaddr(&from, source);
    tk_cm_place_sockaddr(&to, target);
}

void tk_cm_end_begin(struct tk_cm_end *end)
{
    const struct tk_conn *conn = tk_cm_conn_of(end);
    struct sockaddr_storage source, target;
    tk_cm_addresses(conn, &source, &target);
    drop_id(end);
    end->again = 0;
    if (rdma_create_id(tk_verbs.cm->channel, &end->id, end, RDMA_PS_TCP)) {
        end->id = NULL;
        call_failed(end, "rdma_create_id");
        return;
    }
    set_state(end, TK_CM_RESOLVES);
    if (rdma_resolve_addr(end->id, (struct sockaddr *)&source, (struct sockaddr *)&target,
                          resolve_ms))
        call_failed(end, "rdma_resolve_addr");
}

static void ask(struct tk_cm_end *end)
{
    const struct tk_conn *conn = tk_cm_conn_of(end);
    struct rdma_conn_param param = param_of(conn);
    struct tk_cm_request request;
    tk_cm_request_make(&request, conn, end->epoch);
    param.private_data = &request;
    param.private_data_len = sizeof(request);
    set_state(end, TK_CM_ASKED);
    if (rdma_connect(end->id, &param))
        call_failed(end, "rdma_connect");
}

void tk_cm_end_resolved(struct tk_cm_end *end, bool is_route)
{
    if (end->state != TK_CM_RESOLVES)
        return;
    if (is_route)
        ask(end);
    else if (rdma_resolve_route(end->id, resolve_ms))
        call_failed(end, "rdma_resolve_route");
}

/* Our acknowledgement completes an answer; iWARP needs none. */
void tk_cm_end_answered(struct tk_cm_end *end)
{
    if (end->state != TK_CM_ASKED || !make_ready(end))
        return;
    if (rdma_establish(end->id))
        call_failed(end, "rdma_establish");
    else
        tk_cm_end_up(end);
}

void tk_cm_end_up(struct tk_cm_end *end)
{
    bool is_greeted_later = tk_cm_greets() && tk_cm_is_first(end->epoch);
    if (end->state == TK_CM_ASKED || end->state == TK_CM_ANSWERED)
        set_state(end, is_greeted_later ? TK_CM_GREETS : TK_CM_UP);
}

void tk_cm_end_greeted(struct tk_cm_end *end)
{
    if (end->state == TK_CM_GREETS)
        set_state(end, TK_CM_UP);
}

void tk_cm_end_rebuffed(struct tk_cm_end *end, enum tk_cm_verdict verdict)
{
    char what[160];
    snprintf(what, sizeof(what), "the peer refused the connect: %s", tk_cm_verdict_text(verdict));
    end->was_refused = verdict == TK_CM_FOREIGN || verdict == TK_CM_CROSSING;
    tk_cm_end_fail(end, what, 0);
}

/* The peer's own refusal is final, except "not yet". A refusal of the network or the kernel (an
 * overrun listener, an earlier connection that is not cleaned up yet) is retried. */
void tk_cm_end_refused(struct tk_cm_end *end, enum tk_cm_verdict verdict, int status)
{
    bool is_early = verdict == TK_CM_EARLY && ++end->early < early_max;
    if (end->state != TK_CM_ASKED)
        return;
    if (verdict != tk_cm_verdicts && !is_early) {
        tk_cm_end_rebuffed(end, verdict);
        return;
    }
    if (end->deadline && tk_now() >= end->deadline) {
        tk_cm_end_fail(end, "RDMA_CM_EVENT_REJECTED", status);
        return;
    }
    tk_cm_end_again(end);
}

/* The queue pair can be used again, except on iWARP, where the kernel has given it up: there a
 * first connection gets another queue pair, which is not logged. */
void tk_cm_end_again(struct tk_cm_end *end)
{
    if (tk_cm_is_first(end->epoch) && tk_rail_of(tk_cm_conn_of(end))->is_iwarp) {
        end_break(end);
        return;
    }
    drop_id(end);
    set_state(end, TK_CM_HOLDS);
    end->again = tk_now() + looks_before_again * tk_cm_look_pause;
}

/* ---- the higher rank ---- */

enum tk_cm_verdict tk_cm_end_judge(const struct tk_cm_end *end, uint32_t epoch)
{
    const struct tk_conn *conn = tk_cm_conn_of(end);
    if (!conn->qp || conn->is_for_atomics)
        return TK_CM_FOREIGN;
    int32_t ahead = (int32_t)(epoch - end->epoch);
    if (ahead != 0)
        return ahead > 0 ? TK_CM_EARLY : TK_CM_LATE;
    if (end->state == TK_CM_AWAITS)
        return TK_CM_WELCOME;
    return end->state == TK_CM_ANSWERED || end->state == TK_CM_UP ? TK_CM_DUPLICATE : TK_CM_LATE;
}

/* Sets the state first: on a later failure, destroying the id refuses the connect. */
void tk_cm_end_accept(struct tk_cm_end *end, struct rdma_cm_id *id)
{
    struct rdma_conn_param param = param_of(tk_cm_conn_of(end));
    end->id = id;
    id->context = end;
    set_state(end, TK_CM_ANSWERED);
    if (make_ready(end) && rdma_accept(id, &param))
        call_failed(end, "rdma_accept");
}
