/* SPDX-License-Identifier: BSD-3-Clause */
/* See group.h. The lock is taken once in an interval by each thread. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "flood.h"
#include "progress.h"
#include "sum.h"

void rma_group_set(struct rma_group *group, const struct wl_common *common,
                   const struct rma_values *values, const char *name, int layer, size_t size,
                   uint64_t ops)
{
    uint64_t fits = (uint64_t)(common->duration * 1e9) / (rma_intervals_max - 1);
    memset(group, 0, sizeof(*group));
    snprintf(group->name, sizeof(group->name), "%s %s", name, wl_layer_words[layer]);
    group->interval_ns = (uint64_t)(values->interval * 1e9);
    if (!ops && group->interval_ns < fits)
        group->interval_ns = fits;
    group->size = size;
    group->ops = ops;
    group->total_ns = ops ? 0 : (uint64_t)((common->warmup + common->duration) * 1e9);
}

void rma_group_start(struct rma_group *group)
{
    pthread_mutex_init(&group->mutex, NULL);
    memset(group->intervals, 0, sizeof(group->intervals));
    group->complete = 0;
    if (group->is_watched)
        wl_progress_start(group->name, wl_now(), group->total_ns);
}

void rma_group_end(struct rma_group *group)
{
    if (group->is_watched)
        wl_progress_end();
    pthread_mutex_destroy(&group->mutex);
}

/* One call: lines of several ranks must not be cut into each other. */
static void tell(const struct rma_group *group, unsigned number)
{
    const struct rma_interval *interval = &group->intervals[number];
    char rails[1024] = "";
    for (int rail = 0; rail < rma_rails_max; rail++) {
        size_t used = strlen(rails);
        if (interval->rails[rail] > 0)
            rma_add_number(rails + used, sizeof(rails) - used, used == 0, interval->rails[rail]);
    }
    printf("%s: rank %u at %.2f s: %.4g Mops, threads %.4g/%.4g/%.4g (min/avg/max), rails %s Mops, "
           "%.4g Gbit/s\n",
           group->name, (unsigned)wl_job.me,
           (double)(number + 1) * (double)group->interval_ns * 1e-9, interval->mops,
           interval->least, interval->mops / group->threads, interval->most, *rails ? rails : "0",
           interval->mops * (double)group->size * 8e-3);
    fflush(stdout);
}

static void add(struct rma_group *group, unsigned number, double mops, const double *rails)
{
    struct rma_interval *interval = &group->intervals[number];
    interval->least = interval->arrived && interval->least < mops ? interval->least : mops;
    interval->most = interval->most > mops ? interval->most : mops;
    interval->mops += mops;
    for (int rail = 0; rail < rma_rails_max; rail++)
        interval->rails[rail] += rails[rail];
    if (++interval->arrived == group->threads) {
        tell(group, number);
        group->complete = number + 1;
    }
}

static void count_rails(const struct rma_flood *f, uint64_t *rails)
{
    memset(rails, 0, rma_rails_max * sizeof(*rails));
    for (size_t i = 0; i < f->target_count; i++)
        rails[f->targets[i].rail % rma_rails_max] += f->targets[i].measured;
}

void rma_ticker_start(struct rma_flood *f, uint64_t now)
{
    f->ticker = (struct rma_ticker){.next = UINT64_MAX, .began = now, .last = now};
    if (f->group && f->group->interval_ns)
        f->ticker.next = now + f->group->interval_ns;
    f->ticker.measured = f->measured;
    count_rails(f, f->ticker.rails);
}

/* A thread that slept through some intervals is counted with its average in each. */
void rma_tick(struct rma_flood *f, uint64_t now)
{
    struct rma_group *group = f->group;
    struct rma_ticker *ticker = &f->ticker;
    uint64_t rails[rma_rails_max], over = (now - ticker->began) / group->interval_ns;
    double of_rails[rma_rails_max], each = 1e3 / (double)(now - ticker->last);
    unsigned end = over < rma_intervals_max ? (unsigned)over : rma_intervals_max;
    count_rails(f, rails);
    for (int rail = 0; rail < rma_rails_max; rail++)
        of_rails[rail] = (double)(rails[rail] - ticker->rails[rail]) * each;
    pthread_mutex_lock(&group->mutex);
    for (; ticker->passed < end; ticker->passed++)
        add(group, ticker->passed, (double)(f->measured - ticker->measured) * each, of_rails);
    pthread_mutex_unlock(&group->mutex);
    memcpy(ticker->rails, rails, sizeof(rails));
    ticker->measured = f->measured;
    ticker->last = now;
    ticker->next =
        end < rma_intervals_max ? ticker->began + (over + 1) * group->interval_ns : UINT64_MAX;
}

void rma_group_show(struct rma_group *group, uint64_t now)
{
    uint64_t done = 0;
    for (unsigned t = 0; t < group->threads; t++)
        done += __atomic_load_n(&group->floods[t].shown, __ATOMIC_RELAXED);
    if (group->ops && done)
        wl_progress_expect(now, (double)done / ((double)group->ops * group->threads));
    wl_progress(now, done);
}
