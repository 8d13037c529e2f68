/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See clocks.h. Hosts form a tree, and so do the ranks of each host. A rank asks its parent for the
 * time repeatedly: the parent reads its clock at some moment between request and answer, so half of
 * the shortest round trip bounds the error (Cristian 1989), however unequal the two directions are.
 * Ranks of one host have one clock, and copy the offset that their parent knows. A rank continues
 * only when its children have all the answers that they need, so that it answers at once until
 * then.
 *
 * Owns what was measured. Handlers may run on any thread: one lock. */
#include "config.h"

#include <string.h>

#include "common/clock.h"
#include "base/lock.h"
#include "base/report.h"
#include "collective/clocks.h"
#include "exit/exit.h"
#include "message/message.h"
#include "progress/progress.h"
#include "topology/topology.h"
#include "topology/tree.h"
#include "trace/trace.h"

enum when { START, END, whens };

/* The shortest of this many round trips is close to the network's minimum, and they take less than
 * a millisecond. */
enum { rounds_between_hosts = 32 };

/* Others may need this rank to leave; in ns. */
enum { slice = 5000000 };

/* These travel as arguments. */
struct clocks_question {
    uint32_t when;
    uint32_t is_last; /* if the answering rank knows its own offset */
};
struct clocks_answer {
    uint32_t when, unused;
    uint64_t now;
    struct tk_trace_offset offset; /* of the answering rank */
};
enum {
    question_args = sizeof(struct clocks_question) / sizeof(int32_t),
    answer_args = sizeof(struct clocks_answer) / sizeof(int32_t)
};

struct moment {
    struct tk_trace_offset offset; /* to rank 0's clock */
    uint64_t sent;                 /* our request, if it is outstanding; else 0 */
    uint32_t rounds;
    uint32_t served;             /* children that need no more answers */
    struct tk_trace_offset best; /* to the parent's clock, by the shortest round trip */
};

static tk_lock_t clocks_lock = TK_LOCK_INIT;
static struct moment moments[whens];
static struct tk_peer *above; /* the parent; NULL on rank 0 */
static bool is_other_host;    /* the one above */
static uint32_t below;

static void clocks_nonsense(const struct tk_peer *from)
{
    tk_panic("rank %u (%s, pid %d) sent a message about clocks that makes no sense", from->rank,
             from->host, from->pid);
}

/* ---- the one above ---- */

static void clocks_asked(struct tk_arrival *arrival)
{
    struct clocks_question question;
    struct clocks_answer answer = {.now = tk_now()};
    int32_t args[answer_args];
    if (arrival->head->nargs != question_args)
        clocks_nonsense(arrival->peer);
    memcpy(&question, arrival->head + 1, sizeof(question));
    if (question.when >= whens)
        clocks_nonsense(arrival->peer);
    tk_lock(&clocks_lock);
    struct moment *m = &moments[question.when];
    answer.when = question.when;
    answer.offset = m->offset;
    if (m->offset.at && question.is_last)
        m->served++;
    tk_unlock(&clocks_lock);
    memcpy(args, &answer, sizeof(args));
    const struct tk_internal_medium reply = {
        .handler = TK_HANDLER_CLOCKS_ANSWER, .nargs = answer_args, .args = args};
    tk_internal_reply(arrival, &reply);
}

/* ---- the one below ---- */

static uint32_t rounds_wanted(void)
{
    return is_other_host ? rounds_between_hosts : 1;
}

static void take_time(struct moment *m, uint64_t theirs, uint64_t now)
{
    uint64_t half = (now - m->sent + 1) / 2;
    if (m->rounds++ == 0 || half < m->best.error) {
        m->best.error = half;
        m->best.at = m->sent + half;
        m->best.ns = (int64_t)(theirs - m->best.at);
    }
}

static void clocks_answered(struct tk_arrival *arrival)
{
    uint64_t now = tk_now();
    struct clocks_answer answer;
    if (arrival->head->nargs != answer_args)
        clocks_nonsense(arrival->peer);
    memcpy(&answer, arrival->head + 1, sizeof(answer));
    if (answer.when >= whens)
        clocks_nonsense(arrival->peer);
    tk_lock(&clocks_lock);
    struct moment *m = &moments[answer.when];
    if (arrival->peer != above || !m->sent)
        clocks_nonsense(arrival->peer);
    take_time(m, answer.now, now);
    m->sent = 0;
    if (answer.offset.at && m->rounds >= rounds_wanted()) {
        m->offset = answer.offset;
        if (is_other_host) {
            m->offset.at = m->best.at;
            m->offset.ns += m->best.ns;
            m->offset.error += m->best.error;
        }
    }
    tk_unlock(&clocks_lock);
}

static void clocks_ask(enum when when, bool is_last)
{
    const struct clocks_question question = {.when = when, .is_last = is_last};
    int32_t args[question_args];
    memcpy(args, &question, sizeof(args));
    const struct tk_internal_medium medium = {
        .handler = TK_HANDLER_CLOCKS_ASK, .nargs = question_args, .args = args};
    if (tk_internal_request(above, &medium) == TK_OK)
        return;
    tk_lock(&clocks_lock);
    moments[when].sent = 0;
    tk_unlock(&clocks_lock);
}

/* True: this rank knows its offset, and its children know theirs. */
static bool clocks_step(enum when when)
{
    struct moment *m = &moments[when];
    tk_lock(&clocks_lock);
    if (!above && !m->offset.at)
        m->offset.at = tk_now();
    bool is_over = m->offset.at && m->served >= below, asks = !m->offset.at && !m->sent;
    bool is_last = m->rounds + 1 >= rounds_wanted();
    if (asks)
        m->sent = tk_now();
    tk_unlock(&clocks_lock);
    if (asks)
        clocks_ask(when, is_last);
    return is_over;
}

/* ---- start and end ---- */

static uint32_t first_rank_of(uint32_t host)
{
    uint32_t rank = 0;
    while (tk_topology.host_of[rank] != host)
        rank++;
    return rank;
}

static void find_places(void)
{
    const struct tk_topology *t = &tk_topology;
    const struct tk_tree_place here = tk_tree_place(t->local_rank, t->local_size);
    below = here.below_count;
    if (t->local_rank > 0) {
        above = tk_peer(t->local_ranks[here.above]);
        return;
    }
    const struct tk_tree_place hosts = tk_tree_place(t->my_host, t->hosts);
    below += hosts.below_count;
    is_other_host = t->my_host > 0;
    if (is_other_host)
        above = tk_peer(first_rank_of(hosts.above));
}

static bool all_write_traces(void)
{
    for (uint32_t r = 0; r < tk_peers.size; r++)
        if (!tk_peer_info_of(r)->traces)
            return false;
    return true;
}

static bool clocks_leave(bool all)
{
    static bool is_known;
    unsigned empty = 0;
    bool is_over = false;
    uint64_t until = tk_now() + slice;
    if (!all)
        return false;
    while (!(is_over = clocks_step(END)) && tk_now() < until)
        tk_wait_step_silent(&empty);
    tk_wait_over();
    if (is_over && !is_known)
        tk_trace_align(&moments[END].offset, true);
    is_known = is_over;
    return is_over;
}

void tk_clocks_open(void)
{
    tk_internal_register_whole(TK_HANDLER_CLOCKS_ASK, clocks_asked);
    tk_internal_register_whole(TK_HANDLER_CLOCKS_ANSWER, clocks_answered);
}

void tk_clocks_start(void)
{
    unsigned empty = 0;
    if (tk_topology.hosts == 1 || !all_write_traces())
        return;
    find_places();
    while (!clocks_step(START))
        tk_wait_step(&empty);
    tk_wait_over();
    tk_trace_align(&moments[START].offset, false);
    tk_exit_add(clocks_leave);
}
