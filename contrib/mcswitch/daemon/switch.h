/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The daemon's only instance of the core (contrib/mcswitch/core), and its environment: ports for
 * sending, and the time. Groups of more than 32 members have two levels, both in this instance:
 * frames between them go through a queue. Owns the core's state. */
#ifndef MCD_SWITCH_H
#define MCD_SWITCH_H

#include "daemon/bridge.h"
#include "mcswitch/protocol.h"

#include <stdio.h>

struct mcd_switch_config {
    const struct mcd_vips *vips;
    uint32_t lease_ms, boot;
    unsigned groups;
    void (*event)(uint32_t group, unsigned rank, unsigned kind); /* enum tk_mcsw_event_kind */
};

struct mcd_switch_member {
    uint8_t ip[4], mac[6];
    unsigned port;
    uint32_t sqpn, sqpsn, rqpn, rqpsn;
    uint64_t base;
    uint32_t rkey;
};

bool mcd_switch_open(const struct mcd_switch_config *config);
void mcd_switch_close(void);

/* Handles a frame that came in. False: it is not for one of the two addresses, nor an ARP query for
 * them, and is unchanged. */
bool mcd_switch_take(struct mcd_port *port, uint8_t *frame, size_t length);

/* Creates a group, whose number is 1 or more, with its `n` members. False: the core has no
 * space. */
bool mcd_switch_create(uint32_t group, unsigned n, const struct mcd_switch_member *members,
                       uint64_t key);
void mcd_switch_destroy(uint32_t group);
/* what: TK_MCSW_REPAIR_... */
void mcd_switch_repair(uint32_t group, unsigned rank, uint32_t what,
                       const struct mcd_switch_member *m);
/* A second part of its memory: TK_MCSW_REPAIR_WINDOW. */
void mcd_switch_window(uint32_t group, unsigned rank, uint64_t base, uint32_t rkey);
void mcd_switch_mark(uint32_t group, unsigned rank);
/* The member no longer sends or receives. */
void mcd_switch_remove(uint32_t group, unsigned rank);
/* The queue pairs to which a member connects its own, and its group's leaves. */
void mcd_switch_place(uint32_t group, unsigned rank, struct tk_mcsw_place *p);
unsigned mcd_switch_members(void); /* the most members of a group */

/* Lines "name value". */
void mcd_switch_print(FILE *to);
void mcd_switch_print_group(FILE *to, uint32_t group);

#endif
