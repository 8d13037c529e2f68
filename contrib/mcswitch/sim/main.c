/* SPDX-License-Identifier: BSD-3-Clause
 *
 * mcsw-sim: one run, as the options say. */
#include "config.h"

#include <stdio.h>

#include "sim/options.h"
#include "sim/world.h"

static void print_counts(const struct sim_outcome *r)
{
    printf("violations %llu, hangs %d; broadcasts %u, failed %u; timeouts %llu (%.4f each), "
           "repeated %llu, not ready %llu\n",
           (unsigned long long)r->violations, r->hang, r->done, r->failed,
           (unsigned long long)r->timeouts, r->done ? (double)r->timeouts / r->done : 0.0,
           (unsigned long long)r->repeated, (unsigned long long)r->rnr);
    printf("controls %llu, packets %llu, copies %llu (%llu without repetition), recirculations "
           "%llu, frames %llu\n",
           (unsigned long long)r->traffic.controls, (unsigned long long)r->traffic.packets,
           (unsigned long long)r->at.copies, (unsigned long long)r->traffic.copies,
           (unsigned long long)r->at.passes, (unsigned long long)r->frames);
    printf(
        "refused %llu, repeats %llu, answered by the switch %llu, dropped: round queue full %llu, "
        "not linked %llu, of the future %llu\n",
        (unsigned long long)r->at.refused, (unsigned long long)r->at.repeats,
        (unsigned long long)r->at.local, (unsigned long long)r->at.drop_full,
        (unsigned long long)r->at.version, (unsigned long long)r->at.future);
    printf("deaths %llu, sleeps %llu, new queue pairs %llu, repairs %llu, stolen locks %llu, "
           "forged frames %llu\n",
           (unsigned long long)r->traffic.deaths, (unsigned long long)r->traffic.sleeps,
           (unsigned long long)r->traffic.anew, (unsigned long long)r->at.repairs,
           (unsigned long long)r->at.steals, (unsigned long long)r->hostile);
}

static void print_replay(const char *what, const struct sim_options *o)
{
    char line[600];

    sim_options_print(o, line, sizeof line);
    printf("%s: %s\n", what, line);
}

static int run(struct sim_options o)
{
    struct sim_outcome r;

    sim_run(&o, &r);
    sim_print_heading();
    sim_print("mcsw-sim", &r);
    print_counts(&r);
    if (sim_good(&r))
        return 0;
    printf("%s\n", r.first);
    print_replay("again", &o);
    if (o.shrink) {
        o = sim_shrink(&o);
        print_replay("smaller", &o);
        sim_run(&o, &r);
        printf("%s\n", r.first);
    }
    return 1;
}

int main(int argc, char **argv)
{
    struct sim_options o;
    int status;

    sim_options_default(&o);
    status = sim_options_parse(&o, argc, argv);
    if (status)
        status = status == 1 ? 0 : status; /* --help was asked for */
    else
        status = run(o);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    perror("mcsw-sim: cannot write standard output");
    return status ? status : 1;
}
