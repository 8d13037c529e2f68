/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Advances collectives in flight, in any poll, without waiting. Owns them, and keeps finished ones
 * with their memory for reuse. One lock protects all of it; polls only try it, so that a thread
 * that combines large operands does not delay threads that wait for something else. Handlers do not
 * take it: they only complete receives (match.c).
 *
 * A payload of up to tk_coll_eager_max bytes is sent at once. For a larger one the receiver
 * announces that it is ready and, where the destination lies in the segment of endpoint 0, its
 * address: then the sender puts the payload there and sends a word when the put is complete.
 * Otherwise it sends chunks. */
#include "config.h"

#include <stdlib.h>

#include "base/lock.h"
#include "base/report.h"
#include "base/wait_record.h"
#include "collective/coll_post.h"
#include "collective/coll_private.h"
#include "op/op.h"
#include "progress/progress.h"
#include "settings/settings.h"

enum step_state {
    STEP_WHOLE,  /* send: the payload in one message */
    STEP_ASKED,  /* send: the receiver is not ready yet */
    STEP_CHUNKS, /* send: in parts */
    STEP_PUT,    /* send: pieces of the put are left to be posted */
    STEP_LANDS,  /* send: the put is not complete */
    STEP_SAY,    /* send: tell the receiver that it is */
    STEP_READY,  /* receive: our announcement is not sent yet */
    STEP_ARRIVES,
    STEP_OVER
};

static struct {
    tk_lock_t lock;
    struct tk_coll *first, **end; /* under way, in the order of their start */
    struct tk_coll *free;
    size_t kept;      /* bytes of scratch memory in `free` */
    int32_t news;     /* tk_coll_news at the last pass over all of them */
    bool must_look;   /* some wait for events other than messages: */
    bool lacks_space; /* for space in a queue, which rings no doorbell */
} engine = {.lock = TK_LOCK_INIT, .end = &engine.first};

/* ---- sends and receives */

static uint32_t rank_of(const struct tk_coll_group *group, uint32_t index)
{
    if (index == group->root && group->stand_in != tk_list_none)
        return group->stand_in;
    return group->ranks ? tk_list_at(group->ranks, index) : index;
}

static struct tk_coll_step *step_add(struct tk_coll *coll)
{
    if (coll->step_count == coll->step_space) {
        coll->step_space = coll->step_space ? 2 * coll->step_space : 4;
        coll->steps = realloc(coll->steps, coll->step_space * sizeof(*coll->steps));
        if (!coll->steps)
            tk_panic("out of memory for %u transfers of a collective", coll->step_space);
    }
    return &coll->steps[coll->step_count++];
}

static void step_fill(struct tk_coll *coll, uint32_t index, void *memory, size_t nbytes,
                      uint32_t tag, bool is_send)
{
    const gex_TM_t tm = coll->call.tm;
    const uint32_t other = rank_of(tk_coll_group(coll), index), me = tk_team_rank(tm);
    struct tk_coll_step *step = step_add(coll);
    step->peer = tk_peer_of(tm, other);
    step->memory = memory;
    step->nbytes = nbytes;
    step->sent = 0;
    step->is_send = is_send;
    step->post.key = (struct tk_coll_key){.team = tm->id,
                                          .sequence = coll->sequence,
                                          .from = is_send ? me : other,
                                          .to = is_send ? other : me,
                                          .tag = (uint32_t)coll->phase << 24 | tag};
}

void tk_coll_send(struct tk_coll *coll, uint32_t index, const void *memory, size_t nbytes,
                  uint32_t tag)
{
    step_fill(coll, index, (void *)memory, nbytes, tag, true);
}

void tk_coll_receive(struct tk_coll *coll, uint32_t index, void *memory, size_t nbytes,
                     uint32_t tag)
{
    step_fill(coll, index, memory, nbytes, tag, false);
}

struct tk_coll_key tk_coll_key_from(const struct tk_coll *coll, uint32_t index, uint32_t tag)
{
    const gex_TM_t tm = coll->call.tm;
    return (struct tk_coll_key){.team = tm->id,
                                .sequence = coll->sequence,
                                .from = rank_of(tk_coll_group(coll), index),
                                .to = tk_team_rank(tm),
                                .tag = (uint32_t)coll->phase << 24 | tag};
}

/* The opposite direction: from the receiver to the sender. */
static struct tk_coll_key ready_key(const struct tk_coll_key *key)
{
    struct tk_coll_key ready = *key;
    ready.from = key->to;
    ready.to = key->from;
    ready.tag |= tk_coll_ready_tag;
    return ready;
}

/* For puts by others. */
static uint64_t address_for(const struct tk_coll_step *step)
{
    const struct tk_peer *me = tk_peer(tk_peers.me);
    return tk_peer_has(me, (uintptr_t)step->memory, step->nbytes) ? (uintptr_t)step->memory : 0;
}

/* Posts the receive that the step waits for. Called only after all steps of the round are on the
 * list, which may move while it grows. */
static void step_begin(struct tk_coll_step *step)
{
    if (step->is_send && step->nbytes <= tk_coll_eager_max) {
        step->state = STEP_WHOLE;
        return;
    }
    if (step->is_send) {
        struct tk_coll_key key = step->post.key;
        step->state = STEP_ASKED;
        step->post.key = ready_key(&key);
        step->post.memory = NULL;
        step->post.nbytes = 0;
    } else {
        step->state = step->nbytes > tk_coll_eager_max ? STEP_READY : STEP_ARRIVES;
        step->post.memory = step->memory;
        step->post.nbytes = step->nbytes;
    }
    tk_coll_post_enter(&step->post);
}

static bool has_space(enum tk_status status)
{
    if (status == TK_BUSY)
        engine.lacks_space = true;
    return status != TK_BUSY;
}

static void step_go(struct tk_coll_step *step)
{
    uint64_t address = step->post.word;
    step->post.key = ready_key(&step->post.key); /* back to the key of the data */
    step->post.key.tag &= ~tk_coll_ready_tag;
    if (!address || !tk_peer_has(step->peer, (uintptr_t)address, step->nbytes)) {
        step->state = STEP_CHUNKS;
        return;
    }
    tk_op_init(&step->putting);
    step->put_state = (struct tk_rma_state){.done = 0};
    step->put = (struct tk_rma){.remote = (uintptr_t)address,
                                .local = step->memory,
                                .nbytes = step->nbytes,
                                .op = &step->putting,
                                .is_put = true};
    step->state = STEP_PUT;
}

static bool send_chunks(struct tk_coll_step *step)
{
    while (step->sent < step->nbytes) {
        size_t nbytes = tk_min(step->nbytes - step->sent, tk_coll_chunk_max());
        if (!has_space(tk_coll_send_chunk(step->peer, &step->post.key, step->memory + step->sent,
                                          nbytes, step->sent)))
            return false;
        step->sent += nbytes;
    }
    return true;
}

/* One transition; false: it has to wait. */
static bool step_send(struct tk_coll_step *step)
{
    switch ((enum step_state)step->state) {
    case STEP_WHOLE:
        if (!has_space(tk_coll_send_whole(step->peer, &step->post.key, step->memory, step->nbytes)))
            return false;
        step->state = STEP_OVER;
        return true;
    case STEP_ASKED:
        if (!tk_coll_post_done(&step->post))
            return false;
        step_go(step);
        return true;
    case STEP_CHUNKS:
        if (!send_chunks(step))
            return false;
        step->state = STEP_OVER;
        return true;
    case STEP_PUT:
        if (!has_space(
                tk_peer_transport(step->peer)->rma.post(step->peer, &step->put, &step->put_state)))
            return false;
        step->state = STEP_LANDS;
        return true;
    case STEP_LANDS:
        if (!tk_op_done(&step->putting)) {
            engine.must_look = true;
            return false;
        }
        step->state = STEP_SAY;
        return true;
    default:
        if (!has_space(tk_coll_send_word(step->peer, &step->post.key, step->nbytes)))
            return false;
        step->state = STEP_OVER;
        return true;
    }
}

static bool step_receive(struct tk_coll_step *step)
{
    if (step->state == STEP_READY) {
        const struct tk_coll_key key = ready_key(&step->post.key);
        if (!has_space(tk_coll_send_word(step->peer, &key, address_for(step))))
            return false;
        step->state = STEP_ARRIVES;
    }
    if (!tk_coll_post_done(&step->post))
        return false;
    step->state = STEP_OVER;
    return true;
}

static bool step_is_over(struct tk_coll_step *step)
{
    while (step->state != STEP_OVER)
        if (!(step->is_send ? step_send(step) : step_receive(step)))
            return false;
    return true;
}

/* Tries all of them: a collective that waits does not delay others. */
static bool steps_are_over(struct tk_coll *coll)
{
    bool all = true;
    for (unsigned i = 0; i < coll->step_count; i++)
        all &= step_is_over(&coll->steps[i]);
    return all;
}

/* ---- collectives */

char *tk_coll_scratch(struct tk_coll *coll, size_t nbytes)
{
    if (coll->scratch_size < nbytes) {
        free(coll->scratch);
        coll->scratch = aligned_alloc(TK_CACHE_LINE, tk_align_up(nbytes, TK_CACHE_LINE));
        if (!coll->scratch)
            tk_panic("out of memory for %zu bytes of operands of a reduction", nbytes);
        coll->scratch_size = nbytes;
    }
    return coll->scratch;
}

struct tk_coll *tk_coll_take(void)
{
    tk_lock(&engine.lock);
    struct tk_coll *coll = engine.free;
    if (coll) {
        engine.free = coll->next;
        engine.kept -= coll->scratch_size;
    } else if (!(coll = calloc(1, sizeof(*coll)))) {
        tk_panic("out of memory for a collective");
    }
    tk_unlock(&engine.lock);
    coll->phase = coll->phase_count = coll->round = 0;
    coll->is_node_local = false;
    coll->stage = 0;
    coll->step_count = 0;
    return coll;
}

static void coll_give(struct tk_coll *coll)
{
    if (engine.kept + coll->scratch_size > tk_settings.coll_scratch_size) {
        free(coll->scratch);
        coll->scratch = NULL;
        coll->scratch_size = 0;
    }
    engine.kept += coll->scratch_size;
    coll->next = engine.free;
    engine.free = coll;
}

static enum tk_coll_turn coll_turn(struct tk_coll *coll)
{
    const struct tk_coll_phase *phase = &coll->phases[coll->phase];
    enum tk_coll_turn turn = phase->next ? phase->next(coll) : TK_COLL_OVER;
    if (turn == TK_COLL_GO_ON)
        coll->round++;
    if (turn == TK_COLL_OVER) {
        coll->phase++;
        coll->round = 0;
        coll->stage = 0;
    }
    return turn;
}

/* True: the collective is complete. */
static bool coll_advance(struct tk_coll *coll)
{
    while (steps_are_over(coll)) {
        coll->step_count = 0;
        if (coll->phase == coll->phase_count)
            return true;
        if (coll_turn(coll) == TK_COLL_LATER) {
            engine.must_look = true;
            return false;
        }
        for (unsigned i = 0; i < coll->step_count; i++)
            step_begin(&coll->steps[i]);
    }
    return false;
}

static void coll_finish(struct tk_coll *coll)
{
    struct tk_op *op = coll->op;
    coll_give(coll);
    tk_counter_add(&tk_deferred_work_wanted, -1);
    tk_counter_add(&op->pending, -1);
}

static void set_flags_of_waiters(bool lacked_space)
{
    if (engine.lacks_space != lacked_space)
        tk_counter_add(&tk_deferred_work_lacks_space, engine.lacks_space ? 1 : -1);
}

static bool advance_all(void)
{
    bool any = false, lacked_space = engine.lacks_space;
    engine.news = tk_counter_read(&tk_coll_news);
    engine.must_look = engine.lacks_space = false;
    for (struct tk_coll **at = &engine.first; *at;) {
        struct tk_coll *coll = *at;
        if (!coll_advance(coll)) {
            at = &coll->next;
            continue;
        }
        *at = coll->next;
        if (!*at)
            engine.end = at;
        coll_finish(coll);
        any = true;
    }
    set_flags_of_waiters(lacked_space);
    return any;
}

static bool has_reason(void)
{
    return engine.first && (engine.must_look || engine.lacks_space ||
                            tk_counter_read(&tk_coll_news) != engine.news);
}

static bool engine_progress(void)
{
    if (!tk_trylock(&engine.lock))
        return false;
    bool any = has_reason() && advance_all();
    tk_unlock(&engine.lock);
    return any;
}

static bool node_local_is_due(void)
{
    for (const struct tk_coll *coll = engine.first; coll; coll = coll->next)
        if (coll->is_node_local && tk_local_is_due(&coll->node_local))
            return true;
    return false;
}

static bool engine_is_due(void)
{
    if (!tk_trylock(&engine.lock))
        return true;
    bool due =
        engine.first && (tk_counter_read(&tk_coll_news) != engine.news || node_local_is_due());
    tk_unlock(&engine.lock);
    return due;
}

/* A send waits for the receiver's announcement, a receive for the sender. */
static void coll_describe(struct tk_wait_rows *rows, const struct tk_coll *coll)
{
    enum { rows_each = 4 };
    unsigned added = 0;
    for (unsigned i = 0; i < coll->step_count && added < rows_each; i++)
        if (coll->steps[i].state != STEP_OVER) {
            tk_wait_row_add(rows, TK_REASON_COLLECTIVE, coll->steps[i].peer->rank, coll->sequence,
                            coll->call.tm->id);
            added++;
        }
    if (!added && coll->is_node_local)
        tk_local_missing(&coll->node_local, rows, coll->sequence, coll->call.tm->id);
}

static void engine_describe(struct tk_wait_rows *rows)
{
    if (!tk_trylock(&engine.lock))
        return;
    for (const struct tk_coll *coll = engine.first; coll; coll = coll->next)
        coll_describe(rows, coll);
    tk_unlock(&engine.lock);
}

void tk_coll_engine_open(void)
{
    tk_wait_describe_add(engine_describe);
    tk_progress_look(engine_is_due);
    tk_progress_add(engine_progress);
}

void tk_coll_begin(struct tk_coll *coll, void (*compose)(struct tk_coll *coll))
{
    tk_lock(&engine.lock);
    bool lacked_space = engine.lacks_space;
    compose(coll);
    tk_counter_add(&tk_deferred_work_wanted, 1);
    if (coll_advance(coll)) {
        coll_finish(coll);
    } else {
        coll->next = NULL;
        *engine.end = coll;
        engine.end = &coll->next;
    }
    set_flags_of_waiters(lacked_space);
    tk_unlock(&engine.lock);
}
