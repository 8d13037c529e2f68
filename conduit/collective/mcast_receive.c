/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Messages from other members of a group. Handlers send nothing: they change the group's state or
 * keep a request, which the work after polls answers. Handlers take the group's lock, the others
 * need it held. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "base/report.h"
#include "collective/mcast_private.h"
#include "message/message.h"

static void take_credit(struct tk_mcast_group *group, uint32_t from, uint32_t slots)
{
    for (unsigned i = 0; i < tk_mcast_slots; i++)
        if (slots & 1u << i)
            tk_bitset_remove(&group->uses[i].owed, from);
}

static void take_wish(struct tk_mcast_group *group, uint32_t from, uint8_t slots)
{
    group->wanted[from] |= slots;
    if (group->due[from] & slots)
        tk_bitset_add(&group->owing, from);
}

static void take_answer(struct tk_mcast_group *group, uint32_t from, unsigned slot, uint32_t number,
                        bool has)
{
    struct tk_mcast_use *use = &group->uses[slot % tk_mcast_slots];
    if (use->state != TK_MCAST_ASKED || use->number != number)
        return;
    tk_bitset_remove(&use->unknown, from);
    if (!has)
        tk_bitset_add(&use->lacking, from);
}

/* These change queue pairs or send: not in a handler. */
static void keep_question(struct tk_mcast_group *group, uint32_t from, const int32_t *args)
{
    struct tk_mcast_message *m =
        tk_mcast_message_add(&group->in, &group->in_count, &group->in_space);
    m->to = from;
    memcpy(m->args, args, tk_mcast_args * sizeof(*args));
}

static void on_word(struct tk_peer *from, const int32_t *args)
{
    uint32_t what = (uint32_t)args[tk_mcast_what], first = (uint32_t)args[tk_mcast_first];
    uint32_t second = (uint32_t)args[tk_mcast_second], member = tk_mcast_member(from->rank),
             index = what >> 8 & 0xff;
    if (index >= tk_mcast_group_count)
        return;
    struct tk_mcast_group *group = &tk_mcast_groups[index];
    tk_lock(&group->lock);
    switch ((enum tk_mcast_word)(what & 0xff)) {
    case TK_MCAST_CREDIT:
        take_credit(group, member, first);
        break;
    case TK_MCAST_ASK:
        take_wish(group, member, (uint8_t)first);
        break;
    case TK_MCAST_WANT:
        group->is_wanted = true;
        break;
    case TK_MCAST_ANSWER:
        take_answer(group, member, what >> 16, first, second);
        break;
    case TK_MCAST_READY:
        tk_mcast_is_ready(group, member, first, second);
        break;
    case TK_MCAST_USE:
        tk_mcast_use_era(group, first, second);
        break;
    default:
        keep_question(group, member, args);
        break;
    }
    tk_unlock(&group->lock);
}

static void on_offer(struct tk_arrival *arrival)
{
    uint32_t index = (uint32_t) * (const int32_t *)(arrival->head + 1);
    if (index >= tk_mcast_group_count)
        return;
    struct tk_mcast_group *group = &tk_mcast_groups[index];
    tk_lock(&group->lock);
    tk_mcast_offered(group, arrival->payload, arrival->nbytes);
    tk_unlock(&group->lock);
}

void tk_mcast_receive_open(void)
{
    tk_internal_register(TK_HANDLER_MCAST, on_word);
    tk_internal_register_whole(TK_HANDLER_MCAST, on_offer);
}

/* ---- answers */

/* After the queue pair was stopped, so that the answer stays true: data that has not arrived by now
 * never will. */
static void answer(struct tk_mcast_group *group, uint32_t to, const int32_t *args)
{
    unsigned slot = (uint32_t)args[tk_mcast_what] >> 16 & (tk_mcast_slots - 1);
    uint32_t number = (uint32_t)args[tk_mcast_second];
    struct tk_mcast_slot *s = &group->memory->rings[to][slot];
    bool has = (uint32_t)atomic_load_explicit(&s->stamp, memory_order_acquire) == number;
    if (!has) {
        if (group->lack_count == group->lack_space) {
            group->lack_space = group->lack_space ? 2 * group->lack_space : 16;
            group->lacks = realloc(group->lacks, group->lack_space * sizeof(*group->lacks));
            if (!group->lacks)
                tk_panic("out of memory for %u lost broadcasts", group->lack_space);
        }
        group->lacks[group->lack_count++] =
            (struct tk_mcast_lack){.team = (uint32_t)args[tk_mcast_team_low] |
                                           (uint64_t)(uint32_t)args[tk_mcast_team_high] << 32,
                                   .sequence = (uint32_t)args[tk_mcast_sequence],
                                   .phase = (uint32_t)args[tk_mcast_phase]};
    }
    tk_mcast_notify(group, to, TK_MCAST_ANSWER, number, has, slot);
}

void tk_mcast_answer(struct tk_mcast_group *group)
{
    for (unsigned i = 0; i < group->in_count; i++) {
        const struct tk_mcast_message *m = &group->in[i];
        if ((uint32_t)m->args[tk_mcast_first] == group->era)
            tk_mcast_break(group, "another member found it broken", false);
        if (((uint32_t)m->args[tk_mcast_what] & 0xff) == TK_MCAST_QUERY)
            answer(group, m->to, m->args);
    }
    group->in_count = 0;
}
