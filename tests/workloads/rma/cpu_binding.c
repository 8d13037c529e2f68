/* SPDX-License-Identifier: BSD-3-Clause */
/* See cpu_binding.h. The ranks of a host compute the same distribution without communication, from
 * the CPUs that each may use: in order of rank, each thread takes the first free CPU, one of each
 * core before the second of any. Owns this rank's list. */
#include "config.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include <hwloc.h>

#include "job.h"
#include "cpu_binding.h"

/* The CPUs that a rank may use, and the number of threads to bind. */
struct wish {
    cpu_set_t allowed;
    uint32_t threads;
};

static int *mine; /* by thread */

/* CPUs of the machine, first those that are the first of their core; CPU_SETSIZE at most. */
static unsigned order_of_cpus(int *order)
{
    hwloc_topology_t machine;
    unsigned count = 0;
    if (hwloc_topology_init(&machine) || hwloc_topology_load(machine))
        return 0;
    unsigned depth = (unsigned)hwloc_topology_get_depth(machine);
    for (unsigned turn = 0; depth && turn < CPU_SETSIZE; turn++) {
        unsigned before = count;
        hwloc_obj_t core = NULL;
        while ((core = hwloc_get_next_obj_by_type(machine, HWLOC_OBJ_CORE, core))) {
            int cpu = hwloc_bitmap_first(core->cpuset);
            for (unsigned i = 0; cpu >= 0 && i < turn; i++)
                cpu = hwloc_bitmap_next(core->cpuset, cpu);
            if (cpu >= 0 && cpu < CPU_SETSIZE && count < CPU_SETSIZE)
                order[count++] = cpu;
        }
        if (count == before)
            break;
    }
    hwloc_topology_destroy(machine);
    return count;
}

/* Machines whose cores hwloc does not know: in order of number. */
static unsigned any_order(int *order)
{
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        order[cpu] = cpu;
    return CPU_SETSIZE;
}

/* Of this host's ranks, up to our own. Returns how many of our threads have a CPU. */
static uint32_t distribute(const struct wish *wishes, const gex_RankInfo_t *host, gex_Rank_t self)
{
    static int order[CPU_SETSIZE];
    cpu_set_t taken;
    uint32_t served = 0;
    unsigned count = order_of_cpus(order);
    if (count == 0)
        count = any_order(order);
    CPU_ZERO(&taken);
    for (gex_Rank_t r = 0; r <= self; r++) {
        const struct wish *wish = &wishes[host[r].gex_jobrank];
        served = 0;
        for (unsigned i = 0; i < count && served < wish->threads; i++) {
            if (CPU_ISSET(order[i], &taken) || !CPU_ISSET(order[i], &wish->allowed))
                continue;
            CPU_SET(order[i], &taken);
            if (r == self)
                mine[served] = order[i];
            served++;
        }
    }
    return served;
}

void rma_bind_open(uint32_t threads)
{
    struct wish wish = {.threads = threads}, *wishes = calloc(wl_job.size, sizeof(*wishes));
    uint32_t *served = calloc(wl_job.size, sizeof(*served)), got;
    gex_RankInfo_t *host;
    gex_Rank_t ranks, self;
    mine = calloc(threads ? threads : 1, sizeof(*mine));
    if (!wishes || !served || !mine)
        wl_job_die("no memory for the CPUs of %u threads", threads);
    if (sched_getaffinity(0, sizeof(wish.allowed), &wish.allowed))
        CPU_ZERO(&wish.allowed);
    wl_job_share(&wish, wishes, sizeof(wish));
    gex_System_QueryHostInfo(&host, &ranks, &self);
    got = distribute(wishes, host, self);
    wl_job_share(&got, served, sizeof(got));
    for (gex_Rank_t rank = 0; rank < wl_job.size; rank++)
        if (served[rank] < wishes[rank].threads)
            wl_job_refuse(wl_exit_bad,
                          "--bind: rank %u has CPUs for %u of its %u threads: those of a host are "
                          "shared out among its ranks",
                          (unsigned)rank, served[rank], wishes[rank].threads);
    free(wishes);
    free(served);
}

void rma_bind_cpu(uint32_t thread)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(mine[thread], &one);
    if (sched_setaffinity(0, sizeof(one), &one))
        wl_job_die("--bind: thread %u can't be bound to CPU %d", thread, mine[thread]);
}

int rma_bound_cpu(void)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof(allowed), &allowed) || CPU_COUNT(&allowed) != 1)
        return -1;
    int cpu = 0;
    while (!CPU_ISSET(cpu, &allowed))
        cpu++;
    return cpu;
}
