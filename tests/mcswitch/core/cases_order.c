/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Corner cases 1 to 22: loss, repeats, order, wrap, flow control. The expectations are the promises
 * of the table's rows. */
#include "config.h"

#include "cases.h"

#include "packet/psn.h"

void case_begin(struct rig *r, uint32_t mask)
{
    rig_acquire(r, 0, SQ(0), mask);
    rig_expect_control(r, mask, 0);
    rig_all_acknowledge(r, mask, 0, 1);
    rig_expect_msn(r, 0, EVERY_ACK, SQ(0), 1);
    rig_expect_nothing(r);
}

void case_write(struct rig *r, uint32_t n)
{
    rig_write(r, 0, ROCE_WRITE_ONLY, SQ(n), 16 * n, 20);
}

void case_sent(struct rig *r)
{
    case_begin(r, OTHERS);
    case_write(r, 1);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 1);
}

/* By all, and the sender knows it. */
static void acknowledged(struct rig *r)
{
    case_sent(r);
    rig_all_acknowledge(r, OTHERS, 1, 2);
    rig_expect_answer(r, 0, EVERY_ACK, SQ(1));
}

static void finish_release(struct rig *r, uint32_t n)
{
    rig_release(r, 0, SQ(n));
    rig_expect_answer(r, 0, EVERY_ACK, SQ(n));
    rig_expect_nothing(r);
    RIG_CHECK(r, rig_view(r).holder == MCSW_NOBODY);
}

/* A broadcast of one write by sender 0, PSNs 0 to 2. */
static void broadcast(struct rig *r)
{
    case_sent(r);
    rig_all_acknowledge(r, OTHERS, 1, 2);
    rig_expect_msn(r, 0, EVERY_ACK, SQ(1), 2);
    rig_expect_nothing(r);
    finish_release(r, 2);
}

static void case_1(struct rig *r)
{
    case_write(r, 1);
    rig_expect_answer(r, 0, ROCE_NAK_SEQUENCE, SQ(0));
    case_write(r, 2);
    rig_release(r, 0, SQ(3));
    rig_expect_nothing(r);
    case_sent(r);
    rig_expect_nothing(r);
}

static void case_2(struct rig *r)
{
    rig_acquire(r, 0, SQ(0), OTHERS);
    rig_expect_control(r, OTHERS, 0);
    rig_response(r, 1, EVERY_ACK, RQ(1, 0), 1);
    rig_acquire(r, 0, SQ(0), OTHERS);
    rig_expect_control(r, 0xc, 0);
    rig_expect_nothing(r);
    rig_all_acknowledge(r, 0xc, 0, 1);
    rig_expect_answer(r, 0, EVERY_ACK, SQ(0));
    rig_acquire(r, 0, SQ(0), OTHERS);
    rig_expect_answer(r, 0, EVERY_ACK, SQ(0));
    rig_expect_nothing(r);
    RIG_CHECK(r, mcsw_counters(r->w)->controls == 1);
}

static void case_3(struct rig *r)
{
    rig_acquire(r, 1, rig_sq(r, 1, 0), 0xd);
    rig_expect_control(r, 0xd, 0);
    rig_acquire(r, 0, SQ(0), OTHERS);
    rig_expect_answer(r, 0, ROCE_SYNDROME_RNR | 10, SQ(0));
    case_write(r, 1);
    rig_release(r, 0, SQ(2));
    rig_expect_nothing(r);
}

static void case_4(struct rig *r)
{
    rig_acquire(r, 2, rig_sq(r, 2, 0), 3);
    rig_acquire(r, 0, SQ(0), OTHERS);
    rig_expect_control(r, 3, 0);
    rig_expect_answer(r, 0, ROCE_SYNDROME_RNR | 10, SQ(0));
    rig_expect_nothing(r);
    RIG_CHECK(r, rig_view(r).holder == 2);
}

static void case_5(struct rig *r)
{
    rig_acquire(r, 0, SQ(0), OTHERS);
    rig_expect_control(r, OTHERS, 0);
    case_write(r, 2);
    /* Not at the missing PSN: that would acknowledge the control, which no receiver has yet. */
    rig_expect_answer(r, 0, ROCE_NAK_SEQUENCE, SQ(0));
    case_write(r, 3);
    rig_expect_nothing(r);
    rig_all_acknowledge(r, OTHERS, 0, 1);
    rig_expect_answer(r, 0, EVERY_ACK, SQ(0));
    case_write(r, 1);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 1);
    case_write(r, 3);
    rig_expect_answer(r, 0, ROCE_NAK_SEQUENCE, SQ(1));
    rig_expect_nothing(r);
}

static void case_6(struct rig *r)
{
    case_begin(r, OTHERS);
    case_write(r, 1);
    case_write(r, 2);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 1);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 2);
    rig_all_acknowledge(r, 0xc, 2, 3);
    rig_response(r, 1, ROCE_NAK_SEQUENCE, RQ(1, 1), 1);
    rig_expect_answer(r, 0, ROCE_NAK_SEQUENCE, SQ(1));
    case_write(r, 1);
    case_write(r, 2);
    rig_expect_copies(r, 2, ROCE_WRITE_ONLY, 1);
    rig_expect_copies(r, 2, ROCE_WRITE_ONLY, 2);
    rig_expect_nothing(r);
    rig_response(r, 1, EVERY_ACK, RQ(1, 2), 3);
    rig_expect_answer(r, 0, EVERY_ACK, SQ(2));
    finish_release(r, 3);
}

static void case_7(struct rig *r)
{
    case_begin(r, OTHERS);
    case_write(r, 1);
    case_write(r, 2);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 1);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 2);
    rig_response(r, 1, ROCE_NAK_SEQUENCE, RQ(1, 1), 1);
    rig_response(r, 2, ROCE_NAK_SEQUENCE, RQ(2, 1), 1);
    rig_expect_answer(r, 0, ROCE_NAK_SEQUENCE, SQ(1));
    rig_expect_answer(r, 0, ROCE_NAK_SEQUENCE, SQ(1));
    rig_all_acknowledge(r, 6, 1, 2);
    rig_response(r, 3, ROCE_NAK_SEQUENCE, RQ(3, 2), 2);
    rig_expect_answer(r, 0, ROCE_NAK_SEQUENCE, SQ(2));
    rig_expect_nothing(r);
}

static void case_8(struct rig *r)
{
    case_begin(r, OTHERS);
    rig_write(r, 0, ROCE_WRITE_FIRST, SQ(1), 0, 256);
    rig_request(r, 0, ROCE_WRITE_MIDDLE, SQ(2), 256);
    rig_request(r, 0, ROCE_WRITE_LAST, SQ(3), 8);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_FIRST, 1);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_MIDDLE, 2);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_LAST, 3);
    rig_response(r, 2, ROCE_NAK_SEQUENCE, RQ(2, 2), 1);
    rig_all_acknowledge(r, 0xa, 3, 2);
    rig_expect_answer(r, 0, ROCE_NAK_SEQUENCE, SQ(1));
    rig_expect_answer(r, 0, EVERY_ACK, SQ(1));
    rig_request(r, 0, ROCE_WRITE_MIDDLE, SQ(2), 256);
    rig_request(r, 0, ROCE_WRITE_LAST, SQ(3), 8);
    rig_expect_copies(r, 4, ROCE_WRITE_MIDDLE, 2);
    rig_expect_copies(r, 4, ROCE_WRITE_LAST, 3);
    rig_expect_nothing(r);
    rig_response(r, 2, EVERY_ACK, RQ(2, 3), 2);
    rig_expect_msn(r, 0, EVERY_ACK, SQ(3), 2);
}

static void case_9(struct rig *r)
{
    case_begin(r, OTHERS);
    case_write(r, 1);
    case_write(r, 2);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 1);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 2);
    rig_all_acknowledge(r, 6, 1, 2);
    rig_all_acknowledge(r, OTHERS, 2, 3);
    rig_expect_msn(r, 0, EVERY_ACK, SQ(2), 3);
    rig_expect_nothing(r);
    case_write(r, 3);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 3);
    rig_all_acknowledge(r, 6, 3, 4);
    case_write(r, 3);
    rig_expect_copies(r, 8, ROCE_WRITE_ONLY, 3);
    rig_expect_nothing(r);
    rig_response(r, 3, EVERY_ACK, RQ(3, 3), 4);
    rig_expect_answer(r, 0, EVERY_ACK, SQ(3));
    rig_expect_nothing(r);
}

static void case_10(struct rig *r)
{
    acknowledged(r);
    case_write(r, 1);
    rig_expect_msn(r, 0, EVERY_ACK, SQ(1), 2);
    rig_expect_nothing(r);
}

static void case_11(struct rig *r)
{
    acknowledged(r);
    r->now += RIG_LATE * 1000;
    RIG_CHECK(r, rig_view(r).holder == 0);
    finish_release(r, 2);
}

static void case_12(struct rig *r)
{
    broadcast(r);
    rig_release(r, 0, SQ(2));
    rig_expect_msn(r, 0, EVERY_ACK, SQ(2), 3);
    rig_expect_nothing(r);
}

static void case_13(struct rig *r)
{
    broadcast(r);
    rig_acquire(r, 1, rig_sq(r, 1, 0), 0xd);
    rig_expect_control(r, 0xc, 2);
    rig_expect_control(r, 1, 0);
    rig_release(r, 0, SQ(2));
    rig_expect_msn(r, 0, EVERY_ACK, SQ(2), 3);
    rig_expect_nothing(r);
    RIG_CHECK(r, rig_view(r).holder == 1);
}

static void case_14(struct rig *r)
{
    broadcast(r);
    case_write(r, 1);
    rig_expect_answer(r, 0, EVERY_ACK, SQ(2));
    rig_expect_nothing(r);
}

static void case_15(struct rig *r)
{
    broadcast(r);
    rig_acquire(r, 0, SQ(3), 6);
    rig_expect_control(r, 6, 2);
    case_write(r, 1);
    rig_expect_msn(r, 0, EVERY_ACK, SQ(2), 3);
    rig_expect_nothing(r);
}

static void case_16(struct rig *r)
{
    case_sent(r);
    rig_response(r, 2, EVERY_ACK, RQ(2, 1), 2);
    case_write(r, 1);
    rig_expect_copies(r, 0xa, ROCE_WRITE_ONLY, 1);
    rig_expect_nothing(r);
    /* The receivers' next PSNs have not moved. */
    RIG_CHECK(r, rig_view(r).receiver[1].psn_out == RQ(1, 2));
    RIG_CHECK(r, rig_view(r).receiver[1].msn_out == 2);
}

static void case_17(struct rig *r)
{
    case_begin(r, OTHERS);
    case_write(r, 2);
    case_write(r, 1);
    rig_expect_answer(r, 0, ROCE_NAK_SEQUENCE, SQ(1));
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 1);
    rig_expect_nothing(r);
    case_write(r, 1);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 1);
    case_write(r, 2);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 2);
    rig_expect_nothing(r);
}

static void case_18(struct rig *r)
{
    case_begin(r, OTHERS);
    for (uint32_t n = 1; n < 8; n++) {
        case_write(r, n);
        rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, n);
    }
    rig_expect_nothing(r);
    rig_all_acknowledge(r, 6, 7, 8);
    rig_response(r, 3, ROCE_NAK_SEQUENCE, RQ(3, 4), 4);
    rig_expect_answer(r, 0, ROCE_NAK_SEQUENCE, SQ(4));
    case_write(r, 4);
    rig_expect_copies(r, 8, ROCE_WRITE_ONLY, 4);
    case_write(r, 3);
    rig_expect_answer(r, 0, EVERY_ACK, SQ(3));
    rig_response(r, 3, EVERY_ACK, RQ(3, 7), 8);
    rig_expect_answer(r, 0, EVERY_ACK, SQ(7));
    finish_release(r, 8);
}

/* Receivers whose count of messages is about to wrap: differences are modulo 2^24, so that has no
 * effect. */
static void case_19(struct rig *r)
{
    rig_acquire(r, 0, SQ(0), OTHERS);
    rig_expect_control(r, OTHERS, 0);
    rig_all_acknowledge(r, OTHERS, 0, 0xffffff);
    rig_expect_msn(r, 0, EVERY_ACK, SQ(0), 0xffffff);
    case_write(r, 1);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 1);
    rig_all_acknowledge(r, OTHERS, 1, 0);
    rig_expect_msn(r, 0, EVERY_ACK, SQ(1), 0);
    finish_release(r, 2);
}

static void case_20(struct rig *r)
{
    case_begin(r, OTHERS);
    rig_request(r, 0, ROCE_SEND_ONLY, SQ(1), 32);
    rig_expect_copies(r, OTHERS, ROCE_SEND_ONLY, 1);
    rig_all_acknowledge(r, 0xa, 1, 2);
    rig_response(r, 2, ROCE_SYNDROME_RNR | 14, RQ(2, 1), 1);
    rig_expect_answer(r, 0, ROCE_SYNDROME_RNR | 14, SQ(1));
    rig_request(r, 0, ROCE_SEND_ONLY, SQ(1), 32);
    rig_expect_copies(r, 4, ROCE_SEND_ONLY, 1);
    rig_expect_nothing(r);
}

static void case_21(struct rig *r)
{
    case_begin(r, OTHERS);
    rig_request(r, 0, ROCE_SEND_ONLY, SQ(1), 32);
    rig_request(r, 0, ROCE_SEND_ONLY, SQ(2), 32);
    rig_expect_copies(r, OTHERS, ROCE_SEND_ONLY, 1);
    rig_expect_copies(r, OTHERS, ROCE_SEND_ONLY, 2);
    rig_response(r, 2, EVERY_ACK, RQ(2, 1), 2);
    rig_response(r, 2, ROCE_SYNDROME_RNR | 5, RQ(2, 2), 2);
    rig_expect_msn(r, 0, ROCE_SYNDROME_RNR | 5, SQ(1), 1);
    rig_expect_nothing(r);
}

static void case_22(struct rig *r)
{
    case_begin(r, OTHERS);
    rig_request(r, 0, ROCE_SEND_ONLY, SQ(1), 32);
    rig_expect_copies(r, OTHERS, ROCE_SEND_ONLY, 1);
    rig_response(r, 1, ROCE_SYNDROME_RNR | 5, RQ(1, 1), 1);
    rig_expect_answer(r, 0, ROCE_SYNDROME_RNR | 5, SQ(1));
    rig_response(r, 3, ROCE_SYNDROME_RNR | 9, RQ(3, 1), 1);
    rig_expect_answer(r, 0, ROCE_SYNDROME_RNR | 9, SQ(1));
    rig_expect_nothing(r);
}

const struct mcsw_case cases_order[] = {
    {1, "ACQUIRE lost", case_1, {0}},
    {2, "ACQUIRE's ACK lost, the sender repeats it", case_2, {0}},
    {3, "ACQUIRE refused by RNR, data follows", case_3, {0}},
    {4, "two ACQUIREs at once", case_4, {0}},
    {5, "data lost before the switch", case_5, {0}},
    {6, "data lost to one receiver", case_6, {0}},
    {7, "data lost to several", case_7, {0}},
    {8, "copy lost inside the switch", case_8, {0}},
    {9, "receiver's ACK lost", case_9, {0}},
    {10, "aggregated ACK lost", case_10, {0}},
    {11, "RELEASE lost", case_11, {0}},
    {12, "ACK of RELEASE lost, nobody took the lock", case_12, {0}},
    {13, "ACK of RELEASE lost, another holds the lock now", case_13, {0}},
    {14, "old data packet after RELEASE", case_14, {0}},
    {15, "old data packet in the same sender's next epoch", case_15, {0}},
    {16, "duplicated packet in flight", case_16, {0}},
    {17, "reordered packets", case_17, {0}},
    {18, "PSN wrap in SQP, RQP, both", case_18, {.near_wrap = true}},
    {19, "MSN wrap", case_19, {0}},
    {20, "receiver without posted RECV", case_20, {0}},
    {21, "RNR NAK while others lag", case_21, {0}},
    {22, "two receivers RNR with different timers", case_22, {0}},
};
const unsigned cases_of_order = sizeof cases_order / sizeof cases_order[0];
