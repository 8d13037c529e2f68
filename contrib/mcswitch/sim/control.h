/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes the payload of control packets, from the words of doc/multicast.md and not with the
 * switch's code, so that both must agree. Owns nothing. */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#include "sim/switches.h"

/* The control of a broadcast, followed by its release. It must be the next message of the member.
 * / */
void sim_control_build(const struct sim_group *g, struct sim_broadcast *b,
                       const struct sim_member *m, bool acquire);

#endif
