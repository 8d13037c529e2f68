/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Cases beyond the corner cases: the checker of strict mode, races between recirculating packets,
 * leaves, the control plane. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cases.h"
#include "core/egress.h"
#include "core/ingress.h"
#include "packet/psn.h"

static struct rig one, *r = &one;

static void open_rig(struct rig_options o)
{
    rig_open(r, &o);
}

static void close_rig(void)
{
    rig_close(r);
    assert_int_equal(r->failures, 0);
    assert_int_equal(r->violations, 0);
}

/* ---- the checker ---- */

static void complains(unsigned *before)
{
    assert_int_equal(r->violations, *before + 1);
    *before = r->violations;
}

static void checker_sees_what_a_pipeline_cannot(void **state)
{
    struct pair cell = {0, 0};
    unsigned before = 0;

    open_rig((struct rig_options){.mode = MCSW_STRICT});
    r->w->touched = r->w->stage = 0;
    mcsw_read(r->w, REG_HOLD, &cell);
    mcsw_read(r->w, REG_AGG, &cell);
    assert_int_equal(r->violations, 0);
    mcsw_read(r->w, REG_AGG, &cell);
    complains(&before);
    mcsw_read(r->w, REG_TOPO, &cell);
    complains(&before);
    mcsw_access(r->w, REG_EPSN, &cell, (struct program){.lo = {SET, false, {2, 0, 0}, 0}});
    complains(&before);
    r->violations = 0;
    close_rig();
}

/* ---- races ---- */

static void pass_all(void)
{
    while (mcsw_pass(r->w, r->now))
        continue;
}

/* The second control was decided before the first had taken the lock; a refusal at its next PSN
 * would acknowledge the control. */
static void control_twice_within_a_pass(void **state)
{
    open_rig((struct rig_options){.mode = MCSW_STRICT, .deferred = true});
    rig_acquire(r, 0, SQ(0), OTHERS);
    rig_acquire(r, 0, SQ(0), OTHERS);
    pass_all();
    rig_expect_control(r, OTHERS, 0);
    rig_expect_nothing(r);
    assert_int_equal(mcsw_counters(r->w)->controls, 1);
    close_rig();
}

static void two_locks_within_a_pass(void **state)
{
    open_rig((struct rig_options){.mode = MCSW_STRICT, .deferred = true});
    rig_acquire(r, 0, SQ(0), OTHERS);
    rig_acquire(r, 1, rig_sq(r, 1, 0), 0xd);
    pass_all();
    rig_expect_control(r, OTHERS, 0);
    rig_expect_answer(r, 1, ROCE_SYNDROME_RNR | 10, rig_sq(r, 1, 0));
    rig_expect_nothing(r);
    assert_int_equal(rig_view(r).holder, 0);
    close_rig();
}

/* Its set ended and the next one was linked before the scan ended. */
static void old_scan_leaves_the_new_set_alone(void **state)
{
    struct egress *e;
    struct work k = {.b = {.pass = PASS_PUBLISH, .group = RIG_GROUP, .best = 1}};

    open_rig((struct rig_options){.mode = MCSW_STRICT});
    case_begin(r, 2);
    k.b.version = rig_view(r).version;
    rig_release(r, 0, SQ(1));
    rig_expect_answer(r, 0, EVERY_ACK, SQ(1));
    rig_acquire(r, 0, SQ(2), 4);
    rig_expect_control(r, 4, 0);
    e = mcsw_egress(r->w, mcsw_group(r->w, RIG_GROUP));
    r->w->touched = r->w->stage = 0;
    assert_false(mcsw_pass_publish(r->w, mcsw_group(r->w, RIG_GROUP), &k));
    assert_int_equal(e->minh.lo, 2);
    rig_response(r, 2, EVERY_ACK, RQ(2, 0), 1);
    rig_expect_answer(r, 0, EVERY_ACK, SQ(2));
    rig_expect_nothing(r);
    close_rig();
}

/* The pass that verifies finds an acknowledgement that came between a scan's reading and its
 * publication. */
static void scan_verifies(void **state)
{
    open_rig((struct rig_options){.mode = MCSW_STRICT, .deferred = true});
    rig_acquire(r, 0, SQ(0), 6);
    pass_all();
    rig_expect_control(r, 6, 0);
    rig_response(r, 1, EVERY_ACK, RQ(1, 0), 1); /* the holder of the minimum: a scan begins */
    mcsw_pass(r->w, r->now);
    mcsw_pass(r->w, r->now);                    /* both are read: the minimum is that of 2 */
    rig_response(r, 2, EVERY_ACK, RQ(2, 0), 1); /* not yet the holder: no scan */
    pass_all();
    rig_expect_answer(r, 0, EVERY_ACK, SQ(0));
    rig_expect_nothing(r);
    close_rig();
}

/* The release is complete, but its second pass is still to come: later packets must not go to the
 * receivers. */
static void data_behind_a_release(void **state)
{
    open_rig((struct rig_options){.mode = MCSW_STRICT, .deferred = true});
    rig_acquire(r, 0, SQ(0), 2);
    pass_all();
    rig_expect_control(r, 2, 0);
    rig_release(r, 0, SQ(1));
    pass_all();
    rig_response(r, 1, EVERY_ACK, RQ(1, 0), 1);
    while (!(mcsw_ingress(r->w, mcsw_group(r->w, RIG_GROUP))->rel.hi == UNLOCKING))
        assert_true(mcsw_pass(r->w, r->now));
    case_write(r, 2);
    rig_expect_answer(r, 0, ROCE_SYNDROME_RNR | 10, SQ(1));
    rig_expect_nothing(r);
    pass_all();
    rig_expect_msn(r, 0, EVERY_ACK, SQ(1), 2);
    rig_expect_nothing(r);
    close_rig();
}

/* The pass that unlocks finds no space: the repeated release causes another. */
static void unlock_that_was_lost(void **state)
{
    open_rig((struct rig_options){.mode = MCSW_STRICT, .deferred = true});
    rig_acquire(r, 0, SQ(0), 2);
    pass_all();
    rig_expect_control(r, 2, 0);
    rig_response(r, 1, EVERY_ACK, RQ(1, 0), 1);
    pass_all();
    rig_expect_answer(r, 0, EVERY_ACK, SQ(0));
    rig_release(r, 0, SQ(1));
    mcsw_pass(r->w, r->now);
    r->w->used = 0;
    assert_int_equal(rig_view(r).holder, 0);
    rig_release(r, 0, SQ(1));
    pass_all();
    rig_expect_msn(r, 0, EVERY_ACK, SQ(1), 2);
    rig_expect_nothing(r);
    assert_int_equal(rig_view(r).holder, MCSW_NOBODY);
    close_rig();
}

static void full_queue_drops(void **state)
{
    open_rig((struct rig_options){.mode = MCSW_STRICT, .deferred = true});
    for (unsigned i = 0; i < 70; i++)
        rig_acquire(r, 0, SQ(0), OTHERS);
    assert_int_equal(mcsw_counters(r->w)->drop_full, 6);
    pass_all();
    rig_expect_control(r, OTHERS, 0);
    rig_expect_nothing(r);
    close_rig();
}

/* ---- levels ---- */

static void control_for_a_leaf(void **state)
{
    struct mcsw_control leaf = rig_set(r, MCSW_TOPOLOGY | MCSW_BITMAP, 0, 5), c;
    struct mcsw_entry entry = {mcsw_qpn(RIG_GROUP, 2), MCSW_CONTROL_BYTES,
                               MCSW_CONTROL_BYTES + MCSW_ENTRY_BYTES};
    uint8_t payload[256], section[MCSW_CONTROL_BYTES];
    const struct rig_out *o;
    struct roce_frame f;

    open_rig((struct rig_options){0});
    c = rig_set(r, MCSW_ACQUIRE | MCSW_TOPOLOGY | MCSW_SECTIONS, SQ(0), 0);
    c.links = 1;
    c.entries = &entry;
    leaf.psn = MCSW_UNCHECKED;
    mcsw_control_build(&c, payload, sizeof payload);
    mcsw_control_build(&leaf, section, sizeof section);
    memcpy(payload + entry.va, section, sizeof section);
    f = rig_frame(r, 0, true);
    f.packet.opcode = ROCE_WRITE_ONLY;
    f.packet.psn = SQ(0);
    f.packet.va = MCSW_CONTROL_VA;
    f.packet.rkey = MCSW_CONTROL_RKEY;
    f.packet.payload = payload;
    f.packet.payload_length = f.packet.dma_length = (uint32_t)entry.va + sizeof section;
    rig_put(r, 0, &f);
    o = rig_expect(r, 2, ROCE_WRITE_ONLY, RQ(2, 0));
    assert_non_null(o);
    assert_true(o->f.packet.rkey == MCSW_CONTROL_RKEY && o->f.packet.va == MCSW_CONTROL_VA);
    assert_int_equal(o->f.packet.payload_length, sizeof section);
    assert_memory_equal(o->f.packet.payload, section, sizeof section);
    /* A section that leaves the packet. */
    rig_expect_nothing(r);
    entry.va += 4;
    mcsw_control_build(&c, payload, sizeof payload);
    f.packet.psn = rig_sq(r, 1, 0);
    f.packet.dest_qpn = mcsw_qpn(RIG_GROUP, 1);
    memcpy(f.source, r->sender[1].ip, 16);
    payload[16] = payload[17] = payload[18] = payload[19] = 0xff;
    rig_put(r, 1, &f);
    rig_expect_answer(r, 1, ROCE_NAK_INVALID, rig_sq(r, 1, 0));
    rig_expect_nothing(r);
    close_rig();
}

static void leaf_is_held_for_ever(void **state)
{
    struct mcsw_group_config g = {.key = RIG_KEY, .ip_version = 4, .senders = 1, .leaf = true};
    struct mcsw_control c;

    open_rig((struct rig_options){0});
    mcsw_destroy(r->w, RIG_GROUP);
    g.receivers = 4;
    g.sender = r->sender;
    g.receiver = r->receiver;
    assert_true(mcsw_create(r->w, RIG_GROUP, &g));
    assert_int_equal(rig_view(r).holder, 0);
    case_write(r, 0);
    rig_expect_answer(r, 0, ROCE_NAK_INVALID, SQ(0));
    c = rig_set(r, MCSW_TOPOLOGY | MCSW_BITMAP, SQ(0), 5);
    rig_control(r, 0, SQ(0), &c);
    rig_expect_control(r, 5, 0);
    case_write(r, 1);
    rig_expect_copies(r, 5, ROCE_WRITE_ONLY, 1);
    rig_release(r, 0, SQ(2));
    rig_expect_answer(r, 0, ROCE_NAK_INVALID, SQ(0));
    rig_all_acknowledge(r, 5, 1, 2);
    rig_expect_answer(r, 0, EVERY_ACK, SQ(1));
    r->now += 10000000;
    c = rig_set(r, MCSW_TOPOLOGY | MCSW_BITMAP, SQ(2), 2);
    rig_control(r, 0, SQ(2), &c);
    rig_expect_control(r, 2, 0);
    rig_expect_nothing(r);
    close_rig();
}

/* ---- the control plane ---- */

static void dirty_waits_for_its_repair(void **state)
{
    struct mcsw_receiver v;

    open_rig((struct rig_options){0});
    assert_true(mcsw_mark(r->w, RIG_GROUP, 2));
    rig_acquire(r, 0, SQ(0), OTHERS);
    rig_expect_answer(r, 0, ROCE_SYNDROME_RNR | 10, SQ(0));
    rig_expect_nothing(r);
    v = r->receiver[2];
    v.psn = r->receiver[2].psn += 1 << 22;
    v.qpn = r->receiver[2].qpn = 0x999;
    assert_true(mcsw_repair(r->w, RIG_GROUP, 2, &v));
    rig_acquire(r, 0, SQ(0), OTHERS);
    rig_expect_control(r, OTHERS, 0);
    rig_expect_nothing(r);
    close_rig();
}

static void holder_that_registers_again_gives_up_the_lock(void **state)
{
    struct mcsw_sender s;

    open_rig((struct rig_options){0});
    case_sent(r);
    rig_response(r, 1, EVERY_ACK, RQ(1, 1), 2);
    s = r->sender[0];
    s.psn = r->sender[0].psn = 0x777000;
    assert_true(mcsw_register(r->w, RIG_GROUP, 0, &s));
    assert_int_equal(rig_view(r).holder, MCSW_NOBODY);
    assert_int_equal(rig_view(r).dirty, 0xc);
    rig_all_acknowledge(r, 0xc, 1, 2);
    rig_expect_nothing(r);
    rig_acquire(r, 0, SQ(0), 2);
    rig_expect(r, 1, ROCE_WRITE_ONLY, RQ(1, 2));
    rig_expect_nothing(r);
    close_rig();
}

static void members_that_left_are_foreign(void **state)
{
    uint64_t before;

    open_rig((struct rig_options){0});
    case_begin(r, OTHERS);
    assert_true(mcsw_remove(r->w, RIG_GROUP, 0));
    assert_int_equal(rig_view(r).holder, MCSW_NOBODY);
    before = mcsw_counters(r->w)->drop_stranger;
    case_write(r, 1);
    rig_expect_nothing(r);
    assert_int_equal(mcsw_counters(r->w)->drop_stranger, before + 1);
    assert_true(mcsw_destroy(r->w, RIG_GROUP));
    assert_false(mcsw_destroy(r->w, RIG_GROUP));
    rig_acquire(r, 1, rig_sq(r, 1, 0), 4);
    rig_expect_nothing(r);
    close_rig();
}

static void refuses_what_it_cannot_be(void **state)
{
    struct mcsw_config c;
    struct mcsw_group_config g = {.ip_version = 4, .senders = 4, .receivers = 4};

    open_rig((struct rig_options){0});
    c = r->config;
    c.groups = 0;
    assert_int_equal(mcsw_bytes(&c), 0);
    c = r->config;
    c.senders = 255;
    assert_int_equal(mcsw_bytes(&c), 0);
    c = r->config;
    c.deferred = true;
    assert_int_equal(mcsw_bytes(&c), 0);
    g.sender = r->sender;
    g.receiver = r->receiver;
    assert_false(mcsw_create(r->w, RIG_GROUP, &g));
    assert_false(mcsw_create(r->w, RIG_GROUP + 1, &g));
    g.receivers = 33;
    assert_false(mcsw_create(r->w, 1, &g));
    g.receivers = 4;
    r->receiver[1].rkey = MCSW_CONTROL_RKEY;
    assert_false(mcsw_create(r->w, 1, &g));
    r->receiver[1].rkey = 1;
    assert_true(mcsw_create(r->w, 1, &g));
    close_rig();
}

/* Copies of the next write have this base and key at each member. */
static void memory_is_at(struct rig *rig, uint64_t base, uint32_t rkey)
{
    for (unsigned m = 0; m < rig->o.members; m++) {
        rig->receiver[m].base = base + m * UINT64_C(0x100000000);
        rig->receiver[m].rkey = rkey + m;
    }
}

/* A message to the window and one to the other memory, in turn and without a control in between. */
static void window_in(enum mcsw_mode mode)
{
    struct mcsw_receiver usual[RIG_MEMBERS];

    open_rig((struct rig_options){.mode = mode});
    memcpy(usual, r->receiver, sizeof usual);
    case_begin(r, OTHERS);
    memory_is_at(r, UINT64_C(0x7000000000000), 0x7000);
    for (unsigned m = 0; m < r->o.members; m++)
        assert_true(mcsw_set_window(r->w, RIG_GROUP, m, r->receiver[m].base, r->receiver[m].rkey));
    r->write_rkey = MCSW_WINDOW_RKEY;
    rig_write(r, 0, ROCE_WRITE_FIRST, SQ(1), 64, 2048);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_FIRST, 1);
    rig_request(r, 0, ROCE_WRITE_LAST, SQ(2), 1024);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_LAST, 2);
    memcpy(r->receiver, usual, sizeof usual);
    r->write_rkey = 0;
    case_write(r, 3);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 3);
    rig_expect_nothing(r);
    assert_false(mcsw_set_window(r->w, RIG_GROUP, 1, 0, MCSW_CONTROL_RKEY));
    assert_false(mcsw_set_window(r->w, RIG_GROUP, r->o.members, 0, 1));
    close_rig();
}

static void window_is_memory_of_its_own(void **state)
{
    window_in(MCSW_FAST);
    window_in(MCSW_STRICT);
}

/* So that a leaf can distinguish the two parts of memory. */
static void window_that_is_not_set_keeps_its_key(void **state)
{
    const struct rig_out *o;

    open_rig((struct rig_options){0});
    case_begin(r, 2);
    r->write_rkey = MCSW_WINDOW_RKEY;
    rig_write(r, 0, ROCE_WRITE_ONLY, SQ(1), 640, 16);
    o = rig_expect(r, 1, ROCE_WRITE_ONLY, RQ(1, 1));
    assert_non_null(o);
    assert_true(o->f.packet.rkey == MCSW_WINDOW_RKEY && o->f.packet.va == 640);
    rig_expect_nothing(r);
    close_rig();
}

/* A copy of the object's bytes is a working switch; tests rely on it to go back. */
static void copy_of_the_bytes_is_a_switch(void **state)
{
    struct mcsw *kept, *first;

    open_rig((struct rig_options){0});
    case_begin(r, OTHERS);
    kept = malloc(mcsw_bytes(&r->config));
    memcpy(kept, r->w, mcsw_bytes(&r->config));
    case_write(r, 1);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 1);
    first = r->w;
    r->w = kept;
    case_write(r, 1);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 1);
    rig_expect_nothing(r);
    free(first);
    close_rig();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(checker_sees_what_a_pipeline_cannot),
        cmocka_unit_test(control_twice_within_a_pass),
        cmocka_unit_test(two_locks_within_a_pass),
        cmocka_unit_test(old_scan_leaves_the_new_set_alone),
        cmocka_unit_test(scan_verifies),
        cmocka_unit_test(data_behind_a_release),
        cmocka_unit_test(unlock_that_was_lost),
        cmocka_unit_test(full_queue_drops),
        cmocka_unit_test(control_for_a_leaf),
        cmocka_unit_test(leaf_is_held_for_ever),
        cmocka_unit_test(dirty_waits_for_its_repair),
        cmocka_unit_test(holder_that_registers_again_gives_up_the_lock),
        cmocka_unit_test(members_that_left_are_foreign),
        cmocka_unit_test(refuses_what_it_cannot_be),
        cmocka_unit_test(window_is_memory_of_its_own),
        cmocka_unit_test(window_that_is_not_set_keeps_its_key),
        cmocka_unit_test(copy_of_the_bytes_is_a_switch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
