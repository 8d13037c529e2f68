/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Protection domains and memory regions. Owns this process's part of the region table in the
 * segment; keys are assigned under shca.lock, least recently freed first, so that a stale key is
 * detected for as long as possible. Peers read the entries without a lock: the key is written last
 * and withdrawn first. */
#include "config.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs/verbs.h"

static uint32_t next_index;
static uint8_t generation[SHCA_MRS];

SHCA_PUBLIC struct ibv_pd *ibv_alloc_pd(struct ibv_context *ctx)
{
    typedef struct ibv_pd *fn(struct ibv_context *);
    struct shca_pd *pd;

    if (!shca_owns(ctx))
        SHCA_PASS(fn, "ibv_alloc_pd", NULL, ctx);
    pd = shca.n_pd < shca_profile_of(ctx)->max_pd
             ? shca_handle_alloc(ctx, SHCA_CALL_ALLOC_PD, sizeof *pd)
             : NULL;
    if (!pd || shca_unusable(ctx) != 0) {
        free(pd);
        errno = pd ? shca_unusable(ctx) : ENOMEM;
        return NULL;
    }
    shca.n_pd++;
    pd->pd.context = ctx;
    pthread_mutex_lock(&shca.lock);
    pd->pd.handle = ++shca.next_pd;
    pthread_mutex_unlock(&shca.lock);
    return &pd->pd;
}

SHCA_PUBLIC int ibv_dealloc_pd(struct ibv_pd *ibpd)
{
    typedef int fn(struct ibv_pd *);
    struct shca_pd *pd = shca_container(ibpd, struct shca_pd, pd);

    if (!shca_owns(ibpd->context))
        SHCA_PASS(fn, "ibv_dealloc_pd", ENOSYS, ibpd);
    if (shca_ctx(ibpd->context)->inherited)
        return 0;
    if (atomic_load(&pd->users) > 0)
        return EBUSY;
    if (pd->base)
        shca_leave_base(pd);
    else
        shca.n_pd--;
    free(pd);
    return 0;
}

/* ---- regions ---- */

static bool mr_readable(const char *at)
{
    char byte;
    struct iovec to = {&byte, 1}, from = {(void *)(uintptr_t)at, 1};

    /* A system call reports EFAULT where a load would be SIGSEGV. EPERM and ENOSYS (sandboxes) give
     * no information about the address. */
    return process_vm_readv((pid_t)shca.pid, &to, 1, &from, 1, 0) == 1 || errno != EFAULT;
}

/* Memory that is paged on demand need not exist or have the rights when it is registered: as on
 * hardware, only a transfer checks that. Implicit regions (all memory) are not offered. */
static int mr_check_pages(const char *addr, size_t length, unsigned access)
{
    if (access & IBV_ACCESS_ON_DEMAND)
        return !addr && length == SIZE_MAX ? EINVAL : 0;
    /* Usually these two calls are enough. If one fails, the others find out why. */
    if ((access & IBV_ACCESS_LOCAL_WRITE) && shca_page_written(addr) &&
        shca_page_written(addr + length - 1))
        return 0;
    if (!mr_readable(addr) || !mr_readable(addr + length - 1))
        return EFAULT;
    if ((access & IBV_ACCESS_LOCAL_WRITE) &&
        !(shca_page_writable(addr) && shca_page_writable(addr + length - 1)))
        return EFAULT;
    return 0;
}

static int mr_check(const struct shca_profile *p, const char *addr, size_t length, unsigned access)
{
    const unsigned remote = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    const unsigned known = IBV_ACCESS_LOCAL_WRITE | remote | IBV_ACCESS_REMOTE_READ |
                           IBV_ACCESS_ZERO_BASED | IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE |
                           (p->odp ? IBV_ACCESS_ON_DEMAND : 0);

    if (access & ~known)
        return access & (IBV_ACCESS_MW_BIND | IBV_ACCESS_ON_DEMAND) ? EOPNOTSUPP : EINVAL;
    if ((access & remote) && !(access & IBV_ACCESS_LOCAL_WRITE))
        return EINVAL;
    if (length == 0 || length > p->max_mr_size || (uintptr_t)addr + length < (uintptr_t)addr)
        return EINVAL;
    return mr_check_pages(addr, length, access);
}

static int mr_take_index(const struct shca_profile *p, uint32_t *index)
{
    struct shca_mr_sh *t = shca_mr_table(shca.seg);

    if (shca.n_mr >= p->max_mr)
        return ENOMEM;
    for (uint32_t i = 0; i < SHCA_MRS; i++) {
        uint32_t at = (next_index + i) % SHCA_MRS;

        if (at != 0 && t[at].length == 0) {
            next_index = at + 1;
            *index = at;
            return 0;
        }
    }
    return ENOMEM;
}

static void make_key(struct shca_mr *mr)
{
    if (++generation[mr->index] == 0)
        generation[mr->index] = 1;
    mr->mr.lkey = mr->mr.rkey = mr->index << 8 | generation[mr->index];
}

static int32_t descriptor(const struct shca_mr *mr, unsigned access)
{
    if (mr->file)
        return mr->file->fd;
    return (access & IBV_ACCESS_REMOTE_ATOMIC) && shca_file_reachable(mr->mr.addr, mr->mr.length)
               ? SHCA_FD_REACHABLE
               : SHCA_FD_PRIVATE;
}

static void mr_publish(struct shca_mr *mr, uint64_t iova, unsigned access)
{
    struct shca_mr_sh *m = &shca_mr_table(shca.seg)[mr->index];
    uint64_t offset = 0;

    mr->file = shca_file_find(mr->mr.addr, mr->mr.length, &offset);
    m->access = access;
    m->iova = iova;
    m->length = mr->mr.length;
    m->addr = (uintptr_t)mr->mr.addr;
    m->pd = mr->mr.pd->handle;
    m->fd = descriptor(mr, access);
    m->file_offset = offset;
    m->dev = mr->file ? (uint32_t)mr->file->dev : 0;
    m->serial = ++shca.mr_serial;
    m->ino = mr->file ? mr->file->ino : 0;
    atomic_store(&m->key, mr->mr.lkey);
}

struct ibv_mr *shca_mr_register(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                unsigned access)
{
    struct shca_mr *mr = NULL;
    int e = shca_unusable(pd->context);

    if (e == 0)
        e = mr_check(shca_profile_of(pd->context), addr, length, access);
    if (e == 0 && shca_config.pin &&
        (access & (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND)) == IBV_ACCESS_LOCAL_WRITE)
        e = shca_pages_pin((uintptr_t)addr, length);
    if (e == 0 && !(mr = shca_handle_alloc(pd->context, SHCA_CALL_REG_MR, sizeof *mr)))
        e = ENOMEM;
    if (e == 0) {
        mr->mr.context = pd->context;
        mr->mr.pd = pd;
        mr->mr.addr = addr;
        mr->mr.length = length;
        pthread_mutex_lock(&shca.lock);
        e = mr_take_index(shca_profile_of(pd->context), &mr->index);
        if (e == 0) {
            mr->mr.handle = mr->index;
            make_key(mr);
            mr_publish(mr, access & IBV_ACCESS_ZERO_BASED ? 0 : iova, access);
            shca.n_mr++;
        }
        pthread_mutex_unlock(&shca.lock);
    }
    if (e != 0) {
        free(mr);
        errno = e;
        return NULL;
    }
    shca_container(pd, struct shca_pd, pd)->users++;
    if (access & IBV_ACCESS_ON_DEMAND)
        SHCA_COUNT(paged);
    return &mr->mr;
}

/* After the key is withdrawn no new transfer starts; those in progress hold a responder lock
 * (remote ones) or a send queue lock (our own source buffers). Short messages that have arrived and
 * wait for a poll are moved to their buffers now, since the memory may be gone at the time of that
 * poll. */
static void wait_for_transfers(uint32_t key)
{
    for (uint32_t i = 0; i < shca.qp_high; i++) {
        struct shca_qp *qp = shca.qps[i];

        if (!qp)
            continue;
        shca_pid_quiesce(&qp->sh->lock);
        shca_lock(&qp->sq_lock);
        shca_unlock(&qp->sq_lock);
        shca_rq_settle(qp, key);
    }
    /* Messages through XRC targets of other processes hold the lock of the queue instead. */
    for (uint32_t i = 0; i < SHCA_SRQS && shca.n_srq > 0; i++)
        if (shca.srqs[i]) {
            shca_pid_quiesce(&shca.srqs[i]->sh->lock);
            shca_xrc_settle(shca.srqs[i], key);
        }
}

SHCA_PUBLIC int ibv_dereg_mr(struct ibv_mr *ibmr)
{
    typedef int fn(struct ibv_mr *);
    struct shca_mr *mr = shca_container(ibmr, struct shca_mr, mr);
    struct shca_mr_sh *m;

    if (!shca_owns(ibmr->context))
        SHCA_PASS(fn, "ibv_dereg_mr", ENOSYS, ibmr);
    if (shca_ctx(ibmr->context)->inherited)
        return 0;
    m = &shca_mr_table(shca.seg)[mr->index];
    pthread_mutex_lock(&shca.lock);
    atomic_store(&m->key, 0);
    wait_for_transfers(mr->mr.lkey);
    m->length = 0;
    shca_file_put(mr->file);
    shca.n_mr--;
    pthread_mutex_unlock(&shca.lock);
    shca_container(ibmr->pd, struct shca_pd, pd)->users--;
    if (mr->view)
        munmap(mr->view, mr->view_bytes);
    if (mr->dm_users)
        --*mr->dm_users;
    free(mr);
    return 0;
}

/* ---- changing a region ---- */

struct change {
    int flags;
    struct ibv_pd *pd;
    void *addr;
    size_t length;
    unsigned access;
};

/* Stores the resulting region in *c; returns 0 or the errno of what is wrong. */
static int check_change(const struct shca_mr *mr, struct change *c)
{
    const struct shca_mr_sh *m = &shca_mr_table(shca.seg)[mr->index];

    /* The program cannot move memory of a device. */
    if ((mr->dm_users || mr->view) && (c->flags & IBV_REREG_MR_CHANGE_TRANSLATION))
        return EINVAL;
    if (c->flags == 0 || (c->flags & ~IBV_REREG_MR_FLAGS_SUPPORTED))
        return EINVAL;
    if (!(c->flags & IBV_REREG_MR_CHANGE_ACCESS))
        c->access = m->access;
    if (!(c->flags & IBV_REREG_MR_CHANGE_PD))
        c->pd = mr->mr.pd;
    if (!c->pd || c->pd->context != mr->mr.context)
        return EINVAL;
    if (!(c->flags & IBV_REREG_MR_CHANGE_TRANSLATION)) {
        c->addr = mr->mr.addr;
        c->length = mr->mr.length;
    }
    return mr_check(shca_profile_of(mr->mr.context), c->addr, c->length, c->access);
}

static void apply(struct shca_mr *mr, const struct change *c)
{
    struct shca_mr_sh *m = &shca_mr_table(shca.seg)[mr->index];
    bool moves = c->flags & IBV_REREG_MR_CHANGE_TRANSLATION;
    uint64_t iova = m->iova;

    if (moves)
        iova = c->access & IBV_ACCESS_ZERO_BASED ? 0 : (uintptr_t)c->addr;
    atomic_store(&m->key, 0);
    wait_for_transfers(mr->mr.lkey);
    shca_file_put(mr->file);
    shca_container(mr->mr.pd, struct shca_pd, pd)->users--;
    shca_container(c->pd, struct shca_pd, pd)->users++;
    mr->mr.pd = c->pd;
    mr->mr.addr = c->addr;
    mr->mr.length = c->length;
    /* Peers cache where the memory of a key is: that must not outlive a move. */
    if (moves)
        make_key(mr);
    mr_publish(mr, iova, c->access);
}

SHCA_PUBLIC int ibv_rereg_mr(struct ibv_mr *ibmr, int flags, struct ibv_pd *pd, void *addr,
                             size_t length, int access)
{
    typedef int fn(struct ibv_mr *, int, struct ibv_pd *, void *, size_t, int);
    struct shca_mr *mr = shca_container(ibmr, struct shca_mr, mr);
    struct change c = {flags, pd, addr, length, (unsigned)access};
    int e;

    if (!shca_owns(ibmr->context))
        SHCA_PASS(fn, "ibv_rereg_mr", -1, ibmr, flags, pd, addr, length, access);
    e = shca_unusable(ibmr->context);
    if (e == 0)
        e = check_change(mr, &c);
    if (e != 0) {
        errno = e;
        return IBV_REREG_MR_ERR_INPUT;
    }
    pthread_mutex_lock(&shca.lock);
    apply(mr, &c);
    pthread_mutex_unlock(&shca.lock);
    return 0;
}

/* Only memory that is paged on demand needs prefetching, and the check itself faults it in. */
int shca_advise_mr(struct ibv_pd *pd, enum ibv_advise_mr_advice advice, uint32_t flags,
                   struct ibv_sge *sge, uint32_t n)
{
    uint32_t access = advice == IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE ? IBV_ACCESS_LOCAL_WRITE : 0;
    uint64_t va;

    if (advice > IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT ||
        (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH))
        return EOPNOTSUPP;
    for (uint32_t i = 0; i < n; i++)
        if (!shca_mr_check(shca.seg, sge[i].lkey, sge[i].addr, sge[i].length, access, pd->handle,
                           &va))
            return EFAULT;
    return 0;
}
