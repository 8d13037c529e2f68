/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See directed.h. Members: 0 and 1 are roots, 2 and above receive. Numbers are counted from each
 * queue pair's first. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "directed.h"
#include "wire.h"

enum {
    ACK = ROCE_SYNDROME_ACK | ROCE_CREDITS_NONE,
    SEQUENCE = ROCE_NAK_SEQUENCE,
    WAIT = ROCE_SYNDROME_RNR | WIRE_RNR,
    LINK = MCSW_ACQUIRE | MCSW_TOPOLOGY | MCSW_BITMAP,
    AGAIN = MCSW_TOPOLOGY | MCSW_BITMAP,
    R2 = 1 << 2,
    R3 = 1 << 3,
    R4 = 1 << 4,
};

/* A condition that must hold; the macro returns, so that a history reads from top to bottom. */
#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            wire_close(w);                                                                         \
            return #condition;                                                                     \
        }                                                                                          \
    } while (0)
#define DONE()                                                                                     \
    do {                                                                                           \
        MUST(w->wrong == 0);                                                                       \
        wire_close(w);                                                                             \
        return NULL;                                                                               \
    } while (0)

static struct wire only, *const w = &only;

/* Member 0 has the lock for receivers 2 and 3, which have acknowledged that: numbers 1 come next.
 */
static void held(void)
{
    wire_open(w, 5);
    wire_control(w, 0, 0, LINK, R2 | R3);
    wire_ack(w, 2, 0, 1);
    wire_ack(w, 3, 0, 1);
}

static const char *gap_is_reported_at_the_oldest_unacknowledged(void)
{
    held();
    wire_data(w, 0, 1);
    wire_data(w, 0, 3);
    MUST(wire_answered(w, 0, SEQUENCE, 1));
    wire_data(w, 0, 4);
    MUST(w->out == 0);
    DONE();
}

static const char *receivers_nak_acknowledges_for_itself_only(void)
{
    held();
    wire_data(w, 0, 1);
    wire_data(w, 0, 2);
    wire_data(w, 0, 3);
    wire_response(w, 2, SEQUENCE, 3, 2);
    MUST(wire_answered(w, 0, SEQUENCE, 1));
    DONE();
}

/* A receiver repeats a final NAK for every packet that still comes, long after it was left out. */
static const char *late_nak_of_an_unlinked_receiver(void)
{
    held();
    wire_data(w, 0, 1);
    wire_ack(w, 2, 1, 2);
    wire_ack(w, 3, 1, 2);
    wire_control(w, 0, 2, MCSW_RELEASE, 0);
    MUST(wire_answered(w, 0, ACK, 2));
    wire_control(w, 1, 0, LINK, R3 | R4);
    wire_response(w, 2, ROCE_NAK_ACCESS, 2, 2);
    MUST(w->out == 0);
    MUST(wire_view(w)->receiver[2].dirty == false);
    wire_response(w, 2, SEQUENCE, 2, 2);
    MUST(w->out == 0);
    wire_response(w, 2, WAIT, 2, 2);
    MUST(w->out == 0);
    DONE();
}

static const char *repeat_that_all_have_is_answered(void)
{
    held();
    wire_data(w, 0, 1);
    wire_ack(w, 2, 1, 2);
    wire_ack(w, 3, 1, 2);
    MUST(wire_answered(w, 0, ACK, 1));
    wire_data(w, 0, 1);
    MUST(wire_answered(w, 0, ACK, 1));
    MUST(w->out == 1);
    DONE();
}

static const char *repeat_goes_to_those_that_lack_it(void)
{
    held();
    wire_data(w, 0, 1);
    wire_ack(w, 2, 1, 2);
    wire_data(w, 0, 1);
    MUST(wire_copies(w, 2) == 0 && wire_copies(w, 3) == 1 && w->out == 1);
    DONE();
}

static const char *release_waits_for_acknowledgements(void)
{
    held();
    wire_data(w, 0, 1);
    wire_control(w, 0, 2, MCSW_RELEASE, 0);
    MUST(w->out == 0);
    wire_control(w, 1, 0, LINK, R4);
    MUST(wire_answered(w, 1, WAIT, 0));
    wire_ack(w, 2, 1, 2);
    MUST(w->out == 0 || !wire_answered(w, 0, ACK, 2));
    wire_ack(w, 3, 1, 2);
    MUST(wire_answered(w, 0, ACK, 2));
    MUST(wire_view(w)->holder == MCSW_NOBODY);
    DONE();
}

static const char *release_of_a_refused_sender(void)
{
    held();
    wire_control(w, 1, 0, LINK, R4);
    MUST(wire_answered(w, 1, WAIT, 0));
    wire_data(w, 1, 1);
    MUST(w->out == 0);
    wire_control(w, 1, 2, MCSW_RELEASE, 0);
    MUST(w->out == 0);
    MUST(wire_view(w)->sender[1].epsn == wire_sq_psn(1));
    DONE();
}

static const char *repeated_control_changes_nothing(void)
{
    static struct mcsw_view before;

    wire_open(w, 5);
    wire_control(w, 0, 0, LINK, R2 | R3);
    wire_data(w, 0, 1);
    before = *wire_view(w);
    wire_control(w, 0, 0, LINK, R2 | R3);
    MUST(wire_copies(w, 2) == 1 && wire_copies(w, 3) == 1);
    MUST(memcmp(&before, wire_view(w), sizeof before) == 0);
    DONE();
}

static const char *every_set_has_its_own_offsets(void)
{
    held();
    wire_control(w, 0, 1, MCSW_RELEASE, 0);
    wire_control(w, 1, 0, LINK, R3 | R4);
    MUST(w->out == 2);
    for (unsigned i = 0; i < w->out; i++) {
        unsigned r = w->sent[i].port;

        /* Receiver 3 has one packet of the first set behind it. */
        MUST(w->sent[i].f.packet.psn == ((wire_rq_psn(r) + (r == 3)) & 0xffffff));
    }
    DONE();
}

static const char *acknowledgement_of_what_was_not_sent(void)
{
    static struct mcsw_view before;

    held();
    wire_data(w, 0, 1);
    wire_ack(w, 2, 1, 2);
    before = *wire_view(w);
    wire_ack(w, 3, 2, 3);
    MUST(w->out == 0);
    wire_response(w, 3, SEQUENCE, 4, 3);
    MUST(w->out == 0);
    MUST(memcmp(&before, wire_view(w), sizeof before) == 0);
    MUST(mcsw_counters(w->w)->drop_future == 2);
    wire_ack(w, 3, 1, 2);
    MUST(wire_answered(w, 0, ACK, 1));
    DONE();
}

/* The acknowledgement of a release was lost, and another sender has the lock now. */
static const char *finished_repeat_is_answered(void)
{
    held();
    wire_control(w, 0, 1, MCSW_RELEASE, 0);
    MUST(wire_answered(w, 0, ACK, 1));
    wire_control(w, 0, 1, MCSW_RELEASE, 0);
    MUST(wire_answered(w, 0, ACK, 1));
    wire_control(w, 1, 0, LINK, R3 | R4);
    wire_control(w, 0, 1, MCSW_RELEASE, 0);
    MUST(wire_answered(w, 0, ACK, 1));
    DONE();
}

static const char *sleeper_is_fenced(void)
{
    held();
    wire_data(w, 0, 1);
    wire_ack(w, 2, 1, 2);
    w->now += 2 * WIRE_LEASE;
    wire_control(w, 1, 0, LINK, R2 | R4);
    MUST(w->dirtied == R3 && w->fenced == 1);
    MUST(wire_copies(w, 2) == 1 && wire_copies(w, 4) == 1);
    MUST(wire_view(w)->sender[0].fenced);
    MUST(wire_view(w)->sender[0].epsn == ((wire_sq_psn(0) + 1) & 0xffffff));
    wire_data(w, 0, 1);
    MUST(wire_answered(w, 0, ROCE_NAK_OPERATION, 1));
    DONE();
}

static const char *dirty_receiver_is_not_linked(void)
{
    wire_open(w, 5);
    mcsw_mark(w->w, WIRE_GROUP, 3);
    wire_control(w, 0, 0, LINK, R2 | R3);
    MUST(wire_answered(w, 0, WAIT, 0));
    MUST(wire_view(w)->holder == MCSW_NOBODY);
    wire_control(w, 0, 0, LINK, R2);
    MUST(wire_copies(w, 2) == 1);
    DONE();
}

/* A control that is refused for its contents has no effect except the reply. */
static const char *refused(const struct mcsw_control *c, uint8_t syndrome)
{
    wire_open(w, 5);
    wire_control_as(w, 0, 0, c);
    MUST(wire_answered(w, 0, syndrome, 0));
    MUST(w->out == 1);
    MUST(wire_view(w)->holder == MCSW_NOBODY);
    MUST(wire_view(w)->sender[0].epsn == wire_sq_psn(0));
    MUST(wire_view(w)->receiver[2].psn_out == wire_rq_psn(2));
    MUST(wire_view(w)->receiver[2].rkey == 11);
    DONE();
}

static const char *wrong_key(void)
{
    struct mcsw_control c = {LINK,           WIRE_GROUP, ~WIRE_KEY, MCSW_UNCHECKED,
                             MCSW_UNCHECKED, 0,          R2,        NULL};

    return refused(&c, ROCE_NAK_ACCESS);
}

static const char *receiver_of_another_group(void)
{
    struct mcsw_entry e = {mcsw_qpn(WIRE_GROUP + 1, 2), 77, 0};
    struct mcsw_control c = {MCSW_ACQUIRE | MCSW_TOPOLOGY | MCSW_ADDRESS,
                             WIRE_GROUP,
                             WIRE_KEY,
                             MCSW_UNCHECKED,
                             MCSW_UNCHECKED,
                             1,
                             0,
                             &e};

    return refused(&c, ROCE_NAK_ACCESS);
}

static const char *strangers_are_ignored(void)
{
    static struct mcsw_view before;
    struct roce_packet p = {.opcode = ROCE_WRITE_ONLY, .psn = 1};

    held();
    before = *wire_view(w);
    wire_request(w, 0, &p, 4, 0); /* by another port */
    MUST(w->out == 0);
    wire_request(w, 0, &p, 4, 4); /* in the name of another */
    MUST(w->out == 0);
    wire_request(w, 0, &p, 0, 4);
    MUST(w->out == 0);
    MUST(memcmp(&before, wire_view(w), sizeof before) == 0);
    DONE();
}

const struct directed directed_cases[] = {
    {"a gap is reported at agg + 1", gap_is_reported_at_the_oldest_unacknowledged},
    {"a receiver's NAK acknowledges for itself only", receivers_nak_acknowledges_for_itself_only},
    {"a late NAK of an unlinked receiver", late_nak_of_an_unlinked_receiver},
    {"a repeat that all have is answered", repeat_that_all_have_is_answered},
    {"a repeat goes to those that lack it", repeat_goes_to_those_that_lack_it},
    {"a release waits for acknowledgements", release_waits_for_acknowledgements},
    {"the release of a refused sender", release_of_a_refused_sender},
    {"a repeated control changes nothing", repeated_control_changes_nothing},
    {"every set has its own offsets", every_set_has_its_own_offsets},
    {"an acknowledgement of what was not sent", acknowledgement_of_what_was_not_sent},
    {"a finished repeat is answered", finished_repeat_is_answered},
    {"a sleeper is fenced", sleeper_is_fenced},
    {"a dirty receiver is not linked", dirty_receiver_is_not_linked},
    {"a wrong key", wrong_key},
    {"a receiver of another group", receiver_of_another_group},
    {"strangers are ignored", strangers_are_ignored},
    {0},
};
