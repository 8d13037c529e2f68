/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Peers: the exchange at start-up and on attach, with a fake bootstrap: a table that the test fills
 * with records that others might have published. */
#include "config.h"

#include "base/client_mode.h"
#include "base/platform.h"
#include "bootstrap/bootstrap.h"
#include "bootstrap/gather.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "transport/transport.h"
#include "transport/verbs/conn/conn.h"
#include "transport/verbs/data/buffer.h"
#include "transport/verbs/data/tx_type.h"
#include "transport/verbs/device/device.h"
#include "unit.h"

enum { ranks = 4, blobs_max = 64 };

/* ---- the bootstrap */

static struct {
    uint32_t rank;
    char key[32];
    _Alignas(8) char bytes[8192];
    size_t size;
} blobs[blobs_max];
static unsigned blob_count, fences;
static bool fence_fails;

static void publish(uint32_t rank, const char *key, const void *bytes, size_t size)
{
    unsigned i = 0;
    while (i < blob_count && (blobs[i].rank != rank || strcmp(blobs[i].key, key)))
        i++;
    blob_count += i == blob_count;
    blobs[i].rank = rank;
    snprintf(blobs[i].key, sizeof(blobs[i].key), "%s", key);
    memcpy(blobs[i].bytes, bytes, size);
    blobs[i].size = size;
}

enum tk_status tk_bootstrap_put(const char *key, const void *blob, size_t size)
{
    publish(tk_peers.me, key, blob, size);
    return TK_OK;
}

enum tk_status tk_bootstrap_get(uint32_t rank, const char *key, void **blob, size_t *size)
{
    for (unsigned i = 0; i < blob_count; i++)
        if (blobs[i].rank == rank && !strcmp(blobs[i].key, key)) {
            *size = blobs[i].size;
            *blob = malloc(*size + 1);
            memcpy(*blob, blobs[i].bytes, *size);
            return TK_OK;
        }
    return TK_FAIL;
}

enum tk_status tk_bootstrap_fence(void (*poll)(void), uint64_t deadline)
{
    (void)deadline;
    fences++;
    if (poll)
        poll();
    return fence_fails ? TK_FAIL : TK_OK;
}

static char gathering[32];
static bool is_gathered;

enum tk_status tk_gather(const char *key, const void *mine, size_t size, void (*poll)(void))
{
    publish(tk_peers.me, key, mine, size);
    snprintf(gathering, sizeof(gathering), "%s", key);
    is_gathered = true;
    return tk_bootstrap_fence(poll, 0);
}

void *tk_gathered(uint32_t rank, size_t *size)
{
    assert_true(is_gathered);
    for (unsigned i = 0; i < blob_count; i++)
        if (blobs[i].rank == rank && !strcmp(blobs[i].key, gathering)) {
            *size = blobs[i].size;
            return blobs[i].bytes;
        }
    return NULL;
}

void tk_gather_withdraw(const char *key)
{
    (void)key;
}

void tk_gather_drop(void)
{
    is_gathered = false;
}

/* ---- peer infos of others */

enum { rails = 2, conns = 3 };

static const size_t card_size = sizeof(struct tk_peer_info) +
                                rails * (sizeof(struct tk_port_address) + sizeof(uint32_t)) +
                                ranks * conns * sizeof(uint32_t);

static struct tk_peer_info *new_info(uint32_t rank)
{
    struct tk_peer_info *info = calloc(1, card_size);
    info->pid = 500 + rank;
    info->ranks = ranks;
    info->version = tk_peer_info_version;
    info->rails = rails;
    info->conns = info->numbers = conns;
    assert_int_equal(tk_peer_info_size(info), card_size);
    strcpy(info->mode, TK_MODE_NAME);
    info->settings_hash = tk_settings_job_hash();
    snprintf(info->host.name, sizeof(info->host.name), "node%u", rank);
    return info;
}

static void publish_info(const struct tk_peer_info *info, uint32_t rank, size_t size)
{
    publish(rank, "tk.peer_info", info, size);
}

/* A healthy job of which this process is rank 1. */
static int set_up(void **state)
{
    unit_settings(NULL, NULL);
    blob_count = fences = 0;
    fence_fails = false;
    static uintptr_t offsets[ranks];
    assert_int_equal(tk_peers_open(1, ranks), TK_OK);
    tk_peers_unmap(offsets, ranks);
    offsets[1] = 0;
    tk_peers.offsets = offsets;
    tk_peers.rails = rails;
    tk_peers.rail_to[3] = 1;
    for (uint32_t r = 0; r < ranks; r++) {
        struct tk_peer_info *info = new_info(r);
        if (r != 1)
            publish_info(info, r, card_size);
        free(info);
    }
    char *text = tk_settings_job_text();
    publish(0, "tk.settings", text, strlen(text));
    free(text);
    return 0;
}

static int tear_down(void **state)
{
    tk_peer_info_drop_all();
    free(tk_peers.at);
    return 0;
}

static enum tk_status exchange(const char **said)
{
    struct tk_peer_info *mine = new_info(1);
    mine->version = 0;
    mine->settings_hash = 0;
    memset(mine->mode, 0, sizeof(mine->mode));
    unit_listen();
    enum tk_status status = tk_peer_info_exchange_all(mine);
    *said = unit_heard();
    free(mine);
    return status;
}

static void assert_refused(const char *text)
{
    const char *said;
    assert_int_equal(exchange(&said), TK_FAIL);
    unit_assert_says(said, text);
    assert_int_equal(unit_lines(said), 1);
}

/* Loops over GIDs and texts of names end, whatever another process publishes. */
static void addresses_of_others_are_bounded(void **state)
{
    const char *said;
    struct tk_peer_info *info = new_info(2);
    struct tk_port_address *a = tk_peer_info_rail(info, 1);
    a->gid_count = 200;
    memset(a->device, 'x', sizeof(a->device));
    publish_info(info, 2, card_size);
    free(info);
    assert_int_equal(exchange(&said), TK_OK);
    a = tk_peer_info_rail(tk_peer_info_of(2), 1);
    assert_int_equal(a->gid_count, tk_gids_max);
    assert_int_equal(strlen(a->device), sizeof(a->device) - 1);
}

static void a_table_knows_ranks_and_nothing_else(void **state)
{
    for (uint32_t r = 0; r < ranks; r++) {
        assert_int_equal(tk_peer(r)->rank, r);
        assert_null(tk_peer(r)->transport);
        assert_int_equal(tk_peer(r)->segment_size, 0);
    }
    assert_int_equal(tk_peers.me, 1);
    assert_null(tk_peer_info_of(2));
}

static void everybodys_card_is_learnt_with_one_fence(void **state)
{
    const char *said;
    assert_int_equal(exchange(&said), TK_OK);
    assert_string_equal(said, "");
    assert_int_equal(fences, 1);
    for (uint32_t r = 0; r < ranks; r++) {
        char host[16];
        snprintf(host, sizeof(host), "node%u", r);
        assert_string_equal(tk_peer(r)->host, host);
        assert_int_equal(tk_peer(r)->pid, 500 + r);
        assert_string_equal(tk_host_info_of(r)->name, host);
    }
}

static void our_own_card_is_completed_and_published(void **state)
{
    const char *said;
    void *blob;
    size_t size;
    exchange(&said);
    assert_int_equal(tk_bootstrap_get(1, "tk.peer_info", &blob, &size), TK_OK);
    struct tk_peer_info *info = blob;
    assert_int_equal(size, card_size);
    assert_int_equal(info->version, tk_peer_info_version);
    assert_string_equal(info->mode, TK_MODE_NAME);
    assert_true(info->settings_hash == tk_settings_job_hash());
    free(blob);
}

static void host_names_end_even_if_their_sender_forgot(void **state)
{
    const char *said;
    struct tk_peer_info *info = new_info(2);
    memset(info->host.name, 'x', sizeof(info->host.name));
    memset(info->host.id, 'y', sizeof(info->host.id));
    publish_info(info, 2, card_size);
    free(info);
    assert_int_equal(exchange(&said), TK_OK);
    assert_int_equal(strlen(tk_peer(2)->host), tk_host_name_max - 1);
    assert_int_equal(strlen(tk_host_info_of(2)->id), tk_host_id_max - 1);
}

static void another_version_is_named(void **state)
{
    struct tk_peer_info *info = new_info(3);
    info->version = tk_peer_info_version + 1;
    publish_info(info, 3, card_size);
    free(info);
    assert_refused("rank 3 runs another version of this library; link all programs");
}

static void a_card_cut_short_is_another_version(void **state)
{
    static const size_t cuts[] = {0, 1, 4, 20, sizeof(struct tk_peer_info) - 1};
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        struct tk_peer_info *info = new_info(3);
        publish_info(info, 3, cuts[i]);
        free(info);
        assert_refused("rank 3 runs another version");
        tk_peer_info_drop_all();
    }
}

/* Our rank will index its table of queue pairs. */
static void a_card_for_another_number_of_ranks_is_refused(void **state)
{
    static const uint32_t counts[] = {0, 1, ranks - 1, ranks + 1, UINT32_MAX};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        struct tk_peer_info *info = new_info(2);
        bool is_small = counts[i] < ranks;
        info->ranks = counts[i];
        publish_info(info, 2, is_small ? tk_peer_info_size(info) : card_size);
        free(info);
        assert_refused("rank 2 runs another version");
        tk_peer_info_drop_all();
    }
}

static void another_threading_mode_is_named(void **state)
{
    struct tk_peer_info *info = new_info(0);
    memset(info->mode, 0, sizeof(info->mode));
    strcpy(info->mode, "parsync");
    publish_info(info, 0, card_size);
    free(info);
    assert_refused("rank 0 was linked for threading mode 'parsync', this rank for '" TK_MODE_NAME
                   "'");
}

static void the_setting_that_differs_is_named_with_both_values(void **state)
{
    unit_settings("GASNET_NETWORKDEPTH_PP=25", NULL);
    assert_refused("settings differ between ranks: GASNET_NETWORKDEPTH_PP=25 here, but "
                   "GASNET_NETWORKDEPTH_PP=24 on rank 0; give all ranks the same value");
}

static void the_last_setting_is_compared_too(void **state)
{
    unit_settings("GASNET_SUPERNODE_MAXSIZE=3", NULL);
    assert_refused("GASNET_SUPERNODE_MAXSIZE=3 here, but GASNET_SUPERNODE_MAXSIZE=0 on rank 0");
}

/* Every rank knows that two differ, before anything of theirs is mapped; one of them reports it. */
static void only_the_rank_that_differs_from_rank_0_reports_it(void **state)
{
    const char *said;
    struct tk_peer_info *info = new_info(3);
    info->settings_hash++;
    publish_info(info, 3, card_size);
    free(info);
    assert_int_equal(exchange(&said), TK_FAIL);
    assert_string_equal(said, "");
}

static void a_failed_fence_fails_the_exchange(void **state)
{
    const char *said;
    fence_fails = true;
    assert_int_equal(exchange(&said), TK_FAIL);
}

static unsigned polled;

static void poll(void)
{
    polled++;
}

struct wire_segments {
    uint32_t count, unable, rails, reserved;
    struct {
        uint64_t base, size, inode;
        uint32_t endpoint;
        int32_t fd;
    } at[2];
    uint32_t keys[2][rails]; /* behind the records that there are */
};

enum { wire_head = 16, wire_record = 32 + rails * sizeof(uint32_t) };

static const uint32_t my_keys[2][rails] = {{9, 109}, {10, 110}};
static const struct tk_bound mine[] = {
    {.base = 0x7000, .size = 8192, .keys = my_keys[0]},
    {.base = 0x9000, .size = 5, .keys = my_keys[1], .endpoint = 32}};

/* Every other rank has endpoint 0, odd ones 4 as well. Keys of exchanges are numbered. */
static void publish_segments(unsigned number)
{
    char key[32];
    snprintf(key, sizeof(key), "tk.segments.%u", number);
    for (uint32_t r = 0; r < ranks; r++) {
        struct wire_segments s = {.count = 1 + r % 2,
                                  .rails = rails,
                                  .at = {{.base = 0x10000 * (r + 1), .size = 4096},
                                         {.base = 0x500, .size = r, .endpoint = 4}},
                                  .keys = {{70 + r, 170 + r}, {80 + r, 180 + r}}};
        if (s.count == 1)
            memcpy(&s.at[1], s.keys[0], sizeof(s.keys[0]));
        publish(r, key, &s, wire_head + s.count * wire_record);
    }
}

static unsigned exchanges;

static enum tk_status exchange_segments(uint32_t count, uint32_t *unable)
{
    exchanges++;
    return tk_segments_exchange(count ? mine : NULL, count, poll, unable);
}

static void assert_known(uint32_t rank, uint32_t endpoint, uintptr_t base, uintptr_t size,
                         uint32_t key)
{
    struct tk_bound bound = tk_bound_of(rank, endpoint);
    assert_int_equal(bound.size, size);
    if (size == 0)
        return;
    assert_int_equal(bound.base, base);
    assert_int_equal(bound.keys[0], key);
    assert_int_equal(bound.keys[1], key + 100);
}

static void segments_are_learnt_while_messages_are_served(void **state)
{
    uint32_t unable;
    publish_segments(exchanges);
    assert_known(3, 0, 0, 0, 0);
    assert_known(3, 4, 0, 0, 0);
    assert_int_equal(exchange_segments(2, &unable), TK_OK);
    assert_int_equal(unable, tk_nobody);
    assert_true(polled > 0);
    assert_int_equal(tk_peer(3)->segment_base, 0x40000);
    assert_int_equal(tk_peer(3)->segment_key, 173); /* its second rail carries small messages */
    assert_int_equal(tk_peer(2)->segment_key, 72);
    assert_known(1, 0, 0x7000, 8192, 9);
    assert_known(1, 32, 0x9000, 5, 10);
    assert_known(1, 4, 0, 0, 0);
    assert_known(3, 0, 0x40000, 4096, 73);
    assert_known(3, 4, 0x500, 3, 83);
    assert_known(2, 4, 0, 0, 0);
    assert_known(3, 5, 0, 0, 0);
    assert_known(3, 33, 0, 0, 0);
    assert_known(3, 65535, 0, 0, 0);
}

static bool finds(uintptr_t address, size_t nbytes, uint32_t endpoint)
{
    struct tk_bound bound;
    return tk_bound_find_published(address, nbytes, &bound) && bound.endpoint == endpoint;
}

/* Only segments that were exchanged, are files and are still bound. */
static void own_segments_are_found_by_address_once_all_know_them(void **state)
{
    static const struct tk_bound files[] = {
        {.base = 0x7000, .size = 8192, .keys = my_keys[0], .inode = 7, .fd = 3},
        {.base = 0x9000, .size = 5, .keys = my_keys[1], .endpoint = 32, .inode = 8, .fd = -1}};
    struct tk_bound other = files[0];
    uint32_t unable;
    tk_bound_set(tk_peers.me, &files[0]);
    tk_bound_set(tk_peers.me, &files[1]);
    assert_false(finds(0x7000, 1, 0));
    publish_segments(exchanges++);
    assert_int_equal(tk_segments_exchange(files, 2, poll, &unable), TK_OK);
    assert_true(finds(0x7000, 8192, 0));
    assert_true(finds(0x8fff, 1, 0));
    assert_false(finds(0x7000, 8193, 0));
    assert_false(finds(0x6fff, 2, 0));
    assert_false(finds(0x9000, 5, 32)); /* memory of the client */
    other.inode = 9;
    tk_bound_set(tk_peers.me, &other);
    assert_false(finds(0x7000, 1, 0));
}

static void a_failing_rank_is_named_and_no_rank_learns(void **state)
{
    struct wire_segments none = {.unable = 1, .rails = rails};
    char key[32];
    uint32_t unable;
    publish_segments(exchanges);
    snprintf(key, sizeof(key), "tk.segments.%u", exchanges);
    publish(2, key, &none, wire_head);
    publish(3, key, &none, wire_head);
    assert_int_equal(exchange_segments(1, &unable), TK_OK);
    assert_int_equal(unable, 2);
    assert_known(0, 0, 0, 0, 0);
    assert_known(1, 0, 0, 0, 0);
    publish_segments(exchanges);
    assert_int_equal(exchange_segments(0, &unable), TK_OK);
    assert_int_equal(unable, 1);
    assert_known(0, 0, 0, 0, 0);
}

static void segments_in_other_words_are_refused(void **state)
{
    enum { one = wire_head + wire_record };
    static const struct wire_segments sound = {.count = 1, .rails = rails};
    struct wire_segments high = {
        .count = 1, .rails = rails, .at = {{.endpoint = tk_endpoints_known}}};
    struct wire_segments many = {.count = 0x20000001, .rails = rails};
    struct wire_segments keyless = {.count = 1, .rails = 1};
    const struct {
        const struct wire_segments *s;
        size_t size;
    } cases[] = {{&sound, one - 1}, {&sound, one + 1}, {&sound, wire_head - 1},
                 {&high, one},      {&many, one},      {&keyless, one - 4}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char key[32], text[100];
        uint32_t unable;
        publish_segments(exchanges);
        snprintf(key, sizeof(key), "tk.segments.%u", exchanges);
        publish(0, key, cases[i].s, cases[i].size);
        unit_listen();
        enum tk_status status = exchange_segments(1, &unable);
        const char *said = unit_heard();
        assert_int_equal(status, TK_FAIL);
        snprintf(text, sizeof(text), "rank 0 sent %zu bytes of invalid segment records",
                 cases[i].size);
        unit_assert_says(said, text);
    }
}

static void a_range_is_in_a_segment_or_not(void **state)
{
    const struct tk_peer peer = {.segment_base = 0x10000, .segment_size = 0x1000};
    const struct tk_peer unattached = {.rank = 1};
    assert_true(tk_peer_has(&peer, 0x10000, 0x1000));
    assert_true(tk_peer_has(&peer, 0x10fff, 1));
    assert_false(tk_peer_has(&peer, 0x10fff, 2));
    assert_false(tk_peer_has(&peer, 0xffff, 1));
    assert_false(tk_peer_has(&peer, 0x11000, 1));
    assert_false(tk_peer_has(&peer, 0x10001, SIZE_MAX));
    assert_true(tk_peer_has(&peer, 0, 0)); /* nothing is anywhere */
    assert_false(tk_peer_has(&unattached, 0, 1));
}

/* Memory for each peer, times every rank of a large job: growing it is a decision, not an
 * accident. Receive buffers are far more, and the user's (GASNET_AM_CREDITS_PP). */
static void a_peer_costs_no_more_than_planned(void **state)
{
    assert_true(sizeof(struct tk_peer) <= 64);
    assert_true(sizeof(struct tk_conn) <= 576); /* with its path; of peers in use */
    assert_true(sizeof(struct tk_path) <= 96);
    assert_true(sizeof(struct tk_port_address) <= 240); /* of each port, during start-up */
    assert_true(sizeof(struct tk_peer_info) <= 352);    /* 24 of them for XRC; at start */
    assert_true(sizeof(struct tk_tx) <= 64);
    assert_true(sizeof(struct tk_buffer) <= 80);
    assert_int_equal(sizeof(struct tk_message_head), 8); /* on the wire */
    assert_int_equal(sizeof(struct tk_long_head), 16);
}

/* Memory of each process for each rank of the job, of any size, in addition to the memory for its
 * host. */
static void the_table_costs_little_for_each_rank(void **state)
{
    enum { many = 100000 };
    struct tk_peers layout;
    assert_true(tk_peers_lay_out(&layout, NULL, many) <= (size_t)74 * many);
    assert_int_equal(tk_peers_lay_out(&layout, NULL, many) % TK_CACHE_LINE, 0);
    assert_int_equal((uintptr_t)(layout.rail_to + many), many * UINT64_C(73));
}

/* Ranks of a host share its name, also if there are more names than the table's initial size. */
static void one_copy_of_a_hosts_name_is_kept(void **state)
{
    enum { hosts = 1000 };
    static const char *first[hosts];
    char name[32];
    for (int turn = 0; turn < 2; turn++)
        for (int i = 0; i < hosts; i++) {
            snprintf(name, sizeof(name), "node%d", i);
            const char *kept = tk_host_name_keep(name);
            assert_string_equal(kept, name);
            assert_true(turn == 0 || kept == first[i]);
            first[i] = kept;
        }
    tk_host_names_complete();
    assert_string_equal(first[hosts - 1], "node999");
    for (int i = 0; i < hosts; i++)
        free((void *)(uintptr_t)first[i]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static const struct CMUnitTest tests[] = {
    TEST(addresses_of_others_are_bounded),
    TEST(a_table_knows_ranks_and_nothing_else),
    TEST(everybodys_card_is_learnt_with_one_fence),
    TEST(our_own_card_is_completed_and_published),
    TEST(host_names_end_even_if_their_sender_forgot),
    TEST(another_version_is_named),
    TEST(a_card_cut_short_is_another_version),
    TEST(a_card_for_another_number_of_ranks_is_refused),
    TEST(another_threading_mode_is_named),
    TEST(the_setting_that_differs_is_named_with_both_values),
    TEST(the_last_setting_is_compared_too),
    TEST(only_the_rank_that_differs_from_rank_0_reports_it),
    TEST(a_failed_fence_fails_the_exchange),
    TEST(segments_are_learnt_while_messages_are_served),
    TEST(own_segments_are_found_by_address_once_all_know_them),
    TEST(a_failing_rank_is_named_and_no_rank_learns),
    TEST(segments_in_other_words_are_refused),
    TEST(a_range_is_in_a_segment_or_not),
    cmocka_unit_test(a_peer_costs_no_more_than_planned),
    cmocka_unit_test(the_table_costs_little_for_each_rank),
    cmocka_unit_test(one_copy_of_a_hosts_name_is_kept),
};

UNIT_MAIN(tests)
