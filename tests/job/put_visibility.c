/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A rank that learns that a put is complete finds its data, however it learned that: from the
 * initiator, through a third rank, by a barrier, or from the head of a Long. Rank 0 puts, rank 1
 * checks, rank 2 (if it exists) passes the news on. */
#include <string.h>

#include "job.h"

enum { LOOK = 200, LONG, LOOKED, CARRY, SEGMENT = 1 << 20 };

static const size_t sizes[] = {1, 8, 3000, 20000, 65536, 300000, SEGMENT};

static volatile int looked, carried;
static int carried_size;
static uint32_t carried_seed;

static void on_look(gex_Token_t token, gex_AM_Arg_t size, gex_AM_Arg_t seed)
{
    CHECK_PATTERN(job.base, (size_t)size, (uint32_t)seed);
    gex_AM_ReplyShort0(token, LOOKED, 0);
}

static void on_long(gex_Token_t token, void *payload, size_t nbytes, gex_AM_Arg_t seed)
{
    CHECK_PATTERN(payload, nbytes, (uint32_t)seed);
    gex_AM_ReplyShort0(token, LOOKED, 0);
}

static void on_looked(gex_Token_t token)
{
    (void)token;
    looked = 1;
}

static void on_carry(gex_Token_t token, gex_AM_Arg_t size, gex_AM_Arg_t seed)
{
    (void)token;
    carried_size = size;
    carried_seed = (uint32_t)seed;
    carried = 1;
}

static gex_AM_Entry_t handlers[] = {
    {LOOK, (gex_AM_Fn_t)on_look, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL, NULL},
    {LONG, (gex_AM_Fn_t)on_long, GEX_FLAG_AM_LONG | GEX_FLAG_AM_REQUEST, 1, NULL, NULL},
    {LOOKED, (gex_AM_Fn_t)on_looked, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQREP, 0, NULL, NULL},
    {CARRY, (gex_AM_Fn_t)on_carry, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 2, NULL, NULL},
};

static void let_look(size_t size, uint32_t seed)
{
    looked = 0;
    gex_AM_RequestShort2(job.tm, 1, LOOK, 0, (gex_AM_Arg_t)size, (gex_AM_Arg_t)seed);
    GASNET_BLOCKUNTIL(looked);
}

static void put(size_t size, uint32_t seed)
{
    job_fill(job.base, size, seed);
    if (seed % 2)
        gex_RMA_PutBlocking(job.tm, 1, job_remote(1, 0), job.base, size, 0);
    else
        gex_Event_Wait(
            gex_RMA_PutNB(job.tm, 1, job_remote(1, 0), job.base, size, GEX_EVENT_DEFER, 0));
}

static void told_by_who_put(size_t size, uint32_t seed)
{
    job_phase("%zu bytes, told by who put", size);
    if (job.rank == 0) {
        put(size, seed);
        let_look(size, seed);
    }
    job_barrier();
}

static void told_by_another(size_t size, uint32_t seed)
{
    job_phase("%zu bytes, told by another", size);
    if (job.rank == 0) {
        looked = 0;
        put(size, seed);
        gex_AM_RequestShort2(job.tm, 2, CARRY, 0, (gex_AM_Arg_t)size, (gex_AM_Arg_t)seed);
        /* Meanwhile we send nothing else to rank 1, because that could flush the data. */
        GASNET_BLOCKUNTIL(looked);
    } else if (job.rank == 2) {
        GASNET_BLOCKUNTIL(carried);
        carried = 0;
        let_look((size_t)carried_size, carried_seed);
        gex_AM_RequestShort0(job.tm, 0, LOOKED, 0);
    }
    job_barrier();
}

static void told_by_a_barrier(size_t size, uint32_t seed)
{
    job_phase("%zu bytes, told by a barrier", size);
    if (job.rank == 0)
        put(size, seed);
    job_barrier();
    if (job.rank == 1)
        CHECK_PATTERN(job.base, size, seed);
    job_barrier();
}

static void head_of_a_long(size_t size, uint32_t seed)
{
    job_phase("%zu bytes, a Long", size);
    if (job.rank == 0 && size <= gex_AM_LUBRequestLong()) {
        job_fill(job.base, size, seed);
        looked = 0;
        gex_AM_RequestLong1(job.tm, 1, LONG, job.base, size, job_remote(1, 0), GEX_EVENT_NOW, 0,
                            (gex_AM_Arg_t)seed);
        GASNET_BLOCKUNTIL(looked);
    }
    job_barrier();
}

int main(int argc, char **argv)
{
    uint32_t seed = 1;
    job_start(&argc, &argv, SEGMENT);
    CHECK(gex_EP_RegisterHandlers(job.ep, handlers, sizeof(handlers) / sizeof(handlers[0])) ==
          GASNET_OK);
    job_barrier();
    for (int round = 0; round < 2; round++)
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            told_by_who_put(sizes[i], seed++);
            if (job.size > 2)
                told_by_another(sizes[i], seed++);
            told_by_a_barrier(sizes[i], seed++);
            head_of_a_long(sizes[i], seed++);
        }
    job_end();
}
