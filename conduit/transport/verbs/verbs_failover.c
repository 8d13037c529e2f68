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
 * One thread at a time goes on with moves; that lock is taken before a link's. Nobody else holds
 * two links' locks. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/bits.h"
#include "base/report.h"
#include "settings/settings.h"
#include "transport/verbs/verbs_credit.h"
#include "transport/verbs/verbs_failover.h"
#include "transport/verbs/verbs_note.h"
#include "transport/verbs/verbs_work.h"

enum {
    no_room_ever = 1 << 30, /* taken from a dead link's room, and given to it as spare buffers: it
                               neither sends nor receives then, whoever tries */
    notice_args = 2         /* the number of the dead link, and how many messages came over it */
};

/* What is to be posted again. */
struct redo {
    struct redo *next;
    struct tk_note note;
};

struct tk_pair {
    struct redo *redo;   /* in the order in which it was posted once */
    tk_counter_t moving; /* links that died and are not closed */
    int heir;            /* number of the link that will be primary; -1: the primary one lives */
};

static tk_lock_t stepping = TK_LOCK_INIT;

enum tk_status tk_failover_open(void)
{
    if (!tk_verbs.keeps)
        return TK_OK;
    tk_lock_init(&tk_verbs.aside.lock);
    tk_verbs.pairs = calloc(tk_peers.size, sizeof(*tk_verbs.pairs));
    if (!tk_verbs.pairs) {
        tk_complain("out of memory for %u pairs of ranks", tk_peers.size);
        return TK_FAIL;
    }
    for (uint32_t r = 0; r < tk_peers.size; r++)
        tk_verbs.pairs[r].heir = -1;
    tk_events_open();
    return TK_OK;
}

static void drop_redo(struct tk_pair *pair)
{
    struct redo *first = pair->redo;
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

static uint32_t number_of(const struct tk_link *link)
{
    return (uint32_t)(link - tk_links_to(link->peer->rank));
}

static struct tk_pair *pair_of(const struct tk_link *link)
{
    return &tk_verbs.pairs[link->peer->rank];
}

/* Of those to the peer, the first that lives; NULL: none does. */
static struct tk_link *first_living(uint32_t rank, const struct tk_link *but)
{
    struct tk_link *links = tk_links_to(rank);
    for (uint32_t k = 0; k < tk_verbs.links_pp; k++)
        if (&links[k] != but && tk_link_is_live(&links[k]))
            return &links[k];
    return NULL;
}

/* ---- death ---- */

static void close_end(struct tk_link *link, const char *why)
{
    const struct tk_port_address *a = &tk_rail_of(link)->address;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    tk_lock(&link->lock);
    bool was_live = tk_link_is_live(link);
    if (was_live) {
        tk_counter_add(&tk_verbs.chores, 1);
        tk_counter_add(&pair_of(link)->moving, 1);
        tk_counter_add(&link->room, -no_room_ever);
        link->surplus += no_room_ever;
        tk_counter_leave(&link->fate, TK_CLOSING);
        int error = ibv_modify_qp(link->qp, &attr, IBV_QP_STATE);
        if (error)
            tk_panic("%s:%u: modify_qp to ERR for rank %u failed: %s", a->device, a->port,
                     link->peer->rank, strerror(error));
    }
    tk_unlock(&link->lock);
    if (was_live)
        tk_warn("%s:%u no longer reaches rank %u (%s): %s; what went over it goes over other "
                "ports (GASNET_IBV_FAILOVER=0 ends the job instead)",
                a->device, a->port, link->peer->rank, link->peer->host, why);
}

static bool is_leaving(void)
{
    return !__atomic_load_n(&tk_lost_peer, __ATOMIC_ACQUIRE);
}

/* The first error, or what was flushed behind it: threads may see the one before the other. */
static bool is_death(const struct ibv_wc *wc)
{
    return wc->status == IBV_WC_RETRY_EXC_ERR || wc->status == IBV_WC_WR_FLUSH_ERR;
}

/* False: it lives, and its death is the end of the job, or the job is at its end. */
static bool die(struct tk_link *link, const struct ibv_wc *wc)
{
    if (!tk_link_is_live(link))
        return true;
    if (tk_counter_read(&link->broken))
        return false;
    if (is_leaving() || !first_living(link->peer->rank, link)) {
        struct tk_link *primary = tk_primary(link->peer);
        if (!tk_link_is_live(primary)) /* what waits there for this one waits no more */
            tk_counter_add(&primary->broken, 1);
        return false;
    }
    close_end(link, ibv_wc_status_str(wc->status));
    return true;
}

bool tk_failover(struct tk_work *work, const struct ibv_wc *wc)
{
    struct tk_link *link = work->link;
    if (!tk_verbs.keeps || !is_death(wc) || !die(link, wc))
        return false;
    if (work == &link->quiet_work)
        return true;
    tk_lock(&link->lock);
    link->notes->failed += 1 + work->covers;
    tk_unlock(&link->lock);
    return true;
}

bool tk_failover_flushed(struct tk_buffer *buffer, const struct ibv_wc *wc)
{
    struct tk_link *link = buffer->link;
    if (!is_death(wc))
        return false;
    if (tk_link_is_live(link))
        tk_devices_reap(); /* the cause is there */
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
        if (links[k].rail != rail && tk_link_is_live(&links[k]))
            return true;
    return false;
}

void tk_failover_rail(uint32_t rail)
{
    for (uint32_t r = 0; r < tk_peers.size && !is_leaving(); r++) {
        struct tk_link *links = tk_links_to(r);
        if (!links->qp || !lives_elsewhere(r, rail))
            continue;
        for (uint32_t k = rail; k < tk_verbs.links_pp; k += tk_verbs.rail_count)
            if (tk_link_is_live(&links[k]))
                close_end(&links[k], "its port is down");
    }
}

/* ---- what is on the dead link ---- */

/* Work requests that it took and did not complete. */
static int unfinished(const struct tk_link *link)
{
    return link->notes->failed + link->quiet;
}

/* Has the device given back everything, and have all threads done with it? Quiet messages that are
 * the last ones may never be given back: they wait for nobody. */
static bool is_drained(struct tk_link *link)
{
    tk_lock(&link->lock);
    int taken = tk_verbs.depth_pp - (tk_counter_read(&link->room) + no_room_ever);
    bool is_sent = taken == unfinished(link) + tk_counter_read(&link->lent);
    bool is_received = tk_credit_buffers_posted(link) == no_room_ever;
    tk_unlock(&link->lock);
    return is_sent && is_received;
}

static struct redo *redo_of(const struct tk_note *note)
{
    struct redo *redo = malloc(sizeof(*redo));
    if (!redo)
        tk_panic("out of memory for what is to be sent again (%zu bytes)", sizeof(*redo));
    redo->note = *note;
    return redo;
}

/* Notices that may have been lost are told again, with what is true by then, and whether they came
 * or not: to wait until that is known could be to wait for a notice that waits for this one. */
static void tell_again(struct tk_link *link)
{
    struct tk_link *links = tk_links_to(link->peer->rank);
    for (uint32_t back = (uint32_t)unfinished(link); back > 0; back--) {
        const struct tk_short *notice = tk_note_as_notice(tk_note_back(link, back));
        if (notice)
            links[notice->args[0]].notes->must_tell = true;
    }
}

/* Once it is drained nobody else looks at its notes. What it lost was posted before that which is
 * to be done again already: it was the primary link before those that came after it. */
static void settle(struct tk_link *link)
{
    struct redo *list = NULL, **end = &list;
    uint32_t back = (uint32_t)unfinished(link), before = link->notes->sent;
    for (uint32_t i = back; i > 0; i--)
        before -= tk_note_back(link, i)->opcode == IBV_WR_SEND;
    for (; back > 0; back--) {
        const struct tk_note *note = tk_note_back(link, back);
        bool has_come = (int32_t)(before - link->notes->heard) < 0;
        before += note->opcode == IBV_WR_SEND;
        bool is_done = has_come && note->opcode != IBV_WR_RDMA_READ;
        if (is_done || tk_note_as_notice(note)) {
            if (note->work)
                tk_work_complete(note->work);
        } else {
            *end = redo_of(note);
            end = &(*end)->next;
        }
    }
    *end = pair_of(link)->redo;
    pair_of(link)->redo = list;
    tk_counter_leave(&link->fate, TK_SETTLED);
}

/* ---- notices ---- */

/* Without a work if there is none: all may wait for this notice. */
static bool post_notice(struct tk_link *carrier, struct tk_short *notice)
{
    size_t size = tk_short_size(notice_args);
    bool is_small = size <= tk_verbs.inline_limit;
    struct tk_outgoing out = {.head = &notice->head, .head_size = size};
    struct tk_work *work = tk_work_take(carrier, !is_small);
    if (work) {
        tk_message_post_work(carrier, work, &out);
        return true;
    }
    if (!is_small || !tk_slot_take(carrier))
        return false;
    carrier->quiet++;
    memcpy(carrier->quiet_data.bytes, notice, size);
    tk_quiet_post_noted(carrier, size);
    return true;
}

static void tell(struct tk_link *link, struct tk_link *carrier)
{
    int32_t arrived = (int32_t)__atomic_load_n(&link->notes->arrived, __ATOMIC_RELAXED);
    struct tk_short notice = {
        .head = {.kind = TK_NOTICE, .category = TK_SHORT, .nargs = notice_args},
        .args = {(int32_t)number_of(link), arrived}};
    tk_lock(&carrier->lock);
    bool is_posted = post_notice(carrier, &notice);
    tk_unlock(&carrier->lock);
    link->notes->must_tell = !is_posted;
}

void tk_notice_came(const struct tk_buffer *buffer, uint32_t size)
{
    const struct tk_short *notice = (const struct tk_short *)(const void *)buffer->data;
    uint32_t number = (uint32_t)notice->args[0];
    if (size != tk_short_size(notice_args) || number >= tk_verbs.links_pp)
        tk_wire_error(buffer->link, "a malformed notice came");
    struct tk_link *link = tk_links_to(buffer->link->peer->rank) + number;
    if (tk_link_is_live(link))
        close_end(link, "the other end has given it up");
    tk_lock(&stepping);
    link->notes->heard = (uint32_t)notice->args[1];
    link->notes->is_heard = true;
    tk_unlock(&stepping);
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
static struct tk_link *find_heir(struct tk_pair *pair, const struct tk_link *primary)
{
    uint32_t rank = primary->peer->rank;
    struct tk_link *links = tk_links_to(rank);
    if (tk_counter_read(&primary->fate) < TK_DRAINED)
        return NULL;
    if (pair->heir < 0 || !tk_link_is_live(&links[pair->heir])) {
        struct tk_link *first = first_living(rank, NULL);
        pair->heir = first ? (int)number_of(first) : -1;
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
    pair_of(heir)->heir = -1;
}

/* ---- step by step ---- */

/* True when nothing is left. */
static bool redo_over(struct tk_link *link)
{
    struct tk_pair *pair = pair_of(link);
    bool is_posted = true;
    tk_lock(&link->lock);
    while (pair->redo && (is_posted = tk_note_repost(link, &pair->redo->note)))
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
            tell_again(&links[k]);
            tk_counter_leave(&links[k].fate, TK_DRAINED);
        }
}

static void exchange(uint32_t rank, struct tk_link *carrier)
{
    struct tk_link *links = tk_links_to(rank);
    for (uint32_t k = 0; k < tk_verbs.links_pp; k++) {
        if (links[k].notes->must_tell)
            tell(&links[k], carrier);
        if (tk_counter_read(&links[k].fate) == TK_DRAINED && links[k].notes->is_heard)
            settle(&links[k]);
    }
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
    struct tk_pair *pair = &tk_verbs.pairs[rank];
    struct tk_link *primary = tk_primary(tk_peer(rank)), *goal = primary;
    note_drained(rank);
    if (!first_living(rank, NULL)) {
        if (!tk_counter_read(&primary->broken))
            tk_links_exhausted(tk_peer(rank));
        return;
    }
    if (!tk_link_is_live(primary) && !(goal = find_heir(pair, primary)))
        return;
    exchange(rank, goal);
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
    if (!tk_trylock(&stepping))
        return;
    for (uint32_t r = 0; r < tk_peers.size; r++)
        if (tk_counter_read(&tk_verbs.pairs[r].moving) > 0)
            step_pair(r);
    tk_unlock(&stepping);
}
