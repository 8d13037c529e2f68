/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The rules of credit_loan.h, for two and three senders with few credits: tries every order in
 * which messages can be sent and arrive, also with a send queue that may be full at any time. In
 * every state there are no more credits than buffers, counting those in flight; from every state
 * the senders reach a final state in which each has its reserved credits and owes none; and a
 * sender that continues while the others rest gets its share. A connection with nothing in flight
 * may be closed and opened again at any time; others then get its credits, and it finds space
 * again. The time between two requests is not modelled: the search tries both, to send one and not
 * to. Single-threaded. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "transport/verbs/data/credit_loan.h"
#include "unit.h"

enum { senders_max = 3, fifo_max = 8 };
enum to_receiver { REQUEST, ASK, RETURN };
enum to_sender { REPLY, GRANT, RECALL };

struct fifo {
    uint8_t count;
    uint8_t at[fifo_max];
};

struct sender {
    int8_t credits; /* unused */
    int8_t granted, is_reclaiming;
    int8_t limit, owed, given, wants, is_requesting;
    struct fifo out, in;
};

struct state {
    struct sender of[senders_max];
};

static struct {
    int senders, most, base, notices, capacity;
} rules;

/* ---- messages ---- */

static uint8_t message(int kind, int a, int b)
{
    return (uint8_t)(kind << 6 | a << 3 | b);
}

static void push(struct fifo *fifo, uint8_t m)
{
    assert_true(fifo->count < fifo_max);
    fifo->at[fifo->count++] = m;
}

static uint8_t pop(struct fifo *fifo)
{
    uint8_t m = fifo->at[0];
    memmove(fifo->at, fifo->at + 1, fifo_max - 1);
    fifo->at[fifo_max - 1] = 0;
    fifo->count--;
    return m;
}

/* ---- conversion between the packed state and the rules ---- */

static bool is_open(const struct sender *s)
{
    return s->granted > 0;
}

static struct tk_lender lender_of(const struct state *s)
{
    struct tk_lender l = {.capacity = rules.capacity,
                          .base = rules.base,
                          .most = rules.most,
                          .notices = rules.notices};
    for (int i = 0; i < rules.senders; i++) {
        if (!is_open(&s->of[i]))
            continue;
        l.promised += s->of[i].granted + rules.notices;
        l.lent += s->of[i].granted - rules.base;
    }
    return l;
}

static struct tk_account account_of(const struct sender *s)
{
    return (struct tk_account){.granted = s->granted, .is_reclaiming = s->is_reclaiming};
}

static void account_save(struct sender *s, const struct tk_account *a)
{
    s->granted = (int8_t)a->granted;
    s->is_reclaiming = a->is_reclaiming;
}

static struct tk_borrower borrower_of(const struct sender *s)
{
    return (struct tk_borrower){.base = rules.base,
                                .most = rules.most,
                                .limit = s->limit,
                                .owed = s->owed,
                                .given = s->given,
                                .wants = s->wants,
                                .is_requesting = s->is_requesting};
}

static void borrower_save(struct sender *s, const struct tk_borrower *b)
{
    s->limit = (int8_t)b->limit;
    s->owed = (int8_t)b->owed;
    s->given = (int8_t)b->given;
    s->wants = b->wants;
    s->is_requesting = b->is_requesting;
}

/* ---- what happens ---- */

/* As tk_loan_step(). */
static void step(struct sender *s, bool has_space)
{
    struct tk_borrower b = borrower_of(s);
    struct tk_loan_request ask;
    s->credits -= (int8_t)tk_borrower_collect(&b, s->credits);
    if (has_space && tk_borrower_requests(&b, s->credits, &ask)) {
        s->credits--;
        tk_borrower_requested(&b, &ask);
        push(&s->out, message(ASK, ask.want, ask.give));
    }
    borrower_save(s, &b);
}

static void send_request(struct sender *s)
{
    struct tk_borrower b = borrower_of(s);
    if (s->credits > 0) {
        s->credits--;
        push(&s->out, message(REQUEST, 0, 0));
        return;
    }
    tk_borrower_starves(&b);
    borrower_save(s, &b);
}

static void call_back(struct state *s, int asker, bool has_space)
{
    int least = s->of[asker].granted;
    for (int i = 0; i < rules.senders; i++) {
        struct tk_lender l = lender_of(s);
        struct tk_account a = account_of(&s->of[i]);
        int count = i == asker ? 0 : tk_lender_reclaim(&l, &a, least);
        if (count > 0 && has_space)
            push(&s->of[i].in, message(RECALL, count, 0));
        if (count > 0 && !has_space)
            tk_lender_reclaim_end(&a);
        account_save(&s->of[i], &a);
    }
}

/* Reclaims for a connection that waits for buffers. */
static bool call_all_back(struct state *s, int i)
{
    struct tk_lender l = lender_of(s);
    struct tk_account a = account_of(&s->of[i]);
    int count = tk_lender_reclaim_all(&l, &a);
    if (count > 0)
        push(&s->of[i].in, message(RECALL, count, 0));
    account_save(&s->of[i], &a);
    return count > 0;
}

static void receiver_gets(struct state *s, int i, bool has_space)
{
    struct sender *from = &s->of[i];
    struct tk_lender l = lender_of(s);
    struct tk_account a = account_of(from);
    uint8_t m = pop(&from->out);
    int kind = m >> 6, count = m >> 3 & 7, give = m & 7;
    if (kind == REQUEST) {
        push(&from->in, message(REPLY, 0, 0));
    } else if (kind == RETURN) {
        tk_lender_reclaim_end(&a);
        tk_lender_returned(&l, &a, count);
    } else {
        tk_lender_returned(&l, &a, give);
        give = tk_lender_grant(&l, &a, count);
        push(&from->in, message(GRANT, give, 0));
    }
    account_save(from, &a);
    if (kind == ASK && give < count)
        call_back(s, i, has_space);
}

static void sender_gets(struct sender *s, bool has_space)
{
    struct tk_borrower b = borrower_of(s);
    uint8_t m = pop(&s->in);
    int kind = m >> 6, count = m >> 3 & 7, give;
    if (kind == RECALL) {
        s->credits -= (int8_t)tk_borrower_reclaimed(&b, count, s->credits, &give);
        borrower_save(s, &b);
        push(&s->out, message(RETURN, give, 0));
        return;
    }
    s->credits++;
    if (kind == GRANT) {
        s->credits += (int8_t)count;
        tk_borrower_granted(&b, count);
        borrower_save(s, &b);
    }
    step(s, has_space);
}

/* The conditions of tk_loan_hold(), and the balance of credits. */
static bool may_close(const struct sender *s)
{
    return is_open(s) && s->out.count + s->in.count + s->is_requesting + s->is_reclaiming == 0;
}

static void close_one(struct state *s, int i)
{
    struct tk_lender l = lender_of(s), after;
    struct tk_account a = account_of(&s->of[i]);
    tk_lender_release(&l, &a);
    s->of[i] = (struct sender){.granted = 0};
    after = lender_of(s);
    assert_int_equal(l.promised, after.promised);
    assert_int_equal(l.lent, after.lent);
}

static enum tk_reserve_result open_one(struct state *s, int i)
{
    struct tk_lender l = lender_of(s);
    struct sender *one = &s->of[i];
    struct tk_account a;
    struct tk_borrower b;
    enum tk_reserve_result answer = tk_lender_reserve(&l, &a);
    if (answer != TK_RESERVE_OK)
        return answer;
    tk_borrower_open(&b, rules.base, rules.most);
    account_save(one, &a);
    borrower_save(one, &b);
    one->credits = (int8_t)rules.base;
    return answer;
}

/* ---- what must hold ---- */

/* The credits of this sender that the receiver must count; *way: those in flight, which the sender
 * does not count. */
static int possession(const struct sender *s, int *way)
{
    int sum = s->credits + s->given;
    *way = 0;
    for (int i = 0; i < s->out.count; i++) {
        int kind = s->out.at[i] >> 6;
        sum += kind != RETURN;
        *way += kind == RETURN ? s->out.at[i] >> 3 & 7 : s->out.at[i] & 7;
    }
    for (int i = 0; i < s->in.count; i++) {
        int kind = s->in.at[i] >> 6;
        sum += kind != RECALL;
        *way += kind == GRANT ? s->in.at[i] >> 3 & 7 : 0;
    }
    return sum + *way;
}

static void check(const struct state *s)
{
    int promised = 0;
    for (int i = 0; i < rules.senders; i++) {
        const struct sender *one = &s->of[i];
        int way;
        if (!is_open(one))
            continue;
        assert_int_equal(possession(one, &way), one->granted);
        assert_int_equal(one->limit + way, one->granted);
        assert_in_range(one->granted, rules.base, rules.most);
        assert_true(one->credits >= 0 && one->owed >= 0 && one->given >= 0);
        assert_true(one->limit - one->given - one->owed >= rules.base);
        promised += one->granted + rules.notices;
    }
    assert_true(promised <= rules.capacity);
}

static bool deliver_one(struct state *s)
{
    for (int i = 0; i < rules.senders; i++) {
        struct sender *one = &s->of[i];
        if (one->out.count > 0)
            receiver_gets(s, i, true);
        else if (one->in.count > 0)
            sender_gets(one, true);
        else if (one->given > 0 && !one->is_requesting && one->credits > 0)
            step(one, true); /* as polls do while it is due */
        else
            continue;
        return true;
    }
    return false;
}

static void settle(struct state *s)
{
    int rounds = 0;
    while (deliver_one(s))
        assert_true(++rounds < 1000);
    for (int i = 0; i < rules.senders; i++) {
        const struct sender *one = &s->of[i];
        assert_int_equal(one->credits, one->granted);
        assert_int_equal(one->owed + one->given + one->is_requesting + one->is_reclaiming, 0);
    }
    check(s);
}

/* One sender continues alone: at the end no other has two more credits. */
static void check_share(struct state s)
{
    for (int i = 0; i < rules.senders; i++) {
        struct state t = s;
        if (!is_open(&t.of[i]))
            continue;
        for (int round = 0; round < 20; round++) {
            for (int k = 0; k <= rules.most; k++)
                send_request(&t.of[i]);
            settle(&t);
        }
        for (int j = 0; j < rules.senders; j++)
            assert_true(t.of[j].granted <= t.of[i].granted + 1);
        assert_true(t.of[i].granted == rules.most || lender_of(&t).promised == rules.capacity);
    }
}

/* A connection waits only for lent credits, if it waits. */
static void check_room(struct state s)
{
    for (int i = 0; i < rules.senders; i++) {
        struct state t = s;
        int rounds = 0;
        while (!is_open(&t.of[i]) && open_one(&t, i) != TK_RESERVE_OK) {
            assert_true(++rounds <= 2);
            for (int j = 0; j < rules.senders; j++)
                call_all_back(&t, j);
            settle(&t);
        }
    }
}

/* ---- all states ---- */

static struct {
    struct state *at;
    size_t count, space;
    size_t *table; /* number of the state, and 1; 0: free */
    size_t mask;
} seen;

static uint64_t hash(const struct state *s)
{
    const unsigned char *bytes = (const void *)s;
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < sizeof(*s); i++)
        h = (h ^ bytes[i]) * 1099511628211u;
    return h ^ h >> 29;
}

static void add(const struct state *s)
{
    size_t at = hash(s) & seen.mask;
    for (; seen.table[at]; at = (at + 1) & seen.mask)
        if (!memcmp(&seen.at[seen.table[at] - 1], s, sizeof(*s)))
            return;
    assert_true(seen.count < seen.space);
    seen.at[seen.count++] = *s;
    seen.table[at] = seen.count;
}

static void try_life(const struct state *from, int i)
{
    struct state s = *from;
    if (may_close(&s.of[i])) {
        close_one(&s, i);
        add(&s);
    } else if (!is_open(&s.of[i]) && open_one(&s, i) == TK_RESERVE_OK) {
        add(&s);
    }
}

static void try_all(const struct state *from)
{
    for (int i = 0; i < rules.senders; i++) {
        struct state s = *from;
        try_life(from, i);
        if (!is_open(&s.of[i]))
            continue;
        send_request(&s.of[i]);
        add(&s);
        for (int has_space = 0; has_space < 2; has_space++) {
            if (from->of[i].out.count > 0) {
                s = *from;
                receiver_gets(&s, i, has_space);
                add(&s);
            }
            if (from->of[i].in.count > 0) {
                s = *from;
                sender_gets(&s.of[i], has_space);
                add(&s);
            }
        }
        s = *from;
        if (call_all_back(&s, i))
            add(&s);
        if (from->of[i].given > 0) {
            s = *from;
            step(&s.of[i], true);
            add(&s);
        }
    }
}

static void search(int senders, int most, int base, int capacity)
{
    struct state s = {0};
    rules.notices = 1; /* additional ones change nothing */
    rules.senders = senders, rules.most = most, rules.base = base, rules.capacity = capacity;
    for (int i = 0; i < senders; i++)
        assert_int_equal(open_one(&s, i), TK_RESERVE_OK);
    seen.count = 0;
    memset(seen.table, 0, (seen.mask + 1) * sizeof(*seen.table));
    add(&s);
    for (size_t i = 0; i < seen.count; i++) {
        s = seen.at[i];
        check(&s);
        try_all(&s);
        settle(&s);
        check_room(s);
        if (i % 64 == 0)
            check_share(s);
    }
    print_message("%d senders, %d to %d credits, %d buffers: %zu states\n", senders, base, most,
                  capacity, seen.count);
}

static void no_order_lends_what_is_not_there(void **state)
{
    seen.space = 1 << 20, seen.mask = (1 << 21) - 1;
    seen.at = malloc(seen.space * sizeof(*seen.at));
    seen.table = malloc((seen.mask + 1) * sizeof(*seen.table));
    assert_true(seen.at && seen.table);
    for (int extra = 0; extra <= 3; extra++)
        search(2, 3, 1, 4 + extra);
    search(2, 4, 1, 7);
    search(2, 4, 2, 7);
    search(3, 2, 1, 7);
    free(seen.at);
    free(seen.table);
}

/* ---- reserving, and how a queue is divided ---- */

static void a_connection_waits_for_loans_and_not_for_reserved_credits(void **state)
{
    struct tk_lender l = {.capacity = 7, .base = 1, .most = 4, .notices = 1};
    struct tk_account a[4] = {{0}};
    assert_int_equal(tk_lender_reserve(&l, &a[0]), TK_RESERVE_OK);
    assert_int_equal(tk_lender_reserve(&l, &a[1]), TK_RESERVE_OK);
    assert_int_equal(tk_lender_grant(&l, &a[0], 9), 3);
    assert_int_equal(tk_lender_reserve(&l, &a[2]), TK_RESERVE_BUSY);
    assert_int_equal(tk_lender_reclaim_all(&l, &a[0]), 3);
    assert_int_equal(tk_lender_reclaim_all(&l, &a[0]), 0); /* once at a time */
    tk_lender_reclaim_end(&a[0]);
    tk_lender_returned(&l, &a[0], 2);
    assert_int_equal(tk_lender_reserve(&l, &a[2]), TK_RESERVE_OK);
    assert_int_equal(tk_lender_reserve(&l, &a[3]), TK_RESERVE_FULL);
    tk_lender_release(&l, &a[0]);
    assert_int_equal(tk_lender_reserve(&l, &a[3]), TK_RESERVE_OK);
    assert_int_equal(l.promised, 6);
    assert_int_equal(l.lent, 0);
}

/* Every number of buffers from the minimum on serves all connections, and no buffer is unused. */
static void every_legal_number_of_buffers_serves_all(void **state)
{
    for (int conns = 1; conns < 200; conns += 7)
        for (int held = 1; held < 20; held += 9) {
            struct tk_loan_input input = {.conns = conns,
                                          .credits_pp = 12,
                                          .credits_total = 256,
                                          .notices = held % 4 == 1 ? 3 : 1,
                                          .held = held};
            int least = tk_loan_buffers_min(&input), most = tk_loan_buffers_max(&input);
            for (input.buffers = least; input.buffers <= most + 1; input.buffers++) {
                struct tk_loan_plan p = tk_loan_plan(&input);
                assert_in_range(p.base, 1, 12);
                assert_in_range(p.replies, 1, 256);
                assert_true((p.base + p.notices) * conns <= p.capacity);
                assert_int_equal(p.buffers, input.buffers < most ? input.buffers : most);
                assert_int_equal(p.capacity + p.replies + p.batch - 1 + p.held, p.buffers);
            }
            assert_int_equal(tk_loan_plan(&input).base, 12);
            assert_int_equal(tk_loan_plan(&input).replies, 256);
        }
}

static void check_stock(const struct tk_loan_input *input, int peers)
{
    const struct tk_loan_plan p = tk_loan_plan(input);
    struct tk_loan_stock before = {.buffers = p.held + p.batch - 1};
    for (int n = 0; n <= peers; n++) {
        struct tk_loan_stock s = tk_loan_stock(&p, n);
        int in_flight = n * p.most < p.replies ? n * p.most : p.replies;
        assert_true(s.capacity >= (p.base + p.notices) * n &&
                    s.capacity <= (p.most + p.notices) * n);
        assert_true(s.capacity >= before.capacity && s.buffers >= before.buffers);
        assert_int_equal(s.buffers, s.capacity + in_flight + p.batch - 1 + p.held);
        /* The stock is what all may use; further connections take nothing from the lent credits. */
        if (n <= p.conns)
            assert_true(s.buffers <= p.buffers);
        else
            assert_int_equal(s.buffers - before.buffers, p.base + p.notices);
        before = s;
    }
}

/* For any number of connections on demand, planned or not. */
static void each_connection_adds_what_it_needs(void **state)
{
    for (int peers = 1; peers < 40; peers++)
        for (int count = 2; count < 200; count += 3) {
            struct tk_loan_input input = {.buffers = count,
                                          .conns = peers,
                                          .credits_pp = 12,
                                          .credits_total = 12 * peers < 256 ? 12 * peers : 256,
                                          .notices = count % 2 ? 1 : 3,
                                          .held = 1};
            input.conns = tk_loan_conns_fit(&input);
            if (input.buffers < tk_loan_buffers_min(&input))
                input.buffers = tk_loan_buffers_min(&input);
            check_stock(&input, peers);
        }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(no_order_lends_what_is_not_there),
    cmocka_unit_test(a_connection_waits_for_loans_and_not_for_reserved_credits),
    cmocka_unit_test(every_legal_number_of_buffers_serves_all),
    cmocka_unit_test(each_connection_adds_what_it_needs),
};

UNIT_MAIN(tests)
