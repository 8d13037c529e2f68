/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Prints the result of a run as a line of a table, and searches smaller runs that fail too. */
#include "config.h"

#include <stdio.h>

#include "sim/world.h"

void sim_print_heading(void)
{
    printf("%-44s %9s %7s %8s %8s %8s %7s %7s %6s\n", "scenario", "done", "failed", "links",
           "time/op", "tmo/op", "rnr/op", "extra", "steals");
}

/* extra: copies per broadcast beyond one for each packet and receiver. */
void sim_print(const char *name, const struct sim_outcome *out)
{
    double ops = out->done ? out->done : 1;

    printf("%-44s %9u %7u %8.1f %8.1f %8.4f %7.2f %7.2f %6llu\n", name, out->done, out->failed,
           out->links, out->per_link, (double)out->timeouts / ops, (double)out->rnr / ops,
           ((double)out->at.copies - (double)out->traffic.copies) / ops,
           (unsigned long long)out->at.steals);
}

static bool fails(const struct sim_options *o)
{
    struct sim_outcome out;

    sim_run(o, &out);
    return !sim_good(&out);
}

/* Tries a change for a few seeds; keeps it if one of them fails. */
static bool keeps(struct sim_options *o, struct sim_options changed)
{
    enum { tries = 8 };

    for (uint64_t i = 0; i < tries; i++) {
        changed.seed = o->seed + i;
        if (fails(&changed)) {
            *o = changed;
            return true;
        }
    }
    return false;
}

static bool smaller_size(struct sim_options *o)
{
    struct sim_options c = *o;

    c.broadcasts = o->broadcasts / 2;
    if (c.broadcasts && keeps(o, c))
        return true;
    c = *o;
    c.broadcasts -= o->broadcasts > 1;
    if (o->broadcasts <= 16 && c.broadcasts < o->broadcasts && keeps(o, c))
        return true;
    c = *o;
    c.members = o->members - 1;
    if (c.members >= 2 && keeps(o, c))
        return true;
    c = *o;
    c.messages = c.packets = 1;
    return (o->messages > 1 || o->packets > 1) && keeps(o, c);
}

static bool less_trouble(struct sim_options *o)
{
    uint32_t *const field[] = {&o->loss,    &o->dup,     &o->reorder, &o->rnr,
                               &o->delayed, &o->pauses,  &o->deaths,  &o->sleeps,
                               &o->keep,    &o->hostile, &o->skew};

    for (size_t i = 0; i < sizeof field / sizeof field[0]; i++) {
        uint32_t had = *field[i];
        struct sim_options c = *o;

        if (had == 0)
            continue;
        *field[i] = 0;
        c = *o;
        *field[i] = had;
        if (keeps(o, c))
            return true;
    }
    return false;
}

struct sim_options sim_shrink(const struct sim_options *o)
{
    struct sim_options best = *o;

    while (less_trouble(&best) || smaller_size(&best))
        ;
    return best;
}
