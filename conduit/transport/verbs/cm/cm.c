/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Connecting by librdmacm: which rails, their listeners, start-up, and what failover needs to bring
 * a connection back. Owns tk_verbs.cm.
 *
 * There is no thread: events wait in the channel until a rank polls. At start-up all ranks do. A
 * connection that comes back waits for a peer that computes, as its messages would; the kernel's
 * own time-outs are longer than that takes, and another attempt follows.
 *
 * The first message of each connection is an empty one from the rank that connected: on iWARP the
 * other one must not send before it came (RFC 5044 7.1.3), and it proves on any network that the
 * queue pairs have found each other before the client may use them. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/report.h"
#include "bootstrap/bootstrap.h"
#include "settings/settings.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/cm/cm_private.h"
#include "transport/verbs/data/tx.h"

uint64_t tk_cm_look_pause = TK_SECOND / 1000;
static const char published[] = "tk.cm";

/* ---- which rails ---- */

enum tk_status tk_cm_choose(void)
{
    bool is_asked = !strcmp(tk_settings.ibv_connect, "rdmacm");
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++) {
        struct tk_rail *rail = &tk_verbs.rails[i];
        const struct tk_port_address *a = &rail->address;
        rail->is_iwarp = rail->context->device->transport_type == IBV_TRANSPORT_IWARP;
        rail->by_cm = is_asked || rail->is_iwarp;
        tk_verbs.has_iwarp |= rail->is_iwarp;
        if (rail->is_iwarp && !strcmp(tk_settings.ibv_connect, "verbs")) {
            tk_log_error("%s:%u is an iWARP port, which only librdmacm connects: set "
                         "GASNET_IBV_CONNECT to auto or rdmacm instead of verbs",
                         a->device, a->port);
            return TK_FAIL;
        }
    }
    return TK_OK;
}

static bool any_by_cm(void)
{
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++)
        if (tk_verbs.rails[i].by_cm)
            return true;
    return false;
}

/* ---- opening ---- */

/* Followed by the places of the rails. */
struct card {
    uint32_t rails;
    uint8_t secret[tk_cm_secret_size]; /* rank 0's is the job's */
};

static size_t card_size(void)
{
    return sizeof(struct card) + tk_verbs.rail_count * sizeof(struct tk_cm_place);
}

static enum tk_status allocate(void)
{
    struct tk_cm *cm = calloc(1, sizeof(*cm));
    if (cm) {
        cm->end_count = tk_peers.size * tk_verbs.conns_pp;
        cm->listeners = calloc(tk_verbs.rail_count, sizeof(*cm->listeners));
        cm->places = calloc((size_t)tk_peers.size * tk_verbs.rail_count, sizeof(*cm->places));
        cm->ends = calloc(cm->end_count, sizeof(*cm->ends));
    }
    tk_verbs.cm = cm;
    if (cm && cm->listeners && cm->places && cm->ends)
        return TK_OK;
    tk_log_error("out of memory for %u connections by librdmacm",
                 tk_peers.size * tk_verbs.conns_pp);
    return TK_FAIL;
}

static enum tk_status open_channel(void)
{
    tk_verbs.cm->channel = rdma_create_event_channel();
    int fd = tk_verbs.cm->channel ? tk_verbs.cm->channel->fd : -1;
    int flags = fd == -1 ? -1 : fcntl(fd, F_GETFL);
    if (flags != -1 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0)
        return TK_OK;
    tk_log_error("librdmacm can't be used: %s; is the kernel's module rdma_ucm loaded, and may "
                 "this user open /dev/infiniband/rdma_cm?",
                 strerror(errno));
    return TK_FAIL;
}

static enum tk_status cm_publish(void)
{
    struct card *card = calloc(1, card_size());
    enum tk_status status = TK_FAIL;
    if (!card) {
        tk_log_error("out of memory for the addresses of ports (%zu bytes)", card_size());
        return TK_FAIL;
    }
    struct tk_cm_place *places = (struct tk_cm_place *)(card + 1);
    card->rails = tk_verbs.rail_count;
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++)
        places[i] = tk_verbs.cm->listeners[i].place;
    if (getrandom(card->secret, sizeof(card->secret), 0) != (ssize_t)sizeof(card->secret))
        tk_log_error("no random bytes for the job's secret: %s", strerror(errno));
    else
        status = tk_bootstrap_put(published, card, card_size());
    if (tk_peers.me == 0)
        memcpy(tk_verbs.cm->secret, card->secret, sizeof(card->secret));
    free(card);
    return status;
}

enum tk_status tk_cm_open(void)
{
    if (!any_by_cm())
        return TK_OK;
    if (allocate() != TK_OK || open_channel() != TK_OK)
        return TK_FAIL;
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++)
        if (tk_verbs.rails[i].by_cm &&
            tk_cm_listen(&tk_verbs.cm->listeners[i], &tk_verbs.rails[i]) != TK_OK)
            return TK_FAIL;
    return cm_publish();
}

void tk_cm_describe(uint32_t rail, char *text, size_t size)
{
    char where[tk_cm_text_max];
    tk_cm_place_text(&tk_verbs.cm->listeners[rail].place, where, sizeof(where));
    snprintf(text, size, "connected by librdmacm from %s", where);
}

static void close_listeners(void)
{
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++) {
        struct tk_cm_listener *listener = &tk_verbs.cm->listeners[i];
        if (listener->id)
            rdma_destroy_id(listener->id);
        listener->id = NULL;
    }
}

void tk_cm_close(void)
{
    struct tk_cm *cm = tk_verbs.cm;
    if (!cm)
        return;
    for (uint32_t i = 0; cm->ends && i < cm->end_count; i++)
        if (cm->ends[i].id)
            rdma_destroy_id(cm->ends[i].id);
    if (cm->listeners)
        close_listeners();
    if (cm->channel)
        rdma_destroy_event_channel(cm->channel);
    free(cm->listeners);
    free(cm->places);
    free(cm->ends);
    free(cm);
    tk_verbs.cm = NULL;
}

/* ---- start-up ---- */

static enum tk_status learn_of(uint32_t rank)
{
    struct tk_cm *cm = tk_verbs.cm;
    struct card *card;
    size_t size;
    if (tk_bootstrap_get(rank, published, (void **)&card, &size) != TK_OK)
        return TK_FAIL;
    bool is_sound = size == card_size() && card->rails == tk_verbs.rail_count;
    if (is_sound) {
        memcpy(&cm->places[rank * tk_verbs.rail_count], card + 1, size - sizeof(*card));
        if (rank == 0)
            memcpy(cm->secret, card->secret, sizeof(cm->secret));
    } else {
        tk_log_error("rank %u published addresses for librdmacm that make no sense (%zu bytes)",
                     rank, size);
    }
    free(card);
    return is_sound ? TK_OK : TK_FAIL;
}

static bool is_ours(const struct tk_conn *conn)
{
    return conn->qp && !conn->is_for_atomics && tk_rail_of(conn)->by_cm;
}

static enum tk_status cm_learn(void)
{
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        bool is_peer = tk_conns_to(r)->qp != NULL;
        if (r != tk_peers.me && (r == 0 || is_peer) && learn_of(r) != TK_OK)
            return TK_FAIL;
    }
    return TK_OK;
}

/* A rail that librdmacm connects here and not there has no place in the peer's card. */
static enum tk_status check_place(const struct tk_conn *conn)
{
    const struct tk_port_address *a = &tk_rail_of(conn)->address;
    if (tk_verbs.cm->places[conn->peer->rank * tk_verbs.rail_count + conn->rail].port)
        return TK_OK;
    tk_log_error("%s:%u is connected by librdmacm, its counterpart of rank %u (%s) is not: iWARP "
                 "does not reach other networks; choose the ports with GASNET_IBV_PORTS",
                 a->device, a->port, conn->peer->rank, conn->peer->host);
    return TK_FAIL;
}

static enum tk_status open_ends(void)
{
    uint64_t now = tk_now();
    for (uint32_t i = 0; i < tk_verbs.cm->end_count; i++) {
        struct tk_conn *conn = &tk_verbs.conns[i];
        if (!is_ours(conn))
            continue;
        if (check_place(conn) != TK_OK)
            return TK_FAIL;
        struct tk_cm_end *end = tk_cm_end_of(conn);
        tk_cm_end_open(end, 0);
        end->again = now;
        tk_verbs.cm->left++;
    }
    return TK_OK;
}

/* ---- greetings ---- */

/* Completions of them have the connection with this bit. */
enum { greeting_bit = 1 };

enum tk_status tk_cm_expect_greeting(struct tk_conn *conn)
{
    const struct tk_port_address *a = &tk_rail_of(conn)->address;
    struct ibv_recv_wr *bad, wr = {.wr_id = (uintptr_t)conn | greeting_bit};
    if (!tk_rail_of(conn)->by_cm || tk_cm_is_asker(conn))
        return TK_OK;
    int error = ibv_post_recv(conn->qp, &wr, &bad);
    if (error)
        tk_log_error("%s:%u: post_recv for the first message of rank %u failed: %s", a->device,
                     a->port, conn->peer->rank, strerror(error));
    return error ? TK_FAIL : TK_OK;
}

/* False: no room so far. Not logged: it is complete before anything else is posted. */
static bool greet(struct tk_conn *conn)
{
    struct ibv_send_wr wr = {.num_sge = 0};
    struct tk_tx *tx = tk_tx_take(conn, false);
    if (!tx)
        return false;
    tx->nbytes = 0;
    tk_tx_post_logged(tx, &wr, IBV_WR_SEND, 0, false, NULL);
    return true;
}

static uint32_t greet_all(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < tk_verbs.cm->end_count; i++) {
        struct tk_cm_end *end = &tk_verbs.cm->ends[i];
        if (end->state != TK_CM_UP || end->is_greeted || !tk_cm_is_asker(tk_cm_conn_of(end)))
            continue;
        end->is_greeted = greet(tk_cm_conn_of(end));
        count += end->is_greeted;
    }
    return count;
}

static uint32_t take_greetings(struct tk_device *device)
{
    struct ibv_wc wc[tk_poll_batch];
    int n = ibv_poll_cq(device->recv_cq, tk_poll_batch, wc);
    uint32_t count = 0;
    if (n < 0)
        tk_panic("ibv_poll_cq failed with error %d", n);
    for (int i = 0; i < n; i++) {
        struct tk_conn *conn = (struct tk_conn *)(uintptr_t)(wc[i].wr_id & ~(uint64_t)greeting_bit);
        if (!(wc[i].wr_id & greeting_bit))
            tk_panic("a message came before the first one of its connection");
        struct tk_cm_end *end = tk_cm_end_of(conn);
        if (wc[i].status != IBV_WC_SUCCESS) {
            tk_cm_end_fail(end, ibv_wc_status_str(wc[i].status), 0);
            continue;
        }
        tk_cm_end_up(end); /* its event may come later */
        end->is_greeted = true;
        count++;
    }
    return count;
}

static uint32_t exchange_greetings(void)
{
    uint32_t count = greet_all();
    for (struct tk_device *device = &tk_verbs.device; device; device = device->next)
        count += take_greetings(device);
    tk_verbs_transport()->reap();
    return count;
}

static bool is_missing(const struct tk_cm_end *end)
{
    return end->state != TK_CM_CLOSED && !(end->state == TK_CM_UP && end->is_greeted);
}

static void fail_first_missing(void)
{
    for (uint32_t i = 0; i < tk_verbs.cm->end_count; i++) {
        struct tk_cm_end *end = &tk_verbs.cm->ends[i];
        if (!is_missing(end))
            continue;
        end->deadline = 1;
        tk_cm_events_timed(1);
        if (end->state != TK_CM_FAILED)
            tk_cm_end_fail(end, "its first message has not come in time", 0);
        return;
    }
}

static void begin_to_wait(uint64_t now)
{
    tk_verbs.cm->deadline = now + (uint64_t)(tk_settings.ibv_connect_timeout * 1e9);
}

static bool is_over(void)
{
    const struct tk_cm *cm = tk_verbs.cm;
    return cm->failed > 0 || (cm->left == 0 && tk_counter_read(&tk_verbs.tx_out) == 0);
}

/* Time is over when nothing came for as long: many ranks take longer together than a pair does. */
bool tk_cm_connect_step(void)
{
    struct tk_cm *cm = tk_verbs.cm;
    uint32_t in_flight = cm->in_flight;
    uint64_t now = tk_now();
    tk_cm_events_read();
    tk_cm_events_timed(now);
    uint32_t count = exchange_greetings();
    cm->left -= count;
    if (count > 0 || cm->in_flight < in_flight)
        begin_to_wait(now);
    else if (cm->left > 0 && now >= cm->deadline)
        fail_first_missing();
    return !is_over();
}

/* Greetings come through a completion queue, so events alone are not waited for. */
static void await_events(void)
{
    struct pollfd fd = {.fd = tk_verbs.cm->channel->fd, .events = POLLIN};
    poll(&fd, 1, 1);
}

/* After start-up a connect can only be of a connection that comes back. */
enum tk_status tk_cm_connect(void)
{
    struct tk_cm *cm = tk_verbs.cm;
    if (!cm)
        return TK_OK;
    cm->is_starting = true;
    if (cm_learn() != TK_OK || open_ends() != TK_OK)
        return TK_FAIL;
    begin_to_wait(tk_now());
    while (tk_cm_connect_step())
        await_events();
    cm->is_starting = false;
    if (!tk_verbs.failover_enabled)
        close_listeners();
    return cm->failed > 0 ? TK_FAIL : TK_OK;
}

/* ---- connections that come back ---- */

void tk_cm_reset(struct tk_conn *conn, uint32_t epoch)
{
    tk_cm_end_open(tk_cm_end_of(conn), epoch);
}

void tk_cm_go(struct tk_conn *conn)
{
    struct tk_cm_end *end = tk_cm_end_of(conn);
    if (end->deadline)
        return;
    end->deadline = tk_now() + (uint64_t)(tk_settings.ibv_connect_timeout * 1e9);
    if (end->state == TK_CM_HOLDS)
        tk_cm_end_begin(end);
}

void tk_cm_look(void)
{
    struct tk_cm *cm = tk_verbs.cm;
    uint64_t now = tk_now();
    if (!cm || now < cm->next_look)
        return;
    cm->next_look = now + tk_cm_look_pause;
    tk_cm_events_read();
    tk_cm_events_timed(now);
}

bool tk_cm_is_going(const struct tk_conn *conn)
{
    return tk_cm_end_of(conn)->deadline != 0;
}

bool tk_cm_is_up(const struct tk_conn *conn)
{
    return tk_cm_end_of(conn)->state == TK_CM_UP;
}

bool tk_cm_has_failed(const struct tk_conn *conn)
{
    return tk_cm_end_of(conn)->state == TK_CM_FAILED;
}
