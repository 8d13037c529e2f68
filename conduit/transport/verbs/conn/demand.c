/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See demand.h. Owns a record of each peer that is being connected, from the first wish or request
 * until it may be sent to; the lock of demands guards them and the calls of datagram.c and pair.c.
 * It is taken before a connection's lock. While it is held nothing is polled, because a poll may
 * find a datagram, and no failure is reported, because that ends the process.
 *
 * Nothing is queued here: a send returns "no room", as it does when a queue is full, and is tried
 * again between polls; so messages keep the order of their senders, an immediate one does not
 * wait, and a datagram that is lost delays but does not fail. There is no thread: a peer answers
 * when it polls, and is asked for as long as that takes. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/report.h"
#include "base/wait_record.h"
#include "settings/settings.h"
#include "stats/stats.h"
#include "transport/verbs/conn/datagram.h"
#include "transport/verbs/conn/demand.h"
#include "transport/verbs/conn/life.h"
#include "transport/verbs/conn/rest.h"

struct record {
    struct record *next;
    struct tk_peer *peer;
    struct tk_conn *conns; /* NULL: there are none so far */
    uint64_t since, reported;
    uint64_t due;      /* when to repeat what was sent, or to ask again what was denied */
    uint64_t interval; /* until it is repeated once more */
    struct tk_life life;
    unsigned denied; /* times that the other end had no room */
    bool is_wanted;  /* by us */
    bool has_waited; /* for receive buffers of a shared queue */
    uint64_t came;   /* when a request came that waits for room; 0: none does */
    struct tk_datagram request;
};

struct tk_demand {
    tk_lock_t lock;
    struct record *records;
    const struct tk_transport *connected, *unconnected;
    tk_counter_t pending;
    uint32_t wanted;      /* peers that were connected by our wish */
    uint32_t closed;      /* connections, for others */
    uint32_t questions;   /* to close, so far */
    uint32_t sent, again; /* datagrams; those that were sent before */
    uint32_t waited;      /* connections: for receive buffers of a shared queue */
    uint64_t refill;      /* when to make buffers for the next one; 0: they are there */
    bool any_came;        /* a datagram of this job has come */
    bool has_failed;      /* the cause was logged */
    bool is_starting;     /* ranks that were listed are connected whatever the settings say */
};

static const uint64_t spared_time =
    TK_SECOND / 50; /* that a new one is not closed, so that it is used */
static const uint64_t refill_time = TK_SECOND / 1000;  /* for the first message to go before */
static const uint64_t request_time = TK_SECOND / 500;  /* that a request waits for room here */
static const uint64_t denied_time = TK_SECOND / 10000; /* until it is asked again, at first */

/* ---- records ---- */

static const struct tk_transport *table_of(const struct tk_peer *peer)
{
    return __atomic_load_n(&peer->transport, __ATOMIC_ACQUIRE);
}

static void set_table(struct tk_peer *peer, const struct tk_transport *table)
{
    __atomic_store_n(&peer->transport, table, __ATOMIC_RELEASE);
}

static bool is_up(const struct tk_peer *peer)
{
    return table_of(peer) != tk_verbs.demand->unconnected;
}

static void pending_add(int by)
{
    tk_counter_add(&tk_verbs.demand->pending, by);
    tk_counter_add(&tk_verbs.pending_work, by);
}

static struct record *record_of(const struct tk_peer *peer)
{
    struct record *record = tk_verbs.demand->records;
    while (record && record->peer != peer)
        record = record->next;
    return record;
}

/* Behind the others: records get room in the order in which they were made. */
static struct record *record_make(struct tk_peer *peer)
{
    struct tk_demand *demand = tk_verbs.demand;
    struct record *record = calloc(1, sizeof(*record)), **at = &demand->records;
    if (!record)
        tk_panic("out of memory for a connection (%zu bytes)", sizeof(*record));
    record->peer = peer;
    record->since = tk_now();
    record->life.state = is_up(peer) ? TK_LIFE_UP : TK_LIFE_IDLE;
    record->life.epoch = tk_conns_to(peer->rank)->epoch;
    record->conns = is_up(peer) ? tk_conns_to(peer->rank) : NULL;
    while (*at)
        at = &(*at)->next;
    *at = record;
    pending_add(1);
    return record;
}

static void record_drop(struct record *record)
{
    struct record **at = &tk_verbs.demand->records;
    while (*at != record)
        at = &(*at)->next;
    *at = record->next;
    free(record);
    pending_add(-1);
}

/* There is nothing to be done about it. */
static void drop_if_settled(struct record *record)
{
    if (record->life.state == TK_LIFE_UP ||
        (record->life.state == TK_LIFE_IDLE && !record->is_wanted && !record->came))
        record_drop(record);
}

/* ---- steps ---- */

static enum tk_status make_pair(struct record *record)
{
    struct tk_conn *conns;
    enum tk_status status = tk_pair_open(record->peer->rank, &conns);
    if (status != TK_OK)
        return status;
    if (tk_pair_fill(conns) != TK_OK) {
        tk_pair_drop(conns);
        return TK_FAIL;
    }
    record->conns = conns;
    tk_rest_add(record->peer->rank);
    return TK_OK;
}

/* Published first: a message may come as soon as it can, and its handler looks for them. */
static enum tk_status connect_pair(struct record *record, const struct tk_datagram *datagram)
{
    tk_pair_publish(record->peer->rank, record->conns);
    return tk_pair_connect(record->conns, datagram->qps, (int)datagram->credits);
}

/* All of them, also those that were never connected: their places serve the next ones. */
static void shut_pair(struct record *record)
{
    tk_pair_publish(record->peer->rank, record->conns);
    tk_pair_shut(record->conns);
}

static uint64_t after(uint64_t least, unsigned times)
{
    uint64_t longest = (uint64_t)tk_settings.connect_retrans_max * 1000;
    return tk_min(least << tk_min(times, 8), longest);
}

/* Ranks that deny each other must not come back at the same time. */
static uint64_t spread(uint64_t time)
{
    static TK_PER_THREAD uint64_t chance;
    if (!chance)
        chance = tk_now() ^ ((uint64_t)tk_peers.me + 1) << 32;
    chance = chance * UINT64_C(6364136223846793005) + 1;
    return time / 2 + (chance >> 32) % time;
}

/* Lost or not sent at all is the same, but for the time until it is repeated. */
static void record_send(struct record *record, const struct tk_life_word *word)
{
    uint64_t longest = (uint64_t)tk_settings.connect_retrans_max * 1000;
    uint64_t now = tk_now();
    if (!tk_datagram_send(record->peer->rank, word, record->conns)) {
        record->due = now;
        return;
    }
    tk_verbs.demand->sent++;
    tk_verbs.demand->again += record->interval != 0;
    if (record->interval != 0)
        tk_count_rare(tk_counter_datagrams_repeated);
    if (!record->interval)
        record->interval = (uint64_t)tk_settings.connect_retrans_min * 1000;
    record->due = now + record->interval;
    record->interval = tk_min(2 * record->interval, longest);
}

static void refill_later(void)
{
    if (tk_verbs.demand->refill == 0)
        pending_add(1);
    tk_verbs.demand->refill = tk_now() + refill_time;
}

/* Not while the processor is needed to connect. If there is no memory, that is found again when a
 * connection needs it, and matters only then. */
static void refill_if_due(uint64_t now)
{
    struct tk_demand *demand = tk_verbs.demand;
    if (demand->refill == 0 || now < demand->refill || demand->records)
        return;
    demand->refill = 0;
    pending_add(-1);
    tk_pair_make_ahead();
}

/* Where connections are bounded one rests until it is used: so it shows. */
static void record_live(struct record *record)
{
    struct tk_peer *peer = record->peer;
    if (!is_up(peer)) {
        __atomic_store_n(&record->conns->spared, record->is_wanted ? tk_now() + spared_time : 0,
                         __ATOMIC_RELAXED);
        refill_later();
    }
    tk_pair_release(record->conns);
    if (!is_up(peer))
        set_table(peer, tk_verbs.demand->connected);
    if (tk_rest_is_bounded())
        tk_rest_begin(peer);
    record->is_wanted = false;
}

static void note_epoch(struct record *record)
{
    for (uint32_t k = 0; record->conns && k < tk_verbs.conns_pp; k++)
        record->conns[k].epoch = record->life.epoch;
}

static struct tk_life_word with_balance(const struct record *record, struct tk_life_word word)
{
    if (word.what == TK_LIFE_PART) {
        struct tk_pair_balance balance = tk_pair_balance(record->conns);
        word.out = balance.out;
        word.owed = balance.owed;
    }
    return word;
}

/* Nothing was done, as there are no receive buffers now: the next step tries again. */
static void postpone(struct record *record, const struct tk_life *before,
                     const struct tk_datagram *request)
{
    if (request) {
        record->came = tk_now();
        record->request = *request;
    }
    tk_verbs.demand->waited += !record->has_waited;
    record->has_waited = true;
    record->life = *before;
    drop_if_settled(record);
}

/* Does what the step says; the record may be gone then. */
static void perform(struct record *record, struct tk_life_step step, const struct tk_life *before,
                    const struct tk_datagram *datagram)
{
    enum tk_status status = step.opens ? make_pair(record) : TK_OK;
    if (status == TK_BUSY) {
        postpone(record, before, datagram);
        return;
    }
    note_epoch(record);
    if (status == TK_OK && step.connects)
        status = connect_pair(record, datagram);
    if (status != TK_OK) {
        tk_verbs.demand->has_failed = true;
        return;
    }
    if (record->life.state != before->state)
        record->interval = 0;
    if (step.closes)
        shut_pair(record);
    if (step.sends.what != TK_HANDSHAKE_SILENCE) {
        step.sends = with_balance(record, step.sends);
        record_send(record, &step.sends);
    }
    if (step.thaws)
        record_live(record);
    drop_if_settled(record);
}

static struct tk_life_facts facts_of(const struct record *record)
{
    return (struct tk_life_facts){.is_lower = tk_peers.me < record->peer->rank,
                                  .has_room = tk_rest_has_room()};
}

static void advance(struct record *record, enum tk_life_event event)
{
    struct tk_life_facts facts = facts_of(record);
    struct tk_life before = record->life;
    if (event == TK_LIFE_PARTED)
        facts.next = ++tk_verbs.demand->questions;
    struct tk_life_step step = tk_life_act(&record->life, event, &facts);
    perform(record, step, &before, NULL);
}

/* Nobody here has used it since it was looked at the last time, and nothing is under way. What is
 * found to be used now rests from now on. */
static bool freeze(struct record *record)
{
    struct tk_peer *peer = record->peer;
    if (tk_rest_begin(peer) || !tk_rest_is_idle(peer) || !tk_pair_freeze(record->conns))
        return false;
    set_table(peer, tk_verbs.demand->unconnected);
    return true;
}

static bool agrees(struct record *record, const struct tk_life_word *word)
{
    bool is_judged = record->life.state == TK_LIFE_ANSWERED ||
                     record->life.state == TK_LIFE_PARTING || record->life.state == TK_LIFE_AGREED;
    if (record->life.state == TK_LIFE_UP)
        is_judged = freeze(record);
    if (!is_judged || record->is_wanted)
        return false;
    struct tk_pair_balance balance = tk_pair_balance(record->conns);
    return balance.out == word->owed && balance.owed == word->out;
}

static struct tk_life_word word_of(const struct tk_datagram *datagram)
{
    return (struct tk_life_word){.what = datagram->what,
                                 .epoch = datagram->epoch,
                                 .number = datagram->number,
                                 .out = datagram->out,
                                 .owed = datagram->owed};
}

static void came(struct record *record, const struct tk_datagram *datagram)
{
    struct tk_life_facts facts = facts_of(record);
    struct tk_life before = record->life;
    struct tk_life_word word = word_of(datagram);
    if (word.what == TK_LIFE_PART && word.epoch == before.epoch)
        facts.agrees = agrees(record, &word);
    if (word.what == TK_LIFE_BUSY && before.state == TK_LIFE_ASKING && word.epoch == before.epoch)
        record->denied++;
    struct tk_life_step step = tk_life_came(&record->life, &word, &facts);
    perform(record, step, &before, datagram);
}

/* ---- room for others, where connections are bounded ---- */

static bool is_settled(const struct tk_peer *peer)
{
    return is_up(peer) && !record_of(peer);
}

static bool part_one(void)
{
    struct tk_peer *peer;
    for (int tries = 0; tries < 4 && (peer = tk_rest_next(is_settled)) != NULL; tries++) {
        if (!tk_pair_freeze(tk_conns_to(peer->rank)))
            continue;
        struct record *record = record_make(peer);
        set_table(peer, tk_verbs.demand->unconnected);
        advance(record, TK_LIFE_PARTED);
        return true;
    }
    return false;
}

static void end_pair(struct record *record)
{
    tk_pair_end(record->conns);
    tk_rest_remove(record->peer->rank);
    record->conns = NULL;
    tk_verbs.demand->closed++;
    tk_count_rare(tk_counter_connections_closed);
    record->due = record->denied ? tk_now() + spread(after(denied_time, record->denied)) : 0;
    advance(record, TK_LIFE_CLOSED);
}

/* Requests of others first: they keep what they made for it until they are answered. */
static bool begin_waiting(struct record *record, uint64_t now)
{
    if (record->came && (tk_rest_has_room() || now - record->came > request_time)) {
        struct tk_datagram request = record->request;
        record->came = 0;
        came(record, &request);
        return true;
    }
    if (!record->is_wanted || now < record->due || !tk_rest_has_room())
        return false;
    advance(record, TK_LIFE_WANTED);
    return true;
}

/* What it is about to free or wants: connections. */
static int step_record(struct record *record, uint64_t now)
{
    switch (record->life.state) {
    case TK_LIFE_CLOSING:
        if (tk_pair_is_shut(record->conns))
            end_pair(record);
        return 1;
    case TK_LIFE_IDLE:
        return begin_waiting(record, now) || (now < record->due && !record->came) ? 0 : -1;
    default:
        break;
    }
    bool frees = record->life.state == TK_LIFE_PARTING || record->life.state == TK_LIFE_AGREED;
    if (now >= record->due)
        advance(record, TK_LIFE_TIMED);
    return frees;
}

/* A peer that computes gives no answer, and its job must not end; but where not even one datagram
 * has ever come from anyone, the network carries none. */
static bool is_hopeless(const struct record *record, uint64_t now)
{
    double limit = tk_settings.connect_timeout;
    if (tk_verbs.demand->any_came || limit <= 0 || record->life.state != TK_LIFE_ASKING ||
        (double)(now - record->since) < limit * 1e9)
        return false;
    if (!tk_verbs.demand->has_failed)
        tk_log_error("no datagram came from any rank in %.0f s, in which rank %u (%s, pid %d) was "
                     "asked to connect: the network loses them (GASNET_CONNECT_STATIC=1 goes "
                     "without), or that rank makes no call (GASNET_CONNECT_TIMEOUT=0 waits)",
                     limit, record->peer->rank, record->peer->host, record->peer->pid);
    return true;
}

static void step_all(void)
{
    uint64_t now = tk_now();
    int freed = 0;
    for (struct record *record = tk_verbs.demand->records, *next; record; record = next) {
        next = record->next;
        if (is_hopeless(record, now))
            tk_verbs.demand->has_failed = true;
        else
            freed += step_record(record, now);
    }
    while (freed < 0 && part_one())
        freed++;
    refill_if_due(now);
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

/* What was connected may be connected again. */
static bool may_ask(const struct tk_peer *peer)
{
    return tk_settings.connect_dynamic || tk_verbs.demand->is_starting ||
           tk_conns_to(peer->rank) != tk_verbs.nobody;
}

static void ask(struct tk_peer *peer, bool is_reply)
{
    struct record *record = record_of(peer);
    if (tk_verbs.demand->has_failed)
        return;
    if (!record && !may_ask(peer)) {
        not_allowed(peer);
        return;
    }
    if (!record) {
        record = record_make(peer);
        tk_verbs.demand->wanted++;
    }
    record->is_wanted = true;
    if (is_reply)
        advance(record, TK_LIFE_PROVED);
    else if (record->life.state == TK_LIFE_PARTING)
        advance(record, TK_LIFE_USED);
    else if (record->life.state == TK_LIFE_IDLE)
        begin_waiting(record, tk_now());
}

/* A reply proves that a message came over the connection. */
static void demand_want(struct tk_peer *peer, bool is_reply)
{
    tk_lock(&tk_verbs.demand->lock);
    if (!is_up(peer))
        ask(peer, is_reply);
    if (!is_up(peer))
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

/* It waits a little: it is answered when another connection was closed. */
static void request_waits(struct record *record, const struct tk_datagram *datagram)
{
    record->came = tk_now();
    record->request = *datagram;
    step_all();
}

static void datagram_came(struct tk_peer *peer, const struct tk_datagram *datagram)
{
    struct record *record = record_of(peer);
    if (!record)
        record = record_make(peer);
    if (datagram->what == TK_HANDSHAKE_REQUEST && record->life.state == TK_LIFE_IDLE &&
        !tk_rest_has_room() && (int32_t)(datagram->epoch - record->life.epoch) >= 0)
        request_waits(record, datagram);
    else
        came(record, datagram);
}

void tk_demand_came(struct tk_buffer *buffer, uint32_t size)
{
    struct tk_datagram datagram;
    if (!tk_datagram_take(buffer, size, &datagram) || !tk_verbs.demand)
        return;
    tk_lock(&tk_verbs.demand->lock);
    tk_verbs.demand->any_came = true;
    if (!tk_verbs.demand->has_failed) /* else the process ends */
        datagram_came(tk_peer(datagram.from), &datagram);
    demand_unlock();
}

/* ---- the table of peers that are not connected, or whose connections rest ---- */

/* The table to go on with; NULL: not now. */
static const struct tk_transport *table_for(struct tk_peer *peer, bool is_reply)
{
    if (!is_up(peer))
        demand_want(peer, is_reply);
    tk_rest_end(peer);
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
    table_for(peer, false);
    return false;
}

static bool demand_get(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local,
                       size_t nbytes)
{
    (void)op, (void)remote, (void)local, (void)nbytes;
    table_for(peer, false);
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
    table_for(peer, true);
}

/* ---- start and end ---- */

static struct tk_transport resting; /* the same functions: they find out which it is */

static void set_tables(const struct tk_transport *connected, const struct tk_transport *unconnected)
{
    tk_verbs.demand->connected = connected;
    tk_verbs.demand->unconnected = unconnected;
    resting = *unconnected;
    tk_rest_use_tables(connected, &resting);
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
    if (tk_rest_open((uint32_t)tk_settings.connect_max / tk_verbs.conns_pp) != TK_OK)
        return TK_FAIL;
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
    tk_rest_close();
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
    if (!tk_is_verbs_peer(rank) || !tk_verbs.demand)
        return tk_is_verbs_peer(rank);
    bool was_up = tk_rest_is_bounded() && tk_conns_to(rank) != tk_verbs.nobody;
    return is_up(tk_peer(rank)) || was_up;
}

static void tell_stall(const struct record *record, double seconds)
{
    const struct tk_peer *peer = record->peer;
    if (record->life.state == TK_LIFE_IDLE || record->life.state == TK_LIFE_CLOSING)
        tk_log_warn("waiting %.0f s to be connected to rank %u (%s, pid %d): all connections that "
                    "GASNET_CONNECT_MAX=%u allows here or there are in use, or their peers have "
                    "not polled (GASNET_AM_STALL_SECONDS=0 silences this)",
                    seconds, peer->rank, peer->host, peer->pid, (unsigned)tk_settings.connect_max);
    else
        tk_log_warn("waiting %.0f s to be connected to rank %u (%s, pid %d): it has not polled, or "
                    "datagrams do not reach it (GASNET_AM_STALL_SECONDS=0 silences this)",
                    seconds, peer->rank, peer->host, peer->pid);
}

void tk_demand_report_stall(uint64_t now, uint64_t limit)
{
    if (!tk_verbs.demand || !limit || !tk_trylock(&tk_verbs.demand->lock))
        return;
    for (struct record *record = tk_verbs.demand->records; record; record = record->next) {
        uint64_t from = record->reported ? record->reported : record->since;
        bool is_opening =
            record->life.state == TK_LIFE_ASKING || record->life.state == TK_LIFE_ANSWERED;
        if (now - from <= limit || (!is_opening && !record->is_wanted))
            continue;
        record->reported = now;
        tell_stall(record, (double)(now - record->since) / 1e9);
    }
    tk_unlock(&tk_verbs.demand->lock);
}

void tk_demand_describe_waits(struct tk_wait_rows *rows)
{
    if (!tk_verbs.demand || !tk_trylock(&tk_verbs.demand->lock))
        return;
    for (struct record *record = tk_verbs.demand->records; record; record = record->next)
        if (record->is_wanted && !is_up(record->peer))
            tk_wait_row_add(rows, TK_REASON_CONNECTING, record->peer->rank, 0, 0);
    tk_unlock(&tk_verbs.demand->lock);
}

void tk_demand_report_end(void)
{
    const struct tk_demand *demand = tk_verbs.demand;
    char closed[48] = "";
    if (!demand || tk_settings.ibv_ports_verbose < 2)
        return;
    if (tk_rest_is_bounded())
        snprintf(closed, sizeof(closed), "; %u closed for others", demand->closed);
    tk_log_info("connections on demand: %u of %u peers, %u of them asked for by this rank; %u "
                "datagrams, %u of them again; %u waits for receive buffers%s",
                tk_rest_count(), tk_verbs.peers, demand->wanted, demand->sent, demand->again,
                demand->waited, closed);
}
