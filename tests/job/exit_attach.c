/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A rank exits in a handler while all exchange their segments: some values of the exchange are
 * never there, as if their ranks had left in its fence. A wrapper of libpmix makes them so, and
 * lets the message arrive then, by which rank 0 asks the last rank to leave. Without
 * EXIT_ATTACH_LEAVES it stays, and the attach has to fail. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"

enum { code = 64 };

static gex_AM_Index_t leave_index;

static void on_leave(gex_Token_t token)
{
    (void)token;
    gasnet_exit(code);
}

/* The names of libpmix; the types are as wide as its own. */
int PMIx_Get(const void *proc, const char *key, const void *info, size_t count, void **value);
int PMIx_Get_nb(const void *proc, const char *key, const void *info, size_t count,
                void (*done)(void), void *object);
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

static const char *never(const char *key)
{
    static int asked;
    if (strncmp(key, "tk.segments.", 12))
        return key;
    if (asked++ == 0 && job.rank == 0 && getenv("EXIT_ATTACH_LEAVES"))
        gex_AM_RequestShort0(job.tm, job.size - 1, leave_index, 0);
    return "tk.never";
}

int PMIx_Get(const void *proc, const char *key, const void *info, size_t count, void **value)
{
    return REAL(PMIx_Get)(proc, never(key), info, count, value);
}

int PMIx_Get_nb(const void *proc, const char *key, const void *info, size_t count,
                void (*done)(void), void *object)
{
    /* Those that a rank of this host puts arrive before the fence. */
    return REAL(PMIx_Get_nb)(proc, count ? key : never(key), info, count, done, object);
}

int main(int argc, char **argv)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)on_leave, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL}};
    job_start(&argc, &argv, 0);
    CHECK(gex_EP_RegisterHandlers(job.ep, table, 1) == GASNET_OK);
    leave_index = table[0].gex_index;
    job_barrier();
    job_attach(GASNET_PAGESIZE);
    CHECK(0, "the exchange of segments succeeds");
}
