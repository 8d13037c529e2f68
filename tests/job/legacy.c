/* SPDX-License-Identifier: BSD-3-Clause */
/* GASNet-1: start-up and its errors, information about nodes and segments, locks, the objects
 * behind the interface, and calls of both interfaces side by side (legacy_am.c and legacy_rma.c
 * have the rest). usage: legacy [SCENARIO], one of all, slow, fills, duplicate, low, null,
 * small, ex, exit, count, unflagged, outside. Owned by the one client thread. */
#include "config.h"

#include "legacy.h"

#include <stdio.h>
#include <string.h>

static gasnet_seginfo_t *segments;

char *legacy_slot(gasnet_node_t node, size_t offset)
{
    CHECK(offset <= SLOT);
    return (char *)segments[node].addr + job.rank * (size_t)SLOT + offset;
}

char *legacy_my_slot(gasnet_node_t from)
{
    return job.base + from * (size_t)SLOT;
}

void legacy_barrier(void)
{
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    CHECK(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS) == GASNET_OK);
}

/* ---- start-up */

static void expect_attach(int status, gasnet_handlerentry_t *table, int count, uintptr_t size)
{
    int got = gasnet_attach(table, count, size, 0);

    CHECK(got == status, "%s, not %s", gasnet_ErrorName(got), gasnet_ErrorName(status));
}

/* What job.h's helpers want to know. */
static void fill_job(void)
{
    gasnet_QueryGexObjects(&job.client, &job.ep, &job.tm, &job.segment);
    job.rank = gasnet_mynode();
    job.size = gasnet_nodes();
    CHECK(gasnet_getSegmentInfo(segments = job_memory(job.size * sizeof *segments),
                                (int)job.size) == GASNET_OK);
    job.base = segments[job.rank].addr;
    job.segment_size = segments[job.rank].size;
}

static void item_39_attach_errors(void)
{
    uintptr_t most = gasnet_getMaxLocalSegmentSize();

    gex_System_SetVerboseErrors(0);
    expect_attach(GASNET_ERR_BAD_ARG, NULL, 0, GASNET_PAGESIZE + 1);
    expect_attach(GASNET_ERR_BAD_ARG, NULL, 0,
                  most / GASNET_PAGESIZE * GASNET_PAGESIZE + GASNET_PAGESIZE);
    expect_attach(GASNET_ERR_BAD_ARG, NULL, -1, GASNET_PAGESIZE);
    if (gasnet_mynode() == 0) /* the others must not hang */
        expect_attach(GASNET_ERR_BAD_ARG, NULL, 0, 1);
    else
        expect_attach(GASNET_ERR_RESOURCE, NULL, 0, GASNET_PAGESIZE);
    gex_System_SetVerboseErrors(1);
}

/* Sizes may differ between ranks. */
static void attach(void)
{
    int count;
    gasnet_handlerentry_t *table = legacy_am_table(&count);
    uintptr_t size = SEGMENT + gasnet_mynode() * (uintptr_t)GASNET_PAGESIZE;

    expect_attach(GASNET_OK, table, count, size);
    fill_job();
    for (gasnet_node_t r = 0; r < job.size; r++) {
        CHECK(segments[r].size == SEGMENT + r * (uintptr_t)GASNET_PAGESIZE);
        CHECK(segments[r].addr && (uintptr_t)segments[r].addr % GASNET_PAGESIZE == 0);
    }
    gex_System_SetVerboseErrors(0);
    expect_attach(GASNET_ERR_NOT_INIT, NULL, 0, GASNET_PAGESIZE);
    gex_System_SetVerboseErrors(1);
}

/* ---- information */

static void segment_and_node_info(void)
{
    gasnet_seginfo_t two[2] = {{NULL, 1}, {NULL, 1}};
    gasnet_nodeinfo_t *nodes = job_memory(job.size * sizeof *nodes);
    gex_Rank_t hosts, my_host, nbrhds, my_nbrhd;

    CHECK(gasnet_getSegmentInfo(two, 1) == GASNET_OK);
    CHECK(two[0].addr == segments[0].addr && two[1].addr == NULL && two[1].size == 1);
    CHECK(gasnet_getSegmentInfo(NULL, 0) == GASNET_OK && gasnet_getNodeInfo(NULL, 0) == GASNET_OK);
    gex_System_SetVerboseErrors(0);
    CHECK(gasnet_getSegmentInfo(two, -1) == GASNET_ERR_BAD_ARG);
    CHECK(gasnet_getNodeInfo(nodes, -1) == GASNET_ERR_BAD_ARG);
    gex_System_SetVerboseErrors(1);
    CHECK(gasnet_getNodeInfo(nodes, (int)job.size + 1) == GASNET_OK);
    gex_System_QueryMyPosition(&nbrhds, &my_nbrhd, &hosts, &my_host);
    CHECK(nodes[job.rank].host == my_host && nodes[job.rank].supernode == my_nbrhd);
    CHECK(nodes[0].host == 0 && nodes[0].supernode == 0);
    for (gasnet_node_t r = 0; r < job.size; r++)
        CHECK(nodes[r].host < hosts && nodes[r].supernode < nbrhds, "rank %u", (unsigned)r);
}

static void versions_and_limits(void)
{
    CHECK(GASNET_SPEC_VERSION_MAJOR == 1 && GASNET_SPEC_VERSION_MINOR == 8 && GASNET_VERSION == 1);
    CHECK(SIZEOF_GASNET_REGISTER_VALUE_T == sizeof(gasnet_register_value_t));
    CHECK(sizeof(gasnet_memvec_t) == sizeof(void *) + sizeof(size_t));
    CHECK(gasnet_AMMaxArgs() == 16);
    CHECK(gasnet_AMMaxMedium() >= 512 && gasnet_AMMaxMedium() <= gex_AM_LUBReplyMedium());
    CHECK(gasnet_AMMaxLongRequest() == gex_AM_LUBRequestLong());
    CHECK(gasnet_AMMaxLongReply() == gex_AM_LUBReplyLong());
    CHECK(gasnet_set_waitmode(GASNET_WAIT_BLOCK) == GASNET_OK);
    CHECK(gasnet_set_waitmode(GASNET_WAIT_SPIN) == GASNET_OK);
}

static void locks(void)
{
    static gasnet_hsl_t fixed = GASNET_HSL_INITIALIZER;
    gasnet_hsl_t made;

    gasnet_hsl_init(&made);
    gasnet_hold_interrupts();
    gasnet_hsl_lock(&fixed);
    CHECK(gasnet_hsl_trylock(&made) == GASNET_OK);
    gasnet_hsl_unlock(&made);
    gasnet_hsl_unlock(&fixed);
    gasnet_resume_interrupts();
    CHECK(gasnet_hsl_trylock(&fixed) == GASNET_OK);
    gasnet_hsl_unlock(&fixed);
    gasnet_hsl_destroy(&made);
}

/* ---- both interfaces */

static unsigned ex_came;

static void on_ex(gex_Token_t token)
{
    gasnet_node_t from;

    CHECK(gasnet_AMGetMsgSource(token, &from) == GASNET_OK && from < job.size);
    ex_came++;
}

static void both_interfaces(void)
{
    gex_AM_Entry_t entry = {
        0, (gex_AM_Fn_t)on_ex, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "ex"};
    gasnet_node_t next = (job.rank + 1) % job.size;
    uint32_t word = job.rank, back = 0;
    gasnet_handle_t both[2];

    job_phase("both interfaces");
    gasnet_QueryGexObjects(NULL, NULL, NULL, NULL);
    CHECK(gex_EP_QuerySegment(job.ep) == job.segment && gex_TM_QueryEP(job.tm) == job.ep);
    CHECK(gex_Client_QueryFlags(job.client) & GEX_FLAG_USES_GASNET1);
    CHECK(gex_TM_QueryRank(job.tm) == gasnet_mynode() &&
          gex_TM_QuerySize(job.tm) == gasnet_nodes());
    CHECK(gex_Segment_QueryAddr(job.segment) == job.base);
    CHECK(gex_EP_RegisterHandlers(job.ep, &entry, 1) == GASNET_OK);
    legacy_barrier();
    gasnet_AMRequestShort0(next, entry.gex_index); /* one's handler, the other's request */
    gex_RMA_PutBlocking(job.tm, next, legacy_slot(next, 0), &word, sizeof word, 0);
    both[0] = gasnet_get_nb(&back, next, legacy_slot(next, 0), sizeof back);
    both[1] = gex_Coll_BarrierNB(job.tm, 0);
    gex_Event_WaitAll(both, 2, 0);
    CHECK(back == job.rank);
    GASNET_BLOCKUNTIL(ex_came == 1);
    legacy_barrier();
}

/* ---- scenarios that end here */

static void nothing(gasnet_token_t token)
{
    (void)token;
}

/* Rank 0 has bad handlers; the others must not hang. */
static void bad_handlers(const char *scenario)
{
    gasnet_handlerentry_t duplicate[] = {{200, (gex_AM_Fn_t)nothing}, {200, (gex_AM_Fn_t)nothing}};
    gasnet_handlerentry_t low[] = {{127, (gex_AM_Fn_t)nothing}};
    gasnet_handlerentry_t null[] = {{201, NULL}};
    int is_first = gasnet_mynode() == 0;
    int status = is_first ? GASNET_ERR_RESOURCE : GASNET_OK;

    gex_System_SetVerboseErrors(0);
    if (!strcmp(scenario, "duplicate"))
        expect_attach(status, duplicate, is_first ? 2 : 1, GASNET_PAGESIZE);
    else if (!strcmp(scenario, "low"))
        expect_attach(status, low, is_first, GASNET_PAGESIZE);
    else
        expect_attach(status, null, is_first, GASNET_PAGESIZE);
    fill_job();
}

static void no_table_and_no_size(void)
{
    expect_attach(GASNET_OK, NULL, 5, 0);
    fill_job();
    for (gasnet_node_t r = 0; r < job.size; r++)
        CHECK(segments[r].size == GASNET_PAGESIZE);
}

/* Starts by gex_Client_Init(); legacy calls work after that. */
static void ex_start(int *argc, char ***argv)
{
    uint64_t seen = 0;

    CHECK(gex_Client_Init(&job.client, &job.ep, &job.tm, "lower-case ok?", argc, argv,
                          GEX_FLAG_USES_GASNET1) == GASNET_OK);
    CHECK(gex_Segment_Attach(&job.segment, job.tm, SEGMENT) == GASNET_OK);
    fill_job();
    gasnet_put_val((job.rank + 1) % job.size, legacy_slot((job.rank + 1) % job.size, 0),
                   job.rank + 1, sizeof seen);
    legacy_barrier();
    memcpy(&seen, legacy_my_slot((job.rank + job.size - 1) % job.size), sizeof seen);
    CHECK(seen == (job.rank + job.size - 1) % job.size + 1);
}

/* What ends the job. */
static void mistakes(const char *scenario, int *argc, char ***argv)
{
    int flagged = strcmp(scenario, "unflagged") != 0;

    CHECK(gex_Client_Init(&job.client, &job.ep, &job.tm, "MISTAKEN", argc, argv,
                          flagged ? GEX_FLAG_USES_GASNET1 : 0) == GASNET_OK);
    CHECK(gex_Segment_Attach(&job.segment, job.tm, SEGMENT) == GASNET_OK);
    fill_job();
    if (!strcmp(scenario, "count"))
        gasnet_AMRequestShort(0, 200, 1, 1, 2);
    if (!strcmp(scenario, "unflagged"))
        gasnet_put(0, legacy_slot(0, 0), legacy_slot(0, 8), 8);
    if (!strcmp(scenario, "outside"))
        gasnet_memset(1, (char *)segments[1].addr - 1, 0, 8);
}

static void everything(int *argc, char ***argv)
{
    gex_System_SetVerboseErrors(0);
    expect_attach(GASNET_ERR_NOT_INIT, NULL, 0, GASNET_PAGESIZE);
    gex_System_SetVerboseErrors(1);
    CHECK(gasnet_init(argc, argv) == GASNET_OK);
    CHECK(gasnet_mynode() < gasnet_nodes() && gasnet_nodes() <= MAX_RANKS);
    item_39_attach_errors();
    attach();
    segment_and_node_info();
    versions_and_limits();
    locks();
    both_interfaces();
    if (!job_number("LEGACY_SLOW", 0))
        legacy_am();
    legacy_rma();
    if (!job_number("LEGACY_SLOW", 0))
        legacy_vis();
}

/* Fills another rank's whole segment several times; the script counts the transfers. */
static void fills(int *argc, char ***argv)
{
    gasnet_node_t to;

    CHECK(gasnet_init(argc, argv) == GASNET_OK);
    attach();
    to = (job.rank + 1) % job.size;
    for (int value = 1; value <= 4; value++)
        gasnet_memset(to, segments[to].addr, value, SEGMENT);
    legacy_barrier();
    for (size_t at = 0; at < SEGMENT; at += 1000)
        CHECK(job.base[at] == 4);
}

int main(int argc, char **argv)
{
    const char *scenario = argc > 1 ? argv[1] : "all";

    job_deadline();
    if (!strcmp(scenario, "all") || !strcmp(scenario, "slow")) {
        everything(&argc, &argv);
    } else if (!strcmp(scenario, "fills")) {
        fills(&argc, &argv);
    } else if (!strcmp(scenario, "ex")) {
        ex_start(&argc, &argv);
    } else if (!strcmp(scenario, "count") || !strcmp(scenario, "unflagged") ||
               !strcmp(scenario, "outside")) {
        mistakes(scenario, &argc, &argv);
    } else {
        CHECK(gasnet_init(NULL, NULL) == GASNET_OK);
        if (!strcmp(scenario, "exit")) /* item 69: between init and attach */
            gasnet_exit(7);
        if (!strcmp(scenario, "small"))
            no_table_and_no_size();
        else
            bad_handlers(scenario);
    }
    legacy_barrier();
    if (gasnet_mynode() == 0)
        printf("ok\n");
    gasnet_exit(0);
}
