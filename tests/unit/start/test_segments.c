/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Collective calls about segments: a rank that fails still takes part, no rank has a segment if one
 * fails, and no rank returns before all segments can be written to. Memory, the exchange and
 * neighbours are fakes; each step records its name. */
#include "config.h"

#include "collective/barrier.h"
#include "collective/exchange.h"
#include "firehose/firehose.h"
#include "progress/progress.h"
#include "start/start.h"
#include "team/objects.h"
#include "transport/neighbour.h"
#include "unit.h"

enum { ranks = 4, me = 1, size = 4096 };

static char steps[400];

static void step(const char *name)
{
    strcat(strcat(steps, name), " ");
}

/* ---- the rooms below */

struct tk_peers tk_peers;
struct tk_topology tk_topology;
struct trunkline_client tk_client;
struct trunkline_segment tk_segment;
struct trunkline_ep tk_ep = {.client = &tk_client};
struct trunkline_tm tk_tm = {.ep = &tk_ep};
struct tk_ep_pair tk_pairs[tk_endpoints_max * tk_pair_columns];

static char memory[size];
static bool fill_fails;

enum tk_status tk_segment_fill(struct trunkline_segment *segment, void *address, uintptr_t nbytes)
{
    assert_null(address);
    step("fill");
    if (fill_fails)
        return TK_FAIL;
    segment->base = memory;
    segment->size = nbytes;
    return TK_OK;
}

void tk_segment_empty(struct trunkline_segment *segment)
{
    step("empty");
    segment->base = NULL;
    segment->size = 0;
}

bool tk_segment_bind(struct trunkline_ep *ep, struct trunkline_segment *segment)
{
    step("bind");
    ep->segment = segment;
    return true;
}

static const struct tk_bound_kind device = {.gex_class = TK_KIND_CUDA_UVA};
static const struct trunkline_segment *freed; /* the device memory under it is gone */
struct tk_staging tk_staging;

struct tk_bound tk_segment_bound(const struct trunkline_ep *ep,
                                 const struct trunkline_segment *segment)
{
    return (struct tk_bound){.base = (uintptr_t)segment->base,
                             .size = segment->size,
                             .endpoint = ep->index,
                             .kind = segment->kind_memory ? &device : NULL};
}

bool tk_segment_is_valid(const struct trunkline_segment *segment)
{
    return segment != freed;
}

void tk_barrier_start(struct tk_op *op)
{
    (void)op;
    step("barrier");
}

/* ---- not reached: publishing in a part of the job is tested by tests/job/teams.c */

void tk_exchange(struct trunkline_tm *tm, enum tk_wait_call call, const void *mine, void *all,
                 size_t nbytes)
{
    (void)tm, (void)call, (void)mine, (void)all, (void)nbytes;
    fail();
}

size_t tk_bound_offer_size(const struct tk_bound *mine, uint32_t count)
{
    (void)mine;
    return count;
}

void *tk_bound_offer(const struct tk_bound *mine, uint32_t count)
{
    (void)mine, (void)count;
    return NULL;
}

enum tk_status tk_bound_accept(uint32_t rank, const void *offer, size_t nbytes)
{
    (void)rank, (void)offer, (void)nbytes;
    return TK_FAIL;
}

/* ---- */

void tk_wait_done(const struct tk_op *op)
{
    (void)op;
    step("wait");
}

void tk_poll_asleep(void)
{
}

void tk_firehose_set_permanent(const void *base, size_t nbytes)
{
    assert_true(base == memory && nbytes == size);
    step("lasts");
}

static struct {
    enum tk_status status;
    uint32_t unable;
    bool is_able; /* we */
    uint32_t count;
    struct tk_bound records[GASNET_MAXEPS + 1];
} exchange;

enum tk_status tk_segments_exchange(const struct tk_bound *mine, uint32_t count, void (*poll)(void),
                                    uint32_t *unable)
{
    step("exchange");
    assert_ptr_equal(poll, tk_poll_asleep); /* others' requests are served meanwhile */
    exchange.is_able = mine != NULL;
    exchange.count = count;
    if (count)
        memcpy(exchange.records, mine, count * sizeof(*mine));
    *unable = mine ? exchange.unable : me;
    return exchange.status;
}

void tk_segments_withdraw(void)
{
    step("withdraw");
}

/* ---- neighbours */

static struct tk_bound bounds[ranks][tk_endpoints_max];
static unsigned tries;
static bool try_fails;

struct tk_bound tk_bound_of(uint32_t rank, uint32_t endpoint)
{
    return bounds[rank][endpoint];
}

enum tk_status tk_neighbour_try_segment(struct tk_peer *peer, const struct tk_bound *bound)
{
    assert_int_not_equal(peer->rank, me);
    assert_true(bound->fd < 0 && bound->size > 0);
    tries++;
    return try_fails ? TK_FAIL : TK_OK;
}

static void hook(void *address, uintptr_t nbytes)
{
    assert_true(address == memory && nbytes == size);
    step("hook");
}

/* We are rank 1; 0 and 1 share memory. */
static int set_up(void **state)
{
    static struct tk_peer peers[ranks];
    static uint32_t nbrhd_ranks[] = {0, 1};
    steps[0] = 0;
    for (uint32_t r = 0; r < ranks; r++)
        peers[r] = (struct tk_peer){.rank = r, .host = "node"};
    tk_peers = (struct tk_peers){.at = peers, .me = me, .size = ranks};
    tk_topology = (struct tk_topology){.nbrhd_size = 2, .nbrhd_ranks = nbrhd_ranks};
    memset(&tk_segment, 0, sizeof(tk_segment));
    memset(&exchange, 0, sizeof(exchange));
    memset(bounds, 0, sizeof(bounds));
    exchange.unable = tk_nobody;
    tk_ep.segment = NULL;
    gasnet_client_attach_hook = NULL;
    fill_fails = try_fails = false;
    tries = 0;
    return 0;
}

/* ---- gex_Segment_Attach */

static void attaching_ends_with_a_barrier_so_that_all_can_be_written_to(void **state)
{
    gasnet_client_attach_hook = hook;
    assert_int_equal(tk_attach(size), TK_OK);
    assert_string_equal(steps, "fill barrier wait exchange lasts bind hook barrier wait withdraw ");
    assert_int_equal(exchange.count, 1);
    assert_int_equal(exchange.records[0].base, (uintptr_t)memory);
    assert_ptr_equal(tk_ep.segment, &tk_segment);
}

static void a_client_need_not_have_a_hook(void **state)
{
    assert_int_equal(tk_attach(size), TK_OK);
}

static void a_rank_that_may_not_attach_takes_part_and_reports_it(void **state)
{
    assert_int_equal(tk_attach(0), TK_FAIL);
    assert_string_equal(steps, "barrier wait exchange ");
    assert_false(exchange.is_able);
    assert_int_equal(exchange.count, 0);
}

static void a_rank_without_memory_takes_part_and_reports_it(void **state)
{
    fill_fails = true;
    assert_int_equal(tk_attach(size), TK_FAIL);
    assert_string_equal(steps, "fill barrier wait exchange ");
    assert_false(exchange.is_able);
}

static const char *attach_and_fail(uintptr_t nbytes)
{
    unit_listen();
    enum tk_status status = tk_attach(nbytes);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    assert_null(tk_ep.segment);
    return said;
}

static void when_one_cannot_all_give_their_memory_back_and_name_it(void **state)
{
    exchange.unable = 3;
    const char *said = attach_and_fail(size);
    unit_assert_says(said, "rank 3 (node) could not attach its segment");
    assert_int_equal(unit_lines(said), 1);
    assert_string_equal(steps, "fill barrier wait exchange empty ");
    assert_int_equal(tk_segment.size, 0);
}

/* It has logged the reason itself. */
static void the_rank_that_fails_gets_no_report(void **state)
{
    assert_string_equal(attach_and_fail(0), "");
}

static void an_exchange_that_fails_leaves_no_memory(void **state)
{
    exchange.status = TK_FAIL;
    attach_and_fail(size);
    assert_string_equal(steps, "fill barrier wait exchange empty ");
}

static void after_a_failure_attaching_may_be_tried_again(void **state)
{
    exchange.unable = 3;
    attach_and_fail(size);
    exchange.unable = tk_nobody;
    assert_int_equal(tk_attach(size), TK_OK);
}

/* ---- gex_EP_PublishBoundSegment */

static struct trunkline_segment segments[2] = {{.base = memory, .size = 10},
                                               {.base = memory + 10, .size = 20}};

static void only_endpoints_with_a_segment_are_published(void **state)
{
    struct trunkline_ep with = {.index = 4, .segment = &segments[0]}, without = {.index = 5},
                        with_too = {.index = 6, .segment = &segments[1]};
    struct trunkline_ep *const eps[] = {&with, &without, &with_too};
    assert_int_equal(tk_publish(&tk_tm, eps, 3), TK_OK);
    assert_string_equal(steps, "barrier wait exchange ");
    assert_int_equal(exchange.count, 2);
    assert_int_equal(exchange.records[0].endpoint, 4);
    assert_int_equal(exchange.records[1].endpoint, 6);
    assert_int_equal(exchange.records[1].size, 20);
}

static void a_rank_with_nothing_to_publish_takes_part(void **state)
{
    assert_int_equal(tk_publish(&tk_tm, NULL, 0), TK_OK);
    assert_string_equal(steps, "barrier wait exchange ");
    assert_true(exchange.is_able);
}

static bool staging_exists;

static bool stage(struct tk_bound *bound)
{
    *bound = (struct tk_bound){.base = 1, .size = 2, .endpoint = tk_endpoint_staging};
    return staging_exists;
}

static void staging_buffers_are_published_beside_device_segments(void **state)
{
    struct tk_kind_memory device_memory;
    struct trunkline_segment on_device = {.base = memory, .size = 5, .kind_memory = &device_memory};
    struct trunkline_ep host = {.index = 4, .segment = &segments[0]},
                        device_ep = {.index = 5, .segment = &on_device};
    struct trunkline_ep *const eps[] = {&host, &device_ep};
    assert_int_equal(tk_publish(&tk_tm, eps, 2), TK_OK);
    assert_int_equal(exchange.count, 2); /* kind_rma/ is not open */
    tk_staging.bound = stage;
    assert_int_equal(tk_publish(&tk_tm, eps, 2), TK_OK);
    assert_int_equal(exchange.count, 2);
    staging_exists = true;
    assert_int_equal(tk_publish(&tk_tm, eps, 2), TK_OK);
    assert_int_equal(exchange.count, 3);
    assert_int_equal(exchange.records[2].endpoint, tk_endpoint_staging);
    assert_int_equal(tk_publish(&tk_tm, eps, 1), TK_OK);
    assert_int_equal(exchange.count, 1);
    tk_staging.bound = NULL;
}

/* Endpoint 0 has host memory. */
static void all_endpoints_are_published_at_once_with_the_staging_buffers(void **state)
{
    struct tk_kind_memory device_memory;
    struct trunkline_segment on_device = {.base = memory, .size = 5, .kind_memory = &device_memory};
    struct trunkline_ep all[GASNET_MAXEPS], *eps[GASNET_MAXEPS];
    for (gex_EP_Index_t i = 0; i < GASNET_MAXEPS; i++) {
        all[i] = (struct trunkline_ep){.index = i, .segment = i ? &on_device : &segments[0]};
        eps[i] = &all[i];
    }
    tk_staging.bound = stage;
    staging_exists = true;
    assert_int_equal(tk_publish(&tk_tm, eps, GASNET_MAXEPS), TK_OK);
    tk_staging.bound = NULL;
    assert_int_equal(exchange.count, GASNET_MAXEPS + 1);
    assert_int_equal(exchange.records[GASNET_MAXEPS].endpoint, tk_endpoint_staging);
}

static void with_freed_memory_nothing_is_published(void **state)
{
    struct trunkline_ep good = {.index = 4, .segment = &segments[0]},
                        bad = {.index = 5, .segment = &segments[1]};
    struct trunkline_ep *const eps[] = {&good, &bad};
    freed = &segments[1];
    unit_listen();
    enum tk_status status = tk_publish(&tk_tm, eps, 2);
    assert_string_equal(unit_heard(), ""); /* the reason was logged before */
    freed = NULL;
    assert_int_equal(status, TK_FAIL);
    assert_string_equal(steps, "barrier wait exchange ");
    assert_false(exchange.is_able);
    assert_int_equal(exchange.count, 0);
}

static void when_one_cannot_publish_all_fail_and_name_it(void **state)
{
    struct trunkline_ep good = {.index = 4, .segment = &segments[0]};
    struct trunkline_ep *const eps[] = {&good};
    exchange.unable = 3;
    bounds[0][2] = (struct tk_bound){.base = 4096, .size = 10, .endpoint = 2, .fd = -1};
    unit_listen();
    enum tk_status status = tk_publish(&tk_tm, eps, 1);
    const char *said = unit_heard();
    assert_int_equal(status, TK_FAIL);
    unit_assert_says(said, "rank 3 (node) could not publish its segments");
    assert_int_equal(unit_lines(said), 1);
    assert_int_equal(tries, 0);
}

/* No CPU can access it, and no rank will try. */
static void device_segments_of_neighbours_are_not_tried(void **state)
{
    bounds[0][2] =
        (struct tk_bound){.base = 4096, .size = 10, .endpoint = 2, .fd = -1, .kind = &device};
    try_fails = true;
    assert_int_equal(tk_publish(&tk_tm, NULL, 0), TK_OK);
    assert_int_equal(tries, 0);
}

/* A put to it could not say later that it can't be done. */
static void memory_of_a_neighbours_client_is_tried_before_it_is_used(void **state)
{
    bounds[0][2] = bounds[me][2] = bounds[3][2] =
        (struct tk_bound){.base = 4096, .size = 10, .endpoint = 2, .fd = -1};
    bounds[0][0] = (struct tk_bound){.base = 8192, .size = 10, .fd = 5}; /* a file */
    assert_int_equal(tk_publish(&tk_tm, NULL, 0), TK_OK);
    assert_int_equal(tries, 1);
    try_fails = true;
    assert_int_equal(tk_publish(&tk_tm, NULL, 0), TK_FAIL);
}

static void what_was_not_exchanged_is_not_tried(void **state)
{
    bounds[0][2] = (struct tk_bound){.base = 4096, .size = 10, .endpoint = 2, .fd = -1};
    exchange.status = TK_FAIL;
    assert_int_equal(tk_publish(&tk_tm, NULL, 0), TK_FAIL);
    assert_int_equal(tries, 0);
}

#define TEST(name) cmocka_unit_test_setup(name, set_up)

static const struct CMUnitTest tests[] = {
    TEST(attaching_ends_with_a_barrier_so_that_all_can_be_written_to),
    TEST(a_client_need_not_have_a_hook),
    TEST(a_rank_that_may_not_attach_takes_part_and_reports_it),
    TEST(a_rank_without_memory_takes_part_and_reports_it),
    TEST(when_one_cannot_all_give_their_memory_back_and_name_it),
    TEST(the_rank_that_fails_gets_no_report),
    TEST(an_exchange_that_fails_leaves_no_memory),
    TEST(after_a_failure_attaching_may_be_tried_again),
    TEST(only_endpoints_with_a_segment_are_published),
    TEST(a_rank_with_nothing_to_publish_takes_part),
    TEST(memory_of_a_neighbours_client_is_tried_before_it_is_used),
    TEST(staging_buffers_are_published_beside_device_segments),
    TEST(all_endpoints_are_published_at_once_with_the_staging_buffers),
    TEST(with_freed_memory_nothing_is_published),
    TEST(when_one_cannot_publish_all_fail_and_name_it),
    TEST(device_segments_of_neighbours_are_not_tried),
    TEST(what_was_not_exchanged_is_not_tried),
};

UNIT_MAIN(tests)
