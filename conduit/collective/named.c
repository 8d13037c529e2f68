/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The named barrier: over the same paths as in barrier.c, but flags and messages carry the name
 * that the sender and all contributions it has received agree on. Agreement is a maximum in a
 * lattice (anything < one name < disagreement), so it is harmless that some contributions arrive by
 * two paths, and all ranks end with the same result.
 *
 * A rank can be one barrier ahead of us, never two: it leaves the next one only after we have
 * entered that. So two sets of slots are enough, and a slot is empty again long before its next
 * message is sent. One lock protects the barrier; handlers only fill slots. */
#include "config.h"

#include "base/lock.h"
#include "base/report.h"
#include "base/wait_record.h"
#include "collective/named.h"
#include "collective/nbrhd.h"
#include "message/message.h"
#include "op/op.h"
#include "progress/progress.h"
#include "topology/leaders.h"
#include "transport/neighbour.h"
#include "transport/transport.h"

enum { phases = 2 };

enum kind { NOT_RECEIVED, ANYTHING, ONE_NAME, DISAGREEMENT, kinds };

struct name {
    enum kind kind;
    int32_t id;
};

static struct {
    tk_lock_t lock;
    struct tk_nbrhd nbrhd;
    struct tk_leaders leaders;
    bool pending;     /* between notify and wait */
    struct tk_op op;  /* counts this barrier until it is done */
    uint32_t number;  /* of this barrier, from 1; wraps */
    bool gathered;    /* all below us in the neighbourhood have arrived */
    unsigned step;    /* among leaders */
    unsigned end;     /* one past their last step */
    bool by_tree;     /* the first barriers, among leaders */
    bool sent;        /* our message of this step is sent */
    struct name name; /* of this rank and all received so far */
    struct name last; /* of the barrier that ended last */
    struct {
        tk_counter_t kind, id;
    } received[phases][tk_leaders_steps_max];
} state = {.lock = TK_LOCK_INIT};

static struct name named_agree(struct name a, struct name b)
{
    if (a.kind == ONE_NAME && b.kind == ONE_NAME && a.id != b.id)
        return (struct name){DISAGREEMENT, 0};
    return a.kind >= b.kind ? a : b;
}

/* ---- leaders */

static void named_received(struct tk_peer *from, const int32_t *args)
{
    uint32_t phase = (uint32_t)args[0], step = (uint32_t)args[1], kind = (uint32_t)args[2];
    if (phase >= phases || !tk_leaders_await(&state.leaders, step) || kind == NOT_RECEIVED ||
        kind >= kinds)
        tk_panic("rank %u (%s, pid %d) is in step %u of phase %u of a named barrier of %u steps, "
                 "with a name of kind %u",
                 from->rank, from->host, from->pid, step, phase, state.leaders.all, kind);
    tk_counter_set(&state.received[phase][step].id, args[3]);
    tk_counter_add(&state.received[phase][step].kind, (int32_t)kind);
}

static bool named_send(const struct tk_leaders_step *step)
{
    int32_t args[] = {(int32_t)(state.number % phases), (int32_t)step->to_step,
                      (int32_t)state.name.kind, state.name.id};
    return tk_internal_send(tk_peer(step->to), TK_REQUEST, TK_HANDLER_NAMED, 4, args) == TK_OK;
}

static bool named_receive(unsigned step)
{
    unsigned phase = state.number % phases;
    struct name theirs = {.kind = (enum kind)tk_counter_read(&state.received[phase][step].kind)};
    if (theirs.kind == NOT_RECEIVED)
        return false;
    theirs.id = tk_counter_read(&state.received[phase][step].id);
    tk_counter_set(&state.received[phase][step].kind, NOT_RECEIVED);
    state.name = named_agree(state.name, theirs);
    return true;
}

static bool named_lead(void)
{
    while (state.step < state.end) {
        const struct tk_leaders_step *step = &state.leaders.steps[state.step];
        if (step->sends && !state.sent && !(state.sent = named_send(step)))
            return false;
        if (step->awaits && !named_receive(state.step))
            return false;
        state.step++;
        state.sent = false;
    }
    return true;
}

static void begin_steps(void)
{
    const struct tk_leaders *leaders = &state.leaders;
    state.by_tree &= state.number <= tk_leaders_few;
    state.step = state.by_tree ? 0 : leaders->tree;
    state.end = state.by_tree ? leaders->tree : leaders->all;
    state.sent = false;
}

/* ---- neighbours */

static uint64_t named_word_of(struct name name)
{
    return (uint64_t)name.kind << 32 | (uint32_t)name.id;
}

static struct name named_read(const struct tk_nbrhd_other *from, const struct tk_nbrhd_line *line)
{
    uint64_t word = tk_nbrhd_word(line, state.number);
    uint64_t kind = word >> 32;
    if (kind == NOT_RECEIVED || kind >= kinds) {
        const struct tk_peer *peer = tk_peer(from->rank);
        tk_panic("rank %u (%s, pid %d) came to named barrier %u with a name of kind %llu of %d",
                 from->rank, peer->host, peer->pid, state.number, (unsigned long long)kind,
                 kinds - 1);
    }
    return (struct name){(enum kind)kind, (int32_t)(uint32_t)word};
}

static bool named_gather(void)
{
    if (state.gathered)
        return true;
    if (tk_nbrhd_gather(&state.nbrhd, state.number) != state.number)
        return false;
    for (uint32_t i = 0; i < state.nbrhd.below_count; i++) {
        const struct tk_nbrhd_other *other = &state.nbrhd.below[i];
        state.name = named_agree(state.name, named_read(other, &other->lines->up));
    }
    if (!tk_nbrhd_leads(&state.nbrhd))
        tk_nbrhd_publish_up(&state.nbrhd, state.number, named_word_of(state.name));
    return state.gathered = true;
}

static bool named_read_down(void)
{
    const struct tk_nbrhd_other *above = &state.nbrhd.above;
    if (tk_nbrhd_leads(&state.nbrhd))
        return named_lead();
    if (tk_nbrhd_read_down(&state.nbrhd, state.number) != state.number)
        return false;
    state.name = named_read(above, &above->lines->down);
    return true;
}

static bool named_advance(void)
{
    if (!named_gather() || !named_read_down())
        return false;
    tk_nbrhd_publish_down(&state.nbrhd, state.number, named_word_of(state.name));
    tk_nbrhd_pass(&state.nbrhd, state.number);
    tk_wait_page.progress.named_over = state.number;
    tk_counter_add(&tk_deferred_work_wanted, -1);
    tk_counter_add(&state.op.pending, -1);
    return true;
}

static bool named_progress(void)
{
    if (!tk_trylock(&state.lock))
        return false;
    bool any = !tk_op_done(&state.op) && named_advance();
    tk_unlock(&state.lock);
    return any;
}

static bool named_is_due(void)
{
    if (!tk_trylock(&state.lock))
        return true;
    bool due = !tk_op_done(&state.op) && tk_nbrhd_is_due(&state.nbrhd, state.number);
    tk_unlock(&state.lock);
    return due;
}

static void named_add(void *context, uint32_t rank)
{
    tk_wait_row_add(context, TK_REASON_NAMED, rank, state.number, 0);
}

static void named_describe(struct tk_wait_rows *rows)
{
    if (!tk_trylock(&state.lock))
        return;
    uint32_t had = rows->count;
    bool waits = state.pending && !tk_op_done(&state.op);
    if (waits)
        tk_nbrhd_missing(&state.nbrhd, state.number, named_add, rows);
    if (waits && rows->count == had && state.step < state.end)
        tk_wait_row_add(rows, TK_REASON_NAMED, state.leaders.steps[state.step].from, state.number,
                        state.step + 1);
    tk_unlock(&state.lock);
}

void tk_named_open(void)
{
    tk_wait_describe_add(named_describe);
    tk_progress_look(named_is_due);
    tk_internal_register(TK_HANDLER_NAMED, named_received);
    tk_progress_add(named_progress);
}

static struct tk_nbrhd_lines *named_lines_of(uint32_t neighbour)
{
    struct tk_nbrhd_page *page = tk_neighbour_flags(neighbour);
    return page ? &page->named : NULL;
}

enum tk_status tk_named_connect(void)
{
    tk_leaders_open(&state.leaders, tk_transports_connect_later());
    state.by_tree = state.leaders.tree > 0;
    return tk_nbrhd_open(&state.nbrhd, named_lines_of);
}

/* ---- what clients call */

static struct name named_name_of(int id, int flags)
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
        state.number++;
        state.gathered = false;
        begin_steps();
        state.name = named_name_of(id, flags);
        tk_wait_page.progress.named = state.number;
        tk_wait_page.progress.named_id = (uint32_t)id;
        tk_wait_page.progress.named_flags = (uint32_t)flags;
        tk_counter_add(&state.op.pending, 1);
        tk_counter_add(&tk_deferred_work_wanted, 1);
        if (state.nbrhd.is_flat)
            tk_nbrhd_publish_up(&state.nbrhd, state.number, named_word_of(state.name));
        named_advance();
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
    struct name all = named_agree(state.name, named_name_of(id, flags));
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
