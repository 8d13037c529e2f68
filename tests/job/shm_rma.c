/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts and gets to neighbours, whose memory this rank loads and stores directly: inlined into this
 * program if it is compiled with optimisation. The same program over a network shows that one
 * binary does both. Even ranks act, odd ranks watch; a last rank without a partner only takes part
 * in barriers. */
#include "config.h"

#include <stdbool.h>
#include <string.h>

#include "job.h"

enum { AREA = 4096, FLAG = 0, WORDS = 64, DATA = 1024, SEGMENT = 64 << 10, TURNS = 20000 };

static gex_Rank_t peer;
static bool acting, near;

/* What cannot be known to be constant. */
static volatile size_t opaque;
static size_t changing(size_t value)
{
    opaque = value;
    return opaque;
}

static bool is_neighbour(gex_Rank_t rank)
{
    gex_RankInfo_t *info;
    gex_Rank_t count;
    gex_System_QueryNbrhdInfo(&info, &count, NULL);
    for (gex_Rank_t i = 0; i < count; i++)
        if (info[i].gex_jobrank == rank)
            return true;
    return false;
}

static char *theirs(size_t offset)
{
    return job_remote(peer, offset);
}

/* ---- every call with every size, in line and through its address */

typedef int put_fn(gex_TM_t, gex_Rank_t, void *, const void *, size_t, gex_Flags_t);
typedef int get_fn(gex_TM_t, void *, gex_Rank_t, void *, size_t, gex_Flags_t);
static put_fn *volatile put_by_address = gex_RMA_PutBlocking;
static get_fn *volatile get_by_address = gex_RMA_GetBlocking;

static char source[AREA], got[AREA];

/* Checks that the bytes arrived, and that those around them are unchanged. */
static void check_there(size_t size, uint64_t seed)
{
    memset(got, 0x5a, sizeof(got));
    CHECK(get_by_address(job.tm, got + 64, peer, theirs(DATA), size, 0) == 0);
    CHECK_PATTERN(got + 64, size, seed);
    CHECK((unsigned char)got[63] == 0x5a && (unsigned char)got[64 + size] == 0x5a);
    char around[2];
    CHECK(get_by_address(job.tm, around, peer, theirs(DATA - 1), 1, 0) == 0);
    CHECK(get_by_address(job.tm, around + 1, peer, theirs(DATA + size), 1, 0) == 0);
    CHECK(around[0] == 0 && around[1] == 0);
}

static void sync_put(gex_Event_t event, gex_Event_t leaf)
{
    CHECK(!near || (event == GEX_EVENT_INVALID && leaf == GEX_EVENT_INVALID),
          "to a neighbour nothing is left to wait for");
    gex_Event_Wait(leaf);
    gex_Event_Wait(event);
}

static void sync_nbi(void)
{
    CHECK(!near || gex_NBI_Test(GEX_EC_ALL, 0) == GASNET_OK);
    gex_NBI_Wait(GEX_EC_ALL, 0);
}

#define FILLED(seed) (job_fill(source, sizeof(source), seed), source)

#define PUTS(size)                                                                                 \
    do {                                                                                           \
        gex_Event_t leaf = (gex_Event_t)(uintptr_t)8;                                              \
        uint64_t seed = 10 * (uint64_t)(size);                                                     \
        CHECK(gex_RMA_PutBlocking(job.tm, peer, theirs(DATA), FILLED(seed), size, 0) == 0);        \
        check_there(size, seed);                                                                   \
        CHECK(put_by_address(job.tm, peer, theirs(DATA), FILLED(seed + 1), size, 0) == 0);         \
        check_there(size, seed + 1);                                                               \
        sync_put(                                                                                  \
            gex_RMA_PutNB(job.tm, peer, theirs(DATA), FILLED(seed + 2), size, GEX_EVENT_NOW, 0),   \
            GEX_EVENT_INVALID);                                                                    \
        check_there(size, seed + 2);                                                               \
        gex_Event_t event =                                                                        \
            gex_RMA_PutNB(job.tm, peer, theirs(DATA), FILLED(seed + 3), size, &leaf, 0);           \
        sync_put(event, leaf);                                                                     \
        check_there(size, seed + 3);                                                               \
        CHECK(gex_RMA_PutNBI(job.tm, peer, theirs(DATA), FILLED(seed + 4), size, GEX_EVENT_GROUP,  \
                             0) == 0);                                                             \
        sync_nbi();                                                                                \
        check_there(size, seed + 4);                                                               \
    } while (0)

#define GETS(size)                                                                                 \
    do {                                                                                           \
        uint64_t seed = 10 * (uint64_t)(size) + 5;                                                 \
        CHECK(gex_RMA_PutBlocking(job.tm, peer, theirs(DATA), FILLED(seed), size, 0) == 0);        \
        memset(got, 0, sizeof(got));                                                               \
        CHECK(gex_RMA_GetBlocking(job.tm, got, peer, theirs(DATA), size, 0) == 0);                 \
        CHECK_PATTERN(got, size, seed);                                                            \
        memset(got, 0, sizeof(got));                                                               \
        sync_put(gex_RMA_GetNB(job.tm, got, peer, theirs(DATA), size, 0), GEX_EVENT_INVALID);      \
        CHECK_PATTERN(got, size, seed);                                                            \
        memset(got, 0, sizeof(got));                                                               \
        CHECK(gex_RMA_GetNBI(job.tm, got, peer, theirs(DATA), size, 0) == 0);                      \
        sync_nbi();                                                                                \
        CHECK_PATTERN(got, size, seed);                                                            \
    } while (0)

static void clear_there(void)
{
    static const char zeros[AREA];
    gex_RMA_PutBlocking(job.tm, peer, theirs(DATA - 64), zeros, sizeof(zeros), 0);
}

#define SIZE(size)                                                                                 \
    do {                                                                                           \
        job_phase("%d bytes", (int)(size));                                                        \
        clear_there();                                                                             \
        PUTS(size);                                                                                \
        PUTS(changing(size));                                                                      \
        GETS(size);                                                                                \
        GETS(changing(size));                                                                      \
    } while (0)

static void every_call_with_every_size(void)
{
    SIZE(1);
    SIZE(2);
    SIZE(3);
    SIZE(4);
    SIZE(5);
    SIZE(6);
    SIZE(7);
    SIZE(8);
    SIZE(9);
    SIZE(15);
    SIZE(16);
    SIZE(24);
    SIZE(63);
    SIZE(64);
    SIZE(65);
    SIZE(3000);
}

#define VALUE(size)                                                                                \
    do {                                                                                           \
        const uint64_t value = UINT64_C(0x1122334455667788),                                       \
                       mask = ~UINT64_C(0) >> (64 - 8 * size);                                     \
        clear_there();                                                                             \
        CHECK(gex_RMA_PutBlockingVal(job.tm, peer, theirs(DATA), value, size, 0) == 0);            \
        CHECK(gex_RMA_GetBlockingVal(job.tm, peer, theirs(DATA), 8, 0) == (value & mask));         \
        CHECK(gex_RMA_GetBlockingVal(job.tm, peer, theirs(DATA), size, 0) == (value & mask));      \
        sync_put(gex_RMA_PutNBVal(job.tm, peer, theirs(DATA), ~value, size, 0),                    \
                 GEX_EVENT_INVALID);                                                               \
        CHECK(gex_RMA_GetBlockingVal(job.tm, peer, theirs(DATA), size, 0) == (~value & mask));     \
        CHECK(gex_RMA_PutBlockingVal(job.tm, peer, theirs(DATA), value, changing(size), 0) == 0);  \
        CHECK(gex_RMA_GetBlockingVal(job.tm, peer, theirs(DATA), 8, 0) == (value & mask));         \
        sync_put(gex_RMA_PutNBVal(job.tm, peer, theirs(DATA), ~value, changing(size), 0),          \
                 GEX_EVENT_INVALID);                                                               \
        CHECK(gex_RMA_GetBlockingVal(job.tm, peer, theirs(DATA), size, 0) == (~value & mask));     \
        CHECK(gex_RMA_PutNBIVal(job.tm, peer, theirs(DATA), value, changing(size), 0) == 0);       \
        sync_nbi();                                                                                \
        CHECK(gex_RMA_GetBlockingVal(job.tm, peer, theirs(DATA), changing(size), 0) ==             \
              (value & mask));                                                                     \
    } while (0)

static void values(void)
{
    job_phase("values");
    VALUE(1);
    VALUE(2);
    VALUE(3);
    VALUE(4);
    VALUE(5);
    VALUE(6);
    VALUE(7);
    VALUE(8);
}

/* Items 30 and 36. */
static void nothing_at_no_address(void)
{
    job_phase("no bytes");
    gex_Event_t leaf = (gex_Event_t)(uintptr_t)8;
    char *nowhere = (char *)8;
    for (int turn = 0; turn < 2; turn++) {
        size_t none = changing(0);
        CHECK(gex_RMA_PutBlocking(job.tm, peer, NULL, nowhere, 0, 0) == 0);
        CHECK(gex_RMA_GetBlocking(job.tm, nowhere, peer, NULL, 0, 0) == 0);
        CHECK(gex_RMA_PutBlocking(job.tm, peer, nowhere, NULL, none, 0) == 0);
        CHECK(gex_RMA_GetBlocking(job.tm, NULL, peer, nowhere, none, 0) == 0);
        gex_Event_Wait(gex_RMA_PutNB(job.tm, peer, NULL, nowhere, none, &leaf, 0));
        CHECK(leaf == GEX_EVENT_INVALID);
        gex_Event_Wait(gex_RMA_GetNB(job.tm, nowhere, peer, NULL, 0, 0));
    }
}

static void pairs_and_flags(void)
{
    job_phase("pairs and flags");
    gex_TM_t pair = gex_TM_Pair(job.ep, 0);
    uint64_t value = 0;
    clear_there();
    CHECK(gex_RMA_PutBlockingVal(pair, peer, theirs(DATA), 17, 8, 0) == 0);
    CHECK(gex_RMA_GetBlocking(pair, &value, peer, theirs(DATA), sizeof(value), 0) == 0);
    CHECK(value == 17);
    while (gex_RMA_PutBlocking(job.tm, peer, theirs(DATA), FILLED(3), 8, GEX_FLAG_IMMEDIATE))
        CHECK(!near, "there is always space for a copy");
    check_there(8, 3);
    if (!near) {
        CHECK(gex_RMA_PutBlocking(job.tm, peer, theirs(DATA), FILLED(4), 8,
                                  GEX_FLAG_PEER_NEVER_NBRHD) == 0);
        check_there(8, 4);
    }
}

/* ---- two at a time */

static uint64_t *word(size_t index)
{
    return (uint64_t *)(void *)(job.base + WORDS + 8 * index);
}

/* A rank that only gets sees the owner's stores, without a poll on either side. */
static void a_loop_of_gets_sees_a_store(void)
{
    job_phase("a loop of gets");
    if (acting) {
        uint64_t seen;
        do
            gex_RMA_GetBlocking(job.tm, &seen, peer, theirs(FLAG), sizeof(seen), 0);
        while (seen != 1);
        while (gex_RMA_GetBlockingVal(job.tm, peer, theirs(FLAG + 8), 4, 0) != 2)
            ;
    } else {
        __atomic_store_n((uint64_t *)(void *)(job.base + FLAG), 1, __ATOMIC_RELEASE);
        __atomic_store_n((uint32_t *)(void *)(job.base + FLAG + 8), 2, __ATOMIC_RELEASE);
    }
}

/* Item 35: aligned words are transferred whole. The watcher stores, too, so that torn gets show
 * even if puts are whole. */
static void words_are_whole(void)
{
    job_phase("whole words");
    for (int i = 0; i < TURNS; i++) {
        uint64_t value = i & 1 ? ~UINT64_C(0) : 0, seen = 1;
        size_t eight = i & 2 ? 8 : changing(8);
        if (acting) {
            gex_RMA_PutBlocking(job.tm, peer, theirs(WORDS), &value, 8, 0);
            gex_RMA_PutBlocking(job.tm, peer, theirs(WORDS), &value, eight, 0);
            gex_RMA_GetBlocking(job.tm, &seen, peer, theirs(WORDS + 8), eight, 0);
        } else {
            __atomic_store_n(word(1), value, __ATOMIC_RELAXED);
            seen = __atomic_load_n(word(0), __ATOMIC_RELAXED);
        }
        CHECK(!near || seen == 0 || seen == ~UINT64_C(0), "half of each: 0x%llx",
              (unsigned long long)seen);
    }
}

/* The data of a completed put is visible before later puts. */
static void puts_are_seen_in_order(void)
{
    job_phase("order");
    for (uint64_t i = 1; i <= 200; i++) {
        if (acting) {
            gex_RMA_PutBlocking(job.tm, peer, theirs(DATA), FILLED(i), 256, 0);
            gex_RMA_PutBlockingVal(job.tm, peer, theirs(WORDS + 16), i, 8, 0);
            uint64_t answer;
            do
                gex_RMA_GetBlocking(job.tm, &answer, peer, theirs(WORDS + 24), 8, 0);
            while (answer != i);
        } else {
            GASNET_BLOCKUNTIL(__atomic_load_n(word(2), __ATOMIC_ACQUIRE) == i);
            CHECK_PATTERN(job.base + DATA, 256, i);
            __atomic_store_n(word(3), i, __ATOMIC_RELEASE);
        }
    }
}

static void alone_or_with_oneself(void)
{
    job_phase("oneself");
    uint64_t value = 5, back = 0;
    CHECK(gex_RMA_PutBlocking(job.tm, job.rank, job.base + 2 * AREA, &value, 8, 0) == 0);
    CHECK(gex_RMA_GetBlocking(job.tm, &back, job.rank, job.base + 2 * AREA, 8, 0) == 0);
    CHECK(back == 5 && gex_RMA_GetNB(job.tm, &back, job.rank, job.base, 8, 0) == GEX_EVENT_INVALID);
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, SEGMENT);
    memset(job.base, 0, SEGMENT);
    acting = job.rank % 2 == 0;
    peer = acting ? job.rank + 1 : job.rank - 1;
    bool has_peer = peer < job.size;
    near = has_peer && is_neighbour(peer);
    if (argc > 1)
        CHECK(near == (argv[1][0] == 'n'), "expected: %s", argv[1]);
    job_barrier();
    if (acting && has_peer) {
        every_call_with_every_size();
        values();
        nothing_at_no_address();
        pairs_and_flags();
    }
    alone_or_with_oneself();
    job_barrier();
    if (has_peer)
        a_loop_of_gets_sees_a_store();
    if (has_peer && (near || !acting))
        words_are_whole();
    if (has_peer)
        puts_are_seen_in_order();
    job_end();
}
