/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Atomics executed by the target's CPU, in the handler of an active message whose answer carries
 * the previous value. Owns the records of requests that are not answered yet, by number, in blocks
 * that are never freed: about as many as there are credits. A pool's lock guards the free ones,
 * another lock the allocation of blocks. Numbers, addresses and operations come over the wire and
 * are checked before they are used. */
#include "config.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "atomic/atomic_private.h"
#include "base/lock.h"
#include "base/pool.h"
#include "base/report.h"
#include "message/message.h"
#include "op/op_type.h"
#include "progress/progress.h"

struct flight {
    struct tk_pool_item item;
    struct tk_op *op;
    void *result; /* NULL: not fetching */
    gex_DT_t dt;
    uint32_t number;
    uint32_t rank; /* the rank that will answer; tk_nobody: free */
};

enum { block_size = 64, blocks_max = 4096 };

static struct tk_pool flights = {.lock = TK_LOCK_INIT};
static tk_lock_t blocks_lock = TK_LOCK_INIT;
static _Atomic(struct flight *) blocks[blocks_max];
static uint32_t block_count;

/* The arguments of a request; those that an operation does not need are not sent. */
struct ask {
    uint32_t flight;
    uint32_t what; /* bit number of the operation, of the type << 8, endpoint << 16 */
    uint64_t address;
    uint64_t a, b;
};
enum { ask_args = sizeof(struct ask) / sizeof(int32_t), ask_args_min = ask_args - 4 };

struct answer {
    uint32_t flight;
    uint32_t reserved;
    uint64_t was;
};
enum { answer_args = sizeof(struct answer) / sizeof(int32_t) };

static _Noreturn void nonsense(const struct tk_peer *from, const char *what)
{
    tk_panic("rank %u (%s, pid %d) %s; the ranks of a job must be built against one version of "
             "this library",
             from->rank, from->host, from->pid, what);
}

/* ---- Requests under way ---- */

static void make_block(void)
{
    tk_lock(&blocks_lock);
    struct flight *block = block_count < blocks_max ? calloc(block_size, sizeof(*block)) : NULL;
    if (!block)
        tk_panic("out of memory for atomic operations under way (%u)", block_count * block_size);
    for (uint32_t i = 0; i < block_size; i++)
        block[i] = (struct flight){.number = block_count * block_size + i, .rank = tk_nobody};
    atomic_store_explicit(&blocks[block_count++], block, memory_order_release);
    for (uint32_t i = block_size; i-- > 0;)
        tk_pool_give(&flights, &block[i]);
    tk_unlock(&blocks_lock);
}

static struct flight *flight_take(const struct tk_atomic *m, struct tk_op *op)
{
    struct flight *f;
    while (!(f = tk_pool_take(&flights)))
        make_block();
    f->op = op;
    f->result = TRUNKLINE_AD_FETCHES(m->opcode) ? m->result : NULL;
    f->dt = m->ad->dt;
    f->rank = m->peer->rank;
    return f;
}

static void flight_give(struct flight *f)
{
    f->rank = tk_nobody;
    tk_pool_give(&flights, f);
}

static struct flight *flight_of(uint32_t number, const struct tk_peer *from)
{
    uint32_t at = number / block_size;
    struct flight *block =
        at < blocks_max ? atomic_load_explicit(&blocks[at], memory_order_acquire) : NULL;
    if (!block || block[number % block_size].rank != from->rank)
        nonsense(from, "answered an atomic operation that was not asked for");
    return &block[number % block_size];
}

/* ---- The initiator ---- */

static unsigned operands_of(gex_OP_t opcode)
{
    if (opcode & (GEX_OP_CAS | GEX_OP_FCAS))
        return 2;
    return !(opcode & (GEX_OP_INC | GEX_OP_DEC | GEX_OP_FINC | GEX_OP_FDEC | GEX_OP_GET));
}

static enum tk_status post(struct tk_peer *peer, const struct ask *ask, unsigned operands,
                           bool immediate)
{
    int32_t args[ask_args];
    memcpy(args, ask, sizeof(args));
    struct tk_internal_medium medium = {
        .handler = TK_HANDLER_ATOMIC, .nargs = ask_args_min + 2 * operands, .args = args};
    unsigned empty = 0;
    enum tk_status status;
    while ((status = tk_internal_request(peer, &medium)) == TK_BUSY && !immediate)
        tk_wait_step_silent(&empty);
    return status;
}

enum tk_status tk_atomic_by_message(const struct tk_atomic *m, struct tk_op *op)
{
    struct flight *f = flight_take(m, op);
    const struct ask ask = {.flight = f->number,
                            .what = (uint32_t)__builtin_ctz(m->opcode) |
                                    (uint32_t)__builtin_ctz(m->ad->dt) << 8 | m->endpoint << 16,
                            .address = m->address,
                            .a = m->a,
                            .b = m->b};
    enum tk_status status =
        post(m->peer, &ask, operands_of(m->opcode), m->flags & GEX_FLAG_IMMEDIATE);
    if (status == TK_BUSY)
        flight_give(f);
    return status;
}

/* Last: a thread that sees zero may free the operation. */
static void answered(struct tk_arrival *arrival)
{
    struct answer answer;
    if (arrival->head->nargs != answer_args)
        nonsense(arrival->peer, "answered an atomic operation in a way that makes no sense");
    memcpy(&answer, arrival->head + 1, sizeof(answer));
    struct flight *f = flight_of(answer.flight, arrival->peer);
    struct tk_op *op = f->op;
    if (f->result)
        tk_atomic_store_result(f->result, f->dt, answer.was);
    flight_give(f);
    tk_counter_add(&op->pending, -1);
}

/* ---- The target ---- */

static void check_place(const struct tk_peer *from, const struct ask *ask, gex_DT_t dt)
{
    const struct tk_bound bound = tk_bound_of(tk_peers.me, ask->what >> 16);
    size_t size = tk_ad_size(dt);
    if (ask->address % size == 0 && tk_bound_has(&bound, (uintptr_t)ask->address, size))
        return;
    tk_panic("an atomic operation of rank %u (%s, pid %d) on %zu bytes at %p: this rank's segment "
             "of endpoint %u is [%p, +%zu), and addresses must be aligned",
             from->rank, from->host, from->pid, size, (void *)(uintptr_t)ask->address,
             ask->what >> 16, (void *)bound.base, (size_t)bound.size);
}

static void asked(struct tk_arrival *arrival)
{
    struct ask ask = {.a = 0};
    unsigned nargs = arrival->head->nargs;
    if (nargs < ask_args_min || nargs > ask_args)
        nonsense(arrival->peer, "asked for an atomic operation in a way that makes no sense");
    memcpy(&ask, arrival->head + 1, nargs * sizeof(int32_t));
    gex_OP_t opcode = (gex_OP_t)1 << (ask.what & 31);
    gex_DT_t dt = (gex_DT_t)1 << (ask.what >> 8 & 31);
    if (dt >= GEX_DT_USER || !(opcode & tk_ad_ops_of(dt)) ||
        nargs != ask_args_min + 2 * operands_of(opcode))
        nonsense(arrival->peer, "asked for an atomic operation that there is not");
    check_place(arrival->peer, &ask, dt);
    const struct answer answer = {
        .flight = ask.flight,
        .was = tk_atomic_execute(dt, opcode, (void *)(uintptr_t)ask.address, ask.a, ask.b)};
    int32_t args[answer_args];
    memcpy(args, &answer, sizeof(args));
    const struct tk_internal_medium reply = {
        .handler = TK_HANDLER_ATOMIC_DONE, .nargs = answer_args, .args = args};
    tk_internal_reply(arrival, &reply);
}

void tk_atomic_open_messages(void)
{
    tk_internal_register_whole(TK_HANDLER_ATOMIC, asked);
    tk_internal_register_whole(TK_HANDLER_ATOMIC_DONE, answered);
}
