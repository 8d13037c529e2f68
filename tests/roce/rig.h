/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One end point under a test's control: its memory and receives are arrays, its completions and
 * events are recorded, packets are made and checked one by one. Single-threaded; include after
 * cmocka. */
#ifndef ROCE_RIG_H
#define ROCE_RIG_H

#include "endpoint/endpoint.h"

enum { rig_bytes = 65536, rig_log = 256, rig_key = 0x77, rig_qpn = 0x11, rig_peer = 0x22 };

struct rig_completion {
    uint64_t id;
    enum roce_status status;
};

struct rig {
    struct roce_endpoint *e;
    struct roce_attributes a;
    roce_time now;
    uint8_t buffer[rig_bytes]; /* of requests */
    uint8_t memory[rig_bytes]; /* remote address 0 and on */
    uint8_t receive[rig_bytes];
    uint32_t receive_bytes;   /* of each */
    unsigned receives, taken; /* posted; taken and not done */
    enum roce_status fetch, check, fill;
    unsigned atomics, checks, messages, completions, events;
    struct roce_message message; /* the last one */
    struct rig_completion completion[rig_log];
    enum roce_event event[rig_log];
    /* The last packet that came out. */
    uint8_t bytes[ROCE_PACKET_MAX];
    struct roce_packet out;
    const struct roce_request *of;
};

/* An RC end point in RTS; change a first if another is wanted. */
struct rig *rig_new(void);
void rig_start(struct rig *r);
void rig_free(struct rig *r);

/* Fetches a packet into out; false: there is none. */
bool rig_out(struct rig *r);
/* A packet with this operation and PSN must come out. */
void rig_expect(struct rig *r, unsigned operation, uint32_t psn);
void rig_silent(struct rig *r);
/* How many packets come out. */
unsigned rig_drain(struct rig *r);

/* A packet from the peer. */
struct roce_packet rig_packet(const struct rig *r, unsigned operation, uint32_t psn);
void rig_in(struct rig *r, const struct roce_packet *p);
void rig_ack(struct rig *r, uint32_t psn, uint8_t syndrome);

/* Posts a request of this kind; ids count up. */
void rig_post(struct rig *r, enum roce_request_kind kind, uint32_t length, uint8_t flags);

#endif
