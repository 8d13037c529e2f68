/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The section of a bundle that says what no attribute does: which types and sizes of queue pairs a
 * device accepts, what it makes of them, and with which errno it refuses others. A size is tried
 * by creating a queue pair, which is destroyed again. Owns the objects that they need. */
#include "config.h"

#include "contrib/info/bundle.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum {
    depth_most = 32768, /* Soft-RoCE offers a million, which takes the kernel minutes to create */
    inline_most = 4096,
    text_max = 80,
    asked_depth = 100,
    asked_cqe = 100
};

static struct ibv_context *device;
static struct ibv_pd *pd;
static struct ibv_cq *cq;

struct shape {
    const char *name;
    enum ibv_qp_type type;
};

static const struct shape types[] = {
    {"RC", IBV_QPT_RC}, {"UC", IBV_QPT_UC}, {"UD", IBV_QPT_UD}, {"XRC_SEND", IBV_QPT_XRC_SEND}};

/* Returns 0 or the errno; `cap` receives the sizes that the device chose. */
static int create(enum ibv_qp_type type, struct ibv_qp_cap *cap)
{
    struct ibv_qp_init_attr attr = {.send_cq = cq, .recv_cq = cq, .cap = *cap, .qp_type = type};
    errno = 0;
    struct ibv_qp *qp = ibv_create_qp(pd, &attr);
    if (!qp)
        return errno ? errno : EIO;
    *cap = attr.cap;
    ibv_destroy_qp(qp);
    return 0;
}

static int print_errno(const char *key, int error)
{
    bundle_fact(key, "errno %d %s", error, error ? strerrorname_np(error) : "none");
    return error;
}

/* "create TYPE SEND_WR RECV_WR SEND_SGE RECV_SGE INLINE = the same as returned", or an errno. */
static void print_create(const struct shape *shape, struct ibv_qp_cap cap)
{
    char key[text_max];
    snprintf(key, sizeof(key), "create %s %u %u %u %u %u", shape->name, cap.max_send_wr,
             cap.max_recv_wr, cap.max_send_sge, cap.max_recv_sge, cap.max_inline_data);
    int error = create(shape->type, &cap);
    if (error)
        print_errno(key, error);
    else
        bundle_fact(key, "%u %u %u %u %u", cap.max_send_wr, cap.max_recv_wr, cap.max_send_sge,
                    cap.max_recv_sge, cap.max_inline_data);
}

static struct ibv_qp_cap small_cap(uint32_t send_sge, uint32_t bytes)
{
    return (struct ibv_qp_cap){.max_send_wr = 1,
                               .max_recv_wr = 1,
                               .max_send_sge = send_sge,
                               .max_recv_sge = 1,
                               .max_inline_data = bytes};
}

static bool takes_inline(const struct shape *shape, uint32_t bytes)
{
    struct ibv_qp_cap cap = small_cap(1, bytes);
    return create(shape->type, &cap) == 0 && cap.max_inline_data >= bytes;
}

static bool takes_depth(const struct shape *shape, uint32_t depth, uint32_t sge, uint32_t bytes)
{
    struct ibv_qp_cap cap = small_cap(sge, bytes);
    cap.max_send_wr = depth;
    return create(shape->type, &cap) == 0;
}

/* Prints the most bytes of inline data, and the result for one byte more. */
static uint32_t print_inline(const struct shape *shape)
{
    char key[text_max];
    uint32_t good = 0, bad = inline_most + 1;
    while (bad - good > 1) {
        uint32_t middle = good + (bad - good) / 2;
        if (takes_inline(shape, middle))
            good = middle;
        else
            bad = middle;
    }
    snprintf(key, sizeof(key), "inline %s", shape->name);
    bundle_fact(key, "%u", good);
    if (good < inline_most)
        print_create(shape, small_cap(1, good + 1));
    return good;
}

/* "depth TYPE SEND_SGE INLINE = the most send work requests", and the result for one more. */
static void print_depth(const struct shape *shape, uint32_t sge, uint32_t bytes, uint32_t most)
{
    char key[text_max];
    struct ibv_qp_cap more = small_cap(sge, bytes);
    uint32_t good = 0, bad = most + 1;
    if (takes_depth(shape, most, sge, bytes))
        good = most;
    while (bad - good > 1) {
        uint32_t middle = good + (bad - good) / 2;
        if (takes_depth(shape, middle, sge, bytes))
            good = middle;
        else
            bad = middle;
    }
    snprintf(key, sizeof(key), "depth %s %u %u", shape->name, sge, bytes);
    bundle_fact(key, "%u", good);
    more.max_send_wr = good + 1;
    if (good < depth_most)
        print_create(shape, more);
}

static void print_depths(const struct shape *shape, uint32_t inline_max,
                         const struct ibv_device_attr *attr)
{
    static const uint32_t lists[] = {1, 2, 4, 8, 16}, sizes[] = {64, 128, 256, 512};
    uint32_t depth =
                 (uint32_t)attr->max_qp_wr < depth_most ? (uint32_t)attr->max_qp_wr : depth_most,
             sge = (uint32_t)attr->max_sge;
    for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
        if (lists[i] < sge)
            print_depth(shape, lists[i], 0, depth);
    print_depth(shape, sge, 0, depth);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
        if (sizes[i] < inline_max)
            print_depth(shape, 1, sizes[i], depth);
    if (inline_max > 0)
        print_depth(shape, 1, inline_max, depth);
}

/* Prints what the device makes of usual sizes, and the errno for a list that is too long. */
static void print_usual(const struct shape *shape, uint32_t sge)
{
    struct ibv_qp_cap deep = small_cap(1, 0);
    deep.max_send_wr = deep.max_recv_wr = asked_depth;
    print_create(shape, small_cap(1, 0));
    print_create(shape, small_cap(1, 32));
    print_create(shape, small_cap(sge, 0));
    print_create(shape, small_cap(sge + 1, 0));
    print_create(shape, deep);
}

static void print_type(const struct shape *shape, const struct ibv_device_attr *attr)
{
    char key[text_max];
    struct ibv_qp_cap cap = small_cap(1, 0);
    snprintf(key, sizeof(key), "type %s", shape->name);
    if (print_errno(key, create(shape->type, &cap)))
        return;
    uint32_t inline_max =
        shape->type == IBV_QPT_RC || shape->type == IBV_QPT_UD ? print_inline(shape) : 0;
    if (shape->type != IBV_QPT_RC)
        return;
    print_usual(shape, (uint32_t)attr->max_sge);
    print_depths(shape, inline_max, attr);
}

static void print_srq(void)
{
    struct ibv_srq_init_attr attr = {.attr = {.max_wr = 1, .max_sge = 1}};
    errno = 0;
    struct ibv_srq *srq = ibv_create_srq(pd, &attr);
    print_errno("type SRQ", srq ? 0 : errno);
    if (srq)
        ibv_destroy_srq(srq);
}

static void print_cq(void)
{
    char key[text_max];
    struct ibv_cq *other = ibv_create_cq(device, asked_cqe, NULL, NULL, 0);
    snprintf(key, sizeof(key), "cq %d", asked_cqe);
    if (!other) {
        print_errno(key, errno);
        return;
    }
    bundle_fact(key, "%d", other->cqe);
    print_errno("resize_cq", ibv_resize_cq(other, 2 * asked_cqe));
    ibv_destroy_cq(other);
}

static void print_all(const struct ibv_device_attr *attr)
{
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        print_type(&types[i], attr);
    print_srq();
    print_cq();
}

void bundle_probe(struct ibv_context *context, const struct ibv_device_attr *attr)
{
    device = context;
    bundle_section("sizes", ibv_get_device_name(context->device));
    pd = ibv_alloc_pd(context);
    cq = pd ? ibv_create_cq(context, 2, NULL, NULL, 0) : NULL;
    if (cq)
        print_all(attr);
    else
        print_errno(pd ? "ibv_create_cq" : "ibv_alloc_pd", errno);
    if (cq)
        ibv_destroy_cq(cq);
    if (pd)
        ibv_dealloc_pd(pd);
}
