/* SPDX-License-Identifier: BSD-3-Clause */
/* count1: the GASNet-1 interface in one file, for users with existing code. Each process adds its
 * share to a counter of process 0 by active messages, then reads the sum from there by a get.
 *
 *     gasnetrun_ibv -n 4 ./count1
 *
 * Build it with the Makefile or the CMakeLists.txt beside this file. New code is better written to
 * gasnetex.h (ring.c); both may be used in one program. */
#include <gasnet.h>

enum { ADD = 200, ADDED };

/* Ends the job with a line that names the call, as most clients of this interface do. */
#define CHECK(call)                                                                                \
    do {                                                                                           \
        int error_ = (call);                                                                       \
        if (error_ != GASNET_OK) {                                                                 \
            fprintf(stderr, "%s: %s\n", #call, gasnet_ErrorDesc(error_));                          \
            gasnet_exit(1);                                                                        \
        }                                                                                          \
    } while (0)

static int *counter; /* in the segment of this process; all count in that of process 0 */
static gasnet_hsl_t lock = GASNET_HSL_INITIALIZER; /* the kind of lock that handlers may take */
static volatile int answers;

static void add(gasnet_token_t token, gasnet_handlerarg_t number)
{
    gasnet_hsl_lock(&lock);
    *counter += number;
    gasnet_hsl_unlock(&lock);
    gasnet_AMReplyShort0(token, ADDED);
}

static void added(gasnet_token_t token)
{
    (void)token;
    answers = answers + 1;
}

static gasnet_handlerentry_t handlers[] = {{ADD, (gex_AM_Fn_t)add}, {ADDED, (gex_AM_Fn_t)added}};

/* No process leaves before all have arrived. */
static void barrier(void)
{
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    CHECK(gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS));
}

int main(int argc, char **argv)
{
    enum { TIMES = 100 };
    static gasnet_seginfo_t *segments;

    CHECK(gasnet_init(&argc, &argv));
    CHECK(gasnet_attach(handlers, sizeof(handlers) / sizeof(handlers[0]), GASNET_PAGESIZE, 0));

    /* The segments of all processes. Their memory is initially zero. */
    segments = (gasnet_seginfo_t *)calloc(gasnet_nodes(), sizeof(*segments));
    if (!segments)
        gasnet_exit(1);
    CHECK(gasnet_getSegmentInfo(segments, (int)gasnet_nodes()));
    counter = (int *)segments[gasnet_mynode()].addr;
    barrier(); /* now messages may arrive: every process knows its counter */

    for (int i = 0; i < TIMES; i++)
        CHECK(gasnet_AMRequestShort1(0, ADD, (gasnet_handlerarg_t)gasnet_mynode() + 1));
    GASNET_BLOCKUNTIL(answers == TIMES);
    barrier(); /* all messages are counted */

    int sum = 0, nodes = (int)gasnet_nodes(), expected = TIMES * nodes * (nodes + 1) / 2;
    gasnet_get(&sum, 0, segments[0].addr, sizeof(sum));
    printf("process %d of %d: the sum is %d\n", (int)gasnet_mynode(), nodes, sum);

    free(segments);
    barrier(); /* gasnet_exit() ends the whole job */
    gasnet_exit(sum != expected);
}
