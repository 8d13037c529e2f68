/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The election of a leader, which notifies the other ranks when not all leave by themselves: one
 * rank, so that N leaving ranks send O(N) messages and not N each. Rank 0 decides, whether it
 * leaves itself or not: the first rank to ask leads. With a tree among the leaders of
 * neighbourhoods only those ask at once that wait for a rank below them; the others have heard the
 * leader's notice before their time to ask comes. If rank 0 does not answer (it is dead, stopped,
 * or does not poll), each leaving rank waits, the lowest for the shortest time: the rank whose wait
 * ends first leads, and its requests reach the others before their waits end. Two leaders are safe;
 * they only send more messages.
 *
 * A leader sends an exit request with its code to each other rank; with a tree, to the first rank
 * of its neighbourhood, and first ranks pass it on. Handlers only store; requests are sent after
 * polls, or by the leaving thread. Takes no lock. decide.h has the decisions. */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/report.h"
#include "exit/exit.h"
#include "exit/exit_private.h"
#include "message/message.h"
#include "peer/peer.h"
#include "progress/progress.h"
#include "topology/topology.h"

static struct {
    atomic_int requested; /* 1 + code of a leader's request */

    /* On rank 0. */
    _Atomic uint8_t *asked;  /* by rank: 1 from its question to its answer */
    _Atomic uint32_t leader; /* 1 + its rank */
    tk_counter_t unanswered;

    /* Owned by the leaving thread. */
    atomic_int answer;
    bool has_asked;
    enum tk_role role;
    uint64_t led_after;     /* the time waited when the role was decided */
    _Atomic bool *notified; /* by rank: a request is sent; by any thread */
    uint32_t next_to_notify;

    /* Requests that this rank passes on, as the first of its neighbourhood; owned by the thread
     * that has set `is_passing`. */
    _Atomic uint32_t to_pass; /* 1 + the rank that the request came from; 0: none */
    atomic_int code_to_pass;  /* before `to_pass` */
    atomic_bool is_passing;
    uint32_t passed_by; /* bit for each leader in the tree that has it */
    uint32_t next_neighbour;
    bool is_passed; /* all have it */
} election;

_Static_assert(sizeof(*election.notified) == 1 && sizeof(*election.asked) == 1,
               "as tk_exit_table_bytes() has it");

static void on_question(struct tk_peer *from)
{
    uint32_t nobody = 0;
    if (!election.asked)
        tk_panic("rank %u (%s, pid %d) asks who leads, but not rank 0", from->rank, from->host,
                 from->pid);
    atomic_compare_exchange_strong(&election.leader, &nobody, 1 + from->rank);
    atomic_store(&election.asked[from->rank], 1);
    tk_counter_add(&election.unanswered, 1);
    tk_counter_add(&tk_deferred_work_wanted, 1);
}

static void on_elect(struct tk_peer *from, const int32_t *args)
{
    if (args[0] == TK_ELECT_ASK)
        on_question(from);
    else
        atomic_store(&election.answer, args[0]);
}

/* The first rank of a neighbourhood passes on one request. */
static void pass_on(uint32_t from, int code)
{
    uint32_t none = 0;
    if (tk_agree_leaders()->tree == 0 || atomic_load(&election.to_pass))
        return;
    atomic_store(&election.code_to_pass, code & 0xff);
    atomic_compare_exchange_strong(&election.to_pass, &none, 1 + from);
}

/* The second argument: whether the request travels along the tree. */
static void on_request(struct tk_peer *from, const int32_t *args)
{
    int nobody = 0;
    if (atomic_compare_exchange_strong(&election.requested, &nobody, 1 + (args[0] & 0xff)))
        tk_counter_add(&tk_deferred_work_wanted, 1); /* for good */
    if (args[1])
        pass_on(from->rank, args[0]);
}

void tk_elect_open(void)
{
    tk_internal_register(TK_HANDLER_EXIT, on_request);
    tk_internal_register(TK_HANDLER_ELECT, on_elect);
}

void tk_elect_connect(void)
{
    election.notified = calloc(1, tk_exit_table_bytes(tk_peers.size));
    if (tk_peers.me == 0)
        election.asked = calloc(1, tk_exit_table_bytes(tk_peers.size));
    if (!election.notified || (tk_peers.me == 0 && !election.asked))
        tk_panic("out of memory for a table of %u ranks", tk_peers.size);
}

int tk_elect_requested(void)
{
    return atomic_load_explicit(&election.requested, memory_order_relaxed) - 1;
}

static bool elect_send(struct tk_peer *to, enum tk_elect_question what)
{
    int32_t arg = (int32_t)what;
    return tk_internal_send(to, TK_REQUEST, TK_HANDLER_ELECT, 1, &arg) == TK_OK;
}

static void give_answer(uint32_t rank)
{
    if (!atomic_exchange(&election.asked[rank], 0))
        return; /* another thread has */
    if (!elect_send(tk_peer(rank), tk_elect_answer(atomic_load(&election.leader) - 1, rank))) {
        atomic_store(&election.asked[rank], 1);
        return;
    }
    tk_counter_add(&election.unanswered, -1);
    tk_counter_add(&tk_deferred_work_wanted, -1);
}

/* A rank sends each other at most one, whether it leads or passes one on: there is a receive buffer
 * for one (TK_CONTROL). */
static bool elect_request(uint32_t rank, int code, bool along_tree)
{
    int32_t args[] = {code, along_tree};
    if (rank == tk_peers.me || atomic_exchange(&election.notified[rank], true))
        return true;
    if (tk_internal_send(tk_peer(rank), TK_CONTROL, TK_HANDLER_EXIT, 2, args) != TK_BUSY)
        return true;
    atomic_store(&election.notified[rank], false);
    return false;
}

static bool pass_over_tree(uint32_t from, int code)
{
    uint32_t to[tk_notice_over_tree_max];
    unsigned count = tk_notice_over_tree(tk_agree_leaders(), from, to);
    for (unsigned i = 0; i < count; i++)
        if (!(election.passed_by >> i & 1) && elect_request(to[i], code, true))
            election.passed_by |= 1u << i;
    return election.passed_by == (1u << count) - 1;
}

static bool pass_to_neighbours(uint32_t from, int code)
{
    for (; election.next_neighbour < tk_topology.nbrhd_size; election.next_neighbour++) {
        uint32_t rank = tk_topology.nbrhd_ranks[election.next_neighbour];
        if (rank != from && !elect_request(rank, code, false))
            return false;
    }
    return true;
}

/* The other hosts first: they pass it on at the same time. */
static void pass_requests(void)
{
    uint32_t from = atomic_load_explicit(&election.to_pass, memory_order_relaxed);
    if (!from || atomic_exchange(&election.is_passing, true))
        return;
    int code = atomic_load(&election.code_to_pass);
    if (!election.is_passed) {
        bool has_passed_tree = pass_over_tree(from - 1, code);
        election.is_passed = pass_to_neighbours(from - 1, code) && has_passed_tree;
    }
    atomic_store(&election.is_passing, false);
}

static void answer_questions(void)
{
    if (tk_counter_read(&election.unanswered) <= 0)
        return;
    for (uint32_t rank = 0; rank < tk_peers.size; rank++)
        if (atomic_load_explicit(&election.asked[rank], memory_order_relaxed))
            give_answer(rank);
}

void tk_elect_serve(void)
{
    pass_requests();
    answer_questions();
}

static bool is_taken(void)
{
    uint32_t nobody = 0;
    return tk_peers.me == 0 && !atomic_compare_exchange_strong(&election.leader, &nobody, 1);
}

static void elect_decide(uint64_t waited, uint64_t grace)
{
    struct tk_elect_view view = {.me = tk_peers.me,
                                 .ranks = tk_peers.size,
                                 .waited = waited,
                                 .asks_after = tk_elect_pause(tk_agree_depth(), grace),
                                 .answer = atomic_load(&election.answer),
                                 .has_asked = election.has_asked,
                                 .is_notified = tk_elect_requested() >= 0};
    view.is_taken = !view.is_notified && is_taken();
    const struct tk_elect_step step = tk_elect_next(&view);
    if (step.asks)
        election.has_asked = elect_send(tk_peer(0), TK_ELECT_ASK);
    election.role = step.role;
    election.led_after = waited;
}

enum tk_role tk_elect_step(uint64_t waited, uint64_t grace)
{
    if (election.role == TK_ROLE_OPEN)
        elect_decide(waited, grace);
    return election.role;
}

/* A rank that cannot take its request now (its ring is full and it does not poll) does not delay
 * the others: it is tried again in the next call. */
static void notify_each(int code)
{
    bool all = true;
    for (uint32_t rank = election.next_to_notify; rank < tk_peers.size; rank++) {
        all &= elect_request(rank, code, false);
        if (all)
            election.next_to_notify = rank + 1;
    }
}

static void notify_along_tree(int code)
{
    uint32_t first = tk_topology.nbrhd_ranks[0];
    if (first == tk_peers.me)
        pass_on(first, code);
    else
        elect_request(first, code, true);
}

void tk_elect_notify(int code, uint64_t waited, uint64_t grace)
{
    bool is_late = waited - election.led_after > tk_notice_patience(grace);
    if (is_late || !tk_agree_has_tree())
        notify_each(code);
    else
        notify_along_tree(code);
}
