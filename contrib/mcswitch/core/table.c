/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The control plane: adds and removes groups and members, repairs receivers and senders. It writes
 * registers of both halves, between packets. */
#include "config.h"

#include <string.h>

#include "core/egress.h"
#include "core/ingress.h"

static struct address address(const uint8_t *ip, const uint8_t *mac, unsigned port, uint32_t qpn)
{
    struct address a = {.port = (uint16_t)port, .qpn = qpn & ROCE_PSN_MASK, .valid = true};

    memcpy(a.ip, ip, sizeof a.ip);
    memcpy(a.mac, mac, sizeof a.mac);
    return a;
}

static void set_sender(struct mcsw *w, struct group *g, unsigned rank, const struct mcsw_sender *s)
{
    struct ingress_sender *r = &mcsw_ingress(w, g)->sender[rank];

    mcsw_sender_address(w, g)[rank] = address(s->ip, s->mac, s->port, s->qpn);
    r->epsn = (struct pair){s->psn & ROCE_PSN_MASK, 0};
    r->flag = (struct pair){0, 0};
}

/* Unlinks the receiver, so that late answers of the old RQP do not count. */
static void set_receiver(struct mcsw *w, struct group *g, unsigned rank,
                         const struct mcsw_receiver *s)
{
    struct egress_receiver *r = &mcsw_egress(w, g)->receiver[rank];

    g->receiver[rank] = address(s->ip, s->mac, s->port, s->qpn);
    r->version = (struct pair){0, 0};
    r->off.hi = s->psn & ROCE_PSN_MASK;
    r->msn.hi = 0;
    r->va[0] = (struct pair){(uint32_t)s->base, (uint32_t)(s->base >> 32)};
    r->rkey[0] = (struct pair){s->rkey, 0};
}

/* The root holds a leaf from the first packet on, with an empty set. */
static void hold_for_ever(struct mcsw *w, struct group *g)
{
    struct ingress *in = mcsw_ingress(w, g);

    in->hold.lo = 0;
    in->topo.lo &= ~255u;
    in->topo.hi = 0;
    in->agg = (struct pair){roce_psn_add(in->sender[0].epsn.lo, ROCE_PSN_MASK), 0};
    in->rel = (struct pair){0, 0};
    in->inside.lo = 0;
}

static bool good(const struct mcsw *w, const struct mcsw_group_config *c)
{
    const struct mcsw_vips *v = c->ip_version == 6 ? &w->c.v6 : &w->c.v4;

    if ((c->ip_version != 4 && c->ip_version != 6) || !v->on)
        return false;
    if (c->senders == 0 || c->senders > w->c.senders || c->receivers == 0 ||
        c->receivers > MCSW_RECEIVERS)
        return false;
    for (unsigned r = 0; r < c->receivers; r++)
        if (c->receiver[r].rkey == MCSW_CONTROL_RKEY)
            return false;
    return true;
}

static struct group *place(const struct mcsw *w, uint32_t group)
{
    return (struct group *)((uint8_t *)(uintptr_t)w + w->groups_at + (group - 1) * w->group_bytes);
}

bool mcsw_create(struct mcsw *w, uint32_t group, const struct mcsw_group_config *c)
{
    struct group *g;

    if (group == 0 || group > w->c.groups || mcsw_group(w, group) || !good(w, c))
        return false;
    g = place(w, group);
    memset(g, 0, w->group_bytes);
    g->used = true;
    g->leaf = c->leaf;
    g->v6 = c->ip_version == 6;
    g->senders = (uint16_t)c->senders;
    g->receivers = (uint16_t)c->receivers;
    g->present = c->receivers == 32 ? UINT32_MAX : (1u << c->receivers) - 1;
    g->key = c->key;
    mcsw_ingress(w, g)->hold.lo = NOBODY;
    mcsw_ingress(w, g)->topo.lo = 1u << 8;
    mcsw_ingress(w, g)->cnp.lo = (uint32_t)(w->now >> 10) - 1000;
    for (unsigned s = 0; s < c->senders; s++)
        set_sender(w, g, s, &c->sender[s]);
    for (unsigned r = 0; r < c->receivers; r++) {
        set_receiver(w, g, r, &c->receiver[r]);
        /* The key until the window is set. A leaf as receiver keeps it, and so gets writes with
         * this key. */
        mcsw_egress(w, g)->receiver[r].rkey[1].lo = MCSW_WINDOW_RKEY;
    }
    if (g->leaf)
        hold_for_ever(w, g);
    return true;
}

bool mcsw_destroy(struct mcsw *w, uint32_t group)
{
    struct group *g = mcsw_group(w, group);

    if (g)
        memset(g, 0, w->group_bytes);
    return g != NULL;
}

bool mcsw_mark(struct mcsw *w, uint32_t group, unsigned rank)
{
    struct group *g = mcsw_group(w, group);
    struct ingress *in;

    if (!g || rank >= g->receivers)
        return false;
    in = mcsw_ingress(w, g);
    if (!(in->dirty.lo >> rank & 1)) {
        in->dirty.lo |= 1u << rank;
        w->count.dirtied++;
        mcsw_notify(w, g, group, rank, MCSW_DIRTY);
    }
    return true;
}

bool mcsw_repair(struct mcsw *w, uint32_t group, unsigned rank, const struct mcsw_receiver *r)
{
    struct group *g = mcsw_group(w, group);

    if (!g || rank >= g->receivers || r->rkey == MCSW_CONTROL_RKEY)
        return false;
    set_receiver(w, g, rank, r);
    mcsw_ingress(w, g)->dirty.lo &= ~(1u << rank);
    g->present |= 1u << rank;
    return true;
}

/* The holder is gone: marks receivers that lack something that it sent, or were inside a
 * message. */
static void drop_lock(struct mcsw *w, struct group *g, uint32_t group)
{
    struct ingress *in = mcsw_ingress(w, g);
    struct egress *e = mcsw_egress(w, g);
    uint32_t next = in->rel.hi ? in->rel.lo : in->sender[in->hold.lo].epsn.lo;

    for (unsigned i = 0; i < (in->topo.lo & 255); i++) {
        const struct egress_receiver *r = &e->receiver[e->list[i].lo];

        if (r->version.lo == in->topo.lo >> 8 &&
            (in->inside.lo || r->acked.lo != roce_psn_add(next, ROCE_PSN_MASK)))
            mcsw_mark(w, group, e->list[i].lo);
    }
    in->hold.lo = NOBODY;
}

bool mcsw_register(struct mcsw *w, uint32_t group, unsigned rank, const struct mcsw_sender *s)
{
    struct group *g = mcsw_group(w, group);

    if (!g || rank >= g->senders)
        return false;
    if (mcsw_ingress(w, g)->hold.lo == rank)
        drop_lock(w, g, group);
    set_sender(w, g, rank, s);
    if (g->leaf)
        hold_for_ever(w, g);
    return true;
}

static bool set_memory(struct mcsw *w, uint32_t group, unsigned rank, unsigned window,
                       uint64_t base, uint32_t rkey)
{
    struct group *g = mcsw_group(w, group);
    struct egress_receiver *r;

    if (!g || rank >= g->receivers || rkey == MCSW_CONTROL_RKEY)
        return false;
    r = &mcsw_egress(w, g)->receiver[rank];
    r->va[window] = (struct pair){(uint32_t)base, (uint32_t)(base >> 32)};
    r->rkey[window].lo = rkey;
    return true;
}

bool mcsw_set_memory(struct mcsw *w, uint32_t group, unsigned rank, uint64_t base, uint32_t rkey)
{
    return set_memory(w, group, rank, 0, base, rkey);
}

bool mcsw_set_window(struct mcsw *w, uint32_t group, unsigned rank, uint64_t base, uint32_t rkey)
{
    return set_memory(w, group, rank, 1, base, rkey);
}

bool mcsw_remove(struct mcsw *w, uint32_t group, unsigned rank)
{
    struct group *g = mcsw_group(w, group);

    if (!g || (rank >= g->senders && rank >= g->receivers))
        return false;
    if (rank < g->receivers) {
        mcsw_mark(w, group, rank);
        g->receiver[rank].valid = false;
        g->present &= ~(1u << rank);
    }
    if (rank < g->senders) {
        if (mcsw_ingress(w, g)->hold.lo == rank && !g->leaf)
            drop_lock(w, g, group);
        mcsw_sender_address(w, g)[rank].valid = false;
    }
    return true;
}

/* ---- view ---- */

static void view_senders(const struct mcsw *w, struct group *g, struct mcsw_view *v)
{
    const struct ingress *in = mcsw_ingress(w, g);

    for (unsigned s = 0; s < g->senders; s++)
        v->sender[s] = (struct mcsw_view_sender){in->sender[s].epsn.lo, in->sender[s].epsn.hi,
                                                 mcsw_sender_address(w, g)[s].valid,
                                                 in->sender[s].flag.lo, in->sender[s].flag.hi};
}

static void view_receivers(const struct mcsw *w, struct group *g, struct mcsw_view *v)
{
    const struct egress *e = mcsw_egress(w, g);

    for (unsigned r = 0; r < g->receivers; r++) {
        const struct egress_receiver *x = &e->receiver[r];

        v->receiver[r] = (struct mcsw_view_receiver){
            .psn_out = x->off.hi,
            .msn_out = x->msn.hi,
            .off = x->off.lo,
            .msn_off = x->msn.lo,
            .acked = x->acked.lo,
            .amsn = x->acked.hi,
            .version = x->version.lo,
            .rkey = x->rkey[0].lo,
            .base = (uint64_t)x->va[0].hi << 32 | x->va[0].lo,
            .valid = g->receiver[r].valid,
            .dirty = v->dirty >> r & 1,
            .linked = x->version.lo == v->version && v->mask >> r & 1,
        };
    }
}

bool mcsw_view(const struct mcsw *w, uint32_t group, struct mcsw_view *v)
{
    struct group *g = mcsw_group(w, group);
    const struct ingress *in;

    if (!g)
        return false;
    in = mcsw_ingress(w, g);
    memset(v, 0, sizeof *v);
    v->senders = g->senders;
    v->receivers = g->receivers;
    v->holder = in->hold.lo < NOBODY ? in->hold.lo : MCSW_NOBODY;
    v->leaf = g->leaf;
    v->in_message = in->inside.lo;
    v->release_pending = in->rel.hi;
    v->version = in->topo.lo >> 8;
    v->links = in->topo.lo & 255;
    v->mask = in->topo.hi;
    v->agg = in->agg.lo;
    v->amsn = in->agg.hi;
    v->release_psn = in->rel.lo;
    v->dirty = in->dirty.lo;
    view_senders(w, g, v);
    view_receivers(w, g, v);
    return true;
}
