/* SPDX-License-Identifier: BSD-3-Clause */
/* The device of a job on several hosts: the RDMA ports that all of them have, or, if no host has a
 * port, softhca: in shared memory if all hosts are one machine, else in packets over their network.
 * Decided when every guard has described its host. Pure; no lock. */
#ifndef TRUNKLINE_SPAWNER_DEVICES_H
#define TRUNKLINE_SPAWNER_DEVICES_H

#include "spawner/util/job.h"
#include "spawner/wire/hello.h"

#include <stdbool.h>
#include <stddef.h>

enum devices_choice {
    DEVICES_PORTS,
    DEVICES_SOFTHCA, /* of one machine */
    DEVICES_PACKETS, /* softhca between machines */
    DEVICES_REFUSED
};

/* `hello` has an entry for each host of the job; where its ports are unknown it is the launcher's
 * own host. Writes a sentence: the error, or the choice. */
enum devices_choice devices_choose(const struct job *job, const struct hello *hello, char *text,
                                   size_t size);

#endif
