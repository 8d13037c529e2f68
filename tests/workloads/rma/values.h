/* SPDX-License-Identifier: BSD-3-Clause */
/* Options that swarm and sharing have in common beyond those of all workloads: the measurements of
 * an operation, the interval of the lines, and the CPUs of threads. */
#ifndef RMA_VALUES_H
#define RMA_VALUES_H

#include "job.h"

struct rma_values {
    double interval;
    const char *lat, *cycles;
    int64_t bind;
    uint64_t lat_every, cycles_every; /* sample one in this many; 0: none */
};

/* clang-format off: one option a line */
#define RMA_OPTIONS(type)                                                                          \
    {"interval",                                                                                   \
     wl_real,                                                                                      \
     offsetof(type, rma.interval),                                                                 \
     "1",                                                                                          \
     0.01,                                                                                         \
     86400,                                                                                        \
     "s",                                                                                          \
     0,                                                                                            \
     0,                                                                                            \
     "a line of each process so often, at most 256 times"},                                        \
        {"lat",                                                                                    \
         wl_text,                                                                                  \
         offsetof(type, rma.lat),                                                                  \
         "1/256",                                                                                  \
         0,                                                                                        \
         0,                                                                                        \
         0,                                                                                        \
         0,                                                                                        \
         0,                                                                                        \
         "all or 1/N: of which operations the latency goes into the histogram; the mean is of "    \
         "all"},                                                                                   \
        {"cycles",                                                                                 \
         wl_text,                                                                                  \
         offsetof(type, rma.cycles),                                                               \
         "1/64",                                                                                   \
         0,                                                                                        \
         0,                                                                                        \
         0,                                                                                        \
         0,                                                                                        \
         0,                                                                                        \
         "off or 1/N: of which operations choice, post, poll, check and the whole turn are "       \
         "timed"},                                                                                 \
    {                                                                                              \
        "bind", wl_flag, offsetof(type, rma.bind), "0", 0, 1, 0, 0, 0,                             \
            "each thread on a CPU of its own, on different cores while there are any"              \
    }
/* clang-format on */

/* Parses the texts; false with one line in `why`. */
bool rma_values_set(struct rma_values *values, char *why, size_t size);

#endif
