/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Captures in the classic pcap format, in memory: read of either byte order and either resolution,
 * written as little-endian nanoseconds. Pure functions. */
#ifndef ROCE_PCAP_H
#define ROCE_PCAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    ROCE_PCAP_HEADER = 24, /* of the file */
    ROCE_PCAP_RECORD = 16, /* of each packet */
    ROCE_PCAP_ETHERNET = 1,
    ROCE_PCAP_RAW = 101, /* begins with IP */
};

struct roce_pcap {
    const uint8_t *data;
    size_t length, at;
    bool big, nanoseconds;
    uint32_t link;
};

struct roce_pcap_packet {
    uint64_t time; /* ns */
    const uint8_t *data;
    uint32_t length;   /* captured */
    uint32_t original; /* on the wire */
};

/* A whole file in memory. False: it is not classic pcap. */
bool roce_pcap_open(struct roce_pcap *p, const void *data, size_t length);
/* 1: *packet is the next one; 0: the end; -1: the file ends inside of a packet. */
int roce_pcap_next(struct roce_pcap *p, struct roce_pcap_packet *packet);

/* Write the header of a file, the header of a record; out is large enough for it. */
void roce_pcap_header(uint8_t out[ROCE_PCAP_HEADER], uint32_t link);
void roce_pcap_record(uint8_t out[ROCE_PCAP_RECORD], uint64_t time, uint32_t length);

#endif
