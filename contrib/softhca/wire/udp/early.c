/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Data that is acknowledged before it is in memory (the fault "early"), as by an HCA whose writes
 * are still on their way through the host: the receiver is responsible, so the rule acts in the
 * process that owns the memory. A later request at the same HCA other than a plain write finds all
 * data in place; a request through another HCA overtakes the data. Owns the list of such writes;
 * early_lock protects it and is taken before responder locks. */
#include "config.h"

#include <stdlib.h>
#include <unistd.h>

#include "wire/udp/udp.h"

struct early {
    struct early *next;
    struct shca_qp_sh *sh;
    uint32_t qpn;
    int hca;
    struct roce_reach reach;
    uint64_t due;
    char data[];
};

static struct shca_lock early_lock;
static struct early *first;
static _Atomic uint32_t count;

/* If the queue pair or the region is gone meanwhile the data is lost. */
static void store(struct early *h)
{
    struct shca_mr_sh *m = NULL;
    uint64_t va;

    shca_rx_lock(shca.seg, h->sh, shca.pid);
    if (h->sh->qpn == h->qpn)
        m = shca_mr_check(shca.seg, h->reach.rkey, h->reach.va, h->reach.length,
                          IBV_ACCESS_REMOTE_WRITE, h->sh->pd, &va);
    if (m)
        shca_copy((void *)(uintptr_t)va, h->data, h->reach.length);
    shca_rx_unlock(h->sh);
    atomic_fetch_sub(&count, 1);
    free(h);
}

static uint64_t store_all(int hca, uint64_t moment)
{
    uint64_t next = ROCE_NEVER;

    if (atomic_load_explicit(&count, memory_order_relaxed) == 0)
        return next;
    shca_lock(&early_lock);
    for (struct early **at = &first; *at;) {
        struct early *h = *at;

        if (hca == h->hca || h->due <= moment) {
            *at = h->next;
            store(h);
        } else {
            next = h->due < next ? h->due : next;
            at = &h->next;
        }
    }
    shca_unlock(&early_lock);
    return next;
}

void shca_udp_early_settle(int hca)
{
    store_all(hca, 0);
}

bool shca_udp_early(struct shca_qp *qp, const struct roce_reach *reach, const void *from)
{
    struct shca_fault_subject subject = shca_udp_subject(qp, SHCA_OP_WRITE);
    struct early *h, **at;
    struct shca_verdict v;
    uint64_t due;

    if (!qp->udp->arrived_silently)
        return false;
    shca_fault_judge(&subject, SHCA_FAULT_BIT(SHCA_FAULT_EARLY), &v);
    h = v.early ? malloc(sizeof *h + reach->length) : NULL;
    if (!h) { /* which does not overtake earlier ones either */
        shca_udp_early_settle(subject.dev);
        return false;
    }
    *h = (struct early){.sh = qp->sh,
                        .qpn = qp->sh->qpn,
                        .hca = subject.dev,
                        .reach = *reach,
                        .due = tk_now() + v.early};
    memcpy(h->data, from, reach->length);
    shca_lock(&early_lock);
    for (at = &first; *at; at = &(*at)->next)
        if ((*at)->hca == h->hca && (*at)->due > h->due)
            h->due = (*at)->due; /* it does not overtake earlier ones */
    *at = h;
    due = h->due;
    atomic_fetch_add(&count, 1);
    shca_unlock(&early_lock); /* another thread may store and free it now */
    shca_udp_due(due);
    return true;
}

uint64_t shca_udp_early_run(uint64_t now)
{
    return store_all(-1, now);
}

void shca_udp_early_inherited(void)
{
    atomic_store(&early_lock.word, 0);
    first = NULL;
    atomic_store(&count, 0);
}

/* Memory may be shared with another process, so acknowledged data must not be lost when this
 * process ends. */
void shca_udp_early_end(void)
{
    if (shca.seg && shca.pid == (uint32_t)getpid())
        store_all(-1, ROCE_NEVER);
}

__attribute__((destructor)) static void udp_early_finish(void)
{
    shca_udp_early_end();
}
