/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How two ranks open, close and reopen their connection: searches all orders in which they need it,
 * ask, withdraw, find no space, repeat, and receive any datagram sent so far, once, several times
 * or never, with requests and credits over the connection in between. Invariants: a rank that
 * closes its queue pairs loses no message sent over them; every message is received; and from any
 * state a few rounds without loss connect two ranks if one needs it. */
#include "config.h"

#include "base/first_use.h"
#include "transport/verbs/conn/handshake.h"
#include "transport/verbs/conn/incarnation.h"
#include "unit.h"

enum { ranks = 2, sent_max = 34 };

/* The limits of a search: the number of connections, of questions of each rank, and of the ranks
 * that send requests over the connection. */
static struct {
    unsigned epochs, questions, senders;
} limits;

/* A datagram that was sent may come at any later time. `pair` names the queue pairs. Small, because
 * there are many worlds. */
struct said {
    uint16_t what : 4, epoch : 3, number : 3, out : 1, owed : 1, pair : 4;
};

struct rank {
    struct tk_incarnation incarnation;
    uint8_t asked;              /* questions so far */
    uint8_t pairs;              /* made so far; the last one is open if has_pair */
    uint8_t to;                 /* the other end's, once it is connected */
    uint8_t has_pair, is_ready; /* connected */
    uint8_t out, owed;          /* one credit: used; that of the other end, not given back */
    uint8_t request, credit;    /* under way over the connection, to the other end */
    uint8_t is_wanted;
    uint8_t sent_count;
    struct said sent[sent_max];
};

struct world {
    struct rank at[ranks];
};
_Static_assert(sizeof(struct world) % sizeof(uint64_t) == 0, "it is read in words");

/* ---- worlds that were seen ---- */

enum { table_bits = 22, todo_max = 1 << 20 };
static uint64_t *seen;
static struct world *todo;
static size_t todo_count, worlds;

static uint64_t name_of(const struct world *w)
{
    uint64_t name = UINT64_C(0xcbf29ce484222325), word;
    for (size_t i = 0; i < sizeof(*w); i += sizeof(word)) {
        memcpy(&word, (const char *)w + i, sizeof(word));
        name = (name ^ word) * UINT64_C(0x9e3779b97f4a7c15);
        name ^= name >> 29;
    }
    return name | 1;
}

static bool is_new(const struct world *w)
{
    uint64_t name, at;
    if (!seen)
        return true;
    name = name_of(w);
    at = name >> (64 - table_bits);
    while (seen[at] && seen[at] != name)
        at = (at + 1) & ((1u << table_bits) - 1);
    if (seen[at] == name)
        return false;
    seen[at] = name;
    worlds++;
    assert_in_range(worlds, 0, (1u << table_bits) * 3 / 4);
    return true;
}

static void find(const struct world *w)
{
    if (!is_new(w))
        return;
    assert_in_range(todo_count, 0, todo_max - 1);
    todo[todo_count++] = *w;
}

/* ---- steps ---- */

static void say(struct rank *r, const struct tk_incarnation_word *word)
{
    struct said said = {.what = word->what & 15, .epoch = word->epoch & 7};
    int at = r->sent_count;
    if (word->what >= TK_INCARNATION_PART && word->what <= TK_INCARNATION_CANCEL)
        said.number = word->number & 7;
    if (word->what == TK_INCARNATION_PART) {
        said.out = r->out & 1;
        said.owed = r->owed & 1;
    }
    if (word->what == TK_HANDSHAKE_REQUEST || word->what == TK_HANDSHAKE_ACCEPT)
        said.pair = (r->has_pair ? r->pairs : 0) & 15;
    for (int i = 0; i < r->sent_count; i++)
        if (!memcmp(&r->sent[i], &said, sizeof(said)))
            return;
    assert_in_range(r->sent_count, 0, sent_max - 1);
    /* Sorted, so that equal sets are the same world. */
    for (; at > 0 && memcmp(&r->sent[at - 1], &said, sizeof(said)) > 0; at--)
        r->sent[at] = r->sent[at - 1];
    r->sent[at] = said;
    r->sent_count++;
}

/* Nothing may be in flight when a rank closes, or it would be lost; and the other end must not send
 * any more. */
static void check_close(const struct world *w, int i, unsigned before)
{
    const struct rank *r = &w->at[i], *other = &w->at[1 - i];
    if (before < TK_INCARNATION_UP)
        return;
    assert_true(r->is_ready);
    if (other->has_pair && other->pairs == r->to) {
        assert_true(other->incarnation.state == TK_INCARNATION_AGREED);
        assert_int_equal(r->request + r->credit + other->request + other->credit, 0);
        assert_int_equal(r->out, other->owed);
        assert_int_equal(other->out, r->owed);
    }
}

static void do_step(struct world *w, int i, struct tk_incarnation_step step, unsigned before,
                    uint8_t pair)
{
    struct rank *r = &w->at[i];
    if (step.opens) {
        assert_false(r->has_pair);
        r->has_pair = 1;
        r->pairs++;
        r->is_ready = 0;
    }
    if (step.connects) {
        assert_true(r->has_pair && !r->is_ready && pair);
        r->is_ready = 1;
        r->to = pair;
    }
    if (step.closes) {
        assert_true(r->has_pair);
        check_close(w, i, before);
        r->has_pair = r->is_ready = r->to = 0;
        r->out = r->owed = r->request = r->credit = 0;
    }
    if (step.sends.what)
        say(r, &step.sends);
    if (r->incarnation.state == TK_INCARNATION_UP) {
        if (before != TK_INCARNATION_UP && step.thaws)
            r->is_wanted = 0;
        assert_true(r->has_pair && r->is_ready);
    }
}

static struct tk_incarnation_facts facts_of(int i, bool has_space)
{
    return (struct tk_incarnation_facts){.is_lower = i == 0, .has_space = has_space};
}

static struct world act(const struct world *w, int i, enum tk_incarnation_event event)
{
    struct world next = *w;
    struct rank *r = &next.at[i];
    struct tk_incarnation_facts facts = facts_of(i, true);
    unsigned before = r->incarnation.state;
    if (event == TK_INCARNATION_PARTED)
        facts.next = ++r->asked;
    do_step(&next, i, tk_incarnation_act(&r->incarnation, event, &facts), before, 0);
    return next;
}

static struct world come(const struct world *w, int i, const struct said *said, bool has_space)
{
    struct world next = *w;
    struct rank *r = &next.at[i];
    struct tk_incarnation_facts facts = facts_of(i, has_space);
    unsigned before = r->incarnation.state;
    struct tk_incarnation_word word = {.what = said->what,
                                       .epoch = said->epoch,
                                       .number = said->number,
                                       .out = said->out,
                                       .owed = said->owed};
    facts.agrees = !r->is_wanted && word.out == r->owed && word.owed == r->out;
    do_step(&next, i, tk_incarnation_came(&r->incarnation, &word, &facts), before, said->pair);
    return next;
}

/* Can a request arrive over the connection? Its credit comes back by a message or with the
 * close. */
static bool reaches(const struct world *w, int i)
{
    const struct rank *r = &w->at[i], *other = &w->at[1 - i];
    return r->is_ready && other->has_pair && other->pairs == r->to && other->is_ready &&
           other->to == r->pairs;
}

static void messages_of(const struct world *w, int i)
{
    const struct rank *r = &w->at[i], *other = &w->at[1 - i];
    struct world next = *w;
    if (r->incarnation.state == TK_INCARNATION_UP) {
        assert_true(reaches(w, i)); /* whatever it sends now */
        if (!r->out && limits.senders & 1u << i) {
            next.at[i].out = next.at[i].request = 1;
            find(&next);
        }
        if (r->owed) {
            next = *w;
            next.at[i].owed = 0;
            next.at[i].credit = 1;
            find(&next);
        }
    }
    if (other->request) {
        assert_true(reaches(w, i));
        next = *w;
        next.at[1 - i].request = 0;
        next.at[i].owed = 1;
        find(&next);
        next = act(&next, i, TK_INCARNATION_PROVED); /* its handler replies */
        assert_int_equal(next.at[i].incarnation.state, TK_INCARNATION_UP);
        find(&next);
    }
    if (other->credit) {
        next = *w;
        next.at[1 - i].credit = 0;
        next.at[i].out = 0;
        find(&next);
    }
}

static void every_step_of(const struct world *w, int i)
{
    const struct rank *r = &w->at[i], *other = &w->at[1 - i];
    struct world next;
    if (r->incarnation.state != TK_INCARNATION_UP && !r->is_wanted) {
        next = *w;
        next.at[i].is_wanted = 1;
        find(&next);
    }
    if (r->is_wanted && r->incarnation.state == TK_INCARNATION_IDLE &&
        r->incarnation.epoch < limits.epochs) {
        next = act(w, i, TK_INCARNATION_WANTED);
        find(&next);
    }
    if (r->is_wanted && r->incarnation.state == TK_INCARNATION_PARTING) {
        next = act(w, i, TK_INCARNATION_USED);
        find(&next);
    }
    if (r->incarnation.state == TK_INCARNATION_UP && r->asked < limits.questions) {
        next = act(w, i, TK_INCARNATION_PARTED);
        find(&next);
    }
    if (r->incarnation.state == TK_INCARNATION_CLOSING) {
        next = act(w, i, TK_INCARNATION_CLOSED);
        find(&next);
    }
    next = act(w, i, TK_INCARNATION_TIMED);
    find(&next);
    for (int m = 0; m < other->sent_count; m++)
        for (int has_space = 0; has_space < 2; has_space++) {
            next = come(w, i, &other->sent[m], has_space);
            find(&next);
        }
    messages_of(w, i);
}

/* ---- and what must be possible from everywhere ---- */

static void forget_sent(struct rank *r)
{
    memset(r->sent, 0, sizeof(r->sent));
    r->sent_count = 0;
}

/* Delivers the datagrams of each rank, then the answers to them, and so on. */
static void deliver_all(struct world *w)
{
    for (int hop = 0; hop < 12; hop++) {
        int to = hop % ranks;
        struct rank from = w->at[1 - to];
        forget_sent(&w->at[1 - to]);
        for (int m = 0; m < from.sent_count; m++)
            *w = come(w, to, &from.sent[m], true);
    }
}

static bool is_through(const struct world *w)
{
    return w->at[0].incarnation.state == TK_INCARNATION_UP &&
           w->at[1].incarnation.state == TK_INCARNATION_UP;
}

static void a_few_rounds_connect(struct world w)
{
    enum { rounds = 8 };
    if (!w.at[0].is_wanted && !w.at[1].is_wanted)
        return;
    for (int n = 0; n < rounds && !is_through(&w); n++)
        for (int i = 0; i < ranks; i++) {
            struct rank *r = &w.at[i];
            forget_sent(&w.at[0]);
            forget_sent(&w.at[1]);
            if (r->incarnation.state == TK_INCARNATION_CLOSING)
                w = act(&w, i, TK_INCARNATION_CLOSED);
            else if (r->is_wanted && r->incarnation.state == TK_INCARNATION_IDLE)
                w = act(&w, i, TK_INCARNATION_WANTED);
            else if (r->is_wanted && r->incarnation.state == TK_INCARNATION_PARTING)
                w = act(&w, i, TK_INCARNATION_USED);
            else
                w = act(&w, i, TK_INCARNATION_TIMED);
            deliver_all(&w);
        }
    bool is_done = is_through(&w);
    /* A rank whose connection was closed meanwhile had nothing to send. */
    for (int i = 0; i < ranks; i++)
        is_done |= w.at[i].incarnation.state == TK_INCARNATION_IDLE && !w.at[0].is_wanted &&
                   !w.at[1].is_wanted;
    assert_true(is_done);
}

static void search(unsigned epochs, unsigned questions, unsigned senders)
{
    struct world begin;
    unsigned again = 0;
    limits.epochs = epochs;
    limits.questions = questions;
    limits.senders = senders;
    memset(&begin, 0, sizeof(begin));
    memset(seen, 0, sizeof(*seen) << table_bits);
    worlds = 0;
    find(&begin);
    while (todo_count > 0) {
        struct world w = todo[--todo_count];
        again += w.at[0].incarnation.state == TK_INCARNATION_UP && w.at[0].incarnation.epoch > 0;
        every_step_of(&w, 0); /* where only one of them goes on the other is dead or computes */
        every_step_of(&w, 1);
        a_few_rounds_connect(w);
    }
    assert_in_range(worlds, 1000, (1u << table_bits) * 3 / 4);
    assert_true(epochs < 2 || again > 0); /* it was opened again */
}

static void every_order_ends_well(void **state)
{
    seen = calloc((size_t)1 << table_bits, sizeof(*seen));
    todo = calloc(todo_max, sizeof(*todo));
    assert_true(seen && todo);
    search(2, 1, 0);
    search(1, 1, 1);
    search(1, 1, 2);
    free(todo);
    free(seen);
}

/* Longer histories, of which only a random part is tried. */
static void lives_of_chance_end_well(void **state)
{
    enum { lives = 200, steps = 400, choices = 256 };
    uint64_t chance = 1;
    limits.epochs = 6;
    limits.questions = 7;
    limits.senders = 3;
    seen = NULL; /* find() only collects */
    todo = calloc(choices, sizeof(*todo));
    assert_non_null(todo);
    for (int n = 0; n < lives; n++) {
        struct world w;
        memset(&w, 0, sizeof(w));
        for (int step = 0; step < steps; step++) {
            todo_count = 0;
            every_step_of(&w, 0);
            every_step_of(&w, 1);
            chance = chance * UINT64_C(6364136223846793005) + 1442695040888963407;
            w = todo[(chance >> 33) % todo_count];
            if (step % 16 == 0)
                a_few_rounds_connect(w);
        }
    }
    free(todo);
}

/* In a crowd a repeat comes later, but by its setting at once where that is longer than the longest
 * one. */
static void a_crowd_is_given_time_to_answer(void **state)
{
    (void)state;
    assert_int_equal(tk_incarnation_patience(5, 1000, 1), 5);
    assert_int_equal(tk_incarnation_patience(5, 1000, 64), 320);
    assert_int_equal(tk_incarnation_patience(5, 1000, 4096), 1000);
    assert_int_equal(tk_incarnation_patience(60000, 1000, 1), 60000);
    assert_int_equal(tk_incarnation_patience(60000, 1000, 2), 60000);
}

/* The code is prefetched as a whole when a peer is first used, so it is in one section. */
static void its_code_is_in_the_section_of_a_first_use(void **state)
{
    const uintptr_t code[] = {(uintptr_t)tk_incarnation_act, (uintptr_t)tk_incarnation_came,
                              (uintptr_t)tk_handshake_next};
    for (size_t i = 0; i < sizeof(code) / sizeof(code[0]); i++)
        assert_in_range(code[i], (uintptr_t)__start_trunkline_first_use,
                        (uintptr_t)__stop_trunkline_first_use - 1);
    tk_first_use_prefetch(); /* which has no effect to be seen, wherever it is called */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(its_code_is_in_the_section_of_a_first_use),
    cmocka_unit_test(a_crowd_is_given_time_to_answer),
    cmocka_unit_test(every_order_ends_well),
    cmocka_unit_test(lives_of_chance_end_well),
};

UNIT_MAIN(tests)
