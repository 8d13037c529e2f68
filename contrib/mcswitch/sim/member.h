/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A member of the group: two queue pairs of contrib/roce, one that sends to the switch's VRQP (SQP)
 * and one that receives from a VSQP (RQP); frames around their packets; a network card that may be
 * dead or asleep. It reports arrivals to the ledger, and compares the MSN of each acknowledgement
 * with what this requester knows. Owns its end points; single-threaded. */
#ifndef SIM_MEMBER_H
#define SIM_MEMBER_H

#include "sim/ledger.h"
#include "sim/net.h"

enum sim_side_name { SIM_SQP, SIM_RQP };

enum {
    SIM_HISTORY = 1024,                /* messages whose ends a requester remembers */
    SIM_IS_CONTROL = SIM_MESSAGES_MAX, /* ids of requests; below: messages */
    SIM_IS_RELEASE,
};

/* Ethernet, IPv4 and UDP around a packet. */
enum { SIM_ENVELOPE = 14 + 20 + 8 };
struct sim_envelope {
    uint8_t from_mac[6], to_mac[6], from_ip[4], to_ip[4];
    uint16_t source_port;
};
/* The packet of `length` bytes follows SIM_ENVELOPE bytes of space; writes the headers and trailer
 * around it. Result: bytes of the frame. */
size_t sim_envelope_close(const struct sim_envelope *v, uint8_t *frame, size_t length);

struct sim_side {
    struct sim_member *member;
    enum sim_side_name name;
    struct roce_endpoint *e;
    struct roce_attributes a;
    roce_time timer;     /* an event is posted for then */
    struct sim_link up;  /* cable to its switch */
    struct sim_event to; /* the other end of the cable */
    struct sim_envelope envelope;
};

/* What is arriving at an RQP. */
struct sim_arriving {
    bool any, write;
    uint32_t serial, at;
    struct roce_reach reach;
};

struct sim_member {
    struct sim_ledger *ledger;
    struct sim_net *net;
    uint32_t index;
    uint8_t ip[4], mac[6];
    struct sim_side side[2];
    struct sim_arriving arriving;
    bool dead, refuses; /* refuses: rejects writes, as if they left its region */
    roce_time asleep_until;
    uint32_t generation;             /* of its queue pairs' numbers */
    uint64_t end[SIM_HISTORY], sent; /* packets up to the end of each message; messages */
    uint64_t packets;
    struct roce_counters gone; /* of closed end points */
    void (*completed)(struct sim_member *m, struct sim_broadcast *b, uint64_t id,
                      enum roce_status status);
    void *owner; /* of `completed` */
};

/* Where a queue pair's frames go. */
struct sim_wire {
    uint16_t node, port;
    uint8_t ip[4], mac[6];
};

void sim_member_start(struct sim_member *m, uint32_t index, struct sim_ledger *l,
                      struct sim_net *n);
void sim_member_end(struct sim_member *m);
/* Opens new end points with new numbers; sim_member_connect sets the peers' QPNs. */
void sim_member_open(struct sim_member *m, enum sim_side_name side);
void sim_member_connect(struct sim_member *m, enum sim_side_name side, uint32_t dest_qpn,
                        const struct sim_wire *w);
/* Resets the RQP, with numbers far from the old ones, which no sender uses. */
void sim_member_open_far(struct sim_member *m);

/* Posts to the SQP. index: of a message, SIM_IS_CONTROL or SIM_IS_RELEASE; b: NULL for a release.
 */
void sim_member_post(struct sim_member *m, struct sim_broadcast *b, uint32_t index);
/* Sends the packets that the end points have queued. */
void sim_member_pump(struct sim_member *m);
void sim_member_timer(struct sim_member *m, enum sim_side_name side);
void sim_member_frame(struct sim_member *m, struct sim_frame *f);
/* Adds the counters of all SQPs that the member had. */
void sim_member_counters(const struct sim_member *m, struct roce_counters *c);

/* The addresses of members. */
void sim_member_address(uint32_t index, uint8_t *ip, uint8_t *mac);

#endif
