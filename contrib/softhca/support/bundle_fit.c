/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Finds the manners that explain what was seen of ibv_create_qp: all combinations are tried against
 * the records, by the functions that the device uses. Owns nothing. */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "bundle.h"
#include "qp_caps.h"

static bool same_caps(const struct ibv_qp_cap *a, const struct ibv_qp_cap *b)
{
    return a->max_send_wr == b->max_send_wr && a->max_recv_wr == b->max_recv_wr &&
           a->max_send_sge == b->max_send_sge && a->max_recv_sge == b->max_recv_sge &&
           a->max_inline_data == b->max_inline_data;
}

static bool is_repeated(const struct shca_profile *p, const struct shca_bundle_record *r)
{
    struct ibv_qp_init_attr init = r->asked;

    if (shca_qp_caps_check(p, &init) != r->error)
        return false;
    if (r->error != 0 || !r->has_caps)
        return true;
    shca_qp_caps_round(p, &init, false);
    return same_caps(&init.cap, &r->caps);
}

static unsigned count_missed(const struct shca_profile *p, const struct shca_bundle_record *r,
                             unsigned n)
{
    unsigned missed = 0;

    for (unsigned i = 0; i < n; i++)
        missed += !is_repeated(p, &r[i]);
    return missed;
}

/* The errno for lists and inline data beyond their limits, and the errno for queues that are too
 * large although each number is within its limit. */
static void take_errnos(struct shca_profile *p, const struct shca_bundle_record *r, unsigned n)
{
    p->cap_errno = EINVAL;
    for (unsigned i = 0; i < n; i++)
        if (r[i].error != 0 && r[i].asked.cap.max_send_wr == 1)
            p->cap_errno = (uint32_t)r[i].error;
    p->sq_errno = p->cap_errno;
    for (unsigned i = 0; i < n; i++)
        if (r[i].error != 0 && r[i].asked.cap.max_send_wr > 1 &&
            r[i].asked.cap.max_send_wr <= p->max_qp_wr)
            p->sq_errno = (uint32_t)r[i].error;
}

/* The number of blocks of the largest queue that was accepted. */
static uint32_t blocks_seen(const struct shca_profile *p, const struct shca_bundle_record *r,
                            unsigned n)
{
    uint64_t most = 0;

    for (unsigned i = 0; i < n; i++) {
        const struct ibv_qp_cap *c = &r[i].asked.cap;
        uint64_t blocks = (uint64_t)c->max_send_wr * shca_qp_wqe_blocks(p, c);

        if (r[i].error == 0 && blocks > most)
            most = blocks;
    }
    return most > UINT32_MAX ? UINT32_MAX : (uint32_t)most;
}

struct best {
    struct shca_profile profile;
    unsigned missed;
};

static void try_one(struct shca_profile *p, const struct shca_bundle_record *r, unsigned n,
                    struct best *best)
{
    unsigned missed;

    p->sq_blocks = p->wqe_block ? blocks_seen(p, r, n) : 0;
    missed = count_missed(p, r, n);
    if (missed >= best->missed)
        return;
    best->missed = missed;
    best->profile = *p;
}

static void try_blocks(struct shca_profile *p, const struct shca_bundle_record *r, unsigned n,
                       struct best *best)
{
    static const uint32_t sizes[] = {64, 32, 128, 16};

    p->wqe_block = p->wqe_head = 0;
    try_one(p, r, n, best);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        for (p->wqe_head = 0; p->wqe_head < 128; p->wqe_head += 16) {
            p->wqe_block = sizes[i];
            try_one(p, r, n, best);
        }
}

/* The inline size that a queue pair got without asking for inline data. */
static uint32_t least_seen(const struct shca_bundle_record *r, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (r[i].error == 0 && r[i].has_caps && r[i].asked.cap.max_inline_data == 0)
            return r[i].caps.max_inline_data;
    return 0;
}

static bool is_dropped(const struct shca_bundle_record *r, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (r[i].error == 0 && r[i].has_caps &&
            r[i].caps.max_inline_data < r[i].asked.cap.max_inline_data)
            return true;
    return false;
}

unsigned shca_bundle_fit(struct shca_profile *p, const struct shca_bundle_record *r, unsigned n)
{
    struct best best = {.profile = *p, .missed = UINT32_MAX};
    uint32_t least = least_seen(r, n);

    p->drops_inline = is_dropped(r, n);
    take_errnos(p, r, n);
    for (p->rounds_qp = 0; p->rounds_qp < 3; p->rounds_qp++) {
        p->inline_least = 0;
        try_blocks(p, r, n, &best);
        p->inline_least = least;
        try_blocks(p, r, n, &best);
    }
    *p = best.profile;
    return best.missed;
}
