/* SPDX-License-Identifier: BSD-3-Clause */
/* A small client as an outsider would write it, in the common part of C and C++: a
 * ring of messages, a put and a get to the right-hand neighbour, barriers. Prints "rank R of N: ok"
 * and exits 0, or prints the error and exits 1. */
#include <gasnetex.h>
#include <gasnetex.h> /* twice must not matter */

#include <stdio.h>
#include <string.h>

#include "forms.h"

#if GASNET_CONDUIT_IBV != 1 || defined(GASNET_CONDUIT_SMP)
#    error "the conduit is not identified"
#endif
#if GASNET_RELEASE_VERSION_MAJOR != 2025 || GASNET_RELEASE_VERSION_MINOR != 8 ||                   \
    GASNET_RELEASE_VERSION_PATCH != 0
#    error "wrong release"
#endif
#if GEX_SPEC_VERSION_MAJOR != 0 || GEX_SPEC_VERSION_MINOR != 19
#    error "wrong specification"
#endif
#if defined(GASNET_DEBUG) + defined(GASNET_NDEBUG) != 1
#    error "exactly one of GASNET_DEBUG and GASNET_NDEBUG must be defined"
#endif

enum { PING = 200, PONG = 201, WORDS = 512 };

static gex_TM_t team;
static gex_HSL_t lock = GEX_HSL_INITIALIZER;
static volatile int pings, pongs;

static void ping(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t number)
{
    gex_HSL_Lock(&lock);
    pings = pings + 1;
    gex_HSL_Unlock(&lock);
    gex_AM_ReplyMedium(token, PONG, buf, nbytes, GEX_EVENT_NOW, 0, number);
}

static void pong(gex_Token_t token, void *buf, size_t nbytes, gex_AM_Arg_t number)
{
    (void)token;
    if (nbytes == 6 && number == 42 && memcmp(buf, "hello", 6) == 0)
        pongs = pongs + 1;
}

static int wrong(const char *what)
{
    fprintf(stderr, "rank %u: %s\n", (unsigned)gex_TM_QueryRank(team), what);
    return 1;
}

static int messages(gex_Rank_t right)
{
    gex_AM_RequestMedium(team, right, PING, "hello", 6, GEX_EVENT_NOW, 0, 42);
    GASNET_BLOCKUNTIL(pings == 1 && pongs == 1);
    return 0;
}

static int put_and_get(gex_Rank_t right, int32_t *mine)
{
    int32_t out[WORDS], in[WORDS];
    void *theirs = 0;
    uintptr_t size = 0;
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, right, &theirs, 0, &size, 0));
    if (!theirs || size < sizeof out)
        return wrong("no segment at the right-hand neighbour");
    for (int i = 0; i < WORDS; i++)
        out[i] = (int32_t)gex_TM_QueryRank(team) * 1000 + i;
    gex_Event_Wait(gex_RMA_PutNB(team, right, theirs, out, sizeof out, GEX_EVENT_NOW, 0));
    gex_RMA_GetBlocking(team, in, right, theirs, sizeof in, 0);
    if (memcmp(in, out, sizeof in) != 0)
        return wrong("a get brought something else than was put");
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
    gex_Rank_t n = gex_TM_QuerySize(team), left = (gex_TM_QueryRank(team) + n - 1) % n;
    return mine[WORDS - 1] == (int32_t)left * 1000 + WORDS - 1 ? 0
                                                               : wrong("the put did not arrive");
}

int main(int argc, char **argv)
{
    GASNET_BEGIN_FUNCTION();
    gex_Client_t client;
    gex_EP_t ep;
    gex_Segment_t segment;
    gex_AM_Entry_t table[] = {
        {PING, (gex_AM_Fn_t)ping, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 1, 0, "ping"},
        {PONG, (gex_AM_Fn_t)pong, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REPLY, 1, 0, "pong"}};

    if (gex_Client_Init(&client, &ep, &team, "install test", &argc, &argv, 0) != GASNET_OK)
        return 1;
    if (argc > 1 && strcmp(argv[1], "never") == 0)
        all_am_forms(team, (gex_Token_t)0, argv, argv);
    gex_EP_RegisterHandlers(ep, table, sizeof table / sizeof table[0]);
    gex_Segment_Attach(&segment, team, GASNET_PAGESIZE);
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));

    gex_Rank_t right = (gex_TM_QueryRank(team) + 1) % gex_TM_QuerySize(team);
    int bad = messages(right) || put_and_get(right, (int32_t *)gex_Segment_QueryAddr(segment));
    if (!bad)
        printf("rank %u of %u: ok\n", (unsigned)gex_TM_QueryRank(team),
               (unsigned)gex_TM_QuerySize(team));
    gex_Event_Wait(gex_Coll_BarrierNB(team, 0));
    gasnet_exit(bad);
}
