/* SPDX-License-Identifier: BSD-3-Clause */
/* Segments and endpoints in addition to those of start-up, and the pairs that name them. Names of
 * cases begin with the item of tests/rules.md that they test. Owned by the one client thread.
 *
 * Usage: endpoints [bound]: with "bound", endpoint 0 has a segment of gex_Segment_Create() instead
 * of gex_Segment_Attach(). */
#include "config.h"

#include "job.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    OWN_SIZE = 300001,   /* of the segment in the library's memory: no multiple of anything */
    GIVEN_SIZE = 200000, /* in ours */
    GIVEN_SHIFT = 24,    /* which is not on a page boundary either */
    OWN = 1,             /* indices of the endpoints they are bound to */
    GIVEN = 2,
    UNBOUND = 3,
    LAST = GASNET_MAXEPS - 1
};

static gex_EP_t eps[GASNET_MAXEPS];
static gex_Segment_t own, given;
static char *given_memory;

/* ---- creation ---- */

static void item_47_error_codes_of_creation(void)
{
    gex_EP_t ep = GEX_EP_INVALID;

    eps[0] = job.ep;
    CHECK(gex_EP_Create(&ep, job.client, 0, 0) == GASNET_ERR_BAD_ARG);
    CHECK(gex_EP_Create(&ep, job.client, GEX_EP_CAPABILITY_ALL + 1, 0) == GASNET_ERR_BAD_ARG);
    CHECK(gex_EP_Create(&ep, job.client, GEX_EP_CAPABILITY_RMA, 1u << 9) == GASNET_ERR_BAD_ARG);
    CHECK(ep == GEX_EP_INVALID);
    for (gex_EP_Index_t i = 1; i < GASNET_MAXEPS; i++) {
        gex_Flags_t hint = i % 2 ? GEX_FLAG_HINT_ACCEL_AD : 0;

        CHECK(gex_EP_Create(&eps[i], job.client, GEX_EP_CAPABILITY_RMA, hint) == GASNET_OK);
        CHECK(gex_EP_QueryIndex(eps[i]) == i && gex_EP_QueryFlags(eps[i]) == hint);
        CHECK(gex_EP_QueryClient(eps[i]) == job.client);
        CHECK(gex_EP_QuerySegment(eps[i]) == GEX_SEGMENT_INVALID);
        CHECK(gex_EP_QueryCData(eps[i]) == NULL);
        gex_EP_SetCData(eps[i], &eps[i]);
    }
    CHECK(gex_EP_Create(&ep, job.client, GEX_EP_CAPABILITY_RMA, 0) == GASNET_ERR_RESOURCE);
    CHECK(ep == GEX_EP_INVALID && gex_EP_QueryCData(eps[LAST]) == &eps[LAST]);
}

static void item_39_segments_are_created_locally(void)
{
    gex_Segment_t none = GEX_SEGMENT_INVALID;

    CHECK(gex_Segment_Create(&none, job.client, NULL, 4096, GEX_MK_INVALID, 0) ==
          GASNET_ERR_BAD_ARG);
    CHECK(gex_Segment_Create(&none, job.client, NULL, 4096, GEX_MK_HOST, 1) == GASNET_ERR_BAD_ARG);
    CHECK(gex_Segment_Create(&none, job.client, NULL, (uintptr_t)1 << 60, GEX_MK_HOST, 0) ==
          GASNET_ERR_RESOURCE);
    CHECK(none == GEX_SEGMENT_INVALID);
    CHECK(gex_Segment_Create(&own, job.client, NULL, OWN_SIZE, GEX_MK_HOST, 0) == GASNET_OK);
    CHECK(gex_Segment_QuerySize(own) == OWN_SIZE && gex_Segment_QueryAddr(own));
    given_memory = (char *)job_memory(GIVEN_SIZE + GIVEN_SHIFT) + GIVEN_SHIFT;
    CHECK(gex_Segment_Create(&given, job.client, given_memory, GIVEN_SIZE, GEX_MK_HOST, 0) ==
          GASNET_OK);
    CHECK(gex_Segment_QueryAddr(given) == given_memory);
    CHECK(gex_Segment_QuerySize(given) == GIVEN_SIZE);
    CHECK(gex_Segment_QueryClient(given) == job.client && gex_Segment_QueryFlags(given) == 0);
    CHECK(gex_Segment_QueryCData(given) == NULL);
    gex_Segment_SetCData(given, &given);
    CHECK(gex_Segment_QueryCData(given) == &given);
}

static void item_47_error_codes_of_binding(void)
{
    CHECK(gex_EP_BindSegment(job.ep, own, 0) == GASNET_ERR_BAD_ARG, "endpoint 0 has one");
    CHECK(gex_EP_BindSegment(eps[OWN], GEX_SEGMENT_INVALID, 0) == GASNET_ERR_BAD_ARG);
    CHECK(gex_EP_BindSegment(eps[OWN], own, 1) == GASNET_ERR_BAD_ARG);
    CHECK(gex_EP_QuerySegment(eps[OWN]) == GEX_SEGMENT_INVALID);
    CHECK(gex_EP_BindSegment(eps[OWN], own, 0) == GASNET_OK);
    CHECK(gex_EP_BindSegment(eps[OWN], given, 0) == GASNET_ERR_BAD_ARG);
    CHECK(gex_EP_BindSegment(eps[GIVEN], given, 0) == GASNET_OK);
    CHECK(gex_EP_QuerySegment(eps[OWN]) == own && gex_EP_QuerySegment(eps[GIVEN]) == given);
}

/* ---- what is known of others ---- */

static bool known(gex_TM_t tm, gex_Rank_t rank, char **address, uintptr_t *size)
{
    void *owner = NULL, *local = &local;

    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(tm, rank, &owner, &local, size, 0));
    *address = owner;
    if (*size == 0) {
        CHECK(gex_Segment_QueryBound(tm, rank, NULL, NULL, NULL) != 0);
        return false;
    }
    CHECK(rank == job.rank ? local == owner : local == NULL || local != &local);
    return true;
}

static void item_45_what_nobody_published_is_not_known(void)
{
    char *address;
    uintptr_t size;
    void *untouched = &size;

    for (gex_Rank_t r = 0; r < job.size; r++) {
        CHECK(known(gex_TM_Pair(job.ep, OWN), r, &address, &size) == (r == job.rank));
        CHECK(!known(gex_TM_Pair(job.ep, UNBOUND), r, &address, &size));
        CHECK(!known(gex_TM_Pair(job.ep, 65535), r, &address, &size));
    }
    size = 77;
    CHECK(gex_Segment_QueryBound(gex_TM_Pair(job.ep, UNBOUND), 0, &untouched, NULL, &size) == 1);
    CHECK(untouched == &size && size == 77, "outputs were touched");
}

/* Each rank lists other endpoints in another order, and some without a segment. */
static void item_46_publishing(void)
{
    gex_EP_t list[] = {eps[GIVEN], eps[UNBOUND], eps[OWN]};
    gex_EP_t nonsense[GASNET_MAXEPS + 1];
    char *address;
    uintptr_t size;

    job_barrier();
    CHECK(gex_EP_PublishBoundSegment(job.tm, NULL, 0, 0) == GASNET_OK, "nothing at all");
    CHECK(!known(gex_TM_Pair(job.ep, OWN), (job.rank + 1) % job.size, &address, &size) ||
          job.size == 1);
    memset(nonsense, 0, sizeof nonsense);
    CHECK(gex_EP_PublishBoundSegment(job.tm, nonsense, job.rank == 0 ? GASNET_MAXEPS + 1 : 0, 0) ==
          (job.rank == 0 ? GASNET_ERR_BAD_ARG : GASNET_OK));
    CHECK(gex_EP_PublishBoundSegment(job.tm, list + job.rank % 2, 3 - job.rank % 2, 0) ==
          GASNET_OK);
    CHECK(gex_EP_PublishBoundSegment(job.tm, &eps[GIVEN], job.rank % 2, 0) == GASNET_OK);
    for (gex_Rank_t r = 0; r < job.size; r++) {
        CHECK(known(gex_TM_Pair(eps[UNBOUND], OWN), r, &address, &size) && size == OWN_SIZE);
        CHECK(known(gex_TM_Pair(eps[OWN], GIVEN), r, &address, &size) && size == GIVEN_SIZE);
        CHECK(!known(gex_TM_Pair(eps[OWN], UNBOUND), r, &address, &size));
        CHECK(known(gex_TM_Pair(eps[OWN], 0), r, &address, &size) && address == job_remote(r, 0));
    }
}

static void item_48_pairs_are_values(void)
{
    gex_TM_t pair = gex_TM_Pair(eps[OWN], GIVEN);

    CHECK(pair == gex_TM_Pair(eps[OWN], GIVEN) && pair != gex_TM_Pair(eps[GIVEN], OWN));
    CHECK(pair != gex_TM_Pair(eps[OWN], OWN) && pair != job.tm && pair != GEX_TM_INVALID);
    CHECK(gex_TM_Pair(job.ep, 0) != job.tm && gex_TM_Pair(job.ep, 0) != GEX_TM_INVALID);
    CHECK(gex_AM_MaxRequestMedium(gex_TM_Pair(job.ep, 0), 0, GEX_EVENT_NOW, 0, 2) ==
          gex_AM_MaxRequestMedium(job.tm, 0, GEX_EVENT_NOW, 0, 2));
}

/* ---- putting and getting ---- */

static const size_t sizes[] = {1, 8, 100, 4096, 70000};
enum { SIZES = sizeof sizes / sizeof sizes[0], SLOT = 80000 };

static char *remote_of(gex_TM_t pair, gex_Rank_t rank)
{
    char *address;
    uintptr_t size;

    CHECK(known(pair, rank, &address, &size));
    return address;
}

/* Slots of the next rank: we put to 0, and 1 has its pattern. */
static void move(gex_EP_t from, gex_EP_Index_t to, char *local, size_t size)
{
    gex_TM_t pair = gex_TM_Pair(from, to);
    gex_Rank_t peer = (job.rank + 1) % job.size;
    char *remote = remote_of(pair, peer);
    gex_Event_t leaf;

    job_phase("endpoint %u to %u, %zu bytes", gex_EP_QueryIndex(from), to, size);
    job_fill(local, size, job.rank + size);
    CHECK(gex_RMA_PutBlocking(pair, peer, remote + 1, local, size, 0) == 0);
    memset(local, 0, size);
    CHECK(gex_RMA_GetBlocking(pair, local, peer, remote + 1, size, 0) == 0);
    CHECK_PATTERN(local, size, job.rank + size);
    CHECK(gex_RMA_GetBlocking(pair, local, peer, remote + SLOT, size, 0) == 0);
    CHECK_PATTERN(local, size, 1000 + peer);
    job_fill(local, size, job.rank + size + 1);
    gex_Event_Wait(gex_RMA_PutNB(pair, peer, remote + 1, local, size, &leaf, 0));
    memset(local, 0, size);
    gex_RMA_GetNBI(pair, local, peer, remote + 1, size, 0);
    gex_NBI_Wait(GEX_EC_ALL, 0);
    CHECK_PATTERN(local, size, job.rank + size + 1);
}

static void item_48_rma_between_endpoints(void)
{
    gex_Rank_t before = (job.rank + job.size - 1) % job.size;
    char *slots = gex_Segment_QueryAddr(own);
    char *outside = job_memory(SLOT);

    job_fill(slots + SLOT, SLOT, 1000 + job.rank);
    job_fill(given_memory + SLOT, SLOT, 1000 + job.rank);
    job_fill(job.base + SLOT, SLOT, 1000 + job.rank);
    job_barrier();
    for (int i = 0; i < SIZES; i++) {
        move(eps[OWN], GIVEN, slots + 2 * SLOT + 3, sizes[i]); /* in the local endpoint's segment */
        move(eps[GIVEN], OWN, outside, sizes[i]);
        move(eps[UNBOUND], OWN, slots + 2 * SLOT + 3, sizes[i]); /* in another endpoint's */
        move(eps[LAST], 0, outside, sizes[i]);
        move(eps[OWN], 0, job.base + 2 * SLOT + 3, sizes[i]);
    }
    job_barrier();
    CHECK_PATTERN(given_memory + 1, sizes[SIZES - 1], before + sizes[SIZES - 1] + 1);
    CHECK_PATTERN(slots + 1, sizes[SIZES - 1], before + sizes[SIZES - 1] + 1);
    CHECK_PATTERN(job.base + 1, sizes[SIZES - 1], before + sizes[SIZES - 1] + 1);
    free(outside);
}

/* ---- messages ---- */

static unsigned arrived;

static void on_long(gex_Token_t token, void *buffer, size_t nbytes, gex_AM_Arg_t from)
{
    (void)token;
    CHECK((char *)buffer == job.base + SLOT);
    CHECK_PATTERN(buffer, nbytes, 7 + (unsigned)from);
    arrived++;
}

static void item_48_messages_by_pair(void)
{
    gex_TM_t pair = gex_TM_Pair(job.ep, 0);
    gex_Rank_t peer = (job.rank + 1) % job.size;
    gex_AM_Entry_t entry = {
        0, (gex_AM_Fn_t)on_long, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 1, NULL, NULL};
    char *source = job_memory(SLOT);

    CHECK(gex_EP_RegisterHandlers(job.ep, &entry, 1) == GASNET_OK);
    job_barrier();
    for (unsigned i = 0; i < SIZES; i++) {
        job_fill(source, sizes[i], 7 + job.rank);
        gex_AM_RequestLong1(pair, peer, entry.gex_index, source, sizes[i], job_remote(peer, SLOT),
                            GEX_EVENT_NOW, 0, (gex_AM_Arg_t)job.rank);
        GASNET_BLOCKUNTIL(arrived > i);
    }
    job_barrier();
    free(source);
}

/* ---- the end of a segment ---- */

static void a_destroyed_segment_is_bound_no_more(void)
{
    char *address;
    uintptr_t size;

    job_barrier();
    gex_Segment_Destroy(given, 0);
    memset(given_memory, 1, GIVEN_SIZE);
    free(given_memory - GIVEN_SHIFT);
    CHECK(gex_EP_QuerySegment(eps[GIVEN]) == GEX_SEGMENT_INVALID);
    CHECK(!known(gex_TM_Pair(job.ep, GIVEN), job.rank, &address, &size));
    CHECK(gex_EP_BindSegment(eps[GIVEN], own, 0) == GASNET_OK, "one segment, two endpoints");
    CHECK(gex_EP_PublishBoundSegment(job.tm, &eps[GIVEN], 1, 0) == GASNET_OK);
    move(eps[GIVEN], GIVEN, (char *)gex_Segment_QueryAddr(own) + 2 * SLOT, 5000);
}

/* Endpoint 0 with a segment of our own making. */
static void bind_by_hand(void)
{
    gex_Segment_t segment;

    CHECK(gex_Segment_Create(&segment, job.client, NULL, 4 * SLOT, GEX_MK_HOST, 0) == GASNET_OK);
    CHECK(gex_EP_BindSegment(job.ep, segment, 0) == GASNET_OK);
    CHECK(gex_EP_PublishBoundSegment(job.tm, &job.ep, 1, 0) == GASNET_OK);
    CHECK(gex_EP_QuerySegment(job.ep) == segment);
    job_use(segment);
}

int main(int argc, char **argv)
{
    bool by_hand = argc > 1 && !strcmp(argv[1], "bound");

    job_start(&argc, &argv, by_hand ? 0 : 4 * SLOT);
    gex_System_SetVerboseErrors(0);
    if (by_hand)
        bind_by_hand();
    item_47_error_codes_of_creation();
    item_39_segments_are_created_locally();
    item_47_error_codes_of_binding();
    item_45_what_nobody_published_is_not_known();
    item_46_publishing();
    item_48_pairs_are_values();
    item_48_rma_between_endpoints();
    item_48_messages_by_pair();
    a_destroyed_segment_is_bound_no_more();
    gex_System_SetVerboseErrors(1);
    job_end();
}
