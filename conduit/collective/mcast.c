/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The algorithm of a broadcast over a multicast switch. The root decides: over the switch if the
 * group works, otherwise along the tree, where a word precedes the payload. So the others wait for
 * either, and need not know the state of the group at the root. If a group breaks during a
 * broadcast, the root asks the receivers and sends again to those that lack the payload; they wait
 * for that message only once they have answered. Runs under the lock of the engine; the only state
 * is the collective's. */
#include "config.h"

#include <string.h>

#include "base/lock.h"
#include "base/report.h"
#include "collective/coll_post.h"
#include "collective/mcast_private.h"

/* Tags of the phase's messages. */
enum { tag_data, tag_word, tag_again, tag_where };

enum stage {
    BEGIN, /* zero */
    ASKS,  /* of a large payload: from children, its destination */
    WAITS, /* a receiver: for any of the above */
    BELOW, /* a payload that came along the tree is forwarded along the tree */
    FLIES, /* at the root */
    LAST
};

static uint32_t member_at(const struct tk_coll *coll, uint32_t index)
{
    const struct tk_coll_group *group = tk_coll_group(coll);
    uint32_t rank = group->ranks ? tk_list_at(group->ranks, index) : index;
    return tk_mcast_member(tk_team_jobrank(coll->call.tm, rank));
}

static struct tk_mcast_packet packet_of(const struct tk_coll *coll)
{
    return (struct tk_mcast_packet){.team = coll->call.tm->id,
                                    .sequence = coll->sequence,
                                    .phase = coll->phase,
                                    .payload = coll->value,
                                    .nbytes = coll->call.nbytes};
}

/* ---- the root */

static void send_down(struct tk_coll *coll, bool with_data)
{
    uint32_t below[32];
    unsigned count = tk_coll_tree_below(tk_coll_group(coll), below);
    for (unsigned i = 0; i < count; i++) {
        if (!with_data || coll->stage != BELOW)
            tk_coll_send(coll, below[i], NULL, 0, tag_word);
        if (with_data)
            tk_coll_send(coll, below[i], coll->value, coll->call.nbytes, tag_data);
    }
}

static bool is_large(const struct tk_coll *coll)
{
    return coll->call.nbytes > tk_mcast_eager;
}

/* From the source, or from the destination, into which it has to be copied anyway. */
static bool place_large(struct tk_coll *coll, const struct tk_mcast_group *group,
                        struct tk_mcast_packet *packet)
{
    size_t nbytes = coll->call.nbytes;
    packet->is_large = is_large(coll);
    packet->offset = coll->where[0];
    if (!packet->is_large)
        return true;
    if (coll->where[0] == tk_mcast_nowhere)
        return false;
    if (tk_mcast_window_offset(group, coll->value, nbytes) != tk_mcast_nowhere)
        return true;
    if (tk_mcast_window_offset(group, coll->call.dst, nbytes) == tk_mcast_nowhere)
        return false;
    memmove(coll->call.dst, coll->value, nbytes);
    packet->payload = coll->value = coll->call.dst;
    return true;
}

static enum tk_coll_turn root_begin(struct tk_coll *coll, struct tk_mcast_group *group)
{
    struct tk_mcast_packet packet = packet_of(coll);
    if (!group->is_good || !place_large(coll, group, &packet)) {
        send_down(coll, !is_large(coll));
        coll->stage = LAST;
        return TK_COLL_GO_ON;
    }
    for (uint32_t i = 0; i < tk_coll_group(coll)->size; i++)
        if (i != tk_coll_group(coll)->me)
            tk_bitset_add(&packet.receivers, member_at(coll, i));
    coll->slot = tk_mcast_post(group, &packet);
    if (coll->slot >= 0)
        coll->stage = FLIES;
    return TK_COLL_LATER;
}

static void ask_receivers(struct tk_mcast_group *group, struct tk_mcast_use *use, unsigned slot)
{
    use->state = TK_MCAST_ASKED;
    use->unknown = use->receivers;
    TK_BITSET_EACH (m, &use->receivers)
        tk_mcast_query(group, m, slot);
}

static void send_again(struct tk_coll *coll, const struct tk_mcast_use *use)
{
    for (uint32_t i = 0; i < tk_coll_group(coll)->size; i++)
        if (i != tk_coll_group(coll)->me && tk_bitset_has(&use->lacking, member_at(coll, i)))
            tk_coll_send(coll, i, coll->value, coll->call.nbytes, tag_again);
}

static enum tk_coll_turn root_look(struct tk_coll *coll, struct tk_mcast_group *group)
{
    struct tk_mcast_use *use = &group->uses[coll->slot];
    if (use->state == TK_MCAST_FAILED)
        ask_receivers(group, use, (unsigned)coll->slot);
    if (use->state == TK_MCAST_FLYING ||
        (use->state == TK_MCAST_ASKED && !tk_bitset_is_empty(&use->unknown)))
        return TK_COLL_LATER;
    if (use->state == TK_MCAST_ASKED)
        send_again(coll, use);
    tk_mcast_use_end(group, (unsigned)coll->slot);
    coll->is_switched = true;
    coll->stage = LAST;
    return TK_COLL_GO_ON;
}

/* ---- receivers */

static void receiver_begin(struct tk_coll *coll, struct tk_mcast_group *group)
{
    coll->word = (struct tk_coll_post){
        .key = tk_coll_key_from(coll, tk_coll_tree_parent(tk_coll_group(coll)), tag_word)};
    tk_coll_post_enter(&coll->word);
    coll->stage = WAITS;
    group->is_wanted = true; /* by another root, now and perhaps again */
    tk_coll_value_receive(coll);
}

static bool take_from_slot(struct tk_coll *coll, struct tk_mcast_group *group,
                           const struct tk_mcast_packet *packet)
{
    unsigned slot;
    uint32_t root = member_at(coll, tk_coll_group(coll)->root);
    const void *payload = tk_mcast_find(group, root, packet, &slot);
    if (!payload)
        return false;
    if (!is_large(coll))
        memcpy(coll->value, payload, packet->nbytes);
    tk_mcast_return(group, root, slot);
    return true;
}

static enum tk_coll_turn receiver_look(struct tk_coll *coll, struct tk_mcast_group *group)
{
    const struct tk_mcast_packet packet = packet_of(coll);
    if (tk_coll_post_done(&coll->word) && is_large(coll)) {
        send_down(coll, false);
        coll->stage = LAST;
        return TK_COLL_GO_ON;
    }
    if (tk_coll_post_done(&coll->word)) {
        tk_coll_receive(coll, tk_coll_tree_parent(tk_coll_group(coll)), coll->value,
                        coll->call.nbytes, tag_data);
        send_down(coll, false);
        coll->stage = BELOW;
        return TK_COLL_GO_ON;
    }
    bool is_here = take_from_slot(coll, group, &packet);
    if (!is_here && !tk_mcast_take_lack(group, &packet))
        return TK_COLL_LATER;
    tk_coll_post_withdraw(&coll->word);
    coll->is_switched = true;
    if (!is_here)
        tk_coll_receive(coll, tk_coll_group(coll)->root, coll->value, coll->call.nbytes, tag_again);
    coll->stage = LAST;
    return TK_COLL_GO_ON;
}

/* ---- */

/* ---- destination of a large payload: the same offset in each member's segment, or none */

static enum tk_coll_turn where_begin(struct tk_coll *coll, struct tk_mcast_group *group)
{
    uint32_t below[32];
    unsigned count = tk_coll_tree_below(tk_coll_group(coll), below);
    bool is_root = tk_coll_group(coll)->me == tk_coll_group(coll)->root;
    coll->is_switched = false;
    if (!is_root)
        receiver_begin(coll, group);
    coll->where[0] =
        is_root ? tk_mcast_nowhere : tk_mcast_window_offset(group, coll->value, coll->call.nbytes);
    for (unsigned i = 0; i < count; i++)
        tk_coll_receive(coll, below[i], &coll->where[1 + i], sizeof(*coll->where), tag_where);
    coll->stage = ASKS;
    return TK_COLL_GO_ON;
}

static enum tk_coll_turn where_known(struct tk_coll *coll, struct tk_mcast_group *group)
{
    uint32_t below[32];
    unsigned count = tk_coll_tree_below(tk_coll_group(coll), below);
    bool is_root = tk_coll_group(coll)->me == tk_coll_group(coll)->root;
    uint64_t first = is_root ? coll->where[1] : coll->where[0];
    for (unsigned i = 0; i < count; i++)
        if (coll->where[1 + i] != first)
            first = tk_mcast_nowhere;
    coll->where[0] = first;
    if (is_root)
        return root_begin(coll, group);
    tk_coll_send(coll, tk_coll_tree_parent(tk_coll_group(coll)), coll->where, sizeof(*coll->where),
                 tag_where);
    coll->stage = WAITS;
    return TK_COLL_GO_ON;
}

static enum tk_coll_turn turn(struct tk_coll *coll, struct tk_mcast_group *group)
{
    const struct tk_coll_group *all = tk_coll_group(coll);
    if (coll->stage == BEGIN && is_large(coll))
        return where_begin(coll, group);
    if (coll->stage == ASKS)
        return where_known(coll, group);
    if (coll->stage == BEGIN && all->me == all->root)
        return root_begin(coll, group);
    if (coll->stage == BEGIN)
        receiver_begin(coll, group);
    if (coll->stage == WAITS)
        return receiver_look(coll, group);
    if (coll->stage == FLIES)
        return root_look(coll, group);
    if (coll->stage == LAST)
        return TK_COLL_OVER;
    send_down(coll, true);
    coll->stage = LAST;
    return TK_COLL_GO_ON;
}

enum tk_coll_turn tk_coll_broadcast_switch(struct tk_coll *coll)
{
    struct tk_mcast_group *group = tk_mcast_group_of(coll->call.tm->id);
    tk_lock(&group->lock);
    if (coll->stage == WAITS || coll->stage == FLIES)
        tk_mcast_reap(group);
    enum tk_coll_turn result = turn(coll, group);
    tk_unlock(&group->lock);
    return result;
}
