/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A link that comes back. When its port is active again after it was down, and some time has passed
 * since the link was closed, its queue pair goes from RESET to RTS once more, with other packet
 * numbers, has receive buffers, and the other end is told so in a notice. Who is asked does the
 * same and answers; who asked and is answered, or answers and was asked, sends over the link again.
 * Both may ask at once: then each takes the other's question for its answer.
 *
 * A link counts its lives. Nothing of a life that is over can be taken for this one's: notices name
 * theirs, packets by their numbers, errors by whom they name (struct tk_life). Who hears that the
 * other end is a life ahead knows that the one before is closed there, and what came over it. If it
 * is dead there again, this life is passed over, as one in which nothing came.
 *
 * The pair's messages stay where they are; large transfers take turns over the link again, and it
 * may be the next heir. While any link of the pair is being moved none is opened, so that both ends
 * choose the heir among the same ones: what is open here is open there or is not answered there,
 * and dies. So who needs an heir takes also those that wait for an answer.
 *
 * A port that comes and goes is not followed for ever: each death keeps the link away for twice as
 * long as the one before. */
#include "config.h"

#include <string.h>

#include "base/clock.h"
#include "base/report.h"
#include "settings/settings.h"
#include "transport/verbs/data/credit.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/reconnect.h"
#include "transport/verbs/failover/tx_log.h"

enum { doublings_max = 6 }; /* of tk_return_wait: at most about a minute */
static const uint64_t longest_wait = 60 * TK_SECOND;
uint64_t tk_return_wait = TK_SECOND;

static struct tk_life *life_of(struct tk_link *link)
{
    return &link->notes->life;
}

/* ---- when ---- */

void tk_return_watch(struct tk_rail *rail)
{
    if (tk_verbs.keeps && !rail->look_again)
        rail->look_again = tk_now();
}

static bool is_active(const struct tk_rail *rail)
{
    const struct tk_port_address *a = &rail->address;
    struct ibv_port_attr attr;
    /* Peers would not find it under another LID. */
    return ibv_query_port(rail->context, a->port, &attr) == 0 && attr.state == IBV_PORT_ACTIVE &&
           attr.lid == a->lid;
}

static uint64_t wait_of(struct tk_link *link)
{
    uint64_t wait = tk_return_wait << tk_min(life_of(link)->number, doublings_max);
    return tk_min(wait, longest_wait);
}

/* True if it is to be opened by now, or does not come into question. */
static bool ask_if_due(struct tk_link *link, uint64_t now)
{
    if (tk_counter_read(&link->fate) < TK_CLOSING)
        return true;
    if (tk_counter_read(&link->fate) < TK_CLOSED || now - life_of(link)->ended < wait_of(link))
        return false;
    life_of(link)->is_wanted = true;
    tk_chore_make(link);
    return true;
}

/* Peers may be closing theirs only now, so it is not of much use to foresee when. */
uint64_t tk_return_look(uint32_t rail, uint64_t now)
{
    uint64_t soon = now + tk_return_wait;
    if (tk_is_leaving() || !is_active(&tk_verbs.rails[rail]))
        return soon;
    tk_lock(&tk_moves_lock);
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        struct tk_link *links = tk_links_to(r);
        for (uint32_t k = rail; links->qp && k < tk_verbs.links_pp; k += tk_verbs.rail_count)
            if (!ask_if_due(&links[k], now))
                soon = now + tk_return_wait / 4;
    }
    tk_unlock(&tk_moves_lock);
    return soon;
}

/* ---- opening ---- */

static int reconnect(struct tk_link *link, const char **what)
{
    struct tk_life *life = life_of(link);
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_RESET};
    *what = "modify_qp to RESET";
    int error = ibv_modify_qp(link->qp, &attr, IBV_QP_STATE);
    if (error)
        return error;
    *what = "modify_qp to INIT";
    error = tk_link_init(link);
    return error ? error : tk_link_ready(link, &life->to, life->to_qp, life->number + 1, what);
}

/* Nothing is left of the old life but room that was lent: that is given back, or used, later. */
static void begin_life(struct tk_link *link)
{
    struct tk_notes *notes = link->notes;
    __atomic_store_n(&notes->life.number, notes->life.number + 1, __ATOMIC_RELAXED);
    notes->life.is_wanted = notes->life.is_asked = notes->life.is_passed = false;
    notes->life.before = notes->arrived;
    notes->sent = notes->arrived = notes->heard = 0;
    notes->is_heard = false;
    tk_counter_add(&link->room, tk_link_unfinished(link));
    notes->failed = link->quiet = 0;
    tk_life_name(link);
}

/* As it was at start-up, where it is not the primary one. */
static void post_buffers(struct tk_link *link)
{
    link->standing = tk_notice_buffers();
    link->surplus = -tk_credit_buffers_needed(link);
    link->is_ready = false;
    while (link->surplus < 0 && tk_credit_post_buffer(link) == TK_OK)
        continue;
}

/* It has carried nothing while the others have: without that all would be its turn. */
static uint64_t carried_max(const struct tk_link *link)
{
    const struct tk_link *links = tk_links_to(link->peer->rank);
    uint64_t most = 0;
    for (uint32_t k = 0; k < tk_verbs.links_pp; k++)
        most = tk_max(most, __atomic_load_n(&links[k].carried, __ATOMIC_RELAXED));
    return most;
}

static void go_live(struct tk_link *link)
{
    const struct tk_port_address *a = &tk_rail_of(link)->address;
    tk_lock(&link->lock);
    bool was_opening = tk_counter_read(&link->fate) == TK_OPENING;
    if (was_opening) {
        __atomic_store_n(&link->carried, carried_max(link), __ATOMIC_RELAXED);
        tk_counter_add(&tk_verbs.returns, 1); /* first: see tk_fence() */
        tk_counter_leave(&link->fate, TK_LIVE);
        tk_counter_add(&link->room, tk_no_room_ever);
    }
    tk_unlock(&link->lock);
    if (!was_opening)
        return;
    tk_counter_add(&tk_rail_of(link)->returns, 1);
    tk_log_warn("%s:%u reaches rank %u (%s) again, and is used again", a->device, a->port,
                link->peer->rank, link->peer->host);
}

static void open_again(struct tk_link *link)
{
    const struct tk_port_address *a = &tk_rail_of(link)->address;
    const char *what;
    bool is_asked = life_of(link)->is_asked;
    tk_lock(&link->lock);
    int error = reconnect(link, &what);
    if (error) {
        life_of(link)->ended = tk_now();
        life_of(link)->is_wanted = false;
        tk_return_watch(tk_rail_of(link));
    } else {
        begin_life(link);
        post_buffers(link);
        tk_counter_leave(&link->fate, TK_OPENING);
    }
    tk_unlock(&link->lock);
    if (error) {
        tk_log_warn("%s:%u is active again, but %s for rank %u failed: %s; it is tried again later",
                    a->device, a->port, what, link->peer->rank, strerror(error));
        return;
    }
    tk_return_tell(link);
    if (is_asked)
        go_live(link);
}

void tk_return_answered(struct tk_link *link)
{
    if (tk_counter_read(&link->fate) == TK_OPENING)
        go_live(link);
}

void tk_return_trust(uint32_t rank)
{
    for (uint32_t k = 0; k < tk_verbs.links_pp; k++)
        tk_return_answered(tk_links_to(rank) + k);
}

void tk_return_asked(struct tk_link *link, bool is_open)
{
    life_of(link)->is_wanted = life_of(link)->is_asked = is_open;
    life_of(link)->is_passed = !is_open;
    tk_chore_make(link);
}

/* The other end waits to hear that nothing came. */
static void pass_over(struct tk_link *link)
{
    tk_lock(&link->lock);
    begin_life(link);
    life_of(link)->ended = tk_now();
    tk_unlock(&link->lock);
    tk_return_tell(link);
}

static void step(struct tk_link *link)
{
    struct tk_life *life = life_of(link);
    bool is_closed = tk_counter_read(&link->fate) == TK_CLOSED;
    if (is_closed && life->is_passed)
        pass_over(link);
    else if (is_closed && life->is_wanted && !tk_is_leaving()) {
        if (is_active(tk_rail_of(link)))
            open_again(link);
        else
            tk_return_watch(tk_rail_of(link));
    }
    if (!link->notes->must_tell)
        tk_chore_end(link);
}

void tk_return_step(uint32_t rank)
{
    for (uint32_t k = 0; k < tk_verbs.links_pp; k++)
        if (life_of(tk_links_to(rank) + k)->is_chore)
            step(tk_links_to(rank) + k);
}

void tk_verbs_report_end(void)
{
    if (!tk_verbs.keeps || tk_settings.ibv_ports_verbose < 2)
        return;
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++) {
        const struct tk_rail *rail = &tk_verbs.rails[i];
        int deaths = tk_counter_read(&rail->deaths);
        if (deaths > 0)
            tk_log_info("port %s:%u: connections given up %d, used again %d", rail->address.device,
                        rail->address.port, deaths, tk_counter_read(&rail->returns));
    }
}
