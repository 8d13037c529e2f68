/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See incarnation.h. No state, no lock; must not touch a device. */
#include "config.h"

#include "base/first_use.h"
#include "transport/verbs/conn/handshake.h"
#include "transport/verbs/conn/incarnation.h"

static struct tk_incarnation_word word_of(const struct tk_incarnation *incarnation, unsigned what)
{
    return (struct tk_incarnation_word){
        .what = (uint8_t)what, .epoch = incarnation->epoch, .number = incarnation->number};
}

static struct tk_incarnation_step say(const struct tk_incarnation *incarnation, unsigned what)
{
    return (struct tk_incarnation_step){.sends = word_of(incarnation, what)};
}

static struct tk_incarnation_step answer(const struct tk_incarnation *incarnation, unsigned what,
                                         uint32_t number)
{
    struct tk_incarnation_step step = say(incarnation, what);
    step.sends.number = number;
    return step;
}

static struct tk_incarnation_step nothing(void)
{
    return (struct tk_incarnation_step){.sends.what = TK_HANDSHAKE_SILENCE};
}

/* ---- opening: as in handshake.c ---- */

static struct tk_incarnation_step open_step(struct tk_incarnation *incarnation,
                                            enum tk_handshake_event event, bool is_lower)
{
    struct tk_handshake_step open =
        tk_handshake_next((enum tk_handshake_state)incarnation->state, event, is_lower);
    incarnation->state = (uint8_t)open.next;
    struct tk_incarnation_step step = say(incarnation, open.sends);
    step.opens = open.opens;
    step.connects = open.connects;
    step.thaws = open.next == TK_HANDSHAKE_UP;
    return step;
}

/* ---- closing ---- */

static struct tk_incarnation_step close_end(struct tk_incarnation *incarnation, uint32_t epoch)
{
    incarnation->state = TK_INCARNATION_CLOSING;
    incarnation->epoch = epoch;
    return (struct tk_incarnation_step){.closes = true};
}

static struct tk_incarnation_step thaw(struct tk_incarnation *incarnation)
{
    incarnation->state = TK_INCARNATION_UP;
    return (struct tk_incarnation_step){.thaws = true};
}

static struct tk_incarnation_step agree(struct tk_incarnation *incarnation, uint32_t number)
{
    incarnation->state = TK_INCARNATION_AGREED;
    incarnation->number = number;
    return say(incarnation, TK_INCARNATION_AGREE);
}

/* The other end asks only while it sends nothing, so a freeze for an earlier question ends here. */
static struct tk_incarnation_step refuse(struct tk_incarnation *incarnation, uint32_t number)
{
    bool is_parting = incarnation->state == TK_INCARNATION_PARTING;
    struct tk_incarnation_step step = is_parting ? nothing() : thaw(incarnation);
    step.sends = answer(incarnation, TK_INCARNATION_REFUSE, number).sends;
    return step;
}

/* If both ask at once, the lower rank's question counts. */
static struct tk_incarnation_step came_part(struct tk_incarnation *incarnation,
                                            const struct tk_incarnation_word *word,
                                            const struct tk_incarnation_facts *facts)
{
    switch (incarnation->state) {
    case TK_INCARNATION_PARTING:
        if (facts->is_lower)
            return nothing();
        break;
    case TK_INCARNATION_AGREED:
        if (incarnation->number == word->number)
            return say(incarnation, TK_INCARNATION_AGREE);
        if ((int32_t)(word->number - incarnation->number) < 0)
            return nothing(); /* late: a later question was answered with yes */
        break;
    case TK_INCARNATION_ANSWERED: /* the other end asks to close, so it is up */
    case TK_INCARNATION_UP:
        break;
    default:
        return nothing();
    }
    return facts->agrees ? agree(incarnation, word->number) : refuse(incarnation, word->number);
}

static struct tk_incarnation_step came_agree(struct tk_incarnation *incarnation,
                                             const struct tk_incarnation_word *word)
{
    if (incarnation->state != TK_INCARNATION_PARTING || incarnation->number != word->number)
        return answer(incarnation, TK_INCARNATION_CANCEL, word->number);
    struct tk_incarnation_step step = close_end(incarnation, incarnation->epoch + 1);
    step.sends = word_of(incarnation, TK_INCARNATION_OVER);
    return step;
}

static struct tk_incarnation_step came_answer(struct tk_incarnation *incarnation,
                                              const struct tk_incarnation_word *word,
                                              enum tk_incarnation_state waiting)
{
    if (incarnation->state != waiting || incarnation->number != word->number)
        return nothing();
    return thaw(incarnation);
}

/* Closes the queue pairs made for this connection, which frees space for other peers. */
static struct tk_incarnation_step came_busy(struct tk_incarnation *incarnation)
{
    return incarnation->state == TK_INCARNATION_ASKING
               ? close_end(incarnation, incarnation->epoch + 1)
               : nothing();
}

/* ---- datagrams ---- */

static struct tk_incarnation_step came_request(struct tk_incarnation *incarnation,
                                               const struct tk_incarnation_facts *facts)
{
    if (incarnation->state == TK_INCARNATION_IDLE && !facts->has_space)
        return say(incarnation, TK_INCARNATION_BUSY);
    return open_step(incarnation, TK_HANDSHAKE_CAME_REQUEST, facts->is_lower);
}

static bool is_opening(const struct tk_incarnation *incarnation)
{
    return incarnation->state <= TK_INCARNATION_UP;
}

TK_FIRST_USE static struct tk_incarnation_step came_now(struct tk_incarnation *incarnation,
                                                        const struct tk_incarnation_word *word,
                                                        const struct tk_incarnation_facts *facts)
{
    switch (word->what) {
    case TK_HANDSHAKE_REQUEST:
        return is_opening(incarnation) ? came_request(incarnation, facts) : nothing();
    case TK_HANDSHAKE_ACCEPT:
        if (incarnation->state == TK_INCARNATION_IDLE ||
            incarnation->state == TK_INCARNATION_CLOSING)
            return nothing();
        return is_opening(incarnation)
                   ? open_step(incarnation, TK_HANDSHAKE_CAME_ACCEPT, facts->is_lower)
                   : say(incarnation, TK_HANDSHAKE_CONFIRM);
    case TK_HANDSHAKE_CONFIRM:
        return incarnation->state == TK_INCARNATION_ANSWERED
                   ? open_step(incarnation, TK_HANDSHAKE_CAME_CONFIRM, facts->is_lower)
                   : nothing();
    case TK_INCARNATION_BUSY:
        return came_busy(incarnation);
    case TK_INCARNATION_PART:
        return came_part(incarnation, word, facts);
    case TK_INCARNATION_AGREE:
        return came_agree(incarnation, word);
    case TK_INCARNATION_REFUSE:
        return came_answer(incarnation, word, TK_INCARNATION_PARTING);
    case TK_INCARNATION_CANCEL:
        return came_answer(incarnation, word, TK_INCARNATION_AGREED);
    default:
        return nothing();
    }
}

/* Answers only a rank that waits for an answer; otherwise two ends might answer each other for
 * ever. */
static struct tk_incarnation_step came_late(const struct tk_incarnation *incarnation,
                                            const struct tk_incarnation_word *word)
{
    bool waits = word->what == TK_HANDSHAKE_REQUEST || word->what == TK_HANDSHAKE_ACCEPT ||
                 word->what == TK_INCARNATION_PART || word->what == TK_INCARNATION_AGREE;
    return waits ? say(incarnation, TK_INCARNATION_OVER) : nothing();
}

/* The other end is ahead: our question, or our answer, belongs to a connection that it has
 * closed. */
static struct tk_incarnation_step came_early(struct tk_incarnation *incarnation,
                                             const struct tk_incarnation_word *word,
                                             const struct tk_incarnation_facts *facts)
{
    struct tk_incarnation_word again = *word;
    switch (incarnation->state) {
    case TK_INCARNATION_ANSWERED:
    case TK_INCARNATION_AGREED:
        return close_end(incarnation, word->epoch);
    case TK_INCARNATION_ASKING: {
        /* Our queue pairs were never connected, so the next connection can use them. */
        incarnation->epoch = word->epoch;
        struct tk_incarnation_step step = came_now(incarnation, &again, facts);
        if (incarnation->state == TK_INCARNATION_ASKING)
            step.sends = word_of(incarnation, TK_HANDSHAKE_REQUEST);
        return step;
    }
    case TK_INCARNATION_IDLE:
        incarnation->epoch = word->epoch;
        return came_now(incarnation, &again, facts);
    case TK_INCARNATION_CLOSING:
        incarnation->epoch = word->epoch;
        return nothing();
    default: /* no rank closes without our consent */
        return nothing();
    }
}

TK_FIRST_USE struct tk_incarnation_step
tk_incarnation_came(struct tk_incarnation *incarnation, const struct tk_incarnation_word *word,
                    const struct tk_incarnation_facts *facts)
{
    int32_t ahead = (int32_t)(word->epoch - incarnation->epoch);
    if (ahead < 0)
        return came_late(incarnation, word);
    return ahead > 0 ? came_early(incarnation, word, facts) : came_now(incarnation, word, facts);
}

/* ---- what happens here ---- */

static struct tk_incarnation_step repeat(const struct tk_incarnation *incarnation)
{
    switch (incarnation->state) {
    case TK_INCARNATION_ASKING:
        return say(incarnation, TK_HANDSHAKE_REQUEST);
    case TK_INCARNATION_ANSWERED:
        return say(incarnation, TK_HANDSHAKE_ACCEPT);
    case TK_INCARNATION_PARTING:
        return say(incarnation, TK_INCARNATION_PART);
    case TK_INCARNATION_AGREED:
        return say(incarnation, TK_INCARNATION_AGREE);
    default:
        return nothing();
    }
}

TK_FIRST_USE struct tk_incarnation_step tk_incarnation_act(struct tk_incarnation *incarnation,
                                                           enum tk_incarnation_event event,
                                                           const struct tk_incarnation_facts *facts)
{
    switch (event) {
    case TK_INCARNATION_WANTED:
        return incarnation->state == TK_INCARNATION_IDLE
                   ? open_step(incarnation, TK_HANDSHAKE_WANTED, facts->is_lower)
                   : nothing();
    case TK_INCARNATION_PROVED:
        if (incarnation->state == TK_INCARNATION_ANSWERED)
            return open_step(incarnation, TK_HANDSHAKE_PROVED, facts->is_lower);
        return incarnation->state == TK_INCARNATION_AGREED ||
                       incarnation->state == TK_INCARNATION_PARTING
                   ? thaw(incarnation)
                   : nothing();
    case TK_INCARNATION_TIMED:
        return repeat(incarnation);
    case TK_INCARNATION_USED:
        return incarnation->state == TK_INCARNATION_PARTING ? thaw(incarnation) : nothing();
    case TK_INCARNATION_PARTED:
        incarnation->state = TK_INCARNATION_PARTING;
        incarnation->number = facts->next;
        return say(incarnation, TK_INCARNATION_PART);
    default:
        incarnation->state = TK_INCARNATION_IDLE;
        return nothing();
    }
}
