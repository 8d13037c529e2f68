/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Active messages to the other members of a group: to return slots, to request the lock, and about
 * groups that break and are created again. They are kept until the work after polls sends them.
 * Owns the table of groups. With the group's lock held. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "base/report.h"
#include "collective/mcast_private.h"
#include "message/message.h"

bool tk_mcast_on;
struct tk_mcast_group *tk_mcast_groups;
unsigned tk_mcast_group_count;
uint32_t tk_mcast_ranks[tk_mcast_members];
bool tk_mcast_all_ranks;

struct tk_mcast_message *tk_mcast_message_add(struct tk_mcast_message **list, unsigned *count,
                                              unsigned *space)
{
    if (*count == *space) {
        *space = *space ? 2 * *space : 64;
        *list = realloc(*list, *space * sizeof(**list));
        if (!*list)
            tk_panic("out of memory for %u messages about a multicast switch", *space);
    }
    return &(*list)[(*count)++];
}

void tk_mcast_notify(struct tk_mcast_group *group, uint32_t to, enum tk_mcast_word word, uint32_t a,
                     uint32_t b, uint32_t c)
{
    struct tk_mcast_message *m =
        tk_mcast_message_add(&group->out, &group->out_count, &group->out_space);
    *m = (struct tk_mcast_message){.to = to};
    m->args[tk_mcast_what] = (int32_t)((uint32_t)word | group->index << 8 | c << 16);
    m->args[tk_mcast_first] = (int32_t)a;
    m->args[tk_mcast_second] = (int32_t)b;
}

void tk_mcast_notify_all(struct tk_mcast_group *group, enum tk_mcast_word word, uint32_t a,
                         uint32_t b)
{
    for (uint32_t m = 0; m < group->members; m++)
        if (m != group->me)
            tk_mcast_notify(group, m, word, a, b, 0);
}

void tk_mcast_query(struct tk_mcast_group *group, uint32_t to, unsigned slot)
{
    const struct tk_mcast_key *key = &group->memory->rings[group->me][slot].small;
    tk_mcast_notify(group, to, TK_MCAST_QUERY, group->era, group->uses[slot].number, slot);
    int32_t *args = group->out[group->out_count - 1].args;
    args[tk_mcast_team_low] = (int32_t)(uint32_t)key->team;
    args[tk_mcast_team_high] = (int32_t)(uint32_t)(key->team >> 32);
    args[tk_mcast_sequence] = (int32_t)key->sequence;
    args[tk_mcast_phase] = (int32_t)key->phase;
}

bool tk_mcast_send_offer(struct tk_mcast_group *group, uint32_t to, const void *offer, size_t size)
{
    const int32_t args[] = {(int32_t)group->index};
    const struct tk_internal_medium medium = {
        .handler = TK_HANDLER_MCAST, .nargs = 1, .args = args, .payload = offer, .nbytes = size};
    return tk_internal_request(tk_peer(tk_mcast_ranks[to]), &medium) == TK_OK;
}

static bool send_word(uint32_t to, const int32_t *args)
{
    return tk_internal_send(tk_peer(tk_mcast_ranks[to]), TK_REQUEST, TK_HANDLER_MCAST,
                            tk_mcast_args, args) == TK_OK;
}

static void return_slots(struct tk_mcast_group *group)
{
    TK_BITSET_EACH (m, &group->owing) {
        const int32_t args[tk_mcast_args] = {[tk_mcast_what] =
                                                 (int32_t)(TK_MCAST_CREDIT | group->index << 8),
                                             [tk_mcast_first] = group->due[m]};
        if (group->due[m] && !send_word(m, args))
            return;
        group->wanted[m] &= (uint8_t)~group->due[m];
        group->due[m] = 0;
        tk_bitset_remove(&group->owing, m);
    }
}

void tk_mcast_send_due(struct tk_mcast_group *group)
{
    unsigned sent = 0;
    while (sent < group->out_count && send_word(group->out[sent].to, group->out[sent].args))
        sent++;
    if (sent) {
        group->out_count -= sent;
        memmove(group->out, group->out + sent, group->out_count * sizeof(*group->out));
    }
    return_slots(group);
}
