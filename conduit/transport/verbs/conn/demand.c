/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See demand.h. Owns a record of each peer that is being connected, from the first use or request
 * until messages may be sent to it; the lock of demands guards the records and the calls of
 * datagram.c and pair.c. It is taken before a connection's lock. A thread that holds it must not
 * poll, because a poll may find a datagram and take the lock, and must not report a failure,
 * because that ends the process.
 *
 * Nothing is queued here: a send returns TK_BUSY, as it does when a queue is full, and is retried
 * between polls. So messages keep the order of their senders, an immediate message does not wait,
 * and a lost datagram only causes a delay. There is no thread: a peer answers when it polls, and we
 * repeat the request until then. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/atomic.h"
#include "base/first_use.h"
#include "base/lock.h"
#include "base/report.h"
#include "base/wait_record.h"
#include "common/clock.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/conn/conns.h"
#include "transport/verbs/conn/datagram.h"
#include "transport/verbs/conn/demand.h"
#include "transport/verbs/conn/demand_private.h"
#include "transport/verbs/conn/handshake.h"
#include "transport/verbs/conn/incarnation.h"
#include "transport/verbs/conn/pair.h"
#include "transport/verbs/conn/qp_evict.h"
#include "transport/verbs/conn/xrc.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/ports.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

/* ---- what librdmacm reports ---- */

static void datagram_came(struct tk_peer *peer, const struct tk_datagram *datagram);

static void cm_came(uint32_t rank, unsigned what, uint32_t epoch)
{
    struct tk_datagram news = {
        .what = (uint8_t)what, .from = rank, .to = tk_peers.me, .epoch = epoch};
    datagram_came(tk_peer(rank), &news);
}

/* A rail that librdmacm connects, and whose best GID was removed; NULL: none. */
static const struct tk_rail *rail_without_address(void)
{
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++) {
        const struct tk_rail *rail = &tk_verbs.rails[i];
        const struct tk_port_address *a = &rail->address;
        if (rail->by_cm && a->is_ethernet && a->gid_count > 0 &&
            tk_gid_row_now(rail->context, a->port, &a->gids[0]) < 0)
            return rail;
    }
    return NULL;
}

static void take_outcome(struct tk_demand_record *record)
{
    bool asks = record->incarnation.state == TK_INCARNATION_ASKING;
    if (!asks && record->incarnation.state != TK_INCARNATION_ANSWERED)
        return;
    tk_cm_pair_greet(record->conns);
    switch (tk_cm_pair_outcome(record->conns)) {
    case TK_CM_CONNECTED:
        cm_came(record->peer->rank, asks ? TK_HANDSHAKE_ACCEPT : TK_HANDSHAKE_CONFIRM,
                record->incarnation.epoch);
        break;
    case TK_CM_BROKEN:
        if (!tk_conns.demand->lost_since && rail_without_address())
            tk_conns.demand->lost_since = tk_now();
        tk_demand_record_broke(record);
        break;
    case TK_CM_REFUSED:
        tk_conns.demand->has_failed = true;
        break;
    default:
        break;
    }
}

/* All peers are connected: ends the listening, so that polls cost no more than in other jobs. */
static void end_listening(void)
{
    tk_cm_serve_no_more();
    __atomic_store_n(&tk_conns.demand->is_listening, false, __ATOMIC_RELAXED);
    tk_demand_pending_add(-1);
}

static void look_at_cm(void)
{
    struct tk_cm_came came;
    uint32_t next = 0;
    tk_cm_look();
    while (!tk_conns.demand->has_failed && tk_cm_came(&next, &came))
        cm_came(came.rank, TK_HANDSHAKE_REQUEST, came.epoch);
    for (struct tk_demand_record *record = tk_conns.demand->records, *after; record;
         record = after) {
        after = record->next;
        if (!tk_conns.demand->has_failed)
            take_outcome(record);
    }
    if (!tk_conns.demand->any_came)
        tk_conns.demand->any_came = tk_cm_has_heard();
    if (tk_conns.demand->is_listening && !tk_conns.demand->records &&
        tk_conns.demand->opened == tk_verbs.peers) /* at that number none is closed again */
        end_listening();
}

/* ---- connections in progress ---- */

static void log_hopeless(const struct tk_peer *peer, double limit)
{
    char path[tk_path_text_size];
    if (tk_demand_is_by_cm())
        tk_log_error("no rank answered a connect of librdmacm in %.0f s, in which rank %u (%s, pid "
                     "%d) was to be connected: the network loses them (rping tries it), or that "
                     "rank does not poll (GASNET_CONNECT_TIMEOUT=0 waits)",
                     limit, peer->rank, peer->host, peer->pid);
    else
        tk_log_error("no datagram came from any rank in %.0f s, in which rank %u (%s, pid %d) was "
                     "asked to connect from %s: the network loses them (GASNET_CONNECT_STATIC=1%s "
                     "goes without), or that rank does not poll (GASNET_CONNECT_TIMEOUT=0 waits)",
                     limit, peer->rank, peer->host, peer->pid, tk_path_to_text(peer->rank, path),
                     tk_settings.use_xrc > 0 ? " with GASNET_USE_XRC=0" : "");
}

/* A peer that computes does not answer; that must not end the job. But if no datagram ever came
 * from any rank, the network loses them. */
static bool is_hopeless(const struct tk_demand_record *record, uint64_t now)
{
    double limit = tk_settings.connect_timeout;
    if (tk_conns.demand->any_came || limit <= 0 ||
        record->incarnation.state != TK_INCARNATION_ASKING ||
        (double)(now - record->since) < limit * 1e9)
        return false;
    log_hopeless(record->peer, limit);
    return true;
}

/* The datagram counts as lost, and is repeated, while our address is removed. */
static bool is_cut_off(const struct tk_datagram *datagram)
{
    bool connects = datagram->what == TK_HANDSHAKE_REQUEST || datagram->what == TK_HANDSHAKE_ACCEPT;
    return connects && !tk_datagram_may_connect(datagram->from);
}

static bool cm_address_is_lost(uint64_t now, double limit)
{
    struct tk_demand *demand = tk_conns.demand;
    const struct tk_rail *rail;
    char gid[tk_gid_text_size];
    if (!demand->lost_since || (double)(now - demand->lost_since) < limit * 1e9)
        return false;
    demand->lost_since = 0;
    if (!demand->records || !(rail = rail_without_address()))
        return false;
    const struct tk_peer *peer = demand->records->peer;
    tk_gid_text(&rail->address.gids[0], gid);
    tk_log_error("rank %u (%s, pid %d) can't be connected by librdmacm: for %g s "
                 "(GASNET_IBV_CONNECT_TIMEOUT) %s:%u has not had its GID %s: give its interface "
                 "the address again",
                 peer->rank, peer->host, peer->pid, limit, rail->address.device, rail->address.port,
                 gid);
    return true;
}

TK_FIRST_USE static void give_up_address(uint64_t now)
{
    double limit = tk_settings.ibv_connect_timeout;
    if (!tk_conns.demand->has_failed)
        tk_conns.demand->has_failed = tk_demand_is_by_cm()
                                          ? cm_address_is_lost(now, limit)
                                          : tk_datagram_address_is_lost(now, limit);
}

/* After a failure takes no step: the process ends, and the record that failed may have no queue
 * pairs to send a request for. */
TK_FIRST_USE static void step_all(void)
{
    uint64_t now = tk_now();
    int freed = 0;
    if (tk_demand_is_by_cm() && !tk_conns.demand->has_failed)
        look_at_cm();
    for (struct tk_demand_record *record = tk_conns.demand->records, *next;
         record && !tk_conns.demand->has_failed; record = next) {
        next = record->next;
        if (is_hopeless(record, now))
            tk_conns.demand->has_failed = true;
        else
            freed += tk_demand_record_step(record, now);
    }
    while (freed < 0 && tk_demand_part_one())
        freed++;
    give_up_address(now);
    tk_demand_refill(now);
}

/* After a failure ends the process, or continues its exit; the lock must not be held then. */
static void demand_unlock(void)
{
    bool has_failed = tk_conns.demand->has_failed;
    tk_unlock(&tk_conns.demand->lock);
    void (*lost_peer)(uint32_t) = __atomic_load_n(&tk_lost_peer, __ATOMIC_ACQUIRE);
    if (has_failed && lost_peer)
        lost_peer(tk_no_peer);
}

/* If another connection is being made, the code is in the cache already. */
static inline void fetch_code(void)
{
    if (!tk_conns.demand->records)
        tk_first_use_prefetch();
}

/* ---- what others want ---- */

static void not_allowed(const struct tk_peer *peer)
{
    if (!tk_conns.demand->has_failed)
        tk_log_error("rank %u (%s) is not connected: it is not in the connect file, and "
                     "GASNET_CONNECT_DYNAMIC=0 allows no other connections",
                     peer->rank, peer->host);
    tk_conns.demand->has_failed = true;
}

/* A peer that was connected before may be connected again. */
static bool may_ask(const struct tk_peer *peer)
{
    return tk_settings.connect_dynamic || tk_conns.demand->is_starting ||
           tk_conns_to(peer->rank) != tk_verbs.nobody;
}

TK_FIRST_USE static void ask(struct tk_peer *peer, bool is_reply)
{
    struct tk_demand_record *record = tk_demand_record_of(peer);
    if (tk_conns.demand->has_failed)
        return;
    if (!record && !may_ask(peer)) {
        not_allowed(peer);
        return;
    }
    if (!record) {
        fetch_code();
        record = tk_demand_record_make(peer);
        tk_conns.demand->wanted++;
    }
    record->is_wanted = true;
    if (is_reply && !tk_cm_greets()) /* with greetings the first message proves it */
        tk_demand_record_advance(record, TK_INCARNATION_PROVED);
    else if (record->incarnation.state == TK_INCARNATION_PARTING)
        tk_demand_record_advance(record, TK_INCARNATION_USED);
    else if (record->incarnation.state == TK_INCARNATION_IDLE)
        tk_demand_record_begin(record, tk_now());
}

TK_FIRST_USE void tk_demand_use(struct tk_peer *peer, bool is_reply)
{
    tk_lock(&tk_conns.demand->lock);
    if (!tk_demand_is_up(peer))
        ask(peer, is_reply);
    if (!tk_demand_is_up(peer))
        step_all();
    demand_unlock();
}

void tk_demand_want(struct tk_peer *peer)
{
    if (tk_conns.demand && !tk_demand_is_up(peer))
        tk_demand_use(peer, false);
}

/* Is nothing in flight, and no look at librdmacm due? */
static bool is_quiet(void)
{
    return __atomic_load_n(&tk_conns.demand->is_listening, __ATOMIC_RELAXED) &&
           tk_demand_pending() == 1 && tk_cm_is_quiet(tk_now());
}

void tk_demand_step(void)
{
    if (!tk_conns.demand || is_quiet() || !tk_trylock(&tk_conns.demand->lock))
        return;
    step_all();
    demand_unlock();
}

int tk_demand_pending(void)
{
    return tk_conns.demand ? tk_counter_read(&tk_conns.demand->pending) : 0;
}

/* ---- what comes ---- */

/* Keeps the request for a moment: it is answered when another connection is closed. */
static void request_waits(struct tk_demand_record *record, const struct tk_datagram *datagram)
{
    record->came = tk_now();
    record->request = *datagram;
    step_all();
}

TK_FIRST_USE static void datagram_came(struct tk_peer *peer, const struct tk_datagram *datagram)
{
    struct tk_demand_record *record = tk_demand_record_of(peer);
    if (!record)
        record = tk_demand_record_make(peer);
    if (datagram->what == TK_HANDSHAKE_REQUEST &&
        record->incarnation.state == TK_INCARNATION_IDLE && !tk_evict_has_space() &&
        (int32_t)(datagram->epoch - record->incarnation.epoch) >= 0)
        request_waits(record, datagram);
    else
        tk_demand_record_came(record, datagram);
}

TK_FIRST_USE void tk_demand_came(struct tk_buffer *buffer, uint32_t size)
{
    struct tk_datagram datagram;
    if (!tk_datagram_take(buffer, size, &datagram) || !tk_conns.demand)
        return;
    tk_lock(&tk_conns.demand->lock);
    fetch_code();
    tk_conns.demand->any_came = true;
    if (is_cut_off(&datagram))
        give_up_address(tk_now());
    else if (!tk_conns.demand->has_failed) /* otherwise the process ends */
        datagram_came(tk_peer(datagram.from), &datagram);
    demand_unlock();
}

/* ---- start and end ---- */

enum tk_status tk_demand_open(void)
{
    tk_conns.demand = calloc(1, sizeof(*tk_conns.demand));
    if (!tk_conns.demand) {
        tk_log_error("out of memory for connections on demand");
        return TK_FAIL;
    }
    tk_lock_init(&tk_conns.demand->lock);
    tk_first_use_load();
    if (!tk_demand_is_by_cm())
        return tk_evict_open((uint32_t)tk_settings.connect_max / tk_verbs.conns_pp);
    tk_conns.demand->is_listening = true;
    tk_demand_pending_add(1); /* no completion announces connects */
    return tk_evict_open(0);
}

void tk_demand_close(void)
{
    struct tk_demand *demand = tk_conns.demand;
    while (demand && demand->records) {
        struct tk_demand_record *record = demand->records;
        if (record->conns && tk_conns_to(record->peer->rank) != record->conns)
            tk_pair_drop(record->conns);
        tk_demand_record_drop(record);
    }
    tk_evict_close();
    if (tk_conns.ahead)
        tk_pair_drop(tk_conns.ahead);
    tk_conns.ahead = NULL;
    free(demand);
    tk_conns.demand = NULL;
}

enum tk_status tk_demand_connect_ranks(const uint32_t *ranks, uint32_t count)
{
    if (!tk_conns.demand)
        return TK_OK;
    tk_conns.demand->is_starting = true;
    for (uint32_t i = 0; i < count; i++)
        if (ranks[i] < tk_peers.size && tk_is_verbs_peer(ranks[i]))
            tk_demand_want(tk_peer(ranks[i]));
    tk_conns.demand->is_starting = false;
    return tk_conns.demand->has_failed ? TK_FAIL : TK_OK;
}

bool tk_demand_is_connected(uint32_t rank)
{
    if (!tk_is_verbs_peer(rank) || !tk_conns.demand)
        return tk_is_verbs_peer(rank);
    bool was_up = tk_evict_is_bounded() && tk_conns_to(rank) != tk_verbs.nobody;
    return tk_demand_is_up(tk_peer(rank)) || was_up;
}

static void tell_stall(const struct tk_demand_record *record, double seconds)
{
    const struct tk_peer *peer = record->peer;
    if (tk_evict_is_bounded() && (record->incarnation.state == TK_INCARNATION_IDLE ||
                                  record->incarnation.state == TK_INCARNATION_CLOSING))
        tk_log_warn("waiting %.0f s to be connected to rank %u (%s, pid %d): all connections that "
                    "GASNET_CONNECT_MAX=%u allows here or there are in use, or their peers have "
                    "not polled (GASNET_AM_STALL_SECONDS=0 silences this)",
                    seconds, peer->rank, peer->host, peer->pid, (unsigned)tk_settings.connect_max);
    else
        tk_log_warn("waiting %.0f s to be connected to rank %u (%s, pid %d): it has not polled, or "
                    "%s do not reach it (GASNET_AM_STALL_SECONDS=0 silences this)",
                    seconds, peer->rank, peer->host, peer->pid,
                    tk_demand_is_by_cm() ? "connects of librdmacm" : "datagrams");
}

void tk_demand_report_stall(uint64_t now, uint64_t limit)
{
    if (!tk_conns.demand || !limit || !tk_trylock(&tk_conns.demand->lock))
        return;
    for (struct tk_demand_record *record = tk_conns.demand->records; record;
         record = record->next) {
        uint64_t from = record->reported ? record->reported : record->since;
        bool is_opening = record->incarnation.state == TK_INCARNATION_ASKING ||
                          record->incarnation.state == TK_INCARNATION_ANSWERED;
        if (now - from <= limit || (!is_opening && !record->is_wanted))
            continue;
        record->reported = now;
        tell_stall(record, (double)(now - record->since) / 1e9);
    }
    tk_unlock(&tk_conns.demand->lock);
}

void tk_demand_describe_waits(struct tk_wait_rows *rows)
{
    if (!tk_conns.demand || !tk_trylock(&tk_conns.demand->lock))
        return;
    for (struct tk_demand_record *record = tk_conns.demand->records; record; record = record->next)
        if (record->is_wanted && !tk_demand_is_up(record->peer))
            tk_wait_row_add(rows, TK_REASON_CONNECTING, record->peer->rank, 0, 0);
    tk_unlock(&tk_conns.demand->lock);
}

void tk_demand_report_end(void)
{
    const struct tk_demand *demand = tk_conns.demand;
    char closed[48] = "";
    if (!demand || tk_settings.ibv_ports_verbose < 2)
        return;
    if (tk_evict_is_bounded())
        snprintf(closed, sizeof(closed), "; %u closed for others", demand->closed);
    tk_log_info("connections on demand: %u of %u peers, %u of them asked for by this rank; %u %s, "
                "%u of them again; %u made ahead; %u waits for receive buffers%s",
                tk_evict_count(), tk_verbs.peers, demand->wanted, demand->sent,
                tk_demand_is_by_cm() ? "connects" : "datagrams", demand->again, demand->ahead,
                demand->waited, closed);
    if (tk_xrc_in_use())
        tk_log_info("extended reliable connections: %u send queue pairs, %u targets made, %u "
                    "opened",
                    tk_conns.xrc->sending, tk_conns.xrc->made, tk_conns.xrc->opened);
}
