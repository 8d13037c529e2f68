/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Which sizes ibv_create_qp accepts, and what it returns: providers differ in their limits, in the
 * errno beyond them, and in how they round. The numbers are those of the device's profile. Owns
 * nothing. */
#include "config.h"

#include "qp_caps.h"

enum {
    list_entry = 16, /* bytes of a scatter/gather entry in a send request */
    inline_head = 4, /* before inline data */
};

static uint32_t caps_power_of_two(uint32_t n)
{
    uint32_t p = 1;

    while (p < n)
        p <<= 1;
    return p;
}

static uint32_t inline_max(const struct shca_profile *p, enum ibv_qp_type type)
{
    return type == IBV_QPT_UD ? p->inline_ud : p->inline_rc;
}

uint32_t shca_qp_wqe_blocks(const struct shca_profile *p, const struct ibv_qp_cap *c)
{
    uint32_t list = c->max_send_sge * list_entry;
    uint32_t data = c->max_inline_data ? inline_head + c->max_inline_data : 0;

    return (p->wqe_head + (list > data ? list : data) + p->wqe_block - 1) / p->wqe_block;
}

static bool sq_fits(const struct shca_profile *p, const struct ibv_qp_cap *c)
{
    return p->wqe_block == 0 ||
           (uint64_t)c->max_send_wr * shca_qp_wqe_blocks(p, c) <= (uint64_t)p->sq_blocks;
}

/* The depth that the device chooses for a requested one. */
static uint32_t depth_of(const struct shca_profile *p, uint32_t wanted)
{
    uint32_t extra = p->rounds_qp == 2;

    if (p->rounds_qp == 0 || wanted == 0)
        return wanted;
    return caps_power_of_two(wanted + extra) - extra;
}

static bool depths_fit(const struct shca_profile *p, const struct ibv_qp_cap *c)
{
    return c->max_send_wr <= p->max_qp_wr && c->max_recv_wr <= p->max_qp_wr &&
           (p->rounds_qp != 2 || (depth_of(p, c->max_send_wr) < p->max_qp_wr &&
                                  depth_of(p, c->max_recv_wr) < p->max_qp_wr));
}

int shca_qp_caps_check(const struct shca_profile *p, const struct ibv_qp_init_attr *a)
{
    const struct ibv_qp_cap *c = &a->cap;

    if (!depths_fit(p, c) || c->max_send_sge > p->max_sge || c->max_recv_sge > p->max_sge ||
        (!p->drops_inline && c->max_inline_data > inline_max(p, a->qp_type)))
        return (int)p->cap_errno;
    return sq_fits(p, c) ? 0 : (int)p->sq_errno;
}

/* The rest of the last block is usable, up to the limit. */
static uint32_t inline_of(const struct shca_profile *p, const struct ibv_qp_init_attr *a)
{
    uint32_t bytes = a->cap.max_inline_data, most = inline_max(p, a->qp_type);

    if (p->drops_inline)
        return 0;
    if (p->rounds_qp && p->wqe_block)
        bytes = shca_qp_wqe_blocks(p, &a->cap) * p->wqe_block - p->wqe_head - inline_head;
    bytes = bytes < p->inline_least ? p->inline_least : bytes;
    bytes = bytes > most ? most : bytes;
    return bytes < a->cap.max_inline_data ? a->cap.max_inline_data : bytes;
}

void shca_qp_caps_round(const struct shca_profile *p, struct ibv_qp_init_attr *a, bool shared)
{
    struct ibv_qp_cap *c = &a->cap;

    c->max_send_sge = c->max_send_sge ? c->max_send_sge : 1;
    c->max_recv_sge = c->max_recv_sge ? c->max_recv_sge : 1;
    c->max_inline_data = inline_of(p, a);
    c->max_send_wr = depth_of(p, c->max_send_wr ? c->max_send_wr : 1);
    c->max_recv_wr = depth_of(p, c->max_recv_wr);
    if (shared)
        c->max_recv_wr = c->max_recv_sge = 0;
}
