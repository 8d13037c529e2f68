/* SPDX-License-Identifier: BSD-3-Clause
 *
 * collectives CASE [SEED [ROUNDS]]: results of broadcasts and reductions against a serial model.
 *   random   seeded teams, kinds, types, sizes, roots and places of buffers, several at a time on
 *            several teams, synced in another order on each rank
 *   items    what the interface promises in particular (items 57, 58, 60, 62 of tests/rules.md)
 *   legacy   the collectives of GASNet-1
 *   sums     prints sums of doubles, whose last bits depend on the order of operands
 *   die      rank 1 is killed while all others wait in a collective
 *   wrong    a mistake, by the number in place of the seed, that ends the job
 * One client thread. */
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "gasnet_coll.h"
#include "job.h"

enum { TEAMS = 6, PENDING = 8, SEGMENT = 24 << 20, SLOT = 5 << 19, LARGE = 4 << 20 };

/* ---- teams */

static struct team {
    gex_TM_t tm;
    gex_Rank_t size, rank;
    gex_Rank_t *jobranks;
} teams[TEAMS];
static int team_count;

static void team_add(gex_TM_t tm)
{
    struct team *team = &teams[team_count++];
    team->tm = tm;
    team->size = gex_TM_QuerySize(tm);
    team->rank = gex_TM_QueryRank(tm);
    team->jobranks = job_memory(team->size * sizeof(*team->jobranks));
    for (gex_Rank_t r = 0; r < team->size; r++)
        team->jobranks[r] = gex_TM_TranslateRankToJobrank(tm, r);
}

/* Every rank is in one of the two or three teams of each split, whose members have a random
 * order. */
static void make_teams(uint64_t seed)
{
    team_add(job.tm);
    for (int i = 1; i < TEAMS; i++) {
        uint64_t mine = job_mix(seed + (uint64_t)i, job.rank);
        gex_TM_t tm;
        gex_TM_Split(&tm, job.tm, (int)(mine % (1 + (unsigned)i / 2)), (int)(mine >> 40), NULL, 0,
                     GEX_FLAG_TM_NO_SCRATCH);
        team_add(tm);
    }
}

/* ---- the model */

enum kind { BARRIER, BROADCAST, TO_ONE, TO_ALL, KINDS };
enum type { I32, U32, I64, U64, FLT, DBL, USER, TYPES };

static const gex_DT_t dts[TYPES] = {GEX_DT_I32, GEX_DT_U32, GEX_DT_I64, GEX_DT_U64,
                                    GEX_DT_FLT, GEX_DT_DBL, GEX_DT_USER};
static const gex_OP_t ops[] = {GEX_OP_ADD, GEX_OP_MULT, GEX_OP_MIN, GEX_OP_MAX,
                               GEX_OP_AND, GEX_OP_OR,   GEX_OP_XOR, GEX_OP_USER};
enum { OPS = sizeof ops / sizeof ops[0], FLOAT_OPS = 4 };

struct call {
    enum kind kind;
    enum type type;
    gex_OP_t op;
    size_t element, count; /* broadcast: 1, bytes */
    gex_Rank_t root;
    const struct team *team;
    uint64_t seed;
    char *src, *dst;
    gex_Event_t event;
};

/* The value of element i of a rank, small enough for exact products of floating point numbers. */
static uint64_t value_of(const struct call *call, gex_Rank_t jobrank, size_t i)
{
    uint64_t value = job_mix(call->seed + jobrank, i);
    return call->type == FLT || call->type == DBL ? value % 4 : value;
}

static void store(const struct call *call, char *at, uint64_t value)
{
    switch (call->type) {
    case I32:
    case U32:
        memcpy(at, &(uint32_t){(uint32_t)value}, 4);
        break;
    case I64:
    case U64:
        memcpy(at, &value, 8);
        break;
    case FLT:
        memcpy(at, &(float){(float)value}, 4);
        break;
    case DBL:
        memcpy(at, &(double){(double)value}, 8);
        break;
    default:
        for (size_t b = 0; b < call->element; b++)
            at[b] = (char)(value >> b % 8 * 8);
    }
}

/* The client's function, which adds bytes. */
static void add_bytes(const void *arg1, void *arg2_and_out, size_t count, const void *cdata)
{
    const unsigned char *x = arg1;
    unsigned char *y = arg2_and_out;
    CHECK(count > 0);
    for (size_t b = 0; b < count * *(const size_t *)cdata; b++)
        y[b] = (unsigned char)(x[b] + y[b]);
}

#define FOLD(TYPE, UNSIGNED)                                                                       \
    do {                                                                                           \
        TYPE a, b;                                                                                 \
        memcpy(&a, x, sizeof a);                                                                   \
        memcpy(&b, y, sizeof b);                                                                   \
        switch (op) {                                                                              \
        case GEX_OP_ADD:                                                                           \
            b = (TYPE)((UNSIGNED)a + (UNSIGNED)b);                                                 \
            break;                                                                                 \
        case GEX_OP_MULT:                                                                          \
            b = (TYPE)((UNSIGNED)a * (UNSIGNED)b);                                                 \
            break;                                                                                 \
        case GEX_OP_MIN:                                                                           \
            b = a < b ? a : b;                                                                     \
            break;                                                                                 \
        case GEX_OP_MAX:                                                                           \
            b = a > b ? a : b;                                                                     \
            break;                                                                                 \
        case GEX_OP_AND:                                                                           \
            b = (TYPE)((uint64_t)a & (uint64_t)b);                                                 \
            break;                                                                                 \
        case GEX_OP_OR:                                                                            \
            b = (TYPE)((uint64_t)a | (uint64_t)b);                                                 \
            break;                                                                                 \
        default:                                                                                   \
            b = (TYPE)((uint64_t)a ^ (uint64_t)b);                                                 \
            break;                                                                                 \
        }                                                                                          \
        memcpy(y, &b, sizeof b);                                                                   \
    } while (0)

static void fold(const struct call *call, const char *x, char *y)
{
    gex_OP_t op = call->op;
    if (op == GEX_OP_USER) {
        add_bytes(x, y, 1, &call->element);
        return;
    }
    switch (call->type) {
    case I32:
        FOLD(int32_t, uint32_t);
        break;
    case U32:
        FOLD(uint32_t, uint32_t);
        break;
    case I64:
        FOLD(int64_t, uint64_t);
        break;
    case U64:
        FOLD(uint64_t, uint64_t);
        break;
    case FLT:
        FOLD(float, float);
        break;
    default:
        FOLD(double, double);
        break;
    }
}

static void check_reduced(const struct call *call)
{
    char *expected = job_memory(2 * call->element), *operand = expected + call->element;
    const struct team *team = call->team;
    for (size_t i = 0; i < call->count; i++) {
        store(call, expected, value_of(call, team->jobranks[0], i));
        for (gex_Rank_t r = 1; r < team->size; r++) {
            store(call, operand, value_of(call, team->jobranks[r], i));
            fold(call, operand, expected);
        }
        CHECK(!memcmp(call->dst + i * call->element, expected, call->element),
              "element %zu of %zu (%zu bytes each, type %d, op 0x%x) of team %u of %u", i,
              call->count, call->element, call->type, (unsigned)call->op, team->rank, team->size);
    }
    free(expected);
}

static void check(const struct call *call)
{
    bool is_root = call->root == call->team->rank;
    if (call->kind == BROADCAST)
        CHECK_PATTERN(call->dst, call->count, call->seed);
    else if (call->kind == TO_ALL || (call->kind == TO_ONE && is_root))
        check_reduced(call);
}

/* ---- random calls */

static size_t random_size(uint64_t *state)
{
    uint64_t dice = job_random(state) % 100;
    if (dice < 4)
        return job_random(state) % LARGE;
    if (dice < 20)
        return job_random(state) % 200000;
    return dice < 50 ? job_random(state) % 10000 : job_random(state) % 100;
}

/* All members draw the same call, but different addresses of buffers. */
static struct call draw(uint64_t seed)
{
    uint64_t state = seed;
    struct call call = {.seed = seed, .element = 1};
    call.team = &teams[job_random(&state) % (unsigned)team_count];
    call.kind = (enum kind)(job_random(&state) % KINDS);
    call.root = (gex_Rank_t)(job_random(&state) % call.team->size);
    call.count = random_size(&state);
    if (call.kind < TO_ONE)
        return call;
    static const size_t sizes[TYPES] = {4, 4, 8, 8, 4, 8, 0}, users[] = {1, 3, 24, 1000, 40000};
    call.type = (enum type)(job_random(&state) % TYPES);
    call.element = call.type == USER ? users[job_random(&state) % 5] : sizes[call.type];
    call.op = ops[job_random(&state) % (call.type < FLT ? OPS : FLOAT_OPS)];
    if (call.type == USER)
        call.op = GEX_OP_USER;
    call.count = 1 + call.count / call.element;
    return call;
}

static void place(struct call *call, int slot, bool in_place)
{
    size_t size = call->count * call->element;
    bool in_segment = size <= SLOT && job_mix(call->seed, job.rank + 1000) % 2;
    call->dst = in_segment ? job.base + (size_t)slot * SLOT : job_memory(size + 1);
    call->src = in_place ? call->dst : job_memory(size + 1);
    if (call->kind == BROADCAST && call->root == call->team->rank)
        job_fill(call->src, call->count, call->seed);
    for (size_t i = 0; call->kind >= TO_ONE && i < call->count; i++)
        store(call, call->src + i * call->element, value_of(call, job.rank, i));
}

static void drop(struct call *call)
{
    if (call->src != call->dst)
        free(call->src);
    if (call->dst < job.base || call->dst >= job.base + job.segment_size)
        free(call->dst);
}

static void start(struct call *call)
{
    gex_TM_t tm = call->team->tm;
    bool is_root = call->root == call->team->rank;
    if (call->kind == BARRIER)
        call->event = gex_Coll_BarrierNB(tm, 0);
    else if (call->kind == BROADCAST)
        call->event = gex_Coll_BroadcastNB(tm, call->root, call->dst, is_root ? call->src : NULL,
                                           call->count, 0);
    else if (call->kind == TO_ONE)
        call->event = gex_Coll_ReduceToOneNB(tm, call->root, is_root ? call->dst : NULL, call->src,
                                             dts[call->type], call->element, call->count, call->op,
                                             add_bytes, &call->element, 0);
    else
        call->event =
            gex_Coll_ReduceToAllNB(tm, call->dst, call->src, dts[call->type], call->element,
                                   call->count, call->op, add_bytes, &call->element, 0);
}

static void one_round(uint64_t seed)
{
    static struct call calls[PENDING];
    uint64_t mine = job_mix(seed, job.rank + 7);
    int count = 1 + (int)(seed % PENDING), left = count;
    for (int i = 0; i < count; i++) {
        calls[i] = draw(job_mix(seed, (uint64_t)i));
        place(&calls[i], i, job_mix(seed, (uint64_t)i + 100) % 3 == 0);
        start(&calls[i]);
        if (job_random(&mine) % 2)
            gasnet_AMPoll();
    }
    bool synced[PENDING] = {false};
    while (left > 0) {
        int i = (int)(job_random(&mine) % (unsigned)count);
        if (synced[i])
            continue;
        gex_Event_Wait(calls[i].event);
        check(&calls[i]);
        drop(&calls[i]);
        synced[i] = true;
        left--;
    }
}

static void case_random(uint64_t seed, long rounds)
{
    make_teams(seed);
    for (long i = 0; i < rounds; i++) {
        job_phase("round %ld of seed %" PRIu64, i, seed);
        one_round(job_mix(seed, (uint64_t)i));
    }
}

/* ---- items */

static void poll_until_done(gex_Event_t *events, size_t count)
{
    while (gex_Event_TestAll(events, count, 0) != GASNET_OK)
        gasnet_AMPoll();
}

/* Item 57: polls of any kind complete collectives: a rank that never syncs polls for a message,
 * which another rank sends when its own collectives are over. */
static volatile int finished;
static gex_AM_Index_t finished_index;

static void on_finished(gex_Token_t token)
{
    (void)token;
    finished++;
}

static void progress_without_sync(void)
{
    enum { COUNT = 5 };
    static uint32_t in[COUNT][3000], out[COUNT][3000];
    gex_Event_t events[COUNT];
    for (uint32_t c = 0; c < COUNT; c++) {
        for (uint32_t i = 0; i < 3000; i++)
            in[c][i] = c + i + job.rank;
        events[c] = gex_Coll_ReduceToAllNB(job.tm, out[c], in[c], GEX_DT_U32, 4, 3000, GEX_OP_ADD,
                                           NULL, NULL, 0);
    }
    if (job.rank == 0) {
        poll_until_done(events, COUNT);
        for (gex_Rank_t r = 1; r < job.size; r++)
            gex_AM_RequestShort0(job.tm, r, finished_index, 0);
    } else {
        GASNET_BLOCKUNTIL(finished == 1);
    }
    gex_Event_WaitAll(events, COUNT, 0);
    for (uint32_t c = 0; c < COUNT; c++)
        for (uint32_t i = 0; i < 3000; i++)
            CHECK(out[c][i] == job.size * (c + i) + job.size * (job.size - 1) / 2);
}

/* Item 58, and the promise of a barrier: no rank leaves before all have entered. */
static void many_barriers(gex_TM_t tm)
{
    enum { COUNT = 20 };
    gex_Event_t events[COUNT];
    for (int i = 0; i < COUNT; i++)
        events[i] = gex_Coll_BarrierNB(tm, 0);
    for (int i = COUNT; i-- > 0;)
        gex_Event_Wait(events[i]);
}

static void barrier_holds(gex_TM_t tm)
{
    if (job.size == 1)
        return;
    gex_Rank_t late = gex_TM_QuerySize(tm) - 1;
    if (gex_TM_QueryRank(tm) == late) {
        usleep(30000);
        gex_RMA_PutBlocking(job.tm, 0, job_remote(0, 0), &(int){1}, sizeof(int), 0);
    }
    gex_Coll_BarrierBlocking(tm, 0);
    int seen = 0;
    gex_RMA_GetBlocking(job.tm, &seen, 0, job_remote(0, 0), sizeof seen, 0);
    CHECK(seen == 1, "a rank left a barrier that another had not entered");
    gex_Coll_BarrierBlocking(tm, 0);
    if (job.rank == 0)
        *(int *)(void *)job.base = 0;
    gex_Coll_BarrierBlocking(tm, 0);
}

/* Item 60. */
static void large_elements(const struct team *team)
{
    for (gex_Rank_t root = 0; root < team->size; root++) {
        struct call call = {.kind = root % 2 ? TO_ALL : TO_ONE,
                            .type = USER,
                            .op = GEX_OP_USER,
                            .element = 50000 + root,
                            .count = 3,
                            .root = root,
                            .team = team,
                            .seed = root};
        place(&call, 0, false);
        start(&call);
        gex_Event_Wait(call.event);
        check(&call);
        drop(&call);
    }
}

/* Item 62. */
static void nothing_and_in_place(const struct team *team)
{
    char byte = 'x';
    gex_Event_Wait(gex_Coll_BroadcastNB(team->tm, team->size - 1, &byte, &byte, 0, 0));
    CHECK(byte == 'x');
    for (size_t count = 1; count < 300000; count *= 17)
        for (int kind = BROADCAST; kind < KINDS; kind++) {
            struct call call = {.kind = (enum kind)kind,
                                .type = U64,
                                .op = GEX_OP_ADD,
                                .element = kind == BROADCAST ? 1 : 8,
                                .count = count,
                                .root = (gex_Rank_t)(count % team->size),
                                .team = team,
                                .seed = count};
            place(&call, 0, true);
            start(&call);
            gex_Event_Wait(call.event);
            check(&call);
            drop(&call);
        }
}

static void case_items(uint64_t seed, long rounds)
{
    (void)rounds;
    gex_AM_Entry_t entry = {
        0, (gex_AM_Fn_t)on_finished, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL};
    CHECK(gex_EP_RegisterHandlers(job.ep, &entry, 1) == GASNET_OK);
    finished_index = entry.gex_index;
    make_teams(seed);
    job_barrier();
    job_phase("progress without sync");
    progress_without_sync();
    for (int t = 0; t < 2; t++) {
        job_phase("barriers of team %d", t);
        many_barriers(teams[t].tm);
        barrier_holds(teams[t].tm);
    }
    for (int t = 0; t < team_count; t++) {
        job_phase("large elements in team %d", t);
        large_elements(&teams[t]);
        job_phase("in place in team %d", t);
        nothing_and_in_place(&teams[t]);
    }
}

/* ---- GASNet-1 */

static char *blocks(size_t nbytes, gex_Rank_t from)
{
    char *memory = job_memory(nbytes * job.size + 1);
    for (gex_Rank_t r = 0; r < job.size; r++)
        job_fill(memory + r * nbytes, nbytes, job_mix(from, r));
    return memory;
}

static void legacy_with(size_t nbytes, gasnet_image_t root, int flags)
{
    gasnet_team_handle_t all = GASNET_TEAM_ALL;
    char *src = blocks(nbytes, job.rank), *dst = job_memory(nbytes * job.size + 1);
    char *own = src + job.rank * nbytes;
    gasnet_coll_broadcast(all, dst, root, src, nbytes, flags);
    CHECK_PATTERN(dst, nbytes, job_mix(root, 0));
    gasnet_coll_scatter(all, dst, root, src, nbytes, flags);
    CHECK_PATTERN(dst, nbytes, job_mix(root, job.rank));
    gasnet_coll_gather(all, root, dst, own, nbytes, flags);
    for (gex_Rank_t r = 0; job.rank == root && r < job.size; r++)
        CHECK_PATTERN(dst + r * nbytes, nbytes, job_mix(r, r));
    gasnet_coll_gather_all(all, dst, own, nbytes, flags);
    for (gex_Rank_t r = 0; r < job.size; r++)
        CHECK_PATTERN(dst + r * nbytes, nbytes, job_mix(r, r));
    gasnet_coll_exchange(all, dst, src, nbytes, flags);
    for (gex_Rank_t r = 0; r < job.size; r++)
        CHECK_PATTERN(dst + r * nbytes, nbytes, job_mix(r, job.rank));
    free(src);
    free(dst);
}

static void legacy_handles(size_t nbytes, int flags)
{
    gasnet_team_handle_t all = GASNET_TEAM_ALL;
    enum { COUNT = 5 };
    char *src = blocks(nbytes, job.rank), *dst[COUNT];
    for (int i = 0; i < COUNT; i++)
        dst[i] = job_memory(nbytes * job.size + 1);
    gasnet_coll_handle_t h[COUNT] = {gasnet_coll_broadcast_nb(all, dst[0], 0, src, nbytes, flags),
                                     gasnet_coll_scatter_nb(all, dst[1], 0, src, nbytes, flags),
                                     gasnet_coll_gather_nb(all, 0, dst[2], src, nbytes, flags),
                                     gasnet_coll_gather_all_nb(all, dst[3], src, nbytes, flags),
                                     gasnet_coll_exchange_nb(all, dst[4], src, nbytes, flags)};
    while (gasnet_coll_try_sync(h[4]) == GASNET_ERR_NOT_READY)
        continue;
    h[4] = GASNET_COLL_INVALID_HANDLE;
    gasnet_coll_wait_sync(h[1]);
    h[1] = GASNET_COLL_INVALID_HANDLE;
    gasnet_coll_wait_sync_some(h, COUNT);
    while (gasnet_coll_try_sync_some(h, COUNT) != GASNET_OK ||
           gasnet_coll_try_sync_all(h, COUNT) != GASNET_OK)
        continue;
    gasnet_coll_wait_sync_all(h, COUNT);
    CHECK_PATTERN(dst[0], nbytes, job_mix(0, 0));
    CHECK_PATTERN(dst[1], nbytes, job_mix(0, job.rank));
    for (gex_Rank_t r = 0; r < job.size; r++) {
        if (job.rank == 0)
            CHECK_PATTERN(dst[2] + r * nbytes, nbytes, job_mix(r, 0));
        CHECK_PATTERN(dst[3] + r * nbytes, nbytes, job_mix(r, 0));
        CHECK_PATTERN(dst[4] + r * nbytes, nbytes, job_mix(r, job.rank));
    }
    for (int i = 0; i < COUNT; i++)
        free(dst[i]);
    free(src);
}

static void legacy_barrier(void)
{
    gasnet_team_handle_t all = GASNET_TEAM_ALL;
    int id = 0;
    gasnet_coll_barrier_notify(all, 7, 0);
    CHECK(gasnet_coll_barrier_wait(all, 7, 0) == GASNET_OK);
    CHECK(gasnet_coll_barrier_result(all, &id) == 0 && id == 7);
    CHECK(gasnet_coll_barrier(all, (int)job.rank, 0) ==
          (job.size > 1 ? GASNET_ERR_BARRIER_MISMATCH : GASNET_OK));
    gasnet_coll_barrier_notify(all, 0, GASNET_BARRIERFLAG_ANONYMOUS);
    while (gasnet_coll_barrier_try(all, 0, GASNET_BARRIERFLAG_ANONYMOUS) == GASNET_ERR_NOT_READY)
        continue;
}

static void case_legacy(uint64_t seed, long rounds)
{
    static const size_t sizes[] = {0, 1, 8, 1000, 9000, 100000};
    static const int modes[] = {GASNET_COLL_IN_NOSYNC | GASNET_COLL_OUT_NOSYNC,
                                GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC,
                                GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_ALLSYNC};
    (void)seed, (void)rounds;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        job_phase("blocks of %zu bytes", sizes[i]);
        legacy_with(sizes[i], (gasnet_image_t)(i % job.size), modes[i % 3] | GASNET_COLL_LOCAL);
        legacy_handles(sizes[i], modes[(i + 1) % 3] | GASNET_COLL_LOCAL);
    }
    legacy_barrier();
    gasnet_coll_dumpTuningState((char *)"x", GASNET_TEAM_ALL);
    gasnet_coll_dumpProfile((char *)"x", GASNET_TEAM_ALL);
}

/* ---- the order of operands */

static void case_sums(uint64_t seed, long rounds)
{
    static double in[40000], out[40000];
    static const size_t counts[] = {1, 300, 40000};
    (void)rounds;
    for (size_t i = 0; i < 40000; i++)
        in[i] = 1.0 / (double)(1 + job_mix(seed + job.rank, i) % 1000003);
    for (int c = 0; c < 3; c++)
        for (int all = 0; all < 2; all++) {
            uint64_t digest = 0;
            gex_Rank_t root = job.size / 2;
            gex_Event_Wait(all ? gex_Coll_ReduceToAllNB(job.tm, out, in, GEX_DT_DBL, 8, counts[c],
                                                        GEX_OP_ADD, NULL, NULL, 0)
                               : gex_Coll_ReduceToOneNB(job.tm, root, out, in, GEX_DT_DBL, 8,
                                                        counts[c], GEX_OP_ADD, NULL, NULL, 0));
            for (size_t i = 0; i < counts[c]; i++) {
                uint64_t bits;
                memcpy(&bits, &out[i], sizeof bits);
                digest = job_mix(digest, bits);
            }
            if (job.rank == root)
                printf("sum %zu %d %016" PRIx64 "\n", counts[c], all, digest);
        }
}

/* ---- death */

static void case_die(uint64_t seed, long rounds)
{
    static uint64_t in[1000], out[1000];
    (void)seed, (void)rounds;
    job_barrier();
    if (job.rank == 1) {
        usleep(20000);
        kill(getpid(), SIGKILL);
    }
    gex_Event_Wait(
        gex_Coll_ReduceToAllNB(job.tm, out, in, GEX_DT_U64, 8, 1000, GEX_OP_ADD, NULL, NULL, 0));
    CHECK(0, "a collective ended without one of its members");
}

/* ---- mistakes */

static void reduce_wrongly(gex_DT_t dt, size_t element, size_t count, gex_OP_t op)
{
    static char memory[64];
    gex_Event_Wait(
        gex_Coll_ReduceToAllNB(job.tm, memory, memory, dt, element, count, op, NULL, NULL, 0));
}

static void case_wrong(uint64_t which, long rounds)
{
    static char memory[200];
    gex_TM_t pair = gex_TM_Pair(job.ep, 0);
    (void)rounds;
    if (which < 2 && job.rank == which)
        usleep(30000); /* the message waits for its receive, or the other way round */
    switch (which) {
    case 0:
    case 1:
        gex_Event_Wait(gex_Coll_BroadcastNB(job.tm, 0, memory, memory, 50 + job.rank, 0));
        break;
    case 2:
        reduce_wrongly(GEX_DT_FLT, 4, 1, GEX_OP_XOR);
        break;
    case 3:
        reduce_wrongly(GEX_DT_U64, 4, 1, GEX_OP_ADD);
        break;
    case 4:
        reduce_wrongly(GEX_DT_U64, 8, 0, GEX_OP_ADD);
        break;
    case 5:
        reduce_wrongly(GEX_DT_USER, 8, 1, GEX_OP_USER);
        break;
    case 6:
        gex_Event_Wait(gex_Coll_BroadcastNB(job.tm, job.size, memory, memory, 1, 0));
        break;
    case 7:
        reduce_wrongly(GEX_DT_U64, 8, SIZE_MAX / 8 + 2, GEX_OP_ADD); /* wraps to 8 bytes */
        break;
    default:
        gex_Event_Wait(gex_Coll_BroadcastNB(pair, 0, memory, memory, 1, 0));
        break;
    }
    if (job.rank == 0)
        pause(); /* the root may be done: others find out */
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(uint64_t seed, long rounds);
    } cases[] = {{"random", case_random}, {"items", case_items}, {"legacy", case_legacy},
                 {"sums", case_sums},     {"die", case_die},     {"wrong", case_wrong}};
    const char *which = argc > 1 ? argv[1] : "";
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    long rounds = argc > 3 ? atol(argv[3]) : 20;
    job_start(&argc, &argv, SEGMENT);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        if (!strcmp(which, cases[i].name)) {
            job_phase("%s", which);
            cases[i].run(seed, rounds);
            job_end();
        }
    CHECK(0, "there is no case '%s'", which);
}
