/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Start-up with librdmacm: all ends are connected and greeted before the client may use them. The
 * first message of each connection is one byte from the rank that connected: on iWARP the other
 * rank must not send before it (RFC 5044 7.1.3), and on any network it proves that the queue pairs
 * are connected with each other. Single-threaded, no lock; owns nothing. */
#include "config.h"

#include <poll.h>
#include <string.h>

#include "base/report.h"
#include "common/clock.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/cm/cm_private.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/lane.h"
#include "transport/verbs/data/lane_type.h"
#include "transport/verbs/data/poll.h"
#include "transport/verbs/data/srq.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

/* Marks a greeting in a completion's wr_id; the rest is the connection. */
enum { greeting_bit = 1 };

/* The siw driver rejects an empty scatter/gather list, so a greeting has one byte, in a bounce
 * buffer: none is in use so early, and all devices have registered them. */
static struct ibv_sge greeting_byte(const struct tk_conn *conn)
{
    const struct tk_slab *slab = tk_verbs.slabs;
    return (struct ibv_sge){.addr = (uintptr_t)slab->area.base,
                            .length = 1,
                            .lkey = slab->registration->local[conn->rail]};
}

enum tk_status tk_cm_expect_greeting(struct tk_conn *conn)
{
    const struct tk_port_address *a = &tk_rail_of(conn)->address;
    struct ibv_sge sge = greeting_byte(conn);
    struct ibv_recv_wr *bad,
        wr = {.wr_id = (uintptr_t)conn | greeting_bit, .sg_list = &sge, .num_sge = 1};
    /* A shared queue has buffers for the greeting: no other message comes before it. */
    if (!tk_rail_of(conn)->by_cm || tk_cm_is_asker(conn) || conn->loan)
        return TK_OK;
    int error = ibv_post_recv(conn->qp, &wr, &bad);
    if (error)
        tk_log_error("%s:%u: post_recv for the first message of rank %u failed: %s", a->device,
                     a->port, conn->peer->rank, strerror(error));
    return error ? TK_FAIL : TK_OK;
}

/* False: no space yet. A greeting needs no tx log: it completes before anything else is posted. */
static bool greet(struct tk_conn *conn)
{
    struct ibv_sge sge = greeting_byte(conn);
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1};
    struct tk_tx *tx = tk_tx_take(conn, false);
    if (!tx)
        return false;
    tx->nbytes = sge.length;
    tk_tx_post_more(tx, &wr, IBV_WR_SEND, 0, false, NULL);
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

static struct tk_conn *greeted(struct tk_device *device, const struct ibv_wc *wc)
{
    if (wc->wr_id & greeting_bit)
        return (struct tk_conn *)(uintptr_t)(wc->wr_id & ~(uint64_t)greeting_bit);
    if (!device->srq)
        tk_panic("a message came before the first one of its connection");
    tk_srq_give(device->srq, (struct tk_buffer *)(uintptr_t)wc->wr_id);
    return tk_srq_conn(device->srq, wc->qp_num);
}

static uint32_t take_greetings(struct tk_device *device)
{
    struct ibv_wc wc[tk_poll_batch];
    int n = ibv_poll_cq(device->recv_cq, tk_poll_batch, wc);
    uint32_t count = 0;
    if (n < 0)
        tk_panic("ibv_poll_cq failed with error %d", n);
    for (int i = 0; i < n; i++) {
        struct tk_conn *conn = greeted(device, &wc[i]);
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
    tk_devices_reap();
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
    return cm->failed > 0 || (cm->left == 0 && tk_lanes_are_idle());
}

/* The time limit starts again with each event: many ranks together take longer than one pair. */
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

/* Waits at most 1 ms: greetings come through a completion queue, and events alone would miss
 * them. */
static void await_events(void)
{
    struct pollfd fd = {.fd = tk_verbs.cm->channel->fd, .events = POLLIN};
    poll(&fd, 1, 1);
}

/* Closes the listeners without failover: after start-up only connections that come back connect. */
enum tk_status tk_cm_connect(void)
{
    struct tk_cm *cm = tk_verbs.cm;
    if (!cm)
        return TK_OK;
    cm->is_starting = true;
    if (tk_cm_open_ends() != TK_OK)
        return TK_FAIL;
    begin_to_wait(tk_now());
    while (tk_cm_connect_step())
        await_events();
    cm->is_starting = false;
    if (!tk_verbs.failover_enabled)
        tk_cm_close_listeners();
    return cm->failed > 0 ? TK_FAIL : TK_OK;
}
