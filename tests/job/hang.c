/* SPDX-License-Identifier: BSD-3-Clause */
/* Jobs that hang, each for another reason, which hang.sh lets --explain name. Usage: hang WAY.
 * Owned by the one client thread, but for `lock`. */
#include "config.h"

#include "job.h"

#include "gasnet_coll.h"
#include "gasnet_ratomic.h"
#include "gasnet_vis.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static gex_AM_Index_t request_index, stay_index, reply_index;
static volatile int replies;

/* Neither polls nor waits in the library. */
static void stay_away(void)
{
    for (;;)
        pause();
}

static const char *mark; /* a file: shows that the missing rank polls no more */

static void leave_mark(void)
{
    int fd = open(mark, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0, "%s", mark);
    close(fd);
}

/* Waits until the missing rank is away: before that it might still answer a message. */
static void missing_is_away(gex_Rank_t rank, void (*go)(void))
{
    if (job.rank == rank) {
        leave_mark();
        go();
    }
    while (access(mark, F_OK) != 0)
        usleep(1000);
}

static void stop(void)
{
    raise(SIGSTOP);
}

static void on_request(gex_Token_t token)
{
    (void)token;
}

static void on_stay(gex_Token_t token)
{
    (void)token;
    stay_away();
}

static void on_reply(gex_Token_t token)
{
    (void)token;
    replies++;
}

static void wait_for_reply(void)
{
    GASNET_BLOCKUNTIL(replies > 0);
}

static void barrier(void)
{
    missing_is_away(job.size - 1, stay_away);
    job_barrier();
}

static void named(void)
{
    missing_is_away(1, stay_away);
    gasnet_barrier(7, 0);
}

/* Each is in a barrier that the other does not enter. */
static void circle(void)
{
    if (job.rank == 1)
        gasnet_barrier(7, 0);
    job_barrier();
}

static void credit(void)
{
    missing_is_away(1, stay_away);
    for (;;)
        gex_AM_RequestShort0(job.tm, 1, request_index, 0);
}

static void stopped(void)
{
    missing_is_away(1, stop);
    job_barrier();
}

static void handler(void)
{
    if (job.rank == 0)
        gex_AM_RequestShort0(job.tm, 1, stay_index, 0);
    wait_for_reply();
}

static void event(void)
{
    gex_AD_t ad;
    uint64_t old;
    gex_AD_Create(&ad, job.tm, GEX_DT_U64, GEX_OP_FXOR, 0);
    job_barrier();
    missing_is_away(1, stay_away);
    gex_Event_Wait(gex_AD_OpNB_U64(ad, &old, 1, job_remote(1, 0), GEX_OP_FXOR, 1, 0, 0));
}

static void collective(void)
{
    uint64_t value = job.rank;
    missing_is_away(1, stay_away);
    gex_Event_Wait(gex_Coll_BroadcastNB(job.tm, 1, &value, &value, sizeof value, 0));
}

static void connection(void)
{
    missing_is_away(1, stay_away);
    gex_AM_RequestShort0(job.tm, 1, request_index, 0);
}

/* Of pieces, which the target's handler unpacks. */
static void put(void)
{
    static char pieces[100][16];
    const size_t count[] = {100};
    const ptrdiff_t from[] = {sizeof *pieces}, to[] = {64};
    missing_is_away(1, stop);
    gex_VIS_StridedPutBlocking(job.tm, 1, job_remote(1, 0), to, pieces, from, sizeof *pieces / 2,
                               count, 1, 0);
}

static void team(void)
{
    gex_TM_t split;
    size_t size = gex_TM_Split(&split, job.tm, 0, (int)job.rank, NULL, 0,
                               GEX_FLAG_TM_SCRATCH_SIZE_RECOMMENDED);
    missing_is_away(1, stay_away);
    (void)size;
    gex_TM_Split(&split, job.tm, 0, (int)job.rank, job.base, job.segment_size, 0);
}

static void destroy(void)
{
    gex_TM_t split;
    gex_TM_Split(&split, job.tm, 0, (int)job.rank, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    missing_is_away(1, stay_away);
    gex_TM_Destroy(split, NULL, 0);
}

#if GASNET_PAR
static gex_HSL_t hsl = GEX_HSL_INITIALIZER;
static volatile int is_held;

static void *hold(void *unused)
{
    gex_HSL_Lock(&hsl);
    is_held = 1;
    stay_away();
    return NULL;
}

static void lock(void)
{
    pthread_t thread;
    if (job.rank == 1) {
        pthread_create(&thread, NULL, hold, NULL);
        while (!is_held)
            usleep(1000);
        gex_HSL_Lock(&hsl);
    }
    job_barrier();
}
#endif

static const struct {
    const char *name;
    void (*run)(void);
    int attaches;
} ways[] = {
    {"barrier", barrier, 1},
    {"named", named, 1},
    {"circle", circle, 1},
    {"credit", credit, 1},
    {"stopped", stopped, 1},
    {"handler", handler, 1},
    {"event", event, 1},
    {"collective", collective, 1},
    {"connection", connection, 0},
    {"put", put, 1},
    {"team", team, 1},
    {"destroy", destroy, 1},
#if GASNET_PAR
    {"lock", lock, 1},
#endif
};

int main(int argc, char **argv)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)on_request, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "request"},
        {0, (gex_AM_Fn_t)on_stay, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, "stay"},
        {0, (gex_AM_Fn_t)on_reply, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, "reply"}};
    unsigned way = 0;
    while (way < sizeof ways / sizeof *ways - 1 && strcmp(ways[way].name, argv[1]) != 0)
        way++;
    mark = argv[2];
    job_start(&argc, &argv, ways[way].attaches ? 65536 : 0);
    gex_EP_RegisterHandlers(job.ep, table, 3);
    request_index = table[0].gex_index;
    stay_index = table[1].gex_index;
    reply_index = table[2].gex_index;
    gasnet_set_waitmode(GASNET_WAIT_BLOCK); /* many such jobs run at once */
    if (ways[way].attaches)
        job_barrier();
    ways[way].run();
    fprintf(stderr, "%s did not hang\n", ways[way].name);
    return 3;
}
