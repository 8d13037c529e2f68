/* SPDX-License-Identifier: BSD-3-Clause */
/* The program that gasnetrun_ibv --simulate predicts: the words of its arguments are those of the
 * simulation, barrier:TIMES, broadcast:BYTES, reduce:BYTES, reduce_all:BYTES. Without a segment.
 * Each rank prints its requests to PMIx; the rest is in the statistics. Calls of libpmix are
 * counted by wrappers. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

#include "gasnet_coll.h"

static unsigned gets, puts_made, fences;
static _Thread_local bool inside;

/* libpmix's own function; the types are as wide as its own. */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int PMIx_Get(const void *proc, const char *key, const void *info, size_t count, void **value);
int PMIx_Get_nb(const void *proc, const char *key, const void *info, size_t count,
                void (*done)(void), void *object);
int PMIx_Put(unsigned char scope, const char *key, void *value);
int PMIx_Fence_nb(const void *procs, size_t proc_count, const void *info, size_t count,
                  void (*done)(void), void *object);

static unsigned is_of_a_rank(const char *key)
{
    return strncmp(key, "tk.", 3) == 0;
}

int PMIx_Get(const void *proc, const char *key, const void *info, size_t count, void **value)
{
    gets += is_of_a_rank(key);
    inside = true;
    int rc = REAL(PMIx_Get)(proc, key, info, count, value);
    inside = false;
    return rc;
}

int PMIx_Get_nb(const void *proc, const char *key, const void *info, size_t count,
                void (*done)(void), void *object)
{
    gets += !inside && is_of_a_rank(key);
    return REAL(PMIx_Get_nb)(proc, key, info, count, done, object);
}

int PMIx_Put(unsigned char scope, const char *key, void *value)
{
    puts_made++;
    return REAL(PMIx_Put)(scope, key, value);
}

int PMIx_Fence_nb(const void *procs, size_t proc_count, const void *info, size_t count,
                  void (*done)(void), void *object)
{
    fences++;
    return REAL(PMIx_Fence_nb)(procs, proc_count, info, count, done, object);
}

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

int main(int argc, char **argv)
{
    gex_Client_t client;
    size_t barriers;
    CHECK(gex_Client_Init(&client, &job.ep, &job.tm, "simulated", &argc, &argv, 0) == GASNET_OK);
    for (int i = 1; i < argc; i++)
        if (is_call(argv[i], "barrier", &barriers))
            for (; barriers > 0; barriers--)
                gex_Event_Wait(gex_Coll_BarrierNB(job.tm, 0));
        else
            gex_Event_Wait(begin(argv[i]));
    printf("rank %u: %u gets, %u puts, %u fences\n", (unsigned)gex_TM_QueryRank(job.tm), gets,
           puts_made, fences);
    gasnet_exit(0);
}
