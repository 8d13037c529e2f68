/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See incarnation.h. No state, no lock; must not touch a device. */
#include "config.h"

#include "base/first_use.h"
#include "transport/verbs/conn/incarnation.h"

static struct tk_life_word word_of(const struct tk_life *life, unsigned what)
{
    return (struct tk_life_word){
        .what = (uint8_t)what, .epoch = life->epoch, .number = life->number};
}

static struct tk_life_step say(const struct tk_life *life, unsigned what)
{
    return (struct tk_life_step){.sends = word_of(life, what)};
}

static struct tk_life_step answer(const struct tk_life *life, unsigned what, uint32_t number)
{
    struct tk_life_step step = say(life, what);
    step.sends.number = number;
    return step;
}

static struct tk_life_step nothing(void)
{
    return (struct tk_life_step){.sends.what = TK_HANDSHAKE_SILENCE};
}

/* ---- opening: as in handshake.c ---- */

static struct tk_life_step open_step(struct tk_life *life, enum tk_handshake_event event,
                                     bool is_lower)
{
    struct tk_handshake_step open =
        tk_handshake_next((enum tk_handshake_state)life->state, event, is_lower);
    life->state = (uint8_t)open.next;
    struct tk_life_step step = say(life, open.sends);
    step.opens = open.opens;
    step.connects = open.connects;
    step.thaws = open.next == TK_HANDSHAKE_UP;
    return step;
}

/* ---- closing ---- */

static struct tk_life_step close_end(struct tk_life *life, uint32_t epoch)
{
    life->state = TK_LIFE_CLOSING;
    life->epoch = epoch;
    return (struct tk_life_step){.closes = true};
}

static struct tk_life_step thaw(struct tk_life *life)
{
    life->state = TK_LIFE_UP;
    return (struct tk_life_step){.thaws = true};
}

static struct tk_life_step agree(struct tk_life *life, uint32_t number)
{
    life->state = TK_LIFE_AGREED;
    life->number = number;
    return say(life, TK_LIFE_AGREE);
}

/* The other end asks only while it sends nothing: what is frozen here for an earlier question is
 * judged anew. */
static struct tk_life_step refuse(struct tk_life *life, uint32_t number)
{
    bool is_parting = life->state == TK_LIFE_PARTING;
    struct tk_life_step step = is_parting ? nothing() : thaw(life);
    step.sends = answer(life, TK_LIFE_REFUSE, number).sends;
    return step;
}

/* Both may ask at once: then the lower rank's question counts. */
static struct tk_life_step came_part(struct tk_life *life, const struct tk_life_word *word,
                                     const struct tk_life_facts *facts)
{
    switch (life->state) {
    case TK_LIFE_PARTING:
        if (facts->is_lower)
            return nothing();
        break;
    case TK_LIFE_AGREED:
        if (life->number == word->number)
            return say(life, TK_LIFE_AGREE);
        if ((int32_t)(word->number - life->number) < 0)
            return nothing(); /* late: to a later one the answer was yes */
        break;
    case TK_LIFE_ANSWERED: /* the rank that asks to close is up */
    case TK_LIFE_UP:
        break;
    default:
        return nothing();
    }
    return facts->agrees ? agree(life, word->number) : refuse(life, word->number);
}

static struct tk_life_step came_agree(struct tk_life *life, const struct tk_life_word *word)
{
    if (life->state != TK_LIFE_PARTING || life->number != word->number)
        return answer(life, TK_LIFE_CANCEL, word->number);
    struct tk_life_step step = close_end(life, life->epoch + 1);
    step.sends = word_of(life, TK_LIFE_OVER);
    return step;
}

static struct tk_life_step came_answer(struct tk_life *life, const struct tk_life_word *word,
                                       enum tk_life_state waiting)
{
    if (life->state != waiting || life->number != word->number)
        return nothing();
    return thaw(life);
}

/* What was made for it goes, so that others find room here. */
static struct tk_life_step came_busy(struct tk_life *life)
{
    return life->state == TK_LIFE_ASKING ? close_end(life, life->epoch + 1) : nothing();
}

/* ---- datagrams ---- */

static struct tk_life_step came_request(struct tk_life *life, const struct tk_life_facts *facts)
{
    if (life->state == TK_LIFE_IDLE && !facts->has_room)
        return say(life, TK_LIFE_BUSY);
    return open_step(life, TK_HANDSHAKE_CAME_REQUEST, facts->is_lower);
}

static bool is_opening(const struct tk_life *life)
{
    return life->state <= TK_LIFE_UP;
}

TK_FIRST_USE static struct tk_life_step
came_now(struct tk_life *life, const struct tk_life_word *word, const struct tk_life_facts *facts)
{
    switch (word->what) {
    case TK_HANDSHAKE_REQUEST:
        return is_opening(life) ? came_request(life, facts) : nothing();
    case TK_HANDSHAKE_ACCEPT:
        if (life->state == TK_LIFE_IDLE || life->state == TK_LIFE_CLOSING)
            return nothing();
        return is_opening(life) ? open_step(life, TK_HANDSHAKE_CAME_ACCEPT, facts->is_lower)
                                : say(life, TK_HANDSHAKE_CONFIRM);
    case TK_HANDSHAKE_CONFIRM:
        return life->state == TK_LIFE_ANSWERED
                   ? open_step(life, TK_HANDSHAKE_CAME_CONFIRM, facts->is_lower)
                   : nothing();
    case TK_LIFE_BUSY:
        return came_busy(life);
    case TK_LIFE_PART:
        return came_part(life, word, facts);
    case TK_LIFE_AGREE:
        return came_agree(life, word);
    case TK_LIFE_REFUSE:
        return came_answer(life, word, TK_LIFE_PARTING);
    case TK_LIFE_CANCEL:
        return came_answer(life, word, TK_LIFE_AGREED);
    default:
        return nothing();
    }
}

/* Only what waits for an answer gets one: else two ends might answer each other for ever. */
static struct tk_life_step came_late(const struct tk_life *life, const struct tk_life_word *word)
{
    bool waits = word->what == TK_HANDSHAKE_REQUEST || word->what == TK_HANDSHAKE_ACCEPT ||
                 word->what == TK_LIFE_PART || word->what == TK_LIFE_AGREE;
    return waits ? say(life, TK_LIFE_OVER) : nothing();
}

/* The other end is ahead: what it asked for, or has of ours, is of a connection that is over. */
static struct tk_life_step came_early(struct tk_life *life, const struct tk_life_word *word,
                                      const struct tk_life_facts *facts)
{
    struct tk_life_word again = *word;
    switch (life->state) {
    case TK_LIFE_ANSWERED:
    case TK_LIFE_AGREED:
        return close_end(life, word->epoch);
    case TK_LIFE_ASKING: {
        /* Our queue pairs were never connected and will do for the next one. */
        life->epoch = word->epoch;
        struct tk_life_step step = came_now(life, &again, facts);
        if (life->state == TK_LIFE_ASKING)
            step.sends = word_of(life, TK_HANDSHAKE_REQUEST);
        return step;
    }
    case TK_LIFE_IDLE:
        life->epoch = word->epoch;
        return came_now(life, &again, facts);
    case TK_LIFE_CLOSING:
        life->epoch = word->epoch;
        return nothing();
    default: /* nobody closes without our consent */
        return nothing();
    }
}

TK_FIRST_USE struct tk_life_step tk_life_came(struct tk_life *life, const struct tk_life_word *word,
                                              const struct tk_life_facts *facts)
{
    int32_t ahead = (int32_t)(word->epoch - life->epoch);
    if (ahead < 0)
        return came_late(life, word);
    return ahead > 0 ? came_early(life, word, facts) : came_now(life, word, facts);
}

/* ---- what happens here ---- */

static struct tk_life_step repeat(const struct tk_life *life)
{
    switch (life->state) {
    case TK_LIFE_ASKING:
        return say(life, TK_HANDSHAKE_REQUEST);
    case TK_LIFE_ANSWERED:
        return say(life, TK_HANDSHAKE_ACCEPT);
    case TK_LIFE_PARTING:
        return say(life, TK_LIFE_PART);
    case TK_LIFE_AGREED:
        return say(life, TK_LIFE_AGREE);
    default:
        return nothing();
    }
}

TK_FIRST_USE struct tk_life_step tk_life_act(struct tk_life *life, enum tk_life_event event,
                                             const struct tk_life_facts *facts)
{
    switch (event) {
    case TK_LIFE_WANTED:
        return life->state == TK_LIFE_IDLE ? open_step(life, TK_HANDSHAKE_WANTED, facts->is_lower)
                                           : nothing();
    case TK_LIFE_PROVED:
        if (life->state == TK_LIFE_ANSWERED)
            return open_step(life, TK_HANDSHAKE_PROVED, facts->is_lower);
        return life->state == TK_LIFE_AGREED || life->state == TK_LIFE_PARTING ? thaw(life)
                                                                               : nothing();
    case TK_LIFE_TIMED:
        return repeat(life);
    case TK_LIFE_USED:
        return life->state == TK_LIFE_PARTING ? thaw(life) : nothing();
    case TK_LIFE_PARTED:
        life->state = TK_LIFE_PARTING;
        life->number = facts->next;
        return say(life, TK_LIFE_PART);
    default:
        life->state = TK_LIFE_IDLE;
        return nothing();
    }
}
