/* SPDX-License-Identifier: BSD-3-Clause */
/* The smallest workload: agrees on its parameters, shares records, stops when one rank says so and
 * reports. It shows what every workload gets from the common part, and common.sh looks at it. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "job.h"
#include "progress.h"

struct sample {
    struct wl_common common;
    int64_t bytes, stopper;
};

/* clang-format off: one option a line */
static const struct wl_option table[] = {
    {"bytes", wl_size, offsetof(struct sample, bytes), "100K", 1, 16777216, "bytes", 0, 0,
     "of a shared record"},
    {"stopper", wl_whole, offsetof(struct sample, stopper), "-1", -1, 4096, "rank", 0, 0,
     "who stops all at once; -1: nobody"},
    WL_COMMON_OPTIONS(struct sample, "api"),
};
/* clang-format on */

static const struct wl_program program = {"sample", "Nothing but the common part of workloads.",
                                          table, sizeof(table) / sizeof(*table), NULL};
static struct sample values;

/* Does everybody's record arrive whole, twice in a row? Returns the number of bytes that differ. */
static uint64_t share(void)
{
    size_t size = (size_t)values.bytes;
    unsigned char *mine = malloc(size), *all = malloc(size * wl_job.size);
    uint64_t wrong = 0;
    if (!mine || !all)
        wl_job_die("no memory for records");
    for (int round = 0; round < 2; round++) {
        memset(mine, (int)wl_job.me + 10 * round + 1, size);
        wl_job_share(mine, all, size);
        for (size_t i = 0; i < size * wl_job.size; i++)
            wrong += all[i] != i / size + 10 * (unsigned)round + 1;
    }
    free(mine);
    free(all);
    return wrong;
}

static uint64_t spin(struct wl_span *span)
{
    uint64_t turns = 0, now = wl_now();
    *span = wl_span_start(now, (uint64_t)(values.common.warmup * 1e9),
                          (uint64_t)(values.common.duration * 1e9));
    wl_progress_start(program.name, now, span->over_at - now);
    if (values.stopper == (int64_t)wl_job.me)
        wl_stop();
    for (; span->phase != wl_over && !wl_stopped(); now = wl_now()) {
        gasnet_AMPoll();
        if (wl_span_step(span, now))
            turns = 0;
        turns++;
        wl_progress(now, turns);
    }
    wl_span_end(span, now);
    wl_progress_end();
    return turns;
}

int main(int argc, char **argv)
{
    struct wl_span span;
    struct wl_report *report = NULL;
    wl_job_start(&argc, &argv, &program, &values, NULL);
    uint64_t wrong = share(), *all = calloc(wl_job.size, sizeof(*all));
    uint64_t turns = spin(&span);
    wl_job_gather(0, &wrong, all, sizeof(wrong));
    if (wl_job.me == 0) {
        report = wl_report_open(program.name, "1");
        wl_job_describe(report, &program, &values, 1);
        for (gex_Rank_t rank = 0; rank < wl_job.size; rank++)
            wrong += rank ? all[rank] : 0;
        wl_report_whole(report, wl_summary, "turns", (int64_t)turns);
        wl_report_real(report, wl_summary, "time_s", (double)(span.ended - span.began) * 1e-9);
        wl_report_flag(report, wl_summary, "stopped", wl_stopped());
        wl_report_check(report, "shared", wrong, "a record is not what its rank sent");
    }
    wl_job_end(report, &values.common, NULL);
}
