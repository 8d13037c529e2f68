/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Events of librdmacm: reads them from the one channel that all ids share, acknowledges them, and
 * passes them to their ends; accepts or refuses connects. Owns only the count of refusals; nothing
 * here waits. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/report.h"
#include "common/clock.h"
#include "peer/peer.h"
#include "transport/verbs/cm/cm_private.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

enum {
    request_bytes = 256, /* private data has a length of one byte */
    flight_max = 64      /* connects of ours at once, of all peers */
};

/* A copy of an event, which outlives its acknowledgement. */
struct news {
    struct rdma_cm_id *id;
    enum rdma_cm_event_type type;
    int status;
    bool is_connect;
    uint32_t rail; /* of the listener that got it */
    uint8_t size;
    uint8_t data[request_bytes];
};

static bool find_listener(const struct rdma_cm_id *id, uint32_t *rail)
{
    for (*rail = 0; *rail < tk_verbs.rail_count; (*rail)++)
        if (tk_verbs.cm->listeners[*rail].id == id)
            return true;
    return false;
}

/* False: no event. */
static bool take_news(struct news *news)
{
    struct rdma_cm_event *event;
    if (rdma_get_cm_event(tk_verbs.cm->channel, &event))
        return false;
    *news = (struct news){.id = event->id, .type = event->event, .status = event->status};
    news->is_connect = event->event == RDMA_CM_EVENT_CONNECT_REQUEST;
    if (news->is_connect)
        find_listener(event->listen_id, &news->rail);
    if (news->is_connect || event->event == RDMA_CM_EVENT_REJECTED) {
        const struct rdma_conn_param *param = &event->param.conn;
        news->size = param->private_data ? param->private_data_len : 0;
        if (news->size > 0)
            memcpy(news->data, param->private_data, news->size);
    }
    rdma_ack_cm_event(event);
    return true;
}

/* ---- connects ---- */

/* Logs one line only: any process may connect any number of times. */
static void log_refusal(const struct news *news, enum tk_cm_verdict verdict)
{
    const struct tk_port_address *a = &tk_verbs.rails[news->rail].address;
    const struct sockaddr *from = rdma_get_peer_addr(news->id);
    char text[INET6_ADDRSTRLEN] = "an unknown address";
    if (tk_verbs.cm->refused++ > 0)
        return;
    if (from->sa_family == AF_INET)
        inet_ntop(AF_INET, &((const struct sockaddr_in *)(const void *)from)->sin_addr, text,
                  sizeof(text));
    else if (from->sa_family == AF_INET6)
        inet_ntop(AF_INET6, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, text,
                  sizeof(text));
    tk_log_warn("%s:%u refused a connect from %s: %s (further ones are not logged)", a->device,
                a->port, text, tk_cm_verdict_text(verdict));
}

static void refuse(const struct news *news, enum tk_cm_verdict verdict)
{
    struct tk_cm_refusal refusal = tk_cm_refusal_make(verdict);
    if (verdict != TK_CM_EARLY && verdict != TK_CM_HEARD &&
        !(tk_verbs.cm->is_on_demand && (verdict == TK_CM_LATE || verdict == TK_CM_DUPLICATE)))
        log_refusal(news, verdict);
    rdma_reject(news->id, &refusal, sizeof(refusal));
    rdma_destroy_id(news->id);
}

/* A connect of a first connection, or a connection request. */
static void first_connect_came(const struct news *news, const struct tk_cm_request *request)
{
    struct tk_cm_end *end = tk_cm_ends_of(request->from) + request->conn;
    enum tk_cm_verdict verdict = TK_CM_FOREIGN;
    if (tk_verbs.cm->is_on_demand && tk_is_verbs_peer(request->from))
        verdict = request->is_conn_request ? tk_cm_conn_request_came(request->from)
                                           : tk_cm_connect_keep(end, news->id, request->epoch);
    if (verdict != TK_CM_WELCOME)
        refuse(news, verdict);
}

static void connect_came(const struct news *news)
{
    struct tk_cm_request request;
    struct tk_cm_end *end = NULL;
    enum tk_cm_verdict verdict = tk_cm_request_read(&request, news->data, news->size, news->rail);
    if (verdict == TK_CM_WELCOME && (request.is_conn_request || tk_cm_is_first(request.epoch))) {
        first_connect_came(news, &request);
        return;
    }
    if (verdict == TK_CM_WELCOME && tk_conns_to(request.from) == tk_verbs.nobody)
        verdict = TK_CM_FOREIGN;
    if (verdict == TK_CM_WELCOME) {
        end = tk_cm_end_of(tk_conns_to(request.from) + request.conn);
        verdict = tk_cm_end_judge(end, request.epoch);
    }
    if (verdict == TK_CM_WELCOME)
        tk_cm_end_accept(end, news->id);
    else
        refuse(news, verdict);
}

/* ---- all others ---- */

/* A peer that computes does not answer, so connects to it are repeated without limit. */
static bool retries(const struct tk_cm_end *end, const struct news *news)
{
    return tk_cm_is_first(end->epoch) && news->type == RDMA_CM_EVENT_UNREACHABLE &&
           end->state == TK_CM_ASKED;
}

static bool is_over(enum rdma_cm_event_type type)
{
    return type == RDMA_CM_EVENT_REJECTED || type == RDMA_CM_EVENT_UNREACHABLE ||
           type == RDMA_CM_EVENT_CONNECT_ERROR || type == RDMA_CM_EVENT_ADDR_ERROR ||
           type == RDMA_CM_EVENT_ROUTE_ERROR || type == RDMA_CM_EVENT_DISCONNECTED ||
           type == RDMA_CM_EVENT_DEVICE_REMOVAL;
}

static enum tk_cm_verdict verdict_of(const struct news *news)
{
    enum tk_cm_verdict verdict = tk_cm_refusal_read(news->data, news->size);
    if (verdict != tk_cm_verdicts)
        tk_verbs.cm->has_heard = true;
    return verdict;
}

static void conn_request_has_news(struct tk_cm_end *end, const struct news *news)
{
    bool is_route = news->type == RDMA_CM_EVENT_ROUTE_RESOLVED;
    if (is_route || news->type == RDMA_CM_EVENT_ADDR_RESOLVED)
        tk_cm_conn_request_resolved(end, is_route);
    else if (is_over(news->type))
        tk_cm_conn_request_answered(end, verdict_of(news));
}

/* Ignores a connection that is up: the data path notices its errors. */
static void end_has_news(struct tk_cm_end *end, const struct news *news)
{
    switch (news->type) {
    case RDMA_CM_EVENT_ADDR_RESOLVED:
    case RDMA_CM_EVENT_ROUTE_RESOLVED:
        tk_cm_end_resolved(end, news->type == RDMA_CM_EVENT_ROUTE_RESOLVED);
        return;
    case RDMA_CM_EVENT_CONNECT_RESPONSE:
        tk_verbs.cm->has_heard = true;
        tk_cm_end_answered(end);
        return;
    case RDMA_CM_EVENT_ESTABLISHED:
        tk_cm_end_up(end);
        return;
    case RDMA_CM_EVENT_REJECTED:
        tk_cm_end_refused(end, verdict_of(news), news->status);
        return;
    case RDMA_CM_EVENT_ADDR_ERROR:
    case RDMA_CM_EVENT_ROUTE_ERROR:
    case RDMA_CM_EVENT_CONNECT_ERROR:
    case RDMA_CM_EVENT_UNREACHABLE:
    case RDMA_CM_EVENT_DISCONNECTED:
    case RDMA_CM_EVENT_DEVICE_REMOVAL:
        if (retries(end, news))
            tk_cm_end_again(end);
        else if (tk_cm_is_under_way(end))
            tk_cm_end_fail(end, rdma_event_str(news->type), news->status);
        return;
    default:
        return;
    }
}

static void id_has_news(struct tk_cm_end *end, const struct news *news)
{
    if (end->conn_request && end->conn_request->id == news->id)
        conn_request_has_news(end, news);
    else if (end->kept != news->id)
        end_has_news(end, news);
    else if (is_over(news->type))
        tk_cm_connect_drop(end);
}

void tk_cm_events_read(void)
{
    struct news news;
    uint32_t rail;
    while (take_news(&news)) {
        if (news.is_connect)
            connect_came(&news);
        else if (news.id->context && !find_listener(news.id, &rail))
            id_has_news(news.id->context, &news);
    }
}

/* ---- time ---- */

static const char *what_is_missing(const struct tk_cm_end *end)
{
    switch (end->state) {
    case TK_CM_AWAITS:
        return "the peer, whose turn it is, has not connected in time";
    case TK_CM_RESOLVES:
        return "no address or route was found in time";
    case TK_CM_ASKED:
        return "the peer has not answered in time";
    case TK_CM_GREETS:
        return "the peer's first message has not come in time";
    case TK_CM_ANSWERED:
        return "the peer has not acknowledged our answer in time";
    default:
        return "the peer was not ready in time";
    }
}

void tk_cm_events_timed(uint64_t now)
{
    struct tk_cm *cm = tk_verbs.cm;
    for (uint32_t i = 0; i < cm->end_count && cm->waiting > 0; i++) {
        struct tk_cm_end *end = &cm->ends[i];
        if (!tk_cm_is_waiting(end))
            continue;
        if (end->deadline && now >= end->deadline)
            tk_cm_end_fail(end, what_is_missing(end), 0);
        else if (end->state == TK_CM_HOLDS && end->again && now >= end->again &&
                 cm->in_flight < flight_max)
            tk_cm_end_begin(end);
    }
}
