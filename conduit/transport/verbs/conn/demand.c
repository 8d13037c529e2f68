/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See demand.h. Owns a record of each peer that is being connected, from the first wish or request
 * until it may be sent to; the lock of demands guards them and the calls of datagram.c and pair.c.
 * It is taken before a connection's lock. Who holds it polls nothing, because what a poll finds may
 * be a datagram, and reports failures only afterwards, because that ends the process.
 *
 * Nothing is queued here: a sender is told that there is no room, as it is of a full queue, and
 * tries again between polls; so messages keep the order of their senders, an immediate one does not
 * wait, and a datagram that is lost delays but does not fail. There is no thread: a peer answers
 * when it polls, and is asked for as long as that takes. */
#include "config.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/report.h"
#include "settings/settings.h"
#include "transport/verbs/conn/datagram.h"
#include "transport/verbs/conn/demand.h"
#include "transport/verbs/conn/handshake.h"

struct record {
    struct record *next;
    struct tk_peer *peer;
    struct tk_conn *conns; /* NULL: there are none so far */
    uint64_t since, reported;
    uint64_t due;      /* when to repeat what was sent */
    uint64_t interval; /* until it is repeated once more */
    enum tk_handshake_state state;
    bool has_waited; /* for receive buffers of a shared queue */
};

struct tk_demand {
    tk_lock_t lock;
    struct record *records;
    const struct tk_transport *connected, *unconnected;
    tk_counter_t pending;
    uint32_t up, wanted;  /* peers: connected; by our wish */
    uint32_t sent, again; /* datagrams; those that were sent before */
    uint32_t waited;      /* connections: for receive buffers of a shared queue */
    bool has_failed;      /* the cause was logged */
    bool is_starting;     /* ranks that were listed are connected whatever the settings say */
};

/* ---- records ---- */

static const struct tk_transport *table_of(const struct tk_peer *peer)
{
    return __atomic_load_n(&peer->transport, __ATOMIC_ACQUIRE);
}

static bool is_up(const struct tk_peer *peer)
{
    return table_of(peer) != tk_verbs.demand->unconnected;
}

static struct record *record_of(const struct tk_peer *peer)
{
    struct record *record = tk_verbs.demand->records;
    while (record && record->peer != peer)
        record = record->next;
    return record;
}

static struct record *record_make(struct tk_peer *peer)
{
    struct tk_demand *demand = tk_verbs.demand;
    struct record *record = calloc(1, sizeof(*record));
    if (!record)
        tk_panic("out of memory for a connection (%zu bytes)", sizeof(*record));
    record->peer = peer;
    record->since = tk_now();
    record->next = demand->records;
    demand->records = record;
    tk_counter_add(&demand->pending, 1);
    tk_counter_add(&tk_verbs.pending_work, 1);
    return record;
}

static void record_drop(struct record *record)
{
    struct record **at = &tk_verbs.demand->records;
    while (*at != record)
        at = &(*at)->next;
    *at = record->next;
    free(record);
    tk_counter_add(&tk_verbs.demand->pending, -1);
    tk_counter_add(&tk_verbs.pending_work, -1);
}

/* ---- steps ---- */

static enum tk_status make_pair(struct record *record)
{
    struct tk_conn *conns;
    enum tk_status status = tk_pair_open(record->peer->rank, &conns);
    if (status != TK_OK)
        return status;
    tk_pair_hold(conns);
    if (tk_pair_fill(conns) != TK_OK) {
        tk_pair_drop(conns);
        return TK_FAIL;
    }
    record->conns = conns;
    return TK_OK;
}

/* Published first: a message may come as soon as it can, and its handler looks for them. */
static enum tk_status connect_pair(struct record *record, const struct tk_datagram *datagram)
{
    tk_pair_publish(record->peer->rank, record->conns);
    return tk_pair_connect(record->conns, datagram->qps, (int)datagram->credits);
}

/* Lost or not sent at all is the same, but for the time until it is repeated. */
static void record_send(struct record *record, enum tk_handshake_message what)
{
    uint64_t longest = (uint64_t)tk_settings.connect_retrans_max * 1000;
    uint64_t now = tk_now();
    if (!tk_datagram_send(record->peer->rank, what, 0, record->conns)) {
        record->due = now;
        return;
    }
    tk_verbs.demand->sent++;
    tk_verbs.demand->again += record->interval != 0;
    if (!record->interval)
        record->interval = (uint64_t)tk_settings.connect_retrans_min * 1000;
    record->due = now + record->interval;
    record->interval = tk_min(2 * record->interval, longest);
}

static void record_live(struct record *record)
{
    tk_verbs.demand->up++;
    tk_pair_release(record->conns);
    __atomic_store_n(&record->peer->transport, tk_verbs.demand->connected, __ATOMIC_RELEASE);
    record_drop(record);
}

/* TK_BUSY: no receive buffers can be reserved now, and nothing was done. */
static enum tk_status advance(struct record *record, enum tk_handshake_event event,
                              const struct tk_datagram *datagram)
{
    struct tk_handshake_step step =
        tk_handshake_next(record->state, event, tk_peers.me < record->peer->rank);
    enum tk_status status = step.opens ? make_pair(record) : TK_OK;
    tk_verbs.demand->waited += status == TK_BUSY && !record->has_waited;
    record->has_waited |= status == TK_BUSY;
    if (status == TK_OK && step.connects)
        status = connect_pair(record, datagram);
    tk_verbs.demand->has_failed |= status == TK_FAIL;
    if (status != TK_OK)
        return status;
    if (step.next != record->state)
        record->interval = 0;
    record->state = step.next;
    if (step.sends != TK_HANDSHAKE_SILENCE)
        record_send(record, step.sends);
    if (step.next == TK_HANDSHAKE_UP)
        record_live(record);
    return TK_OK;
}

static void step_all(void)
{
    uint64_t now = tk_now();
    for (struct record *record = tk_verbs.demand->records, *next; record; record = next) {
        next = record->next;
        if (record->state == TK_HANDSHAKE_IDLE) /* there were no receive buffers for it */
            advance(record, TK_HANDSHAKE_WANTED, NULL);
        else if (now >= record->due)
            advance(record, TK_HANDSHAKE_TIMED, NULL);
    }
}

/* Ends the process, or goes on leaving: not with the lock. */
static void demand_unlock(void)
{
    bool has_failed = tk_verbs.demand->has_failed;
    tk_unlock(&tk_verbs.demand->lock);
    void (*lost_peer)(uint32_t) = __atomic_load_n(&tk_lost_peer, __ATOMIC_ACQUIRE);
    if (has_failed && lost_peer)
        lost_peer(tk_no_peer);
}

/* ---- what others want ---- */

static void not_allowed(const struct tk_peer *peer)
{
    if (!tk_verbs.demand->has_failed)
        tk_log_error("rank %u (%s) is not connected: it is not in the connect file, and "
                     "GASNET_CONNECT_DYNAMIC=0 allows no other connections",
                     peer->rank, peer->host);
    tk_verbs.demand->has_failed = true;
}

static bool may_ask(void)
{
    return tk_settings.connect_dynamic || tk_verbs.demand->is_starting;
}

static void ask(struct tk_peer *peer, enum tk_handshake_event event)
{
    struct record *record = record_of(peer);
    if (tk_verbs.demand->has_failed)
        return;
    if (!record && !may_ask()) {
        not_allowed(peer);
        return;
    }
    if (!record) {
        record = record_make(peer);
        tk_verbs.demand->wanted++;
    }
    if (record->state == TK_HANDSHAKE_IDLE || event == TK_HANDSHAKE_PROVED)
        advance(record, event, NULL);
}

/* A reply proves that a message came over the connection. */
static void demand_want(struct tk_peer *peer, bool is_reply)
{
    tk_lock(&tk_verbs.demand->lock);
    if (!is_up(peer))
        ask(peer, is_reply ? TK_HANDSHAKE_PROVED : TK_HANDSHAKE_WANTED);
    step_all();
    demand_unlock();
}

void tk_demand_want(struct tk_peer *peer)
{
    if (tk_verbs.demand && !is_up(peer))
        demand_want(peer, false);
}

void tk_demand_step(void)
{
    if (!tk_verbs.demand || !tk_trylock(&tk_verbs.demand->lock))
        return;
    step_all();
    demand_unlock();
}

int tk_demand_pending(void)
{
    return tk_verbs.demand ? tk_counter_read(&tk_verbs.demand->pending) : 0;
}

/* ---- what comes ---- */

/* The other end may wait for a CONFIRM that was lost. */
static void came_to_connected(const struct tk_peer *peer, enum tk_handshake_event event)
{
    struct tk_handshake_step step =
        tk_handshake_next(TK_HANDSHAKE_UP, event, tk_peers.me < peer->rank);
    if (step.sends != TK_HANDSHAKE_SILENCE)
        tk_datagram_send(peer->rank, step.sends, 0, tk_conns_to(peer->rank));
}

static void came_to_unconnected(struct tk_peer *peer, const struct tk_datagram *datagram)
{
    struct record *record = record_of(peer);
    bool is_new = !record;
    if (is_new && datagram->what != TK_HANDSHAKE_REQUEST)
        return; /* of a connection that is over, or none of ours */
    if (is_new)
        record = record_make(peer);
    enum tk_status status =
        advance(record, tk_handshake_came((enum tk_handshake_message)datagram->what), datagram);
    if (is_new && status == TK_BUSY)
        record_drop(record); /* it asks again */
}

void tk_demand_came(struct tk_buffer *buffer, uint32_t size)
{
    struct tk_datagram datagram;
    if (!tk_datagram_take(buffer, size, &datagram) || !tk_verbs.demand)
        return;
    struct tk_peer *peer = tk_peer(datagram.from);
    tk_lock(&tk_verbs.demand->lock);
    if (tk_verbs.demand->has_failed)
        ; /* the process ends */
    else if (is_up(peer))
        came_to_connected(peer, tk_handshake_came((enum tk_handshake_message)datagram.what));
    else
        came_to_unconnected(peer, &datagram);
    demand_unlock();
}

/* ---- the table of peers that are not connected ---- */

/* The table to go on with; NULL: not now. */
static const struct tk_transport *table_for(struct tk_peer *peer, bool is_reply)
{
    demand_want(peer, is_reply);
    return is_up(peer) ? tk_verbs.demand->connected : NULL;
}

static bool is_answer(unsigned kind)
{
    return kind == TK_REPLY || kind == TK_ACK;
}

static enum tk_status demand_send(struct tk_peer *peer, struct tk_outgoing *message)
{
    const struct tk_transport *table = table_for(peer, is_answer(message->head->kind));
    return table ? table->send(peer, message) : TK_BUSY;
}

static enum tk_status demand_send_short(struct tk_peer *peer, struct tk_message_head head,
                                        const int32_t *args, tk_short_busy *busy)
{
    const struct tk_transport *table = table_for(peer, is_answer(head.kind));
    if (table)
        return table->send_short(peer, head, args, busy);
    return busy ? busy(peer, head, args) : TK_BUSY;
}

static enum tk_status demand_send_small(struct tk_peer *peer, unsigned tag, uint64_t args,
                                        tk_small_busy *busy)
{
    const struct tk_transport *table = table_for(peer, is_answer(tk_tag_head(tag).kind));
    if (table)
        return table->send_small(peer, tag, args, busy);
    return busy ? busy(peer, tag, args) : TK_BUSY;
}

static enum tk_status demand_reserve(struct tk_am_reservation *reservation, bool place, bool buffer)
{
    const struct tk_transport *table = table_for(reservation->peer, is_answer(reservation->kind));
    return table ? table->reserve(reservation, place, buffer) : TK_BUSY;
}

static enum tk_status demand_send_reserved(struct tk_am_reservation *reservation,
                                           struct tk_outgoing *message)
{
    const struct tk_transport *table = table_for(reservation->peer, is_answer(reservation->kind));
    return table ? table->send_reserved(reservation, message) : TK_BUSY;
}

/* What is reserved was reserved of a connection. */
static void demand_release(struct tk_am_reservation *reservation, bool keep_credit)
{
    tk_verbs.demand->connected->release(reservation, keep_credit);
}

/* Not at once: the caller goes on with rma(). */
static bool demand_put(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                       size_t nbytes)
{
    (void)op, (void)remote, (void)local, (void)nbytes;
    demand_want(peer, false);
    return false;
}

static bool demand_get(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local,
                       size_t nbytes)
{
    (void)op, (void)remote, (void)local, (void)nbytes;
    demand_want(peer, false);
    return false;
}

static enum tk_status demand_rma(struct tk_peer *peer, const struct tk_rma *rma,
                                 struct tk_rma_state *state)
{
    const struct tk_transport *table = table_for(peer, false);
    return table ? table->rma(peer, rma, state) : TK_BUSY;
}

static enum tk_status demand_gather(struct tk_peer *peer, const struct tk_gather *gather)
{
    const struct tk_transport *table = table_for(peer, false);
    return table ? table->gather(peer, gather) : TK_BUSY;
}

static void demand_replies(struct tk_peer *peer)
{
    demand_want(peer, true);
}

/* ---- start and end ---- */

static void set_tables(const struct tk_transport *connected, const struct tk_transport *unconnected)
{
    tk_verbs.demand->connected = connected;
    tk_verbs.demand->unconnected = unconnected;
}

void tk_demand_use_tables(const struct tk_transport *connected,
                          const struct tk_transport *unconnected)
{
    for (uint32_t r = 0; tk_verbs.demand && r < tk_peers.size; r++) {
        struct tk_peer *peer = tk_peer(r);
        if (tk_is_verbs_peer(r))
            peer->transport = is_up(peer) ? connected : unconnected;
    }
    if (tk_verbs.demand)
        set_tables(connected, unconnected);
}

struct tk_transport tk_transport_unconnected;

static void make_table(struct tk_transport *table, const struct tk_transport *connected)
{
    *table = *connected;
    table->send = demand_send;
    table->send_short = demand_send_short;
    table->send_small = demand_send_small;
    table->reserve = demand_reserve;
    table->send_reserved = demand_send_reserved;
    table->release = demand_release;
    table->put = demand_put;
    table->get = demand_get;
    table->rma = demand_rma;
    table->gather = demand_gather;
    table->replies = demand_replies;
}

enum tk_status tk_demand_open(const struct tk_transport *connected)
{
    tk_verbs.demand = calloc(1, sizeof(*tk_verbs.demand));
    if (!tk_verbs.demand) {
        tk_log_error("out of memory for connections on demand");
        return TK_FAIL;
    }
    tk_lock_init(&tk_verbs.demand->lock);
    make_table(&tk_transport_unconnected, connected);
    set_tables(connected, &tk_transport_unconnected);
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        if (!tk_is_verbs_peer(r))
            continue;
        tk_peer(r)->connection = tk_verbs.nobody + tk_primary_number(r);
        tk_peer(r)->transport = tk_verbs.demand->unconnected;
    }
    return TK_OK;
}

void tk_demand_close(void)
{
    struct tk_demand *demand = tk_verbs.demand;
    while (demand && demand->records) {
        struct record *record = demand->records;
        if (record->conns && tk_conns_to(record->peer->rank) != record->conns)
            tk_pair_drop(record->conns);
        record_drop(record);
    }
    free(demand);
    tk_verbs.demand = NULL;
}

enum tk_status tk_demand_connect_ranks(const uint32_t *ranks, uint32_t count)
{
    if (!tk_verbs.demand)
        return TK_OK;
    tk_verbs.demand->is_starting = true;
    for (uint32_t i = 0; i < count; i++)
        if (ranks[i] < tk_peers.size && tk_is_verbs_peer(ranks[i]))
            tk_demand_want(tk_peer(ranks[i]));
    tk_verbs.demand->is_starting = false;
    return tk_verbs.demand->has_failed ? TK_FAIL : TK_OK;
}

bool tk_demand_is_connected(uint32_t rank)
{
    return tk_is_verbs_peer(rank) && (!tk_verbs.demand || is_up(tk_peer(rank)));
}

void tk_demand_report_stall(uint64_t now, uint64_t limit)
{
    if (!tk_verbs.demand || !limit || !tk_trylock(&tk_verbs.demand->lock))
        return;
    for (struct record *record = tk_verbs.demand->records; record; record = record->next) {
        uint64_t from = record->reported ? record->reported : record->since;
        if (now - from <= limit)
            continue;
        record->reported = now;
        tk_log_warn("waiting %.0f s to be connected to rank %u (%s, pid %d): it has not polled, or "
                    "datagrams do not reach it (GASNET_AM_STALL_SECONDS=0 silences this)",
                    (double)(now - record->since) / 1e9, record->peer->rank, record->peer->host,
                    record->peer->pid);
    }
    tk_unlock(&tk_verbs.demand->lock);
}

void tk_demand_report_end(void)
{
    const struct tk_demand *demand = tk_verbs.demand;
    if (demand && tk_settings.ibv_ports_verbose >= 2)
        tk_log_info("connections on demand: %u of %u peers, %u of them asked for by this rank; %u "
                    "datagrams, %u of them again; %u waits for receive buffers",
                    demand->up, tk_verbs.peers, demand->wanted, demand->sent, demand->again,
                    demand->waited);
}
