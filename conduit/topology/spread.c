/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See spread.h. Ranks are matched to ports in rounds, one port for each rank in a round. Within a
 * round each rank takes the least busy port that it reaches by an alternating path: along its own
 * nearest ports, and over ranks that hold one of these and could take another. Without a path that
 * would even out loads the matching is optimal (Harvey, Ladner, Lovasz, Tamir 2006). Owns nothing
 * between calls. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "topology/spread.h"

enum { nobody = -1 };

struct work {
    const struct tk_spread *s;
    bool *may_take;  /* as is_taken: nearest of those that the rank does not have yet */
    bool *is_near;   /* by port: may be taken in some round */
    uint32_t *load;  /* by port */
    int *mine;       /* by rank: the port of this round */
    int *via;        /* by port, while a path is searched: the rank that would take it */
    uint32_t *queue; /* of ports on the path */
};

static bool *at(bool *table, const struct tk_spread *s, uint32_t rank, uint32_t port)
{
    return &table[(size_t)rank * s->ports + port];
}

static int distance(const struct tk_spread *s, uint32_t rank, uint32_t port)
{
    return s->distance[(size_t)rank * s->ports + port];
}

static bool is_free(const struct tk_spread *s, uint32_t rank, uint32_t port)
{
    return distance(s, rank, port) != tk_spread_never && !*at(s->is_taken, s, rank, port);
}

/* ---- A round ---- */

static void mark_nearest(struct work *w, uint32_t rank)
{
    const struct tk_spread *s = w->s;
    int least = tk_spread_never;
    for (uint32_t p = 0; p < s->ports; p++)
        if (is_free(s, rank, p) && (least == tk_spread_never || distance(s, rank, p) < least))
            least = distance(s, rank, p);
    for (uint32_t p = 0; p < s->ports; p++) {
        bool is_nearest = is_free(s, rank, p) && distance(s, rank, p) == least;
        *at(w->may_take, s, rank, p) = is_nearest;
        w->is_near[p] |= is_nearest;
    }
}

/* Appends the ports that the rank could take and that are not on this path yet. */
static uint32_t reach(struct work *w, uint32_t rank, uint32_t count)
{
    for (uint32_t p = 0; p < w->s->ports; p++)
        if (w->via[p] == nobody && *at(w->may_take, w->s, rank, p)) {
            w->via[p] = (int)rank;
            w->queue[count++] = p;
        }
    return count;
}

/* Returns how many ports the rank reaches; they are in the queue, the shortest paths first. */
static uint32_t search_paths(struct work *w, uint32_t rank)
{
    for (uint32_t p = 0; p < w->s->ports; p++)
        w->via[p] = nobody;
    uint32_t count = reach(w, rank, 0);
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t r = 0; r < w->s->ranks; r++)
            if (w->mine[r] == (int)w->queue[i])
                count = reach(w, r, count);
    return count;
}

static void match(struct work *w, uint32_t rank)
{
    uint32_t count = search_paths(w, rank);
    if (count == 0)
        return;
    uint32_t best = w->queue[0];
    for (uint32_t i = 1; i < count; i++)
        if (w->load[w->queue[i]] < w->load[best])
            best = w->queue[i];
    w->load[best]++;
    for (int port = (int)best, next; port != nobody; port = next) {
        int mover = w->via[port];
        next = w->mine[mover];
        w->mine[mover] = port;
    }
}

static void run_round(struct work *w)
{
    for (uint32_t r = 0; r < w->s->ranks; r++) {
        mark_nearest(w, r);
        w->mine[r] = nobody;
    }
    for (uint32_t r = 0; r < w->s->ranks; r++)
        match(w, r);
    for (uint32_t r = 0; r < w->s->ranks; r++)
        if (w->mine[r] != nobody)
            *at(w->s->is_taken, w->s, r, (uint32_t)w->mine[r]) = true;
}

/* ---- Ports that are not nearest to any rank ---- */

struct move {
    uint32_t rank, from, to;
    bool is_found;
};

/* Moves a rank from the busiest port to the idlest one: the rank that is nearest to the idlest, and
 * of equals the last, so that the first ranks keep their near ports. */
static bool is_better(const struct work *w, const struct move *a, const struct move *b)
{
    if (!b->is_found)
        return true;
    if (w->load[a->from] != w->load[b->from])
        return w->load[a->from] > w->load[b->from];
    if (w->load[a->to] != w->load[b->to])
        return w->load[a->to] < w->load[b->to];
    int ours = distance(w->s, a->rank, a->to), theirs = distance(w->s, b->rank, b->to);
    return ours != theirs ? ours < theirs : a->rank > b->rank;
}

static void look_at_moves(const struct work *w, uint32_t rank, uint32_t from, struct move *best)
{
    for (uint32_t to = 0; to < w->s->ports; to++) {
        struct move move = {.rank = rank, .from = from, .to = to, .is_found = true};
        if (!w->is_near[to] && is_free(w->s, rank, to) && w->load[from] > w->load[to] + 1 &&
            is_better(w, &move, best))
            *best = move;
    }
}

static struct move find_move(const struct work *w)
{
    struct move best = {.is_found = false};
    for (uint32_t r = 0; r < w->s->ranks; r++)
        for (uint32_t p = 0; p < w->s->ports; p++)
            if (w->is_near[p] && *at(w->s->is_taken, w->s, r, p))
                look_at_moves(w, r, p, &best);
    return best;
}

static bool outnumber_near_ports(const struct work *w)
{
    uint64_t near = 0, taken = 0;
    for (uint32_t p = 0; p < w->s->ports; p++) {
        near += w->is_near[p];
        taken += w->load[p];
    }
    return taken > near;
}

static void fill_idle(struct work *w)
{
    if (!outnumber_near_ports(w))
        return;
    for (struct move m = find_move(w); m.is_found; m = find_move(w)) {
        *at(w->s->is_taken, w->s, m.rank, m.from) = false;
        *at(w->s->is_taken, w->s, m.rank, m.to) = true;
        w->load[m.from]--;
        w->load[m.to]++;
    }
}

bool tk_spread(const struct tk_spread *s)
{
    size_t cells = (size_t)s->ranks * s->ports;
    struct work w = {.s = s,
                     .may_take = calloc(cells + 1, sizeof(*w.may_take)),
                     .is_near = calloc(s->ports + 1, sizeof(*w.is_near)),
                     .load = calloc(s->ports + 1, sizeof(*w.load)),
                     .mine = calloc(s->ranks + 1, sizeof(*w.mine)),
                     .via = calloc(s->ports + 1, sizeof(*w.via)),
                     .queue = calloc(s->ports + 1, sizeof(*w.queue))};
    bool has_memory = w.may_take && w.is_near && w.load && w.mine && w.via && w.queue;
    if (has_memory) {
        memset(s->is_taken, 0, cells * sizeof(*s->is_taken));
        for (uint32_t round = 0; round < s->wanted && round < s->ports; round++)
            run_round(&w);
        fill_idle(&w);
    }
    free(w.may_take);
    free(w.is_near);
    free(w.load);
    free(w.mine);
    free(w.via);
    free(w.queue);
    return has_memory;
}

uint32_t tk_spread_load(const struct tk_spread *s, uint32_t port)
{
    uint32_t load = 0;
    for (uint32_t r = 0; r < s->ranks; r++)
        load += s->is_taken[(size_t)r * s->ports + port];
    return load;
}
