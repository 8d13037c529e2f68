/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A link that dies, in a job that has others: nothing that went over it is lost, nothing is done
 * twice.
 *
 * Either end may notice first. It puts its queue pair into ERR, so that nothing goes out or comes
 * in over the link any more, and waits until the device has given back all that it had: the link is
 * drained, and how many messages came over it is final. That number it tells the other end in a
 * notice, over another link of the pair; who gets a notice closes its end as well. Who has drained
 * a link and has the other's notice knows what became of each thing that was posted: a reliable
 * connection delivers in order, so all messages up to that number came, and so did the puts in
 * front of them; the rest, and all gets, are posted again, in the same order, over the primary
 * link. What may still be under way on the old one can't overtake that: its ends are closed.
 *
 * When it is the primary link that died, the one with the lowest number takes its place. Each end
 * posts its receive buffers there before it sends its notice. If one knows of more dead links than
 * the other, its notices tell: what was sent over one of those is lost once more, and found again
 * in the same way. Messages wait until those before them are posted again. Credits move along
 * unchanged: each message arrives once, and gives back what it gave before. Until then the dead
 * link is the primary one, and has no room: nobody else has to know.
 *
 * What is told and heard is in failover/control.c, how a link comes back in failover/reconnect.c.
 * One thread at a time goes on with moves; that lock is taken before a link's. Nobody else holds
 * two links' locks. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/clock.h"
#include "base/report.h"
#include "settings/settings.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/control.h"
#include "transport/verbs/failover/failover.h"
#include "transport/verbs/failover/reconnect.h"
#include "transport/verbs/failover/tx_log.h"

struct tk_redo {
    struct tk_redo *next;
    struct tk_note note;
};

enum tk_status tk_failover_open(void)
{
    if (!tk_verbs.keeps)
        return TK_OK;
    tk_lock_init(&tk_verbs.aside.lock);
    tk_verbs.pairs = calloc(tk_peers.size, sizeof(*tk_verbs.pairs));
    if (!tk_verbs.pairs) {
        tk_log_error("out of memory for %u pairs of ranks", tk_peers.size);
        return TK_FAIL;
    }
    for (uint32_t r = 0; r < tk_peers.size; r++)
        tk_verbs.pairs[r].heir = -1;
    return TK_OK;
}

static void drop_redo(struct tk_rank_pair *pair)
{
    struct tk_redo *first = pair->redo;
    pair->redo = first->next;
    free(first);
}

void tk_failover_close(void)
{
    for (uint32_t r = 0; tk_verbs.pairs && r < tk_peers.size; r++)
        while (tk_verbs.pairs[r].redo)
            drop_redo(&tk_verbs.pairs[r]);
    free(tk_verbs.pairs);
    tk_verbs.pairs = NULL;
}

/* Of those to the peer, the first that lives, or may; NULL: none does. */
static struct tk_link *first_open(uint32_t rank, const struct tk_link *but)
{
    struct tk_link *links = tk_links_to(rank);
    for (uint32_t k = 0; k < tk_verbs.links_pp; k++)
        if (&links[k] != but && tk_link_is_open(&links[k]))
            return &links[k];
    return NULL;
}

/* ---- death ---- */

/* True if it was live. */
static bool close_end(struct tk_link *link)
{
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    bool was_live = tk_link_is_live(link);
    tk_counter_add(&tk_verbs.chores, 1);
    tk_counter_add(&tk_pair_of(link)->moving, 1);
    if (was_live)
        tk_counter_add(&link->room, -tk_no_room_ever);
    link->surplus += tk_no_room_ever;
    link->notes->life.ended = tk_now();
    tk_counter_leave(&link->fate, TK_CLOSING);
    int error = ibv_modify_qp(link->qp, &attr, IBV_QP_STATE);
    if (error)
        tk_panic("%s:%u: modify_qp to ERR for rank %u failed: %s", tk_rail_of(link)->address.device,
                 tk_rail_of(link)->address.port, link->peer->rank, strerror(error));
    return was_live;
}

void tk_link_give_up(struct tk_link *link, const char *why)
{
    const struct tk_port_address *a = &tk_rail_of(link)->address;
    tk_lock(&link->lock);
    bool was_live = tk_link_is_open(link) && close_end(link);
    tk_unlock(&link->lock);
    if (!was_live)
        return;
    tk_counter_add(&tk_rail_of(link)->deaths, 1);
    tk_log_warn("%s:%u no longer reaches rank %u (%s): %s; what went over it goes over other "
                "ports (GASNET_IBV_FAILOVER=0 ends the job instead)",
                a->device, a->port, link->peer->rank, link->peer->host, why);
}

/* False: it lives, and its death is the end of the job, or the job is at its end. */
static bool die(struct tk_link *link, const struct ibv_wc *wc)
{
    if (!tk_link_is_open(link))
        return true;
    if (tk_counter_read(&link->broken))
        return false;
    if (tk_is_leaving() || !first_open(link->peer->rank, link)) {
        struct tk_link *primary = tk_primary(link->peer);
        if (!tk_link_is_live(primary)) /* what waits there for this one waits no more */
            tk_counter_add(&primary->broken, 1);
        return false;
    }
    tk_link_give_up(link, ibv_wc_status_str(wc->status));
    return true;
}

bool tk_failover(struct tk_work *work, const struct ibv_wc *wc)
{
    struct tk_link *link = work->link;
    if (!tk_verbs.keeps || !tk_is_death(wc))
        return false;
    if (tk_life_is_over(work))
        return true;
    if (!die(link, wc))
        return false;
    if (tk_life_names(work))
        return true;
    tk_lock(&link->lock);
    link->notes->failed += 1 + work->covers;
    tk_unlock(&link->lock);
    return true;
}

bool tk_failover_flushed(struct tk_buffer *buffer, const struct ibv_wc *wc)
{
    struct tk_link *link = buffer->link;
    if (!tk_is_death(wc))
        return false;
    if (!die(link, wc))
        return false;
    tk_lock(&link->lock);
    link->surplus--;
    tk_unlock(&link->lock);
    tk_pool_give(&tk_rail_of(link)->recv_pool, buffer);
    return true;
}

static bool lives_elsewhere(uint32_t rank, uint32_t rail)
{
    const struct tk_link *links = tk_links_to(rank);
    for (uint32_t k = 0; k < tk_verbs.links_pp; k++)
        if (links[k].rail != rail && tk_link_is_open(&links[k]))
            return true;
    return false;
}

void tk_failover_rail(uint32_t rail)
{
    for (uint32_t r = 0; r < tk_peers.size && !tk_is_leaving(); r++) {
        struct tk_link *links = tk_links_to(r);
        if (!links->qp || !lives_elsewhere(r, rail))
            continue;
        for (uint32_t k = rail; k < tk_verbs.links_pp; k += tk_verbs.rail_count)
            tk_link_give_up(&links[k], "its port is down");
    }
}

/* ---- what the other end reports ---- */

static void heard(struct tk_link *link, uint32_t arrived)
{
    link->notes->heard = arrived;
    link->notes->is_heard = true;
}

/* Of the life that the link has here. */
static void take_news(const struct tk_notice *notice)
{
    if (notice->is_open) {
        tk_return_answered(notice->link);
        return;
    }
    if (tk_link_is_open(notice->link))
        tk_link_give_up(notice->link, "the other end has given it up");
    heard(notice->link, notice->arrived);
}

/* Who is a life ahead has closed the one that the link has here, or had. */
static void take_news_of_next_life(const struct tk_notice *notice)
{
    heard(notice->link, notice->before);
    tk_return_asked(notice->link, notice->is_open);
}

void tk_notice_came(const struct tk_buffer *buffer, uint32_t size)
{
    struct tk_notice notice = tk_notice_parse(buffer, size);
    tk_lock(&tk_moves_lock);
    uint32_t ahead = notice.life - notice.link->notes->life.number;
    if (ahead == 0)
        take_news(&notice);
    else if (ahead == 1)
        take_news_of_next_life(&notice);
    tk_unlock(&tk_moves_lock);
}

/* ---- what is on the dead link ---- */

/* Has the device given back everything, and have all threads done with it? Quiet messages that are
 * the last ones may never be given back: they wait for nobody. */
static bool is_drained(struct tk_link *link)
{
    tk_lock(&link->lock);
    int taken = tk_verbs.depth_pp - (tk_counter_read(&link->room) + tk_no_room_ever);
    bool is_sent = taken == tk_link_unfinished(link) + tk_counter_read(&link->lent);
    bool is_received = tk_credit_buffers_posted(link) == tk_no_room_ever;
    tk_unlock(&link->lock);
    return is_sent && is_received;
}

static struct tk_redo *redo_of(const struct tk_note *note)
{
    struct tk_redo *redo = malloc(sizeof(*redo));
    if (!redo)
        tk_panic("out of memory for what is to be sent again (%zu bytes)", sizeof(*redo));
    redo->note = *note;
    return redo;
}

/* Gives its slots back, too. */
static void complete(struct tk_link *link, struct tk_work *work)
{
    tk_lock(&link->lock);
    link->notes->failed -= 1 + work->covers;
    tk_unlock(&link->lock);
    tk_work_complete(work);
}

/* Once it is drained nobody else looks at its notes. What it lost was posted before that which is
 * to be done again already: it was the primary link before those that came after it. */
static void settle(struct tk_link *link)
{
    struct tk_redo *list = NULL, **end = &list;
    uint32_t back = (uint32_t)tk_link_unfinished(link), before = link->notes->sent;
    for (uint32_t i = back; i > 0; i--)
        before -= tk_note_back(link, i)->opcode == IBV_WR_SEND;
    for (; back > 0; back--) {
        const struct tk_note *note = tk_note_back(link, back);
        bool has_come = (int32_t)(before - link->notes->heard) < 0;
        before += note->opcode == IBV_WR_SEND;
        bool is_done = has_come && note->opcode != IBV_WR_RDMA_READ;
        if (is_done || tk_note_as_notice(note)) {
            if (note->work)
                complete(link, note->work);
        } else {
            *end = redo_of(note);
            end = &(*end)->next;
        }
    }
    *end = tk_pair_of(link)->redo;
    tk_pair_of(link)->redo = list;
    tk_counter_leave(&link->fate, TK_SETTLED);
}

/* ---- the heir ---- */

/* Of those that were primary, or had begun to receive messages. */
static int credits_left(uint32_t rank)
{
    struct tk_link *links = tk_links_to(rank);
    int sum = 0;
    for (uint32_t k = 0; k < tk_verbs.links_pp; k++) {
        tk_lock(&links[k].lock);
        sum += links[k].credits;
        tk_unlock(&links[k].lock);
    }
    return sum;
}

/* The buffer for an exit notice, from the dead link that has it; both go on to count right what is
 * posted. */
static void inherit_control(struct tk_link *heir)
{
    struct tk_link *links = tk_links_to(heir->peer->rank);
    for (uint32_t k = 0; k < tk_verbs.links_pp; k++) {
        struct tk_link *dead = &links[k];
        if (tk_link_is_live(dead))
            continue;
        tk_lock(&dead->lock);
        int control = dead->control_expected;
        dead->control_expected -= control;
        dead->surplus += control;
        heir->control_expected += control;
        heir->surplus -= control;
        tk_unlock(&dead->lock);
    }
}

/* Posts the receive buffers that it will need. */
static void make_ready(struct tk_link *heir)
{
    int wanted = 2 * tk_verbs.credits_pp - credits_left(heir->peer->rank) + tk_notice_buffers();
    tk_lock(&heir->lock);
    inherit_control(heir);
    wanted += heir->control_expected;
    while (tk_credit_buffers_posted(heir) < wanted && tk_credit_post_buffer(heir) == TK_OK)
        continue;
    heir->is_ready = true;
    tk_unlock(&heir->lock);
}

/* Not before the primary link is drained: its credits would not be final. NULL: not yet, or there
 * is none. */
static struct tk_link *find_heir(struct tk_rank_pair *pair, const struct tk_link *primary)
{
    uint32_t rank = primary->peer->rank;
    struct tk_link *links = tk_links_to(rank);
    if (tk_counter_read(&primary->fate) < TK_DRAINED)
        return NULL;
    if (pair->heir < 0 || !tk_link_is_live(&links[pair->heir])) {
        struct tk_link *first = first_open(rank, NULL);
        pair->heir = first ? (int)tk_link_number(first) : -1;
        if (!first)
            return NULL;
    }
    if (!links[pair->heir].is_ready)
        make_ready(&links[pair->heir]);
    return &links[pair->heir];
}

/* With the locks of both. */
static void inherit(struct tk_link *heir, struct tk_link *dead)
{
    heir->credits += dead->credits;
    heir->banked += dead->banked;
    if (dead->ack_due && heir->ack_due)
        tk_counter_add(&tk_verbs.chores, -1);
    heir->ack_due |= dead->ack_due;
    dead->credits = dead->banked = 0;
    dead->ack_due = false;
}

/* Others that died have left nothing but what came over them before they could be primary. */
static void inherit_all(struct tk_link *heir, const struct tk_link *primary)
{
    struct tk_link *links = tk_links_to(heir->peer->rank);
    for (uint32_t k = 0; k < tk_verbs.links_pp; k++) {
        if (&links[k] == heir || &links[k] == primary)
            continue;
        tk_lock(&links[k].lock);
        inherit(heir, &links[k]);
        tk_unlock(&links[k].lock);
    }
}

static void succeed(struct tk_link *heir, struct tk_link *primary)
{
    struct tk_peer *peer = heir->peer;
    tk_lock(&heir->lock);
    tk_lock(&primary->lock);
    int posted = tk_credit_buffers_posted(heir);
    inherit_all(heir, primary);
    inherit(heir, primary);
    heir->standing = 2 * tk_verbs.credits_pp + tk_notice_buffers();
    heir->surplus = posted - tk_credit_buffers_needed(heir);
    while (heir->surplus < 0 && tk_credit_post_buffer(heir) == TK_OK)
        continue;
    tk_peers.rail_to[peer->rank] = heir->rail;
    if (tk_peers.keys[peer->rank])
        peer->segment_key = tk_peers.keys[peer->rank][heir->rail];
    __atomic_store_n(&peer->connection, heir, __ATOMIC_RELEASE);
    tk_unlock(&primary->lock);
    tk_unlock(&heir->lock);
    tk_pair_of(heir)->heir = -1;
}

/* ---- posting again ---- */

static void repost_work(struct tk_link *link, const struct tk_note *note, struct tk_work *work)
{
    struct ibv_sge sge[2];
    struct ibv_send_wr wr = {.sg_list = sge, .num_sge = note->is_inline ? 1 : note->parts};
    sge[0] = (struct ibv_sge){.addr = (uintptr_t)note->bytes, .length = note->size[0]};
    for (int i = 0; i < wr.num_sge && !note->is_inline; i++)
        sge[i] = (struct ibv_sge){
            .addr = note->part[i], .length = note->size[i], .lkey = note->keys[i][link->rail]};
    if (note->opcode != IBV_WR_SEND) {
        wr.wr.rdma.remote_addr = note->remote;
        wr.wr.rdma.rkey = note->remote_keys[link->rail];
    }
    work->link = link;
    tk_work_post(work, &wr, (enum ibv_wr_opcode)note->opcode, note->is_inline ? IBV_SEND_INLINE : 0,
                 note->is_inline ? NULL : note->keys[note->parts - 1], note->remote_keys);
}

/* As few with a completion of their own as there were: works may all wait behind it. */
static bool repost_quiet(struct tk_link *link, const struct tk_note *note)
{
    if (tk_noted_quiet_take(link)) {
        memcpy(link->quiet_data.bytes, note->bytes, note->size[0]);
        tk_quiet_post_noted(link, note->size[0]);
        return true;
    }
    struct tk_work *work = tk_work_take(link, false);
    if (!work)
        return false;
    work->nbytes = note->size[0];
    repost_work(link, note, work);
    return true;
}

/* Posts it over this link, whose lock is held, as a log entry of its own. False: no room now. */
static bool repost(struct tk_link *link, const struct tk_note *note)
{
    if (!note->work)
        return repost_quiet(link, note);
    if (!tk_slot_take(link))
        return false;
    tk_counter_add(&tk_verbs.works_out, -1); /* for the time that failed */
    repost_work(link, note, note->work);
    return true;
}

/* ---- step by step ---- */

/* True when nothing is left. */
static bool redo_over(struct tk_link *link)
{
    struct tk_rank_pair *pair = tk_pair_of(link);
    bool is_posted = true;
    tk_lock(&link->lock);
    while (pair->redo && (is_posted = repost(link, &pair->redo->note)))
        drop_redo(pair);
    tk_unlock(&link->lock);
    return is_posted;
}

static void note_drained(uint32_t rank)
{
    struct tk_link *links = tk_links_to(rank);
    for (uint32_t k = 0; k < tk_verbs.links_pp; k++)
        if (tk_counter_read(&links[k].fate) == TK_CLOSING && is_drained(&links[k])) {
            links[k].notes->must_tell = true;
            links[k].is_ready = false;
            tk_notices_tell_again(&links[k]);
            tk_counter_leave(&links[k].fate, TK_DRAINED);
        }
}

static void settle_heard(uint32_t rank)
{
    struct tk_link *links = tk_links_to(rank);
    for (uint32_t k = 0; k < tk_verbs.links_pp; k++)
        if (tk_counter_read(&links[k].fate) == TK_DRAINED && links[k].notes->is_heard)
            settle(&links[k]);
}

/* An heir that died has part of what is to be posted again, and that comes first. */
static bool all_is_settled(uint32_t rank)
{
    struct tk_link *links = tk_links_to(rank);
    for (uint32_t k = 0; k < tk_verbs.links_pp; k++) {
        int fate = tk_counter_read(&links[k].fate);
        if (fate == TK_CLOSING || fate == TK_DRAINED)
            return false;
    }
    return true;
}

static bool all_is_told(uint32_t rank)
{
    struct tk_link *links = tk_links_to(rank);
    for (uint32_t k = 0; k < tk_verbs.links_pp; k++)
        if (links[k].notes->must_tell)
            return false;
    return true;
}

static void end_moves(uint32_t rank)
{
    struct tk_link *links = tk_links_to(rank);
    for (uint32_t k = 0; k < tk_verbs.links_pp; k++) {
        if (tk_counter_read(&links[k].fate) != TK_SETTLED)
            continue;
        tk_counter_leave(&links[k].fate, TK_CLOSED);
        tk_counter_add(&tk_verbs.pairs[rank].moving, -1);
        tk_counter_add(&tk_verbs.chores, -1);
    }
}

static void step_pair(uint32_t rank)
{
    struct tk_rank_pair *pair = &tk_verbs.pairs[rank];
    struct tk_link *primary = tk_primary(tk_peer(rank)), *goal = primary;
    note_drained(rank);
    if (!tk_link_is_live(primary))
        tk_return_trust(rank);
    if (!first_open(rank, NULL)) {
        if (!tk_counter_read(&primary->broken))
            tk_links_exhausted(tk_peer(rank));
        return;
    }
    if (!tk_link_is_live(primary) && !(goal = find_heir(pair, primary)))
        return;
    tk_notices_tell(rank, goal);
    settle_heard(rank);
    if (goal != primary && !all_is_settled(rank))
        return;
    if (!redo_over(goal))
        return;
    if (goal != primary)
        succeed(goal, primary);
    if (all_is_told(rank))
        end_moves(rank);
}

void tk_failover_step(void)
{
    if (!tk_trylock(&tk_moves_lock))
        return;
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        struct tk_rank_pair *pair = &tk_verbs.pairs[r];
        if (tk_counter_read(&pair->moving) > 0 || pair->chores > 0)
            step_pair(r);
        if (pair->chores > 0 && tk_counter_read(&pair->moving) == 0)
            tk_return_step(r);
    }
    tk_unlock(&tk_moves_lock);
}
