/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Domains, and the choice of what executes their operations (see atomic.h). All members choose by
 * what they have in common: the arguments, the team, settings of the job. Owns no state beside the
 * domains themselves; no lock. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "atomic/atomic_private.h"
#include "base/report.h"
#include "base/segment_mode.h"
#include "gasnet_tools.h"
#include "settings/settings.h"
#include "topology/topology.h"
#include "transport/transport.h"

static const char *const path_names[] = {[TK_AD_CPU] = "CPUs, in mapped memory or by messages",
                                         [TK_AD_MESSAGE] = "CPUs, by messages",
                                         [TK_AD_DEVICE] = "devices"};

struct choice {
    enum tk_ad_path path;
    enum tk_atomic_scope scope;
    const char *why;
};

/* Whether at least half of all pairs of members are in different neighbourhoods. For remote targets
 * the device spares their CPU's attention; for neighbours it is a detour. */
static bool is_mostly_remote(gex_TM_t tm)
{
    uint64_t size = tk_team_size(tm), node_local = 0;
    uint32_t *members = calloc(tk_topology.nbrhds, sizeof(*members));
    if (!members)
        tk_panic("out of memory for a table of %u neighbourhoods", tk_topology.nbrhds);
    for (gex_Rank_t r = 0; r < size; r++)
        members[tk_topology.nbrhd_of[tk_team_jobrank(tm, r)]]++;
    for (uint32_t i = 0; i < tk_topology.nbrhds; i++)
        node_local += (uint64_t)members[i] * members[i];
    free(members);
    return 2 * node_local <= size * size;
}

/* With on-demand registration the target's memory may not be registered when an operation
 * arrives. */
static enum tk_atomic_scope scope_of_devices(void)
{
    const struct tk_transport_atomics *device = tk_is_on_demand ? NULL : tk_atomic_device();
    return device ? device->scope() : TK_ATOMIC_NONE;
}

static struct choice by_device_or_not(gex_TM_t tm, const struct trunkline_ad *ad)
{
    struct choice c = {.path = TK_AD_CPU, .scope = scope_of_devices()};
    bool is_set = !strcmp(tk_settings.ad_method, "device");
    if (c.scope == TK_ATOMIC_NONE)
        c.why = "no device can be used: none is open, it has no atomics, or there are several "
                "queue pairs to a peer";
    else if (ad->ops & ~tk_atomic_device_ops(ad->dt))
        c.why = "devices do not have the type or some operation";
    else if (!is_set && (ad->flags & (GEX_FLAG_AD_FAVOR_MY_RANK | GEX_FLAG_AD_FAVOR_MY_NBRHD)))
        c.why = "GEX_FLAG_AD_FAVOR_MY_RANK or _MY_NBRHD";
    else if (!is_set && !(ad->flags & GEX_FLAG_AD_FAVOR_REMOTE) && !is_mostly_remote(tm))
        c.why = "most targets share memory";
    else
        c = (struct choice){.path = TK_AD_DEVICE,
                            .scope = c.scope,
                            .why = is_set ? "GASNET_AD_METHOD"
                                   : ad->flags & GEX_FLAG_AD_FAVOR_REMOTE
                                       ? "GEX_FLAG_AD_FAVOR_REMOTE"
                                       : "most targets are remote"};
    return c;
}

static struct choice choose(gex_TM_t tm, const struct trunkline_ad *ad)
{
    if (!strcmp(tk_settings.ad_method, "message"))
        return (struct choice){.path = TK_AD_MESSAGE, .why = "GASNET_AD_METHOD"};
    if (!strcmp(tk_settings.ad_method, "cpu"))
        return (struct choice){.path = TK_AD_CPU, .why = "GASNET_AD_METHOD"};
    return by_device_or_not(tm, ad);
}

/* In the interface's names. All of them together have some 330 characters. */
static void log_choice(const struct trunkline_ad *ad, const char *why)
{
    char type[64], ops[512];
    gasnett_format_dt(type, ad->dt);
    gasnett_format_op(ops, ad->ops);
    tk_log_info("gex_AD_Create: type %s, operations %s, %u ranks: executed by %s (%s)", type, ops,
                tk_team_size(ad->tm), path_names[ad->path], why);
}

struct trunkline_ad *tk_ad_create(gex_TM_t tm, gex_DT_t dt, gex_OP_t ops, gex_Flags_t flags)
{
    struct trunkline_ad *ad = malloc(sizeof(*ad));
    if (!ad)
        tk_panic("out of memory for an atomic domain");
    *ad = (struct trunkline_ad){.tm = tm, .dt = dt, .ops = ops, .flags = flags};
    const struct choice choice = choose(tm, ad);
    ad->path = choice.path;
    ad->by_device_only = ad->path == TK_AD_DEVICE && choice.scope != TK_ATOMIC_GLOBAL;
    ad->device = tk_atomic_device();
    ad->peers = tk_team_peers(tm);
    bool is_mapped = ad->path != TK_AD_MESSAGE && !ad->by_device_only;
    ad->offsets = is_mapped ? tm->head.offsets : tk_peers.unmapped;
    if (ad->path == TK_AD_DEVICE)
        tk_atomic_connect(tm);
    if (tk_settings.verboseenv && tk_team_rank(tm) == 0)
        log_choice(ad, choice.why);
    return ad;
}

void tk_ad_destroy(struct trunkline_ad *ad)
{
    free(ad);
}

void tk_atomic_open(void)
{
    tk_atomic_open_messages();
    tk_atomic_open_connections();
}
