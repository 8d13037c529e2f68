/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Start of the verbs transport: limits by the manual's rules, the objects created for each peer,
 * how queue pairs are connected, and that each failure is reported once and leaves nothing
 * behind. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "fake_world.h"
#include "base/pool.h"
#include "settings/settings.h"
#include "transport/verbs/conn/connect.h"
#include "transport/verbs/conn/conns.h"
#include "transport/verbs/conn/pair.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/verbs.h"
#include "unit.h"
#include "whole_table.h"

/* Opens ranks with these settings ("NAME=value"; NULL: the defaults), and compares `what` with the
 * value. */
#define ASSERT_OPENED(ranks, what, value, ...)                                                     \
    do {                                                                                           \
        unit_settings(__VA_ARGS__, NULL);                                                          \
        world_open(ranks, 0);                                                                      \
        assert_int_equal(what, value);                                                             \
        world_close();                                                                             \
    } while (0)

static int total_credits(void)
{
    return tk_counter_read(&tk_verbs.credits_total);
}

static void the_total_of_credits_follows_the_manual(void **state)
{
    fake_reset();
    ASSERT_OPENED(4, total_credits(), 3 * 12, NULL);
    ASSERT_OPENED(4, total_credits(), 256, "GASNET_AM_CREDITS_PP=100");
    ASSERT_OPENED(4, total_credits(), 300, "GASNET_AM_CREDITS_PP=100", "GASNET_AM_CREDITS_TOTAL=0");
    ASSERT_OPENED(4, total_credits(), 20, "GASNET_AM_CREDITS_TOTAL=20");
    ASSERT_OPENED(4, total_credits(), 36, "GASNET_AM_CREDITS_TOTAL=1000");
}

static void by_default_a_third_of_the_credits_may_be_held_back(void **state)
{
    fake_reset();
    ASSERT_OPENED(2, tk_verbs.slack, 4, NULL);
    ASSERT_OPENED(2, tk_verbs.slack, 1, "GASNET_AM_CREDITS_PP=2");
    ASSERT_OPENED(2, tk_verbs.slack, 0, "GASNET_AM_CREDITS_PP=1");
    ASSERT_OPENED(4, tk_verbs.slack, 2, "GASNET_AM_CREDITS_TOTAL=7");
}

/* Credits that peers hold back must leave each rank one, or all could hang. */
static void slack_is_lowered_where_it_could_stop_the_job(void **state)
{
    fake_reset();
    ASSERT_OPENED(3, tk_verbs.slack, 5, "GASNET_AM_CREDITS_SLACK=5");
    ASSERT_OPENED(3, tk_verbs.slack, 2, "GASNET_AM_CREDITS_SLACK=5", "GASNET_AM_CREDITS_PP=3");
    ASSERT_OPENED(2, tk_verbs.slack, 0, "GASNET_AM_CREDITS_PP=1");
    ASSERT_OPENED(4, tk_verbs.slack, 2, "GASNET_AM_CREDITS_SLACK=5",
                  "GASNET_AM_CREDITS_TOTAL=7"); /* 3 peers x 2 < 7 */
}

/* A third of a peer's credits, and its share of all that the peer has. */
static void what_a_batch_holds_back_leaves_the_peer_credits_for_others(void **state)
{
    fake_reset();
    ASSERT_OPENED(2, tk_verbs.batch_slack, 10, "GASNET_AM_CREDITS_PP=30");
    ASSERT_OPENED(3, tk_verbs.batch_slack, 1, "GASNET_AM_CREDITS_PP=30",
                  "GASNET_AM_CREDITS_TOTAL=4");
}

static void queues_are_as_deep_as_the_settings_say(void **state)
{
    fake_reset();
    unit_settings("GASNET_NETWORKDEPTH_PP=10", "GASNET_AM_CREDITS_PP=6", NULL);
    world_open(3, 0);
    assert_int_equal(tk_verbs.depth_total, 20);
    const struct ibv_qp_init_attr *attr = fake_init_attr(world_conn(0, 1)->qp);
    assert_int_equal(attr->cap.max_send_wr, 10);
    assert_int_equal(attr->cap.max_recv_wr, 13);
    assert_true(tk_verbs.lanes[0].sends.cq->cqe >= 20);
    assert_true(tk_verbs.device.recv_cq->cqe >= 26);
    world_close();
    ASSERT_OPENED(3, tk_verbs.depth_total, 7, "GASNET_NETWORKDEPTH_TOTAL=7");
}

static void a_peer_finds_buffers_for_its_credits_and_its_exit_notice(void **state)
{
    fake_reset();
    unit_settings("GASNET_AM_CREDITS_PP=5", NULL);
    world_open(4, 0);
    for (uint32_t r = 1; r < 4; r++) {
        assert_int_equal(fake_receives(world_conn(0, r)->qp), 5 + 1);
        assert_int_equal(tk_credit_buffers_posted(world_conn(0, r)), 5 + 1);
    }
    world_close();
}

static void a_card_names_a_queue_pair_for_each_peer(void **state)
{
    fake_reset();
    unit_settings(NULL, NULL);
    world_open(3, 0);
    assert_int_equal(tk_peer_info_qps(world_cards[0], 1)[0], world_conn(0, 1)->qp->qp_num);
    assert_int_equal(tk_peer_info_qps(world_cards[0], 2)[0], world_conn(0, 2)->qp->qp_num);
    assert_string_equal(tk_peer_info_rail(world_cards[0], 0)->device, "fake0");
    assert_int_equal(fake_attr(world_conn(0, 2)->qp, IBV_QPS_RTR)->dest_qp_num,
                     tk_peer_info_qps(world_cards[2], 0)[0]);
    world_close();
}

/* Neither a queue pair, nor buffers, nor a share of the credits. */
static void peers_of_other_transports_cost_nothing(void **state)
{
    fake_reset();
    unit_settings("GASNET_AM_CREDITS_PP=5", "GASNET_NETWORKDEPTH_PP=10", NULL);
    world_group = 3;
    world_open(5, 0);
    world_group = 0;
    assert_int_equal(fake.qps, 3 * 2 + 2 * 3);
    assert_int_equal(total_credits(), 2 * 5);
    assert_int_equal(tk_verbs.depth_total, 2 * 10);
    assert_null(world_conn(0, 1)->qp);
    assert_int_equal(tk_peer_info_qps(world_cards[0], 1)[0], 0);
    assert_string_equal(tk_peer(2)->transport->name, "near");
    assert_ptr_equal(tk_peer(3)->transport, tk_verbs_transport());
    world_close();
}

static void the_device_decides_how_much_is_inline(void **state)
{
    fake_reset();
    ASSERT_OPENED(2, tk_verbs.inline_limit, 72, NULL);
    fake.inline_max = 30;
    world_open(2, 0);
    assert_in_range(tk_verbs.inline_limit, 15, 30);
    world_close();
    fake.inline_max = 0;
    world_open(2, 0);
    assert_int_equal(tk_verbs.inline_limit, 0);
    world_close();
    fake.inline_max = 1024;
    ASSERT_OPENED(2, tk_verbs.inline_limit, tk_inline_max, "GASNET_INLINESEND_LIMIT=-1");
}

/* As much inline data as the device takes, in the steps that devices have. */
static void inline_data_is_asked_for_in_small_steps(void **state)
{
    static const struct {
        unsigned max;
        size_t limit;
    } devices[] = {{64, 64}, {63, 48}, {48, 48}, {32, 32}, {16, 16}, {15, 0}};
    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
        fake_reset();
        fake.inline_max = devices[i].max;
        ASSERT_OPENED(2, tk_verbs.inline_limit, devices[i].limit, NULL);
    }
}

/* A queue of long requests is too large: shorter lists, and then all of the inline data. */
static void a_queue_that_is_too_large_gets_shorter_lists(void **state)
{
    fake_reset();
    fake.attr.max_sge = fake.attr.max_sge_rd = 30;
    ASSERT_OPENED(2, tk_verbs.list_max, tk_gather_max, NULL);
    fake.send_sge_max = 3;
    ASSERT_OPENED(2, tk_verbs.list_max, 2, NULL);
    ASSERT_OPENED(2, tk_verbs.inline_limit, 72, NULL);
}

/* Lists can't be shorter: half as many requests, with all of the inline data. */
static void a_queue_that_is_still_too_large_gets_fewer_requests(void **state)
{
    static const char depth[] = "GASNET_NETWORKDEPTH_PP=40";
    fake_reset();
    fake.send_slots_max = 20;
    ASSERT_OPENED(2, tk_verbs.depth_pp, 10, depth);
    ASSERT_OPENED(2, tk_counter_read(&world_conn(0, 1)->space), 10, depth);
    ASSERT_OPENED(2, tk_verbs.unsignaled_max, 4, depth);
    ASSERT_OPENED(2, tk_verbs.inline_limit, 72, depth);
    world_is_on_demand = true;
    ASSERT_OPENED(2, tk_verbs.depth_pp, 10, depth);
    world_is_on_demand = false;
    fake.attr.max_qp_wr = 60;
    fake.send_slots_max = 0;
    ASSERT_OPENED(2, tk_verbs.depth_pp, 60, "GASNET_NETWORKDEPTH_PP=100");
}

static void an_infiniband_peer_is_reached_by_lid(void **state)
{
    fake_reset();
    fake.ports[0][1].attr.lid = 5;
    unit_settings("GASNET_QP_TIMEOUT=20", "GASNET_QP_RETRY_COUNT=3", NULL);
    world_open(2, 0);
    const struct ibv_qp_attr *rtr = fake_attr(world_conn(0, 1)->qp, IBV_QPS_RTR);
    const struct ibv_qp_attr *rts = fake_attr(world_conn(0, 1)->qp, IBV_QPS_RTS);
    assert_int_equal(rtr->ah_attr.dlid, 5);
    assert_false(rtr->ah_attr.is_global);
    assert_int_equal(rtr->path_mtu, IBV_MTU_4096);
    assert_int_equal(rtr->max_dest_rd_atomic, 8);
    assert_int_equal(rts->max_rd_atomic, 8);
    assert_int_equal(rts->timeout, 20);
    assert_int_equal(rts->retry_cnt, 3);
    assert_int_equal(rts->rnr_retry, 7);
    world_close();
}

static void a_roce_peer_is_reached_by_gid(void **state)
{
    fake_reset();
    fake_make_ethernet(&fake.ports[0][1]);
    fake_gid(&fake.ports[0][1], IBV_GID_TYPE_ROCE_V1, "fe80::1");
    fake_gid(&fake.ports[0][1], IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.1");
    unit_settings(NULL, NULL);
    world_open(2, 0);
    const struct ibv_qp_attr *rtr = fake_attr(world_conn(0, 1)->qp, IBV_QPS_RTR);
    assert_true(rtr->ah_attr.is_global);
    assert_int_equal(rtr->ah_attr.grh.sgid_index, 1);
    assert_memory_equal(rtr->ah_attr.grh.dgid.raw, fake.ports[0][1].gids[1].gid.raw, 16);
    assert_true(rtr->ah_attr.grh.hop_limit > 1);
    world_close();
}

static void old_and_new(uint32_t rank)
{
    struct fake_port *port = &fake.ports[0][1];
    fake_make_ethernet(port);
    fake_gid(port, IBV_GID_TYPE_ROCE_V1, "::ffff:10.0.0.1");
    if (rank != 2)
        fake_gid(port, IBV_GID_TYPE_ROCE_V2, "::ffff:10.0.0.1");
}

/* Ranks 0 and 1 have both types, rank 2 has the old one alone. */
static void a_pair_takes_what_both_ends_have(void **state)
{
    fake_reset();
    unit_settings("GASNET_IBV_SL=3", "GASNET_IBV_TRAFFIC_CLASS=104", NULL);
    world_machine = old_and_new;
    world_open(3, 0);
    world_machine = NULL;
    for (uint32_t me = 0; me < 3; me++)
        for (uint32_t peer = 0; peer < 3; peer++) {
            if (me == peer)
                continue;
            const struct ibv_qp_attr *rtr = fake_attr(world_conn(me, peer)->qp, IBV_QPS_RTR);
            assert_int_equal(rtr->ah_attr.grh.sgid_index, me != 2 && peer != 2);
            assert_int_equal(rtr->ah_attr.sl, 3);
            assert_int_equal(rtr->ah_attr.grh.traffic_class, 104);
        }
    char text[512];
    tk_verbs_describe(0, text, sizeof(text));
    unit_assert_says(text, "fake0:1 (Ethernet, GID index 1, ::ffff:10.0.0.1, RoCE v2: the best "
                           "usable one; 1 other connections differ, ");
    world_be(2);
    tk_verbs_describe(0, text, sizeof(text));
    unit_assert_says(text, "GID index 0, ::ffff:10.0.0.1, RoCE v1: the only usable one, ");
    world_be(0);
    world_close();
}

static void lesser_and_greater(uint32_t rank)
{
    static const char *const mtu[] = {"GASNET_MAX_MTU=2048", "GASNET_MAX_MTU=512", NULL};
    static const char *const reads[] = {"GASNET_QP_RD_ATOM=1", "GASNET_QP_RD_ATOM=5", NULL};
    unit_settings(mtu[rank], reads[rank], NULL);
}

static void assert_path(uint32_t me, uint32_t peer, enum ibv_mtu mtu, int reads_in, int reads_out)
{
    const struct ibv_qp_attr *rtr = fake_attr(world_conn(me, peer)->qp, IBV_QPS_RTR);
    const struct ibv_qp_attr *rts = fake_attr(world_conn(me, peer)->qp, IBV_QPS_RTS);
    assert_int_equal(rtr->path_mtu, mtu);
    assert_int_equal(rtr->max_dest_rd_atomic, reads_in);
    assert_int_equal(rts->max_rd_atomic, reads_out);
}

/* The device serves 16 reads and has 8 in flight. */
static void ranks_may_set_different_limits(void **state)
{
    fake_reset();
    world_machine = lesser_and_greater;
    world_open(3, 0);
    world_machine = NULL;
    assert_path(0, 1, IBV_MTU_512, 1, 5);
    assert_path(1, 0, IBV_MTU_512, 5, 1);
    assert_path(0, 2, IBV_MTU_2048, 1, 8);
    assert_path(2, 0, IBV_MTU_2048, 8, 1);
    assert_path(1, 2, IBV_MTU_512, 5, 8);
    world_close();
}

static enum tk_status connect_to(const struct tk_port_address *to)
{
    unit_listen();
    return tk_conn_connect(world_conn(0, 1), to, &(uint32_t){7});
}

static void an_unreachable_peer_is_named(void **state)
{
    fake_reset();
    unit_settings(NULL, NULL);
    world_open(2, 0);
    struct tk_port_address to = tk_verbs.rails[0].address;
    to.lid = 9;
    strcpy(to.device, "other0");
    fake.failing[FAKE_MODIFY_QP].allowed = 0;
    fake.failing[FAKE_MODIFY_QP].error = ENETUNREACH;
    enum tk_status status = connect_to(&to);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    assert_int_equal(unit_lines(said), 1);
    unit_assert_says(said, "rank 1 (node1, pid 1001) is not reached from fake0:1 (LID 1) to "
                           "other0:1 (LID 9), queue pair ");
    unit_assert_says(said, ": modify_qp to RTR: Network is unreachable");
    to.needs_gid = to.gid_count = 1;
    to.gids[0].type = IBV_GID_TYPE_ROCE_V2;
    status = connect_to(&to);
    said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    assert_int_equal(unit_lines(said), 1);
    unit_assert_says(said, "fake0:1 has no GID, and other0:1 of rank 1 has RoCE v2 ::");
    world_close();
}

static void the_path_takes_the_lesser_of_both_sides(void **state)
{
    fake_reset();
    unit_settings(NULL, NULL);
    world_open(2, 0);
    struct tk_port_address to = tk_verbs.rails[0].address;
    to.mtu = IBV_MTU_1024;
    to.reads = 3;
    to.reads_out = 2;
    enum tk_status status = connect_to(&to);
    unit_heard();
    assert_int_equal(status, TK_OK);
    assert_int_equal(fake_attr(world_conn(0, 1)->qp, IBV_QPS_RTR)->path_mtu, IBV_MTU_1024);
    assert_int_equal(fake_attr(world_conn(0, 1)->qp, IBV_QPS_RTS)->max_rd_atomic, 3);
    assert_int_equal(fake_attr(world_conn(0, 1)->qp, IBV_QPS_RTR)->max_dest_rd_atomic, 2);
    world_close();
}

static unsigned open_files(void)
{
    unsigned n = 0;
    DIR *dir = opendir("/proc/self/fd");
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

/* Opens a rank of three, attached, with `call` failing after `allowed` calls. */
static enum tk_status open_failing(enum fake_call call, int allowed, const char **said)
{
    struct tk_peer_info *info = world_info(3);
    static char memory[4096];
    struct tk_region region = {.base = memory, .size = sizeof(memory)};
    fake_reset();
    fake.failing[call].allowed = allowed;
    fake.failing[call].error = ENOMEM;
    world_peers(0, 3);
    unit_listen();
    enum tk_status status = tk_verbs_open(&info, 0);
    if (status == TK_OK && info->rails == 0) {
        /* As tk_verbs_agree() does for all ranks together. */
        tk_rails_report_none(tk_peer_info_unused(info));
        status = TK_FAIL;
    }
    if (status == TK_OK)
        status = tk_verbs_register(&region);
    if (status == TK_OK)
        tk_verbs_use_segment(&region);
    *said = unit_heard();
    tk_verbs_close();
    free(info);
    free(tk_peers.at);
    free(tk_peers.rail_to);
    free(tk_peers.keys);
    return status;
}

static void each_failure_is_reported_once_and_leaves_nothing(void **state)
{
    static const struct {
        enum fake_call call;
        int calls; /* of a start that succeeds */
    } steps[] = {{FAKE_OPEN_DEVICE, 1}, {FAKE_QUERY_DEVICE, 4}, {FAKE_QUERY_PORT, 2},
                 {FAKE_ALLOC_PD, 1},    {FAKE_CREATE_CQ, 2},    {FAKE_REG_MR, 3},
                 {FAKE_CREATE_QP, 3},   {FAKE_MODIFY_QP, 2}};
    unit_settings("GASNET_CONNECT_STATIC=1", NULL);
    for (size_t s = 0; s < sizeof(steps) / sizeof(steps[0]); s++)
        for (int allowed = 0; allowed <= steps[s].calls; allowed++) {
            const char *said;
            unsigned files = open_files();
            enum tk_status status = open_failing(steps[s].call, allowed, &said);
            int left = fake.contexts + fake.pds + fake.cqs + fake.mrs + fake.qps;
            assert_int_equal(open_files(), files); /* memory for buffers is files */
            if (left)
                fail_msg("call %d failing after %d: %d objects left", steps[s].call, allowed, left);
            if (allowed == steps[s].calls)
                assert_int_equal(status, TK_OK);
            else if (status == TK_OK || unit_lines(said) != 1)
                fail_msg("call %d failing after %d said: %s", steps[s].call, allowed, said);
        }
}

static void a_device_with_short_queues_is_reported_with_the_remedy(void **state)
{
    struct tk_peer_info *info = world_info(3);
    fake_reset();
    fake.attr.max_qp_wr = 16;
    unit_settings(NULL, NULL);
    world_peers(0, 3);
    unit_listen();
    enum tk_status status = tk_verbs_open(&info, 0);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    unit_assert_says(said,
                     "fake0 allows 16 work requests in a queue: lower GASNET_AM_CREDITS_PP (12)");
    tk_verbs_close();
    assert_int_equal(fake.contexts, 0);
    free(info);
    free(tk_peers.at);
    free(tk_peers.rail_to);
    free(tk_peers.keys);
}

static void the_choice_can_be_described(void **state)
{
    char text[256];
    fake_reset();
    unit_settings(NULL, NULL);
    world_open(2, 0);
    tk_verbs_describe(0, text, sizeof(text));
    assert_string_equal(
        text, "fake0:1 (InfiniBand, LID 1, 100000 Mb/s, MTU 4096, inline 72 B, lists of 2, "
              "queues of 24; only usable device of this host)");
    world_close();
}

static const char *explanation(size_t size, int error)
{
    unit_listen();
    tk_explain_registration(&tk_verbs.device, "segment", size, error);
    const char *said = unit_heard();
    assert_int_equal(unit_lines(said), 1);
    return said;
}

/* Lowering a limit is always allowed, raising is not. */
static void explain_under_low_limit(void *unused)
{
    setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){65536, 65536});
    const char *said = explanation(1u << 20, ENOMEM);
    _exit(!strstr(said, "raise the limit on locked memory") ||
          !strstr(said, "(ulimit -l) 65536 bytes"));
}

/* The kernel reports ENOMEM for the limit and for lack of memory. */
static void a_failed_registration_is_explained_by_its_likely_cause(void **state)
{
    struct rlimit limit;
    fake_reset();
    unit_settings(NULL, NULL);
    world_open(2, 0);
    unit_assert_says(explanation(4096, EINVAL), "fake0 can't register 4096 bytes for the "
                                                "segment: Invalid argument");
    unit_assert_says(explanation(4096, EINVAL), "check dmesg");
    fake.attr.max_mr_size = 1u << 20;
    unit_assert_says(
        explanation((1u << 20) + 1, EINVAL),
        "device limit 1048576 bytes, 0 regions; it is larger than the device registers at once");
    fake.attr.max_mr_size = UINT64_MAX;
    unit_assert_exit(explain_under_low_limit, NULL, 0);
    getrlimit(RLIMIT_MEMLOCK, &limit);
    if (limit.rlim_cur > 64u << 20) /* RLIM_INFINITY is the largest value */
        unit_assert_says(explanation(4096, ENOMEM), "the host is out of memory or the device");
    world_close();
}

/* ---- a queue pair for the next peer ---- */

static unsigned pool_count(struct tk_pool *pool)
{
    unsigned n = 0;
    for (const struct tk_pool_item *item = pool->free; item; item = item->next)
        n++;
    return n;
}

static void let_memory_fail(bool fails)
{
    fake.failing[FAKE_REG_MR].allowed = fails ? 0 : -1;
    fake.failing[FAKE_REG_MR].error = ENOMEM;
}

static void open_on_demand(uint32_t size)
{
    fake_reset();
    unit_settings(NULL, NULL);
    world_is_on_demand = true;
    world_open_only(size, 0);
    world_is_on_demand = false;
    tk_conns.expected = 1;
}

/* Destroying a queue pair does not return the buffers that were posted to it. */
static void a_pair_made_ahead_that_is_dropped_returns_its_buffers(void **state)
{
    struct tk_buffer *taken[256];
    unsigned count = 0;
    open_on_demand(3);
    struct tk_pool *pool = &tk_verbs.rails[0].recv_pool;
    for (unsigned left = pool_count(pool); left > 2; left--)
        taken[count++] = tk_pool_take(pool);
    let_memory_fail(true); /* the third allocation fails */
    unit_listen();
    tk_pair_open_ahead();
    unit_heard();
    let_memory_fail(false);
    assert_null(tk_conns.ahead);
    assert_int_equal(pool_count(pool), 2);
    while (count > 0)
        tk_pool_give(pool, taken[--count]);
    tk_pair_open_ahead();
    assert_non_null(tk_conns.ahead);
    tk_pair_drop(tk_conns.ahead);
    tk_conns.ahead = NULL;
    world_close();
}

/* The next peer finds space; if others were connected since, they have taken it. */
static void a_pair_made_ahead_has_space_for_one_connection(void **state)
{
    struct tk_conn *conns = NULL;
    open_on_demand(world_max);
    struct tk_rail *rail = &tk_verbs.rails[0];
    tk_pair_open_ahead();
    struct tk_conn *ahead = tk_conns.ahead;
    assert_non_null(ahead);
    let_memory_fail(true);
    rail->conns_open += world_max - 2;
    rail->primaries += world_max - 2;
    unit_listen();
    enum tk_status status = tk_pair_open(1, &conns);
    unit_heard();
    assert_int_equal(status, TK_FAIL);
    assert_ptr_equal(tk_conns.ahead, ahead);
    assert_int_equal(rail->conns_open, world_max - 2); /* it does not count */
    assert_int_equal(rail->primaries, world_max - 2);
    rail->conns_open = rail->primaries = 0;
    assert_int_equal(tk_pair_open(1, &conns), TK_OK);
    let_memory_fail(false);
    assert_ptr_equal(conns, ahead);
    assert_null(tk_conns.ahead);
    tk_pair_publish(1, conns);
    world_close();
}

/* Also the tables in which start-up replaces functions. */
static void tables_are_whole(void **state)
{
    static const char *const settings[] = {"GASNET_NUM_QPS=1", "GASNET_NUM_QPS=2",
                                           "GASNET_USE_SRQ=1"};
    assert_table_is_whole(&tk_transport_verbs);
    assert_non_null(tk_transport_verbs.demand);
    assert_non_null(tk_transport_verbs.memory);
    assert_non_null(tk_transport_verbs.atomics);
    for (size_t i = 0; i < sizeof(settings) / sizeof(*settings); i++) {
        fake_reset();
        unit_settings(settings[i], NULL);
        world_open(2, 0);
        assert_table_is_whole(tk_verbs_transport());
        world_close();
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_pair_takes_what_both_ends_have),
    cmocka_unit_test(ranks_may_set_different_limits),
    cmocka_unit_test(an_unreachable_peer_is_named),
    cmocka_unit_test(the_total_of_credits_follows_the_manual),
    cmocka_unit_test(by_default_a_third_of_the_credits_may_be_held_back),
    cmocka_unit_test(slack_is_lowered_where_it_could_stop_the_job),
    cmocka_unit_test(what_a_batch_holds_back_leaves_the_peer_credits_for_others),
    cmocka_unit_test(queues_are_as_deep_as_the_settings_say),
    cmocka_unit_test(a_peer_finds_buffers_for_its_credits_and_its_exit_notice),
    cmocka_unit_test(a_card_names_a_queue_pair_for_each_peer),
    cmocka_unit_test(peers_of_other_transports_cost_nothing),
    cmocka_unit_test(the_device_decides_how_much_is_inline),
    cmocka_unit_test(inline_data_is_asked_for_in_small_steps),
    cmocka_unit_test(a_queue_that_is_still_too_large_gets_fewer_requests),
    cmocka_unit_test(a_queue_that_is_too_large_gets_shorter_lists),
    cmocka_unit_test(an_infiniband_peer_is_reached_by_lid),
    cmocka_unit_test(a_roce_peer_is_reached_by_gid),
    cmocka_unit_test(the_path_takes_the_lesser_of_both_sides),
    cmocka_unit_test(each_failure_is_reported_once_and_leaves_nothing),
    cmocka_unit_test(a_device_with_short_queues_is_reported_with_the_remedy),
    cmocka_unit_test(the_choice_can_be_described),
    cmocka_unit_test(tables_are_whole),
    cmocka_unit_test(a_failed_registration_is_explained_by_its_likely_cause),
    cmocka_unit_test(a_pair_made_ahead_that_is_dropped_returns_its_buffers),
    cmocka_unit_test(a_pair_made_ahead_has_space_for_one_connection),
};

UNIT_MAIN(tests)
