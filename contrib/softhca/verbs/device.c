/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The device list: the host's own devices first, then softhca0, softhca1, ... Owns the device
 * objects, which live as long as the process and are made once, under pthread_once. */
#include "config.h"

#include <endian.h>
#include <stdio.h>
#include <stdlib.h>

#include "verbs/verbs.h"

/* ibv_get_device_list returns the array behind this header. */
struct list {
    struct ibv_device **real;
    struct ibv_device *devices[];
};

/* Directories that do not exist: tools that look for extras in sysfs find none. */
#define NOWHERE "/nonexistent/softhca"

static struct shca_device devices[SHCA_MAX_HCA];

/* Drivers number their devices: how many before this one have its stem. */
static int number_of_stem(int hca)
{
    int n = 0;

    for (int i = 0; i < hca; i++)
        n += strcmp(shca_config.device[i].stem, shca_config.device[hca].stem) == 0;
    return n;
}

static void make_devices(void)
{
    for (int i = 0; i < shca_config.hcas; i++) {
        struct ibv_device *d = &devices[i].dev;
        const struct shca_profile *p = &shca_config.device[i];

        devices[i].number = i;
        d->node_type = (enum ibv_node_type)p->node_type;
        d->transport_type = (enum ibv_transport_type)p->transport;
        if (p->device)
            snprintf(d->name, sizeof d->name, "%s", p->device);
        else
            snprintf(d->name, sizeof d->name, "%s%d", p->stem, number_of_stem(i));
        snprintf(d->dev_name, sizeof d->dev_name, "softhca-uverbs%d", i);
        snprintf(d->dev_path, sizeof d->dev_path, NOWHERE "-uverbs%d", i);
        snprintf(d->ibdev_path, sizeof d->ibdev_path, NOWHERE "%d", i);
    }
}

bool shca_owns_device(const struct ibv_device *dev)
{
    uintptr_t at = (uintptr_t)dev, first = (uintptr_t)devices;

    return at >= first && at < first + sizeof devices;
}

static struct ibv_device **real_list(int *n)
{
    struct ibv_device **(*real)(int *) = NULL;
    struct ibv_device **list;

    *n = 0;
    if (!shca_config.only)
        real = (struct ibv_device * *(*)(int *)) shca_real("ibv_get_device_list");
    if (!real)
        return NULL;
    list = real(n);
    /* A host without the RDMA modules returns ENOSYS: no devices of its own. */
    if (!list)
        *n = 0;
    return list;
}

/* Preloaded and replacement library can both be loaded; the other one's HCAs are then in the real
 * library's list. */
static bool is_softhca(const struct ibv_device *d)
{
    return strncmp(d->dev_path, NOWHERE, sizeof NOWHERE - 1) == 0;
}

static int take_real(struct list *l, struct ibv_device **real, int n)
{
    int taken = 0;

    for (int i = 0; i < n; i++)
        if (!is_softhca(real[i]))
            l->devices[taken++] = real[i];
    return taken;
}

SHCA_PUBLIC struct ibv_device **ibv_get_device_list(int *num)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct list *l;
    struct ibv_device **real;
    int n, e = shca_config_load();

    if (e != 0) {
        errno = e;
        return NULL;
    }
    pthread_once(&once, make_devices);
    real = real_list(&n);
    l = calloc(1, sizeof *l + (size_t)(n + shca_config.hcas + 1) * sizeof l->devices[0]);
    if (!l) {
        errno = ENOMEM;
        return NULL;
    }
    l->real = real;
    n = take_real(l, real, n);
    for (int i = 0; i < shca_config.hcas; i++)
        l->devices[n + i] = &devices[i].dev;
    if (num)
        *num = n + shca_config.hcas;
    return l->devices;
}

SHCA_PUBLIC void ibv_free_device_list(struct ibv_device **list)
{
    struct list *l = shca_container(list, struct list, devices);
    void (*real)(struct ibv_device **) =
        (void (*)(struct ibv_device **))shca_real("ibv_free_device_list");

    if (l->real && real)
        real(l->real);
    free(l);
}

SHCA_PUBLIC const char *ibv_get_device_name(struct ibv_device *dev)
{
    return dev->name;
}

SHCA_PUBLIC __be64 ibv_get_device_guid(struct ibv_device *dev)
{
    typedef __be64 fn(struct ibv_device *);

    if (shca_owns_device(dev))
        return htobe64(shca_guid_of(((struct shca_device *)dev)->number, 0));
    SHCA_PASS(fn, "ibv_get_device_guid", 0, dev);
}

SHCA_PUBLIC int ibv_get_device_index(struct ibv_device *dev)
{
    typedef int fn(struct ibv_device *);

    if (shca_owns_device(dev))
        return -1; /* no netlink device behind it */
    SHCA_PASS(fn, "ibv_get_device_index", -1, dev);
}
