/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Executes the steps that incarnation.h decides for a peer's record. Owns the list of records, with
 * the lock of demands. Does not poll and reports no failure: see demand.c. */
#include "config.h"

#include <stdlib.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/first_use.h"
#include "base/report.h"
#include "common/clock.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "stats/stats.h"
#include "topology/topology.h"
#include "trace/trace.h"
#include "transport/verbs/cm/cm.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/conn/conns.h"
#include "transport/verbs/conn/datagram.h"
#include "transport/verbs/conn/demand_private.h"
#include "transport/verbs/conn/evict_choice.h"
#include "transport/verbs/conn/handshake.h"
#include "transport/verbs/conn/incarnation.h"
#include "transport/verbs/conn/pair.h"
#include "transport/verbs/conn/qp_evict.h"
#include "transport/verbs/conn/xrc.h"
#include "transport/verbs/failover/failover_group.h"
#include "transport/verbs/verbs_state.h"

static const uint64_t refill_time =
    TK_SECOND / 1000; /* a delay, so that the first message goes first */

/* ---- records ---- */

TK_FIRST_USE static void set_table(struct tk_peer *peer, const struct tk_transport *table)
{
    __atomic_store_n(&peer->transport, table, __ATOMIC_RELEASE);
}

TK_FIRST_USE void tk_demand_pending_add(int by)
{
    tk_counter_add(&tk_conns.demand->pending, by);
    tk_counter_add(&tk_verbs.pending_work, by);
}

TK_FIRST_USE struct tk_demand_record *tk_demand_record_of(const struct tk_peer *peer)
{
    struct tk_demand_record *record = tk_conns.demand->records;
    while (record && record->peer != peer)
        record = record->next;
    return record;
}

/* Most of the time one record is enough; calling the allocator would miss the caches. */
TK_FIRST_USE static struct tk_demand_record *record_allocate(struct tk_demand *demand)
{
    struct tk_demand_record *record = &demand->spare;
    if (record->peer)
        record = calloc(1, sizeof(*record));
    if (!record)
        tk_panic("out of memory for a connection (%zu bytes)", sizeof(*record));
    return record;
}

/* At the end of the list: records get space in the order in which they were made. */
TK_FIRST_USE struct tk_demand_record *tk_demand_record_make(struct tk_peer *peer)
{
    struct tk_demand *demand = tk_conns.demand;
    struct tk_demand_record *record = record_allocate(demand), **at = &demand->records;
    record->peer = peer;
    record->since = tk_now();
    record->incarnation.state = tk_demand_is_up(peer) ? TK_INCARNATION_UP : TK_INCARNATION_IDLE;
    record->incarnation.epoch = tk_conns_to(peer->rank)->epoch;
    record->conns = tk_demand_is_up(peer) ? tk_conns_to(peer->rank) : NULL;
    while (*at)
        at = &(*at)->next;
    *at = record;
    tk_demand_pending_add(1);
    return record;
}

TK_FIRST_USE void tk_demand_record_drop(struct tk_demand_record *record)
{
    struct tk_demand_record **at = &tk_conns.demand->records;
    while (*at != record)
        at = &(*at)->next;
    *at = record->next;
    if (record == &tk_conns.demand->spare)
        *record = (struct tk_demand_record){.peer = NULL};
    else
        free(record);
    tk_demand_pending_add(-1);
}

/* Drops a record that needs no more work. */
TK_FIRST_USE static void drop_if_settled(struct tk_demand_record *record)
{
    if (record->incarnation.state == TK_INCARNATION_UP ||
        (record->incarnation.state == TK_INCARNATION_IDLE && !record->is_wanted && !record->came))
        tk_demand_record_drop(record);
}

/* ---- steps ---- */

TK_FIRST_USE static enum tk_status make_pair(struct tk_demand_record *record)
{
    struct tk_conn *conns;
    bool is_ahead = tk_pair_is_ahead_for(record->peer->rank);
    enum tk_status status = tk_pair_open(record->peer->rank, &conns);
    if (status != TK_OK)
        return status;
    if (tk_pair_fill(conns) != TK_OK) {
        tk_pair_drop(conns);
        return TK_FAIL;
    }
    record->conns = conns;
    record->is_new = true;
    tk_conns.demand->ahead += is_ahead;
    tk_evict_add(record->peer->rank);
    return TK_OK;
}

/* Publishes the connections first: a message may come at once, and its handler looks them up.
 * librdmacm exchanges the numbers of queue pairs itself, and needs the limits of both ends
 * before. */
TK_FIRST_USE static enum tk_status connect_pair(struct tk_demand_record *record,
                                                const struct tk_datagram *datagram)
{
    uint32_t rank = record->peer->rank;
    tk_pair_publish(rank, record->conns);
    if (tk_demand_is_by_cm())
        return tk_pair_connect(record->conns, NULL, tk_cm_credits_of(rank));
    if (tk_verbs.failover_enabled)
        tk_failover_group_agree(record->conns, datagram->qps,
                                datagram->what == TK_HANDSHAKE_REQUEST);
    return tk_pair_connect(record->conns, datagram->qps, (int)datagram->credits);
}

/* Closes all connections of the pair, also those that were never connected: the next ones reuse
 * their entries. */
static void shut_pair(struct tk_demand_record *record)
{
    if (tk_conns_to(record->peer->rank) != record->conns)
        tk_pair_publish(record->peer->rank, record->conns);
    if (tk_demand_is_by_cm())
        tk_cm_pair_close(record->conns);
    tk_pair_shut(record->conns);
}

static uint64_t after(uint64_t least, unsigned times)
{
    uint64_t longest = (uint64_t)tk_settings.connect_retrans_max * 1000;
    return tk_min(least << tk_min(times, 8), longest);
}

/* Randomizes a delay, so that ranks that deny each other do not retry at the same time. */
static uint64_t spread(uint64_t time)
{
    static TK_PER_THREAD uint64_t chance;
    if (!chance)
        chance = tk_now() ^ ((uint64_t)tk_peers.me + 1) << 32;
    chance = chance * UINT64_C(6364136223846793005) + 1;
    return time / 2 + (chance >> 32) % time;
}

/* With librdmacm the connects are the messages; only a higher rank's connection request is
 * repeated.
 */
static bool say(const struct tk_demand_record *record, const struct tk_incarnation_word *word)
{
    if (!tk_demand_is_by_cm())
        return tk_datagram_send(record->peer->rank, word, record->conns);
    if (word->what == TK_HANDSHAKE_REQUEST || word->what == TK_HANDSHAKE_ACCEPT)
        tk_cm_pair_open(record->conns, word->epoch, word->what == TK_HANDSHAKE_REQUEST);
    return true;
}

/* With XRC an answer may also be dropped here, while a neighbour connects its queue pair. */
static uint64_t first_interval(uint64_t longest)
{
    uint64_t least = (uint64_t)tk_settings.connect_retrans_min * 1000;
    return tk_incarnation_patience(least, longest, tk_xrc_in_use() ? 1 : tk_machine_crowd());
}

/* A message that could not be sent is treated like a lost one, but is repeated sooner. */
TK_FIRST_USE static void record_send(struct tk_demand_record *record,
                                     const struct tk_incarnation_word *word)
{
    uint64_t longest = (uint64_t)tk_settings.connect_retrans_max * 1000;
    uint64_t now = tk_now();
    if (!say(record, word)) {
        record->due = now;
        return;
    }
    tk_conns.demand->sent++;
    tk_conns.demand->again += record->interval != 0;
    if (record->interval != 0)
        tk_count_rare(tk_counter_datagrams_repeated);
    if (!record->interval)
        record->interval = first_interval(longest);
    record->due = now + record->interval;
    record->interval = tk_min(2 * record->interval, longest);
}

TK_FIRST_USE static void refill_later(void)
{
    if (tk_conns.demand->refill == 0)
        tk_demand_pending_add(1);
    tk_conns.demand->refill = tk_now() + refill_time;
}

/* Waits while peers are being connected, which needs the processor. A failure to get memory is
 * ignored: the connection that needs the memory tries again and reports it. */
void tk_demand_refill(uint64_t now)
{
    struct tk_demand *demand = tk_conns.demand;
    if (demand->refill == 0 || now < demand->refill || demand->records)
        return;
    demand->refill = 0;
    tk_demand_pending_add(-1);
    if (tk_pair_make_ahead() == TK_OK)
        tk_pair_open_ahead();
}

/* One event for each rail's connection, from when the peer was asked for or asked. */
TK_FIRST_USE static void trace_opened(struct tk_demand_record *record)
{
    for (uint32_t k = 0; record->is_new && k < tk_verbs.conns_pp; k++)
        tk_trace_connected(record->peer->rank, record->conns[k].rail, record->since);
    record->is_new = false;
}

/* Where the number of connections is bounded, starts to watch the new one, so that its use is
 * noticed. */
TK_FIRST_USE static void record_live(struct tk_demand_record *record)
{
    struct tk_peer *peer = record->peer;
    if (!tk_demand_is_up(peer)) {
        __atomic_store_n(&record->conns->spared, record->is_wanted ? tk_now() + tk_evict_spared : 0,
                         __ATOMIC_RELAXED);
        refill_later();
    }
    if (tk_trace_has(tk_trace_bit_connect))
        trace_opened(record);
    tk_pair_release(record->conns);
    if (!tk_demand_is_up(peer)) {
        set_table(peer, tk_conns.demand->connected);
        tk_conns.demand->opened++;
    }
    if (tk_evict_is_bounded())
        tk_evict_watch(peer);
    record->is_wanted = false;
}

TK_FIRST_USE static void note_epoch(struct tk_demand_record *record)
{
    for (uint32_t k = 0; record->conns && k < tk_verbs.conns_pp; k++)
        record->conns[k].epoch = record->incarnation.epoch;
}

static struct tk_incarnation_word with_balance(const struct tk_demand_record *record,
                                               struct tk_incarnation_word word)
{
    if (word.what == TK_INCARNATION_PART) {
        struct tk_pair_balance balance = tk_pair_balance(record->conns);
        word.out = balance.out;
        word.owed = balance.owed;
    }
    return word;
}

/* Undoes the step: the next one tries again. A request is kept; any other datagram counts as lost,
 * and its sender will repeat it. */
static void postpone(struct tk_demand_record *record, const struct tk_incarnation *before,
                     const struct tk_datagram *datagram)
{
    if (datagram && datagram->what == TK_HANDSHAKE_REQUEST &&
        before->state == TK_INCARNATION_IDLE) {
        record->came = tk_now();
        record->request = *datagram;
    }
    record->incarnation = *before;
    drop_if_settled(record);
}

/* No receive buffers are free now. */
static void wait_for_buffers(struct tk_demand_record *record, const struct tk_incarnation *before,
                             const struct tk_datagram *datagram)
{
    tk_conns.demand->waited += !record->has_waited;
    record->has_waited = true;
    postpone(record, before, datagram);
}

/* Executes the step; the record may be gone afterwards. */
TK_FIRST_USE static void do_step(struct tk_demand_record *record, struct tk_incarnation_step step,
                                 const struct tk_incarnation *before,
                                 const struct tk_datagram *datagram)
{
    enum tk_status status = step.opens ? make_pair(record) : TK_OK;
    if (status == TK_BUSY) {
        wait_for_buffers(record, before, datagram);
        return;
    }
    note_epoch(record);
    if (status == TK_OK && (tk_demand_is_by_cm() ? step.opens : step.connects))
        status = connect_pair(record, datagram);
    if (status != TK_OK) {
        tk_conns.demand->has_failed = true;
        return;
    }
    if (record->incarnation.state != before->state)
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

/* The same, but postpones the step while a neighbour makes or connects a queue pair that it
 * needs. */
TK_FIRST_USE static void perform(struct tk_demand_record *record, struct tk_incarnation_step step,
                                 const struct tk_incarnation *before,
                                 const struct tk_datagram *datagram)
{
    uint32_t rank = record->peer->rank;
    bool needs_rank = step.opens || step.connects;
    if (needs_rank && !tk_xrc_take(rank)) {
        postpone(record, before, datagram);
        return;
    }
    do_step(record, step, before, datagram);
    if (needs_rank)
        tk_xrc_give(rank);
}

TK_FIRST_USE static struct tk_incarnation_facts facts_of(const struct tk_demand_record *record)
{
    return (struct tk_incarnation_facts){.is_lower = tk_peers.me < record->peer->rank,
                                         .has_space = tk_evict_has_space()};
}

TK_FIRST_USE void tk_demand_record_advance(struct tk_demand_record *record,
                                           enum tk_incarnation_event event)
{
    struct tk_incarnation_facts facts = facts_of(record);
    struct tk_incarnation before = record->incarnation;
    if (event == TK_INCARNATION_PARTED)
        facts.next = ++tk_conns.demand->questions;
    struct tk_incarnation_step step = tk_incarnation_act(&record->incarnation, event, &facts);
    perform(record, step, &before, NULL);
}

/* Freezes the connection. Fails if this rank has used it since the last look, or if work is in
 * flight. A connection that was used is watched from now on. */
static bool freeze(struct tk_demand_record *record)
{
    struct tk_peer *peer = record->peer;
    if (tk_evict_watch(peer) || !tk_evict_is_idle(peer) || !tk_pair_freeze(record->conns))
        return false;
    set_table(peer, tk_conns.demand->unconnected);
    return true;
}

static bool agrees(struct tk_demand_record *record, const struct tk_incarnation_word *word)
{
    bool is_judged = record->incarnation.state == TK_INCARNATION_ANSWERED ||
                     record->incarnation.state == TK_INCARNATION_PARTING ||
                     record->incarnation.state == TK_INCARNATION_AGREED;
    if (record->incarnation.state == TK_INCARNATION_UP)
        is_judged = freeze(record);
    if (!is_judged || record->is_wanted)
        return false;
    struct tk_pair_balance balance = tk_pair_balance(record->conns);
    return balance.out == word->owed && balance.owed == word->out;
}

static struct tk_incarnation_word word_of(const struct tk_datagram *datagram)
{
    return (struct tk_incarnation_word){.what = datagram->what,
                                        .epoch = datagram->epoch,
                                        .number = datagram->number,
                                        .out = datagram->out,
                                        .owed = datagram->owed};
}

TK_FIRST_USE void tk_demand_record_came(struct tk_demand_record *record,
                                        const struct tk_datagram *datagram)
{
    struct tk_incarnation_facts facts = facts_of(record);
    struct tk_incarnation before = record->incarnation;
    struct tk_incarnation_word word = word_of(datagram);
    if (word.what == TK_INCARNATION_PART && word.epoch == before.epoch)
        facts.agrees = agrees(record, &word);
    if (word.what == TK_INCARNATION_BUSY && before.state == TK_INCARNATION_ASKING &&
        word.epoch == before.epoch)
        record->denied++;
    struct tk_incarnation_step step = tk_incarnation_came(&record->incarnation, &word, &facts);
    perform(record, step, &before, datagram);
}

/* Queue pairs that librdmacm has partly connected can't be used again. */
void tk_demand_record_broke(struct tk_demand_record *record)
{
    bool asks = record->incarnation.state == TK_INCARNATION_ASKING;
    struct tk_datagram news = {.what = asks ? TK_INCARNATION_BUSY : TK_INCARNATION_OVER,
                               .epoch = record->incarnation.epoch + !asks};
    record->denied += !asks;
    tk_demand_record_came(record, &news);
}

/* ---- space for others, where connections are bounded ---- */

static bool is_settled(const struct tk_peer *peer)
{
    return tk_demand_is_up(peer) && !tk_demand_record_of(peer);
}

bool tk_demand_part_one(void)
{
    struct tk_peer *peer;
    for (int tries = 0; tries < 4 && (peer = tk_evict_next(is_settled)) != NULL; tries++) {
        if (!tk_pair_freeze(tk_conns_to(peer->rank)))
            continue;
        struct tk_demand_record *record = tk_demand_record_make(peer);
        set_table(peer, tk_conns.demand->unconnected);
        tk_demand_record_advance(record, TK_INCARNATION_PARTED);
        return true;
    }
    return false;
}

static void close_record(struct tk_demand_record *record)
{
    tk_evict_remove(record->peer->rank);
    record->conns = NULL;
    tk_conns.demand->closed++;
    tk_count_rare(tk_counter_connections_closed);
    record->due = record->denied ? tk_now() + spread(after(tk_evict_denied, record->denied)) : 0;
    tk_demand_record_advance(record, TK_INCARNATION_CLOSED);
}

TK_FIRST_USE bool tk_demand_record_begin(struct tk_demand_record *record, uint64_t now)
{
    if (record->came && (tk_evict_has_space() || now - record->came > tk_evict_request_waits)) {
        struct tk_datagram request = record->request;
        record->came = 0;
        tk_demand_record_came(record, &request);
        return true;
    }
    if (!record->is_wanted || now < record->due || !tk_evict_has_space())
        return false;
    tk_demand_record_advance(record, TK_INCARNATION_WANTED);
    return true;
}

TK_FIRST_USE int tk_demand_record_step(struct tk_demand_record *record, uint64_t now)
{
    switch (record->incarnation.state) {
    case TK_INCARNATION_CLOSING:
        if (tk_pair_end(record->conns))
            close_record(record);
        return 1;
    case TK_INCARNATION_IDLE:
        return tk_demand_record_begin(record, now) || (now < record->due && !record->came) ? 0 : -1;
    default:
        break;
    }
    bool frees = record->incarnation.state == TK_INCARNATION_PARTING ||
                 record->incarnation.state == TK_INCARNATION_AGREED;
    if (now >= record->due)
        tk_demand_record_advance(record, TK_INCARNATION_TIMED);
    return frees;
}
