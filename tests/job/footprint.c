/* SPDX-License-Identifier: BSD-3-Clause */
/* The actual resources of a process of a job: queue pairs, registered memory other than its
 * segment, and the library's memory from malloc(). Usage: footprint PEERS [quiet]: after messages
 * to and from the next PEERS ranks and a barrier (quiet: without it), rank 0 prints its counts, in
 * bytes:
 *
 *     footprint: connections N queue_pairs N registered N private N
 *
 * This file defines the counted functions, which precede those of their libraries. A block belongs
 * to the library if the call came from this program's own code, into which the library is linked,
 * but not from the test: so memory of libpmix, of the device's driver and of libc is not counted.
 * The counts are guarded by a spin lock, because threads of libpmix allocate too. */
#include "config.h"

#include "job.h"

#include <dlfcn.h>
#include <infiniband/verbs.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#undef ibv_reg_mr

extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);
extern const char __executable_start, etext;

/* ---- blocks of the library ---- */

enum { blocks_max = 1 << 16 };
static struct {
    void *at;
    size_t size;
    const void *caller;
} blocks[blocks_max];
static size_t private_bytes;
static atomic_flag counting = ATOMIC_FLAG_INIT;

static void lock_counts(void)
{
    while (atomic_flag_test_and_set_explicit(&counting, memory_order_acquire))
        continue;
}

static void unlock_counts(void)
{
    atomic_flag_clear_explicit(&counting, memory_order_release);
}

/* Marks the entry of a removed block, so that a search finds the entries behind it. */
static char removed;

static size_t place_of(const void *block)
{
    size_t i = (size_t)((uintptr_t)block >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 48;
    while (blocks[i % blocks_max].at && blocks[i % blocks_max].at != block)
        i++;
    return i % blocks_max;
}

static void add_block(void *block, size_t size, const void *caller)
{
    if (!block || (const char *)caller < &__executable_start || (const char *)caller >= &etext)
        return;
    lock_counts();
    size_t i = place_of(block);
    blocks[i].at = block;
    blocks[i].size = size;
    blocks[i].caller = caller;
    private_bytes += size;
    unlock_counts();
}

static void remove_block(void *block)
{
    lock_counts();
    size_t i = place_of(block);
    if (block && blocks[i].at == block) {
        private_bytes -= blocks[i].size;
        blocks[i].at = &removed;
    }
    unlock_counts();
}

void *malloc(size_t size)
{
    void *block = __libc_malloc(size);
    add_block(block, size, __builtin_return_address(0));
    return block;
}

void *calloc(size_t count, size_t size)
{
    void *block = __libc_calloc(count, size);
    add_block(block, count * size, __builtin_return_address(0));
    return block;
}

void *realloc(void *block, size_t size)
{
    remove_block(block);
    block = __libc_realloc(block, size);
    add_block(block, size, __builtin_return_address(0));
    return block;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    void *block = __libc_memalign(alignment, size);
    add_block(block, size, __builtin_return_address(0));
    return block;
}

void free(void *block)
{
    remove_block(block);
    __libc_free(block);
}

/* ---- the device ---- */

static size_t registered_bytes;
static long queue_pairs, connections; /* all, and those that were connected */
static _Thread_local int inside; /* one function of a library may call another that is counted */

static void *next_of(const char *name)
{
    void *function = dlsym(RTLD_NEXT, name);
    if (!function)
        abort();
    return function;
}

static struct ibv_mr *count_region(struct ibv_mr *mr)
{
    if (mr && inside == 1) {
        __atomic_add_fetch(&registered_bytes, mr->length, __ATOMIC_RELAXED);
        remove_block(mr->addr); /* counted as registered from now on */
    }
    inside--;
    return mr;
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *base, size_t size, int access)
{
    struct ibv_mr *(*next)(struct ibv_pd *, void *, size_t, int) = next_of("ibv_reg_mr");
    inside++;
    return count_region(next(pd, base, size, access));
}

struct ibv_mr *ibv_reg_mr_iova2(struct ibv_pd *pd, void *base, size_t size, uint64_t iova,
                                unsigned access)
{
    struct ibv_mr *(*next)(struct ibv_pd *, void *, size_t, uint64_t, unsigned) =
        next_of("ibv_reg_mr_iova2");
    inside++;
    return count_region(next(pd, base, size, iova, access));
}

int ibv_dereg_mr(struct ibv_mr *mr)
{
    int (*next)(struct ibv_mr *) = next_of("ibv_dereg_mr");
    __atomic_sub_fetch(&registered_bytes, mr->length, __ATOMIC_RELAXED);
    return next(mr);
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    struct ibv_qp *(*next)(struct ibv_pd *, struct ibv_qp_init_attr *) = next_of("ibv_create_qp");
    struct ibv_qp *qp = next(pd, attr);
    __atomic_add_fetch(&queue_pairs, qp != NULL, __ATOMIC_RELAXED);
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
    __atomic_add_fetch(&connections, !was && is_connected(qp), __ATOMIC_RELAXED);
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

/* ---- the job ---- */

static unsigned requests, replies;

static void on_reply(gex_Token_t token)
{
    (void)token;
    replies++;
}

static void on_request(gex_Token_t token)
{
    requests++;
    gex_AM_ReplyShort0(token, 201, 0);
}

static void list_blocks(void)
{
    for (size_t i = 0; i < blocks_max; i++)
        if (blocks[i].at && blocks[i].at != &removed)
            fprintf(stderr, "block %zu %#zx\n", blocks[i].size,
                    (size_t)((const char *)blocks[i].caller - &__executable_start));
}

/* Buffers for the next connection are made by the first poll a while after the last one. */
static void poll_for_refill(void)
{
    double until = job_seconds() + 0.02;
    while (job_seconds() < until)
        gasnet_AMPoll();
    gasnet_AMPoll();
}

int main(int argc, char **argv)
{
    gex_AM_Entry_t entries[] = {
        {200, (gex_AM_Fn_t)on_request, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
        {201, (gex_AM_Fn_t)on_reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL}};
    size_t segment = GASNET_PAGESIZE;
    job_start(&argc, &argv, 0);
    CHECK(gex_EP_RegisterHandlers(job.ep, entries, 2) == GASNET_OK);
    /* Not job_attach(), which has a table of its own. Collective, so all have their handlers. */
    CHECK(gex_Segment_Attach(&job.segment, job.tm, segment) == GASNET_OK);
    unsigned peers = argc > 1 ? (unsigned)atoi(argv[1]) : 0;
    bool is_quiet = argc > 2;
    for (unsigned i = 1; i <= peers; i++)
        gex_AM_RequestShort0(job.tm, (job.rank + i) % job.size, 200, 0);
    GASNET_BLOCKUNTIL(requests == peers && replies == peers);
    if (!is_quiet)
        job_barrier();
    poll_for_refill();
    if (job.rank == 0) {
        bool has_device = registered_bytes > 0;
        printf("footprint: connections %ld queue_pairs %ld registered %zu private %zu\n",
               connections, queue_pairs, has_device ? registered_bytes - segment : 0,
               private_bytes);
        if (job_number("FOOTPRINT_LIST", 0))
            list_blocks();
    }
    job_end();
}
