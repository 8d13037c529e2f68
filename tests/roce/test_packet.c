/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Packets: headers by operation code, sequence numbers, the CRC by every way, the ICRC's rule
 * against frames that the kernel made, rewriting, and captures. Single-threaded. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "frames.h"
#include "packet/bytes.h"
#include "packet/crc.h"
#include "packet/icrc.h"
#include "packet/psn.h"

enum { buffer_bytes = ROCE_FRAME_MAX };

static uint64_t state = 88172645463325252;

static uint32_t some(uint32_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32) % limit;
}

static void fill(uint8_t *b, size_t n)
{
    while (n--)
        *b++ = (uint8_t)some(256);
}

/* ---- numbers ---- */

static void sequence_numbers_wrap(void **unused)
{
    assert_int_equal(roce_psn_add(0xffffff, 2), 1);
    assert_int_equal(roce_psn_diff(1, 0xffffff), 2);
    assert_int_equal(roce_psn_diff(0xffffff, 1), -2);
    assert_int_equal(roce_psn_diff(0x7fffff, 0), 0x7fffff);
    assert_int_equal(roce_psn_diff(0x800000, 0), -0x800000);
    assert_true(roce_psn_within(2, 0xfffffe, 5));
    assert_false(roce_psn_within(3, 0xfffffe, 5));
}

/* Bytes from the BTH on (specification table 38, annexes A14 and A17). */
static void headers_by_operation(void **unused)
{
    static const struct {
        uint8_t opcode;
        uint32_t bytes;
        bool first, last;
    } rows[] = {{0x00, 12, true, false}, {0x01, 12, false, false}, {0x02, 12, false, true},
                {0x03, 16, false, true}, {0x04, 12, true, true},   {0x05, 16, true, true},
                {0x06, 28, true, false}, {0x07, 12, false, false}, {0x08, 12, false, true},
                {0x09, 16, false, true}, {0x0a, 28, true, true},   {0x0b, 32, true, true},
                {0x0c, 28, true, true},  {0x0d, 16, true, false},  {0x0e, 12, false, false},
                {0x0f, 16, false, true}, {0x10, 16, true, true},   {0x11, 16, true, true},
                {0x12, 24, true, true},  {0x13, 40, true, true},   {0x14, 40, true, true},
                {0x16, 16, false, true}, {0x17, 16, true, true},   {0x20, 12, true, false},
                {0x2b, 32, true, true},  {0x64, 20, true, true},   {0x65, 24, true, true},
                {0xa4, 16, true, true},  {0xab, 36, true, true},   {0xac, 32, true, true},
                {0xb1, 16, true, true},  {0xb3, 44, true, true},   {0x81, 12, true, true}};
    static const uint8_t unknown[] = {0x15, 0x18, 0x1f, 0x2c, 0x31, 0x40, 0x60,
                                      0x66, 0x6a, 0x80, 0x82, 0xb5, 0xc0, 0xff};

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct roce_opcode o = roce_opcode(rows[i].opcode);

        assert_int_equal(roce_opcode_bytes(rows[i].opcode), rows[i].bytes);
        assert_int_not_equal(o.kind, ROCE_KIND_NONE);
        assert_int_equal(o.first, rows[i].first);
        assert_int_equal(o.last, rows[i].last);
    }
    for (size_t i = 0; i < sizeof unknown; i++)
        assert_int_equal(roce_opcode(unknown[i]).kind, ROCE_KIND_NONE);
    assert_string_equal(roce_operation_name(0x2a), "WRITE_ONLY");
    assert_string_equal(roce_operation_name(0x81), "CNP");
}

/* ---- packets ---- */

static bool parses(const uint8_t *b, size_t n, struct roce_packet *p)
{
    return roce_packet_parse(b, n, p) == ROCE_GOOD;
}

/* Every packet that parses is rebuilt from the parsed form, with the same bytes. */
static void what_parses_is_rebuilt(void **unused)
{
    uint8_t b[64], again[64];
    unsigned good = 0;

    for (unsigned i = 0; i < 200000; i++) {
        size_t n = 12 + 4 * some(13), m;
        struct roce_packet p;
        uint8_t pad;

        fill(b, n);
        b[1] &= 0xf0; /* the version */
        if (!parses(b, n, &p))
            continue;
        good++;
        pad = b[1] >> 4 & 3;
        memset(b + n - pad, 0, pad);
        m = roce_packet_build(&p, again, sizeof again);
        assert_int_equal(m, n);
        assert_memory_equal(b, again, n);
    }
    assert_true(good > 20000);
}

static void bad_packets_are_refused(void **unused)
{
    struct roce_packet p = {.opcode = 0x0a, .payload_length = 0};
    uint8_t b[ROCE_PACKET_MAX + 8] = {0};

    assert_int_equal(roce_packet_build(&p, b, sizeof b), 28);
    for (size_t n = 0; n < 28; n++)
        assert_int_equal(roce_packet_parse(b, n, &p), ROCE_TOO_SHORT);
    assert_int_equal(roce_packet_parse(b, 28, &p), ROCE_GOOD);
    assert_int_equal(roce_packet_parse(b, 30, &p), ROCE_BAD_PAYLOAD);
    assert_int_equal(roce_packet_parse(b, 28 + ROCE_MTU_MAX, &p), ROCE_GOOD);
    assert_int_equal(roce_packet_parse(b, 28 + ROCE_MTU_MAX + 4, &p), ROCE_BAD_PAYLOAD);
    b[1] = 0x20;
    assert_int_equal(roce_packet_parse(b, 28, &p), ROCE_BAD_PAD);
    b[1] = 1;
    assert_int_equal(roce_packet_parse(b, 28, &p), ROCE_BAD_VERSION);
    b[1] = 0;
    b[0] = 0x0c; /* a read request has no payload */
    assert_int_equal(roce_packet_parse(b, 32, &p), ROCE_BAD_PAYLOAD);
    b[0] = ROCE_CNP;
    assert_int_equal(roce_packet_parse(b, 28, &p), ROCE_GOOD);
    assert_int_equal(roce_packet_parse(b, 24, &p), ROCE_BAD_PAYLOAD);
    b[0] = 0x1f;
    assert_int_equal(roce_packet_parse(b, 28, &p), ROCE_BAD_OPCODE);
    p = (struct roce_packet){.opcode = 4, .payload = b, .payload_length = 9};
    assert_int_equal(roce_packet_build(&p, b + 100, 23), 0);
    assert_int_equal(roce_packet_build(&p, b + 100, 24), 24);
}

/* ---- CRC ---- */

static void every_implementation_gives_the_same_crc(void **unused)
{
    static uint8_t b[4300];
    roce_crc_way *clmul = roce_crc_clmul(), *wide = roce_crc_wide_clmul();

    assert_int_equal(~roce_crc(0xffffffff, "123456789", 9), 0xcbf43926);
    fill(b, sizeof b);
    for (unsigned n = 0; n < 4200; n += n < 300 ? 1 : 37) {
        uint32_t start = some(0xffffffff), right = roce_crc_bytes(start, b + n % 16, n);

        assert_int_equal(roce_crc_words(start, b + n % 16, n), right);
        assert_int_equal(roce_crc(start, b + n % 16, n), right);
        if (clmul)
            assert_int_equal(clmul(start, b + n % 16, n), right);
        if (wide)
            assert_int_equal(wide(start, b + n % 16, n), right);
    }
}

static void zeros_are_skipped_and_taken_back(void **unused)
{
    static const uint8_t zero[4096];
    struct roce_shift shift;

    for (unsigned n = 0; n < 4096; n = n * 2 + 1) {
        uint32_t s = some(0xffffffff);

        roce_shift_prepare(&shift, n);
        assert_int_equal(roce_crc_shift(s, n), roce_crc_bytes(s, zero, n));
        assert_int_equal(roce_shift_apply(&shift, s), roce_crc_shift(s, n));
        assert_int_equal(roce_crc_unshift(roce_crc_shift(s, n), n), s);
    }
}

/* ---- frames of the kernel ---- */

static void recorded_frames_are_rebuilt(void **unused)
{
    static struct frames f;
    uint8_t b[buffer_bytes];
    unsigned all = 0;

    for (const char *const *name = frame_files; *name; name++) {
        frames_load(&f, *name);
        for (unsigned i = 0; i < f.n; i++, all++) {
            assert_int_equal(roce_frame_build(&f.frame[i], b, sizeof b), f.raw[i].length);
            assert_memory_equal(b, f.raw[i].data, f.raw[i].length);
        }
        frames_free(&f);
    }
    assert_true(all > 130);
}

/* A check covers every bit except those that routers may change, the UDP checksum and MACs. */
static void damage_is_seen(void **unused)
{
    static struct frames f;
    static const uint8_t free4[] = {40, 41, 46};
    uint8_t b[buffer_bytes];
    struct roce_frame frame;
    enum roce_verdict v;

    frames_load(&f, "ipv4-ud");
    for (size_t at = 14; at < f.raw[0].length; at++) {
        memcpy(b, f.raw[0].data, f.raw[0].length);
        b[at] ^= (uint8_t)(1 << some(8));
        v = roce_frame_parse(b, f.raw[0].length, &frame);
        if (at >= 14 && at < 34)
            assert_int_not_equal(v, ROCE_GOOD); /* the IP checksum covers them all */
        else
            assert_int_equal(v == ROCE_GOOD, memchr(free4, (int)at, sizeof free4) != NULL);
    }
    frames_free(&f);
}

/* The path of a receiver that has the datagram and the addresses, but not the IP header. */
static struct roce_path path_of(const struct roce_frame *f)
{
    struct roce_path p = {.version = f->ip_version,
                          .source_port = f->source_port,
                          .destination_port = f->destination_port,
                          .id = f->id,
                          .may_fragment = f->fragment == 0};

    memcpy(p.source, f->source, 16);
    memcpy(p.destination, f->destination, 16);
    return p;
}

static void icrc_without_the_ip_header(void **unused)
{
    static struct frames f;

    for (const char *const *name = frame_files; *name; name++) {
        frames_load(&f, *name);
        for (unsigned i = 0; i < f.n; i++) {
            const struct roce_frame *g = &f.frame[i];
            struct roce_path p = path_of(g);

            assert_int_equal(roce_icrc(&p, f.raw[i].data + g->bth_at, g->packet_length), g->icrc);
        }
        frames_free(&f);
    }
}

static void unknown_identification_is_found(void **unused)
{
    static struct frames f;
    unsigned wrong = 0;

    frames_load(&f, "ipv4-rc");
    for (unsigned i = 0; i < f.n; i++) {
        const struct roce_frame *g = &f.frame[i];
        struct roce_path p = path_of(g);
        uint32_t computed;
        uint16_t id = 0;

        p.id = 0;
        computed = roce_icrc(&p, f.raw[i].data + g->bth_at, g->packet_length);
        assert_true(roce_icrc_solve_id(computed, g->icrc, g->packet_length, &id));
        assert_int_equal(id, g->id);
        for (unsigned bit = 0; bit < 32; bit++)
            wrong += roce_icrc_solve_id(computed, g->icrc ^ 1u << bit, g->packet_length, &id);
    }
    assert_int_equal(wrong, 0);
    frames_free(&f);
}

/* ---- rewriting ---- */

static void random_frame(struct roce_frame *f, uint8_t *payload)
{
    memset(f, 0, sizeof *f);
    f->ip_version = some(2) ? 4 : 6;
    f->vlans = some(3);
    for (unsigned i = 0; i < f->vlans; i++) {
        f->vlan_type[i] = i ? 0x8100 : 0x88a8;
        f->vlan[i] = (uint16_t)some(65536);
    }
    fill(f->source, f->ip_version == 4 ? 4 : 16);
    fill(f->destination, f->ip_version == 4 ? 4 : 16);
    f->traffic_class = (uint8_t)some(256);
    f->flow_label = f->ip_version == 6 ? some(1 << 20) : 0;
    f->id = f->ip_version == 4 ? (uint16_t)some(65536) : 0;
    f->fragment = f->ip_version == 4 && some(2) ? 0x4000 : 0;
    f->hops = (uint8_t)some(256);
    f->source_port = (uint16_t)some(65536);
    f->destination_port = ROCE_UDP_PORT;
    f->trailing = (uint16_t)some(9);
    f->packet = (struct roce_packet){.opcode = (uint8_t)(0x06 + some(6)),
                                     .psn = some(1 << 24),
                                     .dest_qpn = some(1 << 24),
                                     .va = some(0xffffffff),
                                     .rkey = some(0xffffffff),
                                     .reserved6 = (uint8_t)some(64),
                                     .payload = payload,
                                     .payload_length = some(2000)};
    fill(payload, f->packet.payload_length);
}

static void any_frame_survives(void **unused)
{
    uint8_t payload[2000], b[buffer_bytes], again[buffer_bytes];
    struct roce_frame f, g;

    for (unsigned i = 0; i < 2000; i++) {
        size_t n;

        random_frame(&f, payload);
        n = roce_frame_build(&f, b, sizeof b);
        assert_true(n > 0);
        assert_int_equal(roce_frame_build(&f, again, n - 1), 0);
        assert_int_equal(roce_frame_parse(b, n, &g), ROCE_GOOD);
        assert_int_equal(g.vlans, f.vlans);
        assert_int_equal(g.trailing, f.trailing);
        assert_int_equal(g.packet.payload_length, f.packet.payload_length);
        assert_int_equal(roce_frame_build(&g, again, sizeof again), n);
        assert_memory_equal(again, b, n);
        n -= f.trailing + 1u; /* not even a byte of the IP packet may be missing */
        assert_int_equal(roce_frame_parse(b, n, &g), ROCE_BAD_LENGTH);
    }
}

static void fragments_are_not_for_us(void **unused)
{
    uint8_t payload[2000], b[buffer_bytes];
    struct roce_frame f;
    size_t n;

    do
        random_frame(&f, payload);
    while (f.ip_version != 4);
    f.fragment = 0x2000;
    n = roce_frame_build(&f, b, sizeof b);
    assert_int_equal(roce_frame_parse(b, n, &f), ROCE_NOT_ROCE);
}

/* The incremental rule agrees with a full computation. */
static void rewritten_headers(void **unused)
{
    uint8_t payload[2000], old[buffer_bytes], now[buffer_bytes];
    struct roce_frame f, g;

    for (unsigned i = 0; i < 5000; i++) {
        size_t n, changed, behind;
        uint32_t icrc;

        random_frame(&f, payload);
        f.vlans = f.trailing = 0;
        n = roce_frame_build(&f, old, sizeof old);
        assert_int_equal(roce_frame_parse(old, n, &g), ROCE_GOOD);
        icrc = g.icrc;
        f.packet.psn = some(1 << 24);
        f.packet.dest_qpn = some(1 << 24);
        f.packet.va += some(0xffffffff);
        f.packet.reserved6 ^= 63;
        f.hops--;
        f.source[0] ^= 0x55;
        n = roce_frame_build(&f, now, sizeof now);
        changed = (size_t)(g.bth_at - g.ip_at) + roce_opcode_bytes(f.packet.opcode);
        behind = n - g.ip_at - changed - ROCE_ICRC_BYTES;
        icrc = roce_icrc_rewrite(icrc, old + g.ip_at, now + g.ip_at, changed, behind);
        assert_int_equal(roce_frame_parse(now, n, &g), ROCE_GOOD);
        assert_int_equal(icrc, g.icrc);
    }
}

/* ---- captures ---- */

static void captures_are_read_and_written(void **unused)
{
    uint8_t b[200] = {0};
    struct roce_pcap p;
    struct roce_pcap_packet k;

    roce_pcap_header(b, ROCE_PCAP_RAW);
    roce_pcap_record(b + 24, UINT64_C(5000000007), 3);
    memcpy(b + 40, "abc", 3);
    assert_true(roce_pcap_open(&p, b, 43));
    assert_int_equal(p.link, ROCE_PCAP_RAW);
    assert_int_equal(roce_pcap_next(&p, &k), 1);
    assert_true(k.time == UINT64_C(5000000007) && k.length == 3 && memcmp(k.data, "abc", 3) == 0);
    assert_int_equal(roce_pcap_next(&p, &k), 0);
    assert_true(roce_pcap_open(&p, b, 42));
    assert_int_equal(roce_pcap_next(&p, &k), -1);
    assert_false(roce_pcap_open(&p, b, 23));
    /* The other byte order, microseconds. */
    memset(b, 0, sizeof b);
    roce_put32(b, 0xa1b2c3d4);
    roce_put32(b + 20, 1);
    roce_put32(b + 24, 2);
    roce_put32(b + 28, 3);
    assert_true(roce_pcap_open(&p, b, 40));
    assert_int_equal(roce_pcap_next(&p, &k), 1);
    assert_true(k.time == UINT64_C(2000003000) && k.length == 0);
    b[0] = 0;
    assert_false(roce_pcap_open(&p, b, 40));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sequence_numbers_wrap),
        cmocka_unit_test(headers_by_operation),
        cmocka_unit_test(what_parses_is_rebuilt),
        cmocka_unit_test(bad_packets_are_refused),
        cmocka_unit_test(every_implementation_gives_the_same_crc),
        cmocka_unit_test(zeros_are_skipped_and_taken_back),
        cmocka_unit_test(recorded_frames_are_rebuilt),
        cmocka_unit_test(damage_is_seen),
        cmocka_unit_test(icrc_without_the_ip_header),
        cmocka_unit_test(unknown_identification_is_found),
        cmocka_unit_test(any_frame_survives),
        cmocka_unit_test(fragments_are_not_for_us),
        cmocka_unit_test(rewritten_headers),
        cmocka_unit_test(captures_are_read_and_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
