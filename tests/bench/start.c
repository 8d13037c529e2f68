/* SPDX-License-Identifier: BSD-3-Clause */
/* Timed by start64: the shortest job that communicates with all its peers. Owns nothing, locks
 * nothing. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include <gasnetex.h>

int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    if (gex_Client_Init(&client, &ep, &tm, "start", &argc, &argv, 0))
        return 1;
    printf("hello from %u of %u\n", (unsigned)gex_TM_QueryRank(tm), (unsigned)gex_TM_QuerySize(tm));
    gex_Coll_BarrierBlocking(tm, 0);
    gasnet_exit(0);
}
