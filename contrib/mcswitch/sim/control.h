/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Writes the payload of control packets as doc/multicast.md describes them, without the switch's
 * code, so that both must agree. Owns nothing. */
#ifndef SIM_CONTROL_H
#define SIM_CONTROL_H

#include "sim/switches.h"

/* Writes the control of a broadcast, then its release. The control must be the member's next
 * message. / */
void sim_control_build(const struct sim_group *g, struct sim_broadcast *b,
                       const struct sim_member *m, bool acquire);

#endif
