/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Statistics of all ranks together (GASNET_STATS_SUMMARY): each rank adds its values to the data of
 * the last fence of the job, and rank 0 reads them after it, for a bounded time. Owns the values.
 * By the leaving thread alone; no lock. */
#include "config.h"

#include "common/clock.h"
#include "bootstrap/bootstrap.h"
#include "exit/exit_private.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "stats/write.h"

static const char key_of_values[] = "tk.stats";
static uint64_t values[tk_stats_rows_max];
static struct tk_stats_summary summary;

/* There are many values, each fetched by a call of its own: part of the watchdog's margin. */
static const uint64_t gathering_max = TK_SECOND;

static bool is_wanted(void)
{
    return tk_settings.stats_summary && tk_settings.stats_file[0];
}

void tk_summary_take(void)
{
    if (is_wanted())
        tk_stats_values(values);
}

void tk_summary_put(void)
{
    if (is_wanted() && tk_peers.size > 1 && tk_peers.me != 0)
        tk_bootstrap_put(key_of_values, values, sizeof(values));
}

void tk_summary_write(void)
{
    static uint64_t theirs[tk_stats_rows_max];
    uint64_t until = tk_now() + gathering_max;
    if (!is_wanted() || tk_peers.me != 0)
        return;
    tk_stats_summary_add(&summary, 0, values);
    for (uint32_t rank = 1; rank < tk_peers.size && tk_now() < until; rank++)
        if (tk_bootstrap_peek(rank, key_of_values, theirs, sizeof(theirs)) == TK_OK)
            tk_stats_summary_add(&summary, rank, theirs);
    tk_stats_write_summary(&summary);
}
