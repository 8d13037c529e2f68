/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a rank does at the end of the job, as functions of what it knows: whom it sends what, and
 * when. No clock, no message, no lock; gasnetrun_ibv --simulate calls them for each rank of jobs
 * that no test can run. The state of the process is state.h. */
#ifndef TK_EXIT_DECIDE_H
#define TK_EXIT_DECIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "topology/leaders.h"

/* ---- times, ns and seconds */

/* Time for all ranks to leave by themselves. `ranks`: those of this machine. */
uint64_t tk_exit_grace(bool oversubscribed, uint32_t ranks, uint32_t cpus);

/* Seconds that an exit of a job of `ranks` may take: GASNET_EXITTIMEOUT. */
double tk_exit_timeout_of(uint32_t ranks);

/* ---- the agreement among the leaders of neighbourhoods (agree.c) */

/* Where a leader is: at this step of its `end`. */
struct tk_agree_place {
    unsigned step, end;
    bool has_sent; /* in this step */
};

enum tk_agree_action {
    TK_AGREE_SEND, /* the message of this step; then tk_agree_sent() */
    TK_AGREE_WAIT, /* for that of its sender */
    TK_AGREE_PASS, /* take what came, if the step awaits something; then tk_agree_passed() */
    TK_AGREE_OVER
};

void tk_agree_at_begin(struct tk_agree_place *place, const struct tk_leaders *leaders);

/* `has_come`: the message of this step. */
enum tk_agree_action tk_agree_next(const struct tk_agree_place *place,
                                   const struct tk_leaders *leaders, bool has_come);

static inline void tk_agree_sent(struct tk_agree_place *place)
{
    place->has_sent = true;
}

static inline void tk_agree_passed(struct tk_agree_place *place)
{
    place->step++;
    place->has_sent = false;
}

/* Whether it has heard from all below, and waits for a leader above in the tree. Then it is not the
 * one that knows of a rank that is missing. False without a tree. */
bool tk_agree_awaits_above(const struct tk_agree_place *place, const struct tk_leaders *leaders);

/* ---- the election of the rank that notifies the others (elect.c) */

enum tk_elect_question { TK_ELECT_ASK = 1, TK_ELECT_LEAD, TK_ELECT_FOLLOW };

enum tk_role {
    TK_ROLE_OPEN,   /* undecided */
    TK_ROLE_LEADER, /* this rank notifies the others */
    TK_ROLE_MEMBER  /* another rank notifies the others, or has notified this one */
};

/* What a rank knows that leaves, is undecided and has waited longer than `grace`. */
struct tk_elect_view {
    uint32_t me, ranks;
    uint64_t waited;     /* since the end of the grace period, ns */
    uint64_t asks_after; /* tk_elect_pause() */
    int answer;          /* LEAD or FOLLOW; 0: none yet */
    bool has_asked;
    bool is_notified;
    bool is_taken; /* on rank 0: another rank leads */
};

struct tk_elect_step {
    bool asks; /* send ASK to rank 0 */
    enum tk_role role;
};

struct tk_elect_step tk_elect_next(const struct tk_elect_view *view);

/* Time for which a rank that waits for one `depth` steps above it does not ask. A rank that waits
 * for one below it asks at once, as does each where there is no tree (depth 0). */
uint64_t tk_elect_pause(uint32_t depth, uint64_t grace);

/* The depth of a rank that is not the first of its neighbourhood: below any leader of `nbrhds`. */
uint32_t tk_elect_depth_of_neighbour(uint32_t nbrhds, uint32_t index);

/* Rank 0's answer. */
enum tk_elect_question tk_elect_answer(uint32_t leader, uint32_t asker);

/* ---- notices */

/* Where connections are made on demand and there is a tree, a notice travels along it: each first
 * rank of a neighbourhood passes it on once, to the neighbourhood and to those leaders of its tree
 * that it did not come from. So no rank sends more than those messages, and no connection is made.
 */
enum { tk_notice_over_tree_max = 3 };

/* The leaders that a leader passes a notice on to that came from rank or neighbourhood `from`, as
 * `leaders` names them. Returns how many. */
unsigned tk_notice_over_tree(const struct tk_leaders *leaders, uint32_t from,
                             uint32_t to[tk_notice_over_tree_max]);

/* A rank on the way may not poll, or be gone: after this time since its election the elected rank
 * sends a notice to each rank itself, if not all agree. From the election, because a rank deep in a
 * large tree asks late. */
uint64_t tk_notice_patience(uint64_t grace);

/* ---- leaving (leave.c) */

/* Whether a rank goes on to the launcher's fence. */
bool tk_leave_parts(bool has_network, bool has_agreed, bool is_grace_over);

/* The watchdog of a rank that leaves without the network, in seconds: the interrupted thread may
 * hold libpmix's lock, which the helper waits for. */
enum { tk_aside_watchdog = 3 };

/* How long such a rank waits for the others in the fence, from the begin of its exit. It passes no
 * notice on, so those below it in the tree hear when the elected rank has lost its patience; then
 * their own grace period begins. It asks the launcher to end the job before its watchdog does.
 * `depth`: of the deepest rank, 0 without a tree. */
uint64_t tk_leave_aside_max(uint32_t depth, uint64_t grace);

/* Whether it adds its code to the data of the fence: not if no rank can learn a larger one from it,
 * or if the first rank of its neighbourhood adds what all have agreed on. */
bool tk_leave_puts_code(uint32_t ranks, int code, bool has_agreed, bool is_carried);

#endif
