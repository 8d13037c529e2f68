/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A broken HCA: its queue pairs go to ERR, its contexts get the event. Owns shca.fatal, which is
 * atomic. */
#include "config.h"

#include "wire/wire.h"

static void break_qp(struct shca_qp *qp)
{
    shca_lock(&qp->sq_lock);
    if (shca_qp_state(qp) != IBV_QPS_RESET)
        shca_qp_error(qp);
    shca_unlock(&qp->sq_lock);
}

void shca_fatal(int hca)
{
    uint32_t bit = 1u << hca;

    pthread_mutex_lock(&shca.lock);
    /* The bit comes first: a post that sees the queue pair in ERR also sees why. */
    if (atomic_fetch_or(&shca.fatal, bit) & bit) {
        pthread_mutex_unlock(&shca.lock);
        return;
    }
    for (uint32_t i = 0; i < shca.qp_high; i++)
        if (shca.qps[i] && shca_ctx(shca.qps[i]->qp.context)->hca == hca)
            break_qp(shca.qps[i]);
    pthread_mutex_unlock(&shca.lock);
    shca_contexts_notify(hca, IBV_EVENT_DEVICE_FATAL, 0);
}
