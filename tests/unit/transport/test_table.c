/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The contract of a transport (transport.h), tested by another transport, in this process, that
 * consists only of its table. The rooms above send, put, get, wait, register and share memory
 * through it. / */
#include "config.h"

#include "fake_job.h"
#include "message/endpoint.h"
#include "message/short.h"
#include "progress/progress.h"
#include "rma/rma.h"
#include "unit.h"
#include "whole_table.h"
#include "transport/wait_ticket.h"

enum { paper_space = 2, ranks = 4 };

/* Ranks 1 and 2 are reached by the test's own transport ("paper"), which keeps up to paper_space
 * Shorts until it is polled; rank 3 by the transport of fake_job. */
static struct paper {
    struct tk_short kept[paper_space];
    unsigned count, polls, reaps, delivered, waited;
    bool refuses;   /* puts and gets at once */
    size_t piece;   /* bytes of a put or get that it takes in one call; 0: all */
    unsigned calls; /* of rma.post() */
    unsigned registered, stalls, ends, closes;
    bool has_pages;
    uint32_t key, woken, tried, admits;
    enum tk_rank_liveness liveness;
    _Atomic uint32_t words[ranks];
    char flags[ranks][64], scratch[ranks][64];
    const struct tk_region *segment;
    const struct tk_peer *left;
} paper;

static char ours[3000], theirs[3000];

static bool paper_poll(void)
{
    bool any = paper.count > 0;
    paper.polls++;
    paper.delivered += paper.count;
    paper.count = 0;
    return any;
}

static bool paper_reap(void)
{
    paper.reaps++;
    return false;
}

static enum tk_status paper_send(struct tk_peer *peer, struct tk_outgoing *m)
{
    (void)peer;
    if (paper.count == paper_space)
        return TK_BUSY;
    memcpy(&paper.kept[paper.count++], m->head, m->head_size);
    return TK_OK;
}

static enum tk_status paper_reserve(struct tk_am_reservation *reservation, bool place, bool buffer)
{
    (void)reservation, (void)place, (void)buffer;
    return TK_BUSY;
}

static enum tk_status paper_reserve_place(struct tk_am_reservation *reservation)
{
    (void)reservation;
    return TK_BUSY;
}

static enum tk_status paper_send_reserved(struct tk_am_reservation *reservation,
                                          struct tk_outgoing *m)
{
    return paper_send(reservation->peer, m);
}

static void paper_release(struct tk_am_reservation *reservation, bool keep_credit)
{
    (void)reservation, (void)keep_credit;
}

static bool paper_put(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, const void *local,
                      size_t nbytes)
{
    (void)peer;
    if (paper.refuses || nbytes == 0)
        return false;
    memcpy((void *)remote, local, nbytes);
    tk_counter_add(&op->pending, -1);
    return true;
}

static bool paper_get(struct tk_peer *peer, struct tk_op *op, uintptr_t remote, void *local,
                      size_t nbytes)
{
    return paper_put(peer, op, (uintptr_t)local, (const void *)remote, nbytes);
}

static enum tk_status paper_rma(struct tk_peer *peer, const struct tk_rma *rma,
                                struct tk_rma_state *state)
{
    size_t left = rma->nbytes - state->done;
    size_t piece = paper.piece ? tk_min(paper.piece, left) : left;
    char *remote = (char *)rma->remote + state->done, *local = rma->local + state->done;
    (void)peer;
    paper.calls++;
    if (rma->immediate && piece < left)
        return TK_BUSY;
    memcpy(rma->is_put ? remote : local, rma->is_put ? local : remote, piece);
    state->done += piece;
    return piece < left ? TK_BUSY : TK_OK;
}

static enum tk_status paper_register(struct tk_region *region)
{
    paper.registered++;
    paper.key = 77;
    region->remote_keys = &paper.key;
    return TK_OK;
}

static void paper_unregister(struct tk_region *region)
{
    paper.registered--;
    region->remote_keys = NULL;
}

static void paper_segment(const struct tk_region *region)
{
    paper.segment = region;
}

static bool paper_pins(void)
{
    return paper.has_pages;
}

static const uint32_t *paper_remote_keys(const struct tk_pinned *pinned)
{
    (void)pinned;
    return &paper.key;
}

static void paper_leave_queue(const struct tk_peer *peer, struct tk_wait_ticket *turn)
{
    (void)turn;
    paper.left = peer;
}

static void paper_stall(void)
{
    paper.stalls++;
}

static void paper_end(void)
{
    paper.ends++;
}

static enum tk_status paper_open(struct tk_peer_info **info, uint32_t turn)
{
    (void)info, (void)turn;
    return TK_OK;
}

static enum tk_status paper_narrow(struct tk_peer_info **info, uint32_t turn, bool *is_again)
{
    (void)info, (void)turn, (void)is_again;
    return TK_OK;
}

static bool paper_agree(void)
{
    return true;
}

static const struct tk_transport *paper_connect(void)
{
    return NULL;
}

static void paper_close(void)
{
    paper.closes++;
}

static void *paper_scratch(uint32_t neighbour)
{
    return paper.scratch[neighbour];
}

static void *paper_flags(uint32_t neighbour)
{
    return paper.flags[neighbour];
}

static void paper_wake(uint32_t rank)
{
    paper.woken = rank;
}

static uintptr_t paper_addr_offset(struct tk_peer *peer, uint32_t endpoint)
{
    return 4096 * (peer->rank + endpoint);
}

static struct tk_doorbell *paper_bell(void)
{
    return NULL;
}

static enum tk_status paper_try_segment(struct tk_peer *peer, const struct tk_bound *bound)
{
    paper.tried = peer->rank + bound->endpoint;
    return TK_FAIL;
}

static void paper_admit(void)
{
    paper.admits++;
}

static void paper_set_liveness(enum tk_rank_liveness liveness)
{
    paper.liveness = liveness;
}

static const _Atomic uint32_t *paper_liveness_of(uint32_t index)
{
    return &paper.words[index];
}

static const struct tk_transport_lifecycle paper_lifecycle = {.open = paper_open,
                                                              .narrow = paper_narrow,
                                                              .agree = paper_agree,
                                                              .connect = paper_connect,
                                                              .close = paper_close};

static const struct tk_transport_memory paper_memory = {.register_region = paper_register,
                                                        .unregister_region = paper_unregister,
                                                        .pins = paper_pins,
                                                        .use_segment = paper_segment,
                                                        .remote_keys = paper_remote_keys};

static const struct tk_transport_neighbour paper_neighbour = {.flags = paper_flags,
                                                              .scratch = paper_scratch,
                                                              .wake = paper_wake,
                                                              .bell = paper_bell,
                                                              .offset = paper_addr_offset,
                                                              .try_segment = paper_try_segment,
                                                              .admit = paper_admit,
                                                              .set_liveness = paper_set_liveness,
                                                              .liveness_of = paper_liveness_of};

static const struct tk_transport paper_transport = {
    .name = "paper",
    .rma = {.put = paper_put, .get = paper_get, .post = paper_rma},
    .am = {.send_short = tk_send_short_whole,
           .send_small = tk_send_small_short,
           .send = paper_send,
           .reserve = paper_reserve,
           .reserve_place = paper_reserve_place,
           .send_reserved = paper_send_reserved,
           .release = paper_release,
           .leave_queue = paper_leave_queue},
    .poll = paper_poll,
    .reap = paper_reap,
    .reap_in_handler = paper_reap,
    .reports = {.stall = paper_stall, .end = paper_end},
    .lifecycle = &paper_lifecycle,
    .memory = &paper_memory,
    .neighbour = &paper_neighbour};

/* One that registers nothing: the last of three. */
static unsigned stubborn_polls;

static enum tk_status refuse(struct tk_region *region)
{
    (void)region;
    return TK_FAIL;
}

static void undo_nothing(struct tk_region *region)
{
    (void)region;
    fail_msg("what was refused is undone");
}

static void use_nothing(const struct tk_region *region)
{
    (void)region;
}

static bool stubborn_poll(void)
{
    stubborn_polls++;
    return false;
}

static const struct tk_transport_memory stubborn_memory = {.register_region = refuse,
                                                           .unregister_region = undo_nothing,
                                                           .pins = stubborn_poll,
                                                           .use_segment = use_nothing,
                                                           .remote_keys = paper_remote_keys};

static const struct tk_transport stubborn_transport = {.name = "stubborn",
                                                       .poll = stubborn_poll,
                                                       .reap = stubborn_poll,
                                                       .reap_in_handler = stubborn_poll,
                                                       .memory = &stubborn_memory};

static int set_up(void **state)
{
    unit_settings(NULL, NULL);
    fake_job_open(ranks);
    memset(&paper, 0, sizeof(paper));
    stubborn_polls = 0;
    tk_transport_use(&paper_transport);
    for (uint32_t r = 1; r <= 2; r++)
        tk_peer(r)->transport = &paper_transport;
    tk_progress_use_all(tk_transports.at, tk_transports.count);
    for (size_t i = 0; i < sizeof(ours); i++) {
        ours[i] = (char)(i * 7);
        theirs[i] = 0;
    }
    return 0;
}

static int tear_down(void **state)
{
    fake_job_close();
    return 0;
}

static void what_is_taken_at_once_needs_nothing_more(void **state)
{
    assert_int_equal(tk_blocking(true, tk_peer(1), theirs, ours, 100, 0), 0);
    assert_memory_equal(theirs, ours, 100);
    assert_ptr_equal(tk_start(true, tk_peer(1), theirs + 100, ours + 100, 50, GEX_EVENT_NOW, 0),
                     GEX_EVENT_INVALID);
    assert_int_equal(tk_implicit(false, tk_peer(2), ours, theirs + 100, 50, GEX_EVENT_DEFER, 0), 0);
    assert_memory_equal(ours, theirs + 100, 50);
    assert_true(tk_nbi_done(tk_nbi_now, GEX_EC_ALL));
    assert_int_equal(paper.calls, 0);
}

/* All arguments of the caller reach the slow path, in as many pieces as needed. */
static void what_is_refused_is_done_by_the_slow_start(void **state)
{
    gex_Event_t leaf = (gex_Event_t)ours;
    paper.refuses = true;
    paper.piece = 1000;
    assert_int_equal(tk_blocking(true, tk_peer(1), theirs, ours, 3000, 0), 0);
    assert_memory_equal(theirs, ours, 3000);
    assert_int_equal(paper.calls, 3);
    memset(ours, 0, sizeof(ours));
    assert_ptr_equal(tk_start(false, tk_peer(2), theirs + 1, ours + 2, 2500, GEX_EVENT_DEFER, 0),
                     GEX_EVENT_INVALID);
    assert_memory_equal(ours + 2, theirs + 1, 2500);
    assert_ptr_equal(tk_start(true, tk_peer(2), theirs, ours, 10, &leaf, 0), GEX_EVENT_INVALID);
    assert_ptr_equal(leaf, GEX_EVENT_INVALID);
    assert_int_equal(tk_implicit(true, tk_peer(1), theirs, ours + 9, 2000, GEX_EVENT_NOW, 0), 0);
    assert_memory_equal(theirs, ours + 9, 2000);
    assert_true(tk_nbi_done(tk_nbi_now, GEX_EC_ALL));
}

static void immediate_is_refused_with_nothing_done(void **state)
{
    paper.refuses = true;
    paper.piece = 1000;
    assert_int_equal(tk_blocking(true, tk_peer(1), theirs, ours, 3000, GEX_FLAG_IMMEDIATE), 1);
    assert_ptr_equal(
        tk_start(true, tk_peer(1), theirs, ours, 3000, GEX_EVENT_DEFER, GEX_FLAG_IMMEDIATE),
        GEX_EVENT_NO_OP);
    assert_int_equal(
        tk_implicit(true, tk_peer(1), theirs, ours, 3000, GEX_EVENT_DEFER, GEX_FLAG_IMMEDIATE), 1);
    assert_int_equal(paper.calls, 3);
    assert_int_equal(theirs[1], 0);
    assert_true(tk_nbi_done(tk_nbi_now, GEX_EC_ALL));
}

/* The sender waits, and polls meanwhile; an immediate one is refused. */
static void a_short_without_space_waits_above_the_transport(void **state)
{
    for (int i = 0; i < paper_space; i++)
        assert_int_equal(tk_small_request(tk_peer(1), tk_tag(false, 2, 9), 5, tk_small_refused), 0);
    assert_int_equal(tk_small_request(tk_peer(1), tk_tag(false, 2, 9), 5, tk_small_refused), 1);
    assert_int_equal(paper.polls, 0);
    assert_int_equal(tk_small_request(tk_peer(1), tk_tag(false, 2, 10), UINT64_C(0x200000001),
                                      tk_wait_send_small),
                     0);
    assert_int_equal(paper.polls, 1);
    assert_int_equal(paper.count, 1);
    assert_int_equal(paper.kept[0].head.handler, 10);
    assert_int_equal(paper.kept[0].args[0], 1);
    assert_int_equal(paper.kept[0].args[1], 2);
    const int32_t three[] = {1, 2, 3};
    for (int i = 0; i < 2 * paper_space; i++)
        assert_int_equal(tk_short_request(tk_peer(2), 11, false, 3, three), 0);
    assert_int_equal(paper.delivered + paper.count, 3 * paper_space + 1);
    assert_int_equal(paper.kept[0].args[2], 3);
}

/* The peer, not the copy, whose connection may be outdated. */
static void a_copy_for_endpoints_leaves_the_line_of_its_peer(void **state)
{
    struct tk_ep_peer copy;
    struct tk_wait_ticket turn = {.queue = 1};
    struct tk_peer *peer = tk_ep_peer_open(&copy, tk_peer(1), 1, 0);
    tk_peer_transport(peer)->am.leave_queue(peer, &turn);
    assert_ptr_equal(paper.left, tk_peer(1));
}

static void all_transports_are_polled_and_reaped(void **state)
{
    tk_transport_use(&stubborn_transport);
    tk_progress_use_all(tk_transports.at, tk_transports.count);
    assert_int_equal(tk_transports.count, 3);
    assert_false(tk_poll());
    assert_int_equal(tk_small_request(tk_peer(1), tk_tag(false, 0, 9), 0, tk_wait_send_small), 0);
    assert_true(tk_poll());
    assert_int_equal(fake_job.polls, 2);
    assert_int_equal(paper.polls, 2);
    assert_int_equal(stubborn_polls, 2);
    assert_false(tk_reap());
    assert_int_equal(paper.reaps, 1);
    assert_int_equal(stubborn_polls, 3);
}

static void regions_are_registered_with_all_or_none(void **state)
{
    struct tk_region region = {.base = ours, .size = sizeof(ours)};
    assert_int_equal(tk_transports_register(&region), TK_OK);
    assert_int_equal(region.remote_keys[0], 77);
    tk_transports_use_segment(&region);
    assert_ptr_equal(paper.segment, &region);
    tk_transports_unregister(&region);
    assert_int_equal(paper.registered, 0);
    assert_false(tk_transports_pin());
    paper.has_pages = true;
    assert_true(tk_transports_pin());
    tk_transport_use(&stubborn_transport);
    assert_int_equal(tk_transports_register(&region), TK_FAIL);
    assert_int_equal(paper.registered, 0);
}

static void all_report_and_close(void **state)
{
    tk_transports_report_stall();
    tk_transports_report_end();
    assert_int_equal(paper.stalls, 1);
    assert_int_equal(fake_job.stalls_reported, 1);
    assert_int_equal(paper.ends, 1);
    tk_transports_close();
    assert_int_equal(paper.closes, 1);
    assert_int_equal(tk_transports.count, 0);
}

static void neighbours_are_those_of_the_transport_that_shares_memory(void **state)
{
    assert_ptr_equal(tk_neighbour_flags(2), paper.flags[2]);
    assert_ptr_equal(tk_neighbour_scratch(1), paper.scratch[1]);
    tk_neighbour_wake(3);
    assert_int_equal(paper.woken, 3);
    assert_int_equal(tk_neighbour_addr_offset(tk_peer(2), 1), 3 * 4096);
    const struct tk_bound bound = {.endpoint = 1};
    assert_int_equal(tk_neighbour_try_segment(tk_peer(2), &bound), TK_FAIL);
    assert_int_equal(paper.tried, 3);
    tk_neighbours_admit();
    assert_int_equal(paper.admits, 1);
    tk_liveness_set(TK_LIVENESS_LEFT);
    assert_int_equal(paper.liveness, TK_LIVENESS_LEFT);
    assert_ptr_equal(tk_liveness_of(1), &paper.words[1]);
    tk_transport_drop(&paper_transport);
    assert_null(tk_transports.node_local);
    tk_liveness_set(TK_LIVENESS_RUNS); /* nobody to tell */
    assert_int_equal(paper.liveness, TK_LIVENESS_LEFT);
}

/* Code that needs a group skips transports without that group. */
static void groups_are_whole_or_absent(void **state)
{
    assert_table_is_whole(&paper_transport);
    assert_table_is_whole(&fake_transport);
    assert_null(fake_transport.lifecycle);
    assert_null(fake_transport.memory);
    assert_null(fake_transport.demand);
    assert_false(tk_transports_connect_later());
    assert_ptr_equal(tk_transports.node_local, &paper_neighbour);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test_setup_teardown(what_is_taken_at_once_needs_nothing_more, set_up, tear_down),
    cmocka_unit_test_setup_teardown(what_is_refused_is_done_by_the_slow_start, set_up, tear_down),
    cmocka_unit_test_setup_teardown(immediate_is_refused_with_nothing_done, set_up, tear_down),
    cmocka_unit_test_setup_teardown(a_short_without_space_waits_above_the_transport, set_up,
                                    tear_down),
    cmocka_unit_test_setup_teardown(a_copy_for_endpoints_leaves_the_line_of_its_peer, set_up,
                                    tear_down),
    cmocka_unit_test_setup_teardown(all_transports_are_polled_and_reaped, set_up, tear_down),
    cmocka_unit_test_setup_teardown(regions_are_registered_with_all_or_none, set_up, tear_down),
    cmocka_unit_test_setup_teardown(all_report_and_close, set_up, tear_down),
    cmocka_unit_test_setup_teardown(neighbours_are_those_of_the_transport_that_shares_memory,
                                    set_up, tear_down),
    cmocka_unit_test_setup_teardown(groups_are_whole_or_absent, set_up, tear_down),
};

UNIT_MAIN(tests)
