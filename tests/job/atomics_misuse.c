/* SPDX-License-Identifier: BSD-3-Clause */
/* Errors in the use of atomics: each ends the job with a line that names the error. Those below the
 * comment are found only by a library with --enable-debug. */
#include "config.h"

#include "atomics.h"

#include <string.h>

static gex_AD_t ad;
static gex_Rank_t last;

static void create(gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags)
{
    gex_AD_Create(&ad, job.tm, dt, ops, flags);
}

static void add(void *at, gex_OP_t op, gex_Flags_t flags)
{
    finish_event(gex_AD_OpNB_U64(ad, NULL, last, at, op, 1, 0, flags));
}

static void type(void)
{
    create(GEX_DT_I32 | GEX_DT_U32, GEX_OP_ADD, 0);
}

static void user_type(void)
{
    create(GEX_DT_USER, GEX_OP_ADD, 0);
}

static void no_such_operation(void)
{
    create(GEX_DT_FLT, GEX_OP_ADD | GEX_OP_XOR, 0);
}

static void hints(void)
{
    create(GEX_DT_I32, GEX_OP_ADD, GEX_FLAG_AD_FAVOR_MY_RANK | GEX_FLAG_AD_FAVOR_REMOTE);
}

static void pair(void)
{
    gex_AD_Create(&ad, gex_TM_Pair(job.ep, 0), GEX_DT_I32, GEX_OP_ADD, 0);
}

/* Only rank 0 calls it: the target's own operation would end the target by a fault before the
 * message comes. */
static void outside(void)
{
    create(GEX_DT_U64, GEX_OP_ADD | GEX_OP_SET, 0);
    if (job.rank == 0)
        add(job_remote(last, SEGMENT), GEX_OP_ADD, 0);
}

static void jobrank(void)
{
    gex_TM_t alone;
    gex_TM_Split(&alone, job.tm, (int)job.rank, 0, NULL, 0, GEX_FLAG_TM_NO_SCRATCH);
    gex_AD_Create(&ad, alone, GEX_DT_U64, GEX_OP_ADD, 0);
    add(job_remote(last, 0), GEX_OP_ADD, GEX_FLAG_RANK_IS_JOBRANK);
}

/* ---- */

static void another_operation(void)
{
    create(GEX_DT_U64, GEX_OP_ADD, 0);
    add(job_remote(last, 0), GEX_OP_SUB, 0);
}

static void another_type(void)
{
    create(GEX_DT_I64, GEX_OP_ADD, 0);
    add(job_remote(last, 0), GEX_OP_ADD, 0);
}

static void unaligned(void)
{
    create(GEX_DT_U64, GEX_OP_ADD, 0);
    add(job_remote(last, 4), GEX_OP_ADD, 0);
}

static void locality(void)
{
    create(GEX_DT_U64, GEX_OP_ADD, 0);
    add(job_remote(last, 0), GEX_OP_ADD, GEX_FLAG_AD_MY_RANK);
}

static void no_result(void)
{
    create(GEX_DT_U64, GEX_OP_FADD, 0);
    add(job_remote(last, 0), GEX_OP_FADD, 0);
}

static void disagree(void)
{
    create(GEX_DT_U64, job.rank ? GEX_OP_ADD : GEX_OP_FADD, 0);
}

static const struct {
    const char *name;
    void (*run)(void);
} mistakes[] = {
    {"type", type},
    {"user_type", user_type},
    {"no_such_operation", no_such_operation},
    {"hints", hints},
    {"pair", pair},
    {"outside", outside},
    {"jobrank", jobrank},
    {"another_operation", another_operation},
    {"another_type", another_type},
    {"unaligned", unaligned},
    {"locality", locality},
    {"no_result", no_result},
    {"disagree", disagree},
};

void make_mistake(const char *name)
{
    last = job.rank == 0 ? job.size - 1 : job.rank;
    for (unsigned i = 0; i < sizeof mistakes / sizeof mistakes[0]; i++)
        if (!strcmp(mistakes[i].name, name))
            mistakes[i].run();
    job_barrier();
}
