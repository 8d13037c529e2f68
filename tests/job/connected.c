/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that communicate with few others: each does a put, a get and a message to those at the
 * given distances, and barriers. The library may connect to others for its own purposes. A word
 * that is no number is a command that rank 0 runs between two barriers. usage: connected
 * DISTANCE|COMMAND... */
#include "config.h"

#include "job.h"

#include <ctype.h>
#include <stdlib.h>

enum { bytes = 4096 };

static unsigned came, expected;

static void hear(gex_Token_t token)
{
    (void)token;
    came++;
}

static void talk_to(gex_Rank_t peer, unsigned round)
{
    char *remote = job_remote(peer, (size_t)round * bytes), mine[bytes], copy[bytes];

    job_fill(mine, bytes, job_mix(job.rank, round));
    gex_RMA_PutBlocking(job.tm, peer, remote, mine, bytes, 0);
    gex_RMA_GetBlocking(job.tm, copy, peer, remote, bytes, 0);
    CHECK_PATTERN(copy, bytes, job_mix(job.rank, round));
    gex_AM_RequestShort0(job.tm, peer, GEX_AM_INDEX_BASE, 0);
    expected++;
}

static void run(const char *command)
{
    job_barrier();
    if (job.rank == 0)
        CHECK(system(command) == 0, "'%s'", command);
    job_barrier();
}

int main(int argc, char **argv)
{
    gex_AM_Entry_t entry = {.gex_index = GEX_AM_INDEX_BASE,
                            .gex_fnptr = hear,
                            .gex_flags = GEX_FLAG_AM_REQUEST | GEX_FLAG_AM_SHORT};

    job_start(&argc, &argv, 16 * bytes);
    gex_EP_RegisterHandlers(job.ep, &entry, 1);
    job_barrier();
    for (int i = 1; i < argc; i++)
        if (isdigit((unsigned char)argv[i][0]))
            talk_to((job.rank + (gex_Rank_t)atoi(argv[i])) % job.size, (unsigned)i);
        else
            run(argv[i]);
    while (came < expected)
        gasnet_AMPoll();
    job_end();
}
