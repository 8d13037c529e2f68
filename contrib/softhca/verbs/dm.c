/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Device memory: a small amount of HCA memory that programs copy to and from and register. Each
 * piece is a memfd, so peers access it like any shared memory. Owns the pieces; the amount that
 * this process has allocated on each HCA is an atomic number. */
#include "config.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs/verbs.h"

struct shca_dm {
    struct ibv_dm dm;
    char *base;
    size_t length, mapped;
    int fd;
    _Atomic int users; /* regions */
};

static _Atomic size_t taken[SHCA_MAX_HCA];

/* Memory behind a bus is copied by words; real devices are less strict. */
enum { dm_word = 4 };

static bool inside(const struct shca_dm *d, uint64_t offset, size_t length)
{
    return offset <= d->length && length <= d->length - offset;
}

static bool copyable(const struct shca_dm *d, uint64_t offset, size_t length)
{
    return inside(d, offset, length) && offset % dm_word == 0 && length % dm_word == 0;
}

static int memcpy_to_dm(struct ibv_dm *dm, uint64_t offset, const void *from, size_t length)
{
    struct shca_dm *d = shca_container(dm, struct shca_dm, dm);

    if (!copyable(d, offset, length))
        return EFAULT;
    memcpy(d->base + offset, from, length);
    return 0;
}

static int memcpy_from_dm(void *to, struct ibv_dm *dm, uint64_t offset, size_t length)
{
    struct shca_dm *d = shca_container(dm, struct shca_dm, dm);

    if (!copyable(d, offset, length))
        return EFAULT;
    memcpy(to, d->base + offset, length);
    return 0;
}

static bool dm_take(int hca, size_t bytes)
{
    size_t before = atomic_load(&taken[hca]);

    do {
        if (before + bytes > shca_config.device[hca].dm_bytes)
            return false;
    } while (!atomic_compare_exchange_weak(&taken[hca], &before, before + bytes));
    return true;
}

static int map(struct shca_dm *d)
{
    int e = 0;

    d->fd = memfd_create("softhca-dm", MFD_CLOEXEC);
    if (d->fd < 0)
        return errno;
    if (ftruncate(d->fd, (off_t)d->mapped) == 0)
        d->base = mmap(NULL, d->mapped, PROT_READ | PROT_WRITE, MAP_SHARED, d->fd, 0);
    if (d->base == NULL || d->base == MAP_FAILED) {
        e = errno;
        close(d->fd);
    }
    return e;
}

static int dm_check(const struct ibv_alloc_dm_attr *a)
{
    long page = sysconf(_SC_PAGESIZE);

    if (a->comp_mask)
        return EOPNOTSUPP;
    /* Pieces begin on a page; no larger alignment is offered. */
    if (a->length == 0 || a->log_align_req > 31 || (1L << a->log_align_req) > page)
        return EINVAL;
    return a->length > SHCA_DM_BYTES ? ENOMEM : 0;
}

struct ibv_dm *shca_alloc_dm(struct ibv_context *ctx, struct ibv_alloc_dm_attr *attr)
{
    /* Allowed after fork() too: it is memory of this process only. */
    int hca = shca_ctx(ctx)->hca, e = shca_is_fatal(ctx) ? EIO : 0;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct shca_dm *d = NULL;

    if (e == 0)
        e = dm_check(attr);
    if (e == 0 && !(d = calloc(1, sizeof *d)))
        e = ENOMEM;
    if (e == 0) {
        d->length = attr->length;
        d->mapped = (attr->length + page - 1) & ~(page - 1);
        e = dm_take(hca, d->mapped) ? 0 : ENOMEM;
        if (e == 0 && (e = map(d)) != 0)
            atomic_fetch_sub(&taken[hca], d->mapped);
    }
    if (e != 0) {
        free(d);
        errno = e;
        return NULL;
    }
    d->dm.context = ctx;
    d->dm.memcpy_to_dm = memcpy_to_dm;
    d->dm.memcpy_from_dm = memcpy_from_dm;
    return &d->dm;
}

int shca_free_dm(struct ibv_dm *dm)
{
    struct shca_dm *d = shca_container(dm, struct shca_dm, dm);

    if (atomic_load(&d->users) > 0)
        return EBUSY;
    munmap(d->base, d->mapped);
    close(d->fd);
    atomic_fetch_sub(&taken[shca_ctx(dm->context)->hca], d->mapped);
    free(d);
    return 0;
}

struct ibv_mr *shca_reg_dm_mr(struct ibv_pd *pd, struct ibv_dm *dm, uint64_t offset, size_t length,
                              unsigned access)
{
    struct shca_dm *d = shca_container(dm, struct shca_dm, dm);
    struct ibv_mr *mr;

    /* Device memory has no address in the program: remote addresses count from the start of the
     * region. */
    if (!(access & IBV_ACCESS_ZERO_BASED) || dm->context != pd->context ||
        !inside(d, offset, length)) {
        errno = EINVAL;
        return NULL;
    }
    mr = shca_mr_register(pd, d->base + offset, length, 0, access);
    if (mr) {
        shca_container(mr, struct shca_mr, mr)->dm_users = &d->users;
        d->users++;
    }
    return mr;
}
