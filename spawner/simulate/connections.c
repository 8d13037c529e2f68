/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections between leaders, made when they are first used, by the library's handshake. Owns a
 * table of them. */
#include "config.h"

#include "simulation.h"

#include "transport/verbs/conn/handshake.h"

#include <stdlib.h>

/* Which end of a pair: the lower rank's is 0. */
struct connection {
    uint64_t key;       /* lower neighbourhood, higher one, and 1 beside it: never 0 */
    uint64_t wanted[2]; /* when an end has something to send; UINT64_MAX: it has not */
    uint64_t up[2];     /* when an end may send */
    uint32_t datagrams[2];
};

struct sim_connections {
    struct connection *at;
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

static struct connection *place_of(const struct sim_connections *c, uint64_t key)
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

static struct connection *find(struct simulation *s, uint64_t key)
{
    if (!s->connections && !(s->connections = calloc(1, sizeof(*s->connections))))
        return NULL;
    if (4 * s->connections->used >= 3 * s->connections->space && !grow(s->connections))
        return NULL;
    struct connection *c = place_of(s->connections, key);
    if (!c->key) {
        s->connections->used++;
        *c = (struct connection){
            .key = key, .wanted = {UINT64_MAX, UINT64_MAX}, .up = {UINT64_MAX, UINT64_MAX}};
    }
    return c;
}

/* ---- the handshake: both ends are functions of state and event; messages take as long as the
 * fabric says, without other messages beside them */

struct shake {
    struct simulation *s;
    struct connection *c;
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
        k->c->up[end] = time;
    k->state[end] = step.next;
    if (step.sends == TK_HANDSHAKE_SILENCE)
        return;
    k->c->datagrams[end]++;
    shake_add(k, time + flight(k->s), !end, tk_handshake_came(step.sends));
}

static void shake(struct simulation *s, struct connection *c)
{
    struct shake k = {.s = s, .c = c};
    c->datagrams[0] = c->datagrams[1] = 0;
    for (int end = 0; end < 2; end++) {
        k.state[end] = TK_HANDSHAKE_IDLE;
        if (c->wanted[end] != UINT64_MAX)
            shake_add(&k, c->wanted[end], end, TK_HANDSHAKE_WANTED);
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
static bool crosses(const struct simulation *s, const struct connection *c, int end, uint64_t now)
{
    return c->wanted[end] == UINT64_MAX &&
           now < c->wanted[!end] + s->costs.connection / 2 + flight(s);
}

static void count(struct simulation *s, const struct connection *c, const uint32_t nbrhd[2],
                  int sign)
{
    for (int end = 0; end < 2; end++)
        s->leaders[nbrhd[end]].datagrams += sign * (int)c->datagrams[end];
}

static void make(struct simulation *s, const uint32_t nbrhd[2], uint64_t now)
{
    for (int end = 0; end < 2; end++) {
        s->leaders[nbrhd[end]].connections++;
        sim_compute(s, s->host_of[nbrhd[end]], now, s->costs.connection);
    }
    s->fabric.links[2 * s->host_of[nbrhd[0]]].messages += 2;
}

uint64_t sim_connect(struct simulation *s, uint32_t from, uint32_t to, uint64_t now)
{
    int end = from > to;
    const uint32_t nbrhd[2] = {end ? to : from, end ? from : to};
    struct connection *c = find(s, (uint64_t)nbrhd[0] << 32 | nbrhd[1]);
    if (!c) {
        s->has_failed = true;
        return now;
    }
    bool is_new = c->wanted[0] == UINT64_MAX && c->wanted[1] == UINT64_MAX;
    if (is_new || crosses(s, c, end, now)) {
        count(s, c, nbrhd, -1);
        c->wanted[end] = now;
        shake(s, c);
        count(s, c, nbrhd, 1);
    }
    if (is_new)
        make(s, nbrhd, now);
    return c->up[end] > now ? c->up[end] : now;
}

void sim_connections_close(struct simulation *s)
{
    if (s->connections)
        free(s->connections->at);
    free(s->connections);
    s->connections = NULL;
}
