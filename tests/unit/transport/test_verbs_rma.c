/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Puts and gets over the fake device: pieces, the path of each piece, when the source is free, and
 * that an operation is complete exactly when all of its bytes have arrived. */
#include "config.h"

#include "base/bits.h"
#include "fake_world.h"
#include "firehose/firehose.h"
#include "op/op.h"
#include "settings/settings.h"
#include "stats/stats.h"
#include "stats/write.h"
#include "transport/verbs/data/poll.h"
#include "transport/verbs/data/send.h"
#include "transport/verbs/data/tx.h"
#include "transport/verbs/verbs.h"
#include "unit.h"

enum { segment_size = 1 << 20 };

static struct tk_op op;
static struct tk_rma rma;
static struct tk_rma_state posted;
static char outside[segment_size];

static void open_world(const char *setting)
{
    unit_settings(setting, NULL);
    world_open(2, segment_size);
    for (int i = 0; i < segment_size; i++)
        outside[i] = (char)(i * 31 + i / 251);
    memcpy(tk_segment_area.base, outside, segment_size);
}

static struct tk_rma transfer(bool is_put, void *local, size_t offset, size_t nbytes)
{
    tk_op_init(&op);
    posted = (struct tk_rma_state){.done = 0};
    return (struct tk_rma){.remote = (uintptr_t)world_segment(1) + offset,
                           .local = local,
                           .nbytes = nbytes,
                           .op = &op,
                           .sources = &op.sources,
                           .is_put = is_put};
}

static enum tk_status start(void)
{
    return tk_verbs_rma(tk_peer(1), &rma, &posted);
}

/* As tk_wait_rma() does, with the network moving between tries. */
static void run(void)
{
    while (posted.done < rma.nbytes && start() == TK_BUSY) {
        assert_true(fake_settle());
        tk_verbs_reap();
    }
    fake_settle();
    while (tk_verbs_reap())
        continue;
    assert_true(tk_op_done(&op));
    assert_true(tk_op_source_free(&op));
    assert_int_equal(posted.done, rma.nbytes);
    assert_int_equal(fake_sins(), 0);
}

static void assert_put(void *local, size_t offset, size_t nbytes, unsigned pieces)
{
    char *target = world_segment(1);
    memset(target, 0, segment_size);
    unsigned before = fake.posted;
    rma = transfer(true, local, offset, nbytes);
    run();
    assert_memory_equal(target + offset, local, nbytes);
    assert_true(offset == 0 || target[offset - 1] == 0);
    assert_true(offset + nbytes == segment_size || target[offset + nbytes] == 0);
    assert_int_equal(fake.posted - before, pieces);
}

static void bytes_arrive_from_anywhere_at_any_size(void **state)
{
    static const size_t sizes[] = {1, 7, 8, 71, 72, 73, 4096, 65535, 65536, 65537, 200000, 1000000};
    fake_reset();
    open_world(NULL);
    char *inside = tk_segment_area.base;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        unsigned bounced = (unsigned)((sizes[i] + tk_buffer_size - 1) / tk_buffer_size);
        assert_put(inside + 3, 5, sizes[i], 1);
        assert_put(outside + 3, 5, sizes[i], bounced);
    }
    world_close();
}

static void gets_bring_them_back(void **state)
{
    static const size_t sizes[] = {1, 8, 73, 65536, 65537, 1000000};
    static char copy[segment_size];
    fake_reset();
    open_world(NULL);
    memcpy(world_segment(1), outside, segment_size);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        memset(copy, 0, sizeof(copy));
        rma = transfer(false, copy + 1, 9, sizes[i]);
        run();
        assert_memory_equal(copy + 1, outside + 9, sizes[i]);
        assert_int_equal(copy[sizes[i] + 1], 0);
        memset(tk_segment_area.base, 0, segment_size);
        rma = transfer(false, (char *)tk_segment_area.base + 1, 9, sizes[i]);
        run();
        assert_memory_equal((char *)tk_segment_area.base + 1, outside + 9, sizes[i]);
    }
    world_close();
}

static void what_is_small_travels_in_its_request(void **state)
{
    char bytes[] = "quick";
    fake_reset();
    open_world(NULL);
    rma = transfer(true, bytes, 0, 5);
    assert_int_equal(start(), TK_OK);
    assert_true(fake.last.send_flags & IBV_SEND_INLINE);
    assert_true(tk_op_source_free(&op)); /* the source is free at once ... */
    assert_false(tk_op_done(&op));       /* ... but the bytes are not there yet */
    memcpy(bytes, "wrong", 5);
    run();
    assert_memory_equal(world_segment(1), "quick", 5);
    world_close();
}

static void registered_memory_goes_from_where_it_lies(void **state)
{
    char *inside;
    fake_reset();
    open_world(NULL);
    inside = tk_segment_area.base;
    rma = transfer(true, inside, 0, 1000);
    assert_int_equal(start(), TK_OK);
    assert_int_equal(fake.last_sge[0].addr, (uintptr_t)inside);
    assert_false(tk_op_source_free(&op));
    run();
    world_close();
}

static void other_memory_is_free_at_once(void **state)
{
    fake_reset();
    open_world(NULL);
    rma = transfer(true, outside, 0, 1000);
    assert_int_equal(start(), TK_OK);
    assert_true(tk_op_source_free(&op));
    assert_false(tk_op_done(&op));
    char first = outside[0];
    outside[0]++;
    run();
    assert_int_equal(*(char *)world_segment(1), first);
    world_close();
}

/* GASNET_NONBULKPUT_BOUNCE_LIMIT: for a large source waiting is better than copying. */
static void a_source_wanted_back_is_copied_up_to_the_limit(void **state)
{
    fake_reset();
    open_world("GASNET_NONBULKPUT_BOUNCE_LIMIT=1000");
    rma = transfer(true, tk_segment_area.base, 0, 1000);
    rma.copy_source = true;
    assert_int_equal(start(), TK_OK);
    assert_true(tk_op_source_free(&op));
    run();
    rma = transfer(true, tk_segment_area.base, 0, 1001);
    rma.copy_source = true;
    assert_int_equal(start(), TK_OK);
    assert_false(tk_op_source_free(&op));
    run();
    world_close();
}

/* For the payload of a Long: its head follows on the same queue pair, so only the source counts. */
static void with_sources_only_pieces_without_source_are_not_counted(void **state)
{
    fake_reset();
    open_world(NULL);
    rma = transfer(true, outside, 0, 100000);
    rma.sources_only = true;
    assert_int_equal(start(), TK_OK);
    assert_true(tk_op_done(&op));
    run();
    rma = transfer(true, tk_segment_area.base, 0, 100000);
    rma.sources_only = true;
    assert_int_equal(start(), TK_OK);
    assert_false(tk_op_done(&op));
    run();
    world_close();
}

static void no_piece_is_larger_than_the_ports_message(void **state)
{
    fake_reset();
    fake.ports[0][1].attr.max_msg_sz = 10000;
    open_world(NULL);
    assert_put(tk_segment_area.base, 0, 30000, 3);
    assert_put(tk_segment_area.base, 0, 30001, 4);
    assert_put(outside, 0, 10000, 1);
    assert_put(outside, 0, 10001, 2);
    world_close();
}

/* Half of it is behind the segment's end, so it is not registered as a whole. */
static void memory_that_straddles_the_segments_end_is_bounced(void **state)
{
    fake_reset();
    open_world(NULL);
    struct tk_area whole = tk_segment_area;
    tk_segment_area.size = 4096; /* the test's memory is larger */
    rma = transfer(true, (char *)whole.base + 4000, 0, 200);
    assert_int_equal(start(), TK_OK);
    assert_int_not_equal(fake.last_sge[0].addr, (uintptr_t)whole.base + 4000);
    run();
    assert_memory_equal(world_segment(1), (char *)whole.base + 4000, 200);
    tk_segment_area = whole;
    world_close();
}

static void a_full_queue_says_busy_and_goes_on_where_it_stopped(void **state)
{
    fake_reset();
    open_world("GASNET_NETWORKDEPTH_PP=2");
    rma = transfer(true, outside, 0, 5 * tk_buffer_size);
    assert_int_equal(start(), TK_BUSY);
    assert_int_equal(posted.done, 2 * tk_buffer_size);
    assert_int_equal(tk_counter_read(&op.pending), 2);
    assert_int_equal(start(), TK_BUSY);
    assert_int_equal(posted.done, 2 * tk_buffer_size);
    run();
    assert_memory_equal(world_segment(1), outside, 5 * tk_buffer_size);
    world_close();
}

/* All or nothing: a refusal gives back what it had taken already. */
static void immediate_posts_all_pieces_or_none(void **state)
{
    fake_reset();
    open_world("GASNET_NETWORKDEPTH_PP=4");
    struct tk_conn *conn = world_conn(0, 1);
    struct tk_rma first = rma = transfer(true, outside, 0, 2 * tk_buffer_size);
    assert_int_equal(start(), TK_OK);
    rma = first;
    posted = (struct tk_rma_state){.done = 0};
    rma.nbytes = 3 * tk_buffer_size;
    rma.immediate = true;
    assert_int_equal(start(), TK_BUSY);
    assert_int_equal(posted.done, 0);
    assert_int_equal(tk_counter_read(&op.pending), 2);
    assert_int_equal(tk_counter_read(&conn->space), 2);
    rma.nbytes = 2 * tk_buffer_size - 7;
    assert_int_equal(start(), TK_OK);
    assert_int_equal(tk_counter_read(&op.pending), 4);
    run();
    assert_int_equal(tk_counter_read(&conn->space), 4);
    world_close();
}

/* Bounce buffers count as space, too. */
static void immediate_is_refused_for_lack_of_bounce_buffers(void **state)
{
    fake_reset();
    open_world("GASNET_BBUF_COUNT=2");
    rma = transfer(true, outside, 0, tk_buffer_size);
    assert_int_equal(start(), TK_OK);
    rma = transfer(true, outside, 0, 2 * tk_buffer_size);
    rma.immediate = true;
    assert_int_equal(start(), TK_BUSY);
    assert_int_equal(posted.done, 0);
    fake_settle();
    while (tk_verbs_reap())
        continue;
    tk_counter_set(&op.pending, 0); /* it counts the second transfer's pieces now */
    assert_int_equal(start(), TK_OK);
    run();
    assert_memory_equal(world_segment(1), outside, 2 * tk_buffer_size);
    world_close();
}

/* Otherwise it could never be done. */
static void immediate_takes_an_idle_queue_for_what_none_could_hold(void **state)
{
    fake_reset();
    open_world("GASNET_NETWORKDEPTH_PP=2");
    rma = transfer(true, outside, 0, 5 * tk_buffer_size);
    rma.immediate = true;
    struct tk_tx *other = tk_tx_take(world_conn(0, 1), false);
    assert_int_equal(start(), TK_BUSY);
    assert_int_equal(posted.done, 0);
    other->covers = 0;
    tk_tx_give(other);
    assert_int_equal(start(), TK_BUSY);
    assert_int_equal(posted.done, 2 * tk_buffer_size);
    run();
    assert_memory_equal(world_segment(1), outside, 5 * tk_buffer_size);
    world_close();
}

/* It has no completion, so its slot comes back only with other work. */
static void a_quiet_message_is_no_reason_to_refuse_for_ever(void **state)
{
    fake_reset();
    open_world("GASNET_NETWORKDEPTH_PP=4");
    struct tk_conn *conn = world_conn(0, 1);
    assert_true(tk_unsignaled_take(conn));
    rma = transfer(true, outside, 0, 5 * tk_buffer_size);
    rma.immediate = true;
    assert_int_equal(start(), TK_BUSY);
    assert_int_equal(posted.done, 3 * tk_buffer_size);
    run();
    assert_int_equal(tk_counter_read(&conn->space), 4);
    world_close();
}

static void without_a_bounce_buffer_nothing_is_posted(void **state)
{
    fake_reset();
    open_world("GASNET_BBUF_COUNT=1");
    rma = transfer(true, outside, 0, 2 * tk_buffer_size);
    assert_int_equal(start(), TK_BUSY);
    assert_int_equal(posted.done, tk_buffer_size);
    assert_int_equal(tk_counter_read(&world_conn(0, 1)->space), tk_verbs.depth_pp - 1);
    run();
    assert_memory_equal(world_segment(1), outside, 2 * tk_buffer_size);
    world_close();
}

/* The buffer of one piece is free for the next: on a device that completes at once a transfer of
 * any length uses one. */
static void a_prompt_device_needs_one_bounce_buffer(void **state)
{
    static char copy[segment_size];
    for (int is_put = 0; is_put < 2; is_put++) {
        fake_reset();
        fake.is_prompt = true;
        open_world("GASNET_BBUF_COUNT=1");
        memset(copy, 0, sizeof(copy));
        memcpy(world_segment(1), is_put ? copy : outside, segment_size);
        rma = transfer(is_put, is_put ? outside : copy, 0, segment_size);
        assert_int_equal(start(), TK_OK);
        run();
        assert_memory_equal(is_put ? world_segment(1) : copy, outside, segment_size);
        world_close();
    }
}

static void a_get_is_not_done_before_its_bytes_are_in_place(void **state)
{
    char here[100] = "";
    fake_reset();
    open_world(NULL);
    memcpy(world_segment(1), outside, 100);
    rma = transfer(false, here, 0, 100);
    assert_int_equal(start(), TK_OK);
    fake_carry(world_conn(0, 1)->qp);
    tk_verbs_reap();
    assert_false(tk_op_done(&op));
    run();
    assert_memory_equal(here, outside, 100);
    world_close();
}

/* ---- the short way ---- */

static void settle(void)
{
    fake_settle();
    while (tk_verbs_reap())
        continue;
}

static bool short_put(const char *local, size_t nbytes)
{
    tk_counter_set(&op.pending, 1);
    return tk_verbs_put(tk_peer(1), &op, (uintptr_t)world_segment(1), local, nbytes);
}

static bool put_from(const char *local, size_t nbytes)
{
    tk_counter_set(&op.pending, 1);
    return tk_verbs_put_from(tk_peer(1), &op, (uintptr_t)world_segment(1), local, nbytes);
}

static bool short_get(char *local, size_t nbytes)
{
    tk_counter_set(&op.pending, 1);
    return tk_verbs_get(tk_peer(1), &op, (uintptr_t)world_segment(1), local, nbytes);
}

static void the_fast_path_counts_only_its_operation(void **state)
{
    fake_reset();
    open_world(NULL);
    char *inside = tk_segment_area.base;
    assert_true(short_put(outside + 1, 72));
    assert_false(tk_op_done(&op));
    settle();
    assert_true(tk_op_done(&op));
    assert_memory_equal(world_segment(1), outside + 1, 72);
    assert_true(put_from(inside + 7, 5000));
    assert_false(tk_op_done(&op));
    settle();
    assert_true(tk_op_done(&op));
    assert_memory_equal(world_segment(1), inside + 7, 5000);
    memcpy(world_segment(1), "a new word", 10);
    assert_true(short_get(inside, segment_size));
    settle();
    assert_true(tk_op_done(&op));
    assert_memory_equal(inside, "a new word", 10);
    assert_int_equal(fake_sins(), 0);
    world_close();
}

static void assert_refused(bool taken)
{
    assert_false(taken);
    assert_int_equal(tk_counter_read(&op.pending), 1);
}

static uint64_t put_bytes(void)
{
    static struct tk_stats sum;
    tk_stats_sum(&sum);
    return sum.counts[tk_counter_put_bytes_network];
}

/* ---- Longs: the payload and the head behind it in one chain */

static struct {
    struct tk_message_head head;
    struct tk_long_head place;
    int32_t args[tk_max_args];
} front;

static bool send_long(enum tk_message_kind kind, unsigned nargs, const void *payload, size_t nbytes)
{
    front.head = (struct tk_message_head){
        .kind = (uint8_t)kind, .category = TK_LONG, .handler = 200, .nargs = (uint8_t)nargs};
    struct tk_outgoing m = {.head = &front.head,
                            .head_size = tk_message_front(true, nargs),
                            .payload = payload,
                            .nbytes = nbytes,
                            .source = &op};
    tk_counter_set(&op.pending, 1);
    return tk_verbs_send_long(tk_peer(1), &m, (uintptr_t)world_segment(1));
}

/* The head is not there before the payload. Only the payload has a completion, which frees the
 * source; it is no put of the program. */
static void a_long_is_one_chain_with_one_completion(void **state)
{
    fake_reset();
    open_world(NULL);
    char *inside = tk_segment_area.base;
    struct tk_conn *conn = tk_primary(tk_peer(1));
    struct ibv_qp *theirs = world_conn(1, 0)->qp;
    int receives = fake_receives(theirs), space = tk_conn_space(conn);
    unsigned before = fake.posted, calls = fake.send_calls;
    uint64_t bytes = put_bytes();
    assert_true(short_put(outside, 8)); /* a work request that completes before them */
    conn->credits_to_return = 2;
    assert_true(send_long(TK_REQUEST, 0, inside + 7, 5000));
    assert_int_equal(front.head.credits, 2);
    assert_int_equal(conn->credits_to_return, 0);
    assert_int_equal(fake.posted, before + 3);
    assert_int_equal(fake.send_calls, calls + 2);
    assert_int_equal(tk_counter_read(&op.pending), 2);
    assert_int_equal(conn->credits, tk_verbs.credits_pp - 1);
    assert_true(fake_carry(conn->qp) && fake_carry(conn->qp));
    assert_memory_equal(world_segment(1), inside + 7, 5000);
    assert_int_equal(fake_receives(theirs), receives);
    assert_true(fake_carry(conn->qp));
    assert_int_equal(fake_receives(theirs), receives - 1);
    settle();
    assert_int_equal(tk_counter_read(&op.pending), 0);
    assert_int_equal(tk_counter_read(&tk_verbs.lanes->out), 0);
    assert_int_equal(conn->unsignaled, 1);
    assert_int_equal(tk_conn_space(conn), space - 1);
    assert_true(send_long(TK_REQUEST, 0, inside, 5000)); /* its completion covers the other head */
    settle();
    assert_int_equal(tk_conn_space(conn), space - 1);
    assert_int_equal(put_bytes(), bytes + 8);
    assert_int_equal(fake_sins(), 0);
    world_close();
}

static void assert_long_refused(bool sent, int space, int credits)
{
    struct tk_conn *conn = tk_primary(tk_peer(1));
    assert_refused(sent);
    assert_int_equal(tk_conn_space(conn), space);
    assert_int_equal(conn->credits, credits);
}

/* Refused: an empty payload, unregistered memory, a connection that needs reads behind writes, a
 * head that is too large to be inline, a request without a credit, and one without a free work
 * request or two slots. */
static void a_long_that_is_refused_leaves_all_as_it_was(void **state)
{
    fake_reset();
    unit_settings("GASNET_AM_CREDITS_PP=1", "GASNET_NETWORKDEPTH_PP=5", NULL);
    world_open(2, segment_size);
    char *inside = tk_segment_area.base;
    struct tk_conn *conn = tk_primary(tk_peer(1));
    unsigned before = fake.posted;
    assert_long_refused(send_long(TK_REQUEST, 0, inside, 0), 5, 1);
    assert_long_refused(send_long(TK_REQUEST, 0, outside, 100), 5, 1);
    conn->is_fenced = true;
    assert_long_refused(send_long(TK_REQUEST, 0, inside, 100), 5, 1);
    conn->is_fenced = false;
    assert_long_refused(send_long(TK_REQUEST, tk_max_args, inside, 100), 5, 1);
    struct tk_pool_item *txs = tk_verbs.lanes->free;
    tk_verbs.lanes->free = NULL;
    assert_long_refused(send_long(TK_REQUEST, 0, inside, 100), 5, 1);
    tk_verbs.lanes->free = txs;
    assert_int_equal(fake.posted, before);
    assert_true(send_long(TK_REQUEST, 0, inside, 100));
    assert_long_refused(send_long(TK_REQUEST, 0, inside, 100), 3, 0);
    assert_false(tk_lacks_credit);
    assert_true(send_long(TK_REPLY, 0, inside, 100));
    assert_long_refused(send_long(TK_REPLY, 0, inside, 100), 1, 0);
    assert_int_equal(fake.posted, before + 4);
    assert_int_equal(fake_sins(), 0);
    world_close();
}

/* Refused: an empty put, one that is too large to be inline, unregistered memory, and a full
 * queue. */
static void of_what_it_refuses_nothing_is_done(void **state)
{
    fake_reset();
    open_world("GASNET_NETWORKDEPTH_PP=2");
    char *inside = tk_segment_area.base;
    unsigned before = fake.posted;
    assert_refused(short_put(outside, 0));
    assert_refused(short_put(outside, 73));
    assert_refused(put_from(inside, 0));
    assert_refused(put_from(outside, 100));
    assert_refused(put_from(inside + segment_size - 99, 100));
    tk_primary(tk_peer(1))->is_fenced = true; /* a read has to follow */
    assert_refused(put_from(inside, 100));
    tk_primary(tk_peer(1))->is_fenced = false;
    assert_refused(short_get(inside, 0));
    assert_refused(short_get(outside, 8));
    assert_refused(short_get(inside + segment_size - 8, 9));
    assert_int_equal(fake.posted, before);
    assert_true(short_put(outside, 8));
    assert_true(short_put(outside, 8));
    assert_refused(short_put(outside, 8));
    assert_refused(put_from(inside, 100));
    assert_refused(short_get(inside, 8));
    assert_int_equal(fake.posted, before + 2);
    settle();
    assert_true(short_get(inside, 8));
    settle();
    world_close();
}

/* ---- the same from memory outside of the segment that was registered before */

enum { region = 32 << 10, granule = 128 << 10 };

static char *open_world_with_cache(const char *setting)
{
    fake.attr.max_mr = 1000;
    unit_settings("GASNET_FIREHOSE_LEAST=4096", "GASNET_FIREHOSE_MONITOR=none", setting, NULL);
    world_open(2, segment_size);
    for (int i = 0; i < segment_size; i++)
        outside[i] = (char)(i * 31 + i / 251);
    assert_int_equal(tk_verbs_open_firehose(2, true), TK_OK);
    return (char *)tk_align_up((uintptr_t)outside, granule);
}

/* With no reference left behind, each registration goes when the cache is closed. */
static void close_world_with_cache(int mrs)
{
    tk_firehose_close();
    assert_int_equal(fake.mrs, mrs);
    assert_int_equal(fake_sins(), 0);
    world_close();
}

static void assert_put_at_once(const char *local, size_t nbytes)
{
    memset(world_segment(1), 0, nbytes);
    assert_true(put_from(local, nbytes));
    assert_false(tk_op_done(&op));
    settle();
    assert_true(tk_op_done(&op));
    assert_memory_equal(world_segment(1), local, nbytes);
}

static void what_was_registered_before_goes_the_short_way(void **state)
{
    fake_reset();
    char *first = open_world_with_cache(NULL), *second = first + granule;
    int mrs = fake.mrs;
    assert_refused(put_from(first, region));
    assert_put(first, 0, region, 1);
    assert_put(second, 0, region, 1);
    assert_int_equal(fake.mrs, mrs + 2);
    for (int i = 0; i < 3; i++) {
        assert_put_at_once(first, region);
        assert_put_at_once(first + 99, region - 100);
        assert_put_at_once(second + region - 4096, 4096);
    }
    assert_int_equal(tk_firehose_count().hits, 9);
    assert_int_equal(fake.mrs, mrs + 2);
    close_world_with_cache(mrs);
}

/* Refused: memory that is not in one region, memory that is too small to be registered, and a full
 * queue. */
static void what_a_region_does_not_hold_is_refused(void **state)
{
    fake_reset();
    char *first = open_world_with_cache("GASNET_NETWORKDEPTH_PP=2");
    int mrs = fake.mrs;
    assert_put(first, 0, region, 1);
    unsigned before = fake.posted;
    assert_refused(put_from(first, 4095));
    assert_refused(put_from(first - 1, 4096));
    assert_refused(put_from(first + region - 4096, 4097));
    assert_refused(put_from(first + granule, 4096));
    assert_int_equal(fake.posted, before);
    assert_true(put_from(first, region));
    assert_true(put_from(first, region));
    assert_refused(put_from(first, region));
    assert_int_equal(fake.posted, before + 2);
    settle();
    close_world_with_cache(mrs);
}

/* The cache has space for one region, so the next region has to wait for the put. */
static void a_region_is_held_until_its_put_is_done(void **state)
{
    fake_reset();
    char *first = open_world_with_cache("GASNET_FIREHOSE_MAXVICTIM_R=1");
    int mrs = fake.mrs;
    assert_put(first, 0, region, 1);
    assert_put_at_once(first, region);
    assert_true(put_from(first, region));
    assert_null(tk_firehose_get(first + granule, region));
    assert_int_equal(fake.mrs, mrs + 1);
    settle();
    struct tk_pinned *other = tk_firehose_get(first + granule, region);
    assert_non_null(other);
    tk_firehose_put(other);
    assert_refused(put_from(first, region));
    assert_int_equal(fake.mrs, mrs + 1);
    close_world_with_cache(mrs);
}

/* ---- memory of accelerators, which no CPU may touch; here it is memory outside of the segment
 * ----
 */

static struct {
    uint64_t offset, iova;
    size_t length;
    int fd, access;
    unsigned calls;
} dmabuf;

struct ibv_mr *tk_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova,
                                int fd, int access)
{
    dmabuf.offset = offset;
    dmabuf.iova = iova;
    dmabuf.length = length;
    dmabuf.fd = fd;
    dmabuf.access = access;
    dmabuf.calls++;
    return ibv_reg_mr(pd, (void *)(uintptr_t)iova, length, access);
}

static struct tk_region accelerator;

static void open_accelerator(int fd)
{
    accelerator = (struct tk_region){.base = outside,
                                     .size = sizeof(outside),
                                     .is_device = true,
                                     .dmabuf_fd = fd,
                                     .dmabuf_offset = 4711};
    assert_int_equal(tk_verbs_register(&accelerator), TK_OK);
}

static void transfer_on_device(bool is_put, size_t nbytes)
{
    rma = transfer(is_put, outside + 3, 0, nbytes);
    rma.is_pair = rma.is_on_device = true;
    rma.home = &accelerator;
    rma.remote_keys = tk_peers.keys[1];
}

static void accelerators_are_registered_by_dma_buf_or_address(void **state)
{
    fake_reset();
    open_world(NULL);
    int mrs = fake.mrs;
    open_accelerator(77);
    assert_int_equal(dmabuf.calls, 1);
    assert_int_equal(dmabuf.fd, 77);
    assert_int_equal(dmabuf.offset, 4711);
    assert_int_equal(dmabuf.iova, (uintptr_t)outside);
    assert_int_equal(dmabuf.length, sizeof(outside));
    assert_int_equal(dmabuf.access, IBV_ACCESS_LOCAL_WRITE | tk_verbs.remote_access);
    tk_verbs_unregister(&accelerator);
    open_accelerator(-1);
    assert_int_equal(dmabuf.calls, 1);
    assert_int_equal(fake.mrs, mrs + 1);
    tk_verbs_unregister(&accelerator);
    assert_int_equal(fake.mrs, mrs);
    world_close();
}

/* A put of 8 bytes would be inline, one whose source is wanted back would be copied. */
static void accelerators_memory_goes_from_where_it_lies(void **state)
{
    const size_t sizes[] = {1, 8, 72, 1000, 65536};
    fake_reset();
    open_world(NULL);
    open_accelerator(-1);
    for (size_t i = 0; i < 3 * sizeof(sizes) / sizeof(sizes[0]); i++) {
        transfer_on_device(true, sizes[i / 3]);
        rma.copy_source = i % 3 == 1;
        rma.is_lent = i % 3 == 2;
        assert_int_equal(start(), TK_OK);
        assert_int_equal(fake.last_sge[0].addr, (uintptr_t)outside + 3);
        assert_int_equal(fake.last_sge[0].lkey, accelerator.local_keys[0]);
        assert_false(fake.last.send_flags & IBV_SEND_INLINE);
        assert_false(tk_op_source_free(&op));
        run();
    }
    transfer_on_device(false, 1000);
    assert_int_equal(start(), TK_OK);
    assert_int_equal(fake.last_sge[0].addr, (uintptr_t)outside + 3);
    run();
    tk_verbs_unregister(&accelerator);
    world_close();
}

static void a_put_that_is_flushed_has_a_read_behind_it(void **state)
{
    fake_reset();
    open_world(NULL);
    open_accelerator(-1);
    for (int is_here = 0; is_here < 2; is_here++) {
        unsigned before = fake.posted;
        transfer_on_device(true, 5000);
        rma.is_on_device = is_here;
        rma.wants_flush = true;
        assert_int_equal(start(), TK_OK);
        assert_int_equal(fake.posted, before + 2);
        assert_int_equal(fake.last.opcode, IBV_WR_RDMA_READ);
        assert_int_equal(fake.last.wr.rdma.remote_addr, rma.remote);
        run();
    }
    tk_verbs_unregister(&accelerator);
    world_close();
}

static void not_registered(void *arg)
{
    (void)arg;
    rma.nbytes = sizeof(outside) + 1;
    tk_verbs_rma(tk_peer(1), &rma, &posted);
}

static void what_is_not_registered_is_refused(void **state)
{
    fake_reset();
    open_world(NULL);
    open_accelerator(-1);
    transfer_on_device(true, 8);
    unit_assert_panic(not_registered, NULL, "is not registered with the HCA");
    tk_verbs_unregister(&accelerator);
    world_close();
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(bytes_arrive_from_anywhere_at_any_size),
    cmocka_unit_test(gets_bring_them_back),
    cmocka_unit_test(what_is_small_travels_in_its_request),
    cmocka_unit_test(registered_memory_goes_from_where_it_lies),
    cmocka_unit_test(other_memory_is_free_at_once),
    cmocka_unit_test(a_source_wanted_back_is_copied_up_to_the_limit),
    cmocka_unit_test(with_sources_only_pieces_without_source_are_not_counted),
    cmocka_unit_test(no_piece_is_larger_than_the_ports_message),
    cmocka_unit_test(memory_that_straddles_the_segments_end_is_bounced),
    cmocka_unit_test(a_full_queue_says_busy_and_goes_on_where_it_stopped),
    cmocka_unit_test(immediate_posts_all_pieces_or_none),
    cmocka_unit_test(immediate_is_refused_for_lack_of_bounce_buffers),
    cmocka_unit_test(immediate_takes_an_idle_queue_for_what_none_could_hold),
    cmocka_unit_test(a_quiet_message_is_no_reason_to_refuse_for_ever),
    cmocka_unit_test(without_a_bounce_buffer_nothing_is_posted),
    cmocka_unit_test(a_prompt_device_needs_one_bounce_buffer),
    cmocka_unit_test(a_get_is_not_done_before_its_bytes_are_in_place),
    cmocka_unit_test(the_fast_path_counts_only_its_operation),
    cmocka_unit_test(a_long_is_one_chain_with_one_completion),
    cmocka_unit_test(a_long_that_is_refused_leaves_all_as_it_was),
    cmocka_unit_test(of_what_it_refuses_nothing_is_done),
    cmocka_unit_test(what_was_registered_before_goes_the_short_way),
    cmocka_unit_test(what_a_region_does_not_hold_is_refused),
    cmocka_unit_test(a_region_is_held_until_its_put_is_done),
    cmocka_unit_test(accelerators_are_registered_by_dma_buf_or_address),
    cmocka_unit_test(accelerators_memory_goes_from_where_it_lies),
    cmocka_unit_test(a_put_that_is_flushed_has_a_read_behind_it),
    cmocka_unit_test(what_is_not_registered_is_refused),
};

UNIT_MAIN(tests)
