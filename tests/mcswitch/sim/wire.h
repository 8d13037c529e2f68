/* SPDX-License-Identifier: BSD-3-Clause
 *
 * One switch with one group, and frames made by hand: input is named by sequence numbers from 0 on,
 * output is kept in parsed form. Owns the switch; single-threaded. */
#ifndef TESTS_WIRE_H
#define TESTS_WIRE_H

#include "core/core.h"
#include "packet/frame.h"

enum {
    WIRE_GROUP = 5,
    WIRE_MEMBERS = 8,
    WIRE_OUT = 64,
    WIRE_LEASE = 1000000, /* ns */
    WIRE_RNR = 3,         /* the switch's own timer code */
};
static const uint64_t WIRE_KEY = UINT64_C(0x1122334455667788);

struct wire_out {
    unsigned port;
    struct roce_frame f;
    uint8_t bytes[ROCE_FRAME_MAX];
};

struct wire {
    struct mcsw *w;
    void *memory, *cache;
    uint64_t now;
    unsigned out;
    struct wire_out sent[WIRE_OUT];
    unsigned wrong; /* frames that came out and do not parse, and violations of a pipeline */
    unsigned dirtied, fenced;
    struct mcsw_view v;
};

void wire_open(struct wire *w, unsigned members);
void wire_close(struct wire *w);

/* A control packet of a sender; psn: counted from the first one that it ever sends. */
void wire_control(struct wire *w, unsigned sender, uint32_t psn, uint8_t flags, uint32_t bitmap);
/* The same with another key, another group, or entries; any of them as they are in *c. */
void wire_control_as(struct wire *w, unsigned sender, uint32_t psn, const struct mcsw_control *c);
/* A write of one packet. */
void wire_data(struct wire *w, unsigned sender, uint32_t psn);
/* A packet of a sender as it is; by which port and from whose address. */
void wire_request(struct wire *w, unsigned sender, const struct roce_packet *p, unsigned port,
                  unsigned address);
/* A receiver's acknowledgement or NAK; psn: counted from the first one that it expects. */
void wire_response(struct wire *w, unsigned receiver, uint8_t syndrome, uint32_t psn, uint32_t msn);
void wire_ack(struct wire *w, unsigned receiver, uint32_t psn, uint32_t msn);

/* Since the last input, was the only frame to this member a response with this syndrome and number
 * (counted from its first one)? */
bool wire_answered(const struct wire *w, unsigned member, uint8_t syndrome, uint32_t psn);
/* Copies to this member since the last frame in. */
unsigned wire_copies(const struct wire *w, unsigned member);
const struct mcsw_view *wire_view(struct wire *w);
/* The numbers of a member's queue pairs. */
uint32_t wire_sq_psn(unsigned member), wire_rq_psn(unsigned member);

#endif
