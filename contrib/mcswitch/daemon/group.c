/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Groups; see group.h. */
#include "config.h"

#include "daemon/group.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "daemon/switch.h"
#include "daemon/wire.h"
#include "packet/bytes.h"
#include "packet/packet.h"

enum {
    arp_every_ms = 200,
    arp_in_all_ms = 5000,
    groups_of_job = 256, /* so that one job can't take all groups */
};

static struct mcd_group *groups;
static unsigned groups_most;
static uint32_t next_number;

void mcd_group_open(unsigned most)
{
    groups_most = most;
    groups = calloc(most, sizeof *groups);
}

unsigned mcd_group_most(void)
{
    return groups_most;
}

/* Number n has entry n - 1. */
static struct mcd_group *group_at(uint32_t number)
{
    if (!groups || number == 0 || number > groups_most || groups[number - 1].number == 0)
        return NULL;
    return &groups[number - 1];
}

/* Returns a group of the connection's own job. Refuses the request for any other group as for one
 * that does not exist. */
static struct mcd_group *own_group(struct mcd_connection *c, uint32_t number)
{
    struct mcd_group *g = group_at(number);

    if (g && g->job == c->job)
        return g;
    mcd_control_error(c, TK_MCSW_E_UNKNOWN, "this job has no such group");
    return NULL;
}

/* ---- events to members ---- */

static void notify_others(const struct mcd_group *g, const struct mcd_connection *but,
                          unsigned rank, unsigned kind)
{
    uint8_t out[TK_MCSW_FRAME_MAX];
    struct tk_mcsw_frame f = tk_mcsw_begin(out, TK_MCSW_EVENT);

    tk_mcsw_put(&f, g->number, 4);
    tk_mcsw_put(&f, rank, 4);
    tk_mcsw_put(&f, kind, 4);
    for (unsigned i = 0; i < g->size; i++)
        if (g->members[i].state == MCD_JOINED && g->members[i].connection != but)
            mcd_control_send(g->members[i].connection, out, tk_mcsw_end(&f, out));
}

void mcd_group_event(uint32_t number, unsigned rank, unsigned kind)
{
    const struct mcd_group *g = group_at(number);

    if (g && g->complete)
        notify_others(g, NULL, rank, kind);
}

/* ---- the end of groups ---- */

static void release_address(struct mcd_member *m)
{
    if (m->state != MCD_AWAITED && m->state != MCD_LEFT && m->m.plane == TK_MCSW_UDP)
        mcd_wire_leave(m->ip);
}

/* Refuses members that still wait, and sends the others an event. */
static void end_group(struct mcd_group *g, const char *why)
{
    if (g->complete) {
        mcd_switch_destroy(g->number);
        notify_others(g, NULL, 0, TK_MCSW_GROUP_GONE);
    }
    for (unsigned i = 0; i < g->size; i++) {
        struct mcd_member *m = &g->members[i];

        release_address(m);
        if (g->complete || !m->connection || !m->connection->joins)
            continue;
        m->connection->joins = false;
        mcd_control_error(m->connection, TK_MCSW_E_GONE, why);
    }
    g->job->groups--;
    free(g->members);
    memset(g, 0, sizeof *g);
}

bool mcd_group_end(uint32_t number)
{
    struct mcd_group *g = group_at(number);

    if (g)
        end_group(g, "the group was destroyed by the administrator");
    return g != NULL;
}

void mcd_group_close_all(void)
{
    for (uint32_t n = 1; n <= groups_most; n++)
        mcd_group_end(n);
    free(groups);
    groups = NULL;
}

/* ---- create ---- */

/* Does not reuse numbers at once, so that late packets of an old group match no group. / */
static struct mcd_group *free_group(void)
{
    for (unsigned i = 0; i < groups_most; i++) {
        struct mcd_group *g = &groups[(next_number + i) % groups_most];

        if (g->number == 0) {
            g->number = (uint32_t)(g - groups) + 1;
            next_number = g->number;
            return g;
        }
    }
    return NULL;
}

void mcd_group_create(struct mcd_connection *c, unsigned members)
{
    struct mcd_group *g = c->job->groups < groups_of_job ? free_group() : NULL;

    if (!g) {
        mcd_control_error(c, TK_MCSW_E_FULL, "the switch has no group left for this job");
        return;
    }
    g->members = calloc(members, sizeof *g->members);
    if (!g->members || getrandom(&g->key, sizeof g->key, 0) != sizeof g->key) {
        free(g->members);
        memset(g, 0, sizeof *g);
        mcd_control_error(c, TK_MCSW_E_FULL, "the switch has no memory or no random bytes");
        return;
    }
    g->size = members;
    g->job = c->job;
    g->creator = c;
    c->job->groups++;
    mcd_control_answer(c, TK_MCSW_CREATED, g->number);
}

/* ---- join ---- */

static struct mcd_switch_member for_core(const struct mcd_member *m)
{
    struct mcd_switch_member s = {.port = m->port,
                                  .sqpn = m->m.sqpn,
                                  .sqpsn = m->m.sqpsn,
                                  .rqpn = m->m.rqpn,
                                  .rqpsn = m->m.rqpsn,
                                  .base = m->m.base,
                                  .rkey = m->m.rkey};

    memcpy(s.ip, m->ip, 4);
    memcpy(s.mac, m->mac, 6);
    return s;
}

static void answer_join(const struct mcd_group *g, unsigned rank)
{
    uint8_t out[TK_MCSW_FRAME_MAX];
    struct tk_mcsw_frame f = tk_mcsw_begin(out, TK_MCSW_JOINED);
    struct tk_mcsw_place p = {.group = g->number, .rank = rank, .members = g->size, .key = g->key};

    mcd_switch_place(g->number, rank, &p);
    tk_mcsw_put_place(&f, &p);
    g->members[rank].connection->joins = false;
    mcd_control_count.joined++;
    mcd_control_send(g->members[rank].connection, out, tk_mcsw_end(&f, out));
}

static void complete(struct mcd_group *g)
{
    struct mcd_switch_member *all = calloc(g->size, sizeof *all);
    bool good = all != NULL;

    for (unsigned i = 0; i < g->size && good; i++)
        all[i] = for_core(&g->members[i]);
    good = good && mcd_switch_create(g->number, g->size, all, g->key);
    free(all);
    if (!good) {
        end_group(g, "the switch has no space for this group");
        return;
    }
    g->complete = true;
    for (unsigned i = 0; i < g->size; i++)
        answer_join(g, i);
}

static void joined(struct mcd_group *g, struct mcd_member *m)
{
    m->state = MCD_JOINED;
    g->joined++;
    if (g->joined == g->size)
        complete(g);
}

/* Copies go to the queue pair that a member names, so two groups must not name the same one. */
static bool taken(const struct tk_mcsw_member *m)
{
    for (unsigned i = 0; i < groups_most; i++)
        for (unsigned k = 0; k < groups[i].size; k++) {
            const struct mcd_member *o = &groups[i].members[k];

            if (o->state != MCD_AWAITED && o->state != MCD_LEFT && o->m.rqpn == m->rqpn &&
                memcmp(o->m.gid, m->gid, sizeof m->gid) == 0)
                return true;
        }
    return false;
}

/* The address and the UDP port in a GID of either form. */
static void address_of(const uint8_t gid[16], uint8_t ip[4], uint16_t *port)
{
    bool plain = gid[0] == 0;

    memcpy(ip, gid + (plain ? 12 : 8), 4);
    *port = plain ? ROCE_UDP_PORT : roce_get16(gid + 12);
}

/* False: it was refused. */
static bool place_member(struct mcd_connection *c, struct mcd_member *m)
{
    uint8_t ip[4];
    uint16_t port;
    uint64_t now = mcd_now();

    address_of(m->m.gid, ip, &port);
    if (m->m.plane == TK_MCSW_UDP) {
        if (!mcd_wire_join(ip, port, m->ip)) {
            mcd_control_error(c, TK_MCSW_E_FULL, "the switch has no space for this member");
            return false;
        }
        m->port = mcd_wire_port()->number;
        return true;
    }
    memcpy(m->ip, ip, 4);
    m->deadline = now + (uint64_t)arp_in_all_ms * 1000000;
    m->state = MCD_RESOLVING;
    return true;
}

/* If the member stated a MAC, it must be the one that answered. */
static bool resolved(struct mcd_member *m)
{
    static const uint8_t none[6];
    uint8_t mac[6];

    if (!mcd_bridge_find(m->ip, mac, &m->port) ||
        (memcmp(m->m.mac, none, 6) != 0 && memcmp(m->m.mac, mac, 6) != 0))
        return false;
    memcpy(m->mac, mac, 6);
    return true;
}

void mcd_group_join(struct mcd_connection *c, uint32_t number, const struct tk_mcsw_member *m)
{
    struct mcd_group *g = own_group(c, number);
    struct mcd_member *member;

    if (!g)
        return;
    if (m->rank >= g->size || g->members[m->rank].state != MCD_AWAITED || g->complete) {
        mcd_control_error(c, TK_MCSW_E_STATE, "this rank has joined, or the group has none such");
        return;
    }
    if (taken(m)) {
        mcd_control_error(c, TK_MCSW_E_STATE, "this receive queue pair is a member already");
        return;
    }
    for (unsigned i = 0; i < g->size; i++)
        if (g->members[i].state != MCD_AWAITED && g->members[i].m.mtu != m->mtu) {
            mcd_control_error(c, TK_MCSW_E_ARGUMENT, "the path MTU differs from other members'");
            return;
        }
    member = &g->members[m->rank];
    *member = (struct mcd_member){.m = *m, .connection = c};
    if (!place_member(c, member)) {
        memset(member, 0, sizeof *member);
        return;
    }
    c->joins = true;
    if (member->state != MCD_RESOLVING || resolved(member))
        joined(g, member);
}

static void resolve(struct mcd_group *g, struct mcd_member *m, uint64_t now)
{
    struct mcd_connection *c = m->connection;

    if (resolved(m)) {
        joined(g, m);
    } else if (now > m->deadline) {
        memset(m, 0, sizeof *m);
        c->joins = false;
        mcd_control_error(c, TK_MCSW_E_UNREACHED,
                          "no host answers at this member's address to the switch's ARP");
    } else if (now - m->asked > (uint64_t)arp_every_ms * 1000000) {
        m->asked = now;
        mcd_bridge_ask(m->ip);
    }
}

void mcd_group_tick(uint64_t now)
{
    for (unsigned i = 0; i < groups_most; i++) {
        struct mcd_group *g = &groups[i];

        for (unsigned k = 0; !g->complete && k < g->size; k++)
            if (g->members[k].state == MCD_RESOLVING)
                resolve(g, &g->members[k], now);
    }
}

/* ---- repair, mark, leave, destroy ---- */

/* A member of a complete group; mine: by this connection. */
static struct mcd_member *own_member(struct mcd_connection *c, uint32_t number, uint32_t rank,
                                     bool mine, struct mcd_group **group)
{
    struct mcd_group *g = own_group(c, number);

    *group = g;
    if (!g)
        return NULL;
    if (rank >= g->size || !g->complete || g->members[rank].state != MCD_JOINED ||
        (mine && g->members[rank].connection != c)) {
        mcd_control_error(c, TK_MCSW_E_STATE,
                          "the group is not complete, or this rank of it is not the caller's");
        return NULL;
    }
    return &g->members[rank];
}

void mcd_group_repair(struct mcd_connection *c, uint32_t number, uint32_t what,
                      const struct tk_mcsw_member *m)
{
    struct mcd_group *g;
    struct mcd_member *member = own_member(c, number, m->rank, true, &g);
    struct mcd_switch_member s;

    if (!member)
        return;
    if (memcmp(member->m.gid, m->gid, sizeof m->gid) != 0 || member->m.mtu != m->mtu ||
        (m->rqpn != member->m.rqpn && taken(m))) {
        mcd_control_error(
            c, TK_MCSW_E_ARGUMENT,
            "a repair can't change address or path MTU, or take a member's queue pair");
        return;
    }
    if (what == TK_MCSW_REPAIR_WINDOW) {
        mcd_switch_window(number, m->rank, m->base, m->rkey);
    } else {
        member->m = *m;
        s = for_core(member);
        mcd_switch_repair(number, m->rank, what, &s);
    }
    mcd_control_answer(c, TK_MCSW_REPAIRED, number);
}

void mcd_group_mark(struct mcd_connection *c, uint32_t number, uint32_t rank)
{
    struct mcd_group *g;

    if (!own_member(c, number, rank, false, &g))
        return;
    mcd_switch_mark(number, rank);
    notify_others(g, c, rank, TK_MCSW_MEMBER_DIRTY);
    mcd_control_answer(c, TK_MCSW_MARKED, number);
}

/* A complete group continues without the member; an incomplete one ends, because it can never
 * become complete. */
static void leave(struct mcd_group *g, unsigned rank)
{
    struct mcd_member *m = &g->members[rank];

    if (!g->complete) {
        m->connection = NULL;
        end_group(g, "a member left before all had joined");
        return;
    }
    mcd_switch_remove(g->number, rank);
    release_address(m);
    m->state = MCD_LEFT;
    m->connection = NULL;
    g->left++;
    if (g->left == g->size)
        end_group(g, "");
    else
        notify_others(g, NULL, rank, TK_MCSW_MEMBER_LEFT);
}

void mcd_group_leave(struct mcd_connection *c, uint32_t number, uint32_t rank)
{
    struct mcd_group *g;

    if (!own_member(c, number, rank, true, &g))
        return;
    leave(g, rank);
    mcd_control_count.left++;
    mcd_control_answer(c, TK_MCSW_LEFT, number);
}

void mcd_group_destroy(struct mcd_connection *c, uint32_t number)
{
    struct mcd_group *g = own_group(c, number);

    if (!g)
        return;
    end_group(g, "the group was destroyed");
    mcd_control_count.destroyed++;
    mcd_control_answer(c, TK_MCSW_DESTROYED, number);
}

/* Has only the creator joined? Then no other process knows the group's number. */
static bool orphaned(const struct mcd_group *g, const struct mcd_connection *c)
{
    if (g->creator != c)
        return false;
    for (unsigned i = 0; i < g->size; i++)
        if (g->members[i].state != MCD_AWAITED)
            return false;
    return true;
}

void mcd_group_lose(struct mcd_connection *c)
{
    for (unsigned i = 0; i < groups_most && c->job->groups > 0; i++) {
        struct mcd_group *g = &groups[i];

        if (g->number == 0 || g->job != c->job)
            continue;
        if (orphaned(g, c) || (!g->complete && c->job->connections == 1)) {
            end_group(g, "its creator went away");
            continue;
        }
        if (g->creator == c)
            g->creator = NULL;
        for (unsigned k = 0; g->number && k < g->size; k++)
            if (g->members[k].connection == c)
                leave(g, k);
    }
}

void mcd_group_print(FILE *to, uint32_t number)
{
    static const char *const states[] = {"awaited", "resolving", "joined", "left"};

    for (unsigned i = 0; i < groups_most; i++) {
        const struct mcd_group *g = &groups[i];

        if (g->number == 0 || (number && g->number != number))
            continue;
        fprintf(to, "group %u members %u joined %u left %u %s\n", g->number, g->size, g->joined,
                g->left, g->complete ? "complete" : "waiting");
        if (!number)
            continue;
        for (unsigned k = 0; k < g->size; k++)
            fprintf(to, "member %u %s %u.%u.%u.%u port %u sqpn %u rqpn %u\n", k,
                    states[g->members[k].state], g->members[k].ip[0], g->members[k].ip[1],
                    g->members[k].ip[2], g->members[k].ip[3], g->members[k].port,
                    g->members[k].m.sqpn, g->members[k].m.rqpn);
        if (g->complete)
            mcd_switch_print_group(to, number);
    }
}
