/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Counters of this process for SOFTHCA_STATS. Owns them; they are atomic and stay 0 unless
 * SOFTHCA_STATS is set. */
#include "config.h"

#include "support.h"

struct shca_stats shca_stats;
bool shca_stats_on;
