/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts what the library asks of devices, for growth.c. The functions here precede those of
 * libibverbs, which the library finds by name; ibv_post_send() is an entry in the table of a
 * device, which is replaced when the first queue pair is created. Counters are atomic: any thread
 * may post. */
#include "config.h"

#include "growth.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdbool.h>
#include <stdlib.h>

static unsigned long messages, bytes, datagrams;
static long queue_pairs, connections;
static int (*device_post_send)(struct ibv_qp *, struct ibv_send_wr *, struct ibv_send_wr **);

struct growth_counts growth_counts(void)
{
    return (struct growth_counts){.messages = __atomic_load_n(&messages, __ATOMIC_RELAXED),
                                  .bytes = __atomic_load_n(&bytes, __ATOMIC_RELAXED),
                                  .datagrams = __atomic_load_n(&datagrams, __ATOMIC_RELAXED),
                                  .queue_pairs = __atomic_load_n(&queue_pairs, __ATOMIC_RELAXED),
                                  .connections = __atomic_load_n(&connections, __ATOMIC_RELAXED)};
}

static void *next_of(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    if (!function)
        abort();
    return function;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *first, struct ibv_send_wr **bad)
{
    unsigned long count = 0, size = 0;
    for (const struct ibv_send_wr *wr = first; wr; wr = wr->next, count++)
        for (int i = 0; i < wr->num_sge; i++)
            size += wr->sg_list[i].length;
    if (qp->qp_type == IBV_QPT_UD) {
        __atomic_add_fetch(&datagrams, count, __ATOMIC_RELAXED);
    } else {
        __atomic_add_fetch(&messages, count, __ATOMIC_RELAXED);
        __atomic_add_fetch(&bytes, size, __ATOMIC_RELAXED);
    }
    return device_post_send(qp, first, bad);
}

/* Devices of two drivers would need a table; the bench has one. */
static void count_posts(struct ibv_context *context)
{
    if (context->ops.post_send == post_send)
        return;
    if (device_post_send && device_post_send != context->ops.post_send)
        abort();
    device_post_send = context->ops.post_send;
    context->ops.post_send = post_send;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp *(*next)(struct ibv_pd *, struct ibv_qp_init_attr *) = next_of("ibv_create_qp");
    struct ibv_qp *qp = next(pd, attr);
    __atomic_add_fetch(&queue_pairs, qp != NULL, __ATOMIC_RELAXED);
    if (qp)
        count_posts(qp->context);
    return qp;
}

static bool is_connected(const struct ibv_qp *qp)
{
    return qp->qp_type != IBV_QPT_UD && qp->state >= IBV_QPS_RTR;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    int (*next)(struct ibv_qp *, struct ibv_qp_attr *, int) = next_of("ibv_modify_qp");
    bool was = is_connected(qp);
    int error = next(qp, attr, mask);
    __atomic_add_fetch(&connections, is_connected(qp) - was, __ATOMIC_RELAXED);
    return error;
}

int ibv_destroy_qp(struct ibv_qp *qp)
{
    int (*next)(struct ibv_qp *) = next_of("ibv_destroy_qp");
    bool is_connection = is_connected(qp);
    int error = next(qp);
    __atomic_sub_fetch(&queue_pairs, error == 0, __ATOMIC_RELAXED);
    __atomic_sub_fetch(&connections, error == 0 && is_connection, __ATOMIC_RELAXED);
    return error;
}
