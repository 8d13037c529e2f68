/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See fake_rooms.h. Stands in for all rooms below start/ but settings/, base/ and the list of
 * transports. Owns the names of this process's steps. */
#include "config.h"

#include <unistd.h>

#include "base/report.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/gather.h"
#include "collective/barrier.h"
#include "collective/clocks.h"
#include "collective/coll.h"
#include "collective/exchange.h"
#include "collective/named.h"
#include "exit/exit.h"
#include "fake_rooms.h"
#include "firehose/firehose.h"
#include "kind_rma/kind_long.h"
#include "kind_rma/kind_open.h"
#include "memory/memory.h"
#include "message/message.h"
#include "process/alone.h"
#include "progress/progress.h"
#include "remote_pin/remote_pin.h"
#include "settings/settings.h"
#include "start/start.h"
#include "start/start_private.h"
#include "team/objects.h"
#include "tools/tools.h"
#include "transport/connect_record.h"
#include "transport/doorbell.h"
#include "transport/self/self.h"
#include "transport/shm/shm.h"
#include "transport/verbs/verbs.h"
#include "vector/vector.h"
#include "unit.h"

struct job job;
static char steps[2000];

static enum tk_status step(const char *name)
{
    strcat(strcat(steps, name), " ");
    return job.failing && !strcmp(job.failing, name) ? TK_FAIL : TK_OK;
}

/* ---- the rooms below */

struct tk_bootstrap tk_bootstrap;
struct tk_peers tk_peers;
struct tk_topology tk_topology;

uint32_t tk_verbs_rails(void)
{
    return 0;
}

/* Rooms that start threads, such as traces, read these. */
struct tk_alone tk_alone;
bool tk_alone_check(void)
{
    return false;
}

void tk_alone_open(void)
{
    step("alone_open");
}

void tk_doorbell_prepare(void)
{
    step("prepare");
}

void tk_alone_accept(void)
{
    step("alone_accept");
}

void tk_alone_close(void)
{
    step("alone_close");
}

enum tk_status tk_bootstrap_open(void)
{
    tk_bootstrap = (struct tk_bootstrap){.rank = job.rank,
                                         .size = job.size,
                                         .local = job.local_size ? job.local : NULL,
                                         .local_size = job.local_size};
    return step("bootstrap");
}

void tk_bootstrap_show_waits(const void *record)
{
    (void)record;
}

enum tk_status tk_bootstrap_fence(void (*poll)(void), uint64_t deadline)
{
    (void)poll, (void)deadline;
    return step("fence");
}

enum tk_status tk_gather_meet(void)
{
    return tk_bootstrap_fence(NULL, 0);
}

void tk_bootstrap_bell(void (*ring)(void))
{
    (void)ring;
    step("answers_ring");
}

bool tk_bootstrap_has_answer(void)
{
    return false;
}

void tk_process_memory_open(void)
{
    step("process_memory");
}

bool tk_tools_backtrace_is_wrong(char *why, size_t size)
{
    (void)why;
    (void)size;
    return false;
}

void tk_pattern_open(void)
{
    step("pattern");
}

static struct tk_peer_info infos[ranks_max];

enum tk_status tk_peers_open(uint32_t rank, uint32_t size)
{
    tk_peers = (struct tk_peers){.me = rank, .size = size};
    tk_peers.at = aligned_alloc(TK_CACHE_LINE, size * sizeof(*tk_peers.at));
    for (uint32_t r = 0; r < size; r++)
        tk_peers.at[r] = (struct tk_peer){.rank = r};
    return step("peers");
}

enum tk_status tk_peer_info_exchange_all(struct tk_peer_info *info)
{
    for (uint32_t r = 0; r < job.size; r++)
        infos[r] = (struct tk_peer_info){.host_memory = job.memory[r],
                                         .memory_left = job.memory[r] / 2,
                                         .pinnable = job.pins ? job.memory[r] / 4 : UINT64_MAX};
    if (job.pins && info->pinnable != job.memory[job.rank] / 4)
        step("(pinnable is not known)");
    return step("exchange");
}

enum tk_status tk_peer_info_exchange_again(struct tk_peer_info *info)
{
    (void)info;
    return step("exchange_again");
}

const struct tk_peer_info *tk_peer_info_of(uint32_t rank)
{
    return &infos[rank];
}

const struct tk_host_info *tk_host_info_of(uint32_t rank)
{
    return &infos[rank].host;
}

void tk_peer_info_drop_all(void)
{
    step("drop");
}

void tk_topology_host_name(char name[tk_host_name_max])
{
    strcpy(name, "here");
}

enum tk_status tk_topology_describe(struct tk_host_info *info)
{
    tk_topology_host_name(info->name);
    return step("describe");
}

void tk_peers_unmap(uintptr_t *unmapped, uint32_t size)
{
    memset(unmapped, 0, size * sizeof(*unmapped));
}

enum tk_status tk_topology_map(uint32_t *map, uint32_t size,
                               const struct tk_host_info *(*info_of)(uint32_t rank))
{
    (void)map, (void)size, (void)info_of;
    return TK_OK;
}

enum tk_status tk_topology_build(uint32_t rank, uint32_t size, const uint32_t *map)
{
    uint32_t local = 0, hosts = 0;
    (void)map;
    for (uint32_t r = 0; r < size; r++) {
        local += job.host_of[r] == job.host_of[rank];
        hosts = job.host_of[r] + 1 > hosts ? job.host_of[r] + 1 : hosts;
    }
    uint32_t nbrhd = job.nbrhd_size ? job.nbrhd_size : local;
    tk_topology = (struct tk_topology){.hosts = hosts,
                                       .my_host = job.host_of[rank],
                                       .local_size = local,
                                       .host_of = job.host_of,
                                       .nbrhds = nbrhd == size ? 1 : 2,
                                       .my_nbrhd = job.host_of[rank],
                                       .nbrhd_size = nbrhd,
                                       .nbrhd_of = job.host_of,
                                       .oversubscribed = job.oversubscribed};
    return step("topology");
}

void tk_devices_single_thread(void)
{
    step("single_thread");
}

void tk_topology_expect(uint32_t local, uint32_t size)
{
    (void)local, (void)size;
}

void tk_progress_threads_open(void)
{
    step("threads");
}

enum tk_status tk_ports_list(void)
{
    step("ports");
    return TK_OK;
}

void tk_message_open(void)
{
    step("message");
}

void tk_barrier_open(void)
{
    step("barrier_open");
}

void tk_barrier_start(struct tk_op *op)
{
    (void)op;
    step("barrier_start");
}

void tk_wait_done(const struct tk_op *op)
{
    (void)op;
    step("all_came");
}

enum tk_status tk_barrier_connect(void)
{
    return step("barrier");
}

void tk_named_open(void)
{
    step("named_open");
}

void tk_coll_open(void)
{
    step("coll_open");
}

bool tk_coll_describe(unsigned line, char *text, size_t size)
{
    (void)line, (void)text, (void)size;
    return false;
}

void tk_exchange_open(void)
{
    step("exchange_open");
}

/* Steps of builds with traces only. */
void tk_clocks_open(void)
{
}
void tk_clocks_start(void)
{
}

void tk_vector_open(void)
{
    step("vector_open");
}

void tk_kind_rma_open(void)
{
    step("kind_rma_open");
}

void tk_kind_long_open(void)
{
    step("kind_long_open");
}

enum tk_status tk_named_connect(void)
{
    return step("named");
}

void tk_atomic_open(void)
{
    step("atomic_open");
}

void tk_exit_open(void)
{
    step("exit_open");
}

/* Called where segments are registered on demand; elsewhere needed without optimisation. */
void tk_remote_open(void)
{
    step("remote_open");
}

const struct tk_transport *tk_remote_connect(const struct tk_transport *network)
{
    return step("remote") == TK_OK ? network : NULL;
}

void tk_exit_network_ready(void)
{
    step("network_ready");
}

enum tk_status tk_start_connect_listed(void)
{
    return step("listed");
}

void tk_connect_record_open(void)
{
    step("record_open");
}

void tk_exit_failed(void)
{
    step("exit_failed");
    fputs(steps, stderr);
    _exit(1);
}

void tk_tools_join_job(void)
{
    step("tools");
}

void tk_start_report_unknown(void)
{
    step("unknown");
}

void tk_start_report(void)
{
    step("record");
}

void tk_progress_use_all(const struct tk_transport *const *transports, unsigned count)
{
    char text[64] = "use";
    for (unsigned i = 0; i < count; i++)
        strcat(strcat(text, ":"), transports[i]->name);
    step(text);
}

void tk_progress_bell(struct tk_doorbell *own)
{
    (void)own;
    step("bell");
}

void tk_progress_ring(void)
{
}

void tk_progress_look(bool (*look)(void))
{
    (void)look;
}

void tk_progress_crowded(void)
{
    step("crowded");
}

void tk_memory_measure(uint64_t *memory, uint64_t *left)
{
    *memory = job.memory[job.rank];
    *left = *memory / 2;
}

bool tk_verbs_pins(void)
{
    return job.pins;
}

enum tk_status tk_firehose_physmem(uint64_t host_memory, uint64_t *bytes)
{
    *bytes = host_memory / 4;
    return step("physmem");
}

/* The least of all bounds, for each rank. */
enum tk_status tk_segment_limit(const char *text, const struct tk_segment_bounds *space,
                                uint64_t *limit)
{
    char name[64];
    *limit = tk_min(tk_min(space->memory, space->left), space->pinnable) / space->ranks;
    snprintf(name, sizeof(name), "limit:%s", text);
    step(name);
    return step("limit");
}

/* ---- transports */

static enum tk_status open_shm(struct tk_peer_info **info, uint32_t turn)
{
    (void)info, (void)turn;
    return step("shm_open");
}

static enum tk_status narrow_shm(struct tk_peer_info **info, uint32_t turn, bool *is_again)
{
    (void)info, (void)turn, (void)is_again;
    return TK_OK;
}

static bool agree_shm(void)
{
    return true;
}

static const struct tk_transport *connect_shm(void)
{
    return step("shm_connect") == TK_OK ? &tk_transport_shm : NULL;
}

static void close_shm(void)
{
    step("shm_close");
}

static struct tk_doorbell *bell(void)
{
    return NULL;
}

static void describe(const struct tk_peer *peer, char *text, size_t size)
{
    snprintf(text, size, "to %u", peer->rank);
}

static enum tk_status open_verbs(struct tk_peer_info **info, uint32_t turn)
{
    char text[32] = "";
    (void)info;
    for (uint32_t r = 0; r < tk_peers.size; r++)
        if (!tk_peer(r)->transport)
            sprintf(strchr(text, 0), ":%u", r);
    char name[64];
    snprintf(name, sizeof(name), "turn:%u for%s", turn, text);
    step(name);
    return step("verbs_open");
}

static enum tk_status narrow(struct tk_peer_info **info, uint32_t turn, bool *is_again)
{
    (void)info, (void)turn;
    *is_again = job.is_narrowed;
    return job.is_narrowed ? step("verbs_narrow") : TK_OK;
}

static bool agree(void)
{
    return step("verbs_agree") == TK_OK;
}

static const struct tk_transport *connect_verbs(void)
{
    return step("verbs_connect") == TK_OK ? &tk_transport_verbs : NULL;
}

static void close_verbs(void)
{
    step("verbs_close");
}

const struct tk_transport tk_transport_self = {.name = "self"};
static const struct tk_transport_lifecycle shm_lifecycle = {.open = open_shm,
                                                            .narrow = narrow_shm,
                                                            .agree = agree_shm,
                                                            .connect = connect_shm,
                                                            .close = close_shm};
static const struct tk_transport_neighbour shm_neighbour = {.bell = bell};
const struct tk_transport tk_transport_shm = {.name = "shm",
                                              .reports = {.describe = describe},
                                              .lifecycle = &shm_lifecycle,
                                              .neighbour = &shm_neighbour};
static const struct tk_transport_lifecycle verbs_lifecycle = {.open = open_verbs,
                                                              .narrow = narrow,
                                                              .agree = agree,
                                                              .connect = connect_verbs,
                                                              .close = close_verbs};
const struct tk_transport tk_transport_verbs = {.name = "verbs", .lifecycle = &verbs_lifecycle};

/* ---- starting */

static void start(void *unused)
{
    char text[64];
    gasnet_max_segsize_str = job.segsize_text;
    gasnet_max_segsize = job.segsize;
    tk_start();
    snprintf(text, sizeof(text), "limits:%d,%d", (int)tk_segment_limit_local,
             (int)tk_segment_limit_global);
    step(text);
    if (tk_is_started())
        step("started");
    fputs(steps, stderr);
}

const char *start_job(bool is_good)
{
    const char *said;
    int status = unit_child(start, NULL, &said);
    if (status != (is_good ? 0 : 1 << 8))
        fail_msg("wait status 0x%x; steps and words: %s", status, said);
    return said;
}

const char *place_of(const char *said, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = said; (at = strstr(at, name)); at++)
        if ((at == said || at[-1] == ' ' || at[-1] == '\n') && at[n] == ' ')
            return at;
    return NULL;
}

bool did(const char *said, const char *name)
{
    return place_of(said, name) != NULL;
}

void assert_order(const char *said, const char *first, ...)
{
    va_list more;
    const char *at = said;
    va_start(more, first);
    for (const char *name = first; name; name = va_arg(more, const char *)) {
        const char *place = place_of(at, name);
        if (!place)
            fail_msg("no '%s' where it should be: %s", name, said);
        at = place + strlen(name);
    }
    va_end(more);
}
