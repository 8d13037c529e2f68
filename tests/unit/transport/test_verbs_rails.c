/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Several rails: which connections a pair of ranks has, over which ports, with which keys; which of
 * them is primary; and the message when ranks have different numbers of rails. */
#include "config.h"

#include "fake_world.h"
#include "op/op.h"
#include "settings/settings.h"
#include "transport/verbs/data/poll.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/failover/connection_state.h"
#include "transport/verbs/failover/failover.h"
#include "transport/verbs/verbs.h"
#include "unit.h"

static void open_world(unsigned devices, const char *qps, uint32_t ranks)
{
    fake_reset();
    fake.device_count = (int)devices;
    unit_settings(qps, NULL);
    world_open(ranks, 4096);
}

/* From 0 on over all connections of the pair. */
static struct tk_conn *conn_to(uint32_t rank, uint32_t peer, uint32_t number)
{
    const struct tk_verbs *verbs = world_verbs(rank);
    return verbs->conns_of[peer] + number;
}

static void conns_of_one_number_meet_over_rails_of_one_number(void **state)
{
    enum { ranks = 3, conns = 5, rails = 2 };
    open_world(rails, "GASNET_NUM_QPS=5", ranks);
    fake.device_count = rails;
    for (uint32_t a = 0; a < ranks; a++)
        for (uint32_t b = 0; b < ranks; b++)
            for (uint32_t k = 0; a != b && k < conns; k++) {
                const struct tk_conn *ours = conn_to(a, b, k), *theirs = conn_to(b, a, k);
                assert_int_equal(fake_attr(ours->qp, IBV_QPS_RTR)->dest_qp_num, theirs->qp->qp_num);
                assert_int_equal(ours->rail, k % rails);
                assert_ptr_equal(ours->qp->context, world_verbs(a)->rails[k % rails].context);
            }
    world_close();
}

/* The primary connection of a pair, which must be the same at both ends. */
static uint32_t primary_of(uint32_t rank, uint32_t peer, int notices)
{
    const struct tk_verbs *verbs = world_verbs(rank);
    uint32_t primary = verbs->conns_pp;
    for (uint32_t k = 0; k < verbs->conns_pp; k++) {
        const struct tk_conn *conn = conn_to(rank, peer, k);
        if (conn->credits == 0) {
            assert_int_equal(fake_receives(conn->qp), notices);
            continue;
        }
        assert_int_equal(primary, verbs->conns_pp);
        assert_true(fake_receives(conn->qp) > notices);
        primary = k;
    }
    return primary;
}

static void assert_one_has_messages(const char *failover, int notices)
{
    enum { ranks = 5, rails = 4 };
    unsigned used[rails] = {0};
    fake_reset();
    fake.device_count = rails;
    unit_settings("GASNET_NUM_QPS=4", failover, NULL);
    world_open(ranks, 4096);
    for (uint32_t a = 0; a < ranks; a++)
        for (uint32_t b = 0; b < a; b++) {
            uint32_t primary = primary_of(a, b, notices);
            assert_int_equal(primary, primary_of(b, a, notices));
            assert_ptr_equal(world_conn(a, b), conn_to(a, b, primary));
            used[primary] += a == 4;
        }
    for (uint32_t k = 0; k < rails; k++)
        assert_int_equal(used[k], 1); /* a rank's four peers are spread */
    world_close();
}

static void one_link_of_a_pair_has_the_messages(void **state)
{
    assert_one_has_messages("GASNET_IBV_FAILOVER=0", 0);
    assert_one_has_messages("GASNET_IBV_FAILOVER=1", tk_notice_buffers_max);
}

static void each_device_knows_the_segment(void **state)
{
    open_world(2, "GASNET_NUM_QPS=2", 3);
    const struct tk_registration *segment = world_verbs(1)->segment;
    assert_int_not_equal(segment->remote[0], segment->remote[1]);
    for (uint32_t peer = 1; peer < 3; peer++)
        assert_int_equal(tk_peer(peer)->segment_key,
                         world_verbs(peer)->segment->remote[tk_peers.rail_to[peer]]);
    assert_int_not_equal(tk_peers.rail_to[1], tk_peers.rail_to[2]);
    world_close();
}

/* A device's objects serve all of its ports. */
static void ports_of_one_device_share_it(void **state)
{
    fake_reset();
    fake.attr.phys_port_cnt = 2;
    unit_settings("GASNET_IBV_PORTS=fake0:1,2", "GASNET_IBV_FAILOVER=0", NULL);
    world_open(2, 4096);
    assert_true(tk_verbs_transport()->poll == tk_transport_verbs.poll);
    assert_int_equal(tk_verbs.rail_count, 2);
    assert_int_equal(fake.contexts, 2);
    assert_int_equal(fake.cqs, 4);
    assert_int_equal(fake.qps, 4);
    assert_int_equal(tk_verbs.segment->local[0], tk_verbs.segment->local[1]);
    assert_int_equal(fake_attr(conn_to(0, 1, 0)->qp, IBV_QPS_INIT)->port_num, 1);
    assert_int_equal(fake_attr(conn_to(0, 1, 1)->qp, IBV_QPS_INIT)->port_num, 2);
    world_close();
}

static void messages_come_over_every_rail(void **state)
{
    enum { ranks = 3 };
    open_world(2, "GASNET_NUM_QPS=2", ranks);
    for (uint32_t peer = 1; peer < ranks; peer++) {
        struct tk_message_head head = {.kind = TK_CONTROL};
        struct tk_outgoing out = {.head = &head, .head_size = sizeof(head)};
        assert_int_equal(tk_verbs_send(tk_peer(peer), &out), TK_OK);
    }
    assert_ptr_not_equal(tk_verbs_transport(), &tk_transport_verbs);
    while (fake_settle())
        continue;
    for (uint32_t peer = 1; peer < ranks; peer++) {
        world_be(peer);
        assert_int_equal(world_conn(peer, 0)->control_expected, 1);
        assert_true(tk_verbs_transport()->poll());
        assert_int_equal(world_conn(peer, 0)->control_expected, 0);
    }
    world_be(0);
    world_close();
}

static void nobody(struct tk_arrival *arrival)
{
    (void)arrival;
}

/* ---- transfers between ranks 0 and 1, whose primary connection is number 1 ---- */

enum { segment_size = 1 << 20 };

static struct tk_op op;
static struct tk_rma rma;
static struct tk_rma_state posted;

static void open_pair(const char *qps, const char *stripe, unsigned devices)
{
    fake.device_count = (int)devices;
    unit_settings(qps, stripe, "GASNET_NETWORKDEPTH_PP=100", NULL);
    world_open(2, segment_size);
    for (int i = 0; i < segment_size; i++)
        ((char *)world_segment(0))[i] = (char)(i * 7 + i / 251);
}

static enum tk_status start(bool is_put, size_t nbytes)
{
    return world_start(&op, &rma, &posted, is_put, nbytes);
}

static void end(size_t nbytes)
{
    while (fake_settle() | tk_devices_reap())
        continue;
    assert_int_equal(posted.done, nbytes);
    assert_true(tk_op_done(&op));
    assert_memory_equal(world_segment(1), world_segment(0), nbytes);
    assert_int_equal(fake_sins(), 0);
}

static int sends(uint32_t conn)
{
    return fake_sends(conn_to(0, 1, conn)->qp);
}

/* One port of 10 Gb/s and one of 40, both of one device: no reads behind puts. */
static void faster_rails_get_more_pieces(void **state)
{
    fake_reset();
    fake.attr.phys_port_cnt = 2;
    fake.ports[0][1].attr.active_speed = 4;
    fake.ports[0][1].attr.active_width = 1;
    fake.ports[0][2].attr.active_speed = 4;
    fake.ports[0][2].attr.active_width = 2;
    open_pair("GASNET_IBV_PORTS=fake0:1,2", "GASNET_PUT_STRIPE_SZ=16", 1);
    assert_int_equal(start(true, segment_size), TK_OK);
    assert_in_range(sends(0), 12, 13);
    assert_int_equal(sends(0) + sends(1), 64);
    end(segment_size);
    world_close();
}

static void queue_pairs_of_a_rail_share_its_part(void **state)
{
    fake_reset();
    open_pair("GASNET_NUM_QPS=3", "GASNET_GET_STRIPE_SZ=16K", 2);
    memcpy(world_segment(1), world_segment(0), segment_size);
    assert_int_equal(start(false, segment_size), TK_OK);
    assert_in_range(sends(0), 15, 17);
    assert_in_range(sends(1), 31, 33);
    assert_int_equal(sends(0) + sends(1) + sends(2), 64);
    end(segment_size);
    world_close();
}

/* Without a stripe no transfer is cut, and large ones use the connections in turn. */
static void whole_transfers_take_turns(void **state)
{
    fake_reset();
    fake.attr.phys_port_cnt = 2;
    open_pair("GASNET_IBV_PORTS=fake0:1,2", NULL, 1);
    for (int i = 1; i <= 6; i++) {
        assert_int_equal(start(true, 100000), TK_OK);
        assert_int_equal(sends(0) + sends(1), i);
        assert_in_range(sends(0) - sends(1) + 1, 0, 2);
    }
    end(100000);
    assert_int_equal(start(true, 16384), TK_OK);
    assert_int_equal(start(false, 16384), TK_OK);
    assert_int_equal(sends(0), 0);
    assert_int_equal(sends(1), 2);
    end(16384);
    world_close();
}

/* A payload whose head follows stays on the primary connection. */
static void what_needs_order_is_not_striped(void **state)
{
    fake_reset();
    open_pair("GASNET_NUM_QPS=2", "GASNET_PUT_STRIPE_SZ=16", 2);
    tk_op_init(&op);
    posted = (struct tk_rma_state){.done = 0};
    rma = (struct tk_rma){.remote = (uintptr_t)world_segment(1),
                          .local = world_segment(0),
                          .nbytes = segment_size,
                          .op = &op,
                          .is_put = true,
                          .sources_only = true};
    assert_int_equal(tk_verbs_rma(tk_peer(1), &rma, &posted), TK_OK);
    assert_int_equal(sends(0), 0);
    assert_int_equal(sends(1), 1);
    end(segment_size);
    world_close();
}

static enum tk_status start_special(size_t nbytes, bool is_blocking, bool immediate)
{
    posted = (struct tk_rma_state){.done = 0};
    rma = (struct tk_rma){.remote = (uintptr_t)world_segment(1),
                          .local = world_segment(0),
                          .nbytes = nbytes,
                          .op = &op,
                          .is_put = true,
                          .is_blocking = is_blocking,
                          .immediate = immediate};
    return tk_verbs_rma(tk_peer(1), &rma, &posted);
}

/* Although other transfers are not cut: the head waits for the whole payload. */
static void the_payload_of_a_long_is_cut(void **state)
{
    fake_reset();
    fake.attr.phys_port_cnt = 2;
    open_pair("GASNET_IBV_PORTS=fake0:1,2", NULL, 1);
    assert_int_equal(tk_verbs_transport()->am.stripe_min, 128 << 10);
    tk_op_init(&op);
    assert_int_equal(start_special(segment_size, true, false), TK_OK);
    assert_int_equal(sends(0), 8);
    assert_int_equal(sends(1), 8);
    assert_int_equal(tk_counter_read(&op.pending), 16);
    end(segment_size);
    world_close();
}

static void with_one_link_no_head_waits(void **state)
{
    fake_reset();
    open_pair(NULL, NULL, 1);
    assert_int_equal(tk_verbs_transport()->am.stripe_min, 0);
    world_close();
}

enum { piece = 16384, depth = 8 };

/* Two rails with little space on each. */
static void open_small_pieces(void)
{
    fake_reset();
    fake.attr.phys_port_cnt = 2;
    unit_settings("GASNET_IBV_PORTS=fake0:1,2", "GASNET_PUT_STRIPE_SZ=16",
                  "GASNET_NETWORKDEPTH_PP=8", NULL);
    world_open(2, segment_size);
    tk_op_init(&op);
}

/* A refused call has taken no resource, and has not changed the turn of the rails. */
static void immediate_finds_space_on_all_rails_or_takes_none(void **state)
{
    open_small_pieces();
    assert_int_equal(start_special(12 * piece, false, true), TK_OK);
    assert_int_equal(sends(0), 6);
    assert_int_equal(sends(1), 6);
    uint64_t carried = conn_to(0, 1, 0)->carried + conn_to(0, 1, 1)->carried;
    assert_int_equal(start_special(6 * piece, false, true), TK_BUSY);
    assert_int_equal(posted.done, 0);
    assert_int_equal(tk_counter_read(&op.pending), 12);
    assert_int_equal(tk_counter_read(&conn_to(0, 1, 0)->space), depth - 6);
    assert_int_equal(tk_counter_read(&conn_to(0, 1, 1)->space), depth - 6);
    assert_int_equal(conn_to(0, 1, 0)->carried + conn_to(0, 1, 1)->carried, carried);
    assert_int_equal(start_special(4 * piece, false, true), TK_OK);
    end(4 * piece);
    world_close();
}

/* Only one rail has enough space for it; and a transfer that no queue can hold takes all idle
 * ones. */
static void immediate_passes_over_a_full_rail(void **state)
{
    open_small_pieces();
    tk_counter_set(&conn_to(0, 1, 0)->space, 0);
    assert_int_equal(start_special(5 * piece, false, true), TK_OK);
    assert_int_equal(sends(0), 0);
    assert_int_equal(sends(1), 5);
    end(5 * piece);
    tk_counter_set(&conn_to(0, 1, 0)->space, depth);
    assert_int_equal(start_special(20 * piece, false, true), TK_BUSY);
    assert_int_equal(posted.done, 16 * piece);
    world_close();
}

/* A piece takes a rail with space, and waits if no rail has any. */
static void a_full_rail_is_passed_over(void **state)
{
    fake_reset();
    unit_settings("GASNET_NUM_QPS=2", "GASNET_PUT_STRIPE_SZ=16", "GASNET_NETWORKDEPTH_PP=8", NULL);
    fake.device_count = 2;
    world_open(2, segment_size);
    assert_int_equal(start(true, segment_size), TK_BUSY);
    assert_int_equal(sends(0), 8);
    assert_int_equal(sends(1), 8);
    assert_int_equal(posted.done, 16 * 16384);
    enum tk_status status = TK_BUSY;
    while (status == TK_BUSY) {
        assert_true(fake_settle());
        tk_devices_reap();
        status = tk_verbs_rma(tk_peer(1), &rma, &posted);
    }
    end(segment_size);
    world_close();
}

/* ---- reads behind puts ---- */

static void a_put_over_devices_ends_with_a_read(void **state)
{
    fake_reset();
    open_pair("GASNET_NUM_QPS=2", "GASNET_PUT_STRIPE_SZ=16", 2);
    struct ibv_qp *qp = conn_to(0, 1, 1)->qp;
    assert_false(tk_verbs_put(tk_peer(1), &op, (uintptr_t)world_segment(1), "12345678", 8));
    assert_int_equal(start(true, 8), TK_OK);
    assert_int_equal(sends(0), 0);
    assert_int_equal(sends(1), 2);
    assert_int_equal(fake.last.opcode, IBV_WR_RDMA_READ);
    assert_true(fake_carry(qp) && fake_ack(qp));
    tk_devices_reap();
    assert_false(tk_op_done(&op)); /* the write alone is not enough */
    end(8);
    assert_int_equal(start(true, 65536), TK_OK);
    assert_int_equal(sends(0), 2 + 1);
    assert_int_equal(sends(1), 2 + 1);
    end(65536);
    assert_int_equal(start(false, 8), TK_OK);
    assert_int_equal(sends(0) + sends(1), 1);
    end(8);
    world_close();
}

/* The highest number has a bit too. */
static void a_primary_link_of_any_number_has_its_read(void **state)
{
    fake_reset();
    fake.device_count = 2;
    unit_settings("GASNET_NUM_QPS=64", NULL);
    world_open(2, segment_size);
    tk_peers.me = 0;
    tk_peer(1)->connection = conn_to(0, 1, 63);
    assert_int_equal(start(true, 8), TK_OK);
    assert_int_equal(sends(63), 2);
    end(8);
    world_close();
}

static void more_conns_than_there_are_bits_are_refused(void **state)
{
    fake_reset();
    unit_settings(NULL, NULL);
    tk_settings.num_qps = 65; /* as 65 ports would give */
    world_peers(0, 2);
    struct tk_peer_info *info = world_info(2);
    unit_listen();
    enum tk_status status = tk_verbs_open(&info, 0);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    assert_int_equal(unit_lines(said), 1);
    unit_assert_says(said, "65 queue pairs to each peer (1 ports, GASNET_NUM_QPS=65) are more than "
                           "64");
    tk_verbs_close();
    free(info);
    free(tk_peers.at);
    free(tk_peers.rail_to);
    free(tk_peers.keys);
}

static void reads_behind_puts_wait_for_space(void **state)
{
    fake_reset();
    fake.device_count = 2;
    unit_settings("GASNET_NUM_QPS=2", "GASNET_NETWORKDEPTH_PP=2", NULL);
    world_open(2, segment_size);
    assert_int_equal(start(true, 8), TK_OK);
    assert_int_equal(start(true, 8), TK_BUSY);
    while (fake_settle() | tk_devices_reap())
        continue;
    assert_int_equal(start(true, 8), TK_OK);
    end(8);
    world_close();
}

/* Each rank has one device, but neighbours have different ones. */
static void two_devices_of_a_host_are_enough_for_reads(void **state)
{
    fake_reset();
    open_pair(NULL, NULL, 2);
    assert_null(tk_verbs.fence_sink); /* hosts of their own */
    assert_int_equal(start(true, 8), TK_OK);
    assert_int_equal(sends(0), 1);
    end(8);
    world_close();
    world_hosts[1] = 0;
    open_pair(NULL, NULL, 2);
    assert_int_equal(start(true, 8), TK_OK);
    assert_int_equal(sends(0), 2);
    end(8);
    world_close();
    world_hosts[1] = 1;
}

/* Ranks 1 and 2 are of one host, rank 0 of another. */
static void only_puts_to_such_a_host_have_reads(void **state)
{
    fake_reset();
    fake.device_count = 2;
    unit_settings(NULL, NULL);
    world_hosts[2] = 1;
    world_open(3, segment_size);
    assert_true(conn_to(0, 1, 0)->is_fenced && conn_to(0, 2, 0)->is_fenced);
    assert_false(conn_to(1, 0, 0)->is_fenced);
    assert_int_equal(conn_to(0, 1, 0)->short_put_max, 0);
    assert_int_equal(start(true, 8), TK_OK);
    assert_int_equal(sends(0), 2);
    end(8);
    world_be(1);
    assert_true(conn_to(1, 0, 0)->short_put_max > 0);
    tk_op_init(&op);
    tk_counter_add(&op.pending, 1);
    assert_true(tk_verbs_put(tk_peer(0), &op, (uintptr_t)world_segment(0), world_segment(1), 8));
    assert_int_equal(fake_sends(conn_to(1, 0, 0)->qp), 1);
    world_be(0);
    world_close();
    world_hosts[2] = 2;
}

/* ---- agreement ---- */

static void put_info(uint32_t rank, const char *host, uint32_t rails, const char *unused)
{
    struct tk_peer_info wide = {.ranks = 5, .rails = rails, .conns = rails};
    wide.unused_size = (uint32_t)strlen(unused) + 1;
    snprintf(wide.host.name, sizeof(wide.host.name), "%s", host);
    struct tk_peer_info *info = calloc(1, tk_peer_info_size(&wide));
    *info = wide;
    for (uint32_t i = 0; i < rails; i++) {
        struct tk_port_address *a = tk_peer_info_rail(info, i);
        snprintf(a->device, sizeof(a->device), "mlx5_%u", i);
        a->port = 1;
        a->pkey = 0xffff;
        a->lid = 1;
    }
    strcpy(tk_peer_info_unused(info), unused);
    world_cards[rank] = info;
}

static const char *said_by(uint32_t rank, bool expected)
{
    world_peers(rank, 5);
    unit_listen();
    bool agree = tk_verbs_agree();
    const char *said = unit_heard();
    assert_int_equal(agree, expected);
    free(tk_peers.at);
    free(tk_peers.rail_to);
    free(tk_peers.keys);
    return said;
}

static void different_numbers_are_reported_in_one_table(void **state)
{
    for (uint32_t r = 0; r < 5; r++)
        put_info(r, r < 3 ? "a" : "b", 2, "");
    assert_string_equal(said_by(0, true), "");
    free(world_cards[2]);
    free(world_cards[4]);
    put_info(2, "a", 1, "mlx5_1:1 is down");
    put_info(4, "b", 2, "");
    assert_string_equal(said_by(1, false), "");
    const char *said = said_by(0, false);
    assert_int_equal(unit_lines(said), 4);
    unit_assert_says(said, "ranks 0-1 ");
    unit_assert_says(said, "2: mlx5_0:1+mlx5_1:1 (InfiniBand)\n");
    unit_assert_says(said, "rank 2 ");
    unit_assert_says(said, "1: mlx5_0:1 (InfiniBand); not mlx5_1:1 is down\n");
    unit_assert_says(said, "ranks 3-4 ");
    for (uint32_t r = 0; r < 5; r++)
        free(world_cards[r]);
}

static void so_are_different_kinds(void **state)
{
    for (uint32_t r = 0; r < 5; r++)
        put_info(r, r < 3 ? "a" : "b", 2, "");
    tk_peer_info_rail(world_cards[3], 1)->is_ethernet = 1;
    assert_string_equal(said_by(4, false), "");
    const char *said = said_by(0, false);
    assert_int_equal(unit_lines(said), 4);
    unit_assert_says(said,
                     "different kinds of ports to use, and InfiniBand does not reach Ethernet");
    unit_assert_says(said, "ranks 0-2 ");
    unit_assert_says(said, "2: mlx5_0:1+mlx5_1:1 (InfiniBand and Ethernet)\n");
    for (uint32_t r = 0; r < 5; r++)
        tk_peer_info_rail(world_cards[r], 1)->is_ethernet = 1;
    assert_string_equal(said_by(0, true), "");
    tk_peer_info_rail(world_cards[3], 1)->is_iwarp = 1;
    assert_string_equal(said_by(3, false), "");
    said = said_by(0, false);
    unit_assert_says(said, "different kinds of ports to use, and iWARP does not reach other");
    unit_assert_says(said, "2: mlx5_0:1+mlx5_1:1 (InfiniBand and iWARP)\n");
    assert_int_equal(tk_rails_in_common(), 1);
    for (uint32_t r = 0; r < 5; r++)
        tk_peer_info_rail(world_cards[r], 1)->is_iwarp = 1;
    assert_string_equal(said_by(0, true), "");
    assert_int_equal(tk_rails_in_common(), 0);
    for (uint32_t r = 0; r < 5; r++)
        free(world_cards[r]);
}

static void set_gid(uint32_t rank, int type, uint8_t last)
{
    struct tk_port_address *a = tk_peer_info_rail(world_cards[rank], 0);
    a->is_ethernet = a->needs_gid = a->gid_count = 1;
    a->gids[0] = (struct tk_gid){.type = (uint8_t)type, .network_bits = 64};
    a->gids[0].raw[0] = 0xfd;
    a->gids[0].raw[15] = last;
}

static const char *said_of_two(bool expected)
{
    if (!expected)
        assert_string_equal(said_by(3, false), "");
    const char *said = said_by(0, expected);
    assert_int_equal(unit_lines(said), !expected);
    return said;
}

static void ends_without_gids_of_one_kind_are_named(void **state)
{
    for (uint32_t r = 0; r < 5; r++) {
        put_info(r, r < 3 ? "a" : "b", 1, "");
        set_gid(r, IBV_GID_TYPE_ROCE_V2, (uint8_t)r);
    }
    said_of_two(true);
    set_gid(3, IBV_GID_TYPE_ROCE_V1, 3);
    unit_assert_says(said_of_two(false),
                     "mlx5_0:1 of rank 0 (a) has RoCE v2 fd00::, and mlx5_0:1 of rank 3 (b) has "
                     "RoCE v1 fd00::3: no GIDs of one kind");
    for (uint32_t r = 0; r < 5; r++)
        free(world_cards[r]);
}

static void set_pkey(uint32_t rank, uint16_t pkey)
{
    tk_peer_info_rail(world_cards[rank], 1)->pkey = pkey;
}

static void ends_of_partitions_that_do_not_meet_are_named(void **state)
{
    for (uint32_t r = 0; r < 5; r++) {
        put_info(r, r < 3 ? "a" : "b", 2, "");
        set_pkey(r, 0x8010);
    }
    set_pkey(4, 0x0010); /* one limited member reaches all full ones */
    said_of_two(true);
    set_pkey(1, 0x0010);
    unit_assert_says(said_of_two(false),
                     "mlx5_1:1 of rank 1 (a) and mlx5_1:1 of rank 4 (b) are both limited members "
                     "of partition 0x0010, which do not reach each other");
    set_pkey(1, 0x8010);
    set_pkey(2, 0x8020);
    unit_assert_says(said_of_two(false), "mlx5_1:1 of rank 0 (a) is in partition 0x0010 and "
                                         "mlx5_1:1 of rank 2 (a) in 0x0020");
    for (uint32_t r = 0; r < 5; r++)
        free(world_cards[r]);
}

/* Those that share memory need not reach each other by the network. */
static void neighbours_may_be_apart(void **state)
{
    uint32_t nbrhd_of[] = {0, 0, 0, 1, 1};
    tk_topology.nbrhd_of = nbrhd_of;
    for (uint32_t r = 0; r < 5; r++) {
        put_info(r, r < 3 ? "a" : "b", 2, "");
        set_pkey(r, r < 3 ? 0x0010 : 0x8010);
    }
    said_of_two(true);
    set_pkey(3, 0x0010);
    unit_assert_says(said_of_two(false), "rank 0 (a) and mlx5_1:1 of rank 3 (b) are both limited");
    tk_topology.nbrhd_of = NULL;
    for (uint32_t r = 0; r < 5; r++)
        free(world_cards[r]);
}

static int set_up(void **state)
{
    tk_deliver = nobody;
    return 0;
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(conns_of_one_number_meet_over_rails_of_one_number),
    cmocka_unit_test(one_link_of_a_pair_has_the_messages),
    cmocka_unit_test(each_device_knows_the_segment),
    cmocka_unit_test(ports_of_one_device_share_it),
    cmocka_unit_test_setup(messages_come_over_every_rail, set_up),
    cmocka_unit_test(faster_rails_get_more_pieces),
    cmocka_unit_test(queue_pairs_of_a_rail_share_its_part),
    cmocka_unit_test(whole_transfers_take_turns),
    cmocka_unit_test(what_needs_order_is_not_striped),
    cmocka_unit_test(the_payload_of_a_long_is_cut),
    cmocka_unit_test(with_one_link_no_head_waits),
    cmocka_unit_test(immediate_finds_space_on_all_rails_or_takes_none),
    cmocka_unit_test(immediate_passes_over_a_full_rail),
    cmocka_unit_test(a_full_rail_is_passed_over),
    cmocka_unit_test(a_put_over_devices_ends_with_a_read),
    cmocka_unit_test(a_primary_link_of_any_number_has_its_read),
    cmocka_unit_test(more_conns_than_there_are_bits_are_refused),
    cmocka_unit_test(reads_behind_puts_wait_for_space),
    cmocka_unit_test(two_devices_of_a_host_are_enough_for_reads),
    cmocka_unit_test(only_puts_to_such_a_host_have_reads),
    cmocka_unit_test(different_numbers_are_reported_in_one_table),
    cmocka_unit_test(so_are_different_kinds),
    cmocka_unit_test(ends_without_gids_of_one_kind_are_named),
    cmocka_unit_test(ends_of_partitions_that_do_not_meet_are_named),
    cmocka_unit_test(neighbours_may_be_apart),
};

UNIT_MAIN(tests)
