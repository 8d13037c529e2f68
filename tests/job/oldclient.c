/* SPDX-License-Identifier: BSD-3-Clause */
/* A typical program for GASNet-1: it includes only gasnet.h of ours, keeps a counter and a queue of
 * work on rank 0 from which all ranks take, shifts blocks around a ring with puts and gets, sums
 * along a tree of messages, and ends the job with gasnet_exit(). Prints "sum N" on rank 0. usage:
 * oldclient [WORK]. One client thread; handlers run in its polls. */
#include <gasnet.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAFE(call)                                                                                 \
    do {                                                                                           \
        int result = (call);                                                                       \
        if (result != GASNET_OK) {                                                                 \
            fprintf(stderr, "%u: %s: %s (%s)\n", (unsigned)gasnet_mynode(), #call,                 \
                    gasnet_ErrorName(result), gasnet_ErrorDesc(result));                           \
            gasnet_exit(1);                                                                        \
        }                                                                                          \
    } while (0)

#define BARRIER()                                                                                  \
    do {                                                                                           \
        gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);                                    \
        SAFE(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS));                                \
    } while (0)

enum { TAKE = 128, TAKEN, ADD, NAME, NAMED, BLOCK = 8192 };

static gasnet_node_t me, nodes;
static gasnet_seginfo_t *segments;

/* ---- a queue of work on rank 0: each piece is given out once */

static gasnet_hsl_t queue_lock = GASNET_HSL_INITIALIZER;
static int next_piece, pieces;
static volatile int piece;
static volatile int piece_came;

static void take_handler(gasnet_token_t token)
{
    int mine;

    gasnet_hsl_lock(&queue_lock);
    mine = next_piece < pieces ? next_piece++ : -1;
    gasnet_hsl_unlock(&queue_lock);
    SAFE(gasnet_AMReplyShort1(token, TAKEN, mine));
}

static void taken_handler(gasnet_token_t token, gasnet_handlerarg_t which)
{
    (void)token;
    piece = which;
    piece_came = 1;
}

static int take(void)
{
    piece_came = 0;
    SAFE(gasnet_AMRequestShort0(0, TAKE));
    GASNET_BLOCKUNTIL(piece_came);
    return piece;
}

/* ---- a sum along a tree */

static volatile int children_in;
static volatile uint64_t sum;

static void add_handler(gasnet_token_t token, gasnet_handlerarg_t high, gasnet_handlerarg_t low)
{
    (void)token;
    sum += (uint64_t)(uint32_t)high << 32 | (uint32_t)low;
    children_in++;
}

static void sum_up(void)
{
    gasnet_node_t child = me * 2 + 1;
    int children = (child < nodes) + (child + 1 < nodes);

    GASNET_BLOCKUNTIL(children_in == children);
    if (me > 0)
        SAFE(gasnet_AMRequestShort2((me - 1) / 2, ADD, sum >> 32, sum));
}

/* ---- names of all ranks, by medium messages */

static char names[64][16];
static volatile int names_in;

static void name_handler(gasnet_token_t token, void *buf, size_t nbytes)
{
    gasnet_node_t from;

    SAFE(gasnet_AMGetMsgSource(token, &from));
    if (nbytes <= sizeof names[0])
        memcpy(names[from], buf, nbytes);
    SAFE(gasnet_AMReplyMedium0(token, NAMED, buf, nbytes));
}

static void named_handler(gasnet_token_t token, void *buf, size_t nbytes)
{
    (void)token, (void)buf, (void)nbytes;
    names_in++;
}

static void tell_names(void)
{
    char name[16];

    snprintf(name, sizeof name, "rank %u", (unsigned)me);
    for (gasnet_node_t i = 0; i < nodes; i++)
        SAFE(gasnet_AMRequestMedium0(i, NAME, name, strlen(name) + 1));
    GASNET_BLOCKUNTIL(names_in == (int)nodes);
    BARRIER();
    for (gasnet_node_t i = 0; i < nodes; i++) {
        snprintf(name, sizeof name, "rank %u", (unsigned)i);
        if (strcmp(names[i], name) != 0)
            gasnet_exit(2);
    }
}

/* ---- a ring of blocks: after as many shifts as ranks each rank has its own again */

static void shift(void)
{
    char *here = segments[me].addr, *mine = malloc(BLOCK), *next = malloc(BLOCK);
    gasnet_node_t right = (me + 1) % nodes;
    gasnet_handle_t handles[2];

    memset(mine, 'a' + (int)me, BLOCK);
    memcpy(next, mine, BLOCK);
    for (gasnet_node_t step = 0; step < nodes; step++) {
        handles[0] = gasnet_put_nb_bulk(right, segments[right].addr, next, BLOCK / 2);
        handles[1] = gasnet_put_nb_bulk(right, (char *)segments[right].addr + BLOCK / 2,
                                        next + BLOCK / 2, BLOCK / 2);
        gasnet_wait_syncnb_all(handles, 2);
        BARRIER();
        gasnet_get(next, me, here, BLOCK);
        BARRIER();
    }
    if (memcmp(mine, next, BLOCK) != 0)
        gasnet_exit(3);
    free(mine);
    free(next);
}

int main(int argc, char **argv)
{
    gasnet_handlerentry_t handlers[] = {{TAKE, (void (*)())take_handler},
                                        {TAKEN, (void (*)())taken_handler},
                                        {ADD, (void (*)())add_handler},
                                        {NAME, (void (*)())name_handler},
                                        {NAMED, (void (*)())named_handler}};
    int mine;

    SAFE(gasnet_init(&argc, &argv));
    SAFE(gasnet_attach(handlers, sizeof handlers / sizeof handlers[0],
                       (BLOCK + GASNET_PAGESIZE - 1) / GASNET_PAGESIZE * GASNET_PAGESIZE, 0));
    me = gasnet_mynode();
    nodes = gasnet_nodes();
    pieces = argc > 1 ? atoi(argv[1]) : 100;
    segments = malloc(nodes * sizeof *segments);
    SAFE(gasnet_getSegmentInfo(segments, (int)nodes));
    SAFE(gasnet_set_waitmode(GASNET_WAIT_BLOCK));
    BARRIER();
    while ((mine = take()) >= 0)
        sum += (uint64_t)mine;
    BARRIER();
    sum_up();
    tell_names();
    shift();
    if (me == 0)
        printf("sum %llu\n", (unsigned long long)sum);
    BARRIER();
    gasnet_exit(0);
}
