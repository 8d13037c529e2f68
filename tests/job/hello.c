/* SPDX-License-Identifier: BSD-3-Clause */
/* The smallest job: each rank sends a message to all, and rank 0 counts. For tests of settings,
 * launchers and users. Usage: hello [SEGMENT], a size in bytes (default: one page). Owned by the
 * one client thread. */
#include "config.h"

#include "job.h"

#include <stdio.h>
#include <stdlib.h>

#include "trunkline_query.h"

static unsigned heard;

static void on_hello(gex_Token_t token)
{
    (void)token;
    heard++;
}

int main(int argc, char **argv)
{
    gex_AM_Entry_t entry = {
        0, (gex_AM_Fn_t)on_hello, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL};
    char text[512];

    job_start(&argc, &argv, argc > 1 ? strtoull(argv[1], NULL, 0) : GASNET_PAGESIZE);
    CHECK(gex_EP_RegisterHandlers(job.ep, &entry, 1) == GASNET_OK);
    job_barrier();
    for (gex_Rank_t to = 0; to < job.size; to++)
        gex_AM_RequestShort0(job.tm, to, entry.gex_index, 0);
    GASNET_BLOCKUNTIL(heard == job.size);
    CHECK(trunkline_describe_peer(job.size - 1, text, sizeof text) > 0);
    if (job.rank == 0)
        printf("%u ranks over %s\n", (unsigned)job.size, text);
    job_end();
}
