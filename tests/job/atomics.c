/* SPDX-License-Identifier: BSD-3-Clause */
/* Remote atomics: queries, flags, categories of implicit operations, and the tests of the other
 * files of this program. One thread, except for hammer().
 *
 * Usage: atomics [TURNS] [client|MISTAKE]: with "client" segments are memory of the client's, which
 * neighbours can't map; a mistake is one of atomics_misuse.c. */
#include "config.h"

#include "atomics.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static gex_Rank_t peer;

static void *there(size_t offset)
{
    return job_remote(peer, offset);
}

/* ---- a domain is created and destroyed without the other members */

#if GASNET_DEBUG
static const bool is_debug = true;
#else
static const bool is_debug = false;
#endif
static gex_AM_Index_t go_index;
static volatile unsigned goes;

static void on_go(gex_Token_t token)
{
    (void)token;
    goes++;
}

static void register_go(void)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)on_go, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "go"}};
    CHECK(gex_EP_RegisterHandlers(job.ep, table, 1) == GASNET_OK);
    go_index = table[0].gex_index;
}

/* One rank after another creates the domain, adds to all and destroys it; the others only poll. It
 * runs before any other domain exists, so that devices connect meanwhile. Debug libraries compare
 * the arguments. */
static void one_after_another(void)
{
    gex_AD_t ad;
    uint64_t was;
    if (is_debug)
        return;
    job_phase("domains created by one rank after another");
    register_go();
    memset(job.base + CELLS, 0, 8);
    job_barrier();
    GASNET_BLOCKUNTIL(goes == (job.rank > 0));
    gex_AD_Create(&ad, job.tm, GEX_DT_U64, DEVICE_OPS, 0);
    for (gex_Rank_t r = 0; r < job.size; r++) {
        finish_event(gex_AD_OpNB_U64(ad, &was, r, job_remote(r, CELLS), GEX_OP_FADD, 1, 0, 0));
        CHECK(was == job.rank);
    }
    gex_AD_Destroy(ad);
    if (job.rank + 1 < job.size)
        gex_AM_RequestShort0(job.tm, job.rank + 1, go_index, 0);
    job_barrier();
}

static void queries(void)
{
    int data;
    gex_AD_t ad = GEX_AD_INVALID;
    gex_AD_Create(&ad, job.tm, GEX_DT_I64, GEX_OP_ADD | GEX_OP_GET, GEX_FLAG_AD_FAVOR_REMOTE);
    CHECK(ad != GEX_AD_INVALID);
    CHECK(gex_AD_QueryTM(ad) == job.tm && gex_AD_QueryDT(ad) == GEX_DT_I64);
    CHECK(gex_AD_QueryOps(ad) == (GEX_OP_ADD | GEX_OP_GET));
    CHECK(gex_AD_QueryFlags(ad) == GEX_FLAG_AD_FAVOR_REMOTE);
    CHECK(gex_AD_QueryCData(ad) == NULL);
    gex_AD_SetCData(ad, &data);
    CHECK(gex_AD_QueryCData(ad) == &data);
    gex_AD_Destroy(ad);
    /* Flags that mean nothing here are kept. */
    const gex_Flags_t unknown = GEX_FLAG_PEER_SEG_OFFSET | GEX_FLAG_AD_FAVOR_MY_RANK;
    gex_AD_Create(&ad, job.tm, GEX_DT_U32, GEX_OP_FADD, unknown);
    CHECK(gex_AD_QueryFlags(ad) == unknown);
    gex_AD_Destroy(ad);
}

/* Flags change nothing that one rank can see, except that an operation with IMMEDIATE may be
 * refused. */
static void flags(gex_AD_t ad)
{
    void *at = there(CELLS + CELL_SIZE * job.rank);
    gex_Flags_t each[] = {GEX_FLAG_AD_REL,
                          GEX_FLAG_AD_ACQ,
                          GEX_FLAG_AD_REL | GEX_FLAG_AD_ACQ,
                          GEX_FLAG_RANK_IS_JOBRANK,
                          GEX_FLAG_IMMEDIATE,
                          peer == job.rank         ? GEX_FLAG_AD_MY_RANK
                          : job_is_neighbour(peer) ? GEX_FLAG_AD_MY_NBRHD
                                                   : 0};
    uint64_t was, sum = 0;
    finish_event(gex_AD_OpNB_U64(ad, NULL, peer, at, GEX_OP_SET, 0, 0, GEX_FLAG_AD_REL));
    for (unsigned i = 0; i < sizeof each / sizeof each[0]; i++) {
        gex_Event_t event;
        while ((event = gex_AD_OpNB_U64(ad, &was, peer, at, GEX_OP_FADD, i + 1, 0, each[i])) ==
               GEX_EVENT_NO_OP) {
            CHECK(each[i] & GEX_FLAG_IMMEDIATE);
            gasnet_AMPoll();
        }
        gex_Event_Wait(event);
        CHECK(was == sum, "flags 0x%x: %llu, not %llu", each[i], (unsigned long long)was,
              (unsigned long long)sum);
        sum += i + 1;
        while (gex_AD_OpNBI_U64(ad, NULL, peer, at, GEX_OP_INC, 0, 0, each[i])) {
            CHECK(each[i] & GEX_FLAG_IMMEDIATE);
            gasnet_AMPoll();
        }
        gex_NBI_Wait(GEX_EC_RMW, 0);
        sum++;
    }
    finish_event(gex_AD_OpNB_U64(ad, &was, peer, at, GEX_OP_GET, 0, 0, GEX_FLAG_AD_REL));
    CHECK(was == sum);
}

/* Starts more than credits allow: the rest is refused and has no effect. */
static void immediate_until_refused(gex_AD_t ad)
{
    void *at = there(CELLS + CELL_SIZE * job.rank);
    uint64_t was;
    unsigned done = 0;
    finish_event(gex_AD_OpNB_U64(ad, NULL, peer, at, GEX_OP_SET, 0, 0, 0));
    for (int i = 0; i < 5000; i++)
        done += gex_AD_OpNBI_U64(ad, NULL, peer, at, GEX_OP_INC, 0, 0, GEX_FLAG_IMMEDIATE) == 0;
    gex_NBI_Wait(GEX_EC_ALL, 0);
    finish_event(gex_AD_OpNB_U64(ad, &was, peer, at, GEX_OP_GET, 0, 0, 0));
    CHECK(was == done, "%llu of %u operations", (unsigned long long)was, done);
}

static bool is_pending(gex_EC_t category)
{
    return gex_NBI_Test(category, 0) == GASNET_ERR_NOT_READY;
}

/* Answers are handled only when we poll, so the operations in flight are known. */
static void check_pending(gex_AD_t ad, gex_OP_t op, gex_EC_t category)
{
    static const gex_EC_t all[] = {GEX_EC_PUT, GEX_EC_GET, GEX_EC_RMW, GEX_EC_LC};
    uint64_t was = 77;
    void *at = there(CELLS + CELL_SIZE * job.rank);
    CHECK(gex_AD_OpNBI_U64(ad, &was, peer, at, op, 0, 0, 0) == 0);
    for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++)
        CHECK(is_pending(all[i]) == (all[i] == category),
              "operation 0x%x: category 0x%x, is pending: %d", op, all[i], is_pending(all[i]));
    gex_NBI_Wait(category, 0);
    CHECK(!is_pending(GEX_EC_ALL));
    CHECK(was == (op < GEX_OP_FAND ? 77 : 0));
}

static void check_leaves(gex_AD_t ad)
{
    uint64_t was = 77;
    void *at = there(CELLS + CELL_SIZE * job.rank);
    gex_NBI_BeginAccessRegion(0);
    CHECK(gex_AD_OpNBI_U64(ad, &was, peer, at, GEX_OP_FADD, 0, 0, 0) == 0);
    gex_Event_t root = gex_NBI_EndAccessRegion(0);
    CHECK(root != GEX_EVENT_INVALID);
    CHECK(!is_pending(GEX_EC_ALL));
    CHECK(gex_Event_Test(gex_Event_QueryLeaf(root, GEX_EC_PUT)) == GASNET_OK);
    CHECK(gex_Event_Test(gex_Event_QueryLeaf(root, GEX_EC_GET)) == GASNET_OK);
    CHECK(gex_Event_Test(gex_Event_QueryLeaf(root, GEX_EC_RMW)) == GASNET_ERR_NOT_READY);
    gex_Event_Wait(gex_Event_QueryLeaf(root, GEX_EC_RMW));
    CHECK(was == 0);
    gex_Event_Wait(root);
}

static void categories(gex_AD_t ad)
{
    const char *method = getenv("GASNET_AD_METHOD");
    finish_event(
        gex_AD_OpNB_U64(ad, NULL, peer, there(CELLS + CELL_SIZE * job.rank), GEX_OP_SET, 0, 0, 0));
    if (!method || strcmp(method, "message") != 0 || peer == job.rank)
        return;
    check_pending(ad, GEX_OP_SET, GEX_EC_PUT);
    check_pending(ad, GEX_OP_GET, GEX_EC_GET);
    check_pending(ad, GEX_OP_SWAP, GEX_EC_RMW);
    check_pending(ad, GEX_OP_FADD, GEX_EC_RMW);
    check_pending(ad, GEX_OP_CAS, GEX_EC_RMW);
    check_leaves(ad);
}

static void with_each_peer(void (*check)(gex_AD_t))
{
    gex_AD_t ad;
    gex_AD_Create(&ad, job.tm, GEX_DT_U64, DEVICE_OPS | GEX_OP_SET | GEX_OP_SWAP, 0);
    for (gex_Rank_t shift = 0; shift < job.size && shift < 4; shift++) {
        peer = (job.rank + shift) % job.size;
        check(ad);
    }
    gex_AD_Destroy(ad);
}

/* Teams of every other rank, in reverse order, with domains at the same time; then of all ranks, in
 * which each adds to each. */
static void in_team(gex_TM_t tm, size_t offset)
{
    gex_AD_t ad, also;
    gex_Rank_t size = gex_TM_QuerySize(tm);
    uint64_t was, sum = 0;
    memset(job.base + offset, 0, 8);
    gex_AD_Create(&ad, tm, GEX_DT_U64, DEVICE_OPS, 0);
    gex_AD_Create(&also, tm, GEX_DT_FLT, GEX_OP_FMAX, 0);
    gex_Coll_BarrierBlocking(tm, 0); /* all have set theirs to 0 */
    CHECK(gex_AD_QueryTM(ad) == tm);
    for (gex_Rank_t r = 0; r < size; r++) {
        gex_Rank_t jobrank = gex_TM_TranslateRankToJobrank(tm, r);
        void *at = job_remote(jobrank, offset);
        finish_event(gex_AD_OpNB_U64(ad, &was, r, at, GEX_OP_FADD, jobrank + 1, 0, 0));
        finish_event(gex_AD_OpNB_U64(ad, &was, jobrank, at, GEX_OP_FADD, jobrank + 1, 0,
                                     GEX_FLAG_RANK_IS_JOBRANK));
        sum += 2;
    }
    gex_Coll_BarrierBlocking(tm, 0); /* all have added */
    gex_AD_Destroy(also);
    gex_AD_Destroy(ad);
    CHECK(*(uint64_t *)(void *)(job.base + offset) == sum * (job.rank + 1));
}

static void teams(void)
{
    gex_TM_t half, all;
    job_phase("domains of other teams");
    gex_TM_Split(&half, job.tm, (int)(job.rank % 2), -(int)job.rank, NULL, 0,
                 GEX_FLAG_TM_NO_SCRATCH);
    gex_TM_Split(&all, job.tm, 0, (int)(job.rank * 7 % 5), NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    in_team(half, CELLS + 32);
    in_team(all, CELLS + 40);
    gex_TM_Destroy(all, NULL, 0);
    gex_TM_Destroy(half, NULL, 0);
}

/* Ranks that wait long check their connections for messages, and must not touch those that carry
 * only atomics of neighbours. */
static void wait_for_long(void)
{
    const char *method = getenv("GASNET_AD_METHOD");
    if (method && !strcmp(method, "device") && job.rank == 0)
        usleep(300000);
    job_barrier();
}

static void use_client_memory(void)
{
    gex_Segment_t segment;
    void *memory = aligned_alloc(GASNET_PAGESIZE, SEGMENT);
    CHECK(memory &&
          gex_Segment_Create(&segment, job.client, memory, SEGMENT, GEX_MK_HOST, 0) == GASNET_OK);
    CHECK(gex_EP_BindSegment(job.ep, segment, 0) == GASNET_OK);
    CHECK(gex_EP_PublishBoundSegment(job.tm, &job.ep, 1, 0) == GASNET_OK);
    job_use(segment);
}

int main(int argc, char **argv)
{
    unsigned turns = argc > 1 ? (unsigned)atoi(argv[1]) : 100;
    bool is_client = argc > 2 && !strcmp(argv[2], "client");
    job_start(&argc, &argv, is_client ? 0 : SEGMENT);
    if (is_client)
        use_client_memory();
    if (argc > 2 && !is_client) {
        make_mistake(argv[2]);
        job_end();
    }
    one_after_another();
    queries();
    teams();
    with_each_peer(flags);
    wait_for_long();
    with_each_peer(immediate_until_refused);
    with_each_peer(categories);
    check_types();
    hammer(turns);
    check_histories(turns);
    job_end();
}
