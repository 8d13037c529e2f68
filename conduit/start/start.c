/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Start-up: settings, bootstrap, topology, transport, peer infos, connections, a fence; each opens
 * after those it needs. A rank that fails has said why, and asks the launcher to end the job so
 * that the others do not wait for it. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alone.h"
#include "base/bits.h"
#include "base/clock.h"
#include "base/report.h"
#include "bootstrap/bootstrap.h"
#include "collective/barrier.h"
#include "collective/named.h"
#include "exit/exit.h"
#include "firehose/firehose.h"
#include "memory/memory.h"
#include "message/message.h"
#include "progress/progress.h"
#include "remote/remote.h"
#include "settings/settings.h"
#include "start/start.h"
#include "start/start_private.h"
#include "team/objects.h"
#include "tools/tools.h"
#include "transport/shm/shm.h"
#include "transport/threads.h"
#include "transport/verbs/verbs.h"

/* A client may define these itself; the library's are weak. */
__attribute__((weak)) const char *gasnet_max_segsize_str;
__attribute__((weak)) uint64_t gasnet_max_segsize;

uint64_t tk_segment_limit_local, tk_segment_limit_global;
static bool is_started;

bool tk_is_started(void)
{
    return is_started;
}

static const char *segment_limit_text(void)
{
    static char text[32];
    size_t given = 0;
    const char *value = tk_getenv("GASNET_MAX_SEGSIZE");
    if (value)
        tk_setting_trim(value, &given);
    if (given > 0)
        return tk_settings.max_segsize;
    if (gasnet_max_segsize_str)
        return gasnet_max_segsize_str;
    if (!gasnet_max_segsize)
        return tk_settings.max_segsize;
    snprintf(text, sizeof(text), "%" PRIu64 "/P", gasnet_max_segsize);
    return text;
}

static enum tk_status fill_info(struct tk_peer_info *info)
{
    info->pid = (uint32_t)getpid();
    info->ranks = tk_peers.size;
    return tk_topology_describe(&info->host);
}

/* What processes use already is known before the job's own rings and buffers are there: these are
 * counted apart (tk_segment_limit()). */
static void look_at_memory(struct tk_peer_info *info)
{
    char what[1400];
    info->host_memory = tk_host_memory();
    info->memory_left = tk_memory_available(what, sizeof(what));
    info->pinnable = UINT64_MAX;
}

/* Of a job whose ranks all share memory no device is open any more when this is asked. */
static enum tk_status find_pinnable(struct tk_peer_info *info)
{
    return tk_verbs_pins() ? tk_firehose_physmem(info->host_memory, &info->pinnable) : TK_OK;
}

static enum tk_status limit_by(const struct tk_segment_room *room, uint64_t *limit)
{
    if (tk_is_everything) {
        *limit = UINTPTR_MAX;
        return TK_OK;
    }
    return tk_segment_limit(segment_limit_text(), room, limit);
}

/* Cards came at different moments, and GASNET_PHYSMEM_MAX may differ: of each the least on a host
 * counts for all ranks of it. */
static struct tk_segment_room room_on_host(uint32_t host)
{
    struct tk_segment_room room = {UINT64_MAX, UINT64_MAX, UINT64_MAX, 0};
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        const struct tk_peer_info *info = tk_peer_info_of(r);
        if (tk_topology.host_of[r] != host)
            continue;
        room.memory = tk_min(room.memory, info->host_memory);
        room.left = tk_min(room.left, info->memory_left);
        if (tk_topology.nbrhds > 1 && !tk_is_on_demand)
            room.pinnable = tk_min(room.pinnable, info->pinnable);
        room.ranks++;
    }
    return room;
}

/* Each rank's limit follows from the peer infos of its host, so that nothing has to be exchanged a
 * second time. */
static enum tk_status find_limits(void)
{
    tk_segment_limit_global = UINT64_MAX;
    for (uint32_t host = 0; host < tk_topology.hosts; host++) {
        uint64_t limit;
        const struct tk_segment_room room = room_on_host(host);
        if (limit_by(&room, &limit) != TK_OK)
            return TK_FAIL;
        tk_segment_limit_global = tk_min(tk_segment_limit_global, limit);
        if (host == tk_topology.my_host)
            tk_segment_limit_local = limit;
    }
    return TK_OK;
}

/* A job of one has no device either. */
static enum tk_status find_limit_alone(const struct tk_peer_info *info)
{
    const struct tk_segment_room room = {info->host_memory, info->memory_left, UINT64_MAX, 1};
    enum tk_status status = limit_by(&room, &tk_segment_limit_local);
    tk_segment_limit_global = tk_segment_limit_local;
    return status;
}

static uint32_t expected; /* neighbours, before the peer infos came */
static uint32_t turn;     /* our number among the ranks of this host, as far as we know */

/* Who will be a neighbour is foreseen from what the launcher says: these need no queue pairs, and
 * where nobody else is there, no device. Cut as tk_topology_build() cuts. */
static void expect_neighbours(void)
{
    const uint32_t *local = tk_bootstrap.local;
    uint32_t count = local ? tk_bootstrap.local_size : 0, mine = 0;
    uint32_t most = (uint32_t)tk_settings.supernode_maxsize;
    while (mine < count && local[mine] != tk_peers.me)
        mine++;
    turn = mine < count ? mine : tk_peers.me;
    for (uint32_t i = 0; mine < count && i < count; i++) {
        if (i == mine || (most && i / most != mine / most))
            continue;
        tk_peer(local[i])->transport = &tk_transport_shm;
        expected++;
    }
}

static enum tk_status open_ways(struct tk_peer_info **info)
{
    (*info)->rings.fd = -1;
    if (tk_settings.supernode_maxsize != 1 && tk_shm_open(*info) != TK_OK)
        return TK_FAIL;
    expect_neighbours();
    return expected + 1 == tk_peers.size ? TK_OK : tk_verbs_open(info, turn);
}

/* Ranks of one host come to the same conclusion, and the lowest speaks first. */
static enum tk_status check_expected(void)
{
    for (uint32_t r = 0; r < tk_peers.size; r++) {
        if (tk_peer(r)->transport != &tk_transport_shm || tk_is_neighbour(r))
            continue;
        tk_log_error("the launcher says that this host has rank %u too, but by "
                     "GASNET_HOST_DETECT=%s rank %u (%s) is on another than rank %u (%s); set "
                     "GASNET_HOST_DETECT to what tells them right, or GASNET_SUPERNODE_MAXSIZE=1",
                     r, tk_settings.host_detect, r, tk_peer_info_of(r)->host.name, tk_peers.me,
                     tk_peer_info_of(tk_peers.me)->host.name);
        return TK_FAIL;
    }
    return TK_OK;
}

/* Rank 0 speaks for all: who ended the job before it has would cut its table short. */
static enum tk_status have_as_many_rails(void)
{
    if (tk_verbs_agree())
        return TK_OK;
    if (tk_peers.me != 0)
        tk_bootstrap_fence(NULL, 0);
    return TK_FAIL;
}

/* After the peer infos came: who is reached how is known. Neighbours first: the device is for the
 * others. */
static enum tk_status connect_ways(void)
{
    if (check_expected() != TK_OK)
        return TK_FAIL;
    if (tk_topology.nbrhd_size == 1)
        tk_shm_close();
    else if (tk_shm_connect() != TK_OK)
        return TK_FAIL;
    if (tk_is_everything && tk_topology.nbrhd_size > 1)
        tk_shm_admit_neighbours();
    if (tk_topology.nbrhds == 1)
        tk_verbs_close();
    else if (have_as_many_rails() != TK_OK || tk_verbs_connect(tk_topology.host_of) != TK_OK ||
             tk_verbs_open_firehose(tk_topology.local_size, tk_topology.local_rank == 0) != TK_OK)
        return TK_FAIL;
    else if (tk_is_on_demand && tk_remote_connect() != TK_OK)
        return TK_FAIL;
    return TK_OK;
}

static void poll_ways(void)
{
    tk_progress_bell(tk_shm_bell());
    if (tk_topology.nbrhds == 1)
        tk_progress_use(&tk_transport_shm);
    else if (tk_topology.nbrhd_size == 1)
        tk_progress_use(tk_verbs_transport());
    else
        tk_progress_use_both(&tk_transport_shm, tk_verbs_transport());
    if (tk_topology.oversubscribed)
        tk_progress_crowded();
}

static enum tk_status join_others(struct tk_peer_info **info)
{
    look_at_memory(*info);
    if (open_ways(info) != TK_OK || find_pinnable(*info) != TK_OK ||
        tk_peer_info_exchange_all(*info) != TK_OK)
        return TK_FAIL;
    if (tk_topology_build(tk_peers.me, tk_peers.size, tk_host_info_of) != TK_OK ||
        connect_ways() != TK_OK)
        return TK_FAIL;
    if (tk_barrier_connect() != TK_OK || tk_named_connect() != TK_OK || find_limits() != TK_OK)
        return TK_FAIL;
    poll_ways();
    /* Nobody may send before the other side is ready to receive. */
    enum tk_status status = tk_bootstrap_fence(NULL, 0);
    if (status == TK_OK)
        tk_exit_network_ready();
    return status;
}

/* A job of one exchanges no peer infos. */
static struct tk_host_info only_host;

static const struct tk_host_info *only_host_info(uint32_t rank)
{
    (void)rank;
    return &only_host;
}

static enum tk_status stay_alone(struct tk_peer_info *info)
{
    only_host = info->host;
    if (tk_topology_build(0, 1, only_host_info) != TK_OK)
        return TK_FAIL;
    tk_peer(0)->host = only_host.name;
    tk_peer(0)->pid = (int)info->pid;
    look_at_memory(info);
    return find_limit_alone(info);
}

static enum tk_status open_rooms(void)
{
    struct tk_peer_info *info = calloc(1, sizeof(*info));
    if (!info || fill_info(info) != TK_OK)
        return TK_FAIL;
    tk_ports_list();
    tk_message_open();
    tk_barrier_open();
    tk_named_open();
    tk_exit_open();
    if (tk_is_on_demand)
        tk_remote_open();
    tk_peer(tk_peers.me)->transport = &tk_transport_self;
    enum tk_status status = tk_peers.size > 1 ? join_others(&info) : stay_alone(info);
    free(info);
    return status;
}

static enum tk_status load_settings(void)
{
    tk_environment_open();
    enum tk_status status = tk_settings_load(tk_environment());
    tk_report_quiet(tk_settings.quiet);
    tk_thread_limit((int)tk_settings.max_threads);
    if (status == TK_OK)
        tk_process_memory_open();
    if (status == TK_OK)
        status = tk_signals_check();
    return status == TK_OK ? tk_pattern_open() : status;
}

static enum tk_status open_all(void)
{
    if (tk_bootstrap_open() != TK_OK)
        return TK_FAIL;
    char host[tk_host_name_max] = "";
    gethostname(host, sizeof(host) - 1);
    tk_report_identity(tk_bootstrap.rank, tk_bootstrap.size, host);
    tk_report_starting(true);
    if (load_settings() != TK_OK || tk_peers_open(tk_bootstrap.rank, tk_bootstrap.size) != TK_OK)
        return TK_FAIL;
    if (tk_bootstrap.rank == 0)
        tk_tell_unknown();
    return open_rooms();
}

void tk_start(void)
{
    tk_alone_open();
    if (open_all() != TK_OK) {
        tk_verbs_close();
        tk_shm_close();
        tk_exit_failed();
    }
    tk_alone_accept();
    if (tk_settings.verboseenv && tk_peers.me == 0)
        tk_tell_start();
    tk_report_starting(false);
    tk_tools_join_job();
    tk_peer_info_drop_all();
    is_started = true;
}

void tk_describe_peer(uint32_t rank, char *text, size_t size)
{
    char how[256];
    const struct tk_peer *peer = tk_peer(rank);
    if (peer->transport == &tk_transport_self) {
        snprintf(text, size, "self");
        return;
    }
    if (peer->transport == &tk_transport_shm)
        tk_shm_describe(how, sizeof(how));
    else
        tk_verbs_describe(tk_verbs_rail_to(rank), how, sizeof(how));
    snprintf(text, size, "%s %s", peer->transport->name, how);
}
