/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See credit_loan.h. Owns nothing, no lock, calls nothing. */
#include "config.h"

#include "transport/verbs/data/credit_loan.h"

enum {
    batch_max = 16,     /* saves doorbells; more saves little */
    backoff_max = 1024, /* requests: then one message in a thousand asks in vain */
    backoff_first = 16
};

static int least_of(int a, int b)
{
    return a < b ? a : b;
}

static int most_of(int a, int b)
{
    return a > b ? a : b;
}

/* ---- plan ---- */

/* What each connection needs at least: a request's buffer, and those of its notices. */
static int each_min(const struct tk_lend_wish *wish)
{
    return 1 + wish->notices;
}

int tk_lend_buffers_min(const struct tk_lend_wish *wish)
{
    return each_min(wish) * wish->conns + 1 + wish->held;
}

int tk_lend_buffers_max(const struct tk_lend_wish *wish)
{
    return (wish->credits_pp + wish->notices) * wish->conns + wish->credits_total + wish->held +
           batch_max - 1;
}

/* Half of what connections could have is lent and called back; the other half is theirs. */
static int base_of(const struct tk_lend_wish *wish, int capacity)
{
    int each = wish->conns > 0 ? capacity / wish->conns - wish->notices : wish->credits_pp;
    if (each >= wish->credits_pp)
        return wish->credits_pp;
    return most_of(1, each / 2);
}

int tk_lend_conns_fit(const struct tk_lend_wish *wish)
{
    int fit = (wish->buffers / 2 - 1 - wish->held) / each_min(wish);
    return most_of(1, least_of(wish->conns, fit));
}

struct tk_lend_plan tk_lend_plan(const struct tk_lend_wish *wish)
{
    struct tk_lend_plan plan = {.conns = wish->conns,
                                .most = wish->credits_pp,
                                .buffers = least_of(wish->buffers, tk_lend_buffers_max(wish)),
                                .held = wish->held,
                                .notices = wish->notices};
    int spare = plan.buffers - tk_lend_buffers_min(wish);
    plan.batch = 1 + least_of(batch_max - 1, spare / 8);
    spare -= plan.batch - 1;
    /* All that makes sense where there is enough; else a quarter, as the others send to us too. */
    int for_requests = (wish->credits_pp - 1) * wish->conns;
    plan.replies = 1 + least_of(wish->credits_total - 1, most_of(spare / 4, spare - for_requests));
    plan.capacity = plan.buffers - plan.replies - (plan.batch - 1) - plan.held;
    plan.base = base_of(wish, plan.capacity);
    return plan;
}

struct tk_lend_stock tk_lend_stock(const struct tk_lend_plan *plan, int conns)
{
    int further = most_of(0, conns - plan->conns) * (plan->base + plan->notices);
    int capacity = least_of((plan->most + plan->notices) * conns, plan->capacity + further);
    int replies = least_of(plan->replies, plan->most * conns);
    return (struct tk_lend_stock){.buffers = capacity + replies + plan->batch - 1 + plan->held,
                                  .capacity = capacity};
}

/* ---- lender ---- */

enum tk_lend_answer tk_lender_reserve(struct tk_lender *lender, struct tk_account *account)
{
    int needed = lender->base + lender->notices;
    if (lender->promised + needed > lender->capacity)
        return lender->promised - lender->lent + needed > lender->capacity ? TK_LEND_NO
                                                                           : TK_LEND_BUSY;
    lender->promised += needed;
    *account = (struct tk_account){.granted = lender->base};
    return TK_LEND_YES;
}

void tk_lender_release(struct tk_lender *lender, struct tk_account *account)
{
    if (account->granted == 0)
        return;
    lender->promised -= account->granted + lender->notices;
    lender->lent -= account->granted - lender->base;
    *account = (struct tk_account){.granted = 0};
}

int tk_lender_lend(struct tk_lender *lender, struct tk_account *account, int wanted)
{
    int count = least_of(wanted, lender->most - account->granted);
    count = most_of(0, least_of(count, lender->capacity - lender->promised));
    account->granted += count;
    lender->promised += count;
    lender->lent += count;
    return count;
}

static int recall(struct tk_account *account, int count)
{
    if (account->is_recalled || count <= 0)
        return 0;
    account->is_recalled = true;
    return count;
}

int tk_lender_recall(const struct tk_lender *lender, struct tk_account *account, int least)
{
    return recall(account, (account->granted - most_of(least, lender->base)) / 2);
}

int tk_lender_recall_all(const struct tk_lender *lender, struct tk_account *account)
{
    return recall(account, account->granted - lender->base);
}

void tk_lender_answered(struct tk_account *account)
{
    account->is_recalled = false;
}

void tk_lender_returned(struct tk_lender *lender, struct tk_account *account, int count)
{
    account->granted -= count;
    lender->promised -= count;
    lender->lent -= count;
}

/* ---- borrower ---- */

void tk_borrower_open(struct tk_borrower *b, int base, int most)
{
    *b = (struct tk_borrower){.base = base, .most = most, .limit = base};
}

int tk_borrower_collect(struct tk_borrower *b, int credits)
{
    int count = least_of(b->owed, credits);
    b->owed -= count;
    b->given += count;
    return count;
}

bool tk_borrower_asks(struct tk_borrower *b, int credits, struct tk_ask *ask)
{
    bool wants = b->wants && b->limit - b->given < b->most;
    if (b->patience > 0)
        b->patience--;
    if (b->is_asking || b->owed > 0 || credits < 1 ||
        !(b->given > 0 || (wants && b->patience == 0)))
        return false;
    /* Not both at once: others are short of what is given back. */
    *ask = (struct tk_ask){.give = b->given};
    if (b->given == 0)
        ask->want = least_of(b->limit, b->most - b->limit);
    return true;
}

void tk_borrower_asked(struct tk_borrower *b, const struct tk_ask *ask)
{
    b->is_asking = true;
    b->limit -= ask->give;
    b->given -= ask->give;
    if (ask->want == 0)
        return;
    b->wants = false;
    b->backoff = b->backoff ? least_of(2 * b->backoff, backoff_max) : backoff_first;
    b->patience = b->backoff;
}

void tk_borrower_granted(struct tk_borrower *b, int count)
{
    b->is_asking = false;
    b->limit += count;
    if (count > 0)
        b->backoff = b->patience = 0;
}

int tk_borrower_recalled(struct tk_borrower *b, int count, int credits, int *give)
{
    b->owed = most_of(0, least_of(count, b->limit - b->given - b->base));
    int taken = tk_borrower_collect(b, credits);
    *give = b->given;
    b->limit -= b->given;
    b->given = 0;
    return taken;
}
