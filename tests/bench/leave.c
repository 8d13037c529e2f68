/* SPDX-License-Identifier: BSD-3-Clause */
/* Timed by exit64: the end of a job whose ranks have communicated. Usage: leave all|one|away: all
 * ranks leave, or only rank 0 leaves while the others wait in a barrier ("one") or never poll
 * ("away"). A rank that leaves prints when, in seconds of the clock that the script reads. Owns
 * nothing, locks nothing. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <gasnetex.h>

int main(int argc, char **argv)
{
    gex_Client_t client;
    gex_EP_t ep;
    gex_TM_t tm;
    struct timespec now;
    const char *who = argc > 1 ? argv[1] : "all";
    if (gex_Client_Init(&client, &ep, &tm, "leave", &argc, &argv, 0))
        return 1;
    gex_Coll_BarrierBlocking(tm, 0);
    if (strcmp(who, "all") != 0 && gex_TM_QueryRank(tm) > 0) {
        if (!strcmp(who, "one"))
            gex_Coll_BarrierBlocking(tm, 0);
        for (;;)
            pause();
    }
    clock_gettime(CLOCK_REALTIME, &now);
    printf("leaves at %lld.%09ld\n", (long long)now.tv_sec, now.tv_nsec);
    gasnet_exit(0);
}
