/* SPDX-License-Identifier: BSD-3-Clause */
/* A guard's data about a rank for the explanation of a hang: the payload of WIRE_WAITS, in the
 * layout of one build, which HELLO has compared. No state. */
#ifndef TRUNKLINE_SPAWNER_WAITS_H
#define TRUNKLINE_SPAWNER_WAITS_H

#include "base/wait_record.h"

#include <stdint.h>

struct waits_rank {
    uint32_t pid;
    char state;         /* of its process, a letter of /proc; 0: it is gone */
    uint8_t has_record; /* else: why[] */
    uint8_t is_done;    /* it has left the job in order */
    uint64_t now;       /* of its host's monotonic clock */
    char doing[200];    /* its threads, by the kernel */
    char why[100];
    uint32_t depth[tk_wait_threads];    /* of each thread in handlers */
    char thread_state[tk_wait_threads]; /* 0: it is gone */
    struct tk_wait_page page;
};

#endif
