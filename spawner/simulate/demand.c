/* SPDX-License-Identifier: BSD-3-Clause */
/* See demand.h. Each leader has a list of the partners that it connects, or whose connections it
 * closes, in the order in which that began; it looks at all of them when a datagram comes, when it
 * wants to send, and when a time is over. What demand_record.c does with queue pairs is counting
 * here. */
#include "config.h"

#include "demand.h"

#include "messages.h"

#include "settings/settings.h"
#include "transport/verbs/conn/evict_choice.h"

#include <stdlib.h>

enum { datagram_bytes = 96, retry_time = 1000000 /* ns */ };

/* A leader that acts, and one of its partners. */
struct record {
    struct simulation *s;
    struct sim_leader *l;
    struct sim_end *end;
    uint32_t me, other;
    uint64_t now;
};

static struct record record_of(struct simulation *s, uint32_t me, uint32_t other, uint64_t now)
{
    struct sim_connection *c = sim_connection(s, me, other);
    s->has_failed |= !c;
    return (struct record){.s = s,
                           .l = &s->leaders[me],
                           .end = c ? &c->ends[sim_end_of(me, other)] : NULL,
                           .me = me,
                           .other = other,
                           .now = now};
}

static bool has_space(const struct record *r)
{
    return tk_evict_fits(r->l->connections, r->s->connections_max);
}

/* ---- lists of partners */

static void list_remove(uint32_t *list, uint32_t *count, uint32_t partner)
{
    uint32_t at = 0;
    while (at < *count && list[at] != partner)
        at++;
    if (at == *count)
        return;
    --*count;
    for (; at < *count; at++)
        list[at] = list[at + 1];
}

static void record_make(const struct record *r)
{
    if (r->end->is_listed)
        return;
    r->end->is_listed = true;
    r->s->has_failed |=
        !sim_list_add(&r->l->records, &r->l->record_count, &r->l->record_space, r->other);
}

static void drop_if_settled(const struct record *r)
{
    struct sim_end *end = r->end;
    bool is_idle = end->incarnation.state == TK_INCARNATION_IDLE && !end->is_wanted && !end->came;
    if (!end->is_listed || (end->incarnation.state != TK_INCARNATION_UP && !is_idle))
        return;
    end->is_listed = false;
    end->denied = 0;
    list_remove(r->l->records, &r->l->record_count, r->other);
}

/* ---- datagrams: in the 64 bits of an event */

enum { what_bits = 4, count_bits = 11, count_mask = (1 << count_bits) - 1, epoch_bits = 19 };

static uint64_t pack(const struct tk_incarnation_word *w)
{
    uint64_t word = w->epoch & ((1u << epoch_bits) - 1);
    word = word << epoch_bits | (w->number & ((1u << epoch_bits) - 1));
    word = word << count_bits | (uint32_t)w->out;
    word = word << count_bits | (uint32_t)w->owed;
    return word << what_bits | w->what;
}

static uint32_t unpack_bits(uint64_t *word, unsigned bits)
{
    uint32_t value = (uint32_t)(*word & ((UINT64_C(1) << bits) - 1));
    *word >>= bits;
    return value;
}

static struct tk_incarnation_word unpack(uint64_t word)
{
    struct tk_incarnation_word w;
    w.what = (uint8_t)unpack_bits(&word, what_bits);
    w.owed = (int32_t)unpack_bits(&word, count_bits);
    w.out = (int32_t)unpack_bits(&word, count_bits);
    w.number = unpack_bits(&word, epoch_bits);
    w.epoch = (uint32_t)word;
    return w;
}

/* Credits in use, and those held back, and messages without credits, as tk_pair_balance() counts
 * them. */
static void balance(const struct record *r, int *out, int *owed)
{
    const struct sim_end *end = r->end;
    int ours = r->s->is_shared ? end->borrower.limit - end->borrower.given : r->s->credits.base;
    *out = (ours - end->credits + end->bounded_sent) & count_mask;
    *owed = (end->to_return + end->bounded_came) & count_mask;
}

static void say(struct record *r, struct tk_incarnation_word word)
{
    struct sim_end *end = r->end;
    int out, owed;
    if (word.what == TK_HANDSHAKE_SILENCE)
        return;
    if (word.what == TK_INCARNATION_PART) {
        balance(r, &out, &owed);
        word.out = out;
        word.owed = owed;
    }
    uint64_t comes = sim_fabric_send(&r->s->fabric, r->s->host_of[r->me], r->s->host_of[r->other],
                                     r->now, datagram_bytes);
    r->s->has_failed |= !sim_events_add(&r->s->events, comes + r->s->costs.message, SIM_DATAGRAM,
                                        r->other, r->me, pack(&word));
    r->l->datagrams++;
    if (!end->interval)
        end->interval = (uint64_t)tk_settings.connect_retrans_min * 1000;
    end->due = r->now + end->interval;
    end->interval *= 2;
}

/* ---- steps: demand_record.c */

static void watch(const struct record *r)
{
    r->end->is_watched = true;
    r->end->last_used = ++r->l->looks;
}

static void live(struct record *r)
{
    struct sim_end *end = r->end;
    if (end->up == UINT64_MAX)
        end->spared = end->is_wanted ? r->now + tk_evict_spared : 0;
    end->up = r->now;
    if (!end->is_watched)
        watch(r);
    end->is_wanted = false;
    r->l->is_due = true; /* what waits for this connection */
}

static void perform(struct record *r, const struct tk_incarnation_step *step, uint8_t before)
{
    struct simulation *s = r->s;
    const uint64_t half = s->costs.connection / 2;
    if (step->opens)
        sim_connection_make(s, r->me, r->other, r->end, r->now);
    r->now += (step->opens + step->connects) * half;
    if (r->end->incarnation.state != before)
        r->end->interval = 0;
    if (step->closes)
        r->end->due = r->now + half;
    say(r, step->sends);
    if (step->thaws)
        live(r);
    drop_if_settled(r);
}

static struct tk_incarnation_facts facts_of(const struct record *r)
{
    return (struct tk_incarnation_facts){.is_lower = r->me < r->other, .has_space = has_space(r)};
}

static void act(struct record *r, enum tk_incarnation_event event)
{
    struct tk_incarnation_facts facts = facts_of(r);
    uint8_t before = r->end->incarnation.state;
    if (event == TK_INCARNATION_PARTED)
        facts.next = ++r->l->questions;
    const struct tk_incarnation_step step = tk_incarnation_act(&r->end->incarnation, event, &facts);
    perform(r, &step, before);
}

/* Messages that were posted unsignaled need a completion first: the next look finds it. */
static bool freeze(const struct record *r)
{
    bool was_quiet = r->end->is_quiet;
    r->end->is_quiet = false;
    if (!was_quiet)
        r->end->up = UINT64_MAX;
    return !was_quiet;
}

static bool agrees(struct record *r, const struct tk_incarnation_word *word)
{
    struct sim_end *end = r->end;
    int out, owed;
    bool is_judged = end->incarnation.state == TK_INCARNATION_ANSWERED ||
                     end->incarnation.state == TK_INCARNATION_PARTING ||
                     end->incarnation.state == TK_INCARNATION_AGREED;
    if (end->incarnation.state == TK_INCARNATION_UP) {
        bool was_watched = end->is_watched;
        if (!was_watched)
            watch(r);
        is_judged = was_watched && tk_evict_may(true, end->spared, r->now) && freeze(r);
    }
    if (!is_judged || end->is_wanted)
        return false;
    balance(r, &out, &owed);
    return out == word->owed && owed == word->out;
}

static void word_came(struct record *r, const struct tk_incarnation_word *word)
{
    struct tk_incarnation_facts facts = facts_of(r);
    uint8_t before = r->end->incarnation.state;
    bool is_now = word->epoch == r->end->incarnation.epoch;
    if (word->what == TK_INCARNATION_PART && is_now)
        facts.agrees = agrees(r, word);
    r->end->denied +=
        word->what == TK_INCARNATION_BUSY && is_now && before == TK_INCARNATION_ASKING;
    const struct tk_incarnation_step step = tk_incarnation_came(&r->end->incarnation, word, &facts);
    perform(r, &step, before);
}

/* ---- space for others */

/* Begins to close one connection; false: none may be closed. */
static bool part_one(struct simulation *s, uint32_t me, uint64_t now)
{
    struct sim_leader *l = &s->leaders[me];
    for (int tries = 0; tries < 4; tries++) {
        struct tk_evict_choice choice = {.is_made = false};
        for (uint32_t i = 0; i < l->connections; i++) {
            struct record r = record_of(s, me, l->partners[i], now);
            if (r.end->up == UINT64_MAX || r.end->is_listed)
                continue;
            if (!r.end->is_watched)
                watch(&r);
            if (tk_evict_may(r.end->is_watched, r.end->spared, now))
                tk_evict_consider(&choice, r.other, r.end->last_used);
        }
        if (!choice.is_made)
            return false;
        struct record r = record_of(s, me, choice.rank, now);
        r.end->last_used = ++l->looks;
        if (!freeze(&r))
            continue;
        record_make(&r);
        act(&r, TK_INCARNATION_PARTED);
        return true;
    }
    return false;
}

static void close_end(struct record *r)
{
    struct sim_end *end = r->end;
    int out, owed;
    balance(r, &out, &owed);
    r->l->credits_total += out;
    if (r->s->is_shared)
        tk_lender_release(&r->l->lender, &end->account);
    list_remove(r->l->partners, &r->l->connections, r->other);
    r->l->closed++;
    end->credits = end->to_return = 0;
    end->is_quiet = end->is_watched = false;
    unsigned times = end->denied < 8 ? end->denied : 8;
    uint64_t delay = (uint64_t)tk_evict_denied << times;
    end->due = end->denied ? r->now + delay / 2 + sim_random(r->s, delay) : 0;
    act(r, TK_INCARNATION_CLOSED);
}

static bool begin_record(struct record *r)
{
    struct sim_end *end = r->end;
    if (end->came && (has_space(r) || r->now - end->came > tk_evict_request_waits)) {
        const struct tk_incarnation_word request = end->request;
        end->came = 0;
        word_came(r, &request);
        return true;
    }
    if (!end->is_wanted || r->now < end->due || !has_space(r))
        return false;
    act(r, TK_INCARNATION_WANTED);
    return true;
}

/* Returns how many connections it is about to free; negative: how many it needs. */
static int record_step(struct record *r)
{
    struct sim_end *end = r->end;
    uint8_t state = end->incarnation.state;
    if (state == TK_INCARNATION_CLOSING) {
        if (r->now >= end->due)
            close_end(r);
        return 1;
    }
    if (state == TK_INCARNATION_IDLE)
        return begin_record(r) || (r->now < end->due && !end->came) ? 0 : -1;
    if (r->now >= end->due)
        act(r, TK_INCARNATION_TIMED);
    return state == TK_INCARNATION_PARTING || state == TK_INCARNATION_AGREED;
}

static void earliest(uint64_t *first, uint64_t time, uint64_t now)
{
    if (time > now && time < *first)
        *first = time;
}

/* The next time at which something may change without a datagram. */
static void set_timer(struct simulation *s, uint32_t me, uint64_t now)
{
    struct sim_leader *l = &s->leaders[me];
    uint64_t next = now + retry_time;
    if (l->record_count == 0 && !l->waiting)
        return;
    for (uint32_t i = 0; i < l->record_count; i++) {
        const struct sim_end *end = record_of(s, me, l->records[i], now).end;
        earliest(&next, end->due, now);
        if (end->came)
            earliest(&next, end->came + tk_evict_request_waits + 1, now);
    }
    for (uint32_t i = 0; i < l->connections; i++)
        earliest(&next, record_of(s, me, l->partners[i], now).end->spared, now);
    if (l->timer && l->timer <= next)
        return;
    l->timer = next;
    s->has_failed |= !sim_events_add(&s->events, next, SIM_TIMER, me, 0, 0);
}

static void step_all(struct simulation *s, uint32_t me, uint64_t now)
{
    struct sim_leader *l = &s->leaders[me];
    int freed = 0;
    for (uint32_t i = 0; i < l->record_count && !s->has_failed;) {
        struct record r = record_of(s, me, l->records[i], now);
        freed += record_step(&r);
        i += i < l->record_count && l->records[i] == r.other; /* else it was dropped */
    }
    while (freed < 0 && !s->has_failed && part_one(s, me, now))
        freed++;
    set_timer(s, me, now);
}

static void send_waiting(struct simulation *s, uint32_t me, uint64_t now)
{
    bool is_due = s->leaders[me].is_due;
    s->leaders[me].is_due = false;
    if (is_due)
        sim_messages_retry(s, me, now);
}

/* ---- what others call */

bool sim_demand_use(struct simulation *s, uint32_t from, uint32_t to, uint64_t now)
{
    struct record r = record_of(s, from, to, now);
    struct sim_end *end = r.end;
    if (!end)
        return false;
    if (end->up == UINT64_MAX) {
        record_make(&r);
        end->is_wanted = true;
        if (end->incarnation.state == TK_INCARNATION_PARTING)
            act(&r, TK_INCARNATION_USED);
        else if (end->incarnation.state == TK_INCARNATION_IDLE)
            begin_record(&r);
        if (end->up == UINT64_MAX)
            step_all(s, from, now);
    }
    if (end->is_watched)
        end->spared = 0;
    end->is_watched = false;
    return end->up != UINT64_MAX;
}

void sim_demand_came(struct simulation *s, const struct sim_event *event)
{
    if (event->what == SIM_DATAGRAM) {
        const struct tk_incarnation_word word = unpack(event->c);
        struct record r = record_of(s, event->a, event->b, event->time);
        record_make(&r);
        if (word.what == TK_HANDSHAKE_REQUEST && r.end->incarnation.state == TK_INCARNATION_IDLE &&
            !has_space(&r) && (int32_t)(word.epoch - r.end->incarnation.epoch) >= 0) {
            r.end->came = event->time;
            r.end->request = word;
        } else {
            word_came(&r, &word);
        }
    } else {
        struct sim_leader *l = &s->leaders[event->a];
        l->timer = l->timer == event->time ? 0 : l->timer;
        l->is_due = true; /* a rank that waits tries again in each poll */
    }
    step_all(s, event->a, event->time);
    send_waiting(s, event->a, event->time);
}
