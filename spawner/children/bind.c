/* SPDX-License-Identifier: BSD-3-Clause */
/* Binding of ranks to CPUs; see bind.h. */
#include "config.h"

#include "bind.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool bind_fail(char *why, size_t size, const char *what)
{
    snprintf(why, size, "%s: %s", what, strerror(errno));
    return false;
}

/* Removing the CPUs that this process may not use also removes the topology objects that contain
 * only such CPUs. */
static void reduce_to_own(hwloc_topology_t topology)
{
    hwloc_cpuset_t own = hwloc_bitmap_alloc();
    if (own && hwloc_get_cpubind(topology, own, HWLOC_CPUBIND_PROCESS) == 0 &&
        !hwloc_bitmap_iszero(own))
        hwloc_topology_restrict(topology, own, 0);
    hwloc_bitmap_free(own);
}

bool bind_load(struct bind_plan *p, char *why, size_t size)
{
    *p = (struct bind_plan){0};
    if (hwloc_topology_init(&p->topology) != 0)
        return bind_fail(why, size, "cannot read the CPUs of this host");
    if (hwloc_topology_load(p->topology) != 0) {
        bind_fail(why, size, "cannot read the CPUs of this host");
        bind_free(p);
        return false;
    }
    reduce_to_own(p->topology);
    return true;
}

void bind_free(struct bind_plan *p)
{
    for (uint32_t i = 0; i < p->count; i++)
        hwloc_bitmap_free(p->sets[i]);
    free(p->sets);
    if (p->topology)
        hwloc_topology_destroy(p->topology);
    *p = (struct bind_plan){0};
}

/* The type of object that is counted: some machines and containers show no cores or no sockets. */
static hwloc_obj_type_t type_of(hwloc_topology_t topology, enum job_bind bind)
{
    hwloc_obj_type_t type = bind == JOB_BIND_CORE ? HWLOC_OBJ_CORE : HWLOC_OBJ_PACKAGE;
    if (hwloc_get_nbobjs_by_type(topology, type) > 0)
        return type;
    return bind == JOB_BIND_CORE ? HWLOC_OBJ_PU : HWLOC_OBJ_MACHINE;
}

static uint32_t cpus_of(hwloc_obj_t object)
{
    return (uint32_t)hwloc_bitmap_weight(object->cpuset);
}

/* Fills the set of one rank: the next whole cores, until they have enough CPUs. */
static bool take_cores(const struct bind_plan *p, hwloc_obj_type_t type, uint32_t cpus,
                       unsigned *next, hwloc_cpuset_t set)
{
    for (uint32_t have = 0; have < cpus; ++*next) {
        hwloc_obj_t core = hwloc_get_obj_by_type(p->topology, type, *next);
        if (!core)
            return false;
        hwloc_bitmap_or(set, set, core->cpuset);
        have += cpus_of(core);
    }
    return true;
}

static bool bind_to_cores(struct bind_plan *p, uint32_t cpus, char *why, size_t size)
{
    hwloc_obj_type_t type = type_of(p->topology, JOB_BIND_CORE);
    unsigned next = 0;
    for (uint32_t i = 0; i < p->count; i++)
        if (!take_cores(p, type, cpus, &next, p->sets[i])) {
            snprintf(
                why, size,
                "%u process%s with %u CPU%s each need more than the %d core%s (%d CPUs) that may "
                "be used; start fewer, lower -c, or leave -c and --bind out",
                p->count, p->count == 1 ? "" : "es", cpus, cpus == 1 ? "" : "s",
                hwloc_get_nbobjs_by_type(p->topology, type),
                hwloc_get_nbobjs_by_type(p->topology, type) == 1 ? "" : "s",
                hwloc_get_nbobjs_by_type(p->topology, HWLOC_OBJ_PU));
            return false;
        }
    return true;
}

static bool bind_to_sockets(struct bind_plan *p, uint32_t cpus, char *why, size_t size)
{
    hwloc_obj_type_t type = type_of(p->topology, JOB_BIND_SOCKET);
    uint32_t sockets = (uint32_t)hwloc_get_nbobjs_by_type(p->topology, type);
    uint32_t each = p->count / sockets, more = p->count % sockets, done = 0;

    for (uint32_t s = 0; s < sockets; s++) {
        hwloc_obj_t socket = hwloc_get_obj_by_type(p->topology, type, s);
        uint32_t ranks = each + (s < more);
        if ((uint64_t)ranks * cpus > cpus_of(socket) && cpus > 0) {
            snprintf(
                why, size,
                "%u process%s with %u CPU%s each do not fit socket %u, of which %u CPU%s may be "
                "used; start fewer, lower -c, or leave it out",
                ranks, ranks == 1 ? "" : "es", cpus, cpus == 1 ? "" : "s", s, cpus_of(socket),
                cpus_of(socket) == 1 ? "" : "s");
            return false;
        }
        for (uint32_t k = 0; k < ranks; k++)
            hwloc_bitmap_copy(p->sets[done++], socket->cpuset);
    }
    return true;
}

bool bind_make(struct bind_plan *p, enum job_bind bind, uint32_t cpus, uint32_t count, char *why,
               size_t size)
{
    p->sets = calloc(count, sizeof(hwloc_cpuset_t));
    for (p->count = 0; p->sets && p->count < count; p->count++)
        if (!(p->sets[p->count] = hwloc_bitmap_alloc()))
            break;
    if (p->count < count)
        return bind_fail(why, size, "cannot bind processes");
    return bind == JOB_BIND_CORE ? bind_to_cores(p, cpus ? cpus : 1, why, size)
                                 : bind_to_sockets(p, cpus, why, size);
}

bool bind_apply(const struct bind_plan *p, uint32_t index)
{
    return hwloc_set_cpubind(p->topology, p->sets[index], HWLOC_CPUBIND_PROCESS) == 0;
}

void bind_describe(const struct bind_plan *p, uint32_t index, char *text, size_t size)
{
    if (hwloc_bitmap_list_snprintf(text, size, p->sets[index]) < 0)
        snprintf(text, size, "?");
}
