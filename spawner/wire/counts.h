/* SPDX-License-Identifier: BSD-3-Clause */
/* The data of gasnetrun_ibv --top: of a rank, the payload of WIRE_COUNTS; of a job, the head of the
 * launcher's answer to a caller, followed by all ranks in order. In the layout of one build, which
 * HELLO and the caller compare. No state. */
#ifndef TRUNKLINE_SPAWNER_COUNTS_H
#define TRUNKLINE_SPAWNER_COUNTS_H

#include "stats/table.h"

#include <stdint.h>

enum { COUNTS_MAGIC = 0x746f7031 };

struct counts_rank {
    uint32_t pid;
    uint8_t is_there;     /* else its host has not answered */
    uint8_t is_elsewhere; /* no guard of ours can answer for it: it is not shown */
    uint8_t has_counters; /* else: why[] */
    uint8_t is_done;      /* it has left the job in order */
    char state;           /* of its process, a letter of /proc; 0: it is gone */
    char wait_state;      /* of the thread that waits */
    uint32_t wait_kind;   /* enum tk_wait_kind */
    uint32_t wait_peer;   /* tk_wait_nobody: none */
    uint64_t wait_ns;     /* how long it has waited */
    uint32_t threads, rails;
    uint64_t resident_kb, private_kb; /* memory: all; of this process alone */
    uint64_t ns;                      /* since the rank came to gex_Client_Init */
    char host[64];
    char why[100];
    uint64_t values[tk_stats_rows_max]; /* by rows of the table of counters */
};

struct counts_job {
    uint32_t magic, rank_size; /* sizeof(struct counts_rank) */
    uint32_t ranks, hosts;
    uint32_t silent;    /* hosts that have not answered in time */
    uint32_t elsewhere; /* ranks that are not shown: another launcher's, on other hosts */
    uint32_t pid;
    char program[200];
};

#endif
