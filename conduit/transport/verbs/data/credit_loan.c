/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See credit_loan.h. Owns nothing, no lock, calls nothing. */
#include "config.h"

#include "transport/verbs/data/credit_loan.h"

enum {
    batch_max = 16,     /* saves doorbells; more saves little */
    backoff_max = 1024, /* in messages: at most one in a thousand carries a refused request */
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

/* The minimum of each connection: a buffer for a request, and those for its notices. */
static int each_min(const struct tk_loan_input *input)
{
    return 1 + input->notices;
}

int tk_loan_buffers_min(const struct tk_loan_input *input)
{
    return each_min(input) * input->conns + 1 + input->held;
}

int tk_loan_buffers_max(const struct tk_loan_input *input)
{
    return (input->credits_pp + input->notices) * input->conns + input->credits_total +
           input->held + batch_max - 1;
}

/* Half of a connection's share is its own; the other half may be lent and reclaimed. */
static int base_of(const struct tk_loan_input *input, int capacity)
{
    int each = input->conns > 0 ? capacity / input->conns - input->notices : input->credits_pp;
    if (each >= input->credits_pp)
        return input->credits_pp;
    return most_of(1, each / 2);
}

int tk_loan_conns_fit(const struct tk_loan_input *input)
{
    int fit = (input->buffers / 2 - 1 - input->held) / each_min(input);
    return most_of(1, least_of(input->conns, fit));
}

struct tk_loan_plan tk_loan_plan(const struct tk_loan_input *input)
{
    struct tk_loan_plan plan = {.conns = input->conns,
                                .most = input->credits_pp,
                                .buffers = least_of(input->buffers, tk_loan_buffers_max(input)),
                                .held = input->held,
                                .bounded = input->bounded,
                                .notices = input->notices};
    int spare = plan.buffers - tk_loan_buffers_min(input);
    plan.batch = 1 + least_of(batch_max - 1, spare / 8);
    spare -= plan.batch - 1;
    /* All that are useful if there are enough buffers; otherwise a quarter, because peers send to
     * us too. */
    int for_requests = (input->credits_pp - 1) * input->conns;
    plan.replies = 1 + least_of(input->credits_total - 1, most_of(spare / 4, spare - for_requests));
    plan.capacity = plan.buffers - plan.replies - (plan.batch - 1) - plan.held;
    plan.base = base_of(input, plan.capacity);
    return plan;
}

struct tk_loan_stock tk_loan_stock(const struct tk_loan_plan *plan, int conns)
{
    int further = most_of(0, conns - plan->conns) * (plan->base + plan->notices);
    int capacity = least_of((plan->most + plan->notices) * conns, plan->capacity + further);
    int replies = least_of(plan->replies, plan->most * conns);
    int bounded = conns > 0 ? plan->bounded : 0;
    return (struct tk_loan_stock){.buffers =
                                      capacity + replies + plan->batch - 1 + plan->held + bounded,
                                  .capacity = capacity};
}

/* ---- lender ---- */

enum tk_reserve_result tk_lender_reserve(struct tk_lender *lender, struct tk_account *account)
{
    int needed = lender->base + lender->notices;
    if (lender->promised + needed > lender->capacity)
        return lender->promised - lender->lent + needed > lender->capacity ? TK_RESERVE_FULL
                                                                           : TK_RESERVE_BUSY;
    lender->promised += needed;
    *account = (struct tk_account){.granted = lender->base};
    return TK_RESERVE_OK;
}

void tk_lender_release(struct tk_lender *lender, struct tk_account *account)
{
    if (account->granted == 0)
        return;
    lender->promised -= account->granted + lender->notices;
    lender->lent -= account->granted - lender->base;
    *account = (struct tk_account){.granted = 0};
}

int tk_lender_grant(struct tk_lender *lender, struct tk_account *account, int wanted)
{
    int count = least_of(wanted, lender->most - account->granted);
    count = most_of(0, least_of(count, lender->capacity - lender->promised));
    account->granted += count;
    lender->promised += count;
    lender->lent += count;
    return count;
}

static int reclaim(struct tk_account *account, int count)
{
    if (account->is_reclaiming || count <= 0)
        return 0;
    account->is_reclaiming = true;
    return count;
}

int tk_lender_reclaim(const struct tk_lender *lender, struct tk_account *account, int least)
{
    return reclaim(account, (account->granted - most_of(least, lender->base)) / 2);
}

int tk_lender_reclaim_all(const struct tk_lender *lender, struct tk_account *account)
{
    return reclaim(account, account->granted - lender->base);
}

void tk_lender_reclaim_end(struct tk_account *account)
{
    account->is_reclaiming = false;
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

bool tk_borrower_requests(struct tk_borrower *b, int credits, struct tk_loan_request *request)
{
    bool wants = b->wants && b->limit - b->given < b->most;
    if (b->patience > 0)
        b->patience--;
    if (b->is_requesting || b->owed > 0 || credits < 1 ||
        !(b->given > 0 || (wants && b->patience == 0)))
        return false;
    /* Either gives or wants: other senders lack the credits that it gives back. */
    *request = (struct tk_loan_request){.give = b->given};
    if (b->given == 0)
        request->want = least_of(b->limit, b->most - b->limit);
    return true;
}

void tk_borrower_requested(struct tk_borrower *b, const struct tk_loan_request *request)
{
    b->is_requesting = true;
    b->limit -= request->give;
    b->given -= request->give;
    if (request->want == 0)
        return;
    b->wants = false;
    b->backoff = b->backoff ? least_of(2 * b->backoff, backoff_max) : backoff_first;
    b->patience = b->backoff;
}

void tk_borrower_granted(struct tk_borrower *b, int count)
{
    b->is_requesting = false;
    b->limit += count;
    if (count > 0)
        b->backoff = b->patience = 0;
}

int tk_borrower_reclaimed(struct tk_borrower *b, int count, int credits, int *give)
{
    b->owed = most_of(0, least_of(count, b->limit - b->given - b->base));
    int taken = tk_borrower_collect(b, credits);
    *give = b->given;
    b->limit -= b->given;
    b->given = 0;
    return taken;
}
