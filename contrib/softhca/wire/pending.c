/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Send queues that wait: for a receiver, an acknowledgement, a wire, the end of a fault. Owns the
 * list of their queue pairs; pending_lock protects it and is taken before any sq_lock (which is
 * only tried under it). */
#include "config.h"

#include "wire/wire.h"

static struct shca_lock pending_lock;
static struct shca_qp *pending_list;

void (*_Atomic shca_far_run)(void);
uint64_t (*_Atomic shca_far_sleep)(void);
int (*_Atomic shca_far_report)(char *out, size_t room);

void shca_pending_add(struct shca_qp *qp)
{
    shca_helper_start();
    shca_lock(&pending_lock);
    if (!qp->pending) {
        qp->pending = true;
        qp->pending_next = pending_list;
        pending_list = qp;
        shca.pending++;
    }
    shca_unlock(&pending_lock);
    shca_helper_wake();
}

static void unlink_at(struct shca_qp **at)
{
    struct shca_qp *qp = *at;

    *at = qp->pending_next;
    qp->pending = false;
    shca.pending--;
}

void shca_pending_remove(struct shca_qp *qp)
{
    shca_lock(&pending_lock);
    for (struct shca_qp **at = &pending_list; *at; at = &(*at)->pending_next)
        if (*at == qp) {
            unlink_at(at);
            break;
        }
    shca_unlock(&pending_lock);
}

/* One stalled queue: true when it no longer waits. */
static bool run_one(struct shca_qp *qp, uint64_t now, uint64_t *next)
{
    bool idle;

    /* The holder of the lock is posting to this queue pair and runs the queue itself. */
    if (!shca_trylock(&qp->sq_lock)) {
        *next = now + 100000;
        return false;
    }
    if (qp->next_try <= now || shca_fault_due(&qp->fault) ||
        (qp->peer && atomic_load(&qp->peer->dead)) || shca_qp_state(qp) == IBV_QPS_ERR)
        shca_sq_run(qp);
    idle = qp->sq_exec == qp->sq_tail;
    if (!idle && qp->waiting != SHCA_WAIT_NEVER && qp->next_try < *next)
        *next = qp->next_try;
    shca_unlock(&qp->sq_lock);
    return idle;
}

uint64_t shca_pending_run(void)
{
    uint64_t now, next = UINT64_MAX, early;
    void (*far)(void) = atomic_load(&shca_far_run);

    if (far)
        far();

    if (!shca_trylock(&pending_lock))
        return 1000000;
    now = tk_now();
    for (struct shca_qp **at = &pending_list; *at;)
        if (run_one(*at, now, &next))
            unlink_at(at);
        else
            at = &(*at)->pending_next;
    shca_unlock(&pending_lock);
    early = shca_early_run(now);
    next = early < next ? early : next;
    if (next == UINT64_MAX)
        return next;
    now = tk_now();
    return next > now ? next - now : 0;
}

void shca_pending_inherited(void)
{
    pending_list = NULL;
    atomic_store(&pending_lock.word, 0);
}
