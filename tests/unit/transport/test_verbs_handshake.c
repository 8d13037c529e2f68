/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How two ranks connect by datagrams: searches all orders in which they begin, repeat and receive
 * any datagram sent so far, once, several times or never (so loss, duplication, delay and
 * reordering are included), with messages over the connection in between, and either rank dead from
 * any moment on. */
#include "config.h"

#include "transport/verbs/conn/handshake.h"
#include "unit.h"

enum { ranks = 2 };

/* Small enough that a number names it. */
struct rank {
    uint8_t state;    /* enum tk_handshake_state */
    uint8_t opened;   /* times */
    uint8_t readied;  /* times */
    uint8_t sent;     /* a bit for each enum tk_handshake_message: from now on it may come */
    uint8_t has_used; /* it has sent over the connection: that may come too */
};

struct world {
    struct rank at[ranks];
};

enum { bits_state = 2, bits_times = 2, bits_sent = 4, bits_used = 1 };
enum { rank_bits = bits_state + 2 * bits_times + bits_sent + bits_used };

static uint32_t name_of(const struct world *w)
{
    uint32_t name = 0;
    for (int i = 0; i < ranks; i++) {
        const struct rank *r = &w->at[i];
        name = name << bits_state | r->state;
        name = name << bits_times | r->opened;
        name = name << bits_times | r->readied;
        name = name << bits_sent | r->sent;
        name = name << bits_used | r->has_used;
    }
    return name;
}

static uint8_t seen[1u << (2 * rank_bits - 3)];
static struct world todo[1 << 16];
static size_t todo_count, worlds;

static void find(const struct world *w)
{
    uint32_t name = name_of(w);
    if (seen[name / 8] & 1 << name % 8)
        return;
    seen[name / 8] |= (uint8_t)(1 << name % 8);
    assert_true(todo_count < sizeof(todo) / sizeof(todo[0]));
    todo[todo_count++] = *w;
    worlds++;
}

/* ---- what must always hold ---- */

/* A rank that is up sends, so the other end must be ready; otherwise the packet is dropped and the
 * device waits for its long timeout. */
static void check(const struct world *w)
{
    for (int i = 0; i < ranks; i++) {
        const struct rank *r = &w->at[i], *other = &w->at[1 - i];
        assert_in_range(r->opened, 0, 1);
        assert_in_range(r->readied, 0, r->opened);
        assert_true(r->state == TK_HANDSHAKE_IDLE || r->opened == 1);
        assert_true(r->state < TK_HANDSHAKE_ANSWERED || r->readied == 1);
        assert_true(r->state != TK_HANDSHAKE_UP || other->readied == 1);
        assert_true(!r->has_used || other->opened == 1); /* its receive buffers are posted */
    }
}

static struct world act(const struct world *w, int i, enum tk_handshake_event event)
{
    struct world next = *w;
    struct rank *r = &next.at[i];
    struct tk_handshake_step step =
        tk_handshake_next((enum tk_handshake_state)r->state, event, i == 0);
    r->opened = (uint8_t)(r->opened + step.opens);
    r->readied = (uint8_t)(r->readied + step.connects);
    if (step.connects)
        assert_int_equal(next.at[1 - i].opened, 1); /* with its numbers */
    if (step.sends)
        r->sent |= (uint8_t)(1 << step.sends);
    r->state = (uint8_t)step.next;
    return next;
}

static void every_step_of(const struct world *w, int i)
{
    const struct rank *other = &w->at[1 - i];
    struct world next = act(w, i, TK_HANDSHAKE_WANTED);
    if (w->at[i].state == TK_HANDSHAKE_IDLE)
        find(&next);
    if (w->at[i].state == TK_HANDSHAKE_ASKING || w->at[i].state == TK_HANDSHAKE_ANSWERED) {
        next = act(w, i, TK_HANDSHAKE_TIMED);
        find(&next);
    }
    for (int m = TK_HANDSHAKE_REQUEST; m < tk_handshake_messages; m++) {
        if (!(other->sent & 1 << m))
            continue;
        next = act(w, i, tk_handshake_came((enum tk_handshake_message)m));
        find(&next);
    }
    if (other->has_used && w->at[i].readied) {
        next = act(w, i, TK_HANDSHAKE_PROVED);
        find(&next);
    }
    if (w->at[i].state == TK_HANDSHAKE_UP) {
        next = *w;
        next.at[i].has_used = 1;
        find(&next);
    }
}

/* ---- and what must be possible from everywhere ---- */

static bool is_through(const struct world *w)
{
    return w->at[0].state == TK_HANDSHAKE_UP && w->at[1].state == TK_HANDSHAKE_UP;
}

/* From any state a few rounds must connect the ranks, if each repeats its unanswered message and
 * these arrive. Earlier messages are lost. */
static void a_few_rounds_connect(struct world w)
{
    enum { rounds = 3 };
    if (w.at[0].state == TK_HANDSHAKE_IDLE && w.at[1].state == TK_HANDSHAKE_IDLE)
        return;
    for (int n = 0; n < rounds && !is_through(&w); n++)
        for (int i = 0; i < ranks; i++) {
            w.at[0].sent = w.at[1].sent = 0;
            w = act(&w, i, TK_HANDSHAKE_TIMED);
            for (int hop = 0; hop < 3; hop++) {
                int to = (hop + 1 + i) % ranks;
                uint8_t sent = w.at[1 - to].sent;
                w.at[1 - to].sent = 0;
                for (int m = TK_HANDSHAKE_REQUEST; m < tk_handshake_messages; m++)
                    if (sent & 1 << m)
                        w = act(&w, to, tk_handshake_came((enum tk_handshake_message)m));
            }
        }
    assert_true(is_through(&w));
}

static void every_order_ends_well(void **state)
{
    struct world begin = {.at = {{.state = TK_HANDSHAKE_IDLE}}};
    find(&begin);
    while (todo_count > 0) {
        struct world w = todo[--todo_count];
        check(&w);
        every_step_of(&w, 0); /* where only one of them goes on the other is dead or computes */
        every_step_of(&w, 1);
        a_few_rounds_connect(w);
    }
    assert_in_range(worlds, 20, 100); /* what was sent may come at any time: there are no more */
}

/* The asker knows by the ACCEPT that the other end is ready; the other end needs a proof. */
static void the_one_that_is_asked_waits_for_proof(void **state)
{
    struct tk_handshake_step step =
        tk_handshake_next(TK_HANDSHAKE_IDLE, TK_HANDSHAKE_CAME_REQUEST, true);
    assert_int_equal(step.next, TK_HANDSHAKE_ANSWERED);
    step = tk_handshake_next(TK_HANDSHAKE_ANSWERED, TK_HANDSHAKE_PROVED, true);
    assert_int_equal(step.next, TK_HANDSHAKE_UP);
    step = tk_handshake_next(TK_HANDSHAKE_ASKING, TK_HANDSHAKE_PROVED, true);
    assert_int_equal(step.next, TK_HANDSHAKE_ASKING);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(every_order_ends_well),
    cmocka_unit_test(the_one_that_is_asked_waits_for_proof),
};

UNIT_MAIN(tests)
