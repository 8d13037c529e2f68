/* SPDX-License-Identifier: BSD-3-Clause */
/* One member of a multicast group with plain verbs: a queue pair to send by, one to receive by, a
 * region that copies are written into, and the control packets of the switch. Ends the process on
 * any error that the test does not expect. */
#ifndef MCSWITCH_MEMBER_H
#define MCSWITCH_MEMBER_H

#include <infiniband/verbs.h>
#include <stdbool.h>

#include "mcswitch/client.h"

enum {
    MEMBERS_MOST = 32,
    MEMBER_DATA = 2 << 20,      /* bytes for copies of data: from the region's start */
    MEMBER_FLAGS = MEMBER_DATA, /* a word for each root behind it */
    MEMBER_SOURCE =
        MEMBER_DATA + 4096, /* the source of this member's sends: data, then a word and controls */
    MEMBER_REGION = MEMBER_SOURCE + MEMBER_DATA + 8192,
};

/* Flags of a control packet. */
enum { ACQUIRE = 1, TOPOLOGY = 2, ADDRESS = 4, RELEASE = 8, BITMAP = 16 };

struct member_options {
    const char *device; /* NULL: the first */
    int gid_index;      /* -1: that of the IPv4 address */
    unsigned mtu, timeout, retries;
};

struct member {
    struct ibv_context *context;
    struct ibv_pd *pd;
    struct ibv_cq *cq;
    struct ibv_qp *send, *receive;
    struct ibv_mr *mr;
    uint8_t *region;
    union ibv_gid gid;
    struct member_options options;
    struct tk_mcsw_client client;
    struct tk_mcsw_member own; /* as joined */
    struct member_peer {
        uint64_t base;
        uint32_t rkey, vsqpn;
    } peers[MEMBERS_MOST]; /* for controls with addresses */
    uint32_t psn;          /* of the next packet that the send queue pair sends */
    unsigned controls;     /* slots used in a list that is being posted */
    uint32_t set;          /* linked by the last control */
    uint64_t copies;       /* copies of all data so far that the switch must make */
};

void member_open(struct member *m, const struct member_options *o);
void member_close(struct member *m);
/* Dials the controller and joins a group of so many, with the star open; new queue pairs. */
void member_join(struct member *m, const char *controller, int rank, int ranks);
/* Its steps, for a process of several members. */
void member_dial(struct member *m, const char *controller, const struct tk_mcsw_job *job);
void member_ask_to_join(struct member *m, uint32_t group, int rank);
void member_connect(struct member *m);
/* Leaves, and destroys the queue pairs. */
void member_part(struct member *m);

/* Resets one queue pair, with PSNs far from the old ones, and has the switch repair its end; what:
 * TK_MCSW_REPAIR_SQP or _RQP. */
void member_repair(struct member *m, uint32_t what);
/* Waits for an event of the switch about this rank. */
void member_await_event(struct member *m, uint32_t rank, uint32_t kind);

/* A broadcast to the ranks in `set`: control if `flags`, data at this offset of the receivers, the
 * root's flag word := value, RELEASE if `release`. One list, one signalled completion. */
struct broadcast {
    uint32_t set;
    unsigned flags; /* of the control in front; 0: none */
    uint32_t bytes, offset;
    uint64_t value;
    bool release;
    const uint8_t *control; /* the payload of one, instead of that of `flags` */
    uint32_t control_bytes; /* at most 3000 */
};
void member_post(struct member *m, const struct broadcast *b);
/* The status of the list's completion. */
enum ibv_wc_status member_reap(struct member *m);

#endif
