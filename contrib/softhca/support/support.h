/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Common to all rooms of softhca: settings, counters, lines on stderr. Declares the counters and
 * the settings of the process; both are described where they are defined. */
#ifndef SHCA_SUPPORT_H
#define SHCA_SUPPORT_H

#include <errno.h>
#include <infiniband/verbs.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "common/clock.h"
#include "segment_layout.h"
#include "softhca_lock.h"
#include "seed.h"
#include "softhca_settings.h"

/* The header turns these names into macros; the definitions here need the plain symbols. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

#define SHCA_PUBLIC __attribute__((visibility("default")))

#define shca_container(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

/* Counters of this process for SOFTHCA_STATS. */
struct shca_stats {
    _Atomic uint64_t rnr, retries, sends, writes, reads, atomics, paged;
};

/* ---- cache_lines.c ---- */
/* Zeroed memory that shares no cache line with other data, for words that a thread writes with each
 * request: another thread may use the next queue. NULL: no memory. */
void *shca_lines_alloc(size_t bytes);
void shca_lines_free(void *memory);

/* ---- config.c ---- */
/* The shape of the machine; read-only after fabric/load.c has filled it in. */
extern struct shca_config shca_config;
void shca_log(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/* Advice to the user for an errno with which the kernel refused something. */
const char *shca_remedy(int error);

/* ---- counters.c ---- */
extern struct shca_stats shca_stats;
extern bool shca_stats_on;

#define SHCA_COUNT(field)                                                                          \
    do {                                                                                           \
        if (shca_stats_on)                                                                         \
            atomic_fetch_add_explicit(&shca_stats.field, 1, memory_order_relaxed);                 \
    } while (0)

#endif
