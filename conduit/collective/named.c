/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The named barrier: a dissemination barrier, as in barrier.c, whose messages carry what the sender
 * and all that it has heard agree on. Agreement is a maximum in a lattice (anything < one name <
 * disagreement), so it does not matter that some contributions arrive on two ways, and all ranks
 * end with the same.
 *
 * A rank can be one barrier ahead of us, never two: it leaves the next one only after we have
 * entered that. So two sets of slots are enough, and a slot is empty again long before its next
 * message is sent. One lock guards the barrier; handlers only fill slots. */
#include "config.h"

#include "base/lock.h"
#include "base/report.h"
#include "collective/named.h"
#include "message/message.h"
#include "progress/progress.h"

enum { rounds_max = 32, phases = 2 };

enum kind { NOT_HEARD, ANYTHING, ONE_NAME, DISAGREEMENT, kinds };

struct name {
    enum kind kind;
    int32_t id;
};

static struct {
    tk_lock_t lock;
    unsigned rounds;
    bool pending;    /* between notify and wait */
    struct tk_op op; /* counts this barrier until it is done */
    unsigned phase, round;
    bool told;        /* our message of this round is out */
    struct name name; /* of ourselves and all heard so far */
    struct name last; /* of the barrier that ended last */
    struct {
        tk_counter_t kind, id;
    } heard[phases][rounds_max];
} state = {.lock = TK_LOCK_INIT};

static void heard(struct tk_peer *from, const int32_t *args)
{
    uint32_t phase = (uint32_t)args[0], round = (uint32_t)args[1], kind = (uint32_t)args[2];
    if (phase >= phases || round >= state.rounds || kind == NOT_HEARD || kind >= kinds)
        tk_panic("rank %u is in round %u of phase %u of a named barrier of %u rounds", from->rank,
                 round, phase, state.rounds);
    tk_counter_set(&state.heard[phase][round].id, args[3]);
    tk_counter_add(&state.heard[phase][round].kind, (int32_t)kind);
}

static bool tell(unsigned round)
{
    int32_t args[] = {(int32_t)state.phase, (int32_t)round, (int32_t)state.name.kind,
                      state.name.id};
    uint32_t to = (uint32_t)(((uint64_t)tk_peers.me + (UINT64_C(1) << round)) % tk_peers.size);
    return tk_internal_send(tk_peer(to), TK_REQUEST, TK_HANDLER_NAMED, 4, args) == TK_OK;
}

static struct name agree(struct name a, struct name b)
{
    if (a.kind == ONE_NAME && b.kind == ONE_NAME && a.id != b.id)
        return (struct name){DISAGREEMENT, 0};
    return a.kind >= b.kind ? a : b;
}

static bool listen(unsigned round)
{
    struct name theirs = {.kind =
                              (enum kind)tk_counter_read(&state.heard[state.phase][round].kind)};
    if (theirs.kind == NOT_HEARD)
        return false;
    theirs.id = tk_counter_read(&state.heard[state.phase][round].id);
    tk_counter_set(&state.heard[state.phase][round].kind, NOT_HEARD);
    state.name = agree(state.name, theirs);
    return true;
}

static void advance(void)
{
    while (state.round < state.rounds) {
        if (!state.told && !(state.told = tell(state.round)))
            return;
        if (!listen(state.round))
            return;
        state.round++;
        state.told = false;
    }
    tk_counter_add(&tk_work_wanted, -1);
    tk_counter_add(&state.op.pending, -1);
}

static void progress(void)
{
    if (!tk_trylock(&state.lock))
        return;
    if (!tk_op_done(&state.op))
        advance();
    tk_unlock(&state.lock);
}

void tk_named_open(void)
{
    while ((UINT64_C(1) << state.rounds) < tk_peers.size)
        state.rounds++;
    tk_internal_register(TK_HANDLER_NAMED, heard);
    tk_progress_add(progress);
}

static struct name name_of(int id, int flags)
{
    if (flags & GASNET_BARRIERFLAG_MISMATCH)
        return (struct name){DISAGREEMENT, 0};
    if (flags & GASNET_BARRIERFLAG_ANONYMOUS)
        return (struct name){ANYTHING, 0};
    return (struct name){ONE_NAME, id};
}

bool tk_named_notify(int id, int flags)
{
    tk_lock(&state.lock);
    bool is_first = !state.pending;
    if (is_first) {
        state.pending = true;
        state.phase ^= 1;
        state.round = 0;
        state.told = false;
        state.name = name_of(id, flags);
        tk_counter_add(&state.op.pending, 1);
        tk_counter_add(&tk_work_wanted, 1);
        advance();
    }
    tk_unlock(&state.lock);
    return is_first;
}

bool tk_named_pending(void)
{
    tk_lock(&state.lock);
    bool pending = state.pending;
    tk_unlock(&state.lock);
    return pending;
}

bool tk_named_done(void)
{
    return tk_op_done(&state.op);
}

void tk_named_wait(void)
{
    tk_wait_served(&state.op.pending);
}

bool tk_named_end(int id, int flags)
{
    tk_lock(&state.lock);
    state.pending = false;
    state.last = state.name;
    struct name all = agree(state.name, name_of(id, flags));
    tk_unlock(&state.lock);
    return all.kind != DISAGREEMENT;
}

bool tk_named_result(int *id)
{
    tk_lock(&state.lock);
    struct name last = state.last;
    tk_unlock(&state.lock);
    if (last.kind == ONE_NAME)
        *id = last.id;
    return last.kind == ONE_NAME;
}
