/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The configuration of a replayed switch, a file of lines (mcsw-replay --help). Owns what it read.
 */
#ifndef MCSW_REPLAY_SETUP_H
#define MCSW_REPLAY_SETUP_H

#include <stdio.h>

#include "core/core.h"

enum { SETUP_GROUPS = 64, SETUP_TEXT = 160 };

struct setup_group {
    struct mcsw_group_config c;
    struct mcsw_sender sender[MCSW_SENDERS];
    struct mcsw_receiver receiver[MCSW_RECEIVERS];
};

struct setup {
    struct mcsw_config c;
    bool ports_by_source; /* MAC; else by the outermost VLAN tag, which is 1 + the port */
    unsigned groups;
    uint32_t number[SETUP_GROUPS];
    struct setup_group *group[SETUP_GROUPS];
};

/* False: *why has the error, with the line number. */
bool setup_read(struct setup *s, FILE *from, char why[SETUP_TEXT]);
void setup_end(struct setup *s);
/* The same as lines. */
void setup_write(const struct setup *s, FILE *to);

#endif
