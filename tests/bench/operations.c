/* SPDX-License-Identifier: BSD-3-Clause */
/* operations NAME COUNT - does one operation COUNT times for tests/bench/instructions, which counts
 * the instructions of rank 0 inside measured(). Everything that rank 1 sends has arrived before
 * measured() is called: rank 1 signals this by a put, which can't overtake a message sent before
 * it, and rank 0 watches its segment for that put without a poll. So no number contains waiting.
 * Two processes, one thread, no locks. Built for SEQ and for PAR. */
#include "config.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gasnet_coll.h>
#include <gasnet_mk.h>
#include <gasnet_ratomic.h>
#include <gasnet_vis.h>

enum {
    warm_up = 64,
    segment_size = 1 << 20,
    flag_offset = 4096,
    go_offset = 8192,
    medium = 4096,
    packed_long = 2048,
    apart_long = 8192,
    block_offset = 128 << 10,
    block = 64 << 10 /* in one region: GASNET_FIREHOSE_LEAST is as large */
};

static gex_EP_t ep;
static gex_TM_t tm;
static gex_Rank_t peer;
static char *mine, *theirs;
static volatile long requests_in;
static gex_Event_t event;
static gex_AD_t domain, domain_dbl;

static void on_request(gex_Token_t token);
static void on_note(gex_Token_t token);
static void on_medium(gex_Token_t token, void *data, size_t nbytes);
static void on_medium_back(gex_Token_t token, void *data, size_t nbytes);
static void on_bulk(gex_Token_t token, void *data, size_t nbytes);

static gex_AM_Entry_t table[] = {
    {0, (gex_AM_Fn_t)on_request, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "request"},
    {0, (gex_AM_Fn_t)on_note, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP, 0, NULL, "note"},
    {0, (gex_AM_Fn_t)on_medium, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, "medium"},
    {0, (gex_AM_Fn_t)on_medium_back, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 0, NULL, "back"},
    {0, (gex_AM_Fn_t)on_bulk, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQUEST, 0, NULL, "bulk"},
};

static void on_request(gex_Token_t token)
{
    requests_in++;
    gex_AM_ReplyShort(token, table[1].gex_index, 0);
}

static void on_note(gex_Token_t token)
{
    (void)token;
}

static void request_short(void)
{
    gex_AM_RequestShort(tm, peer, table[0].gex_index, 0);
}

static void on_medium(gex_Token_t token, void *data, size_t nbytes)
{
    requests_in++;
    gex_AM_ReplyMedium(token, table[3].gex_index, data, nbytes, GEX_EVENT_NOW, 0);
}

static void on_medium_back(gex_Token_t token, void *data, size_t nbytes)
{
    (void)token, (void)data, (void)nbytes;
}

static void request_medium(void)
{
    gex_AM_RequestMedium(tm, peer, table[2].gex_index, mine + block_offset, medium, GEX_EVENT_NOW,
                         0);
}

/* Requests whose handler does not reply. */
static void on_bulk(gex_Token_t token, void *data, size_t nbytes)
{
    (void)token, (void)data, (void)nbytes;
    requests_in++;
}

static void request_bulk(void)
{
    gex_AM_RequestMedium(tm, peer, table[4].gex_index, mine + block_offset, medium, GEX_EVENT_NOW,
                         0);
}

static void request_long(size_t nbytes)
{
    gex_AM_RequestLong(tm, peer, table[4].gex_index, mine + block_offset, nbytes,
                       theirs + 2 * block_offset, GEX_EVENT_NOW, 0);
}

static void request_packed(void)
{
    request_long(packed_long);
}

static void request_apart(void)
{
    request_long(apart_long);
}

static gex_AM_SrcDesc_t prepare_medium(void)
{
    return gex_AM_PrepareRequestMedium(tm, peer, NULL, medium, medium, NULL, 0, 0);
}

static void request_prepared(void)
{
    gex_AM_CommitRequestMedium(prepare_medium(), table[2].gex_index, medium);
}

static void cancel_prepared(void)
{
    gex_AM_CancelRequestMedium(prepare_medium(), 0);
}

static void poll_once(void)
{
    gasnet_AMPoll();
}

static void put_8(void)
{
    gex_RMA_PutBlocking(tm, peer, theirs, mine, 8, 0);
}

static void put_nb_8(void)
{
    gex_Event_Wait(gex_RMA_PutNB(tm, peer, theirs, mine, 8, GEX_EVENT_DEFER, 0));
}

/* A size that the compiler does not know. */
static volatile size_t any = 256;

static void put_nb_any(void)
{
    gex_Event_Wait(gex_RMA_PutNB(tm, peer, theirs, mine, any, GEX_EVENT_DEFER, 0));
}

static void get_any(void)
{
    gex_RMA_GetBlocking(tm, mine, peer, theirs, any, 0);
}

/* Waits outside of all libraries while the device works, so that the measured wait finds the copy
 * complete. */
static void put_block(const char *from)
{
    event = gex_RMA_PutNB(tm, peer, theirs + block_offset, (void *)(uintptr_t)from, block,
                          GEX_EVENT_DEFER, 0);
    usleep(2000);
    gex_Event_Wait(event);
}

static void put_64k(void)
{
    put_block(mine + block_offset);
}

static void put_64k_hit(void)
{
    static char *outside;
    if (!outside && (outside = aligned_alloc(block, block)))
        memset(outside, 0, block);
    put_block(outside);
}

/* ---- between endpoints of other segments, in host memory and in that of a device ---- */

static gex_TM_t pair;
static char *pair_mine, *pair_theirs;

static void open_pair(gex_MK_t kind)
{
    gex_EP_t other;
    gex_Client_t client = gex_EP_QueryClient(ep);
    gex_Segment_t segment;
    void *owner = NULL;
    uintptr_t size;
    if (gex_Segment_Create(&segment, client, NULL, segment_size, kind, 0) ||
        gex_EP_Create(&other, client, GEX_EP_CAPABILITY_RMA, 0) ||
        gex_EP_BindSegment(other, segment, 0) || gex_EP_PublishBoundSegment(tm, &other, 1, 0)) {
        fprintf(stderr, "operations: there is no other segment\n");
        gasnet_exit(1);
    }
    pair = gex_TM_Pair(other, gex_EP_QueryIndex(other));
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(pair, peer, &owner, NULL, &size, 0));
    pair_mine = gex_Segment_QueryAddr(segment);
    pair_theirs = owner;
}

static void open_kind_pair(void)
{
    gex_MK_t kind;
    const gex_MK_Create_args_t args = {.gex_class = GEX_MK_CLASS_CUDA_UVA};
    if (gex_MK_Create(&kind, gex_EP_QueryClient(ep), &args, 0)) {
        fprintf(stderr, "operations: there is no accelerator\n");
        gasnet_exit(1);
    }
    open_pair(kind);
}

static void pair_put_8(void)
{
    gex_Event_Wait(gex_RMA_PutNB(pair, peer, pair_theirs, pair_mine, 8, GEX_EVENT_DEFER, 0));
}

static void event_test(void)
{
    if (gex_Event_Test(event))
        abort();
}

/* Our own device completes in order: when the second put is complete, so is the first. */
static void finish_event(int64_t number)
{
    (void)number;
    event = gex_RMA_PutNB(tm, peer, theirs, mine, 8, GEX_EVENT_DEFER, 0);
    put_8();
}

static void get_8(void)
{
    gex_RMA_GetBlocking(tm, mine, peer, theirs, 8, 0);
}

/* ---- atomics: the opcode is known to the compiler, the result lies in the segment ---- */

static inline void wait_if_open(gex_Event_t e)
{
    if (e != GEX_EVENT_INVALID)
        gex_Event_Wait(e);
}

static void atomic_fetch_add(void)
{
    wait_if_open(
        gex_AD_OpNB_U64(domain, (uint64_t *)(void *)mine, peer, theirs, GEX_OP_FADD, 1, 0, 0));
}

static void atomic_inc_nbi(void)
{
    gex_AD_OpNBI_U64(domain, NULL, peer, theirs, GEX_OP_INC, 0, 0, 0);
}

static void atomic_compare_swap(void)
{
    wait_if_open(
        gex_AD_OpNB_U64(domain, (uint64_t *)(void *)mine, peer, theirs, GEX_OP_FCAS, 0, 0, 0));
}

static void atomic_add_dbl(void)
{
    wait_if_open(gex_AD_OpNB_DBL(domain_dbl, NULL, peer, theirs, GEX_OP_ADD, 1, 0, 0));
}

static void open_domains(void)
{
    gex_AD_Create(&domain, tm, GEX_DT_U64, GEX_OP_FADD | GEX_OP_INC | GEX_OP_FCAS, 0);
    gex_AD_Create(&domain_dbl, tm, GEX_DT_DBL, GEX_OP_ADD, 0);
}

/* ---- 100 pieces of 64 bytes with as large gaps between them ---- */

static const ptrdiff_t strides[] = {128};
static const size_t pieces[] = {100};

static void strided_put(void)
{
    event = gex_VIS_StridedPutNB(tm, peer, theirs + block_offset, strides, mine + block_offset,
                                 strides, 64, pieces, 1, 0);
}

static void strided_get(void)
{
    event = gex_VIS_StridedGetNB(tm, mine + block_offset, strides, peer, theirs + block_offset,
                                 strides, 64, pieces, 1, 0);
}

static gex_Event_t start_barrier(void)
{
    return gex_Coll_BarrierNB(tm, 0);
}

static gex_Event_t start_reduction(void)
{
    static uint64_t one = 1, all;
    return gex_Coll_ReduceToAllNB(tm, &all, &one, GEX_DT_U64, 8, 1, GEX_OP_ADD, NULL, NULL, 0);
}

static gex_Event_t start_broadcast(void)
{
    static uint64_t value;
    return gex_Coll_BroadcastNB(tm, 1, &value, &value, 8, 0);
}

static void barrier(void)
{
    gex_Event_Wait(start_barrier());
}

static void reduce_all_8(void)
{
    gex_Event_Wait(start_reduction());
}

static void broadcast_8(void)
{
    gex_Event_Wait(start_broadcast());
}

/* Waits without a poll until rank 1 has put `value`. */
static void await_flag(int64_t value)
{
    volatile int64_t *flag = (volatile int64_t *)(void *)(mine + flag_offset);
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) < value)
        ;
}

static void raise_flag(int64_t value)
{
    gex_RMA_PutBlocking(tm, peer, theirs + flag_offset, &value, sizeof(value), 0);
}

/* Rank 1's part in one operation of rank 0. */
static void serve_request(int64_t number)
{
    GASNET_BLOCKUNTIL(requests_in >= number);
    raise_flag(number);
}

/* Rank 0 asks by a store to its own segment: a put would poll, and that poll might take the
 * request. */
static void send_when_asked(void (*request)(void), int64_t number)
{
    int64_t asked = 0;
    while (asked < number) {
        gex_RMA_GetBlocking(tm, &asked, peer, theirs + go_offset, sizeof(asked), 0);
        gasnet_AMPoll(); /* neighbours' replies */
    }
    request();
    raise_flag(number);
}

static void send_request(int64_t number)
{
    send_when_asked(request_short, number);
}

static void send_medium(int64_t number)
{
    send_when_asked(request_medium, number);
}

static void send_bulk(int64_t number)
{
    send_when_asked(request_bulk, number);
}

static void send_packed(int64_t number)
{
    send_when_asked(request_packed, number);
}

static void send_apart(int64_t number)
{
    send_when_asked(request_apart, number);
}

/* A collective that rank 0 starts last, when all of rank 1's part has come. */
static void enter(gex_Event_t entered, int64_t number)
{
    raise_flag(number);
    gex_Event_Wait(entered);
}

static void enter_barrier(int64_t number)
{
    enter(start_barrier(), number);
}

static void enter_reduction(int64_t number)
{
    enter(start_reduction(), number);
}

/* The root would run ahead. */
static void enter_broadcast(int64_t number)
{
    barrier();
    enter(start_broadcast(), number);
}

static void let_rank_1_enter(int64_t number)
{
    (void)number;
    barrier();
}

/* Rank 0's preparation. */
static void ask(int64_t number)
{
    (void)number;
    request_short();
}

static void ask_medium(int64_t number)
{
    (void)number;
    request_medium();
}

static void ask_by_memory(int64_t number)
{
    __atomic_store_n((int64_t *)(void *)(mine + go_offset), number, __ATOMIC_RELEASE);
}

/* The previous transfer is complete, and rank 1, which serves it, has seen that. */
static void finish_transfer(int64_t number)
{
    gex_Event_Wait(event);
    event = GEX_EVENT_INVALID;
    raise_flag(number);
}

static void serve_transfer(int64_t number)
{
    volatile int64_t *flag = (volatile int64_t *)(void *)(mine + flag_offset);
    while (__atomic_load_n(flag, __ATOMIC_ACQUIRE) < number)
        gasnet_AMPoll();
    raise_flag(number);
}

static void nothing(int64_t number)
{
    (void)number;
}

/* The order in rank 0: before, wait for rank 1 (when it does anything), the measured call, after,
 * wait. */
static const struct operation {
    const char *name;
    void (*before)(int64_t number);
    void (*measured)(void);
    void (*rank_1)(int64_t number);
    bool wait_first;
} operations[] = {
    {"empty-poll", nothing, poll_once, NULL, false},
    {"event-test", finish_event, event_test, NULL, false},
    {"put-8", nothing, put_8, NULL, false},
    {"put-nb-8", nothing, put_nb_8, NULL, false},
    {"get-8", nothing, get_8, NULL, false},
    {"put-nb-any", nothing, put_nb_any, NULL, false},
    {"get-any", nothing, get_any, NULL, false},
    {"pair-put-nb-8", nothing, pair_put_8, NULL, false},
    {"kind-put-nb-8", nothing, pair_put_8, NULL, false},
    {"put-64k", nothing, put_64k, NULL, false},
    {"put-64k-hit", nothing, put_64k_hit, NULL, false},
    {"atomic-fetch-add", nothing, atomic_fetch_add, NULL, false},
    {"atomic-inc-nbi", nothing, atomic_inc_nbi, NULL, false},
    {"atomic-compare-swap", nothing, atomic_compare_swap, NULL, false},
    {"atomic-add-dbl", nothing, atomic_add_dbl, NULL, false},
    {"strided-put", finish_transfer, strided_put, serve_transfer, true},
    {"strided-get", finish_transfer, strided_get, serve_transfer, true},
    {"barrier", nothing, barrier, enter_barrier, true},
    {"reduce-all-8", nothing, reduce_all_8, enter_reduction, true},
    {"broadcast-8", let_rank_1_enter, broadcast_8, enter_broadcast, true},
    {"short-request", nothing, request_short, serve_request, false},
    {"short-reply-in", ask, poll_once, serve_request, true},
    {"short-request-in", ask_by_memory, poll_once, send_request, true},
    {"medium-request", nothing, request_medium, serve_request, false},
    {"prepared-request", nothing, request_prepared, serve_request, false},
    {"prepared-cancel", nothing, cancel_prepared, NULL, false},
    {"medium-reply-in", ask_medium, poll_once, serve_request, true},
    {"medium-request-in", ask_by_memory, poll_once, send_medium, true},
    {"medium-in", ask_by_memory, poll_once, send_bulk, true},
    {"long-request", nothing, request_packed, serve_request, false},
    {"long-in", ask_by_memory, poll_once, send_packed, true},
    {"long-8k-request", nothing, request_apart, serve_request, false},
    {"long-8k-in", ask_by_memory, poll_once, send_apart, true},
};

/* callgrind collects inside this function. */
__attribute__((noinline)) void measured(void (*call)(void));
void measured(void (*call)(void))
{
    call();
    __asm__ __volatile__(""
                         :
                         :
                         : "memory"); /* no tail call: it would end the collection too early */
}

static void rank_0(const struct operation *op, long count)
{
    for (long i = 1; i <= warm_up + count; i++) {
        op->before(i);
        if (op->rank_1 && op->wait_first)
            await_flag(i);
        if (i <= warm_up)
            op->measured();
        else
            measured(op->measured);
        if (op->rank_1 && !op->wait_first)
            await_flag(i);
        gasnet_AMPoll();
    }
}

static void rank_1(const struct operation *op, long count)
{
    for (long i = 1; op->rank_1 && i <= warm_up + count; i++)
        op->rank_1(i);
}

static const struct operation *find(const char *name)
{
    for (size_t i = 0; i < sizeof(operations) / sizeof(*operations); i++)
        if (!strcmp(operations[i].name, name))
            return &operations[i];
    return NULL;
}

static void start(int *argc, char ***argv)
{
    gex_Client_t client;
    gex_Segment_t segment;
    void *owner = NULL;
    uintptr_t size;
    if (gex_Client_Init(&client, &ep, &tm, "operations", argc, argv, 0) ||
        gex_TM_QuerySize(tm) != 2 ||
        gex_EP_RegisterHandlers(ep, table, sizeof(table) / sizeof(*table)) ||
        gex_Segment_Attach(&segment, tm, segment_size)) {
        fprintf(stderr, "operations: can't start on two processes\n");
        gasnet_exit(1);
    }
    peer = 1 - gex_TM_QueryRank(tm);
    mine = gex_Segment_QueryAddr(segment);
    memset(mine, 0, segment_size);
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, peer, &owner, NULL, &size, 0));
    theirs = owner;
    gex_Coll_BarrierBlocking(tm, 0);
}

int main(int argc, char **argv)
{
    start(&argc, &argv);
    const struct operation *op = argc == 3 ? find(argv[1]) : NULL;
    if (!op) {
        fprintf(stderr, "usage: operations NAME COUNT\n");
        gasnet_exit(2);
    }
    if (!strncmp(op->name, "atomic-", strlen("atomic-")))
        open_domains();
    if (!strcmp(op->name, "pair-put-nb-8"))
        open_pair(GEX_MK_HOST);
    if (!strcmp(op->name, "kind-put-nb-8"))
        open_kind_pair();
    (peer == 1 ? rank_0 : rank_1)(op, atol(argv[2]));
    gex_Coll_BarrierBlocking(tm, 0);
    gasnet_exit(0);
}
