/* SPDX-License-Identifier: BSD-3-Clause */
/* What this process has done, for SOFTHCA_STATS. Owns the counters; they are atomic and are not
 * counted unless somebody asked. */
#include "config.h"

#include "base.h"

struct shca_stats shca_stats;
bool shca_stats_on;
