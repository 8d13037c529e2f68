/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Work requests under way: taking one with its slot in the send queue, posting it, giving it back.
 * Inline because every operation passes here.
 *
 * Small messages that nobody waits for are posted quietly, without a completion of their own
 * (IBA 10.7.3.1): a send queue completes in order, so the next completion on the link stands for
 * them too. Never more than a quarter of the queue is quiet, so a full queue always holds something
 * that completes. */
#ifndef TK_VERBS_TX_H
#define TK_VERBS_TX_H

#include "base/bits.h"
#include "transport/verbs/failover/tx_log.h"
#include "transport/verbs/verbs_private.h"

/* Slots come back at any time; they are taken with the link's lock held, so by one thread. */
static inline bool tk_slot_take(struct tk_link *link)
{
    if (tk_counter_read(&link->room) <= 0)
        return false;
    tk_counter_add(&link->room, -1);
    return true;
}

/* A work request with a slot in the send queue and, if wanted, a bounce buffer. NULL: no room now.
 */
static inline struct tk_work *tk_work_take(struct tk_link *link, bool with_bounce)
{
    if (!tk_slot_take(link))
        return NULL;
    struct tk_work *work = tk_pool_take(&tk_verbs.work_pool);
    tk_if_unlikely(!work) goto no_work;
    work->link = link;
    work->is_plain = false;
    work->op = NULL;
    work->get_to = NULL;
    work->sources = NULL;
    work->is_held = false;
    work->bounce = NULL;
    if (with_bounce && !(work->bounce = tk_pool_take(&tk_verbs.bounce_pool)))
        goto no_bounce;
    return work;
no_bounce:
    tk_pool_give(&tk_verbs.work_pool, work);
no_work:
    tk_counter_add(&link->room, 1);
    return NULL;
}

/* The same for what needs nothing but its operation counted. */
static inline struct tk_work *tk_work_take_plain(struct tk_link *link, struct tk_op *op)
{
    tk_if_unlikely(tk_counter_read(&link->room) <= 0) return NULL;
    struct tk_work *work = tk_pool_try(&tk_verbs.work_pool);
    tk_if_unlikely(!work) return NULL;
    tk_counter_add(&link->room, -1);
    work->link = link;
    work->is_plain = true;
    work->op = op;
    return work;
}

static inline void tk_work_give_plain(struct tk_work *work)
{
    struct tk_link *link = work->link;
    int slots = 1 + work->covers;
    tk_pool_give(&tk_verbs.work_pool, work);
    tk_counter_add(&link->room, slots);
}

static inline void tk_work_give(struct tk_work *work)
{
    struct tk_link *link = work->link;
    int slots = 1 + work->covers;
    if (work->bounce)
        tk_pool_give(&tk_verbs.bounce_pool, work->bounce);
    tk_pool_give(&tk_verbs.work_pool, work);
    tk_counter_add(&link->room, slots);
}

/* The device is through with it, and counted it. */
static inline void tk_work_complete_plain(struct tk_work *work)
{
    struct tk_op *op = work->op;
    tk_counter_add(&tk_verbs.works_out, -1);
    tk_work_give_plain(work);
    tk_counter_add(&op->pending, -1);
}

/* Fills in what all work requests share and posts. The rest of wr, 128 bytes of it, is left as it
 * is: no device looks at fields of other opcodes. `notes` is a constant where that saves time; the
 * keys by rail, of local memory that is no bounce buffer and of remote memory, are for notes. */
static inline void __attribute__((always_inline))
tk_work_post_noted(struct tk_work *work, struct ibv_send_wr *wr, enum ibv_wr_opcode opcode,
                   unsigned flags, bool notes, const struct tk_note_keys *keys)
{
    struct tk_link *link = work->link;
    struct ibv_send_wr *bad;
    wr->wr_id = (uintptr_t)work;
    wr->next = NULL;
    wr->opcode = opcode;
    wr->send_flags = flags | IBV_SEND_SIGNALED;
    work->opcode = (uint8_t)opcode;
    work->covers = link->quiet;
    link->quiet = 0;
    tk_counter_add(&tk_verbs.works_out, 1);
    tk_if_unlikely(notes) tk_note_work(work, wr, keys);
    int error = ibv_post_send(link->qp, wr, &bad);
    tk_if_unlikely(error) tk_post_failed(work, error);
}

static inline void tk_work_post(struct tk_work *work, struct ibv_send_wr *wr,
                                enum ibv_wr_opcode opcode, unsigned flags,
                                const uint32_t *local_keys, const uint32_t *remote_keys)
{
    struct tk_note_keys keys = {.local = local_keys, .remote = remote_keys};
    tk_work_post_noted(work, wr, opcode, flags, tk_verbs.keeps, &keys);
}

/* Completes its operation, and gives it back: also what was acknowledged in another way. */
void tk_work_complete(struct tk_work *work);

/* Takes a slot for a message without a completion; false: not now, take a work request. */
static inline bool tk_quiet_take(struct tk_link *link)
{
    if (link->quiet >= tk_verbs.quiet_max || !tk_slot_take(link))
        return false;
    link->quiet++;
    return true;
}

/* The same where messages are noted. */
static inline bool tk_noted_quiet_take(struct tk_link *link)
{
    if (link->quiet >= tk_verbs.noted_quiet_max || !tk_slot_take(link))
        return false;
    link->quiet++;
    return true;
}

#endif
