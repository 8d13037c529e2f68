/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The order in which the library opens, and what is undone when a step fails. Each step is a
 * function of this test that writes its name down, and fails if it is the one that is to fail. Each
 * start is a process of its own, which prints the names at its end. */
#include "config.h"

#include <unistd.h>

#include "base/alone.h"
#include "base/report.h"
#include "bootstrap/bootstrap.h"
#include "collective/barrier.h"
#include "collective/named.h"
#include "exit/exit.h"
#include "firehose/firehose.h"
#include "memory/memory.h"
#include "message/message.h"
#include "progress/progress.h"
#include "settings/settings.h"
#include "start/start.h"
#include "start/start_private.h"
#include "team/objects.h"
#include "tools/tools.h"
#include "transport/self/self.h"
#include "transport/shm/shm.h"
#include "transport/verbs/verbs.h"
#include "unit.h"

enum { ranks_max = 4 };

/* ---- what a job looks like, and what goes wrong in it */

struct job {
    const char *failing; /* step */
    uint32_t rank, size;
    uint32_t host_of[ranks_max];
    uint32_t nbrhd_size; /* ours; 0: as many as are on our host */
    uint32_t local[3];   /* what the launcher says of this host */
    uint32_t local_size; /* 0: nothing */
    uint64_t memory[ranks_max];
    bool oversubscribed, pins;
    const char *segsize_text; /* of the client */
    uint64_t segsize;
};

/* Ranks 0 and 1 share a host, 2 and 3 another; we are 1. */
static const struct job two_hosts = {.rank = 1,
                                     .size = 4,
                                     .host_of = {0, 0, 1, 1},
                                     .local = {0, 1},
                                     .local_size = 2,
                                     .memory = {400, 300, 800, 900}};

static struct job job;
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

void tk_alone_open(void)
{
    step("alone_open");
}

void tk_alone_accept(void)
{
    step("alone_accept");
}

enum tk_status tk_bootstrap_open(void)
{
    tk_bootstrap = (struct tk_bootstrap){.rank = job.rank,
                                         .size = job.size,
                                         .local = job.local_size ? job.local : NULL,
                                         .local_size = job.local_size};
    return step("bootstrap");
}

enum tk_status tk_bootstrap_fence(void (*poll)(void), uint64_t deadline)
{
    (void)poll, (void)deadline;
    return step("fence");
}

void tk_process_memory_open(void)
{
    step("process_memory");
}

enum tk_status tk_signals_check(void)
{
    return step("signals");
}

enum tk_status tk_pattern_open(void)
{
    return step("pattern");
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

enum tk_status tk_topology_describe(struct tk_host_info *info)
{
    strcpy(info->name, "here");
    return step("describe");
}

enum tk_status tk_topology_build(uint32_t rank, uint32_t size,
                                 const struct tk_host_info *(*info_of)(uint32_t rank))
{
    uint32_t local = 0, hosts = 0;
    (void)info_of;
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

void tk_ports_list(void)
{
    step("ports");
}

void tk_message_open(void)
{
    step("message");
}

void tk_barrier_open(void)
{
    step("barrier_open");
}

enum tk_status tk_barrier_connect(void)
{
    return step("barrier");
}

void tk_named_open(void)
{
    step("named_open");
}

enum tk_status tk_named_connect(void)
{
    return step("named");
}

void tk_exit_open(void)
{
    step("exit_open");
}

void tk_exit_network_ready(void)
{
    step("network_ready");
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

void tk_tell_unknown(void)
{
    step("unknown");
}

void tk_tell_start(void)
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

void tk_progress_crowded(void)
{
    step("crowded");
}

uint64_t tk_host_memory(void)
{
    return job.memory[job.rank];
}

uint64_t tk_memory_available(char *what, size_t size)
{
    (void)what, (void)size;
    return job.memory[job.rank] / 2;
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
enum tk_status tk_segment_limit(const char *text, const struct tk_segment_room *room,
                                uint64_t *limit)
{
    char name[64];
    *limit = tk_min(tk_min(room->memory, room->left), room->pinnable) / room->ranks;
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

static const struct tk_transport *connect_shm(void)
{
    return step("shm_connect") == TK_OK ? &tk_transport_shm : NULL;
}

static void close_shm(void)
{
    step("shm_close");
}

static void *flags(uint32_t neighbour)
{
    (void)neighbour;
    return NULL;
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
const struct tk_transport tk_transport_shm = {.name = "shm",
                                              .open = open_shm,
                                              .connect = connect_shm,
                                              .close = close_shm,
                                              .flags = flags,
                                              .bell = bell,
                                              .describe = describe};
const struct tk_transport tk_transport_verbs = {.name = "verbs",
                                                .open = open_verbs,
                                                .agree = agree,
                                                .connect = connect_verbs,
                                                .close = close_verbs};

/* ---- starting */

static void start(void *unused)
{
    char text[64];
    (void)unused;
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

/* All that was said and done; `is_good`: to the end. */
static const char *start_job(bool is_good)
{
    const char *said;
    int status = unit_child(start, NULL, &said);
    if (status != (is_good ? 0 : 1 << 8))
        fail_msg("wait status 0x%x; steps and words: %s", status, said);
    return said;
}

static const char *place_of(const char *said, const char *name)
{
    size_t n = strlen(name);
    for (const char *at = said; (at = strstr(at, name)); at++)
        if ((at == said || at[-1] == ' ' || at[-1] == '\n') && at[n] == ' ')
            return at;
    return NULL;
}

static bool did(const char *said, const char *name)
{
    return place_of(said, name) != NULL;
}

/* Names up to NULL. */
static void assert_order(const char *said, const char *first, ...)
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

static int set_up(void **state)
{
    (void)state;
    job = two_hosts;
    return 0;
}

/* ---- the order */

static void who_we_are_comes_first_then_settings_then_rooms(void **state)
{
    (void)state;
    assert_order(start_job(true), "alone_open", "bootstrap", "process_memory", "signals", "pattern",
                 "peers", "describe", "ports", "message", "barrier_open", "named_open", "exit_open",
                 "shm_open", "verbs_open", "exchange", "topology", "started", NULL);
}

/* Settings are compared in the exchange: what they say is not to be acted on before. */
static void nothing_of_others_is_mapped_or_connected_before_all_are_compared(void **state)
{
    (void)state;
    assert_order(start_job(true), "exchange", "topology", "shm_connect", "verbs_agree",
                 "verbs_connect", "barrier", "named", "use:shm:verbs", "fence", "network_ready",
                 "started", NULL);
}

static void nobody_sends_before_all_are_ready_to_receive(void **state)
{
    (void)state;
    assert_order(start_job(true), "verbs_connect", "fence", "network_ready", "alone_accept",
                 "tools", "drop", "started", NULL);
}

static void only_rank_0_speaks_of_names_that_nobody_knows(void **state)
{
    (void)state;
    assert_false(did(start_job(true), "unknown"));
    job.rank = 0;
    assert_true(did(start_job(true), "unknown"));
}

static void only_rank_0_tells_of_the_start_and_only_if_asked(void **state)
{
    (void)state;
    job.rank = 0;
    assert_false(did(start_job(true), "record"));
    setenv("GASNET_VERBOSEENV", "1", 1);
    assert_order(start_job(true), "network_ready", "record", "started", NULL);
    job.rank = 1;
    const char *said = start_job(true);
    unsetenv("GASNET_VERBOSEENV");
    assert_false(did(said, "record"));
}

/* ---- failing */

static void assert_fails_at(const char *name, const char *before, const char *undone)
{
    char end[64];
    job.failing = name;
    const char *said = start_job(false), *failed = place_of(said, name);
    if (!failed)
        fail_msg("'%s' was not reached: %s", name, said);
    snprintf(end, sizeof(end), "%s %sexit_failed ", name, undone);
    if (strcmp(failed, end))
        fail_msg("after '%s' expected '%s': %s", name, end, said);
    if (before)
        assert_order(said, before, name, NULL);
}

static void what_fails_before_transports_ends_the_job_and_undoes_nothing(void **state)
{
    static const char *const early[] = {"bootstrap", "signals", "pattern", "peers", "describe"};
    (void)state;
    for (size_t i = 0; i < sizeof(early) / sizeof(early[0]); i++)
        assert_fails_at(early[i], i ? early[i - 1] : NULL, "");
}

static void a_transport_that_does_not_open_is_closed_with_those_before_it(void **state)
{
    (void)state;
    assert_fails_at("shm_open", "exit_open", "shm_close ");
    assert_fails_at("verbs_open", "shm_open", "verbs_close shm_close ");
}

/* The last one that opened is closed first. */
static void what_fails_afterwards_closes_all_transports_in_reverse(void **state)
{
    static const char *const late[] = {"exchange", "topology", "shm_connect", "verbs_connect",
                                       "barrier",  "named",    "limit",       "fence"};
    (void)state;
    for (size_t i = 0; i < sizeof(late) / sizeof(late[0]); i++)
        assert_fails_at(late[i], i ? late[i - 1] : "verbs_open", "verbs_close shm_close ");
}

static void what_may_be_pinned_fails_before_it_is_told_to_others(void **state)
{
    (void)state;
    job.pins = true;
    assert_fails_at("physmem", "verbs_open", "verbs_close shm_close ");
}

/* Who ended the job before rank 0 has spoken would cut its words short. */
static void where_ports_do_not_agree_rank_0_fails_at_once_and_others_wait_for_it(void **state)
{
    (void)state;
    assert_fails_at("verbs_agree", "shm_connect", "fence verbs_close shm_close ");
    job.rank = 0;
    assert_fails_at("verbs_agree", "shm_connect", "verbs_close shm_close ");
}

static void bad_settings_end_the_job_before_rooms_open(void **state)
{
    (void)state;
    setenv("GASNET_SUPERNODE_MAXSIZE", "few", 1);
    const char *said = start_job(false);
    unsetenv("GASNET_SUPERNODE_MAXSIZE");
    unit_assert_says(said, "GASNET_SUPERNODE_MAXSIZE");
    assert_order(said, "bootstrap", "exit_failed", NULL);
    assert_false(did(said, "signals") || did(said, "peers"));
}

/* ---- which transports */

static void a_job_of_one_opens_none_and_meets_nobody(void **state)
{
    (void)state;
    job = (struct job){.size = 1, .memory = {500}};
    const char *said = start_job(true);
    assert_order(said, "exit_open", "topology", "limits:250,250", "started", NULL);
    assert_false(did(said, "shm_open") || did(said, "verbs_open") || did(said, "exchange") ||
                 did(said, "fence"));
}

static void where_the_launcher_says_that_all_are_here_no_device_is_opened(void **state)
{
    (void)state;
    job = (struct job){
        .rank = 1, .size = 3, .local = {0, 1, 2}, .local_size = 3, .memory = {9, 9, 9}};
    const char *said = start_job(true);
    assert_order(said, "shm_open", "shm_connect", "use:shm", "fence", NULL);
    assert_false(did(said, "verbs_open") || did(said, "verbs_connect"));
}

static void where_it_says_nothing_a_device_that_is_not_needed_is_closed_again(void **state)
{
    (void)state;
    job = (struct job){.rank = 1, .size = 3, .memory = {9, 9, 9}};
    const char *said = start_job(true);
    assert_order(said, "verbs_open", "topology", "verbs_close", "use:shm", "fence", NULL);
    assert_false(did(said, "verbs_agree") || did(said, "verbs_connect"));
}

static void without_neighbours_rings_are_closed_again(void **state)
{
    (void)state;
    job.size = 3;
    job.host_of[1] = 2;
    job.local_size = 0;
    const char *said = start_job(true);
    assert_order(said, "shm_open", "topology", "shm_close", "verbs_connect", "use:verbs", NULL);
    assert_false(did(said, "shm_connect"));
}

static void where_nobody_may_share_there_are_no_rings(void **state)
{
    (void)state;
    job.nbrhd_size = 1;
    job.local_size = 0;
    setenv("GASNET_SUPERNODE_MAXSIZE", "1", 1);
    const char *said = start_job(true);
    unsetenv("GASNET_SUPERNODE_MAXSIZE");
    assert_false(did(said, "shm_open") || did(said, "shm_connect"));
    assert_order(said, "verbs_open", "verbs_connect", "use:verbs", NULL);
}

static void a_device_is_opened_for_ranks_that_are_not_expected_here(void **state)
{
    (void)state;
    assert_true(did(start_job(true), "turn:1 for:2:3"));
    job.local_size = 0;
    assert_true(did(start_job(true), "turn:1 for:0:2:3"));
    job.rank = 3;
    job.local[0] = 2;
    job.local[1] = 3;
    job.local_size = 2;
    assert_true(did(start_job(true), "turn:1 for:0:1"));
}

static void expected_neighbours_are_cut_as_neighbourhoods_are(void **state)
{
    (void)state;
    job = (struct job){.rank = 2, .size = 3, .local = {0, 1, 2}, .local_size = 3, .nbrhd_size = 1};
    setenv("GASNET_SUPERNODE_MAXSIZE", "2", 1);
    const char *said = start_job(true);
    unsetenv("GASNET_SUPERNODE_MAXSIZE");
    assert_true(did(said, "turn:2 for:0:1"));
}

static void a_launcher_that_contradicts_the_hosts_is_an_error_with_a_remedy(void **state)
{
    (void)state;
    job.local[2] = 2;
    job.local_size = 3;
    const char *said = start_job(false);
    unit_assert_says(said, "the launcher says that this host has rank 2 too");
    unit_assert_says(said, "set GASNET_HOST_DETECT");
    assert_order(said, "topology", "verbs_close", "shm_close", "exit_failed", NULL);
}

static void where_ranks_outnumber_cpus_waiting_gives_them_away(void **state)
{
    (void)state;
    assert_false(did(start_job(true), "crowded"));
    job.oversubscribed = true;
    assert_order(start_job(true), "use:shm:verbs", "crowded", "fence", NULL);
}

/* ---- limits of segments */

/* 300 / 2 is left on host 0, 800 / 2 on host 1, for two ranks each. */
static void of_a_host_the_least_counts_and_of_the_job_the_least_host(void **state)
{
    (void)state;
    assert_true(did(start_job(true), "limits:75,75"));
    job.rank = 2;
    job.local[0] = 2;
    job.local[1] = 3;
    assert_true(did(start_job(true), "limits:200,75"));
}

static void what_can_be_pinned_bounds_segments_where_there_is_a_network(void **state)
{
    (void)state;
    job.pins = true;
    const char *said = start_job(true);
    assert_false(did(said, "(pinnable is not known)"));
    assert_true(did(said, "limits:37,37"));
    job.size = 2;
    job.local_size = 0;
    assert_true(did(start_job(true), "limits:75,75"));
}

static void the_limit_is_the_users_or_the_clients_or_the_default(void **state)
{
    (void)state;
    assert_true(did(start_job(true), "limit:0.85/H"));
    job.segsize = 12345;
    assert_true(did(start_job(true), "limit:12345/P"));
    job.segsize_text = "3G";
    assert_true(did(start_job(true), "limit:3G"));
    setenv("GASNET_MAX_SEGSIZE", "2G", 1);
    bool is_users = did(start_job(true), "limit:2G");
    setenv("GASNET_MAX_SEGSIZE", "  ", 1);
    bool is_clients = did(start_job(true), "limit:3G");
    unsetenv("GASNET_MAX_SEGSIZE");
    assert_true(is_users && is_clients);
}

/* ---- afterwards */

static void a_peer_is_described_by_its_transport(void **state)
{
    char text[64];
    struct tk_peer peers[] = {{.rank = 0, .transport = &tk_transport_self},
                              {.rank = 1, .transport = &tk_transport_shm}};
    (void)state;
    tk_peers.at = peers;
    tk_describe_peer(0, text, sizeof(text));
    assert_string_equal(text, "self");
    tk_describe_peer(1, text, sizeof(text));
    assert_string_equal(text, "shm to 1");
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

static const struct CMUnitTest tests[] = {
    TEST(who_we_are_comes_first_then_settings_then_rooms),
    TEST(nothing_of_others_is_mapped_or_connected_before_all_are_compared),
    TEST(nobody_sends_before_all_are_ready_to_receive),
    TEST(only_rank_0_speaks_of_names_that_nobody_knows),
    TEST(only_rank_0_tells_of_the_start_and_only_if_asked),
    TEST(what_fails_before_transports_ends_the_job_and_undoes_nothing),
    TEST(a_transport_that_does_not_open_is_closed_with_those_before_it),
    TEST(what_fails_afterwards_closes_all_transports_in_reverse),
    TEST(what_may_be_pinned_fails_before_it_is_told_to_others),
    TEST(where_ports_do_not_agree_rank_0_fails_at_once_and_others_wait_for_it),
    TEST(bad_settings_end_the_job_before_rooms_open),
    TEST(a_job_of_one_opens_none_and_meets_nobody),
    TEST(where_the_launcher_says_that_all_are_here_no_device_is_opened),
    TEST(where_it_says_nothing_a_device_that_is_not_needed_is_closed_again),
    TEST(without_neighbours_rings_are_closed_again),
    TEST(where_nobody_may_share_there_are_no_rings),
    TEST(a_device_is_opened_for_ranks_that_are_not_expected_here),
    TEST(expected_neighbours_are_cut_as_neighbourhoods_are),
    TEST(a_launcher_that_contradicts_the_hosts_is_an_error_with_a_remedy),
    TEST(where_ranks_outnumber_cpus_waiting_gives_them_away),
    TEST(of_a_host_the_least_counts_and_of_the_job_the_least_host),
    TEST(what_can_be_pinned_bounds_segments_where_there_is_a_network),
    TEST(the_limit_is_the_users_or_the_clients_or_the_default),
    TEST(a_peer_is_described_by_its_transport),
};

UNIT_MAIN(tests)
