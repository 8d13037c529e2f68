/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets of the mix: explicit and implicit events, access regions, blocking, values, events
 * in arrays and events that another thread syncs, through the team and through a pair of endpoints.
 * Each thread has an area of its own in every segment. Owns the second endpoint and the events that
 * threads pass on (under a mutex of the tools). */
#include "config.h"

#include "random_mix.h"

#include <string.h>

enum { PIECES = 8, PIECE = CELL / 4, OFFERS = 8 };

static gex_EP_t second;
static gex_Segment_t second_segment;
static void *second_base[MAX_RANKS];

static gasnett_mutex_t offer_lock = GASNETT_MUTEX_INITIALIZER;
static gex_Event_t offered[OFFERS];

void mix_rma_start(void)
{
    size_t size = MAX_RANKS * MAX_THREADS * (size_t)CELL;
    uintptr_t there;

    CHECK(gex_EP_Create(&second, job.client, GEX_EP_CAPABILITY_RMA, 0) == GASNET_OK);
    CHECK(gex_Segment_Create(&second_segment, job.client, NULL, size, GEX_MK_HOST, 0) == GASNET_OK);
    CHECK(gex_EP_BindSegment(second, second_segment, 0) == GASNET_OK);
    CHECK(gex_EP_PublishBoundSegment(job.tm, &second, 1, 0) == GASNET_OK);
    for (gex_Rank_t r = 0; r < job.size; r++) {
        gex_Event_Wait(gex_EP_QueryBoundSegmentNB(gex_TM_Pair(job.ep, gex_EP_QueryIndex(second)), r,
                                                  &second_base[r], NULL, &there, 0));
        CHECK(there == size, "rank %u", r);
    }
}

/* Random sizes, small ones more often. */
static size_t some_size(struct worker *w, size_t most)
{
    return mix_below(w, 3) ? mix_below(w, 64) : mix_below(w, (unsigned)most + 1);
}

static uint64_t new_pattern(struct worker *w, size_t size)
{
    uint64_t seed = job_random(&w->random);

    job_fill(w->data, size, seed);
    return seed;
}

static void check_there(struct worker *w, gex_Rank_t to, void *there, size_t size, uint64_t seed)
{
    CHECK(gex_RMA_GetBlocking(job.tm, w->back, to, there, size, 0) == 0);
    CHECK_PATTERN(w->back, size, seed);
}

static void put_and_get(struct worker *w, gex_Rank_t to)
{
    void *there = (char *)mix_area(to, w) + mix_below(w, CELL);
    size_t size = some_size(w, AREA - CELL);
    uint64_t seed = new_pattern(w, size);
    gex_Event_t leaf = GEX_EVENT_INVALID, *const completions[] = {GEX_EVENT_NOW, GEX_EVENT_DEFER,
                                                                  &leaf};
    gex_Event_t *lc = completions[mix_below(w, 3)], root;

    root = gex_RMA_PutNB(job.tm, to, there, w->data, size, lc, 0);
    if (lc == &leaf && mix_below(w, 2))
        gex_Event_Wait(leaf);
    else if (lc == &leaf)
        while (gex_Event_Test(leaf))
            gasnet_AMPoll();
    if (lc != GEX_EVENT_DEFER)
        memset(w->data, 0xee, size);
    gex_Event_Wait(root);
    memset(w->back, 0x11, size);
    gex_Event_Wait(gex_RMA_GetNB(job.tm, w->back, to, there, size, 0));
    CHECK_PATTERN(w->back, size, seed);
}

/* The leaf that a root has, by query. */
static void queried_leaf(struct worker *w, gex_Rank_t to)
{
    void *there = mix_area(to, w);
    size_t size = some_size(w, CELL);
    uint64_t seed = new_pattern(w, size);
    gex_Event_t root = gex_RMA_PutNB(job.tm, to, there, w->data, size, GEX_EVENT_DEFER, 0);

    gex_Event_Wait(gex_Event_QueryLeaf(root, GEX_EC_LC));
    memset(w->data, 0xee, size);
    gex_Event_Wait(root);
    check_there(w, to, there, size, seed);
}

static void blocking(struct worker *w, gex_Rank_t to)
{
    void *there = mix_area(to, w);
    size_t size = some_size(w, AREA);
    uint64_t seed = new_pattern(w, size);

    CHECK(gex_RMA_PutBlocking(job.tm, to, there, w->data, size, 0) == 0);
    check_there(w, to, there, size, seed);
}

static void put_pieces(struct worker *w, gex_Rank_t to, gex_Event_t *lc)
{
    char *there = mix_area(to, w);

    for (int i = 0; i < PIECES; i++)
        gex_RMA_PutNBI(job.tm, to, there + i * PIECE, w->data + i * PIECE, PIECE, lc, 0);
}

static void implicit(struct worker *w, gex_Rank_t to)
{
    gex_Event_t *const completions[] = {GEX_EVENT_NOW, GEX_EVENT_DEFER, GEX_EVENT_GROUP};
    gex_Event_t *lc = completions[mix_below(w, 3)];
    uint64_t seed = new_pattern(w, PIECES * PIECE);

    put_pieces(w, to, lc);
    if (lc == GEX_EVENT_GROUP)
        gex_NBI_Wait(GEX_EC_LC, 0);
    if (lc != GEX_EVENT_DEFER)
        memset(w->data, 0xee, PIECES * PIECE);
    if (mix_below(w, 2))
        gex_NBI_Wait(GEX_EC_PUT, 0);
    else
        while (gex_NBI_Test(GEX_EC_ALL, 0))
            gasnet_AMPoll();
    for (int i = 0; i < PIECES; i++)
        gex_RMA_GetNBI(job.tm, w->back + i * PIECE, to, (char *)mix_area(to, w) + i * PIECE, PIECE,
                       0);
    gex_NBI_Wait(GEX_EC_GET, 0);
    CHECK_PATTERN(w->back, PIECES * PIECE, seed);
}

static void region(struct worker *w, gex_Rank_t to)
{
    uint64_t seed = new_pattern(w, PIECES * PIECE);
    gex_Event_t event;

    gex_NBI_BeginAccessRegion(0);
    put_pieces(w, to, mix_below(w, 2) ? GEX_EVENT_GROUP : GEX_EVENT_DEFER);
    event = gex_NBI_EndAccessRegion(0);
    if (mix_below(w, 2))
        gex_Event_Wait(gex_Event_QueryLeaf(event, GEX_EC_LC));
    while (mix_below(w, 8) && gex_Event_Test(event))
        gasnet_AMPoll();
    if (gex_Event_Test(event))
        gex_Event_Wait(event);
    check_there(w, to, mix_area(to, w), PIECES * PIECE, seed);
}

static void values(struct worker *w, gex_Rank_t to)
{
    size_t size = 1 + mix_below(w, 8);
    char *there = (char *)mix_area(to, w) + mix_below(w, 100);
    gex_RMA_Value_t value = job_random(&w->random) >> (64 - 8 * size);

    switch (mix_below(w, 3)) {
    case 0:
        CHECK(gex_RMA_PutBlockingVal(job.tm, to, there, value, size, 0) == 0);
        break;
    case 1:
        gex_Event_Wait(gex_RMA_PutNBVal(job.tm, to, there, value, size, 0));
        break;
    default:
        CHECK(gex_RMA_PutNBIVal(job.tm, to, there, value, size, 0) == 0);
        gex_NBI_Wait(GEX_EC_PUT, 0);
    }
    CHECK(gex_RMA_GetBlockingVal(job.tm, to, there, size, 0) == value, "%zu bytes", size);
}

/* Several events at once, synced in each of the four ways. */
static void arrays(struct worker *w, gex_Rank_t to)
{
    uint64_t seed = new_pattern(w, PIECES * PIECE);
    char *there = mix_area(to, w);
    gex_Event_t events[2 * PIECES];

    for (int i = 0; i < PIECES; i++)
        events[i] = gex_RMA_PutNB(job.tm, to, there + i * PIECE, w->data + i * PIECE, PIECE,
                                  i % 2 ? &events[PIECES + i]
                                        : (events[PIECES + i] = GEX_EVENT_INVALID, GEX_EVENT_DEFER),
                                  0);
    while (mix_below(w, 3) && gex_Event_TestSome(events, 2 * PIECES, 0))
        gasnet_AMPoll();
    if (mix_below(w, 2))
        gex_Event_WaitSome(events, 2 * PIECES, 0);
    while (mix_below(w, 3) && gex_Event_TestAll(events, 2 * PIECES, 0))
        gasnet_AMPoll();
    gex_Event_WaitAll(events, 2 * PIECES, 0);
    for (int i = 0; i < 2 * PIECES; i++)
        CHECK(events[i] == GEX_EVENT_INVALID);
    check_there(w, to, there, PIECES * PIECE, seed);
}

static void at_once_or_not(struct worker *w, gex_Rank_t to)
{
    size_t size = 1 + some_size(w, CELL);
    uint64_t seed = new_pattern(w, size);
    void *there = mix_area(to, w);
    gex_Event_t event;

    while ((event = gex_RMA_PutNB(job.tm, to, there, w->data, size, GEX_EVENT_DEFER,
                                  GEX_FLAG_IMMEDIATE)) == GEX_EVENT_NO_OP)
        gasnet_AMPoll();
    gex_Event_Wait(event);
    while (gex_RMA_GetNBI(job.tm, w->back, to, there, size, GEX_FLAG_IMMEDIATE))
        gasnet_AMPoll();
    gex_NBI_Wait(GEX_EC_GET, 0);
    CHECK_PATTERN(w->back, size, seed);
}

/* One thread begins a put that another one syncs. The source stays unchanged. */
static void foreign_event(struct worker *w, gex_Rank_t to)
{
    static const char source[64] = "read by the device until somebody syncs";
    unsigned place = mix_below(w, OFFERS);
    gex_Event_t mine, before;

    mine = gex_RMA_PutNB(job.tm, to, (char *)mix_area(to, w) + AREA - 64, source, sizeof source,
                         GEX_EVENT_DEFER, 0);
    gasnett_mutex_lock(&offer_lock);
    before = offered[place];
    offered[place] = mine;
    gasnett_mutex_unlock(&offer_lock);
    gex_Event_Wait(before);
}

/* From one endpoint to the other's segment; the rank is a job rank. */
static void by_pair(struct worker *w, gex_Rank_t to)
{
    gex_TM_t pair = gex_TM_Pair(job.ep, gex_EP_QueryIndex(second));
    char *there = (char *)second_base[to] + (job.rank * (size_t)MAX_THREADS + w->id) * (size_t)CELL;
    size_t size = some_size(w, CELL);
    uint64_t seed = new_pattern(w, size);

    gex_Event_Wait(gex_RMA_PutNB(pair, to, there, w->data, size, GEX_EVENT_DEFER, 0));
    memset(w->back, 0x11, size);
    CHECK(gex_RMA_GetBlocking(pair, w->back, to, there, size, 0) == 0);
    CHECK_PATTERN(w->back, size, seed);
}

/* Empty transfers with any address. */
static void nothing(struct worker *w, gex_Rank_t to)
{
    (void)w;
    gex_Event_Wait(gex_RMA_PutNB(job.tm, to, NULL, NULL, 0, GEX_EVENT_NOW, 0));
    gex_Event_Wait(gex_RMA_GetNB(job.tm, NULL, to, NULL, 0, 0));
    CHECK(gex_RMA_PutNBI(job.tm, to, NULL, NULL, 0, GEX_EVENT_DEFER, 0) == 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

static mix_action *const actions[] = {put_and_get,   queried_leaf, blocking, implicit,
                                      region,        values,       arrays,   at_once_or_not,
                                      foreign_event, by_pair,      nothing};
const struct mix_part mix_rma = {actions, sizeof actions / sizeof *actions};
