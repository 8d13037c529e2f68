/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The layout of a switch in its memory: groups, and in each the senders' addresses, the registers
 * of the ingress and those of the egress. Owns the layout. */
#include "config.h"

#include "core/egress.h"
#include "core/ingress.h"

enum { align = 16 };

size_t mcsw_up(size_t bytes)
{
    return (bytes + align - 1) & ~(size_t)(align - 1);
}

static size_t addresses_bytes(const struct mcsw_config *c)
{
    return mcsw_up(c->senders * sizeof(struct address));
}

static size_t ingress_bytes(const struct mcsw_config *c)
{
    return mcsw_up(sizeof(struct ingress) + c->senders * sizeof(struct ingress_sender));
}

size_t mcsw_group_bytes(const struct mcsw_config *c)
{
    return mcsw_up(sizeof(struct group)) + addresses_bytes(c) + ingress_bytes(c) +
           mcsw_up(sizeof(struct egress));
}

void *mcsw_at(const struct mcsw *w, size_t offset)
{
    return (uint8_t *)(uintptr_t)w + offset;
}

struct group *mcsw_group(const struct mcsw *w, uint32_t group)
{
    struct group *g;

    if (group == 0 || group > w->c.groups)
        return NULL;
    g = mcsw_at(w, w->groups_at + (group - 1) * w->group_bytes);
    return g->used ? g : NULL;
}

struct address *mcsw_sender_address(const struct mcsw *w, struct group *g)
{
    (void)w;
    return (struct address *)((uint8_t *)g + mcsw_up(sizeof *g));
}

struct ingress *mcsw_ingress(const struct mcsw *w, struct group *g)
{
    return (struct ingress *)((uint8_t *)g + mcsw_up(sizeof *g) + addresses_bytes(&w->c));
}

struct egress *mcsw_egress(const struct mcsw *w, struct group *g)
{
    return (struct egress *)((uint8_t *)mcsw_ingress(w, g) + ingress_bytes(&w->c));
}

void mcsw_notify(struct mcsw *w, const struct group *g, uint32_t group, unsigned rank,
                 enum mcsw_event event)
{
    (void)g;
    if (w->c.calls.notify)
        w->c.calls.notify(w->c.calls.context, group, rank, event);
}
