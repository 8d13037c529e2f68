/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See rules.h: what only a trace tells. */
#include "config.h"

#include <inttypes.h>

#include "contrib/report/rules_private.h"

/* Time of a rank in barriers and collectives, without calls inside. */
static uint64_t together_ns(const struct report_row *row)
{
    uint64_t ns = 0;
    for (unsigned i = 0; i < report_slices; i++)
        ns += row->slices[i][REPORT_BARRIER] + row->slices[i][REPORT_COLLECTIVE];
    return ns;
}

/* A rank that comes last to barriers waits least there; the others wait for it. */
bool finding_late_rank(const struct report_model *model, struct finding *f)
{
    const struct report_timeline *t = &model->timeline;
    uint64_t sum = 0, least = 0;
    uint32_t who = 0;
    for (size_t i = 0; i < t->row_count; i++) {
        uint64_t ns = together_ns(&t->rows[i]);
        if (i == 0 || ns < least) {
            least = ns;
            who = t->rows[i].rank;
        }
        sum += ns;
    }
    if (t->row_count < 3)
        return false;
    double mean = (double)(sum - least) / (double)(t->row_count - 1);
    double span = (double)(t->end - t->begin);
    if (mean < 0.2 * span || (double)least > 0.25 * mean || mean < 1e7)
        return false;
    finding_say(f,
                "The other ranks spent %.0f %% of the time in barriers and collectives, rank %u "
                "only %.0f %%: they wait for it.",
                mean / span * 100, who, (double)least / span * 100);
    finding_prove(f, "mean of the others", "%.3f s", mean / 1e9);
    finding_prove(f, "this rank", "%.3f s", (double)least / 1e9);
    finding_prove(f, "time line", "%.3f s", span / 1e9);
    return true;
}

/* A rank whose handlers take half of its time answers late. */
bool finding_busy_handlers(const struct report_model *model, struct finding *f)
{
    double worst = 0;
    const struct trace_entry *found = NULL;
    for (size_t i = 0; i < model->trace.ranks.count; i++) {
        const struct trace_entry *entry = &model->trace.ranks.entries[i];
        const struct trace_rank *rank = entry->more;
        double span = rank ? (double)(rank->end - rank->begin) : 0;
        if (span < 1e7 || (double)rank->handlers < 0.5 * span)
            continue;
        if ((double)rank->handlers / span > worst) {
            worst = (double)rank->handlers / span;
            found = entry;
        }
    }
    if (!found)
        return false;
    const struct trace_rank *rank = found->more;
    finding_say(f, "Handlers took %.0f %% of the time of rank %" PRIu64 ".", worst * 100,
                found->first);
    finding_prove(f, "time in handlers", "%.3f s", (double)rank->handlers / 1e9);
    finding_prove(f, "from its first to its last event", "%.3f s",
                  (double)(rank->end - rank->begin) / 1e9);
    return true;
}

bool finding_lost_events(const struct report_model *model, struct finding *f)
{
    if (model->trace.lost == 0)
        return false;
    finding_say(f,
                "%" PRIu64 " events of the trace were lost for lack of space; a mask that leaves "
                "classes out makes space for the others.",
                model->trace.lost);
    finding_prove(f, "events in the trace", "%" PRIu64, model->trace.events);
    finding_prove(f, "events lost", "%" PRIu64, model->trace.lost);
    return true;
}
