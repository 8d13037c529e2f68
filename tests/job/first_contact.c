/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that use each other for the first time: in random order, by random operations, all at once,
 * so that both ends of a pair often begin together. Messages of a rank arrive in order, each once,
 * and all data is verified; an immediate message comes back instead of waiting. Usage:
 * first_contact SEED, or first_contact ring: each rank uses only the next one, or first_contact
 * computes NAME SECONDS: rank 0 uses all others, which are connected with some ranks and make no
 * call until rank 0 has waited so long (files whose names begin with NAME show that); or
 * first_contact killed: rank 0 is killed when it is connected; or first_contact lost: it is killed
 * while all others use it. Owned by the one client thread. */
#include "config.h"

#include "job.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_RANKS = 64, CELL = 40000, MESSAGES = 20, OPERATIONS = 5 };
enum { PUT, GET, SHORT, MEDIUM, IMMEDIATE };

static unsigned came[MAX_RANKS]; /* messages of each rank */
static unsigned replies, asked;
static gex_AM_Index_t short_index, medium_index, reply_index;
static uint64_t chance;

static void take(gex_Token_t token, gex_AM_Arg_t number)
{
    gex_Token_Info_t info;

    gex_Token_Info(token, &info, GEX_TI_SRCRANK);
    CHECK((unsigned)number == came[info.gex_srcrank], "message %d of rank %u came after %u others",
          (int)number, info.gex_srcrank, came[info.gex_srcrank]);
    came[info.gex_srcrank]++;
    gex_AM_ReplyShort1(token, reply_index, 0, number);
}

static void on_short(gex_Token_t token, gex_AM_Arg_t number)
{
    take(token, number);
}

static void on_medium(gex_Token_t token, void *memory, size_t size, gex_AM_Arg_t number)
{
    CHECK_PATTERN(memory, size, (uint64_t)number);
    take(token, number);
}

static void on_reply(gex_Token_t token, gex_AM_Arg_t number)
{
    (void)token, (void)number;
    replies++;
}

static void send_one(gex_Rank_t to, unsigned number, int kind)
{
    static char payload[3000];
    gex_Flags_t flags = kind == IMMEDIATE ? GEX_FLAG_IMMEDIATE : 0;

    asked++;
    if (kind == MEDIUM) {
        job_fill(payload, sizeof payload, number);
        gex_AM_RequestMedium1(job.tm, to, medium_index, payload, sizeof payload, GEX_EVENT_NOW, 0,
                              (gex_AM_Arg_t)number);
        return;
    }
    while (gex_AM_RequestShort1(job.tm, to, short_index, flags, (gex_AM_Arg_t)number))
        gasnet_AMPoll();
}

/* Each rank has a cell of its own in the segment of each other. */
static void put_and_get(gex_Rank_t to, int is_get)
{
    static char out[CELL], back[CELL];
    void *cell = job_remote(to, (size_t)job.rank * CELL);
    size_t size = job_random(&chance) % 2 ? 8 : CELL;

    job_fill(out, size, job.rank);
    if (!is_get)
        gex_RMA_PutBlocking(job.tm, to, cell, out, size, 0);
    gex_RMA_GetBlocking(job.tm, back, to, cell, size, 0);
    if (!is_get)
        CHECK(memcmp(out, back, size) == 0, "%zu bytes at rank %u", size, to);
}

static void use(gex_Rank_t to)
{
    int kind = (int)(job_random(&chance) % OPERATIONS);

    job_phase("first contact with rank %u by %d", to, kind);
    if (kind == PUT || kind == GET)
        put_and_get(to, kind == GET);
    for (unsigned i = 0; i < MESSAGES; i++)
        send_one(to, i, kind == PUT || kind == GET ? SHORT + (int)(i % 2) : kind);
}

static void use_all(void)
{
    gex_Rank_t order[MAX_RANKS];

    for (gex_Rank_t r = 0; r < job.size; r++) {
        gex_Rank_t at = (gex_Rank_t)(job_random(&chance) % (r + 1));
        order[r] = order[at];
        order[at] = r;
    }
    for (gex_Rank_t i = 0; i < job.size; i++)
        if (order[i] != job.rank)
            use(order[i]);
}

/* ---- peers that compute ---- */

static const char *flag_name(const char *name, gex_Rank_t rank)
{
    static char text[4096];

    snprintf(text, sizeof text, "%s.%u", name, (unsigned)rank);
    return text;
}

static void set_flag(const char *name)
{
    const char *file = flag_name(name, job.rank);
    int fd = open(file, O_WRONLY | O_CREAT, 0666);

    CHECK(fd >= 0 && close(fd) == 0, "%s", file);
}

static int is_set(const char *name, gex_Rank_t rank)
{
    return access(flag_name(name, rank), F_OK) == 0;
}

static void compute(const char *name)
{
    set_flag(name);
    while (!is_set(name, 0))
        usleep(1000);
}

static void use_all_that_compute(const char *name, double seconds)
{
    int has_waited = 0;

    for (gex_Rank_t r = 1; r < job.size; r++)
        while (!is_set(name, r))
            gasnet_AMPoll(); /* it may still be in the barrier of the start */
    for (gex_Rank_t to = 1; to < job.size; to++) {
        double since = job_seconds();
        asked++;
        while (gex_AM_RequestShort1(job.tm, to, short_index, GEX_FLAG_IMMEDIATE, 0)) {
            gasnet_AMPoll();
            usleep(1000);
            if (!has_waited && job_seconds() - since > seconds) {
                set_flag(name);
                has_waited = 1;
            }
        }
    }
    CHECK(has_waited, "rank 0 was connected with all before it used them");
    for (gex_Rank_t to = 1; to < job.size; to++)
        for (unsigned i = 1; i < MESSAGES; i++)
            send_one(to, i, SHORT);
}

static void use_them(char **argv)
{
    if (!strcmp(argv[1], "ring"))
        use((job.rank + 1) % job.size);
    else if (!strcmp(argv[1], "computes") && job.rank > 0)
        compute(argv[2]);
    else if (!strcmp(argv[1], "computes"))
        use_all_that_compute(argv[2], atof(argv[3]));
    else if (job.rank == 0 && (!strcmp(argv[1], "killed") || !strcmp(argv[1], "lost")))
        raise(SIGKILL);
    else if (strcmp(argv[1], "killed"))
        use_all();
}

int main(int argc, char **argv)
{
    gex_AM_Entry_t handlers[] = {
        {0, (gex_AM_Fn_t)on_short, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT, 1, NULL, "short"},
        {0, (gex_AM_Fn_t)on_medium, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_MEDIUM, 1, NULL, "medium"},
        {0, (gex_AM_Fn_t)on_reply, GEX_FLAG_AM_REPLY | GEX_FLAG_AM_SHORT, 1, NULL, "reply"}};

    job_start(&argc, &argv, 0);
    gex_EP_RegisterHandlers(job.ep, handlers, 3);
    short_index = handlers[0].gex_index;
    medium_index = handlers[1].gex_index;
    reply_index = handlers[2].gex_index;
    job_attach(((size_t)job.size * CELL + 0xffff) & ~(size_t)0xffff);
    CHECK(job.size <= MAX_RANKS && argc >= 2);
    chance = job_mix(strtoull(argv[1], NULL, 10), job.rank);
    use_them(argv);
    job_phase("replies");
    GASNET_BLOCKUNTIL(replies == asked);
    job_barrier();
    for (gex_Rank_t r = 0; r < job.size; r++)
        CHECK(came[r] == 0 || came[r] == MESSAGES, "%u messages of rank %u", came[r], r);
    job_end();
}
