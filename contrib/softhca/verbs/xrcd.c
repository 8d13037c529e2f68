/* SPDX-License-Identifier: BSD-3-Clause
 *
 * XRC domains. A domain is a number: derived from the HCA and the inode of the program's
 * descriptor, so that processes that open the same file get the same domain, or private to this
 * process when there is no descriptor. A process that has a domain open registers its name (O_CREAT
 * and O_EXCL look for it), and the kernel drops the name when the process ends. Owns the handles;
 * the list of them (for fork) is protected by xrcd_lock. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fault/fault.h"
#include "verbs/verbs.h"

static pthread_mutex_t xrcd_lock = PTHREAD_MUTEX_INITIALIZER;
static struct shca_xrcd *xrcd_list;

/* Mixes (splitmix64): equal numbers for equal parts, and collisions only in theory. */
static uint64_t mix(uint64_t h, uint64_t part)
{
    h = (h ^ part) + UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ (h >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ (h >> 27)) * UINT64_C(0x94d049bb133111eb);
    return h ^ (h >> 31);
}

static uint64_t private_domain(void)
{
    static _Atomic uint64_t made;

    return mix(mix(mix(1, shca.slot), shca.pid), atomic_fetch_add(&made, 1)) | 1;
}

static uint64_t file_domain(const struct shca_context *c, const struct stat *st)
{
    return mix(mix(mix(2, (uint64_t)c->hca), st->st_dev), st->st_ino) | 1;
}

/* Who opens or creates, as every rank of a job does, need not know whether it exists: that reads
 * the names of all sockets of the host. */
static int open_file_domain(struct shca_xrcd *x, const struct ibv_xrcd_init_attr *a)
{
    struct stat st;
    char word[24];
    int guard, e;
    bool exists;

    if (fstat(a->fd, &st) != 0)
        return EBADF;
    x->domain = file_domain(shca_ctx(x->xrcd.context), &st);
    snprintf(word, sizeof word, "x%016llx", (unsigned long long)x->domain);
    if ((a->oflags & (O_CREAT | O_EXCL)) == O_CREAT)
        return shca_registry_hold(word, &x->fd);
    e = shca_registry_guard(word, &guard);
    if (e != 0)
        return e;
    exists = shca_registry_held(word);
    if (!exists && !(a->oflags & O_CREAT))
        e = EAGAIN;
    else if (exists && (a->oflags & O_EXCL))
        e = EINVAL;
    else
        e = shca_registry_hold(word, &x->fd);
    close(guard);
    return e;
}

static void enlist(struct shca_xrcd *x)
{
    pthread_mutex_lock(&xrcd_lock);
    x->next = xrcd_list;
    xrcd_list = x;
    pthread_mutex_unlock(&xrcd_lock);
}

static void delist(struct shca_xrcd *x)
{
    pthread_mutex_lock(&xrcd_lock);
    for (struct shca_xrcd **at = &xrcd_list; *at; at = &(*at)->next)
        if (*at == x) {
            *at = x->next;
            break;
        }
    pthread_mutex_unlock(&xrcd_lock);
}

static int xrcd_check(struct ibv_context *ctx, const struct ibv_xrcd_init_attr *a)
{
    const uint32_t both = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;

    if ((a->comp_mask & ~both) || !(shca_profile_of(ctx)->types >> IBV_QPT_XRC_RECV & 1))
        return EOPNOTSUPP;
    return a->comp_mask == both ? shca_unusable(ctx) : EINVAL;
}

struct ibv_xrcd *shca_open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *a)
{
    struct shca_xrcd *x = NULL;
    int e = xrcd_check(ctx, a);

    if (e == 0 && !(x = shca_handle_alloc(ctx, SHCA_CALL_OPEN_XRCD, sizeof *x)))
        e = ENOMEM;
    if (e == 0) {
        x->xrcd.context = ctx;
        x->fd = -1;
        x->domain = private_domain();
        if (a->fd != -1)
            e = open_file_domain(x, a);
    }
    if (e != 0) {
        free(x);
        errno = e;
        return NULL;
    }
    enlist(x);
    return &x->xrcd;
}

int shca_close_xrcd(struct ibv_xrcd *ibx)
{
    struct shca_xrcd *x = shca_container(ibx, struct shca_xrcd, xrcd);

    if (atomic_load(&x->users) > 0)
        return EBUSY;
    delist(x);
    if (x->fd >= 0)
        close(x->fd);
    free(x);
    return 0;
}

void shca_xrcds_inherited(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    /* An open descriptor would keep the parent's name in the registry after its death. */
    xrcd_lock = fresh;
    for (struct shca_xrcd *x = xrcd_list; x; x = x->next) {
        if (x->fd >= 0)
            close(x->fd);
        x->fd = -1;
        atomic_store(&x->users, 0);
    }
    xrcd_list = NULL;
}
