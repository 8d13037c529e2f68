/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A whole run: members, cables, switches, traffic, from the first event to the last, and its
 * result. Runs are independent of each other and a function of their options alone. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include "sim/ledger.h"
#include "sim/net.h"
#include "sim/switches.h"
#include "sim/traffic.h"

struct sim_outcome {
    uint64_t violations;
    bool hang;
    char first[320]; /* the first thing that was wrong */
    uint32_t done, failed;
    double links;                                 /* mean time of a broadcast, in link times */
    double per_link;                              /* mean time between two ends of broadcasts */
    uint64_t timeouts, repeated, rnr, naks, sent; /* of all SQPs */
    struct sim_traffic_counts traffic;
    uint64_t hostile;
    struct sim_switch_counts at;
    uint64_t frames;
};

void sim_run(const struct sim_options *o, struct sim_outcome *out);
bool sim_good(const struct sim_outcome *out);
/* Print the result as one line, and the heading above such lines. */
void sim_print_heading(void);
void sim_print(const char *name, const struct sim_outcome *out);
/* Looks for a smaller run that fails too, by running candidates; returns its options. */
struct sim_options sim_shrink(const struct sim_options *o);

#endif
