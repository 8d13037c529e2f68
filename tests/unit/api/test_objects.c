/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Calls that create and query objects, in their EX and legacy forms: what they refuse and with
 * which code, that a refused rank still takes part where others wait for it, and that queries of
 * handles are right. start/, the segments of team/ and the named barrier are fakes of this test. */
#include "config.h"

#include "base/check.h"
#include "base/report.h"
#include "collective/named.h"
#include "fake_job.h"
#include "gasnet.h"
#include "start/start.h"
#include "team/objects.h"
#include "transport/shm/shm.h"
#include "unit.h"

enum { ranks = 4, limit = 16 * GASNET_PAGESIZE };

/* ---- start/ */

static struct {
    bool is_started;
    enum tk_status attach_status, publish_status;
    unsigned attaches, publishes;
    uintptr_t attached; /* size of the last request; 0: this rank can't */
    size_t published;
} start;

uint64_t tk_segment_limit_local = limit, tk_segment_limit_global = limit / 2;

void tk_start(void)
{
    start.is_started = true;
}

bool tk_is_started(void)
{
    return start.is_started;
}

enum tk_status tk_attach(uintptr_t size)
{
    start.attaches++;
    start.attached = size;
    if (size == 0 || start.attach_status != TK_OK)
        return TK_FAIL;
    tk_ep.segment = &tk_segment;
    return TK_OK;
}

enum tk_status tk_publish(struct trunkline_tm *tm, struct trunkline_ep *const *eps, size_t count)
{
    (void)tm, (void)eps;
    start.publishes++;
    start.published = count;
    return start.publish_status;
}

/* ---- segments and neighbours */

static struct trunkline_segment made;
static unsigned destroyed;
static bool create_fails;

struct trunkline_segment *tk_segment_create(void *address, uintptr_t size)
{
    made = (struct trunkline_segment){.client = &tk_client, .base = address, .size = size};
    return create_fails ? NULL : &made;
}

/* Not reached: kinds of devices are tested by test_kinds.c. */
struct trunkline_segment *tk_segment_create_on(struct tk_kind_device *device, void *address,
                                               uintptr_t size, bool *is_argument,
                                               struct tk_kind_why *why)
{
    (void)device, (void)address, (void)size, (void)is_argument, (void)why;
    return NULL;
}

bool tk_segment_is_valid(const struct trunkline_segment *segment)
{
    return segment == &made;
}

void tk_segment_destroy(struct trunkline_segment *segment)
{
    assert_ptr_equal(segment, &made);
    destroyed++;
}

bool tk_segment_bind(struct trunkline_ep *ep, struct trunkline_segment *segment)
{
    if (ep->segment)
        return false;
    ep->segment = segment;
    return true;
}

static struct tk_bound bounds[ranks]; /* of each rank's endpoint 0 */

struct tk_bound tk_bound_of(uint32_t rank, uint32_t endpoint)
{
    return endpoint == 0 ? bounds[rank] : (struct tk_bound){.endpoint = endpoint, .fd = -1};
}

static uintptr_t offsets[ranks];

uintptr_t tk_neighbour_addr_offset(struct tk_peer *peer, uint32_t endpoint)
{
    assert_int_equal(endpoint, 0);
    return offsets[peer->rank];
}

struct tk_topology tk_topology;

/* ---- the named barrier, which is over at once */

bool tk_named_notify(int id, int flags)
{
    (void)id, (void)flags;
    return true;
}

bool tk_named_pending(void)
{
    return true;
}

bool tk_named_done(void)
{
    return true;
}

void tk_named_wait(void)
{
}

bool tk_named_end(int id, int flags)
{
    (void)id, (void)flags;
    return true;
}

bool tk_named_result(int *id)
{
    (void)id;
    return true;
}

/* ---- */

static gex_Client_t client;
static gex_EP_t ep;
static gex_TM_t tm;

/* Rank 0 of four, of which 0 and 1 share memory. */
static int set_up(void **state)
{
    static uint32_t nbrhd_of[ranks] = {0, 0, 1, 1}, host_of[ranks];
    unit_settings(NULL, NULL);
    memset(&start, 0, sizeof(start));
    memset(bounds, 0, sizeof(bounds));
    tk_topology = (struct tk_topology){
        .nbrhd_of = nbrhd_of, .host_of = host_of, .nbrhd_size = 2, .nbrhds = 2};
    tk_ep.segment = NULL;
    tk_verbose_errors = false;
    create_fails = false;
    destroyed = 0;
    client = NULL;
    ep = NULL;
    tm = NULL;
    fake_job_open(ranks);
    return 0;
}

static int init(gex_Flags_t flags)
{
    return gex_Client_Init(&client, &ep, &tm, "unit", NULL, NULL, flags);
}

static int set_up_client(void **state)
{
    set_up(state);
    return init(GEX_FLAG_USES_GASNET1);
}

static int tear_down(void **state)
{
    fake_job_close();
    return 0;
}

/* ---- gex_Client_Init */

static void init_gives_client_endpoint_and_team(void **state)
{
    char name[] = "unit";
    assert_int_equal(gex_Client_Init(&client, &ep, &tm, name, NULL, NULL, 0), GASNET_OK);
    name[0] = 'x';
    assert_string_equal(gex_Client_QueryName(client), "unit");
    assert_int_equal(gex_Client_QueryFlags(client), 0);
    assert_ptr_equal(gex_EP_QueryClient(ep), client);
    assert_int_equal(gex_EP_QueryIndex(ep), 0);
    assert_ptr_equal(gex_EP_QuerySegment(ep), GEX_SEGMENT_INVALID);
    assert_ptr_equal(gex_TM_QueryClient(tm), client);
    assert_ptr_equal(gex_TM_QueryEP(tm), ep);
    assert_int_equal(gex_TM_QueryRank(tm), 0);
    assert_int_equal(gex_TM_QuerySize(tm), ranks);
}

static void init_without_a_place_or_a_name_is_a_bad_argument_and_starts_nothing(void **state)
{
    assert_int_equal(gex_Client_Init(NULL, &ep, &tm, "u", NULL, NULL, 0), GASNET_ERR_BAD_ARG);
    assert_int_equal(gex_Client_Init(&client, NULL, &tm, "u", NULL, NULL, 0), GASNET_ERR_BAD_ARG);
    assert_int_equal(gex_Client_Init(&client, &ep, NULL, "u", NULL, NULL, 0), GASNET_ERR_BAD_ARG);
    assert_int_equal(gex_Client_Init(&client, &ep, &tm, NULL, NULL, NULL, 0), GASNET_ERR_BAD_ARG);
    assert_false(start.is_started);
    assert_null(client);
}

static void init_takes_two_flags_and_no_other(void **state)
{
    const gex_Flags_t both = GEX_FLAG_USES_GASNET1 | GEX_FLAG_DEFER_THREADS;
    for (unsigned bit = 0; bit < 32; bit++) {
        start.is_started = false;
        gex_Flags_t flag = (gex_Flags_t)1 << bit;
        assert_int_equal(init(flag), flag & both ? GASNET_OK : GASNET_ERR_BAD_ARG);
        assert_int_equal(start.is_started, (flag & both) != 0);
    }
}

static void init_again(void *unused)
{
    init(0);
}

static void a_second_init_ends_the_process(void **state)
{
    unit_assert_panic(init_again, NULL, "gex_Client_Init was called twice");
}

static void why_a_call_is_refused_is_shown_unless_switched_off(void **state)
{
    unit_listen();
    init(1u << 31);
    assert_string_equal(unit_heard(), "");
    tk_verbose_errors = true;
    unit_listen();
    init(1u << 31);
    unit_assert_says(unit_heard(), "gex_Client_Init: flags 0x80000000");
}

/* ---- endpoints and teams */

static void an_endpoint_of_nonsense_is_a_bad_argument(void **state)
{
    const gex_EP_Capabilities_t rma = GEX_EP_CAPABILITY_RMA;
    struct trunkline_client other;
    gex_EP_t made_ep = NULL;
    assert_int_equal(gex_EP_Create(NULL, client, rma, 0), GASNET_ERR_BAD_ARG);
    assert_int_equal(gex_EP_Create(&made_ep, &other, rma, 0), GASNET_ERR_BAD_ARG);
    assert_int_equal(gex_EP_Create(&made_ep, client, 0, 0), GASNET_ERR_BAD_ARG);
    assert_int_equal(gex_EP_Create(&made_ep, client, rma | 1u << 31, 0), GASNET_ERR_BAD_ARG);
    assert_int_equal(gex_EP_Create(&made_ep, client, rma, 1u << 31), GASNET_ERR_BAD_ARG);
    assert_null(made_ep);
}

static void a_further_endpoint_has_the_capabilities_that_were_asked_for(void **state)
{
    gex_EP_t made_ep = NULL;
    assert_int_equal(gex_EP_Create(&made_ep, client, GEX_EP_CAPABILITY_AM, 0), GASNET_OK);
    assert_int_equal(made_ep->capabilities, GEX_EP_CAPABILITY_AM);
}

static void endpoints_are_made_until_there_are_GASNET_MAXEPS(void **state)
{
    gex_EP_t made_ep = NULL, last = NULL;
    for (int i = 2; i < GASNET_MAXEPS; i++) { /* the test before made one */
        assert_int_equal(gex_EP_Create(&made_ep, client, GEX_EP_CAPABILITY_RMA, 0), GASNET_OK);
        assert_int_equal(gex_EP_QueryIndex(made_ep), i);
    }
    assert_int_equal(gex_EP_Create(&last, client, GEX_EP_CAPABILITY_RMA, 0), GASNET_ERR_RESOURCE);
    assert_null(last);
    assert_int_equal(tk_pair_local(gex_TM_Pair(made_ep, 3)), GASNET_MAXEPS - 1);
}

static void ranks_of_the_team_are_job_ranks(void **state)
{
    for (gex_Rank_t r = 0; r < ranks; r++) {
        assert_int_equal(gex_TM_TranslateRankToJobrank(tm, r), r);
        assert_int_equal(gex_TM_TranslateJobrankToRank(tm, r), r);
        gex_EP_Location_t at = gex_TM_TranslateRankToEP(tm, r, 0);
        assert_int_equal(at.gex_rank, r);
        assert_int_equal(at.gex_ep_index, 0);
    }
}

static void a_process_outside_the_team_has_no_rank_in_it(void **state)
{
    assert_int_equal(gex_TM_TranslateJobrankToRank(tm, ranks), GEX_RANK_INVALID);
    assert_int_equal(gex_TM_TranslateJobrankToRank(tm, GEX_RANK_INVALID), GEX_RANK_INVALID);
}

static void each_object_keeps_its_own_client_data(void **state)
{
    int a = 0, b = 0, c = 0, d = 0;
    gex_Client_SetCData(client, &a);
    gex_EP_SetCData(ep, &b);
    gex_TM_SetCData(tm, &c);
    gex_Segment_SetCData(&made, &d);
    assert_ptr_equal(gex_Client_QueryCData(client), &a);
    assert_ptr_equal(gex_EP_QueryCData(ep), &b);
    assert_ptr_equal(gex_TM_QueryCData(tm), &c);
    assert_ptr_equal(gex_Segment_QueryCData(&made), &d);
}

/* ---- gex_Segment_Attach */

static int attach(uintptr_t size)
{
    gex_Segment_t segment = GEX_SEGMENT_INVALID;
    int rc = gex_Segment_Attach(&segment, tm, size);
    assert_ptr_equal(segment, rc == GASNET_OK ? &tk_segment : GEX_SEGMENT_INVALID);
    return rc;
}

static void a_segment_of_up_to_the_limit_is_attached(void **state)
{
    assert_int_equal(attach(limit), GASNET_OK);
    assert_int_equal(start.attached, limit);
}

static void a_rank_that_asks_for_too_much_is_refused_but_takes_part(void **state)
{
    assert_int_equal(attach(limit + GASNET_PAGESIZE), GASNET_ERR_BAD_ARG);
    assert_int_equal(start.attaches, 1);
    assert_int_equal(start.attached, 0);
}

static void a_rank_with_a_bound_segment_is_refused_but_takes_part(void **state)
{
    tk_ep.segment = &made;
    assert_int_equal(attach(limit), GASNET_ERR_BAD_ARG);
    assert_int_equal(start.attaches, 1);
    assert_int_equal(start.attached, 0);
}

static void
when_another_rank_cannot_attach_it_is_a_matter_of_resources_and_may_be_tried_again(void **state)
{
    start.attach_status = TK_FAIL;
    assert_int_equal(attach(limit), GASNET_ERR_RESOURCE);
    start.attach_status = TK_OK;
    assert_int_equal(attach(limit / 2), GASNET_OK);
}

static void attach_again(void *unused)
{
    attach(limit);
}

static void a_second_attach_ends_the_process(void **state)
{
    assert_int_equal(attach(limit), GASNET_OK);
    unit_assert_panic(attach_again, NULL, "gex_Segment_Attach was called twice");
}

/* ---- gex_Segment_Create and what is bound */

static int create(uintptr_t size)
{
    gex_Segment_t segment;
    return gex_Segment_Create(&segment, client, NULL, size, GEX_MK_HOST, 0);
}

static void a_segment_of_nonsense_is_a_bad_argument(void **state)
{
    struct trunkline_client other;
    gex_Segment_t s = NULL;
    assert_int_equal(gex_Segment_Create(NULL, client, NULL, 1, GEX_MK_HOST, 0), GASNET_ERR_BAD_ARG);
    assert_int_equal(gex_Segment_Create(&s, &other, NULL, 1, GEX_MK_HOST, 0), GASNET_ERR_BAD_ARG);
    assert_int_equal(gex_Segment_Create(&s, client, NULL, 1, GEX_MK_INVALID, 0),
                     GASNET_ERR_BAD_ARG);
    assert_int_equal(gex_Segment_Create(&s, client, NULL, 1, GEX_MK_HOST, 1), GASNET_ERR_BAD_ARG);
    assert_null(s);
}

static void a_segment_that_cannot_be_made_is_a_matter_of_resources(void **state)
{
    create_fails = true;
    assert_int_equal(create(1), GASNET_ERR_RESOURCE);
}

static void create_empty(void *unused)
{
    create(0);
}

static void an_empty_segment_ends_the_process(void **state)
{
    unit_assert_panic(create_empty, NULL, "a segment has at least one byte");
}

static void a_segment_says_what_it_is(void **state)
{
    gex_Segment_t s;
    assert_int_equal(gex_Segment_Create(&s, client, bounds, 77, GEX_MK_HOST, 0), GASNET_OK);
    assert_ptr_equal(gex_Segment_QueryAddr(s), bounds);
    assert_int_equal(gex_Segment_QuerySize(s), 77);
    assert_ptr_equal(gex_Segment_QueryClient(s), client);
    assert_int_equal(gex_Segment_QueryFlags(s), 0);
    gex_Segment_Destroy(s, 0);
    assert_int_equal(destroyed, 1);
}

static void destroy(void *segment)
{
    gex_Segment_Destroy(segment, 0);
}

static void the_attached_segment_and_no_segment_cannot_be_destroyed(void **state)
{
    unit_assert_panic(destroy, &tk_segment, "the segment of gex_Segment_Attach cannot be");
    unit_assert_panic(destroy, GEX_SEGMENT_INVALID, "GEX_SEGMENT_INVALID cannot be");
}

static void an_endpoint_is_bound_once_and_to_a_segment(void **state)
{
    assert_int_equal(gex_EP_BindSegment(ep, GEX_SEGMENT_INVALID, 0), GASNET_ERR_BAD_ARG);
    assert_int_equal(gex_EP_BindSegment(ep, &made, 1), GASNET_ERR_BAD_ARG);
    assert_int_equal(gex_EP_BindSegment(ep, &made, 0), GASNET_OK);
    assert_int_equal(gex_EP_BindSegment(ep, &made, 0), GASNET_ERR_BAD_ARG);
    assert_ptr_equal(gex_EP_QuerySegment(ep), &made);
}

static void a_rank_that_publishes_nonsense_is_refused_but_takes_part(void **state)
{
    gex_EP_t eps[] = {ep};
    assert_int_equal(gex_EP_PublishBoundSegment(tm, eps, GASNET_MAXEPS + 1, 0), GASNET_ERR_BAD_ARG);
    assert_int_equal(gex_EP_PublishBoundSegment(tm, NULL, 1, 0), GASNET_ERR_BAD_ARG);
    assert_int_equal(gex_EP_PublishBoundSegment(tm, eps, 1, 1), GASNET_ERR_BAD_ARG);
    assert_int_equal(start.publishes, 3);
    assert_int_equal(start.published, 0);
}

static void publishing_reports_all_endpoints_or_none(void **state)
{
    gex_EP_t eps[] = {ep};
    assert_int_equal(gex_EP_PublishBoundSegment(tm, eps, 1, 0), GASNET_OK);
    assert_int_equal(start.published, 1);
    assert_int_equal(gex_EP_PublishBoundSegment(tm, NULL, 0, 0), GASNET_OK);
    start.publish_status = TK_FAIL;
    assert_int_equal(gex_EP_PublishBoundSegment(tm, eps, 1, 0), GASNET_ERR_RESOURCE);
}

/* ---- segments of others */

static void of_a_rank_without_a_segment_nothing_is_said(void **state)
{
    void *owner = &start, *local = &start;
    uintptr_t size = 5;
    assert_int_not_equal(gex_Segment_QueryBound(tm, 1, &owner, &local, &size), 0);
    assert_true(owner == &start && local == &start && size == 5);
    gex_Event_t event = gex_EP_QueryBoundSegmentNB(tm, 1, &owner, &local, &size, 0);
    assert_ptr_equal(event, GEX_EVENT_INVALID);
    assert_int_equal(size, 0);
}

static void assert_local(gex_Rank_t rank, uintptr_t expected)
{
    void *owner, *local;
    uintptr_t size;
    bounds[rank] = (struct tk_bound){.base = 0x10000, .size = 4096};
    assert_int_equal(gex_Segment_QueryBound(tm, rank, &owner, &local, &size), 0);
    assert_int_equal((uintptr_t)owner, 0x10000);
    assert_int_equal(size, 4096);
    assert_int_equal((uintptr_t)local, expected);
}

static void a_segment_is_local_where_loads_and_stores_reach_it(void **state)
{
    offsets[1] = 0x5000;
    assert_local(0, 0x10000); /* ours */
    assert_local(1, 0x15000); /* a neighbour's */
    assert_local(2, 0);       /* on another host */
    offsets[1] = tk_unmapped;
    assert_local(1, 0); /* a neighbour's that can't be mapped */
    assert_int_equal(gex_Segment_QueryBound(tm, 1, NULL, NULL, NULL), 0);
}

static void a_table_of_segments_is_filled_as_far_as_it_and_the_job_go(void **state)
{
    gasnet_seginfo_t table[ranks + 1] = {{NULL, 0}};
    for (uint32_t r = 0; r < ranks; r++)
        tk_peer(r)->segment_size = 100 + r;
    table[2].size = table[ranks].size = 9;
    assert_int_equal(gasnet_getSegmentInfo(table, 2), GASNET_OK);
    assert_int_equal(table[1].size, 101);
    assert_int_equal(table[2].size, 9);
    assert_int_equal(gasnet_getSegmentInfo(table, ranks + 1), GASNET_OK);
    assert_int_equal(table[ranks - 1].size, 100 + ranks - 1);
    assert_int_equal(table[ranks].size, 9);
}

static void no_table_is_a_bad_argument_where_entries_are_wanted(void **state)
{
    gasnet_seginfo_t table[1];
    assert_int_equal(gasnet_getSegmentInfo(NULL, 0), GASNET_OK);
    assert_int_equal(gasnet_getSegmentInfo(NULL, 1), GASNET_ERR_BAD_ARG);
    assert_int_equal(gasnet_getSegmentInfo(table, -1), GASNET_ERR_BAD_ARG);
}

/* ---- legacy */

static void handler(gasnet_token_t token)
{
    (void)token;
}

static void legacy_attach_before_init_or_again_is_too_early_or_too_late(void **state)
{
    start.is_started = false;
    assert_int_equal(gasnet_attach(NULL, 0, limit, 0), GASNET_ERR_NOT_INIT);
    start.is_started = true;
    assert_int_equal(gasnet_attach(NULL, 0, limit, 0), GASNET_OK);
    assert_int_equal(gasnet_attach(NULL, 0, limit, 0), GASNET_ERR_NOT_INIT);
    assert_int_equal(start.attaches, 1);
}

static void legacy_attach_of_nonsense_is_refused_but_takes_part(void **state)
{
    assert_int_equal(gasnet_attach(NULL, 0, limit + GASNET_PAGESIZE, 0), GASNET_ERR_BAD_ARG);
    assert_int_equal(gasnet_attach(NULL, 0, limit - 1, 0), GASNET_ERR_BAD_ARG);
    assert_int_equal(gasnet_attach(NULL, -1, limit, 0), GASNET_ERR_BAD_ARG);
    assert_int_equal(start.attaches, 3);
    assert_int_equal(start.attached, 0);
}

static void legacy_attach_of_nothing_attaches_a_page(void **state)
{
    assert_int_equal(gasnet_attach(NULL, 0, 0, 0), GASNET_OK);
    assert_int_equal(start.attached, GASNET_PAGESIZE);
}

static void legacy_handlers_are_given_the_indices_that_they_leave_open(void **state)
{
    gasnet_handlerentry_t table[] = {{200, (gex_AM_Fn_t)handler}, {0, (gex_AM_Fn_t)handler}};
    assert_int_equal(gasnet_attach(table, 2, limit, 0), GASNET_OK);
    assert_int_equal(table[0].index, 200);
    assert_int_equal(table[1].index, 255);
}

static void legacy_handlers_without_a_function_are_refused(void **state)
{
    gasnet_handlerentry_t table[] = {{201, NULL}};
    assert_int_equal(gasnet_attach(table, 1, limit, 0), GASNET_ERR_RESOURCE);
}

static void ask_for_the_world(void *unused)
{
    tk_client.flags = 0;
    trunkline_world_for("gasnet_put");
}

static void legacy_calls_need_a_client_that_said_it_uses_them(void **state)
{
    assert_ptr_equal(trunkline_world_for("gasnet_put"), tm);
    unit_assert_panic(ask_for_the_world, NULL, "was called without GEX_FLAG_USES_GASNET1");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
#define WITH(name) cmocka_unit_test_setup_teardown(name, set_up_client, tear_down)

static const struct CMUnitTest tests[] = {
    TEST(init_gives_client_endpoint_and_team),
    TEST(init_without_a_place_or_a_name_is_a_bad_argument_and_starts_nothing),
    TEST(init_takes_two_flags_and_no_other),
    WITH(a_second_init_ends_the_process),
    TEST(why_a_call_is_refused_is_shown_unless_switched_off),
    WITH(an_endpoint_of_nonsense_is_a_bad_argument),
    WITH(a_further_endpoint_has_the_capabilities_that_were_asked_for),
    WITH(endpoints_are_made_until_there_are_GASNET_MAXEPS),
    WITH(ranks_of_the_team_are_job_ranks),
    WITH(a_process_outside_the_team_has_no_rank_in_it),
    WITH(each_object_keeps_its_own_client_data),
    WITH(a_segment_of_up_to_the_limit_is_attached),
    WITH(a_rank_that_asks_for_too_much_is_refused_but_takes_part),
    WITH(a_rank_with_a_bound_segment_is_refused_but_takes_part),
    WITH(when_another_rank_cannot_attach_it_is_a_matter_of_resources_and_may_be_tried_again),
    WITH(a_second_attach_ends_the_process),
    WITH(a_segment_of_nonsense_is_a_bad_argument),
    WITH(a_segment_that_cannot_be_made_is_a_matter_of_resources),
    WITH(an_empty_segment_ends_the_process),
    WITH(a_segment_says_what_it_is),
    WITH(the_attached_segment_and_no_segment_cannot_be_destroyed),
    WITH(an_endpoint_is_bound_once_and_to_a_segment),
    WITH(a_rank_that_publishes_nonsense_is_refused_but_takes_part),
    WITH(publishing_reports_all_endpoints_or_none),
    WITH(of_a_rank_without_a_segment_nothing_is_said),
    WITH(a_segment_is_local_where_loads_and_stores_reach_it),
    WITH(a_table_of_segments_is_filled_as_far_as_it_and_the_job_go),
    WITH(no_table_is_a_bad_argument_where_entries_are_wanted),
    WITH(legacy_attach_before_init_or_again_is_too_early_or_too_late),
    WITH(legacy_attach_of_nonsense_is_refused_but_takes_part),
    WITH(legacy_attach_of_nothing_attaches_a_page),
    WITH(legacy_handlers_are_given_the_indices_that_they_leave_open),
    WITH(legacy_handlers_without_a_function_are_refused),
    WITH(legacy_calls_need_a_client_that_said_it_uses_them),
};

UNIT_MAIN(tests)
