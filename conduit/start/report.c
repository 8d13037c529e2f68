/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What rank 0 logs about the start of the job. Settings go through the tools interface, which
 * prints each name once, whichever reader comes first. No state, no lock. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/report.h"
#include "bootstrap/bootstrap.h"
#include "collective/coll.h"
#include "firehose/firehose.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "start/start.h"
#include "start/start_private.h"
#include "gasnet_tools.h"
#include "topology/topology.h"
#include "transport/shm/shm.h"
#include "transport/verbs/verbs.h"

static void log_unknown(const char *name, const char *nearest)
{
    if (nearest)
        tk_log_warn(
            "%s is not a setting of this library; did you mean %s? (gasnetrun_ibv --settings "
            "lists all)",
            name, nearest);
    else
        tk_log_warn("%s is not a setting of this library (gasnetrun_ibv --settings lists all)",
                    name);
}

static void log_retired(const char *name, const char *help)
{
    tk_log_warn("%s is not supported any more and is ignored: %s", name, help);
}

void tk_start_report_unknown(void)
{
    tk_settings_unknown(tk_environment(), log_unknown);
    tk_settings_retired(log_retired);
}

static void log_value(const struct tk_setting *s)
{
    const void *value = (const char *)&tk_settings + s->offset;
    int is_default = tk_setting_is_default(s);
    switch (s->type) {
    case TK_SETTING_INT:
        gasnett_envint_display(s->name, *(const int64_t *)value, is_default, 0);
        break;
    case TK_SETTING_SIZE:
        gasnett_envint_display(s->name, (int64_t) * (const uint64_t *)value, is_default, 1);
        break;
    case TK_SETTING_REAL:
        gasnett_envdbl_display(s->name, *(const double *)value, is_default);
        break;
    case TK_SETTING_BOOL:
        gasnett_envstr_display(s->name, *(const bool *)value ? "YES" : "NO", is_default);
        break;
    default:
        gasnett_envstr_display(s->name, *(const char *const *)value, is_default);
        break;
    }
}

/* Settings that only the tools read, and those without effect, are logged only if they are set. */
static void log_setting(const struct tk_setting *s)
{
    bool is_ignored = s->type == TK_SETTING_IGNORED || s->type == TK_SETTING_RETIRED;
    bool is_read = !is_ignored && s->type != TK_SETTING_TOOLS && s->type != TK_SETTING_SWITCH;
    if (s->scope == TK_SCOPE_LAUNCHER)
        return;
    if (is_read)
        log_value(s);
    else if (tk_getenv(s->name) && is_ignored)
        tk_log_info("%s has no effect here: %s", s->name, s->help);
    else if (!tk_setting_is_default(s))
        gasnett_envstr_display(s->name, tk_getenv(s->name), 0);
}

static void log_firehose(void)
{
    char text[320];
    tk_firehose_describe(text, sizeof(text));
    tk_log_info("registration on the fly: %s", text);
}

static void log_network(void)
{
    char text[512];
    for (uint32_t i = 0; i < tk_verbs_rails(); i++) {
        tk_verbs_describe(i, text, sizeof(text));
        if (tk_verbs_rails() == 1)
            tk_log_info("network: %s", text);
        else
            tk_log_info("network: rail %u of %u: %s", i, tk_verbs_rails(), text);
    }
    tk_verbs_describe_connections(text, sizeof(text));
    tk_log_info("connections: %s", text);
    log_firehose();
}

static void log_transports(void)
{
    char text[256];
    if (tk_topology.nbrhds > 1)
        log_network();
    else
        tk_log_info("network: %s", tk_peers.size > 1 ? "none needed, all ranks share memory"
                                                     : "none, the job has one process");
    if (tk_topology.nbrhd_size == 1)
        return;
    tk_shm_describe(text, sizeof(text));
    tk_log_info("neighbours: shared memory %s", text);
}

static void log_collectives(void)
{
    char text[320];
    for (unsigned i = 0; tk_coll_describe(i, text, sizeof(text)); i++)
        tk_log_info("collectives: %s", text);
}

static void log_choices(void)
{
    tk_log_info("ranks: %u, hosts: %u, ranks of this host: %u, CPUs for them: %u", tk_peers.size,
                tk_topology.hosts, tk_topology.local_size, tk_topology.cpus);
    tk_log_info("neighbourhoods: %u, ranks of this one: %u", tk_topology.nbrhds,
                tk_topology.nbrhd_size);
    log_transports();
    tk_log_info("waiting: %s",
                tk_topology.oversubscribed
                    ? "ranks outnumber CPUs, so a waiting rank yields its CPU and sleeps"
                    : "there is a CPU for each rank, so a waiting rank keeps it");
    tk_log_info("segment: up to %" PRIu64 " bytes (smallest limit of all ranks %" PRIu64 ")",
                tk_segment_limit_local, tk_segment_limit_global);
    log_collectives();
}

/* Defaults set by configure options: a reader of the log has not seen that command line. */
static void log_build(void)
{
    if (TK_DEFAULT_IBV_PORTS[0])
        tk_log_info("GASNET_IBV_PORTS=%s is the default of this build (--with-ibv-ports)",
                    TK_DEFAULT_IBV_PORTS);
    if (TK_DEFAULT_FENCED_PUTS)
        tk_log_info(
            "GASNET_USE_FENCED_PUTS=1, the default of this build (--with-ibv-fenced-puts), has "
            "no effect here: puts need no fence");
    if (strcmp(TK_DEFAULT_PHYSMEM_MAX, "2/3") != 0)
        tk_log_info("GASNET_PHYSMEM_MAX=%s is the default of this build (--with-ibv-physmem-max)",
                    TK_DEFAULT_PHYSMEM_MAX);
    if (TK_MAX_MEDIUM != 65536)
        tk_log_info("messages have up to %d bytes, headers included, in this build "
                    "(--with-ibv-max-medium)",
                    TK_MAX_MEDIUM);
    if (TK_UNUSED_OPTIONS[0])
        tk_log_info("options of configure that have no effect:%s", TK_UNUSED_OPTIONS);
}

static void log_start(void)
{
    char text[512];
    tk_phases_describe(text, sizeof(text));
    tk_log_info("start of this rank, ms (of them with a CPU): %s", text);
    const struct tk_bootstrap_counts *counts = &tk_bootstrap.counts;
    tk_log_info("asked of the PMIx server by this rank: %u puts of %" PRIu64 " bytes together, %u "
                "gets of %" PRIu64 ", %u fences",
                counts->puts, counts->bytes_put, counts->gets, counts->bytes_got, counts->fences);
}

/* gasnett_env*_display() itself checks GASNET_VERBOSEENV and the rank. */
void tk_start_report(void)
{
    for (size_t i = 0; i < tk_setting_count; i++)
        log_setting(&tk_setting_table[i]);
    log_build();
    log_choices();
    log_start();
}
