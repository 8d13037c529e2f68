/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Wrappers of libpmix's functions in a program of a job; they count what the library requests. */
#include "pmix_calls.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct pmix_calls pmix_calls;
static _Thread_local bool inside;

/* libpmix's own function; the types are as wide as its own. */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int PMIx_Get(const void *proc, const char *key, const void *info, size_t count, void **value);
int PMIx_Get_nb(const void *proc, const char *key, const void *info, size_t count,
                void (*done)(void), void *object);
int PMIx_Put(unsigned char scope, const char *key, void *value);
int PMIx_Fence_nb(const void *procs, size_t proc_count, const void *info, size_t count,
                  void (*done)(void), void *object);

/* Is it a key that ranks publish? libpmix itself queries values of the job. */
static unsigned is_of_a_rank(const char *key)
{
    return strncmp(key, "tk.", 3) == 0;
}

int PMIx_Get(const void *proc, const char *key, const void *info, size_t count, void **value)
{
    pmix_calls.gets += is_of_a_rank(key);
    inside = true; /* some releases of libpmix implement it by PMIx_Get_nb */
    int rc = REAL(PMIx_Get)(proc, key, info, count, value);
    inside = false;
    return rc;
}

int PMIx_Get_nb(const void *proc, const char *key, const void *info, size_t count,
                void (*done)(void), void *object)
{
    pmix_calls.gets += !inside && is_of_a_rank(key);
    return REAL(PMIx_Get_nb)(proc, key, info, count, done, object);
}

/* JOB_LATE_PUT=R: rank R is late with what it publishes, the first time by more than the 2 s for
 * which a server of libpmix keeps others' requests. */
static void be_late(void)
{
    static long next_ms = 2500;
    const char *late = getenv("JOB_LATE_PUT"), *rank = getenv("PMIX_RANK");
    if (!late || !rank || strcmp(late, rank) != 0)
        return;
    nanosleep(&(struct timespec){next_ms / 1000, next_ms % 1000 * 1000000}, NULL);
    next_ms = 200;
}

int PMIx_Put(unsigned char scope, const char *key, void *value)
{
    be_late();
    pmix_calls.puts++;
    return REAL(PMIx_Put)(scope, key, value);
}

int PMIx_Fence_nb(const void *procs, size_t proc_count, const void *info, size_t count,
                  void (*done)(void), void *object)
{
    pmix_calls.fences++;
    return REAL(PMIx_Fence_nb)(procs, proc_count, info, count, done, object);
}
