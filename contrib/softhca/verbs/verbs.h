/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The entry points, as far as they call each other, and the call of the library behind us. Owns
 * nothing. */
#ifndef SHCA_VERBS_H
#define SHCA_VERBS_H

#include "support/qp_caps.h"
#include "wire/wire.h"

/* Device memory (dm.c). */
#define SHCA_DM_BYTES (256u << 10) /* of each HCA; ConnectX has as much */

/* Calls the same function of the real library; fails with the given value when there is none. */
#define SHCA_PASS(type, name, fail, ...)                                                           \
    do {                                                                                           \
        type *real_ = (type *)shca_real(name);                                                     \
        if (!real_) {                                                                              \
            errno = ENOSYS;                                                                        \
            return fail;                                                                           \
        }                                                                                          \
        return real_(__VA_ARGS__);                                                                 \
    } while (0)

void *shca_real(const char *symbol); /* the library behind us; NULL when there is none */

/* ---- channel.c ---- */
int shca_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/* For an object that is being destroyed and gets no more events: drops its unread ones. */
void shca_events_end_cq(struct shca_cq *cq);
void shca_events_end_srq(struct shca_srq *srq);
void shca_events_end_qp(struct shca_qp *qp);

/* ---- context.c ---- */
int shca_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
                         struct ibv_device_attr_ex *attr, size_t size);

/* ---- cq.c ---- */
/* Polls of this queue store data that completions carry. */
void shca_cq_hold(struct shca_cq *cq);
/* Makes a CQ; NULL with errno. With stamps its completions carry time stamps. */
struct ibv_cq *shca_cq_make(struct ibv_context *ctx, uint32_t cqe, void *cq_context,
                            struct ibv_comp_channel *ch, uint32_t vector, bool stamps);
void shca_cursor_free(struct shca_cursor *c);

/* ---- cq_ex.c ---- */
struct ibv_cq_ex *shca_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *init);

/* ---- device.c ---- */
bool shca_owns_device(const struct ibv_device *dev);

/* ---- dm.c ---- */
struct ibv_dm *shca_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr);
int shca_free_dm(struct ibv_dm *dm);
struct ibv_mr *shca_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
                              unsigned access);

/* ---- domain.c ---- */
struct ibv_td *shca_alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *init);
int shca_dealloc_td(struct ibv_td *td);
struct ibv_pd *shca_alloc_parent_domain(struct ibv_context *ctx,
                                        struct ibv_parent_domain_init_attr *attr);
/* Memory for a queue, from the allocator of the parent domain if it has one (*programs). */
void *shca_queue_alloc(struct ibv_pd *pd, size_t bytes, bool *programs);
void shca_queue_free(struct ibv_pd *pd, void *p, bool programs);
/* Releases the PD and thread domain of a parent domain. */
void shca_leave_base(struct shca_pd *pd);

/* ---- modify.c ---- */
/* ibv_modify_qp for what stands in for the kernel: it may connect a queue pair of iWARP too. */
int shca_modify_qp(struct shca_qp *qp, struct ibv_qp_attr *attr, int mask);
void shca_qp_reset(struct shca_qp *qp);

/* ---- mr.c ---- */
/* Registers memory of this process; NULL with errno. */
struct ibv_mr *shca_mr_register(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned access);
/* dmabuf.c. The same for memory of an accelerator with peer memory; EFAULT: it is no such memory,
 * ENOMEM: the BAR is full.
 */
struct ibv_mr *shca_mr_register_peer(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                     unsigned access);
int shca_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                   struct ibv_sge *sge, uint32_t n);

/* ---- poll.c ---- */
int shca_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
/* An empty poll: true when nothing is there. */
bool shca_poll_idle(struct shca_cq *cq);
/* Takes one completion and its time; false: no completion. */
bool shca_poll_one(struct shca_cq *cq, struct ibv_wc *wc, uint64_t *stamp);

/* ---- port.c ---- */
int shca_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, size_t len);

/* ---- process.c ---- */
/* Joins the fabric: claims a member slot, creates the segment. 0 or errno; idempotent. */
int shca_join(void);

/* ---- qp.c ---- */
/* Makes a queue pair of a PD or, for an XRC target, of a domain; the other is NULL. */
struct ibv_qp *shca_create_qp(struct ibv_context *ctx, struct ibv_pd *pd, struct ibv_xrcd *xrcd,
                              struct ibv_qp_init_attr *init);

/* ---- qp_ex.c ---- */
/* Extended creation and posting (qp_ex.c, wr.c). */
struct ibv_qp *shca_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *init);

/* ---- qp_manners.c ---- */
/* The opcodes that may be posted, a bit each. */
uint32_t shca_offered(const struct shca_profile *p, enum ibv_qp_type type);
uint32_t shca_qp_manners(const struct shca_profile *p); /* enum shca_manner */
void shca_qp_behave(struct shca_qp *qp, const struct shca_profile *p);
int shca_qp_hold_open(struct shca_qp *qp);
/* Of iWARP: the end that was connected to sends nothing before it has received something. */
void shca_qp_hear_first(struct shca_qp *qp);
bool shca_qp_speaks_early(struct shca_qp *qp);

/* ---- recv.c ---- */
int shca_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

/* ---- send.c ---- */
int shca_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/* The destination of a datagram; EINVAL for an address handle of another protection domain. */
int shca_address_ud(const struct shca_qp *qp, const struct ibv_ah *ah, uint32_t qpn, uint32_t qkey,
                    struct shca_op *op);

/* ---- srq.c ---- */
int shca_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
struct ibv_srq *shca_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *init);
int shca_get_srq_num(struct ibv_srq *srq, uint32_t *number);
/* Whether queue pairs of this context may receive from it. */
bool shca_srq_fits(const struct ibv_srq *srq, const struct ibv_context *ctx);

/* ---- wr.c ---- */
void shca_wr_fill(struct ibv_qp_ex *ex);

/* ---- xrc.c ---- */
struct ibv_qp *shca_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *a);

/* ---- xrcd.c ---- */
struct ibv_xrcd *shca_open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *a);
int shca_close_xrcd(struct ibv_xrcd *xrcd);
void shca_xrcds_inherited(void);

static inline bool shca_owns(const struct ibv_context *ctx)
{
    return shca_owns_device(ctx->device);
}

#endif
