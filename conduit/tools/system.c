/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The host and the process. Owns the set of CPUs that were allowed before the first binding, read
 * on first use under pthread_once(). */
#include "config.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "gasnet_tools.h"
#include "tools/tools.h"

static cpu_set_t allowed;

static void find_allowed(void)
{
    if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
        CPU_ZERO(&allowed);
}

int gasnett_cpu_count(void)
{
    long count = sysconf(_SC_NPROCESSORS_ONLN);
    return count > 0 ? (int)count : 0;
}

uint64_t gasnett_getPhysMemSz(int failureIsFatal)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    if (pages <= 0 && failureIsFatal)
        gasnett_fatalerror_nopos("the size of the host's memory cannot be determined");
    return pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

int gasnett_isLittleEndian(void)
{
    const uint16_t one = 1;
    unsigned char low;
    memcpy(&low, &one, 1);
    return low;
}

/* An index into the CPUs that the launcher allowed, not into those of the last call. */
int gasnett_set_affinity(int rank)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_allowed);
    int count = CPU_COUNT(&allowed), wanted = count ? rank % count : 0;
    if (count == 0 || rank < 0)
        return 1;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &allowed) || wanted-- > 0)
            continue;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        return sched_setaffinity(0, sizeof(one), &one) != 0;
    }
    return 1;
}

void gasnett_flush_streams(void)
{
    fflush(NULL);
    if (tk_tools_is_on("GASNET_FS_SYNC", false))
        sync();
}

void gasnett_close_streams(void)
{
    fclose(stdin);
    fclose(stdout);
    fclose(stderr);
}

void gasnett_sched_yield(void)
{
    sched_yield();
}
