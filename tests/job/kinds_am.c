/* SPDX-License-Identifier: BSD-3-Clause */
/* Longs with payloads in memory of devices: from each endpoint to each endpoint of each rank, host
 * and device, this process included. The handler finds the data in its place, reads it by the
 * driver, and replies by a Long from there. Sources are overwritten as soon as they are free.
 *
 * Usage: kinds_am [rounds [pollers]]; KINDS_SEED; KINDS_REFUSED=request or =reply: a Long is
 * prepared. */
#include "config.h"

#include "job.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "accelerator.h"
#include "gasnet_mk.h"

enum {
    DEVICE = 1, /* endpoints: memory of the library on the first device, */
    GIVEN,      /* and of the client on the last one */
    HOST,
    EPS,
    SLOT = 1 << 17,
    RANKS = 4,
    ASK = 200,
    ANSWER
};

static gex_EP_t eps[EPS];
static char *bases[RANKS][EPS];
static int last_device;
static gex_HSL_t lock = GEX_HSL_INITIALIZER;
static unsigned asked, answered, wanted;
static uint64_t state;

/* ---- memory ---- */

static bool is_device(unsigned ep)
{
    return ep == DEVICE || ep == GIVEN;
}

static void write_ours(unsigned ep, char *at, const void *from, size_t size)
{
    if (is_device(ep))
        acc_write(ep == DEVICE ? 0 : last_device, at, from, size);
    else
        memcpy(at, from, size);
}

static void read_ours(unsigned ep, void *to, const char *at, size_t size)
{
    if (is_device(ep))
        acc_read(ep == DEVICE ? 0 : last_device, to, at, size);
    else
        memcpy(to, at, size);
}

/* Where a message from an endpoint is stored; answers follow, then sources. */
static char *place(gex_Rank_t owner, unsigned ep, gex_Rank_t from, unsigned from_ep, bool answer)
{
    return bases[owner][ep] + ((from * EPS + from_ep) * 2 + answer) * (size_t)SLOT;
}

static char *source_of(unsigned ep)
{
    return bases[job.rank][ep] + (size_t)RANKS * EPS * 2 * SLOT;
}

static const size_t segment_size = (size_t)(RANKS * EPS * 2 + 1) * SLOT;

static void fill(unsigned ep, char *at, size_t size, uint64_t seed)
{
    char *bytes = job_memory(size);
    job_fill(bytes, size, seed);
    write_ours(ep, at, bytes, size);
    free(bytes);
}

static void check(unsigned ep, const char *at, size_t size, uint64_t seed)
{
    char *bytes = job_memory(size);
    read_ours(ep, bytes, at, size);
    CHECK_PATTERN(bytes, size, seed);
    free(bytes);
}

/* ---- handlers ---- */

static void count_one(unsigned *counter)
{
    gex_HSL_Lock(&lock);
    ++*counter;
    gex_HSL_Unlock(&lock);
}

/* Only the client thread may wait for the events of replies. */
static gex_Event_t events[64];
static unsigned event_count;

static void keep(gex_Event_t event)
{
    gex_HSL_Lock(&lock);
    CHECK(event_count < 64);
    events[event_count++] = event;
    gex_HSL_Unlock(&lock);
}

static void answer(gex_Token_t token, gex_Rank_t to, unsigned ours, unsigned theirs, char *from,
                   size_t size, gex_AM_Arg_t seed)
{
    char *there = place(to, theirs, job.rank, ours, true);
    gex_Event_t event;
    if (getenv("KINDS_REFUSED"))
        gex_AM_PrepareReplyLong(token, from, size, size, there, GEX_EVENT_NOW, 0, 3);
    if (seed % 3 == 0) {
        CHECK(gex_AM_ReplyLong3(token, ANSWER, from, size, there, &event, 0, (gex_AM_Arg_t)theirs,
                                (gex_AM_Arg_t)ours, seed) == 0);
        keep(event);
        return;
    }
    gex_Flags_t flags = seed % 3 == 1 ? GEX_FLAG_IMMEDIATE : 0;
    while (gex_AM_ReplyLong3(token, ANSWER, from, size, there, GEX_EVENT_NOW, flags,
                             (gex_AM_Arg_t)theirs, (gex_AM_Arg_t)ours, seed) != 0)
        flags = 0; /* the missing resource may need a poll, which is not allowed here */
    fill(ours, from, size, 99);
}

static void on_ask(gex_Token_t token, void *buf, size_t size, gex_AM_Arg_t theirs,
                   gex_AM_Arg_t ours, gex_AM_Arg_t seed)
{
    gex_Token_Info_t info;
    gex_Token_Info(token, &info, GEX_TI_ALL);
    CHECK(info.gex_ep == eps[ours]);
    CHECK((char *)buf ==
          place(job.rank, (unsigned)ours, info.gex_srcrank, (unsigned)theirs, false));
    check((unsigned)ours, buf, size, (uint64_t)seed);
    count_one(&asked);
    if (seed % 4)
        answer(token, info.gex_srcrank, (unsigned)ours, (unsigned)theirs, buf, size, seed);
}

static void on_answer(gex_Token_t token, void *buf, size_t size, gex_AM_Arg_t ours,
                      gex_AM_Arg_t theirs, gex_AM_Arg_t seed)
{
    gex_Token_Info_t info;
    gex_Token_Info(token, &info, GEX_TI_ALL);
    CHECK(info.gex_ep == eps[ours]);
    CHECK((char *)buf == place(job.rank, (unsigned)ours, info.gex_srcrank, (unsigned)theirs, true));
    check((unsigned)ours, buf, size, (uint64_t)seed);
    count_one(&answered);
}

/* ---- endpoints ---- */

static void register_on(unsigned e)
{
    gex_AM_Entry_t table[] = {
        {ASK, (gex_AM_Fn_t)on_ask, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 3, NULL, "ask"},
        {ANSWER, (gex_AM_Fn_t)on_answer, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REPLY, 3, NULL, "answer"}};
    CHECK(gex_EP_RegisterHandlers(eps[e], table, 2) == GASNET_OK);
}

static void make_endpoints(void)
{
    gex_MK_t kinds[EPS] = {[HOST] = GEX_MK_HOST};
    gex_MK_Create_args_t args = acc_args(0);
    CHECK(gex_MK_Create(&kinds[DEVICE], job.client, &args, 0) == GASNET_OK);
    args = acc_args(last_device);
    CHECK(gex_MK_Create(&kinds[GIVEN], job.client, &args, 0) == GASNET_OK);
    eps[0] = job.ep;
    for (unsigned e = 1; e < EPS; e++) {
        gex_Segment_t segment;
        void *memory = e == GIVEN ? acc_alloc(last_device, segment_size) : NULL;
        CHECK(gex_EP_Create(&eps[e], job.client, GEX_EP_CAPABILITY_ALL, 0) == GASNET_OK);
        CHECK(gex_Segment_Create(&segment, job.client, memory, segment_size, kinds[e], 0) ==
              GASNET_OK);
        CHECK(gex_EP_BindSegment(eps[e], segment, 0) == GASNET_OK);
    }
    for (unsigned e = 0; e < EPS; e++)
        register_on(e);
    CHECK(gex_EP_PublishBoundSegment(job.tm, &eps[1], EPS - 1, 0) == GASNET_OK);
    for (gex_Rank_t r = 0; r < job.size; r++)
        for (unsigned e = 0; e < EPS; e++) {
            void *base;
            uintptr_t size;
            gex_TM_t pair = gex_TM_Pair(job.ep, (gex_EP_Index_t)e);
            gex_Event_Wait(gex_EP_QueryBoundSegmentNB(pair, r, &base, NULL, &size, 0));
            CHECK(size >= segment_size);
            bases[r][e] = base;
        }
    job_barrier();
}

/* ---- requests ---- */

static void wait_answers(void)
{
    GASNET_BLOCKUNTIL(job_seen(&answered) == wanted);
}

/* The source is free when this returns. */
static void request(gex_Rank_t to, unsigned ours, unsigned theirs, size_t size, gex_AM_Arg_t seed)
{
    gex_TM_t tm = gex_TM_Pair(eps[ours], (gex_EP_Index_t)theirs);
    char *from = source_of(ours), *there = place(to, theirs, job.rank, ours, false);
    gex_Event_t event = GEX_EVENT_INVALID, *lc_opt[] = {GEX_EVENT_NOW, GEX_EVENT_GROUP, &event};
    int how = (int)(job_random(&state) % 3);
    gex_Flags_t flags = job_random(&state) % 2 ? GEX_FLAG_IMMEDIATE : 0;
    while (gex_AM_RequestLong3(tm, to, ASK, from, size, there, lc_opt[how], flags,
                               (gex_AM_Arg_t)ours, (gex_AM_Arg_t)theirs, seed) != 0)
        gasnet_AMPoll();
    gex_Event_Wait(event);
    if (how == 1)
        gex_NBI_Wait(GEX_EC_LC, 0);
}

static size_t random_size(void)
{
    static const size_t ends[] = {8, 200, 4032, 4100, 20000, SLOT};
    size_t end = ends[job_random(&state) % 6], most = gex_AM_LUBRequestLong();
    return 1 + job_random(&state) % (end < most ? end : most);
}

/* One message of each pair of endpoints is under way at a time. */
static void round_of_all(int number)
{
    unsigned sent = 0;
    for (unsigned ours = 0; ours < EPS; ours++)
        for (unsigned theirs = 0; theirs < EPS; theirs++)
            for (gex_Rank_t to = 0; to < job.size; to++) {
                size_t size = random_size();
                gex_AM_Arg_t seed = (gex_AM_Arg_t)(job_random(&state) % 1000000);
                job_phase("round %d: %u to %u of rank %u, %zu bytes, seed %d", number, ours, theirs,
                          to, size, (int)seed);
                fill(ours, source_of(ours), size, (uint64_t)seed);
                request(to, ours, theirs, size, seed);
                fill(ours, source_of(ours), size, 98);
                wanted += seed % 4 != 0;
                sent++;
            }
    wait_answers();
    GASNET_BLOCKUNTIL(job_seen(&asked) == sent * (unsigned)(number + 1));
    for (unsigned i = 0; i < event_count; i++)
        gex_Event_Wait(events[i]);
    event_count = 0;
    job_barrier();
}

/* Sends more than can be queued at once, without a wait in between; none is lost. */
static void flood(void)
{
    enum { FLOOD = 2000, SIZE = 64 };
    const gex_Rank_t to = (job.rank + 1) % job.size;
    const unsigned before = job_seen(&asked);
    job_phase("flood");
    fill(DEVICE, source_of(DEVICE), SIZE, 4);
    job_barrier();
    for (int i = 0; i < FLOOD; i++)
        CHECK(gex_AM_RequestLong3(gex_TM_Pair(eps[DEVICE], DEVICE), to, ASK, source_of(DEVICE),
                                  SIZE, place(to, DEVICE, job.rank, DEVICE, false), GEX_EVENT_GROUP,
                                  0, DEVICE, DEVICE, 4) == 0);
    gex_NBI_Wait(GEX_EC_LC, 0);
    GASNET_BLOCKUNTIL(job_seen(&asked) == before + FLOOD);
    job_barrier();
}

static volatile int stop;
static void *poll_on(void *unused)
{
    while (!stop)
        gasnet_AMPoll();
    return unused;
}

static void refused(const char *what)
{
    gex_Rank_t other = (job.rank + 1) % job.size;
    gex_TM_t tm = gex_TM_Pair(eps[DEVICE], 0);
    if (!strcmp(what, "request"))
        gex_AM_PrepareRequestLong(tm, other, NULL, 1, 8, NULL, NULL, 0, 3);
    fill(DEVICE, source_of(DEVICE), 8, 1);
    request(other, DEVICE, 0, 8, 1);
    GASNET_BLOCKUNTIL(0);
}

int main(int argc, char **argv)
{
    pthread_t pollers[8];
    job_start(&argc, &argv, 0);
    int rounds = argc > 1 ? atoi(argv[1]) : 3, count = argc > 2 ? atoi(argv[2]) : 0;
    CHECK(job.size <= RANKS && count <= 8);
    state = job_mix((uint64_t)job_number("KINDS_SEED", 1), job.rank);
    job_attach((segment_size + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE);
    last_device = acc_open() - 1;
    make_endpoints();
    if (getenv("KINDS_REFUSED"))
        refused(getenv("KINDS_REFUSED"));
    for (int i = 0; i < count; i++)
        CHECK(pthread_create(&pollers[i], NULL, poll_on, NULL) == 0);
    for (int i = 0; i < rounds; i++)
        round_of_all(i);
    flood();
    stop = 1;
    for (int i = 0; i < count; i++)
        pthread_join(pollers[i], NULL);
    job_end();
}
