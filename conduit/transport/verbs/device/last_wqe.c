/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Does a device report the end of a queue pair that receives through a shared queue? The
 * specification requires IBV_EVENT_QP_LAST_WQE_REACHED (IBA o11-5.2.5), but Soft-RoCE has it
 * only since Linux 6.6; so this file tries it, with a queue pair that is connected to itself. No
 * state. */
#include "config.h"

#include <fcntl.h>
#include <poll.h>

#include "common/clock.h"
#include "transport/verbs/device/device.h"
#include "transport/verbs/device/qp_state.h"
#include "transport/verbs/library.h"
#include "transport/verbs/verbs_state.h"

/* The objects of a trial; NULL: could not be made. */
struct trial {
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_srq *srq;
    struct ibv_qp *qp;
};

static void make(struct trial *t, struct ibv_context *context)
{
    struct ibv_srq_init_attr srq = {.attr = {.max_wr = 1, .max_sge = 1}};
    t->pd = ibv_alloc_pd(context);
    t->cq = ibv_create_cq(context, 2, NULL, NULL, 0);
    t->srq = t->pd ? ibv_create_srq(t->pd, &srq) : NULL;
    if (!t->srq || !t->cq)
        return;
    struct ibv_qp_init_attr attr = {.send_cq = t->cq,
                                    .recv_cq = t->cq,
                                    .srq = t->srq,
                                    .qp_type = IBV_QPT_RC,
                                    .cap = {.max_send_wr = 1, .max_send_sge = 1}};
    t->qp = ibv_create_qp(t->pd, &attr);
}

static void drop(const struct trial *t)
{
    if (t->qp)
        ibv_destroy_qp(t->qp);
    if (t->srq)
        ibv_destroy_srq(t->srq);
    if (t->cq)
        ibv_destroy_cq(t->cq);
    if (t->pd)
        ibv_dealloc_pd(t->pd);
}

/* Makes it ready to receive first: otherwise the device may raise no event. */
static bool break_one(struct ibv_qp *qp, const struct tk_rail *rail)
{
    struct tk_path path;
    struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
    const struct tk_route route = {
        .rail = rail, .path = &path, .type = IBV_QPT_RC, .to_qp = qp->qp_num};
    return tk_path_find(&path, &rail->address, &rail->address, true) &&
           tk_qp_init(qp, rail, IBV_QPT_RC, 0) == 0 && tk_qp_rtr(qp, &route) == 0 &&
           ibv_modify_qp(qp, &attr, IBV_QP_STATE) == 0;
}

static bool is_its_event(struct ibv_context *context, const struct ibv_qp *qp)
{
    struct ibv_async_event event;
    if (ibv_get_async_event(context, &event) != 0)
        return false;
    bool is_it = event.event_type == IBV_EVENT_QP_LAST_WQE_REACHED && event.element.qp == qp;
    ibv_ack_async_event(&event);
    return is_it;
}

/* Waits a moment: the kernel raises the event at once, but from another thread. */
static bool await_event(struct ibv_context *context, const struct ibv_qp *qp)
{
    uint64_t end = tk_now() + 3 * TK_SECOND;
    struct pollfd fd = {.fd = context->async_fd, .events = POLLIN};
    int flags = fcntl(fd.fd, F_GETFL);
    if (flags != -1)
        fcntl(fd.fd, F_SETFL, flags | O_NONBLOCK);
    while (tk_now() < end) {
        if (is_its_event(context, qp))
            return true;
        poll(&fd, 1, 10);
    }
    return false;
}

static bool comes_from(const struct tk_rail *rail)
{
    struct trial trial = {.pd = NULL};
    make(&trial, rail->context);
    bool comes = trial.qp && break_one(trial.qp, rail) && await_event(rail->context, trial.qp);
    drop(&trial);
    return comes;
}

/* Rails of one device have the same context. */
static bool is_first_of_device(uint32_t rail)
{
    for (uint32_t i = 0; i < rail; i++)
        if (tk_verbs.rails[i].context == tk_verbs.rails[rail].context)
            return false;
    return true;
}

bool tk_last_wqe_comes(void)
{
    for (uint32_t i = 0; i < tk_verbs.rail_count; i++)
        if (is_first_of_device(i) && !comes_from(&tk_verbs.rails[i]))
            return false;
    return true;
}
