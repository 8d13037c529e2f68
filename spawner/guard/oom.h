/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds out whether the kernel killed a rank because memory ran out. A wait status does not show
 * it, but the kernel counts its kills: of a cgroup (oom_kill in memory.events, or
 * memory.oom_control of version 1) and of the host (/proc/vmstat). Owns nothing but the struct; no
 * lock. */
#ifndef TRUNKLINE_SPAWNER_OOM_H
#define TRUNKLINE_SPAWNER_OOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct oom_watch {
    const char *root;             /* "" but in tests: in front of all paths */
    char group[1024];             /* directory of the cgroup that ranks begin in; empty: unknown */
    const char *counter;          /* the file there that counts, by version */
    const char *limit;            /* and the one with the limit */
    uint64_t killed, host_killed; /* the counters at the start */
};

void oom_open(struct oom_watch *s, const char *root);

/* If processes were killed since oom_open(): a part of a message that names what is full. */
bool oom_explain(const struct oom_watch *s, char *text, size_t size);

#endif
