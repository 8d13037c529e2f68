/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Broadcasts over a multicast switch: the root sends once, the switch sends to each neighbourhood's
 * leader. A group of the switch has the leaders of all neighbourhoods of the job; any team whose
 * leaders are among them uses it, any member as root, without further set-up of the switch.
 *
 * Each root has a ring of slots in the memory of every member, which only it writes to, and a slot
 * is written again when its receivers have returned it. A message is data and then a stamp; the
 * receivers find the collective's key in front of the data. mcast.c is the algorithm of a
 * broadcast, mcast_slots.c rings, the lock and what is posted, mcast_life.c how a group is created,
 * found broken and created again, mcast_notify.c and mcast_receive.c the messages between members.
 * doc/multicast.md describes it. */
#ifndef TK_MCAST_H
#define TK_MCAST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bits.h"
#include "team/team.h"

enum { tk_mcast_eager = 4096, tk_mcast_large = 1 << 30, tk_mcast_members = 254 };

/* The job has groups. Set at the start, the same on all ranks. */
extern TK_HIDDEN bool tk_mcast_on;

/* Before any communication. */
void tk_mcast_open(void);

/* Collective over the job, called once messages can be sent: finds the switch and creates the
 * groups, as GASNET_MCAST says. Does not return if GASNET_MCAST requires a switch and there is
 * none. */
void tk_mcast_begin(void);

/* Whether a team's broadcasts can go over the switch; the same on all members. Constant. */
bool tk_mcast_fits(const struct trunkline_tm *tm);

/* For benchmarks: the lock of a group is released after each broadcast, or kept for the next. */
void tk_mcast_keep_lock(bool keep);

/* For benchmarks: returns when the switch has our segment, or has refused it. Until then large
 * payloads use trees. */
void tk_mcast_settle(void);

#endif
