/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Extended completion queues: ibv_create_cq_ex, and polling one completion at a time. Owns the
 * cursor of such a CQ, which holds the current completion; cursor->lock is held from ibv_start_poll
 * to ibv_end_poll, unless the program promised to use one thread. It is not the lock of the CQ: the
 * program may post between the two, and what it posts completes into this CQ. */
#include "config.h"

#include <stdlib.h>
#include <time.h>

#include "verbs/verbs.h"

#define WANTED_TIME                                                                                \
    (IBV_WC_EX_WITH_COMPLETION_TIMESTAMP | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK)
/* Maximum age of the measured difference between the two clocks: corrections of the wall clock are
 * at most 500 ppm, half a millisecond in this time. */
static const uint64_t clocks_ns = UINT64_C(1000000000);

static inline struct shca_cursor *cursor_of(struct ibv_cq_ex *ex)
{
    return shca_container(ex, struct shca_cq, ex)->cursor;
}

/* ---- polling ---- */

static int next_poll(struct ibv_cq_ex *ex)
{
    struct shca_cq *cq = shca_container(ex, struct shca_cq, ex);
    struct shca_cursor *c = cq->cursor;

    if (!shca_poll_one(cq, &c->wc, &c->stamp))
        return ENOENT;
    ex->status = c->wc.status;
    ex->wr_id = c->wc.wr_id;
    return 0;
}

static void end_poll(struct ibv_cq_ex *ex)
{
    struct shca_cursor *c = cursor_of(ex);

    if (!c->one_thread)
        shca_unlock(&c->lock);
}

static int start_poll(struct ibv_cq_ex *ex, struct ibv_poll_cq_attr *attr)
{
    struct shca_cursor *c = cursor_of(ex);
    int e;

    if (attr->comp_mask || shca_ctx(ex->context)->inherited)
        return EINVAL;
    if (shca_poll_idle(shca_container(ex, struct shca_cq, ex)))
        return ENOENT;
    if (!c->one_thread)
        shca_lock(&c->lock);
    e = next_poll(ex);
    if (e != 0)
        end_poll(ex);
    return e;
}

/* ---- fields ---- */

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ex)
{
    return cursor_of(ex)->wc.opcode;
}

static uint32_t read_vendor_err(struct ibv_cq_ex *ex)
{
    return cursor_of(ex)->wc.vendor_err;
}

static uint32_t read_byte_len(struct ibv_cq_ex *ex)
{
    return cursor_of(ex)->wc.byte_len;
}

static __be32 read_imm_data(struct ibv_cq_ex *ex)
{
    return cursor_of(ex)->wc.imm_data;
}

static uint32_t read_qp_num(struct ibv_cq_ex *ex)
{
    return cursor_of(ex)->wc.qp_num;
}

static uint32_t read_src_qp(struct ibv_cq_ex *ex)
{
    return cursor_of(ex)->wc.src_qp;
}

static unsigned read_wc_flags(struct ibv_cq_ex *ex)
{
    return cursor_of(ex)->wc.wc_flags;
}

static uint32_t read_slid(struct ibv_cq_ex *ex)
{
    return cursor_of(ex)->wc.slid;
}

static uint8_t read_sl(struct ibv_cq_ex *ex)
{
    return cursor_of(ex)->wc.sl;
}

static uint8_t read_dlid_path_bits(struct ibv_cq_ex *ex)
{
    return cursor_of(ex)->wc.dlid_path_bits;
}

static uint64_t read_completion_ts(struct ibv_cq_ex *ex)
{
    return cursor_of(ex)->stamp;
}

/* A preemption between the two readings would be an error of milliseconds: use the shortest of
 * several pairs. */
static uint64_t compare_clocks(void)
{
    uint64_t shortest = UINT64_MAX, difference = 0;

    for (int i = 0; i < 4; i++) {
        uint64_t before = tk_now(), took;
        struct timespec t;

        clock_gettime(CLOCK_REALTIME, &t);
        took = tk_now() - before;
        if (took < shortest) {
            shortest = took;
            difference = (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec - before;
        }
    }
    return difference;
}

static uint64_t read_completion_wallclock_ns(struct ibv_cq_ex *ex)
{
    struct shca_cursor *c = cursor_of(ex);

    if (c->compared_at == 0 || c->stamp - c->compared_at > clocks_ns) {
        c->to_wall = compare_clocks();
        c->compared_at = c->stamp;
    }
    return c->stamp + c->to_wall;
}

/* As with real drivers, only the fields requested at creation can be read: a program that forgets
 * to request one fails here as it would there. */
static void fill_readers(struct ibv_cq_ex *ex, uint64_t wanted)
{
#define READER(flag, name) ex->name = wanted & (flag) ? name : NULL
    ex->start_poll = start_poll;
    ex->next_poll = next_poll;
    ex->end_poll = end_poll;
    ex->read_opcode = read_opcode;
    ex->read_vendor_err = read_vendor_err;
    ex->read_wc_flags = read_wc_flags;
    READER(IBV_WC_EX_WITH_BYTE_LEN, read_byte_len);
    READER(IBV_WC_EX_WITH_IMM, read_imm_data);
    READER(IBV_WC_EX_WITH_QP_NUM, read_qp_num);
    READER(IBV_WC_EX_WITH_SRC_QP, read_src_qp);
    READER(IBV_WC_EX_WITH_SLID, read_slid);
    READER(IBV_WC_EX_WITH_SL, read_sl);
    READER(IBV_WC_EX_WITH_DLID_PATH_BITS, read_dlid_path_bits);
    READER(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP, read_completion_ts);
    READER(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK, read_completion_wallclock_ns);
#undef READER
}

/* ---- creation ---- */

static int cq_ex_check(struct ibv_context *ctx, const struct ibv_cq_init_attr_ex *a)
{
    const uint64_t fields = IBV_WC_STANDARD_FLAGS | WANTED_TIME;

    if ((a->wc_flags & ~fields) ||
        (a->comp_mask & ~(uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)))
        return EOPNOTSUPP;
    /* A CQ that ignores overruns is not offered. */
    if ((a->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) &&
        (a->flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED))
        return EOPNOTSUPP;
    if (!(a->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD))
        return 0;
    /* By contract of the verb this is a parent domain, not an ordinary PD. */
    if (!a->parent_domain || a->parent_domain->context != ctx ||
        !shca_container(a->parent_domain, struct shca_pd, pd)->base)
        return EINVAL;
    return 0;
}

static struct shca_cursor *make_cursor(const struct ibv_cq_init_attr_ex *a)
{
    struct shca_cursor *c = calloc(1, sizeof *c);

    if (!c)
        return NULL;
    if (a->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS)
        c->one_thread = a->flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
    if (a->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) {
        c->domain = shca_container(a->parent_domain, struct shca_pd, pd);
        c->domain->users++;
        c->one_thread = c->one_thread || c->domain->td;
    }
    return c;
}

struct ibv_cq_ex *shca_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *init)
{
    int e = cq_ex_check(ctx, init);
    struct shca_cursor *cursor = e == 0 ? make_cursor(init) : NULL;
    struct shca_cq *cq;
    struct ibv_cq *ibcq;

    if (!cursor) {
        errno = e ? e : ENOMEM;
        return NULL;
    }
    ibcq = shca_cq_make(ctx, init->cqe, init->cq_context, init->channel, init->comp_vector,
                        init->wc_flags & WANTED_TIME);
    if (!ibcq) {
        shca_cursor_free(cursor);
        return NULL;
    }
    cq = shca_container(ibcq, struct shca_cq, cq);
    cq->cursor = cursor;
    fill_readers(&cq->ex, init->wc_flags);
    return &cq->ex;
}
