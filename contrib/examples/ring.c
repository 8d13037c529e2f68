/* SPDX-License-Identifier: BSD-3-Clause */
/* ring: GASNet-EX in one file. Each process greets its right-hand neighbour by an active message,
 * writes a block of numbers into its memory, and reads the block back.
 *
 *     gasnetrun_ibv -n 4 ./ring
 *
 * Build it with the Makefile or the CMakeLists.txt beside this file. */
#include <gasnetex.h>

/* Handlers are registered under numbers of the client's choice, 128 to 255. */
enum { GREETING = GEX_AM_INDEX_BASE, THANKS };

enum { WORDS = 1024 };

static volatile int greetings, thanks; /* changed by handlers, while the main program polls */

/* A handler runs inside the process that the message was sent to, on a thread that polls there. It
 * may reply, once, and take a gex_HSL_t; it may not start a request, a put or a get, nor wait. */
static void greeting(gex_Token_t token, void *text, size_t length, gex_AM_Arg_t from)
{
    printf("a greeting from %d: %.*s\n", (int)from, (int)length, (const char *)text);
    greetings = greetings + 1;
    gex_AM_ReplyShort(token, THANKS, 0);
}

static void thank(gex_Token_t token)
{
    (void)token;
    thanks = thanks + 1;
}

/* The kind of message that each handler is for, and its number of arguments. */
static gex_AM_Entry_t handlers[] = {
    {GREETING, (gex_AM_Fn_t)greeting, GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_MEDIUM, 1, NULL,
     "greeting"},
    {THANKS, (gex_AM_Fn_t)thank, GEX_FLAG_AM_REPLY | GEX_FLAG_AM_SHORT, 0, NULL, "thank"}};

static void greet(gex_TM_t team, gex_Rank_t right)
{
    static const char text[] = "hello";
    gex_AM_RequestMedium(team, right, GREETING, text, strlen(text), GEX_EVENT_NOW, 0,
                         (gex_AM_Arg_t)gex_TM_QueryRank(team));
    /* Polls until the condition holds: without polling no handler would run. */
    GASNET_BLOCKUNTIL(greetings == 1 && thanks == 1);
}

/* Returns the number of wrong words. */
static int put_and_get(gex_TM_t team, gex_Rank_t right)
{
    static int sent[WORDS], got[WORDS];
    void *remote = NULL;
    uintptr_t size = 0;
    int wrong = 0;

    for (int i = 0; i < WORDS; i++)
        sent[i] = (int)gex_TM_QueryRank(team) * WORDS + i;

    /* Segments begin at different addresses: ask for the neighbour's. */
    gex_Event_Wait(gex_EP_QueryBoundSegmentNB(team, right, &remote, NULL, &size, 0));
    if (size < sizeof(sent)) {
        fprintf(stderr, "the neighbour's segment is too small\n");
        gasnet_exit(1);
    }

    /* A put returns an event, which must be waited for or tested successfully once; GEX_EVENT_NOW:
     * `sent` may be reused as soon as the call returns. */
    gex_Event_t put = gex_RMA_PutNB(team, right, remote, sent, sizeof(sent), GEX_EVENT_NOW, 0);
    gex_Event_Wait(put);
    gex_RMA_GetBlocking(team, got, right, remote, sizeof(got), 0);

    for (int i = 0; i < WORDS; i++)
        wrong += got[i] != sent[i];
    return wrong;
}

int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t endpoint;
    gex_TM_t team; /* of all processes */
    gex_Segment_t segment;

    if (gex_Client_Init(&client, &endpoint, &team, "ring", &argc, &argv, 0) != GASNET_OK)
        return 1;
    gex_EP_RegisterHandlers(endpoint, handlers, sizeof(handlers) / sizeof(handlers[0]));
    /* The memory of this process that others may put to and get from: whole pages. */
    gex_Segment_Attach(&segment, team, GASNET_PAGESIZE);

    /* No process sends before all have registered their handlers. */
    gex_Coll_BarrierBlocking(team, 0);

    gex_Rank_t me = gex_TM_QueryRank(team), all = gex_TM_QuerySize(team);
    gex_Rank_t right = (me + 1) % all;
    greet(team, right);
    int wrong = put_and_get(team, right);
    printf("process %u of %u: %d words, %d wrong\n", (unsigned)me, (unsigned)all, WORDS, wrong);

    /* Ends the whole job, so all processes must be done. */
    gex_Coll_BarrierBlocking(team, 0);
    gasnet_exit(wrong != 0);
}
