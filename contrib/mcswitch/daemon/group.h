/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Groups and their members as the controller knows them: creator, members, and the connection of
 * each. A group is in the core when all members have joined, until it is destroyed or the last
 * connection of its members ends. Owns the table of groups. */
#ifndef MCD_GROUP_H
#define MCD_GROUP_H

#include "daemon/control.h"

#include <stdio.h>

enum { MCD_GROUPS_MAX = 4096 };

enum mcd_member_state { MCD_AWAITED, MCD_RESOLVING, MCD_JOINED, MCD_LEFT };

struct mcd_member {
    uint8_t state; /* enum mcd_member_state */
    struct mcd_connection *connection;
    struct tk_mcsw_member m;
    uint8_t ip[4], mac[6]; /* in frames */
    unsigned port;
    uint64_t asked, deadline; /* of ARP */
};

struct mcd_group {
    uint32_t number;
    struct mcd_job *job;
    struct mcd_connection *creator; /* until a member joins; the group ends with it */
    uint64_t key;
    unsigned size, joined, left;
    bool complete;
    struct mcd_member *members;
};

void mcd_group_open(unsigned most);
void mcd_group_close_all(void);

/* Each function answers or refuses the request itself. */
void mcd_group_create(struct mcd_connection *c, unsigned members);
void mcd_group_join(struct mcd_connection *c, uint32_t number, const struct tk_mcsw_member *m);
void mcd_group_repair(struct mcd_connection *c, uint32_t number, uint32_t what,
                      const struct tk_mcsw_member *m);
void mcd_group_mark(struct mcd_connection *c, uint32_t number, uint32_t rank);
void mcd_group_leave(struct mcd_connection *c, uint32_t number, uint32_t rank);
void mcd_group_destroy(struct mcd_connection *c, uint32_t number);

/* A connection has ended. */
void mcd_group_lose(struct mcd_connection *c);
/* Ends a group for the administrator; false: there is no such group. */
bool mcd_group_end(uint32_t number);
/* From the core: enum tk_mcsw_event_kind. */
void mcd_group_event(uint32_t number, unsigned rank, unsigned kind);
void mcd_group_tick(uint64_t now);
void mcd_group_print(FILE *to, uint32_t number); /* 0: all */
unsigned mcd_group_most(void);

#endif
