/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams against a serial model. All ranks draw the same random numbers, so each knows which splits
 * and creations every other one makes and who is then in which team: the model of a team is the
 * list of its members, in order. Each new team is checked by its queries, by translation both ways,
 * and by puts, gets and messages of all categories between its members. Then the pitfalls of the
 * interface (items 53 to 56 of tests/rules.md), memory after 1000 teams, and forbidden calls
 * ("teams wrong N"). The client thread owns everything. */
#include "config.h"

#include "job.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SEGMENT = 1 << 18, SLOT = 64, SCRATCH = 4096, MEMBERS_MAX = 64, DEPTH = 10 };

struct team {
    gex_TM_t tm;
    gex_EP_Location_t members[MEMBERS_MAX];
    unsigned size, rank;
};

static struct team all;

/* ---- messages: each member sends one of each category to all members ---- */

static volatile unsigned shorts, answers, mediums, longs;
static gex_HSL_t lock = GEX_HSL_INITIALIZER;
static gex_AM_Index_t ask, ask_payload;
static gex_AM_Index_t answer;

static void count_one(volatile unsigned *counter)
{
    gex_HSL_Lock(&lock);
    ++*counter;
    gex_HSL_Unlock(&lock);
}

static void check_source(gex_Token_t token, gex_AM_Arg_t from)
{
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_ALL);
    CHECK(info.gex_srcrank == (gex_Rank_t)from, "%u, not %d", info.gex_srcrank, from);
    CHECK(info.gex_ep == job.ep);
}

static void on_ask(gex_Token_t token, gex_AM_Arg_t from)
{
    check_source(token, from);
    count_one(&shorts);
    gex_AM_ReplyShort1(token, answer, 0, from);
}

static void on_answer(gex_Token_t token, gex_AM_Arg_t to)
{
    (void)token;
    CHECK((gex_Rank_t)to == job.rank);
    count_one(&answers);
}

static void on_payload(gex_Token_t token, void *memory, size_t size, gex_AM_Arg_t from)
{
    gex_Token_Info_t info;

    check_source(token, from);
    CHECK_PATTERN(memory, size, (unsigned)from);
    gex_Token_Info(token, &info, GEX_TI_ALL);
    if (info.gex_is_long)
        CHECK(memory == job.base + (1 + from) * SLOT);
    count_one(info.gex_is_long ? &longs : &mediums);
}

static gex_AM_Entry_t table[] = {
    {0, (gex_AM_Fn_t)on_ask, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "ask"},
    {0, (gex_AM_Fn_t)on_answer, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 1, NULL, "answer"},
    {0, (gex_AM_Fn_t)on_payload, GEX_FLAG_AM_MEDLONG | GEX_FLAG_AM_REQUEST, 1, NULL, "payload"},
};

static void send_to_all(const struct team *t)
{
    char payload[SLOT];
    gex_AM_Arg_t me = (gex_AM_Arg_t)job.rank;

    job_fill(payload, sizeof payload, job.rank);
    for (unsigned r = 0; r < t->size; r++) {
        char *there = job_remote(t->members[r].gex_rank, (1 + job.rank) * SLOT);
        gex_AM_RequestShort1(t->tm, r, ask, 0, me);
        gex_AM_RequestMedium1(t->tm, r, ask_payload, payload, SLOT, GEX_EVENT_NOW, 0, me);
        gex_AM_RequestLong1(t->tm, r, ask_payload, payload, SLOT, there, GEX_EVENT_NOW, 0, me);
    }
}

static void check_messages(const struct team *t)
{
    shorts = mediums = longs = answers = 0;
    job_barrier();
    send_to_all(t);
    GASNET_BLOCKUNTIL(shorts == t->size && mediums == t->size && longs == t->size &&
                      answers == t->size);
    job_barrier();
}

/* ---- puts and gets ---- */

/* Each rank has a slot in each rank's segment. */
static void check_rma(const struct team *t)
{
    char data[SLOT], back[SLOT];

    for (unsigned r = 0; r < t->size; r++) {
        char *there = job_remote(t->members[r].gex_rank, (1 + job.rank) * SLOT);
        uint64_t word = job_mix(job.rank, r);
        job_fill(data, SLOT, 7 * job.rank + r);
        CHECK(gex_RMA_PutBlocking(t->tm, r, there, data, SLOT, 0) == 0);
        CHECK(gex_RMA_GetBlocking(t->tm, back, r, there, SLOT, 0) == 0);
        CHECK_PATTERN(back, SLOT, 7 * job.rank + r);
        gex_Event_Wait(gex_RMA_PutNB(t->tm, r, there, &word, 8, GEX_EVENT_NOW, 0));
        CHECK(gex_RMA_GetBlockingVal(t->tm, r, there, 8, 0) == word);
    }
}

/* ---- one team ---- */

static void check_rank(const struct team *t, unsigned r)
{
    gex_EP_Location_t at = gex_TM_TranslateRankToEP(t->tm, r, 0);

    CHECK(at.gex_rank == t->members[r].gex_rank && at.gex_ep_index == t->members[r].gex_ep_index);
    CHECK(gex_TM_TranslateRankToJobrank(t->tm, r) == at.gex_rank);
    CHECK(gex_TM_TranslateJobrankToRank(t->tm, at.gex_rank) == r);
}

static void check_bound(const struct team *t, unsigned r)
{
    void *owner, *local;
    uintptr_t size;

    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(t->tm, r, &owner, &local, &size, 0));
    CHECK(size == SEGMENT && owner == job_remote(t->members[r].gex_rank, 0));
    CHECK((local != NULL) == (job_is_neighbour(t->members[r].gex_rank) != 0));
}

static bool has(const struct team *t, gex_Rank_t jobrank)
{
    for (unsigned r = 0; r < t->size; r++)
        if (t->members[r].gex_rank == jobrank)
            return true;
    return false;
}

/* No member leaves a barrier before all have entered it: each puts to all members before that. */
static void check_barrier(const struct team *t)
{
    for (unsigned r = 0; r < t->size; r++) {
        char *there = job_remote(t->members[r].gex_rank, (1 + job.rank) * SLOT);
        gex_RMA_PutBlockingVal(t->tm, r, there, 4711 + t->rank, 8, 0);
    }
    gex_Event_Wait(gex_Coll_BarrierNB(t->tm, 0));
    for (unsigned r = 0; r < t->size; r++) {
        const char *here = job.base + (1 + t->members[r].gex_rank) * SLOT;
        CHECK(*(const volatile uint64_t *)here == 4711 + r);
    }
    job_barrier();
}

static void check_team(const struct team *t)
{
    CHECK(gex_TM_QuerySize(t->tm) == t->size, "%u, not %u", gex_TM_QuerySize(t->tm), t->size);
    CHECK(gex_TM_QueryRank(t->tm) == t->rank, "%u, not %u", gex_TM_QueryRank(t->tm), t->rank);
    CHECK(gex_TM_QueryClient(t->tm) == job.client && gex_TM_QueryEP(t->tm) == job.ep);
    CHECK(gex_TM_QueryCData(t->tm) == NULL || t->tm == job.tm);
    for (unsigned r = 0; r < t->size; r++) {
        check_rank(t, r);
        check_bound(t, r);
    }
    for (gex_Rank_t j = 0; j < job.size + 2; j++)
        CHECK(has(t, j) || gex_TM_TranslateJobrankToRank(t->tm, j) == GEX_RANK_INVALID);
    check_rma(t);
    check_messages(t);
    check_barrier(t);
}

/* ---- splits, drawn by all ranks alike ---- */

static void model_find_me(struct team *t)
{
    t->rank = MEMBERS_MAX;
    for (unsigned r = 0; r < t->size; r++)
        if (t->members[r].gex_rank == job.rank)
            t->rank = r;
    CHECK(t->rank < t->size);
}

struct choice {
    int color, key;
    bool is_out; /* only takes part */
};

static struct choice choose(uint64_t seed, gex_Rank_t jobrank)
{
    uint64_t x = job_mix(seed, jobrank);
    unsigned colors = 1 + seed % 3;
    struct choice c = {(int)(x % colors), (int)(x / 16 % 5) - 2, seed / 4 % 2 && x / 256 % 6 == 0};

    if (seed / 8 % 4 == 0)
        c.key = seed / 32 % 2 ? -(int)jobrank : 0; /* reversed, or as in the parent */
    return c;
}

/* By insertion, so that it is stable. */
static void model_split(struct team *t, const struct team *parent, uint64_t seed)
{
    struct choice mine = choose(seed, job.rank);
    int keys[MEMBERS_MAX];

    t->size = 0;
    for (unsigned r = 0; r < parent->size; r++) {
        struct choice theirs = choose(seed, parent->members[r].gex_rank);
        unsigned i = t->size;
        if (theirs.is_out != mine.is_out || theirs.color != mine.color)
            continue;
        for (; i > 0 && keys[i - 1] > theirs.key; i--) {
            keys[i] = keys[i - 1];
            t->members[i] = t->members[i - 1];
        }
        keys[i] = theirs.key;
        t->members[i] = parent->members[r];
        t->size++;
    }
    model_find_me(t);
}

/* A slot behind those of check_rma(): scratch memory belongs to the library until the team is
 * destroyed. */
static char *scratch_at(unsigned depth)
{
    return job.base + SEGMENT / 2 + depth * SCRATCH;
}

static bool has_scratch(uint64_t seed)
{
    return seed / 2 % 2;
}

/* Ranks that are left out of the first split form teams in a second one, so that all ranks
 * continue. */
static void split(struct team *t, const struct team *parent, uint64_t seed, unsigned depth)
{
    struct choice mine = choose(seed, job.rank);
    gex_Flags_t flags = has_scratch(seed) ? 0 : GEX_FLAG_TM_NO_SCRATCH;
    void *scratch = has_scratch(seed) ? scratch_at(depth) : NULL;
    size_t size = has_scratch(seed) ? SCRATCH : 0;

    t->tm = GEX_TM_INVALID;
    gex_TM_Split(mine.is_out ? NULL : &t->tm, parent->tm, mine.color, mine.key, scratch, size,
                 flags);
    gex_TM_Split(mine.is_out ? &t->tm : NULL, parent->tm, mine.color, mine.key, scratch, size,
                 flags);
    CHECK(t->tm != GEX_TM_INVALID);
    model_split(t, parent, seed);
}

static void destroy(struct team *t, bool with_scratch, unsigned depth)
{
    gex_Memvec_t memory = {&memory, 77};
    int had = gex_TM_Destroy(t->tm, &memory, 0);

    CHECK((had != 0) == with_scratch);
    if (with_scratch)
        CHECK(memory.gex_addr == scratch_at(depth) && memory.gex_len == SCRATCH);
    else
        CHECK(memory.gex_addr == (void *)&memory && memory.gex_len == 77);
}

/* Members of one parent draw the same numbers. */
static uint64_t draw(uint64_t seed, const struct team *parent, unsigned depth)
{
    return job_mix(seed + depth, parent->members[0].gex_rank);
}

/* Parents need not outlive their children. */
static void destroy_all(struct team *teams, unsigned count, uint64_t seed)
{
    for (unsigned i = 1; i <= count; i++) {
        unsigned depth = seed % 2 ? i : count + 1 - i;
        job_phase("destroying team %u of seed %llu", depth, (unsigned long long)seed);
        destroy(&teams[depth], has_scratch(draw(seed, &teams[depth - 1], depth)), depth);
    }
}

static void random_splits(uint64_t seed, unsigned count)
{
    struct team teams[DEPTH + 1];

    teams[0] = all;
    for (unsigned depth = 1; depth <= count; depth++) {
        job_phase("split %u of seed %llu", depth, (unsigned long long)seed);
        split(&teams[depth], &teams[depth - 1], draw(seed, &teams[depth - 1], depth), depth);
        check_team(&teams[depth]);
    }
    destroy_all(teams, count, seed);
    job_barrier();
}

/* All of ten teams have all members, in different orders. */
static void ten_nested_teams(void)
{
    struct team teams[DEPTH + 1];

    teams[0] = all;
    for (unsigned depth = 1; depth <= DEPTH; depth++) {
        const struct team *parent = &teams[depth - 1];
        struct team *t = &teams[depth];
        unsigned shift = depth % parent->size;
        int key = (int)((parent->rank + shift) % parent->size);
        gex_TM_Split(&t->tm, parent->tm, 0, key, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
        t->size = parent->size;
        for (unsigned r = 0; r < parent->size; r++)
            t->members[(r + shift) % parent->size] = parent->members[r];
        model_find_me(t);
    }
    for (unsigned depth = 0; depth <= DEPTH; depth++)
        check_team(&teams[depth]);
    for (unsigned depth = DEPTH; depth > 0; depth--)
        CHECK(gex_TM_Destroy(teams[depth].tm, NULL, 0) == 0);
}

/* ---- creates: disjoint teams in one call, members in any order (item 56) ---- */

/* Members of the parent, shuffled and cut into pieces; ours is [*begin, *end). */
static void shuffle(const struct team *parent, uint64_t seed, unsigned *order, unsigned *begin,
                    unsigned *end)
{
    uint64_t state = seed;
    unsigned mine = 0;

    for (unsigned r = 0; r < parent->size; r++) {
        unsigned at = job_random(&state) % (r + 1);
        order[r] = order[at];
        order[at] = r;
    }
    for (unsigned i = 0; i < parent->size; i++)
        if (order[i] == parent->rank)
            mine = i;
    *begin = 0, *end = parent->size;
    for (unsigned i = 1; i < parent->size; i++)
        if (job_mix(seed, i) % 3 == 0) {
            *begin = i <= mine ? i : *begin;
            *end = i > mine && i < *end ? i : *end;
        }
}

static gex_Flags_t scratch_kind(uint64_t seed)
{
    static const gex_Flags_t kinds[] = {GEX_FLAG_TM_NO_SCRATCH, GEX_FLAG_TM_SYMMETRIC_SCRATCH,
                                        GEX_FLAG_TM_LOCAL_SCRATCH, GEX_FLAG_TM_GLOBAL_SCRATCH};
    return kinds[seed / 64 % 4];
}

/* The library must not use addresses of others: in the table for all members only ours is valid.
 * One address for all members requires segments at equal addresses, so it is tested with a team of
 * one. */
static gex_Flags_t scratch_addresses(struct team *t, uint64_t seed, gex_Addr_t *addresses)
{
    gex_Flags_t kind = scratch_kind(seed);
    if (kind == GEX_FLAG_TM_SYMMETRIC_SCRATCH && t->size > 1)
        kind = GEX_FLAG_TM_LOCAL_SCRATCH;
    for (unsigned r = 0; r < t->size; r++)
        addresses[r] = NULL;
    addresses[kind == GEX_FLAG_TM_GLOBAL_SCRATCH ? t->rank : 0] = scratch_at(0);
    return kind;
}

static void random_create(uint64_t seed)
{
    gex_EP_Location_t args[MEMBERS_MAX];
    gex_Addr_t addresses[MEMBERS_MAX];
    unsigned order[MEMBERS_MAX] = {0}, begin, end;
    bool by_jobrank = seed % 2, only_takes_part;
    struct team parent, t;

    job_phase("create of seed %llu", (unsigned long long)seed);
    parent.tm = GEX_TM_INVALID;
    split(&parent, &all, seed, 1);
    uint64_t drawn = job_mix(seed, parent.members[0].gex_rank);
    shuffle(&parent, drawn, order, &begin, &end);
    only_takes_part = job_mix(drawn, begin) % 5 == 0;
    t.size = end - begin;
    for (unsigned r = 0; r < t.size; r++) {
        t.members[r] = parent.members[order[begin + r]];
        args[r].gex_rank = by_jobrank ? t.members[r].gex_rank : order[begin + r];
        args[r].gex_ep_index = 0;
    }
    model_find_me(&t);
    gex_Flags_t kind = scratch_addresses(&t, drawn, addresses);
    t.tm = GEX_TM_INVALID;
    if (only_takes_part) /* all that is not the parent is ignored then */
        gex_TM_Create(drawn & 1 ? &t.tm : NULL, drawn % 3, parent.tm, drawn & 2 ? args : NULL, 0,
                      NULL, 0, drawn & 4 ? GEX_FLAG_SCRATCH_SEG_OFFSET : kind);
    else
        gex_TM_Create(&t.tm, 1, parent.tm, args, t.size, addresses, SCRATCH,
                      kind | (by_jobrank ? GEX_FLAG_RANK_IS_JOBRANK : 0));
    CHECK((t.tm == GEX_TM_INVALID) == only_takes_part);
    if (only_takes_part) {
        for (int i = 0; i < 3; i++)
            job_barrier(); /* as others do around their messages */
    } else {
        check_team(&t);
        destroy(&t, kind != GEX_FLAG_TM_NO_SCRATCH, 0);
    }
    destroy(&parent, has_scratch(seed), 1);
}

/* All ranks in reverse order with addresses of each member, of ours, and one for all of a team of
 * one. */
static void each_kind_of_scratch(void)
{
    gex_EP_Location_t args[MEMBERS_MAX];
    gex_Addr_t theirs[MEMBERS_MAX] = {NULL}, ours = scratch_at(0);
    gex_Flags_t kinds[] = {GEX_FLAG_TM_GLOBAL_SCRATCH, GEX_FLAG_TM_LOCAL_SCRATCH};
    struct team t = all;

    for (unsigned r = 0; r < job.size; r++)
        args[r] = t.members[r] = (gex_EP_Location_t){job.size - 1 - r, 0};
    model_find_me(&t);
    theirs[t.rank] = ours;
    for (int i = 0; i < 2; i++) {
        gex_TM_Create(&t.tm, 1, job.tm, args, job.size, i == 0 ? theirs : &ours, SCRATCH, kinds[i]);
        check_team(&t);
        destroy(&t, true, 0);
    }
    gex_TM_Create(&t.tm, 1, job.tm, &args[t.rank], 1, &ours, SCRATCH,
                  GEX_FLAG_TM_SYMMETRIC_SCRATCH);
    CHECK(gex_TM_QuerySize(t.tm) == 1 && gex_TM_QueryRank(t.tm) == 0);
    destroy(&t, true, 0);
}

/* ---- items 53 to 55 ---- */

static void item_53_color_groups_key_orders_and_null_takes_part(void)
{
    struct team t = {.size = (job.size + 1 - job.rank % 2) / 2};

    gex_TM_Split(&t.tm, job.tm, (int)(job.rank % 2), -(int)job.rank, NULL, 0,
                 GEX_FLAG_TM_NO_SCRATCH);
    for (unsigned r = 0; r < t.size; r++)
        t.members[r].gex_rank = job.rank % 2 + 2 * (t.size - 1 - r);
    for (unsigned r = 0; r < t.size; r++)
        t.members[r].gex_ep_index = 0;
    model_find_me(&t);
    check_team(&t);
    CHECK(gex_TM_Destroy(t.tm, NULL, 0) == 0);
    gex_TM_Split(NULL, job.tm, -5, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
}

static void item_54_query_mode(void)
{
    gex_TM_t tm = GEX_TM_INVALID;
    gex_EP_Location_t me = {job.rank, 0};
    gex_Flags_t query = GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED;

    CHECK(gex_TM_Split(&tm, job.tm, 0, 0, NULL, 0, query) ==
          (size_t)job_number("GASNET_COLL_SCRATCH_SIZE", 2 << 20));
    CHECK(gex_TM_Split(NULL, job.tm, 0, 0, NULL, 0, query) == 0);
    CHECK(gex_TM_Create(&tm, 1, job.tm, &me, 1, NULL, 0, query) > 0);
    CHECK(gex_TM_Create(NULL, 0, job.tm, NULL, 0, NULL, 0, query) == 0);
    CHECK(tm == GEX_TM_INVALID, "a query created a team");
}

static void item_55_scratch_memory_comes_back_if_it_was_the_clients(void)
{
    gex_TM_t tm;
    gex_Memvec_t memory = {&tm, 5};

    gex_TM_Split(&tm, job.tm, 0, 0, scratch_at(0), SCRATCH, 0);
    CHECK(gex_TM_Destroy(tm, NULL, 0) == 0);
    gex_TM_Split(&tm, job.tm, 0, 0, scratch_at(0), SCRATCH, 0);
    CHECK(gex_TM_Destroy(tm, &memory, 0) != 0);
    CHECK(memory.gex_addr == scratch_at(0) && memory.gex_len == SCRATCH);
    memory = (gex_Memvec_t){&tm, 5};
    gex_TM_Split(&tm, job.tm, 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    job_barrier();
    CHECK(gex_TM_Destroy(tm, &memory, GEX_FLAG_GLOBALLY_QUIESCED) == 0);
    CHECK(memory.gex_addr == (void *)&tm && memory.gex_len == 5, "outputs were touched");
}

static void each_team_has_client_data_of_its_own(void)
{
    gex_TM_t one, two;

    gex_TM_Split(&one, job.tm, 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    gex_TM_Split(&two, one, 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    CHECK(one != two && one != job.tm && two != job.tm);
    gex_TM_SetCData(one, &one);
    CHECK(gex_TM_QueryCData(one) == &one && gex_TM_QueryCData(two) == NULL);
    gex_TM_Destroy(one, NULL, 0);
    CHECK(gex_TM_QuerySize(two) == job.size, "a team needs its parent");
    gex_TM_Destroy(two, NULL, 0);
}

/* No member returns from Destroy before all have called it. */
static void destroy_waits_for_all(void)
{
    gex_TM_t tm;

    gex_TM_Split(&tm, job.tm, 0, -(int)job.rank, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    *(volatile uint64_t *)job.base = 0;
    job_barrier();
    if (job.rank == 0)
        usleep(20000);
    for (gex_Rank_t r = 0; job.rank == 0 && r < job.size; r++)
        gex_RMA_PutBlockingVal(job.tm, r, job_remote(r, 0), 1, 8, 0);
    gex_TM_Destroy(tm, NULL, 0);
    CHECK(*(volatile uint64_t *)job.base == 1);
    job_barrier();
}

/* ---- publishing in a part of the job ---- */

static void a_segment_is_published_in_a_team(void)
{
    gex_EP_t ep;
    gex_Segment_t segment;
    gex_TM_t tm;
    uintptr_t size;
    void *address;

    CHECK(gex_EP_Create(&ep, job.client, GEX_EP_CAPABILITY_RMA, 0) == GASNET_OK);
    CHECK(gex_Segment_Create(&segment, job.client, NULL, 8192, GEX_MK_HOST, 0) == GASNET_OK);
    CHECK(gex_EP_BindSegment(ep, segment, 0) == GASNET_OK);
    gex_TM_Split(&tm, job.tm, job.rank % 2, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    /* Members list different numbers of endpoints. */
    gex_EP_t list[] = {ep, job.ep};
    CHECK(gex_EP_PublishBoundSegment(tm, list, 1 + job.rank % 3 / 2, 0) == GASNET_OK);
    job_barrier();
    for (gex_Rank_t r = 0; r < job.size; r++) {
        gex_TM_t pair = gex_TM_Pair(job.ep, gex_EP_QueryIndex(ep));
        gex_Event_Wait(gex_EP_QueryBoundSegmentNB(pair, r, &address, NULL, &size, 0));
        CHECK((size == 8192) == (r % 2 == job.rank % 2), "%zu of rank %u", (size_t)size, r);
        if (size == 0)
            continue;
        CHECK(gex_RMA_PutBlockingVal(pair, r, (char *)address + 8 * job.rank, r, 8, 0) == 0);
        CHECK(gex_RMA_GetBlockingVal(pair, r, (char *)address + 8 * job.rank, 8, 0) == r);
    }
    job_barrier();
    gex_TM_Destroy(tm, NULL, 0);
}

/* ---- memory ---- */

static long mapped_pages(void)
{
    char text[100] = "";
    long size;
    int fd = open("/proc/self/statm", O_RDONLY);

    CHECK(fd >= 0 && read(fd, text, sizeof text - 1) > 0);
    close(fd);
    CHECK(sscanf(text, "%ld", &size) == 1);
    return size;
}

static void many_teams(int count)
{
    struct team t;

    for (int i = 0; i < count; i++) {
        split(&t, &all, job_mix(5, i), 1);
        destroy(&t, has_scratch(job_mix(5, i)), 1);
    }
}

static void a_thousand_teams_leave_nothing_behind(void)
{
    many_teams(200);
    long before = mapped_pages();
    size_t bytes_before = mallinfo2().uordblks;
    many_teams(1000);
    size_t bytes = mallinfo2().uordblks;
    CHECK(mapped_pages() - before < 64, "grew from %ld to %ld pages", before, mapped_pages());
    /* A table of four ranks is 16 bytes: 1000 of them would be seen. */
    CHECK(bytes < bytes_before + 4000, "grew from %zu to %zu bytes", bytes_before, bytes);
}

/* ---- what is forbidden ---- */

static void on_wrong(gex_Token_t token, gex_AM_Arg_t unused)
{
    gex_TM_t tm;
    (void)token, (void)unused;
    gex_TM_Split(&tm, job.tm, 0, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
}

static gex_AM_Entry_t wrong_table[] = {
    {0, (gex_AM_Fn_t)on_wrong, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 1, NULL, "wrong"},
};

static void wrong_split(int which)
{
    gex_TM_t tm = job.tm, pair = gex_TM_Pair(job.ep, 0);
    gex_Flags_t none = GEX_FLAG_TM_NO_SCRATCH;

    if (which == 1)
        gex_TM_Destroy(job.tm, NULL, 0);
    if (which == 2)
        gex_TM_Destroy(pair, NULL, 0);
    if (which == 3)
        gex_TM_Split(&tm, pair, 0, 0, NULL, 0, none);
    if (which == 4)
        gex_TM_Split(&tm, job.tm, -1, 0, NULL, 0, none);
    if (which == 5)
        gex_TM_Split(&tm, job.tm, 0, 0, NULL, 0, GEX_FLAG_TM_GLOBAL_SCRATCH);
    if (which == 6)
        gex_TM_Split(&tm, job.tm, 0, 0, job.base + SEGMENT - 10, 11, 0);
    if (which == 7)
        gex_TM_Split(&tm, job.tm, 0, 0, job.base, 0, 0);
    if (which == 8)
        gex_TM_Split(&tm, job.tm, 0, 0, job.base, 64 + job.rank, 0);
    if (which == 9)
        gex_AM_RequestShort1(job.tm, job.rank, wrong_table[0].gex_index, 0, 0);
    if (which == 10)
        gex_TM_Destroy(GEX_TM_INVALID, NULL, 0);
}

static void wrong_create(int which)
{
    gex_TM_t tms[3];
    gex_EP_Location_t args[] = {{0, 0}, {1, 0}, {0, 0}};
    gex_Addr_t address = job.base;
    gex_Flags_t none = GEX_FLAG_TM_NO_SCRATCH;

    if (which == 20)
        gex_TM_Create(tms, 1, job.tm, args, 2, NULL, 0, 0);
    if (which == 21)
        gex_TM_Create(tms, 1, job.tm, args, 2, &address, 8, none | GEX_FLAG_TM_SYMMETRIC_SCRATCH);
    if (which == 22)
        gex_TM_Create(tms, 2, job.tm, args, 2, NULL, 0, none);
    if (which == 23)
        gex_TM_Create(tms, job.rank == 0 ? 2 : 1, job.tm, args, 3, NULL, 0, none);
    if (which == 24)
        args[1].gex_rank = job.size;
    if (which == 25)
        args[1].gex_ep_index = GASNET_MAXEPS;
    if (which == 26)
        args[job.rank].gex_ep_index = 3;
    if (which == 27 && job.rank == 1)
        gex_TM_Create(NULL, 0, job.tm, NULL, 0, NULL, 0, none);
    if (which == 28 && job.rank == 1)
        args[0].gex_rank = 1, args[1].gex_rank = 0;
    if (which == 29)
        gex_TM_Create(tms, 1, job.tm, args, 2, NULL, 8, GEX_FLAG_TM_LOCAL_SCRATCH);
    if (which == 30)
        gex_TM_Create(tms, 1, job.tm, args, 2, NULL, 0, none | GEX_FLAG_SCRATCH_SEG_OFFSET);
    gex_TM_Create(tms, 1, job.tm, args, 2, NULL, 0, none);
}

static void wrong(int which)
{
    CHECK(gex_EP_RegisterHandlers(job.ep, wrong_table, 1) == GASNET_OK);
    job_barrier();
    if (which < 20)
        wrong_split(which);
    else
        wrong_create(which);
    for (;;) /* another rank may be the one that finds out */
        gasnet_AMPoll();
}

/* ---- */

static void everyone(void)
{
    all = (struct team){.tm = job.tm, .size = job.size, .rank = job.rank};
    CHECK(job.size <= MEMBERS_MAX);
    for (unsigned r = 0; r < job.size; r++)
        all.members[r] = (gex_EP_Location_t){r, 0};
}

int main(int argc, char **argv)
{
    uint64_t seed = (uint64_t)job_number("TEAMS_SEED", 16);
    int rounds = (int)job_number("TEAMS_ROUNDS", 4);

    job_start(&argc, &argv, SEGMENT);
    everyone();
    CHECK(gex_EP_RegisterHandlers(job.ep, table, 3) == GASNET_OK);
    ask = table[0].gex_index, answer = table[1].gex_index, ask_payload = table[2].gex_index;
    job_barrier();
    if (argc > 2 && !strcmp(argv[1], "wrong"))
        wrong(atoi(argv[2]));
    check_team(&all);
    item_53_color_groups_key_orders_and_null_takes_part();
    item_54_query_mode();
    item_55_scratch_memory_comes_back_if_it_was_the_clients();
    each_team_has_client_data_of_its_own();
    destroy_waits_for_all();
    a_segment_is_published_in_a_team();
    ten_nested_teams();
    each_kind_of_scratch();
    for (int i = 0; i < rounds; i++) {
        random_splits(job_mix(seed, i), 4);
        random_create(job_mix(seed, 100 + i));
    }
    if (argc > 1 && !strcmp(argv[1], "many"))
        a_thousand_teams_leave_nothing_behind();
    job_end();
}
