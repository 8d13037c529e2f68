/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The job that tests a port: rank 0 puts into the memory of rank 1, gets it back, and sends
 * messages which rank 1 answers; the data of each is checked. Prints a line for each size; the
 * status is 1 if data differ. Owns the counters, which handlers change. An argument behind
 * --bundle-job damages one kind of data, so that a test sees the check fail. */
#include "config.h"

#include "contrib/info/info.h"
#include "gasnetex.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { segment_bytes = 1 << 20, request_handler = 200, reply_handler };

static const size_t sizes[] = {8, 4096, 300000};
static gex_TM_t team;
static char *mine, *theirs;
static int answers, bad_answers;
static const char *injected = ""; /* what is damaged: segment, memory, message or answer */

static uint8_t pattern(size_t at, unsigned seed)
{
    return (uint8_t)(at * 31 + (at >> 8) + seed);
}

static void fill(void *memory, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)memory)[i] = pattern(i, seed);
}

static bool is_right(const void *memory, size_t size, unsigned seed)
{
    for (size_t i = 0; i < size; i++)
        if (((const uint8_t *)memory)[i] != pattern(i, seed))
            return false;
    return true;
}

static void damage(const char *what, void *memory, size_t size)
{
    if (strcmp(injected, what) == 0)
        ((uint8_t *)memory)[size / 2] ^= 1;
}

static void take_request(gex_Token_t token, void *memory, size_t size, gex_AM_Arg_t seed)
{
    bool is_good = is_right(memory, size, (unsigned)seed);
    damage("answer", memory, size);
    gex_AM_ReplyMedium1(token, reply_handler, memory, size, GEX_EVENT_NOW, 0,
                        is_good ? seed + 1 : -1);
}

static void take_reply(gex_Token_t token, void *memory, size_t size, gex_AM_Arg_t seed)
{
    (void)token;
    if (seed < 0 || !is_right(memory, size, (unsigned)seed - 1))
        bad_answers++;
    answers++;
}

static bool say(const char *what, size_t size, bool is_good)
{
    printf("%s of %zu bytes: %s\n", what, size, is_good ? "good" : "WRONG DATA");
    fflush(stdout);
    return is_good;
}

/* The get reads what the put wrote, so that a put into the wrong place shows, too. */
static bool test_rma(size_t size, unsigned seed)
{
    char *copy = malloc(size);
    if (!copy)
        return false;
    fill(mine, size, seed);
    damage("segment", mine, size);
    gex_RMA_PutBlocking(team, 1, theirs, mine, size, 0);
    memset(mine, 0, size);
    gex_RMA_GetBlocking(team, mine, 1, theirs, size, 0);
    bool is_good = say("put from and get to the segment", size, is_right(mine, size, seed));
    fill(copy, size, seed + 1);
    damage("memory", copy, size);
    gex_RMA_PutBlocking(team, 1, theirs, copy, size, 0);
    memset(copy, 0, size);
    gex_RMA_GetBlocking(team, copy, 1, theirs, size, 0);
    is_good &= say("put from and get to other memory", size, is_right(copy, size, seed + 1));
    free(copy);
    return is_good;
}

static bool test_message(size_t size, unsigned seed)
{
    size_t most = gex_AM_MaxRequestMedium(team, 1, GEX_EVENT_NOW, 0, 1);
    size_t answer = gex_AM_MaxReplyMedium(team, 1, GEX_EVENT_NOW, 0, 1);
    int before = bad_answers, wanted = answers + 1;
    most = most < answer ? most : answer;
    size = size < most ? size : most;
    fill(mine, size, seed);
    damage("message", mine, size);
    gex_AM_RequestMedium1(team, 1, request_handler, mine, size, GEX_EVENT_NOW, 0,
                          (gex_AM_Arg_t)seed);
    GASNET_BLOCKUNTIL(answers == wanted);
    return say("message and answer", size, bad_answers == before);
}

static bool test_all(void)
{
    bool is_good = true;
    for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        is_good &= !theirs || test_rma(sizes[i], 7 * i + 1);
        is_good &= test_message(sizes[i], 7 * i + 3);
    }
    return is_good;
}

/* A build for segments EVERYTHING has no segment: only messages are tested there. */
static void find_memory(void)
{
    static char spare[1 << 20];
    gex_Segment_t segment;
    gex_Segment_Attach(&segment, team, segment_bytes);
    gex_Event_Wait(
        gex_EP_QueryBoundSegmentNB(team, gex_TM_QueryRank(team), (void **)&mine, NULL, NULL, 0));
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, 1, (void **)&theirs, NULL, NULL, 0));
    mine = mine ? mine : spare;
}

static void meet(void)
{
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
}

int info_bundle_job(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t endpoint;
    gex_AM_Entry_t handlers[] = {{request_handler, (gex_AM_Fn_t)take_request,
                                  GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, NULL, "request"},
                                 {reply_handler, (gex_AM_Fn_t)take_reply,
                                  GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 1, NULL, "reply"}};
    if (gex_Client_Init(&client, &endpoint, &team, "trunkline_info", &argc, &argv, 0) !=
            GASNET_OK ||
        gex_EP_RegisterHandlers(endpoint, handlers, 2) != GASNET_OK)
        return 1;
    injected = argc > 2 ? argv[2] : "";
    find_memory();
    meet();
    bool is_good = gex_TM_QueryRank(team) != 0 || test_all();
    meet();
    gasnet_exit(is_good ? 0 : 1);
}
