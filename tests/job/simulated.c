/* SPDX-License-Identifier: BSD-3-Clause */
/* The program that gasnetrun_ibv --simulate predicts: the words of its arguments are those of the
 * simulation, barrier:TIMES, broadcast:BYTES, reduce:BYTES, reduce_all:BYTES, and at the end
 * exits:RANK, late:RANK, or fail:RANK, which kills the guard above that rank. Without a segment.
 * Each rank prints its requests to PMIx; the rest is in the statistics, which it writes and begins
 * anew at the word meet, and when its calls are over: no rank goes on before all have, so that no
 * later message is among them. */
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "job.h"
#include "pmix_calls.h"

#include "gasnet_coll.h"
#include "gasnet_tools.h"

/* True if `word` begins with the name and ":"; then *number is behind it. */
static bool is_call(const char *word, const char *name, size_t *number)
{
    size_t size = strlen(name);
    if (strncmp(word, name, size) != 0 || word[size] != ':')
        return false;
    *number = strtoul(word + size + 1, NULL, 10);
    return true;
}

static gex_Event_t begin(const char *word)
{
    size_t nbytes = 0;
    if (is_call(word, "broadcast", &nbytes))
        return gex_Coll_BroadcastNB(job.tm, 0, calloc(1, nbytes), calloc(1, nbytes), nbytes, 0);
    if (is_call(word, "reduce", &nbytes))
        return gex_Coll_ReduceToOneNB(job.tm, 0, calloc(1, nbytes), calloc(1, nbytes), GEX_DT_U32,
                                      4, nbytes / 4, GEX_OP_ADD, NULL, NULL, 0);
    CHECK(is_call(word, "reduce_all", &nbytes));
    return gex_Coll_ReduceToAllNB(job.tm, calloc(1, nbytes), calloc(1, nbytes), GEX_DT_U32, 4,
                                  nbytes / 4, GEX_OP_ADD, NULL, NULL, 0);
}

/* By files in the directory SIMULATED_MEET, without messages; polls, because others may have to
 * close connections to this rank. */
static void wait_for_all(void)
{
    const char *directory = getenv("SIMULATED_MEET");
    unsigned ranks = gex_TM_QuerySize(job.tm);
    static unsigned times;
    char name[4096];
    if (!directory)
        return;
    times++;
    snprintf(name, sizeof(name), "%s/%u.%u", directory, times, (unsigned)gex_TM_QueryRank(job.tm));
    FILE *file = fopen(name, "w");
    CHECK(file != NULL);
    fclose(file);
    for (unsigned r = 0; r < ranks; r++) {
        snprintf(name, sizeof(name), "%s/%u.%u", directory, times, r);
        while (access(name, F_OK) != 0) {
            gasnet_AMPoll();
            usleep(1000);
        }
    }
}

static void meet(void)
{
    wait_for_all();
    GASNETT_STATS_DUMP(1);
    wait_for_all();
}

/* Works until the library ends this process. */
static void work(void)
{
    for (;;) {
        gasnet_AMPoll();
        usleep(1000);
    }
}

/* The guard of this host ends, and its ranks with it; or it says nothing more, and this rank dies.
 */
static void fail(void)
{
    kill(getppid(), getenv("JOB_STOPS") ? SIGSTOP : SIGKILL);
    raise(SIGKILL);
}

/* True: the word is how the job ends. */
static bool ends(const char *word)
{
    size_t rank, me = gex_TM_QueryRank(job.tm);
    if (is_call(word, "exits", &rank)) {
        if (rank != me)
            work();
        gasnet_exit(1);
    }
    if (is_call(word, "late", &rank)) {
        if (rank == me)
            work();
        gasnet_exit(0);
    }
    if (!is_call(word, "fail", &rank))
        return false;
    if (rank == me)
        fail();
    /* The launcher ends the job before the others enter the barrier, or is silent for longer. */
    usleep(getenv("JOB_STOPS") ? 500000 : 5000000);
    return true;
}

static void say_requests(void)
{
    printf("rank %u: %u gets, %u puts, %u fences\n", (unsigned)gex_TM_QueryRank(job.tm),
           pmix_calls.gets, pmix_calls.puts, pmix_calls.fences);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    gex_Client_t client;
    size_t barriers;
    CHECK(gex_Client_Init(&client, &job.ep, &job.tm, "simulated", &argc, &argv, 0) == GASNET_OK);
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "meet"))
            meet();
        else if (is_call(argv[i], "barrier", &barriers))
            for (; barriers > 0; barriers--)
                gex_Event_Wait(gex_Coll_BarrierNB(job.tm, 0));
        else if (strchr("elf", argv[i][0])) { /* the last word */
            say_requests();
            if (ends(argv[i]))
                gex_Event_Wait(gex_Coll_BarrierNB(job.tm, 0));
        } else
            gex_Event_Wait(begin(argv[i]));
    say_requests();
    meet();
    gasnet_exit(0);
}
