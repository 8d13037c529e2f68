/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Thread domains and parent domains. A thread domain only states that one thread uses the objects
 * made in it; a parent domain is a PD joined with one. Owns both; they count their users
 * atomically, so no lock is needed. */
#include "config.h"

#include <stdlib.h>

#include "verbs/verbs.h"

/* The purpose passed to a program's allocator; drivers choose their own numbers. */
enum { send_queue = 1 };

struct ibv_td *shca_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *init)
{
    int e = init->comp_mask ? EINVAL : 0;
    struct shca_td *td = e ? NULL : calloc(1, sizeof *td);

    if (!td) {
        errno = e ? e : ENOMEM;
        return NULL;
    }
    td->td.context = ctx;
    return &td->td;
}

int shca_dealloc_td(struct ibv_td *ibtd)
{
    struct shca_td *td = shca_container(ibtd, struct shca_td, td);

    if (atomic_load(&td->users) > 0)
        return EBUSY;
    free(td);
    return 0;
}

static int domain_check(struct ibv_context *ctx, const struct ibv_parent_domain_init_attr *a)
{
    const uint32_t allocators = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS;

    if (a->comp_mask & ~(allocators | IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT))
        return EOPNOTSUPP;
    if ((a->comp_mask & allocators) && (!a->alloc || !a->free))
        return EINVAL;
    if (!a->pd || a->pd->context != ctx || (a->td && a->td->context != ctx))
        return EINVAL;
    return shca_container(a->pd, struct shca_pd, pd)->base ? EINVAL : 0;
}

struct ibv_pd *shca_alloc_parent_domain(struct ibv_context *ctx,
                                        struct ibv_parent_domain_init_attr *attr)
{
    struct shca_pd *pd = NULL;
    int e = domain_check(ctx, attr);

    if (e == 0 && !(pd = calloc(1, sizeof *pd)))
        e = ENOMEM;
    if (e != 0) {
        errno = e;
        return NULL;
    }
    pd->pd = *attr->pd;
    pd->base = shca_container(attr->pd, struct shca_pd, pd);
    pd->base->users++;
    if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) {
        pd->alloc = attr->alloc;
        pd->free = attr->free;
    }
    if (attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT)
        pd->pd_context = attr->pd_context;
    if (attr->td) {
        pd->td = shca_container(attr->td, struct shca_td, td);
        pd->td->users++;
    }
    return &pd->pd;
}

void shca_leave_base(struct shca_pd *pd)
{
    pd->base->users--;
    if (pd->td)
        pd->td->users--;
}

void *shca_queue_alloc(struct ibv_pd *ibpd, size_t bytes, bool *programs)
{
    struct shca_pd *pd = ibpd ? shca_container(ibpd, struct shca_pd, pd) : NULL;
    void *p = IBV_ALLOCATOR_USE_DEFAULT;

    if (pd && pd->alloc)
        p = pd->alloc(ibpd, pd->pd_context, bytes, sizeof(uint64_t) * 8, send_queue);
    *programs = p != IBV_ALLOCATOR_USE_DEFAULT;
    if (!*programs)
        return shca_lines_alloc(bytes);
    return p ? memset(p, 0, bytes) : NULL;
}

void shca_queue_free(struct ibv_pd *ibpd, void *p, bool programs)
{
    struct shca_pd *pd = ibpd ? shca_container(ibpd, struct shca_pd, pd) : NULL;

    if (!programs)
        shca_lines_free(p);
    else if (p)
        pd->free(ibpd, pd->pd_context, p, send_queue);
}
