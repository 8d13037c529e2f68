/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Opening and closing a device, its attributes, and its asynchronous events. Owns the contexts. */
#include "config.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "verbs/verbs.h"
#include "wire/udp/udp.h"

/* The public structure is the last member of verbs_context by contract of the header; ours has
 * private fields elsewhere, accessed by shca_ctx only. */
enum {
    clock_khz = 1000000, /* time stamps are nanoseconds */
};

/* Real drivers return the device's counter here, all of it in tv_nsec. Ours counts ns, so it is the
 * same clock as the time stamps of completions. */
static int query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
    (void)ctx;
    if (values->comp_mask & ~(uint32_t)IBV_VALUES_MASK_RAW_CLOCK)
        return EOPNOTSUPP;
    values->raw_clock = (struct timespec){.tv_nsec = (long)tk_now()};
    return 0;
}

static void fill_ops(struct shca_context *c)
{
    struct verbs_context *v = &c->v;

    v->context.ops.poll_cq = shca_poll_cq;
    v->context.ops.req_notify_cq = shca_req_notify_cq;
    v->context.ops.post_send = shca_post_send;
    v->context.ops.post_recv = shca_post_recv;
    v->context.ops.post_srq_recv = shca_post_srq_recv;
    v->create_srq_ex = shca_create_srq_ex;
    v->get_srq_num = shca_get_srq_num;
    v->open_xrcd = shca_open_xrcd;
    v->close_xrcd = shca_close_xrcd;
    v->open_qp = shca_open_qp;
    v->query_port = shca_query_port;
    v->query_device_ex = shca_query_device_ex;
    v->query_rt_values = query_rt_values;
    v->create_qp_ex = shca_create_qp_ex;
    v->create_cq_ex = shca_create_cq_ex;
    v->advise_mr = shca_advise_mr;
    v->alloc_dm = shca_alloc_dm;
    v->free_dm = shca_free_dm;
    v->reg_dm_mr = shca_reg_dm_mr;
    v->alloc_td = shca_alloc_td;
    v->dealloc_td = shca_dealloc_td;
    v->alloc_parent_domain = shca_alloc_parent_domain;
}

static int context_set_up(struct shca_context *c, struct ibv_device *dev)
{
    struct ibv_context *x = &c->v.context;
    int e = shca_join();

    if (e != 0)
        return e;
    c->hca = ((struct shca_device *)dev)->number;
    if (shca.fatal >> c->hca & 1)
        return EIO;
    e = shca_udp_open(c->hca);
    if (e != 0)
        return e;
    c->v.sz = sizeof c->v;
    x->device = dev;
    x->abi_compat = __VERBS_ABI_IS_EXTENDED;
    x->cmd_fd = -1;
    x->num_comp_vectors = 1;
    fill_ops(c);
    pthread_mutex_init(&x->mutex, NULL);
    e = shca_pipe_make(&x->async_fd, &c->async_wfd, &c->async);
    if (e == 0 && (e = shca_contexts_add(c)) != 0) {
        close(x->async_fd);
        close(c->async_wfd);
    }
    return e;
}

SHCA_PUBLIC struct ibv_context *ibv_open_device(struct ibv_device *dev)
{
    typedef struct ibv_context *fn(struct ibv_device *);
    struct shca_context *c;
    int e;

    if (!shca_owns_device(dev))
        SHCA_PASS(fn, "ibv_open_device", NULL, dev);
    c = calloc(1, sizeof *c);
    e = c ? context_set_up(c, dev) : ENOMEM;
    if (e == 0)
        return &c->v.context;
    free(c);
    errno = e;
    return NULL;
}

SHCA_PUBLIC int ibv_close_device(struct ibv_context *ctx)
{
    typedef int fn(struct ibv_context *);
    struct shca_context *c;

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_close_device", -1, ctx);
    c = shca_ctx(ctx);
    shca_contexts_remove(c);
    close(ctx->async_fd);
    close(c->async_wfd);
    pthread_mutex_destroy(&ctx->mutex);
    free(c);
    return 0;
}

/* ---- attributes ---- */

static void fill_limits(const struct shca_profile *p, struct ibv_device_attr *a)
{
    a->max_mr_size = p->max_mr_size;
    a->page_size_cap = p->page_size_cap;
    a->max_qp = (int)p->max_qp;
    a->max_qp_wr = (int)p->max_qp_wr;
    a->max_sge = (int)p->max_sge;
    a->max_sge_rd = (int)p->max_sge_rd;
    a->max_cq = (int)p->max_cq;
    a->max_cqe = (int)p->max_cqe;
    a->max_mr = (int)p->max_mr;
    a->max_pd = (int)p->max_pd;
    a->max_ah = (int)p->max_ah;
    a->max_srq = (int)p->max_srq;
    a->max_srq_wr = (int)p->max_srq_wr;
    a->max_srq_sge = (int)p->max_srq_sge;
    a->max_mcast_grp = (int)p->max_mcast_grp;
    a->max_mcast_qp_attach = (int)p->max_mcast_attach;
    a->max_total_mcast_qp_attach = (int)p->max_mcast_attach;
    a->max_qp_rd_atom = (int)p->max_rd_atom;
    a->max_qp_init_rd_atom = (int)p->max_init_rd_atom;
    a->max_res_rd_atom = (int)p->max_res_rd_atom;
}

static void fill_attr(int hca, struct ibv_device_attr *a)
{
    const struct shca_profile *p = &shca_config.device[hca];

    memset(a, 0, sizeof *a);
    snprintf(a->fw_ver, sizeof a->fw_ver, "%s", p->firmware ? p->firmware : PACKAGE_VERSION);
    a->node_guid = htobe64(shca_guid_of(hca, 0));
    a->sys_image_guid = a->node_guid;
    a->vendor_id = p->vendor_id;
    a->vendor_part_id = p->part_id;
    a->hw_ver = p->hw_ver;
    a->device_cap_flags = p->cap_flags;
    a->atomic_cap = (enum ibv_atomic_cap)p->atomic_cap;
    a->max_pkeys = (uint16_t)p->pkeys;
    a->local_ca_ack_delay = (uint8_t)p->ack_delay;
    a->phys_port_cnt = (uint8_t)p->ports;
    fill_limits(p, a);
}

SHCA_PUBLIC int ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
    typedef int fn(struct ibv_context *, struct ibv_device_attr *);

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_query_device", ENOSYS, ctx, attr);
    fill_attr(shca_ctx(ctx)->hca, attr);
    return 0;
}

/* Reports what SOFTHCA_ODP, or the profile, allows. On-demand regions have the same limits as those
 * of real devices: an operation that the transport does not support on them completes with an
 * error. */
static void fill_paging(uint32_t odp, struct ibv_device_attr_ex *a)
{
    const uint32_t two_sided = IBV_ODP_SUPPORT_SEND | IBV_ODP_SUPPORT_RECV;
    uint32_t reliable = two_sided | IBV_ODP_SUPPORT_WRITE | IBV_ODP_SUPPORT_READ |
                        IBV_ODP_SUPPORT_SRQ_RECV | (odp == 1 ? IBV_ODP_SUPPORT_ATOMIC : 0);

    if (odp == 0)
        return;
    a->odp_caps.general_caps = IBV_ODP_SUPPORT;
    a->odp_caps.per_transport_caps.ud_odp_caps = two_sided;
    if (odp == 3)
        return;
    a->odp_caps.per_transport_caps.rc_odp_caps = a->xrc_odp_caps = reliable;
    a->odp_caps.per_transport_caps.uc_odp_caps = two_sided | IBV_ODP_SUPPORT_WRITE;
}

int shca_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
                         struct ibv_device_attr_ex *attr, size_t size)
{
    const struct shca_profile *p = shca_profile_of(ctx);
    struct ibv_device_attr_ex full;

    if ((input && input->comp_mask) || size < sizeof attr->orig_attr)
        return EINVAL;
    /* All fields that are not set are 0: no offloads, raw packets, tags, pacing. */
    memset(&full, 0, sizeof full);
    fill_attr(shca_ctx(ctx)->hca, &full.orig_attr);
    full.completion_timestamp_mask = UINT64_MAX;
    full.hca_core_clock = clock_khz;
    full.device_cap_flags_ex = full.orig_attr.device_cap_flags;
    full.max_dm_size = p->dm_bytes;
    full.phys_port_cnt_ex = p->ports;
    fill_paging(p->odp, &full);
    memset(attr, 0, size);
    memcpy(attr, &full, size < sizeof full ? size : sizeof full);
    return 0;
}
