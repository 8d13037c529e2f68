/* SPDX-License-Identifier: BSD-3-Clause */
/* The spawner and the hosts of a job; see place.h. */
#include "config.h"

#include "environ.h"
#include "hosts.h"
#include "layout.h"
#include "place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const spawner_names[] = {"local", "ssh", "mpi", "pmi"};

static bool choose_spawner(struct place *p, const struct options *o, const struct tk_settings *s,
                           char *why, size_t size)
{
    const char *name = s->ibv_spawner, *from = "--with-ibv-spawner=";
    if (o->spawner) {
        name = o->spawner;
        from = "-spawner=";
    } else if (environ_is_set("GASNET_IBV_SPAWNER")) {
        from = "GASNET_IBV_SPAWNER=";
    } else if (environ_is_set("GASNET_SPAWNER")) {
        name = s->spawner;
        from = "GASNET_SPAWNER=";
    }
    for (unsigned i = 0; i < sizeof(spawner_names) / sizeof(*spawner_names); i++)
        if (!strcmp(name, spawner_names[i])) {
            p->spawner = PLACE_LOCAL + i;
            return true;
        }
    snprintf(why, size, "%s%.300s: unknown spawner; there are ssh, local, mpi and pmi", from, name);
    return false;
}

bool place_is_foreign(const struct place *p)
{
    return p->spawner == PLACE_MPI || p->spawner == PLACE_PMI;
}

static bool is_virtual(const struct host_list *list)
{
    return list->count > 0 && list->hosts[0].is_virtual;
}

/* Checks the list against the limits of the spawner. */
static bool check_list(const struct place *p, char *why, size_t size)
{
    const struct host_list *list = &p->list;
    if (place_is_foreign(p) && is_virtual(list))
        snprintf(why, size,
                 "-spawner=%s: %s names virtual hosts (=name), which only ssh and local can start",
                 spawner_names[p->spawner], p->origin);
    else if (p->spawner == PLACE_LOCAL && list->count > 0 && !is_virtual(list) &&
             !hosts_only_this(list))
        snprintf(why, size, "-spawner=local: %s names other hosts than this one; use -spawner=ssh",
                 p->origin);
    else
        return true;
    return false;
}

/* Without a list of hosts. */
static bool place_here(struct place *p, const struct options *o, char *why, size_t size)
{
    p->nodes = place_is_foreign(p) ? o->hosts : 1;
    if (o->hosts > o->ranks)
        snprintf(why, size, "-N %u: more hosts than processes (-n %u)", o->hosts, o->ranks);
    else if (place_is_foreign(p) || o->hosts <= 1)
        return true;
    else if (p->spawner == PLACE_LOCAL)
        snprintf(why, size,
                 "-N %u: -spawner=local has this host only; use -spawner=ssh, or virtual hosts (-H "
                 "=a,=b)",
                 o->hosts);
    else
        snprintf(why, size,
                 "-N %u: only this host is known; name others by -H, --nodefile or "
                 "GASNET_SSH_SERVERS",
                 o->hosts);
    return false;
}

static void drop_list(struct place *p)
{
    host_list_free(&p->list);
    free(p->counts);
    p->counts = NULL;
}

static bool lay_out(struct place *p, const struct options *o, char *why, size_t size)
{
    p->counts = calloc(p->list.count, sizeof(*p->counts));
    if (!p->counts) {
        snprintf(why, size, "out of memory for the list of hosts");
        return false;
    }
    if (!layout_make(&p->list, o->ranks, o->hosts, p->counts, why, size))
        return false;
    for (uint32_t i = 0; i < p->list.count; i++)
        p->nodes += p->counts[i] > 0;
    return true;
}

/* The batch system itself has passed its hosts to mpirun and srun. An allocation of this host alone
 * does not limit the job: it starts as without an allocation. */
static bool ignores_allocation(const struct place *p)
{
    return p->is_allocated &&
           (p->spawner == PLACE_LOCAL || place_is_foreign(p) || hosts_only_this(&p->list));
}

bool place_decide(struct place *p, const struct options *o, const struct tk_settings *s, char *why,
                  size_t size)
{
    struct hosts_wish wish = {o->host_list, o->nodefile, s};

    *p = (struct place){0};
    if (!choose_spawner(p, o, s, why, size) || !hosts_find(&p->list, &wish, why, size))
        return false;
    p->is_allocated = p->list.is_allocation;
    p->is_here = hosts_only_this(&p->list) || is_virtual(&p->list) ||
                 (p->list.count == 0 && (p->spawner != PLACE_PMI && o->hosts <= 1));
    strcpy(p->origin, p->list.origin);
    if (ignores_allocation(p)) {
        uint32_t hosts = p->list.count;
        drop_list(p);
        if (!place_here(p, o, why, size))
            return false;
        if (place_is_foreign(p) && !p->nodes)
            p->nodes = hosts < o->ranks ? hosts : o->ranks;
        return true;
    }
    if (p->list.count == 0)
        return place_here(p, o, why, size);
    if (!check_list(p, why, size) || !lay_out(p, o, why, size))
        return false;
    if (!place_is_foreign(p) && hosts_only_this(&p->list))
        drop_list(p);
    return true;
}

static bool fill_own(struct job *job)
{
    static char name[HOST_NAME_LONGEST + 1];
    if (gethostname(name, sizeof(name) - 1) != 0 || !name[0])
        strcpy(name, "localhost");
    job->hosts[job->host_count++] = (struct job_host){.name = name, .count = job->ranks};
    return true;
}

bool place_fill(const struct place *p, struct job *job)
{
    uint32_t first = 0;

    job->host = JOB_NO_HOST;
    job->agent = p->list.count > 0 && !is_virtual(&p->list) ? JOB_AGENT_SSH : JOB_AGENT_FORK;
    job->hosts = calloc(p->list.count ? p->nodes : 1, sizeof(*job->hosts));
    if (!job->hosts)
        return false;
    if (p->list.count == 0)
        return fill_own(job);
    for (uint32_t i = 0; i < p->list.count; i++) {
        const struct host *h = &p->list.hosts[i];
        if (!p->counts[i])
            continue;
        job->hosts[job->host_count++] = (struct job_host){
            .name = h->name, .first = first, .count = p->counts[i], .is_virtual = h->is_virtual};
        first += p->counts[i];
    }
    return true;
}
