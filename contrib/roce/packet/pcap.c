/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Reads and writes captures. Pure functions. */
#include "config.h"

#include <string.h>

#include "packet/bytes.h"
#include "packet/pcap.h"

enum {
    longest = 262144, /* what capture programs write at most */
    version_major = 2,
    version_minor = 4,
};

static const uint32_t magic_us = 0xa1b2c3d4, magic_ns = 0xa1b23c4d;
static const uint64_t second = 1000000000;

/* roce_*_icrc are the little-endian accesses. */
static uint32_t number(const struct roce_pcap *p, const uint8_t *at)
{
    return p->big ? roce_get32(at) : roce_get_icrc(at);
}

static bool known_magic(struct roce_pcap *p)
{
    uint32_t magic = number(p, p->data);

    p->nanoseconds = magic == magic_ns;
    return p->nanoseconds || magic == magic_us;
}

bool roce_pcap_open(struct roce_pcap *p, const void *data, size_t length)
{
    memset(p, 0, sizeof *p);
    p->data = data;
    p->length = length;
    p->at = ROCE_PCAP_HEADER;
    if (length < ROCE_PCAP_HEADER)
        return false;
    if (!known_magic(p)) {
        p->big = true;
        if (!known_magic(p))
            return false;
    }
    p->link = number(p, p->data + 20) & 0xffff;
    return true;
}

int roce_pcap_next(struct roce_pcap *p, struct roce_pcap_packet *packet)
{
    const uint8_t *r = p->data + p->at;
    size_t left = p->length - p->at;

    if (left == 0)
        return 0;
    if (left < ROCE_PCAP_RECORD)
        return -1;
    packet->time = number(p, r) * second + number(p, r + 4) * (p->nanoseconds ? 1 : 1000);
    packet->length = number(p, r + 8);
    packet->original = number(p, r + 12);
    packet->data = r + ROCE_PCAP_RECORD;
    if (packet->length > longest || packet->length > left - ROCE_PCAP_RECORD)
        return -1;
    p->at += ROCE_PCAP_RECORD + packet->length;
    return 1;
}

void roce_pcap_header(uint8_t out[ROCE_PCAP_HEADER], uint32_t link)
{
    memset(out, 0, ROCE_PCAP_HEADER);
    roce_put_icrc(out, magic_ns);
    out[4] = version_major;
    out[6] = version_minor;
    roce_put_icrc(out + 16, longest);
    roce_put_icrc(out + 20, link);
}

void roce_pcap_record(uint8_t out[ROCE_PCAP_RECORD], uint64_t time, uint32_t length)
{
    roce_put_icrc(out, (uint32_t)(time / second));
    roce_put_icrc(out + 4, (uint32_t)(time % second));
    roce_put_icrc(out + 8, length);
    roce_put_icrc(out + 12, length);
}
