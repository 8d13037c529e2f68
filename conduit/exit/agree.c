/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The reduction over exit codes: neighbours exchange them by flags in shared memory, the first
 * ranks of neighbourhoods by active messages (leaders.h), and then neighbours again. The largest
 * code wins, so that a rank with code 0 does not hide a failure. A rank completes it only after all
 * have entered it, so it is a barrier too.
 *
 * It happens once, so each flag is written once, by its owner, and stays mapped by neighbours after
 * its owner has exited. Only the leaving thread steps; handlers only store codes. Takes no lock and
 * needs no segment: it works between init and attach, and over both transports. Flags need no
 * polling peer, so neighbours agree even if a rank leaves in the middle of a handler. */
#include "config.h"

#include <stdatomic.h>

#include "base/report.h"
#include "exit/exit_private.h"
#include "exit/state.h"
#include "message/message.h"
#include "peer/peer.h"
#include "progress/steps.h"
#include "progress/threads.h"
#include "topology/leaders.h"
#include "topology/topology.h"
#include "topology/tree.h"
#include "transport/neighbour.h"
#include "transport/transport.h"

/* Set in a word with a code; the word is 0 before. `carried`, downwards: the first rank adds the
 * code to the last fence. */
enum { known = 0x100, carried = 0x200 };

struct word {
    _Alignas(TK_CACHE_LINE) _Atomic uint32_t code;
};

/* In the memory that a rank shares. `up`: the largest code of its subtree. `down`: the code of all
 * ranks. */
struct flags {
    struct word up, down;
};
_Static_assert(tk_flags_of_exit + sizeof(struct flags) <= tk_flags_size, "there is room for both");

static struct {
    struct flags *ours, *above, *below[tk_tree_fan]; /* NULL: none */
    struct tk_tree_place place;
    uint32_t below_count;
    struct tk_leaders leaders;
    bool has_tree; /* on all ranks, of the leaders */
    _Atomic uint32_t received[tk_leaders_steps_max];
    bool cannot; /* a neighbour is unreachable: ranks notice by timeout */
    bool has_begun, is_over;
    bool is_carried;          /* as the word above says */
    uint32_t largest;         /* code known so far */
    uint32_t arrived;         /* number of children that have arrived */
    struct tk_agree_place at; /* among leaders */
} agreement;

static void agree_received(struct tk_peer *from, const int32_t *args)
{
    uint32_t step = (uint32_t)args[0], code = (uint32_t)args[1];
    if (step >= tk_leaders_steps_max)
        tk_panic("rank %u (%s, pid %d) agrees on an exit code in step %u", from->rank, from->host,
                 from->pid, step);
    atomic_store_explicit(&agreement.received[step], known | (code & 0xff), memory_order_release);
}

/* For a thread about to sleep: returns whether the flag that it waits for has been written. A
 * thread of the library returns false: it does not wait for a flag, and the leaving thread may be
 * writing here. */
static bool agree_is_due(void)
{
    if (tk_is_progress_thread() || !agreement.has_begun || agreement.is_over || agreement.cannot)
        return false;
    if (agreement.arrived < agreement.below_count)
        return atomic_load_explicit(&agreement.below[agreement.arrived]->up.code,
                                    memory_order_relaxed) != 0;
    return agreement.above &&
           atomic_load_explicit(&agreement.above->down.code, memory_order_relaxed) != 0;
}

void tk_agree_open(void)
{
    tk_progress_look(agree_is_due);
    tk_internal_register(TK_HANDLER_AGREE, agree_received);
}

static struct flags *flags_of(uint32_t neighbour)
{
    char *page = tk_neighbour_flags(neighbour);
    if (!page)
        agreement.cannot = true;
    return page ? (struct flags *)(void *)(page + tk_flags_of_exit) : NULL;
}

void tk_agree_connect(void)
{
    uint32_t index = tk_topology.nbrhd_rank;
    bool is_later = tk_transports_connect_later();
    agreement.has_tree = tk_leaders_have_tree(tk_topology.nbrhds, is_later);
    tk_leaders_open(&agreement.leaders, is_later);
    tk_agree_at_begin(&agreement.at, &agreement.leaders);
    if (tk_topology.nbrhd_size == 1)
        return;
    /* The tree of the barriers, so that their mappings are used again. */
    const struct tk_tree_place place = tk_tree_place(index, tk_topology.nbrhd_size);
    agreement.place = place;
    agreement.ours = flags_of(index);
    if (index > 0)
        agreement.above = flags_of(place.above);
    for (uint32_t i = 0; i < place.below_count; i++)
        agreement.below[agreement.below_count++] = flags_of(place.below + i);
}

void tk_agree_begin(int code)
{
    agreement.largest = (uint32_t)code & 0xff;
    agreement.has_begun = true;
}

int tk_agree_code(void)
{
    return (int)agreement.largest;
}

/* False: no code there yet. */
static bool agree_take(const _Atomic uint32_t *word)
{
    uint32_t code = atomic_load_explicit(word, memory_order_acquire);
    if (!(code & known))
        return false;
    if ((code & 0xff) > agreement.largest)
        agreement.largest = code & 0xff;
    return true;
}

static bool write_once(struct word *word, uint32_t more)
{
    if (atomic_load_explicit(&word->code, memory_order_relaxed) != 0)
        return false;
    atomic_store_explicit(&word->code, known | more | agreement.largest, memory_order_release);
    return true;
}

static void agree_wake(uint32_t index)
{
    tk_neighbour_wake(tk_topology.nbrhd_ranks[index]);
}

static void agree_wake_below(void)
{
    for (uint32_t i = 0; i < agreement.below_count; i++)
        agree_wake(agreement.place.below + i);
}

static bool agree_gather(void)
{
    while (agreement.arrived < agreement.below_count) {
        if (!agree_take(&agreement.below[agreement.arrived]->up.code))
            return false;
        agreement.arrived++;
    }
    if (agreement.above && write_once(&agreement.ours->up, 0))
        agree_wake(agreement.place.above);
    return true;
}

static bool agree_send(const struct tk_leaders_step *step)
{
    int32_t args[] = {(int32_t)step->to_step, (int32_t)agreement.largest};
    return tk_internal_send(tk_peer(step->to), TK_BOUNDED, TK_HANDLER_AGREE, 2, args) == TK_OK;
}

static bool has_come(void)
{
    return agreement.at.step < agreement.at.end &&
           atomic_load_explicit(&agreement.received[agreement.at.step], memory_order_relaxed) != 0;
}

static bool agree_among_leaders(void)
{
    for (;;) {
        const struct tk_leaders_step *step = &agreement.leaders.steps[agreement.at.step];
        switch (tk_agree_next(&agreement.at, &agreement.leaders, has_come())) {
        case TK_AGREE_SEND:
            if (!agree_send(step))
                return false;
            tk_agree_sent(&agreement.at);
            break;
        case TK_AGREE_WAIT:
            return false;
        case TK_AGREE_PASS:
            if (step->awaits)
                agree_take(&agreement.received[agreement.at.step]);
            tk_agree_passed(&agreement.at);
            break;
        case TK_AGREE_OVER:
            return true;
        }
    }
}

/* What the ranks below are told. A first rank that has entered the fence has added what it knew
 * before. */
static uint32_t carried_below(void)
{
    if (agreement.above)
        return agreement.is_carried ? carried : 0;
    return tk_state_phase(&tk_exit_state) == TK_EXIT_AGREE ? carried : 0;
}

static bool take_from_above(void)
{
    if (!agree_take(&agreement.above->down.code))
        return false;
    agreement.is_carried =
        atomic_load_explicit(&agreement.above->down.code, memory_order_relaxed) & carried;
    return true;
}

static bool agree_advance(bool (*among_leaders)(void))
{
    if (agreement.cannot || !agreement.has_begun || agreement.is_over)
        return agreement.is_over;
    if (!agree_gather() || !(agreement.above ? take_from_above() : among_leaders()))
        return false;
    if (agreement.below_count > 0 && write_once(&agreement.ours->down, carried_below()))
        agree_wake_below();
    return agreement.is_over = true;
}

bool tk_agree_step(void)
{
    return agree_advance(agree_among_leaders);
}

static bool are_no_others(void)
{
    return agreement.at.end == 0;
}

bool tk_agree_step_by_flags(void)
{
    return agree_advance(are_no_others);
}

bool tk_agree_is_carried(void)
{
    return agreement.is_carried;
}

bool tk_agree_has_tree(void)
{
    return agreement.has_tree;
}

const struct tk_leaders *tk_agree_leaders(void)
{
    return &agreement.leaders;
}

uint32_t tk_agree_depth(void)
{
    if (!agreement.has_tree || agreement.arrived < agreement.below_count)
        return 0;
    if (tk_topology.nbrhd_rank > 0)
        return tk_elect_depth_of_neighbour(tk_topology.nbrhds, tk_topology.nbrhd_rank);
    bool is_above = tk_agree_awaits_above(&agreement.at, &agreement.leaders);
    return is_above ? agreement.leaders.depth : 0;
}

uint32_t tk_agree_depth_max(void)
{
    uint32_t last = tk_topology.nbrhd_size - 1;
    return agreement.has_tree ? tk_elect_depth_of_neighbour(tk_topology.nbrhds, last) : 0;
}
