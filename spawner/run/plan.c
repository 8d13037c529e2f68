/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of --plan; see plan.h. Owns the copy of the settings that the library's functions read,
 * which is filled here from the environment. No lock. */
#include "config.h"

#include "plan.h"

#include "base/report.h"
#include "common/number.h"
#include "settings/settings.h"
#include "spawner/util/log.h"
#include "start/plan.h"
#include "transport/verbs/limits.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct tk_settings tk_settings;

static void refuse(const char *line)
{
    log_error("%s", line);
}

/* ---- the table ---- */

/* 1234567 as "1.18 MiB"; exact below 10 KiB. */
static const char *size_text(uint64_t bytes, char text[32])
{
    static const char *const units[] = {"KiB", "MiB", "GiB", "TiB", "PiB"};
    double value = (double)bytes / 1024;
    int unit = 0;
    for (; value >= 1024 && unit < 4; unit++)
        value /= 1024;
    if (bytes < 10 << 10)
        snprintf(text, 32, "%llu B", (unsigned long long)bytes);
    else
        snprintf(text, 32,
                 value < 10    ? "%.2f %s"
                 : value < 100 ? "%.1f %s"
                               : "%.0f %s",
                 value, units[unit]);
    return text;
}

static void print_row(const char *what, const struct tk_footprint *one, uint32_t local)
{
    char registered[32], own[32], host_registered[32], host_own[32];
    printf("%-28s %12llu %12s %12s   %12llu %12s %12s\n", what,
           (unsigned long long)one->queue_pairs, size_text(one->registered, registered),
           size_text(one->private_bytes, own), (unsigned long long)one->queue_pairs * local,
           size_text(one->registered * local, host_registered),
           size_text(one->private_bytes * local + one->shared * local, host_own));
}

static void print_head(const struct tk_job_shape *shape)
{
    printf("%u process%s on %u host%s, %u on each, neighbourhoods of %u; %u queue pair%s to a "
           "peer\n\n",
           shape->ranks, shape->ranks == 1 ? "" : "es", shape->hosts, shape->hosts == 1 ? "" : "s",
           shape->local, shape->nbrhd, shape->conns, shape->conns == 1 ? "" : "s");
    printf("%-28s %12s %25s   %12s %25s\n", "", "a process:", "", "a host:", "");
    printf("%-28s %12s %12s %12s   %12s %12s %12s\n", "peers that are connected", "queue pairs",
           "registered", "private", "queue pairs", "registered", "other");
}

static const char assumptions[] =
    "\n"
    "Counted is what the library allocates by the settings in force: not segments, memory that is\n"
    "registered on the fly (GASNET_PHYSMEM_MAX), teams and collectives in flight, and not what\n"
    "libpmix, libc and the device's driver have (a driver needs some KiB for the queues of a "
    "queue\n"
    "pair). Assumed: hosts as this one, ranks spread evenly, threading mode PAR (SEQ takes less), "
    "one\n"
    "device a process, which can register 2^20 regions and share receive queues of any length, a\n"
    "port for each queue pair to a peer, two GIDs a port, connections by addresses (not "
    "librdmacm),\n"
    "segments FAST.\n";

/* The peers that barriers and the end of the job need: the first rank of each neighbourhood
 * exchanges messages with a few others. */
static uint32_t used_by_barriers(const struct tk_job_shape *shape)
{
    uint32_t rounds = 0;
    while (rounds < 32 && UINT64_C(1) << rounds < shape->nbrhds)
        rounds++;
    return 2 * rounds;
}

static bool print_connected(struct tk_job_shape *shape, const char *what, uint32_t peers)
{
    struct tk_footprint one;
    char text[64];
    shape->connected = peers;
    if (tk_plan(&one, shape) != TK_OK)
        return false;
    snprintf(text, sizeof(text), "%s%s%u", what, *what ? ": " : "", peers);
    print_row(text, &one, shape->local);
    return true;
}

static bool print_static(struct tk_job_shape *shape, uint32_t peers)
{
    shape->is_static = !tk_verbs_static_asks(shape->conns);
    return print_connected(shape, "GASNET_CONNECT_STATIC=1", peers);
}

static bool is_static(void)
{
    return tk_settings.connect_static || !tk_settings.connect_dynamic;
}

/* If receive buffers are shared, computed as if they were not. */
static bool print_unshared(struct tk_job_shape *shape, const struct tk_footprint *shared)
{
    struct tk_footprint own;
    int64_t asked = tk_settings.use_srq;
    bool is_done = true, asks = !shape->is_static && is_static();
    tk_settings.use_srq = 0;
    shape->is_static |= asks; /* only shared queue pairs are requested at start-up */
    shape->connected = tk_shape_peers(shape);
    if (tk_plan(&own, shape) != TK_OK)
        is_done = false;
    else if (own.registered != shared->registered)
        is_done = print_connected(shape, "GASNET_USE_SRQ=0", shape->connected);
    tk_settings.use_srq = asked;
    shape->is_static &= !asks;
    return is_done;
}

/* Connections as the settings say: on demand, or all at start-up. */
static bool print_some(struct tk_job_shape *shape)
{
    static const uint32_t steps[] = {16, 64, 256, 1024};
    uint32_t peers = tk_shape_peers(shape), least = used_by_barriers(shape);
    if (is_static())
        return peers == 0 || print_static(shape, peers);
    if (least < peers && !print_connected(shape, "barriers", least))
        return false;
    for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++)
        if (steps[i] > least && steps[i] < peers && !print_connected(shape, "", steps[i]))
            return false;
    return print_connected(shape, peers ? "all" : "", peers);
}

static bool print_table(struct tk_job_shape *shape)
{
    struct tk_footprint any;
    uint64_t idle;
    uint32_t peers = tk_shape_peers(shape);
    if (tk_plan(&any, shape) != TK_OK) /* a wrong setting, before half a table */
        return false;
    print_head(shape);
    if (!print_some(shape) || !print_unshared(shape, &any))
        return false;
    if (peers && !is_static() && !print_static(shape, peers))
        return false;
    if (tk_plan_idle_peer(&idle, shape) == TK_OK && peers)
        printf("\nA peer that is not connected takes %llu bytes of a process.\n",
               (unsigned long long)idle);
    fputs(assumptions, stdout);
    return true;
}

/* ---- one case, in bytes ---- */

static bool print_case(const struct tk_job_shape *shape)
{
    struct tk_footprint one;
    uint64_t idle;
    if (tk_plan(&one, shape) != TK_OK || tk_plan_idle_peer(&idle, shape) != TK_OK)
        return false;
    printf("queue_pairs %llu\nregistered %llu\nprivate %llu\nshared %llu\nidle_peer %llu\n",
           (unsigned long long)one.queue_pairs, (unsigned long long)one.registered,
           (unsigned long long)one.private_bytes, (unsigned long long)one.shared,
           (unsigned long long)idle);
    printf("host_queue_pairs %llu\nhost_registered %llu\nhost_other %llu\n",
           (unsigned long long)one.queue_pairs * shape->local,
           (unsigned long long)one.registered * shape->local,
           (unsigned long long)(one.private_bytes + one.shared) * shape->local);
    return true;
}

/* "all", or a number of existing peers. */
static bool read_peers(const char *text, struct tk_job_shape *shape)
{
    uint64_t n;
    if (!strcmp(text, "all"))
        return true;
    if (!tk_number_digits(text, 0, tk_shape_peers(shape), &n)) {
        log_error("--plan=%s: neither 'all' nor a number of peers between 0 and %u", text,
                  tk_shape_peers(shape));
        return false;
    }
    shape->connected = (uint32_t)n;
    return true;
}

bool plan_print(const struct options *o)
{
    struct tk_job_shape shape;
    if (tk_settings_parse(environ, &tk_settings, refuse) != TK_OK)
        return false;
    if (o->hosts > o->ranks) {
        log_error("-N %u: more hosts than processes (-n %u)", o->hosts, o->ranks);
        return false;
    }
    tk_plan_shape(&shape, o->ranks, o->hosts ? o->hosts : 1);
    if (o->plan && !read_peers(o->plan, &shape))
        return false;
    char why[1024];
    tk_report_into(why, sizeof(why)); /* we print the library's messages about settings */
    bool is_done = o->plan ? print_case(&shape) : print_table(&shape);
    tk_report_into(NULL, 0);
    if (!is_done)
        log_error("%s", why);
    return is_done;
}
