/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Corner cases 23 to 39: controls, refusals of receivers, invalid acknowledgements, the lease. */
#include "config.h"

#include "cases.h"

#include "packet/bytes.h"

/* The control is refused with this code, and changes nothing. */
static void refused(struct rig *r, const struct mcsw_control *c, uint8_t code)
{
    rig_control(r, 0, SQ(0), c);
    rig_expect_answer(r, 0, code, SQ(0));
    rig_expect_nothing(r);
    RIG_CHECK(r, rig_view(r).holder == MCSW_NOBODY);
    RIG_CHECK(r, rig_view(r).sender[0].epsn == SQ(0));
}

static void case_23(struct rig *r)
{
    struct mcsw_control c = rig_set(r, MCSW_ACQUIRE | MCSW_TOPOLOGY | MCSW_BITMAP, SQ(0), 0);

    refused(r, &c, ROCE_NAK_INVALID);
    c.flags = MCSW_ACQUIRE | MCSW_TOPOLOGY;
    refused(r, &c, ROCE_NAK_INVALID);
}

static void case_24(struct rig *r)
{
    case_begin(r, 0xf);
    case_write(r, 1);
    rig_expect_copies(r, 0xf, ROCE_WRITE_ONLY, 1);
    rig_expect_nothing(r);
    rig_all_acknowledge(r, OTHERS, 1, 2);
    rig_expect_nothing(r);
    rig_response(r, 0, EVERY_ACK, RQ(0, 1), 2);
    rig_expect_answer(r, 0, EVERY_ACK, SQ(1));
}

static void case_25(struct rig *r)
{
    static const struct mcsw_entry twice[] = {
        {RIG_GROUP << 8 | 1, 7, 0}, {RIG_GROUP << 8 | 2, 7, 0}, {RIG_GROUP << 8 | 1, 7, 0}};
    struct mcsw_control c = rig_set(r, MCSW_ACQUIRE | MCSW_TOPOLOGY | MCSW_ADDRESS, SQ(0), 0);

    c.links = 3;
    c.entries = twice;
    refused(r, &c, ROCE_NAK_INVALID);
}

/* The payload of a control with some bytes of it wrong. */
static void refused_bytes(struct rig *r, uint8_t *payload, uint32_t length)
{
    struct roce_frame f = rig_frame(r, 0, true);

    f.packet.opcode = ROCE_WRITE_ONLY;
    f.packet.psn = SQ(0);
    f.packet.va = MCSW_CONTROL_VA;
    f.packet.rkey = MCSW_CONTROL_RKEY;
    f.packet.dma_length = f.packet.payload_length = length;
    f.packet.payload = payload;
    rig_put(r, 0, &f);
    rig_expect_answer(r, 0, ROCE_NAK_INVALID, SQ(0));
    rig_expect_nothing(r);
    RIG_CHECK(r, rig_view(r).holder == MCSW_NOBODY);
}

static void case_26(struct rig *r)
{
    struct mcsw_entry entries[33];
    struct mcsw_control c = rig_set(r, MCSW_ACQUIRE | MCSW_TOPOLOGY, SQ(0), 0);
    uint8_t payload[MCSW_CONTROL_BYTES + sizeof entries];
    uint32_t length;

    for (unsigned i = 0; i < 33; i++)
        entries[i] = (struct mcsw_entry){mcsw_qpn(RIG_GROUP, i), 7, 0};
    c.links = 33;
    c.entries = entries;
    refused(r, &c, ROCE_NAK_INVALID);
    c.links = 2;
    length = (uint32_t)mcsw_control_build(&c, payload, sizeof payload);
    refused_bytes(r, payload, length - 4);
    refused_bytes(r, payload, 12);
    payload[0] ^= 1;
    refused_bytes(r, payload, length);
    payload[0] ^= 1;
    payload[2]++;
    refused_bytes(r, payload, length);
    payload[2]--;
    payload[3] |= 0x80;
    refused_bytes(r, payload, length);
}

static void case_27(struct rig *r)
{
    struct mcsw_control c = rig_set(r, MCSW_ACQUIRE | MCSW_TOPOLOGY | MCSW_BITMAP, SQ(1), OTHERS);

    refused(r, &c, ROCE_NAK_INVALID);
    c.psn = MCSW_UNCHECKED;
    rig_control(r, 0, SQ(0), &c);
    rig_expect_control(r, OTHERS, 0);
}

static void case_28(struct rig *r)
{
    struct mcsw_control c = rig_set(r, MCSW_TOPOLOGY | MCSW_BITMAP, SQ(2), 6);

    case_sent(r);
    rig_control(r, 0, SQ(2), &c);
    rig_expect_answer(r, 0, ROCE_SYNDROME_RNR | 10, SQ(1));
    rig_expect_nothing(r);
    rig_all_acknowledge(r, OTHERS, 1, 2);
    rig_expect_answer(r, 0, EVERY_ACK, SQ(1));
    rig_control(r, 0, SQ(2), &c);
    rig_expect_control(r, 6, 2);
    rig_expect_nothing(r);
    rig_write(r, 0, ROCE_WRITE_ONLY, SQ(3), 0, 8);
    rig_expect_copies(r, 6, ROCE_WRITE_ONLY, 3);
    rig_all_acknowledge(r, 6, 3, 4);
    rig_expect_msn(r, 0, EVERY_ACK, SQ(3), 4);
    rig_expect_nothing(r);
}

static void case_29(struct rig *r)
{
    case_begin(r, OTHERS);
    case_write(r, 1);
    case_write(r, 2);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 1);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 2);
    rig_response(r, 2, ROCE_NAK_ACCESS, RQ(2, 2), 2);
    rig_expect_answer(r, 0, ROCE_NAK_ACCESS, SQ(1));
    rig_expect_nothing(r);
    RIG_CHECK(r, rig_view(r).dirty == 4);
    RIG_CHECK(r, r->dirtied == 1);
}

static void case_30(struct rig *r)
{
    const struct rig_out *o;
    struct roce_frame f = rig_frame(r, 0, true);

    f.packet.psn = SQ(0);
    f.packet.opcode = ROCE_FETCH_ADD;
    rig_put(r, 0, &f);
    rig_expect_answer(r, 0, ROCE_NAK_INVALID, SQ(0));
    f.packet.opcode = ROCE_READ_REQUEST;
    f.packet.dma_length = MCSW_STATUS_BYTES;
    rig_put(r, 0, &f);
    rig_expect_answer(r, 0, ROCE_NAK_INVALID, SQ(0));
    rig_expect_nothing(r);
    f.packet.va = MCSW_CONTROL_VA;
    f.packet.rkey = MCSW_CONTROL_RKEY;
    for (unsigned i = 0; i < 2; i++) {
        rig_put(r, 0, &f);
        o = rig_expect(r, 0, ROCE_READ_RESPONSE_ONLY, SQ(0));
        if (!o)
            return;
        RIG_CHECK(r, o->f.packet.payload_length == MCSW_STATUS_BYTES);
        RIG_CHECK(r, roce_get16(o->f.packet.payload) == MCSW_MAGIC);
        RIG_CHECK(r, roce_get32(o->f.packet.payload + 4) == 77);
        RIG_CHECK(r, roce_get32(o->f.packet.payload + 8) == RIG_GROUP);
        RIG_CHECK(r, roce_get32(o->f.packet.payload + 28) == SQ(1));
        rig_expect_nothing(r);
    }
    rig_acquire(r, 0, SQ(1), OTHERS);
    rig_expect_control(r, OTHERS, 0);
    rig_expect_nothing(r);
}

static void case_31(struct rig *r)
{
    const struct rig_out *o;

    case_begin(r, 2);
    rig_write(r, 0, ROCE_WRITE_FIRST, SQ(1), 4096, 512);
    o = rig_expect(r, 1, ROCE_WRITE_FIRST, RQ(1, 1));
    RIG_CHECK(r, o && o->f.packet.va == r->receiver[1].base + 4096);
    RIG_CHECK(r, o && o->f.packet.rkey == r->receiver[1].rkey);
    RIG_CHECK(r, o && o->f.packet.dma_length == 512 && !o->f.packet.ack_request);
    rig_request(r, 0, ROCE_WRITE_LAST, SQ(2), 256);
    o = rig_expect(r, 1, ROCE_WRITE_LAST, RQ(1, 2));
    RIG_CHECK(r, o && o->f.packet.payload_length == 256);
    RIG_CHECK(r, o && o->f.packet.payload[1] == (uint8_t)(SQ(2) * 7 + 1));
    rig_expect_nothing(r);
    rig_response(r, 1, EVERY_ACK, RQ(1, 2), 2);
    rig_expect_msn(r, 0, EVERY_ACK, SQ(2), 2);
    rig_expect_nothing(r);
}

static void case_32(struct rig *r)
{
    case_begin(r, OTHERS);
    rig_write(r, 0, ROCE_WRITE_ONLY, SQ(1), 0, 0);
    rig_expect_control(r, OTHERS, 1);
    rig_expect_nothing(r);
    rig_all_acknowledge(r, OTHERS, 1, 2);
    rig_expect_answer(r, 0, EVERY_ACK, SQ(1));
}

/* Groups of several MTUs are refused by the controller: a packet leaves in one piece, however long
 * it is. */
static void case_33(struct rig *r)
{
    const struct rig_out *o;

    case_begin(r, 2);
    rig_write(r, 0, ROCE_WRITE_ONLY, SQ(1), 0, 4096);
    o = rig_expect(r, 1, ROCE_WRITE_ONLY, RQ(1, 1));
    RIG_CHECK(r, o && o->f.packet.payload_length == 4096);
    rig_expect_nothing(r);
}

static void case_34(struct rig *r)
{
    uint64_t before;

    case_begin(r, OTHERS);
    before = mcsw_counters(r->w)->drop_future;
    rig_all_acknowledge(r, OTHERS, 1, 2);
    rig_response(r, 1, ROCE_NAK_SEQUENCE, RQ(1, 2), 2);
    rig_expect_nothing(r);
    RIG_CHECK(r, mcsw_counters(r->w)->drop_future == before + 4);
    case_write(r, 1);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 1);
    rig_release(r, 0, SQ(2));
    /* Receivers must not acknowledge the RELEASE. */
    rig_all_acknowledge(r, OTHERS, 2, 3);
    rig_expect_nothing(r);
    rig_all_acknowledge(r, OTHERS, 1, 2);
    rig_expect_msn(r, 0, EVERY_ACK, SQ(2), 3);
    rig_expect_nothing(r);
}

static void case_35(struct rig *r)
{
    uint64_t before;

    rig_acquire(r, 0, SQ(0), 6);
    rig_expect_control(r, 6, 0);
    before = mcsw_counters(r->w)->drop_version;
    rig_response(r, 3, EVERY_ACK, RQ(3, 0), 1);
    rig_response(r, 3, ROCE_NAK_SEQUENCE, RQ(3, 0), 0);
    rig_expect_nothing(r);
    RIG_CHECK(r, mcsw_counters(r->w)->drop_version == before + 2);
}

static void case_36(struct rig *r)
{
    rig_acquire(r, 0, SQ(0x200000), OTHERS);
    rig_expect_answer(r, 0, ROCE_NAK_SEQUENCE, SQ(0));
    rig_acquire(r, 0, SQ(0x200000), OTHERS);
    rig_expect_nothing(r);
    RIG_CHECK(r, rig_view(r).holder == MCSW_NOBODY);
}

/* Sender 0 is silent for longer than the lease after a write that receiver 3 has not acknowledged.
 */
static void steal(struct rig *r)
{
    case_sent(r);
    rig_all_acknowledge(r, 6, 1, 2);
    rig_acquire(r, 1, rig_sq(r, 1, 0), 5);
    rig_expect_answer(r, 1, ROCE_SYNDROME_RNR | 10, rig_sq(r, 1, 0));
    r->now += 1200000;
    rig_acquire(r, 1, rig_sq(r, 1, 0), 5);
    rig_expect_control(r, 1, 0);
    rig_expect_control(r, 4, 2);
    rig_expect_nothing(r);
}

static void case_37(struct rig *r)
{
    steal(r);
    RIG_CHECK(r, rig_view(r).holder == 1);
    RIG_CHECK(r, rig_view(r).dirty == 8);
    RIG_CHECK(r, r->fenced == 1 && r->dirtied == 1);
    RIG_CHECK(r, rig_view(r).sender[0].epsn == SQ(1));
}

static void case_38(struct rig *r)
{
    steal(r);
    case_write(r, 1);
    rig_expect_answer(r, 0, ROCE_NAK_OPERATION, SQ(1));
    rig_release(r, 0, SQ(2));
    rig_expect_answer(r, 0, ROCE_NAK_OPERATION, SQ(1));
    rig_acquire(r, 0, SQ(1), OTHERS);
    rig_expect_answer(r, 0, ROCE_NAK_OPERATION, SQ(1));
    rig_expect_nothing(r);
    RIG_CHECK(r, rig_view(r).holder == 1);
}

static void case_39(struct rig *r)
{
    static const struct mcsw_entry foreign[] = {{(RIG_GROUP - 1) << 8 | 1, 7, 0}};
    struct mcsw_control c = rig_set(r, MCSW_ACQUIRE | MCSW_TOPOLOGY | MCSW_BITMAP, SQ(0), OTHERS);

    c.key ^= 1;
    refused(r, &c, ROCE_NAK_ACCESS);
    c = rig_set(r, MCSW_ACQUIRE | MCSW_TOPOLOGY | MCSW_ADDRESS, SQ(0), 0);
    c.links = 1;
    c.entries = foreign;
    refused(r, &c, ROCE_NAK_ACCESS);
}

const struct mcsw_case cases_control[] = {
    {23, "empty set", case_23, {0}},
    {24, "set contains the root", case_24, {0}},
    {25, "rank listed twice", case_25, {0}},
    {26, "too many links, truncated list, bad magic", case_26, {0}},
    {27, "the control's PSN field is not its PSN + 1", case_27, {0}},
    {28, "TOPOLOGY with unacknowledged data", case_28, {0}},
    {29, "WRITE beyond the receiver's region", case_29, {0}},
    {30, "READ or ATOMIC; the status read", case_30, {0}},
    {31, "WRITE of several packets", case_31, {0}},
    {32, "zero-length WRITE as user data", case_32, {0}},
    {33, "different path MTU of a receiver", case_33, {0}},
    {34, "ACK for a PSN not yet sent", case_34, {0}},
    {35, "ACK of an unlinked receiver", case_35, {0}},
    {36, "SQP reconnected without the controller", case_36, {0}},
    {37, "holder silent but alive", case_37, {0}},
    {38, "sleeper wakes after a theft", case_38, {0}},
    {39, "group key wrong", case_39, {0}},
};
const unsigned cases_of_control = sizeof cases_control / sizeof cases_control[0];
