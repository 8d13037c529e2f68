/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections between leaders, made when they are first used, by the library's handshake. Owns a
 * table of them. */
#include "config.h"

#include "connections.h"

#include "messages.h"

#include "transport/verbs/conn/handshake.h"

#include <stdlib.h>

struct sim_connections {
    struct sim_connection *at;
    uint64_t space, used;
};

static uint64_t spread(uint64_t key)
{
    key ^= key >> 33;
    key *= UINT64_C(0xff51afd7ed558ccd);
    key ^= key >> 33;
    key *= UINT64_C(0xc4ceb9fe1a85ec53);
    return key ^ key >> 33;
}

static struct sim_connection *place_of(const struct sim_connections *c, uint64_t key)
{
    uint64_t i = spread(key) & (c->space - 1);
    while (c->at[i].key && c->at[i].key != key)
        i = (i + 1) & (c->space - 1);
    return &c->at[i];
}

static bool grow(struct sim_connections *c)
{
    struct sim_connections more = {.space = c->space ? 2 * c->space : 1024, .used = c->used};
    more.at = calloc(more.space, sizeof(*more.at));
    if (!more.at)
        return false;
    for (uint64_t i = 0; i < c->space; i++)
        if (c->at[i].key)
            *place_of(&more, c->at[i].key) = c->at[i];
    free(c->at);
    *c = more;
    return true;
}

struct sim_connection *sim_connection(struct simulation *s, uint32_t from, uint32_t to)
{
    uint64_t key = from < to ? (uint64_t)from << 32 | to : (uint64_t)to << 32 | from;
    struct sim_connections *all = s->connections;
    if (all && all->space && place_of(all, key)->key)
        return place_of(all, key);
    if (!all && !(all = s->connections = calloc(1, sizeof(*all))))
        return NULL;
    if (4 * all->used >= 3 * all->space && !grow(all))
        return NULL;
    const struct sim_end end = {.wanted = UINT64_MAX, .up = UINT64_MAX};
    struct sim_connection *c = place_of(all, key);
    all->used++;
    *c = (struct sim_connection){.key = key, .ends = {end, end}};
    return c;
}

/* ---- the handshake: both ends are functions of state and event; messages take as long as the
 * fabric says, without other messages beside them */

struct shake {
    struct simulation *s;
    struct sim_connection *c;
    enum tk_handshake_state state[2];
    struct {
        uint64_t time;
        enum tk_handshake_event event;
        int end;
    } queue[16];
    unsigned count;
};

static uint64_t flight(const struct simulation *s)
{
    return 4 * s->in.latency + s->costs.message;
}

static void shake_add(struct shake *k, uint64_t time, int end, enum tk_handshake_event event)
{
    if (k->count < sizeof(k->queue) / sizeof(k->queue[0])) {
        k->queue[k->count].time = time;
        k->queue[k->count].end = end;
        k->queue[k->count++].event = event;
    }
}

static void shake_step(struct shake *k, unsigned at)
{
    uint64_t time = k->queue[at].time;
    int end = k->queue[at].end;
    const struct tk_handshake_step step =
        tk_handshake_next(k->state[end], k->queue[at].event, end == 0);
    k->queue[at] = k->queue[--k->count];
    if (step.opens)
        time += k->s->costs.connection / 2;
    if (step.connects)
        time += k->s->costs.connection / 2;
    if (step.next == TK_HANDSHAKE_UP && k->state[end] != TK_HANDSHAKE_UP)
        k->c->ends[end].up = time;
    k->state[end] = step.next;
    if (step.sends == TK_HANDSHAKE_SILENCE)
        return;
    k->c->ends[end].datagrams++;
    shake_add(k, time + flight(k->s), !end, tk_handshake_came(step.sends));
}

static void shake(struct simulation *s, struct sim_connection *c)
{
    struct shake k = {.s = s, .c = c};
    c->ends[0].datagrams = c->ends[1].datagrams = 0;
    for (int end = 0; end < 2; end++) {
        k.state[end] = TK_HANDSHAKE_IDLE;
        if (c->ends[end].wanted != UINT64_MAX)
            shake_add(&k, c->ends[end].wanted, end, TK_HANDSHAKE_WANTED);
    }
    while (k.count > 0) {
        unsigned next = 0;
        for (unsigned i = 1; i < k.count; i++)
            if (k.queue[i].time < k.queue[next].time)
                next = i;
        shake_step(&k, next);
    }
}

/* When the other end asks too before it has heard of our request. */
static bool crosses(const struct simulation *s, const struct sim_connection *c, int end,
                    uint64_t now)
{
    return c->ends[end].wanted == UINT64_MAX &&
           now < c->ends[!end].wanted + s->costs.connection / 2 + flight(s);
}

static void count(struct simulation *s, const struct sim_connection *c, const uint32_t nbrhd[2],
                  int sign)
{
    for (int end = 0; end < 2; end++)
        s->leaders[nbrhd[end]].datagrams += sign * (int)c->ends[end].datagrams;
}

bool sim_list_add(uint32_t **list, uint32_t *count, uint32_t *space, uint32_t partner)
{
    if (*count == *space) {
        uint32_t larger = *space ? 2 * *space : 8;
        uint32_t *more = realloc(*list, larger * sizeof(*more));
        if (!more)
            return false;
        *list = more;
        *space = larger;
    }
    (*list)[(*count)++] = partner;
    return true;
}

void sim_connection_make(struct simulation *s, uint32_t me, uint32_t other, struct sim_end *end,
                         uint64_t now)
{
    struct sim_leader *l = &s->leaders[me];
    s->has_failed |= !sim_list_add(&l->partners, &l->connections, &l->partner_space, other);
    l->made++;
    l->connections_most =
        l->connections > l->connections_most ? l->connections : l->connections_most;
    sim_messages_connect(s, me, end);
    sim_compute(s, s->host_of[me], now, s->costs.connection);
    s->fabric.links[2 * s->host_of[me]].messages++;
}

uint64_t sim_connect(struct simulation *s, uint32_t from, uint32_t to, uint64_t now)
{
    int end = sim_end_of(from, to);
    const uint32_t nbrhd[2] = {end ? to : from, end ? from : to};
    struct sim_connection *c = sim_connection(s, from, to);
    if (!c) {
        s->has_failed = true;
        return now;
    }
    bool is_new = c->ends[0].wanted == UINT64_MAX && c->ends[1].wanted == UINT64_MAX;
    if (is_new || crosses(s, c, end, now)) {
        count(s, c, nbrhd, -1);
        c->ends[end].wanted = now;
        shake(s, c);
        count(s, c, nbrhd, 1);
    }
    for (int e = 0; is_new && e < 2; e++)
        sim_connection_make(s, nbrhd[e], nbrhd[!e], &c->ends[e], now);
    return c->ends[end].up > now ? c->ends[end].up : now;
}

void sim_connections_close(struct simulation *s)
{
    for (uint32_t n = 0; s->leaders && n < s->nbrhds; n++) {
        free(s->leaders[n].partners);
        free(s->leaders[n].records);
    }
    if (s->connections)
        free(s->connections->at);
    free(s->connections);
    s->connections = NULL;
}
