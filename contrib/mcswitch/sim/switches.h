/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The switches of a simulation, one or a root with its leaves, on the cables of net.h, and the
 * controller that joins members, repairs their RQPs and watches invariant I4. Owns the cores;
 * single-threaded. */
#ifndef SIM_SWITCHES_H
#define SIM_SWITCHES_H

#include "sim/member.h"

struct sim_switches;

struct sim_switches *sim_switches_open(const struct sim_options *o, struct sim_queue *q,
                                       struct sim_net *n, struct sim_ledger *l,
                                       struct sim_member *members);
void sim_switches_close(struct sim_switches *s);

/* The data that a member's control packets need. */
struct sim_group {
    uint32_t id, leaf_id; /* at the root; at each leaf */
    uint64_t key;         /* of both */
    uint32_t leaf;        /* members of a leaf; 0: one level */
};
const struct sim_group *sim_switches_group(const struct sim_switches *s);
roce_time sim_switches_lease(const struct sim_switches *s);

void sim_switches_frame(struct sim_switches *s, const struct sim_event *e);
void sim_switches_control(struct sim_switches *s, const struct sim_event *e);

/* Requests to the controller: register a new SQP; repair with a new RQP; do not link this RQP. */
void sim_switches_register(struct sim_switches *s, uint32_t member);
void sim_switches_repair(struct sim_switches *s, uint32_t member);
void sim_switches_mark(struct sim_switches *s, uint32_t member);
/* Has the switch taken the lock from this member since its registration? */
bool sim_switches_expelled(const struct sim_switches *s, uint32_t member);
/* The next PSN that its VSQP will use. */
uint32_t sim_switches_expected(struct sim_switches *s, uint32_t member);
/* Sends a frame that must change nothing and cause no other frame; author: the member through whose
 * port it comes, or the number of members. */
void sim_switches_forged(struct sim_switches *s, uint32_t author, bool to_vsqp, uint8_t *frame,
                         size_t length, int kind);
/* Checks I4 at the end, when nothing is in flight, also at leaves. */
void sim_switches_check(struct sim_switches *s);

struct sim_switch_counts {
    uint64_t copies;             /* request packets to members */
    uint64_t controls, releases; /* that the root accepted */
    uint64_t repairs, steals, passes, refused, repeats, local, drop_full, future, version;
};
void sim_switches_count(const struct sim_switches *s, struct sim_switch_counts *c);

#endif
