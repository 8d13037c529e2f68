/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The contexts behind identifiers: one for each HCA, opened on first use and kept, with the
 * protection domain that queue pairs get when the program names none. Owns them; device_lock
 * protects them. */
#include "config.h"

#include <stdlib.h>

#include "rdmacm/rdmacm.h"

static pthread_mutex_t device_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ibv_context *contexts[SHCA_MAX_HCA];
static struct ibv_pd *pds[SHCA_MAX_HCA];

static struct ibv_context *open_hca(int hca)
{
    struct ibv_device **list = ibv_get_device_list(NULL);
    struct ibv_context *ctx = NULL;

    for (int i = 0; list && list[i]; i++)
        if (shca_owns_device(list[i]) &&
            shca_container(list[i], struct shca_device, dev)->number == hca)
            ctx = ibv_open_device(list[i]);
    if (list)
        ibv_free_device_list(list);
    return ctx;
}

static struct ibv_context *context_of(int hca)
{
    if (!contexts[hca])
        contexts[hca] = open_hca(hca);
    return contexts[hca];
}

struct ibv_context *shca_cm_device_context(uint32_t port)
{
    struct ibv_context *ctx;

    pthread_mutex_lock(&device_lock);
    ctx = context_of((int)(port - 1) / shca_config.ports);
    pthread_mutex_unlock(&device_lock);
    return ctx;
}

struct ibv_pd *shca_cm_device_pd(uint32_t port)
{
    int hca = (int)(port - 1) / shca_config.ports;
    struct ibv_pd *pd;

    pthread_mutex_lock(&device_lock);
    if (!pds[hca] && context_of(hca))
        pds[hca] = ibv_alloc_pd(contexts[hca]);
    pd = pds[hca];
    pthread_mutex_unlock(&device_lock);
    return pd;
}

void shca_cm_device_inherited(void)
{
    pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;

    device_lock = fresh;
    memset(contexts, 0, sizeof contexts);
    memset(pds, 0, sizeof pds);
}

SHCA_PUBLIC struct ibv_context **rdma_get_devices(int *num)
{
    SHCA_CM_INSIDE(rdma_get_devices, num);
    struct ibv_context **list;
    int n = 0, e = shca_config_load();

    list = e == 0 ? calloc((size_t)shca_config.hcas + 1, sizeof *list) : NULL;
    pthread_mutex_lock(&device_lock);
    for (int hca = 0; list && hca < shca_config.hcas; hca++)
        if ((list[n] = context_of(hca)))
            n++;
    pthread_mutex_unlock(&device_lock);
    if (list && n == 0) {
        free(list);
        list = NULL;
        e = ENODEV;
    }
    if (!list)
        errno = e ? e : ENOMEM;
    if (num)
        *num = n;
    return list;
}

SHCA_PUBLIC void rdma_free_devices(struct ibv_context **list)
{
    SHCA_CM_INSIDE_VOID(rdma_free_devices, list);
    free(list);
}
