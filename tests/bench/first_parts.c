/* SPDX-License-Identifier: BSD-3-Clause */
/* See first_parts.h. The functions here precede those of libibverbs, which the library finds by
 * name; what a device offers in the table of its context is replaced when the first queue pair is
 * created. Both ranks are on one host, so their clocks are one. One client thread. */
#include "config.h"

#include "first_parts.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include <gasnetex.h>
#include <trunkline_rails.h>

/* What a rank asks of the device. */
enum call {
    MAKE,
    CONNECT,
    HANDLE,
    ADDRESS,
    REGISTER,
    POST_RECEIVE,
    SEND_DATAGRAM,
    SEND,
    POLL,
    calls
};

enum { moments_max = 56 /* a first message has 20 at an end */, datagram_qps = 8 };

struct moment {
    uint64_t begin, end; /* ns */
    uint32_t call;
    uint32_t is_datagram; /* POLL found one */
};

static struct trail {
    struct moment at[moments_max];
    uint32_t count, faults, switches;
    uint64_t begin, end;
} mine;

static bool is_on;
static struct rusage before;
static uint32_t datagram_qp[datagram_qps];
static unsigned datagram_qp_count;

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static void note(enum call call, uint64_t begin, bool is_datagram)
{
    if (!is_on || mine.count == moments_max)
        return;
    mine.at[mine.count++] = (struct moment){begin, now_ns(), call, is_datagram};
}

void first_parts_begin(void)
{
    memset(&mine, 0, sizeof(mine)); /* so that no moment is the first write to its page */
    getrusage(RUSAGE_THREAD, &before);
    is_on = true;
    mine.begin = now_ns();
}

void first_parts_end(void)
{
    struct rusage after;
    if (!is_on)
        return;
    mine.end = now_ns();
    is_on = false;
    getrusage(RUSAGE_THREAD, &after);
    mine.faults =
        (uint32_t)(after.ru_minflt + after.ru_majflt - before.ru_minflt - before.ru_majflt);
    mine.switches =
        (uint32_t)(after.ru_nvcsw + after.ru_nivcsw - before.ru_nvcsw - before.ru_nivcsw);
}

/* ---- calls ---- */

/* The functions of the library. */
static struct {
    struct ibv_qp *(*create_qp)(struct ibv_pd *, struct ibv_qp_init_attr *);
    int (*modify_qp)(struct ibv_qp *, struct ibv_qp_attr *, int);
    struct ibv_ah *(*create_ah)(struct ibv_pd *, struct ibv_ah_attr *);
    struct ibv_mr *(*reg_mr)(struct ibv_pd *, void *, size_t, int);
    int (*query_gid)(struct ibv_context *, uint32_t, uint32_t, struct ibv_gid_entry *, uint32_t,
                     size_t);
} next;
static struct ibv_context_ops device;

static void *next_of(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    if (!function)
        abort();
    return function;
}

/* Once: a search takes longer than the call. */
static void find_functions(void)
{
    if (next.create_qp)
        return;
    next.modify_qp = next_of("ibv_modify_qp");
    next.create_ah = next_of("ibv_create_ah");
    next.reg_mr = next_of("ibv_reg_mr");
    next.query_gid = next_of("_ibv_query_gid_ex");
    next.create_qp = next_of("ibv_create_qp");
}

static bool is_of_datagrams(uint32_t qp)
{
    for (unsigned i = 0; i < datagram_qp_count; i++)
        if (datagram_qp[i] == qp)
            return true;
    return false;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad)
{
    uint64_t begin = now_ns();
    int error = device.post_send(qp, wr, bad);
    note(qp->qp_type == IBV_QPT_UD ? SEND_DATAGRAM : SEND, begin, false);
    return error;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad)
{
    uint64_t begin = now_ns();
    int error = device.post_recv(qp, wr, bad);
    note(POST_RECEIVE, begin, false);
    return error;
}

static int poll_cq(struct ibv_cq *cq, int most, struct ibv_wc *wc)
{
    uint64_t begin = is_on ? now_ns() : 0;
    int count = device.poll_cq(cq, most, wc);
    for (int i = 0; i < count; i++)
        if (wc[i].status == IBV_WC_SUCCESS && wc[i].opcode == IBV_WC_RECV)
            note(POLL, begin, is_of_datagrams(wc[i].qp_num));
    return count;
}

/* Devices of two drivers would need a table; the bench has one. */
static void watch(struct ibv_context *context)
{
    if (context->ops.post_send == post_send)
        return;
    device = context->ops;
    context->ops.post_send = post_send;
    context->ops.post_recv = post_recv;
    context->ops.poll_cq = poll_cq;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    find_functions();
    uint64_t begin = now_ns();
    struct ibv_qp *qp = next.create_qp(pd, attr);
    note(MAKE, begin, false);
    if (!qp)
        return NULL;
    watch(qp->context);
    if (qp->qp_type == IBV_QPT_UD && datagram_qp_count < datagram_qps)
        datagram_qp[datagram_qp_count++] = qp->qp_num;
    return qp;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask)
{
    find_functions();
    uint64_t begin = now_ns();
    int error = next.modify_qp(qp, attr, mask);
    note(attr->qp_state == IBV_QPS_INIT ? MAKE : CONNECT, begin, false);
    return error;
}

struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
    find_functions();
    uint64_t begin = now_ns();
    struct ibv_ah *handle = next.create_ah(pd, attr);
    note(HANDLE, begin, false);
    return handle;
}

#undef ibv_reg_mr /* a macro that chooses between two functions */
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *at, size_t length, int access)
{
    find_functions();
    uint64_t begin = now_ns();
    struct ibv_mr *mr = next.reg_mr(pd, at, length, access);
    note(REGISTER, begin, false);
    return mr;
}

int _ibv_query_gid_ex(struct ibv_context *context, uint32_t port, uint32_t index,
                      struct ibv_gid_entry *entry, uint32_t flags, size_t size)
{
    find_functions();
    uint64_t begin = now_ns();
    int error = next.query_gid(context, port, index, entry, flags, size);
    note(ADDRESS, begin, false);
    return error;
}

/* ---- the parts ---- */

/* The first such moment that ends after `from`; NULL: none. */
static const struct moment *find(const struct trail *trail, enum call call, bool is_datagram,
                                 uint64_t from)
{
    for (uint32_t i = 0; i < trail->count; i++)
        if (trail->at[i].call == call && trail->at[i].is_datagram == is_datagram &&
            trail->at[i].end > from)
            return &trail->at[i];
    return NULL;
}

static double us(uint64_t from, uint64_t to)
{
    return ((double)to - (double)from) / 1e3;
}

/* Time of the calls between two moments of a rank. */
static double in_calls(const struct trail *trail, enum call call, uint64_t from, uint64_t to)
{
    double sum = 0;
    for (uint32_t i = 0; i < trail->count; i++)
        if (trail->at[i].call == call && trail->at[i].begin >= from && trail->at[i].end <= to)
            sum += us(trail->at[i].begin, trail->at[i].end);
    return sum;
}

static void print_part(const char *name, const struct trail *at, uint64_t from, uint64_t to)
{
    double all = us(from, to), ready = 0, address = 0, receives = 0, rest;
    if (!at) {
        printf("part %s: us %.2f\n", name, all);
        return;
    }
    ready = in_calls(at, CONNECT, from, to) + in_calls(at, MAKE, from, to) +
            in_calls(at, REGISTER, from, to);
    address = in_calls(at, HANDLE, from, to) + in_calls(at, ADDRESS, from, to);
    receives = in_calls(at, POST_RECEIVE, from, to) + in_calls(at, SEND_DATAGRAM, from, to);
    rest = all - ready - address - receives;
    printf("part %s: us %.2f queue-pairs %.2f addresses %.2f posts %.2f library %.2f\n", name, all,
           ready, address, receives, rest);
}

static unsigned count_of(const struct trail *trail, enum call call)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < trail->count; i++)
        count += trail->at[i].call == call;
    return count;
}

static void print_counts(const char *who, const struct trail *trail)
{
    printf("count %s: datagrams %u queue-pairs-made %u modified %u handles %u addresses %u "
           "registered %u receives %u sends %u faults %u switches %u\n",
           who, count_of(trail, SEND_DATAGRAM), count_of(trail, MAKE), count_of(trail, CONNECT),
           count_of(trail, HANDLE), count_of(trail, ADDRESS), count_of(trail, REGISTER),
           count_of(trail, POST_RECEIVE), count_of(trail, SEND), trail->faults, trail->switches);
}

/* Each part begins where the last one ended: their sum is the time of the message. */
static bool print_parts(const struct trail *asker, const struct trail *asked)
{
    const struct moment *request = find(asker, SEND_DATAGRAM, false, 0);
    const struct moment *request_came = request ? find(asked, POLL, true, request->begin) : NULL;
    const struct moment *accept =
        request_came ? find(asked, SEND_DATAGRAM, false, request_came->end) : NULL;
    const struct moment *accept_came = accept ? find(asker, POLL, true, accept->begin) : NULL;
    const struct moment *message = accept_came ? find(asker, SEND, false, accept_came->end) : NULL;
    const struct moment *message_came = message ? find(asked, POLL, false, message->begin) : NULL;
    const struct moment *reply = message_came ? find(asked, SEND, false, message_came->end) : NULL;
    if (!reply)
        return false;
    print_part("asker-to-request", asker, asker->begin, request->begin);
    print_part("request-travels", NULL, request->begin, request_came->end);
    print_part("asked-to-accept", asked, request_came->end, accept->begin);
    print_part("accept-travels", NULL, accept->begin, accept_came->end);
    print_part("asker-to-message", asker, accept_came->end, message->begin);
    print_part("message-travels", NULL, message->begin, message_came->end);
    print_part("asked-to-reply", asked, message_came->end, reply->begin);
    print_part("reply-travels", NULL, reply->begin, asker->end);
    return true;
}

bool first_parts_print(unsigned me)
{
    struct trail both[2];
    if (trunkline_rails_share(&mine, both, sizeof(mine)) != GASNET_OK)
        return false;
    if (me != 0)
        return true;
    print_counts("asker", &both[0]);
    print_counts("asked", &both[1]);
    return print_parts(&both[0], &both[1]);
}
