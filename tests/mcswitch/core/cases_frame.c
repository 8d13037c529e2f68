/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Corner cases 40 to 45: the frames around the packets, congestion, neighbours. */
#include "config.h"

#include "cases.h"

#include <string.h>

#include "packet/bytes.h"

enum { at_ip = 14, ip_bytes = 20 };

static size_t write_frame(const struct rig *r, uint32_t n, uint8_t *bytes)
{
    static const uint8_t payload[20] = "twenty bytes of data";
    struct roce_frame f = rig_frame(r, 0, true);

    f.packet.opcode = ROCE_WRITE_ONLY;
    f.packet.psn = SQ(n);
    f.packet.rkey = 1;
    f.packet.dma_length = f.packet.payload_length = sizeof payload;
    f.packet.payload = payload;
    return roce_frame_build(&f, bytes, ROCE_FRAME_MAX);
}

static void fix_checksum(uint8_t *ip, size_t bytes)
{
    uint32_t sum = 0;

    roce_put16(ip + 10, 0);
    for (size_t i = 0; i < bytes; i += 2)
        sum += roce_get16(ip + i);
    sum = (sum & 0xffff) + (sum >> 16);
    roce_put16(ip + 10, (uint16_t) ~(sum + (sum >> 16)));
}

/* All frames of this case have one tag; the frames below must be ignored. */
static void case_40(struct rig *r)
{
    uint8_t bytes[ROCE_FRAME_MAX], other[ROCE_FRAME_MAX];
    size_t length, tag = 18;
    uint64_t before;

    case_begin(r, OTHERS);
    length = write_frame(r, 1, bytes);
    before = mcsw_counters(r->w)->drop_form;
    /* Four bytes of options. */
    memcpy(other, bytes, tag + ip_bytes);
    memset(other + tag + ip_bytes, 1, 4);
    memcpy(other + tag + ip_bytes + 4, bytes + tag + ip_bytes, length - tag - ip_bytes);
    other[tag] = 0x46;
    roce_put16(other + tag + 2, (uint16_t)(roce_get16(bytes + tag + 2) + 4));
    fix_checksum(other + tag, 24);
    rig_put_bytes(r, 0, other, length + 4);
    /* A first fragment. */
    memcpy(other, bytes, length);
    other[tag + 6] = 0x20;
    fix_checksum(other + tag, ip_bytes);
    rig_put_bytes(r, 0, other, length);
    /* A second tag. */
    memcpy(other, bytes, at_ip - 2);
    roce_put32(other + at_ip - 2, 0x81000007);
    memcpy(other + at_ip + 2, bytes + at_ip - 2, length - at_ip + 2);
    rig_put_bytes(r, 0, other, length + 4);
    rig_expect_nothing(r);
    RIG_CHECK(r, mcsw_counters(r->w)->drop_form == before + 3);
    rig_put_bytes(r, 0, bytes, length);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 1);
    rig_expect_nothing(r);
}

static void case_41(struct rig *r)
{
    uint8_t bytes[ROCE_FRAME_MAX];
    size_t length;

    case_begin(r, OTHERS);
    length = write_frame(r, 1, bytes);
    bytes[length - 6] ^= 0x10; /* in the payload */
    rig_put_bytes(r, 0, bytes, length);
    if (!r->o.believe_icrc) {
        rig_expect_nothing(r);
        RIG_CHECK(r, mcsw_counters(r->w)->drop_icrc == 1);
        RIG_CHECK(r, rig_view(r).sender[0].epsn == SQ(1));
        return;
    }
    for (unsigned m = 1; m < 4; m++) {
        const struct rig_out *o = rig_expect(r, m, ROCE_WRITE_ONLY, RQ(m, 1));

        RIG_CHECK(r, o && o->verdict == ROCE_BAD_ICRC);
    }
    rig_expect_nothing(r);
}

static void case_42(struct rig *r)
{
    case_begin(r, OTHERS);
    rig_congestion(r, 2);
    rig_expect(r, 0, ROCE_CNP, 0);
    rig_congestion(r, 1);
    rig_congestion(r, 2);
    rig_expect_nothing(r);
    r->now += 60000;
    rig_congestion(r, 3);
    rig_expect(r, 0, ROCE_CNP, 0);
    rig_expect_nothing(r);
    RIG_CHECK(r, mcsw_counters(r->w)->drop_cnp == 2);
}

/* Pause frames end at the port of a switch; the pipeline ignores them. */
static void case_43(struct rig *r)
{
    static const uint8_t pause[60] = {1, 0x80, 0xc2, 0,    0, 1, 2, 0, 0,
                                      0, 0,    2,    0x88, 8, 1, 1, 0, 2};

    case_begin(r, OTHERS);
    rig_put_bytes(r, 1, pause, sizeof pause);
    rig_expect_nothing(r);
    case_write(r, 1);
    rig_expect_copies(r, OTHERS, ROCE_WRITE_ONLY, 1);
}

static void ask(struct rig *r, uint8_t last)
{
    uint8_t arp[60] = {[12] = 8, 6, 0, 1, 8, 0, 6, 4, 0, 1};

    memset(arp, 0xff, 6);
    memcpy(arp + 6, r->sender[2].mac, 6);
    memcpy(arp + 22, r->sender[2].mac, 6);
    memcpy(arp + 28, r->sender[2].ip, 4);
    memcpy(arp + 38, (uint8_t[]){10, 0, 0, last}, 4);
    rig_put_bytes(r, 2, arp, sizeof arp);
}

static void case_44(struct rig *r)
{
    ask(r, 1);
    RIG_CHECK(r, r->outs == 0);
    for (uint8_t last = 200; last < 202; last++) {
        struct rig_out *o = &r->out[r->outs];

        ask(r, last);
        RIG_CHECK(r, r->outs == last - 199u && o->port == 2 && o->length >= 42);
        RIG_CHECK(r, memcmp(o->bytes, r->sender[2].mac, 6) == 0);
        RIG_CHECK(r, o->bytes[21] == 2 && memcmp(o->bytes + 22, r->config.mac, 6) == 0);
        RIG_CHECK(r, o->bytes[31] == last && memcmp(o->bytes + 38, r->sender[2].ip, 4) == 0);
        o->matched = true;
    }
    rig_expect_nothing(r);
}

static void case_45(struct rig *r)
{
    case_begin(r, OTHERS);
    rig_release(r, 0, SQ(1));
    rig_expect_msn(r, 0, EVERY_ACK, SQ(1), 2);
    rig_expect_nothing(r);
    RIG_CHECK(r, rig_view(r).holder == MCSW_NOBODY);
}

const struct mcsw_case cases_frame[] = {
    {40, "IP options, fragments, VLAN", case_40, {.vlan = 5}},
    {41, "ICRC wrong at the switch", case_41, {0}},
    {42, "ECN-marked copy", case_42, {0}},
    {43, "PFC or pause on one receiver's port", case_43, {0}},
    {44, "ARP for the switch's addresses", case_44, {0}},
    {45, "RELEASE with nothing sent", case_45, {0}},
};
const unsigned cases_of_frame = sizeof cases_frame / sizeof cases_frame[0];
