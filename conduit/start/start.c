/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Start-up: settings, bootstrap, topology, transports, peer infos, connections, a fence, each after
 * those it needs. Single-threaded, no lock. A rank that fails has logged the reason, and asks the
 * launcher to end the job so that the others do not wait for it. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "atomic/atomic.h"
#include "base/bits.h"
#include "base/client_mode.h"
#include "base/report.h"
#include "base/segment_mode.h"
#include "base/wait_record.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/gather.h"
#include "collective/barrier.h"
#include "collective/clocks.h"
#include "collective/coll.h"
#include "collective/exchange.h"
#include "collective/named.h"
#include "common/clock.h"
#include "common/number.h"
#include "exit/exit.h"
#include "firehose/firehose.h"
#include "kind_rma/kind_long.h"
#include "kind_rma/kind_open.h"
#include "memory/memory.h"
#include "message/message.h"
#include "op/threads.h"
#include "process/alone.h"
#include "progress/progress.h"
#include "progress/threads.h"
#include "remote_pin/remote_pin.h"
#include "settings/settings.h"
#include "start/start.h"
#include "start/start_private.h"
#include "stats/stats.h"
#include "stats/write.h"
#include "team/objects.h"
#include "tools/tools.h"
#include "trace/trace.h"
#include "transport/doorbell.h"
#include "transport/self/self.h"
#include "transport/shm/shm.h"
#include "transport/transport.h"
#include "transport/connect_record.h"
#include "transport/verbs/verbs.h"
#include "vector/vector.h"

static bool is_started;

bool tk_is_started(void)
{
    return is_started;
}

static enum tk_status fill_info(struct tk_peer_info *info)
{
    info->pid = (uint32_t)getpid();
    info->ranks = tk_peers.size;
    info->traces = tk_is_traced && tk_settings.trace_file[0];
    return tk_topology_describe(&info->host);
}

static uint32_t expected_neighbours; /* neighbours, before the peer infos have come */
static uint32_t local_index;         /* our index among the ranks of this host, as far as known */

/* Predicts the neighbours from what the launcher reports: they need no queue pairs, and if all
 * ranks are neighbours no device is needed. Splits a host into neighbourhoods as
 * tk_topology_map() does. */
static void expect_neighbours(void)
{
    const uint32_t *local = tk_bootstrap.local;
    uint32_t count = local ? tk_bootstrap.local_size : 0, mine = 0;
    uint32_t max = (uint32_t)tk_settings.supernode_maxsize;
    while (mine < count && local[mine] != tk_peers.me)
        mine++;
    local_index = mine < count ? mine : tk_peers.me;
    for (uint32_t i = 0; mine < count && i < count; i++) {
        if (i == mine || (max && i / max != mine / max))
            continue;
        tk_peer(local[i])->transport = &tk_transport_shm;
        expected_neighbours++;
    }
}

/* ---- Transports ---- */

/* The transports, in the order in which they take peers: each takes the peers that those before it
 * left. Start-up predicts before the exchange of peer infos which transports it needs, and knows it
 * after the exchange. */

static bool may_share(void)
{
    return tk_settings.supernode_maxsize != 1;
}

static bool shares(void)
{
    return tk_topology.nbrhd_size > 1;
}

static bool expects_others(void)
{
    return expected_neighbours + 1 < tk_peers.size;
}

static bool has_others(void)
{
    return tk_topology.nbrhds > 1;
}

static const struct path {
    const struct tk_transport *transport;
    bool (*is_expected)(void);
    bool (*is_needed)(void);
} paths[] = {{&tk_transport_shm, may_share, shares},
             {&tk_transport_verbs, expects_others, has_others}};

enum { path_count = sizeof(paths) / sizeof(paths[0]) };

static enum tk_status open_transports(struct tk_peer_info **info)
{
    (*info)->rings.fd = -1;
    expect_neighbours();
    for (int i = 0; i < path_count; i++) {
        if (!paths[i].is_expected())
            continue;
        tk_transport_use(paths[i].transport);
        if (paths[i].transport->lifecycle->open(info, local_index) != TK_OK)
            return TK_FAIL;
    }
    return TK_OK;
}

/* No rank knows before the exchange what the others found: if that differs, some transports open
 * again with less, in all ranks, and their peer infos replace the first ones. */
static enum tk_status exchange(struct tk_peer_info **info)
{
    bool is_again = false;
    if (tk_peer_info_exchange_all(*info) != TK_OK)
        return TK_FAIL;
    for (int i = 0; i < path_count; i++)
        if (paths[i].transport->lifecycle->narrow(info, local_index, &is_again) != TK_OK)
            return TK_FAIL;
    return is_again ? tk_peer_info_exchange_again(*info) : TK_OK;
}

/* All ranks of a host come to the same conclusion, and the lowest reports first. */
static enum tk_status check_expected(void)
{
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        if (tk_peer(r)->transport != &tk_transport_shm || tk_is_neighbour(r))
            continue;
        tk_log_error("the launcher reports rank %u on this host too, but by "
                     "GASNET_HOST_DETECT=%s rank %u (%s) is on another host than rank %u (%s); set "
                     "GASNET_HOST_DETECT to a method that agrees with the launcher, or "
                     "GASNET_SUPERNODE_MAXSIZE=1",
                     r, tk_settings.host_detect, r, tk_peer_info_of(r)->host.name, tk_peers.me,
                     tk_peer_info_of(tk_peers.me)->host.name);
        return TK_FAIL;
    }
    return TK_OK;
}

/* Only rank 0 reports, for all: another rank that ended the job earlier could cut its table
 * short. */
static enum tk_status start_agree(const struct tk_transport *transport)
{
    if (transport->lifecycle->agree())
        return TK_OK;
    if (tk_peers.me != 0)
        tk_bootstrap_fence(NULL, 0);
    return TK_FAIL;
}

static enum tk_status connect_path(const struct path *path)
{
    const struct tk_transport *transport = path->transport;
    if (!path->is_needed()) {
        tk_transport_drop(transport);
        transport->lifecycle->close();
        return TK_OK;
    }
    if (start_agree(transport) != TK_OK || !(transport = transport->lifecycle->connect()))
        return TK_FAIL;
    if (tk_is_on_demand && transport->memory && !(transport = tk_remote_connect(transport)))
        return TK_FAIL;
    tk_transport_use(transport);
    return TK_OK;
}

/* After the exchange of peer infos, when the path to each rank is known. */
static enum tk_status connect_transports(void)
{
    if (check_expected() != TK_OK)
        return TK_FAIL;
    for (int i = 0; i < path_count; i++)
        if (connect_path(&paths[i]) != TK_OK)
            return TK_FAIL;
    if (tk_is_everything && tk_topology.nbrhd_size > 1)
        tk_neighbours_admit();
    return TK_OK;
}

static void set_up_polling(void)
{
    if (tk_transports.node_local)
        tk_progress_bell(tk_transports.node_local->bell());
    tk_bootstrap_bell(tk_progress_ring);
    tk_progress_look(tk_bootstrap_has_answer);
    tk_progress_use_all(tk_transports.at, tk_transports.count);
    if (tk_topology.oversubscribed)
        tk_progress_crowded();
}

/* No rank may send before its peers are ready to receive. Neighbours' memory was ready before the
 * peer infos said where it is, so a barrier through that memory is enough and costs less than the
 * launcher's. */
static enum tk_status wait_for_peers(void)
{
    struct tk_op op;
    if (has_others()) {
        enum tk_status status = tk_gather_meet();
        if (status == TK_OK)
            tk_exit_network_ready();
        return status;
    }
    tk_exit_network_ready();
    tk_op_init(&op);
    tk_barrier_start(&op);
    tk_wait_done(&op);
    return TK_OK;
}

static enum tk_status join_others(struct tk_peer_info **info)
{
    tk_limits_measure(*info);
    tk_topology_expect(tk_bootstrap.local ? tk_bootstrap.local_size : 1, tk_peers.size);
    if (open_transports(info) != TK_OK || tk_limits_find_pinnable(*info) != TK_OK)
        return TK_FAIL;
    tk_phase_over("rings and devices");
    if (exchange(info) != TK_OK)
        return TK_FAIL;
    tk_phase_over("peer infos");
    if (tk_start_tables(tk_host_info_of) != TK_OK || connect_transports() != TK_OK)
        return TK_FAIL;
    if (tk_barrier_connect() != TK_OK || tk_named_connect() != TK_OK || tk_limits_find() != TK_OK)
        return TK_FAIL;
    set_up_polling();
    tk_phase_over("connections");
    enum tk_status status = wait_for_peers();
    tk_phase_over("last wait");
    if (tk_is_traced && status == TK_OK)
        tk_clocks_start();
    return status == TK_OK ? tk_start_connect_listed() : status;
}

/* A job of one process exchanges no peer infos. */
static struct tk_host_info only_host;

static const struct tk_host_info *only_host_info(uint32_t rank)
{
    (void)rank;
    return &only_host;
}

static enum tk_status start_single_process(struct tk_peer_info *info)
{
    only_host = info->host;
    if (tk_start_tables(only_host_info) != TK_OK)
        return TK_FAIL;
    tk_peer(0)->host = only_host.name;
    tk_peer(0)->pid = (int)info->pid;
    tk_limits_measure(info);
    return tk_limits_find_single(info);
}

/* Before the last wait for the others, so that a file which ranks share is empty when the first of
 * them writes. `host` stays. */
static void open_stats(const char *host)
{
    struct tk_stats_plan plan = {.file = tk_settings.stats_file,
                                 .rank = tk_peers.me,
                                 .size = tk_peers.size,
                                 .host = host,
                                 .writes =
                                     tk_number_in_ranges(tk_settings.stats_nodes, tk_peers.me)};
    tk_stats_mask_parse(tk_settings.stats_mask, &plan.mask);
    if (plan.file[0] && plan.writes)
        plan.settings = tk_settings_changed_json(); /* kept to the end */
    tk_stats_open(&plan);
}

static void report_no_traces(void)
{
    const char *remedy =
        TK_HAS_TRACE_TWIN
            ? "build with gasnet-ibv-" TK_MODE_NAME "-trace (pkg-config) or ibv-" TK_MODE_NAME
              "-trace.mak, which are installed with it"
            : "no trace twin was configured beside it; make install-trace-twin in its build tree, "
              "or configure --enable-trace-twin, installs gasnet-ibv-" TK_MODE_NAME
              "-trace (pkg-config) and ibv-" TK_MODE_NAME "-trace.mak to build with";
    tk_log_warn("GASNET_TRACEFILE is ignored: this library records no traces: %s", remedy);
}

/* When: see open_stats(). */
static void open_trace(const char *host)
{
    struct tk_trace_plan plan = {.file = tk_settings.trace_file,
                                 .rank = tk_peers.me,
                                 .size = tk_peers.size,
                                 .host = host,
                                 .records =
                                     tk_number_in_ranges(tk_settings.trace_nodes, tk_peers.me),
                                 .local = tk_settings.trace_local};
    tk_stats_mask_parse(tk_settings.trace_mask, &plan.mask);
    /* gasnetrun_ibv --report says itself what its report lacks. */
    if (plan.file[0] && !tk_is_traced && plan.rank == 0 && !tk_setting_is_of_launcher(plan.file))
        report_no_traces();
    if (tk_is_traced)
        tk_trace_open(&plan);
}

static void open_records(void)
{
    static char host[tk_host_name_max];
    tk_topology_host_name(host);
    open_stats(host);
    open_trace(host);
}

static enum tk_status open_rooms(void)
{
    struct tk_peer_info *info = calloc(1, sizeof(*info));
    if (!info || fill_info(info) != TK_OK)
        return TK_FAIL;
    open_records();
    if (!TK_THREADED)
        tk_devices_single_thread();
    if (tk_ports_list() != TK_OK)
        return TK_FAIL;
    tk_connect_record_open();
    tk_message_open();
    tk_barrier_open();
    tk_named_open();
    tk_exchange_open();
    if (tk_is_traced)
        tk_clocks_open();
    tk_atomic_open();
    tk_vector_open();
    tk_kind_rma_open();
    tk_kind_long_open();
    tk_exit_open();
    if (tk_is_on_demand)
        tk_remote_open();
    tk_peer(tk_peers.me)->transport = &tk_transport_self;
    tk_coll_open();
    tk_wait_describe_add(tk_transports_describe_waits); /* after rooms that name a cause */
    enum tk_status status = tk_peers.size > 1 ? join_others(&info) : start_single_process(info);
    free(info);
    return status;
}

static bool are_tools_settings_right(void)
{
    char why[256];
    bool is_wrong = tk_tools_backtrace_is_wrong(why, sizeof(why));
    if (is_wrong)
        tk_log_error("%s", why);
    return !is_wrong;
}

static enum tk_status load_settings(void)
{
    tk_environment_open();
    enum tk_status status = tk_settings_load(tk_environment());
    tk_report_quiet(tk_settings.quiet);
    tk_thread_limit((int)tk_settings.max_threads);
    if (status != TK_OK || !are_tools_settings_right())
        return TK_FAIL;
    if (!tk_settings.disable_envdecode)
        tk_environment_decode();
    tk_process_memory_open();
    tk_pattern_open();
    return TK_OK;
}

static enum tk_status start_open_all(void)
{
    if (tk_bootstrap_open() != TK_OK)
        return TK_FAIL;
    tk_phase_over("PMIx");
    char host[tk_host_name_max];
    tk_topology_host_name(host);
    tk_report_identity(tk_bootstrap.rank, tk_bootstrap.size, host);
    tk_report_starting(true);
    tk_stats_show(&tk_wait_page.counters);
    tk_wait_record_open(tk_bootstrap.rank);
    tk_bootstrap_show_waits(&tk_wait_page);
    if (load_settings() != TK_OK || tk_peers_open(tk_bootstrap.rank, tk_bootstrap.size) != TK_OK)
        return TK_FAIL;
    if (tk_bootstrap.rank == 0)
        tk_start_report_unknown();
    tk_phase_over("settings");
    enum tk_status status = open_rooms();
    tk_wait_page.counters.rails = tk_verbs_rails();
    return status;
}

void tk_start(void)
{
    tk_phases_begin();
    tk_alone_open();
    tk_doorbell_prepare();
    if (start_open_all() != TK_OK) {
        tk_transports_close();
        tk_exit_failed();
    }
    /* The registration cache asks this, and in PAR the paths that take no lock while there is one
     * thread. If nobody asks, threads need not be looked at. */
    if (has_others() && (TK_THREADED || tk_settings.use_firehose))
        tk_alone_accept();
    else
        tk_alone_close();
    tk_phase_over("rest");
    if (tk_settings.verboseenv && tk_peers.me == 0)
        tk_start_report();
    tk_report_starting(false);
    tk_tools_join_job();
    tk_peer_info_drop_all();
    tk_progress_threads_open();
    if (tk_is_traced)
        tk_trace_start();
    is_started = true;
}

void tk_describe_peer(uint32_t rank, char *text, size_t size)
{
    char how[256];
    const struct tk_peer *peer = tk_peer(rank);
    if (!tk_peer_transport(peer)->reports.describe) {
        snprintf(text, size, "%s", tk_peer_transport(peer)->name);
        return;
    }
    tk_peer_transport(peer)->reports.describe(peer, how, sizeof(how));
    snprintf(text, size, "%s %s", tk_peer_transport(peer)->name, how);
}
