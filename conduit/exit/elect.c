/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The election of a leader, which notifies the other ranks when not all leave by themselves: one
 * rank, so that N leaving ranks send O(N) messages and not N each. Rank 0 decides, whether it
 * leaves itself or not: the first rank to ask leads. If rank 0 does not answer (it is dead,
 * stopped, or does not poll), each leaving rank waits, the lowest for the shortest time: the rank
 * whose wait ends first leads, and its requests reach the others before their waits end. Two
 * leaders are safe; they only send more messages.
 *
 * A leader sends an exit request with its code to each other rank. Handlers only store; requests
 * are sent after polls, or by the leaving thread. Takes no lock. */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "common/clock.h"
#include "base/report.h"
#include "exit/exit.h"
#include "exit/exit_private.h"
#include "message/message.h"
#include "peer/peer.h"
#include "progress/progress.h"

enum question { ASK = 1, LEAD, FOLLOW };

/* Time for rank 0 to answer. If it polls, it takes microseconds. */
static const uint64_t patience = TK_SECOND / 10;

/* After that, the difference between the waits of two ranks: enough for a leader's requests to
 * reach leaving ranks, which only poll. All waits together take less than a second. */
static const uint64_t turn_max = TK_SECOND / 200, all_turns = TK_SECOND / 5;

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
    bool *notified; /* by rank */
    uint32_t next_to_notify;
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
    if (args[0] == ASK)
        on_question(from);
    else
        atomic_store(&election.answer, args[0]);
}

static void on_request(struct tk_peer *from, const int32_t *args)
{
    int nobody = 0;
    (void)from;
    if (atomic_compare_exchange_strong(&election.requested, &nobody, 1 + (args[0] & 0xff)))
        tk_counter_add(&tk_deferred_work_wanted, 1); /* for good */
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

static bool elect_send(struct tk_peer *to, enum question what)
{
    int32_t arg = (int32_t)what;
    return tk_internal_send(to, TK_REQUEST, TK_HANDLER_ELECT, 1, &arg) == TK_OK;
}

static void give_answer(uint32_t rank)
{
    if (!atomic_exchange(&election.asked[rank], 0))
        return; /* another thread has */
    if (!elect_send(tk_peer(rank), atomic_load(&election.leader) == 1 + rank ? LEAD : FOLLOW)) {
        atomic_store(&election.asked[rank], 1);
        return;
    }
    tk_counter_add(&election.unanswered, -1);
    tk_counter_add(&tk_deferred_work_wanted, -1);
}

void tk_elect_serve(void)
{
    if (tk_counter_read(&election.unanswered) <= 0)
        return;
    for (uint32_t rank = 0; rank < tk_peers.size; rank++)
        if (atomic_load_explicit(&election.asked[rank], memory_order_relaxed))
            give_answer(rank);
}

static enum tk_role decide_ourselves(void)
{
    uint32_t nobody = 0;
    return atomic_compare_exchange_strong(&election.leader, &nobody, 1) ? TK_ROLE_LEADER
                                                                        : TK_ROLE_MEMBER;
}

/* Silence of rank 0 after which this rank leads. */
static uint64_t our_turn(void)
{
    uint64_t turn = all_turns / tk_peers.size;
    return patience + tk_peers.me * (turn < turn_max ? turn : turn_max);
}

static enum tk_role elect_ask(uint64_t waited)
{
    if (!election.has_asked)
        election.has_asked = elect_send(tk_peer(0), ASK);
    int answer = atomic_load(&election.answer);
    if (answer == LEAD || (!answer && waited > our_turn()))
        return TK_ROLE_LEADER;
    return answer == FOLLOW ? TK_ROLE_MEMBER : TK_ROLE_OPEN;
}

enum tk_role tk_elect_step(uint64_t waited)
{
    if (election.role == TK_ROLE_OPEN && tk_elect_requested() >= 0)
        election.role = TK_ROLE_MEMBER;
    if (election.role == TK_ROLE_OPEN)
        election.role = tk_peers.me == 0 ? decide_ourselves() : elect_ask(waited);
    return election.role;
}

static bool elect_request(uint32_t rank, int code)
{
    int32_t arg = code;
    if (rank == tk_peers.me)
        return true;
    return tk_internal_send(tk_peer(rank), TK_CONTROL, TK_HANDLER_EXIT, 1, &arg) != TK_BUSY;
}

/* A rank that cannot take its request now (its ring is full and it does not poll) does not delay
 * the others: it is tried again in the next call. */
void tk_elect_notify(int code)
{
    bool all = true;
    for (uint32_t rank = election.next_to_notify; rank < tk_peers.size; rank++) {
        if (!election.notified[rank])
            election.notified[rank] = elect_request(rank, code);
        all &= election.notified[rank];
        if (all)
            election.next_to_notify = rank + 1;
    }
}
