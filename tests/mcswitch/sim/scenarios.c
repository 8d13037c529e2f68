/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The table of simulated scenarios: no violation and no hang in any of them; without loss no
 * time-out and no repetition; and the stall of aggregation by rounds.
 *
 * usage: scenarios short|whole|night [PART OF A NAME]
 *
 *     short   a few seconds, in make check
 *     whole   the lengths of doc/multicast.md
 *     night   ten times these
 *
 * A failure prints the mcsw-sim command that repeats it. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sim/options.h"
#include "sim/world.h"

enum { words_most = 48, night_times = 10, text_room = 1024, minutes = 120, round_trip = 4 };

struct scenario {
    const char *name, *options;
    uint32_t whole, brief; /* broadcasts */
    bool clean;            /* nothing lost: no time-out */
    bool exact;            /* no member waits: no repetition and no extra copy */
    double stall;          /* time-outs per broadcast that it has at least */
};

#define RND "--loss 2 --dup 5 --reorder 20 --rnr 2"
#define DIE "--deaths 2 --sleeps 2 --keep 30"
#define TWO "--levels 2 "

static const struct scenario scenarios[] = {
    {"10000 random subsets, one at a time", "--members 8 --alone --keep 30", 10000, 10000, true,
     true, 0},
    {"6 members, no loss", "--members 6", 6000, 750, true, false, 0},
    {"6 members, acknowledgements held back", "--delayed 30", 6000, 600, true, false, 0},
    {"6 members, loss 0.1 %", "--loss 0.1", 6000, 750, false, false, 0},
    {"6 members, loss 1 %", "--loss 1", 6000, 750, false, false, 0},
    {"6 members, loss and doubles 5 %, not ready", "--loss 5 --dup 5 --rnr 2 --delayed 30", 6000,
     150, false, false, 0},
    {"6 members, loss, doubles, reordering", RND, 6000, 300, false, false, 0},
    {"scan, no loss", "--aggregate scan", 6000, 750, true, false, 0},
    {"scan, acknowledgements held back", "--aggregate scan --delayed 30", 6000, 300, true, false,
     0},
    {"scan, loss 0.1 %", "--aggregate scan --loss 0.1", 6000, 300, false, false, 0},
    {"scan, loss 1 %", "--aggregate scan --loss 1", 6000, 300, false, false, 0},
    {"scan, loss and doubles 5 %, not ready",
     "--aggregate scan --loss 5 --dup 5 --rnr 2 --delayed 30", 6000, 300, false, false, 0},
    {"scan, loss, doubles, reordering", "--aggregate scan " RND, 6000, 300, false, false, 0},
    {"scan in loops, loss, doubles, reordering", "--loops --aggregate scan " RND, 6000, 300, false,
     false, 0},
    {"scan, slow rounds, loss 1 %", "--aggregate scan --pauses 20 --loss 1 --dup 2", 6000, 300,
     false, false, 0},
    {"32 members, loss 0.1 %", "--members 32 --loss 0.1", 3840, 120, false, false, 0},
    {"32 members, scan, loss 0.1 %", "--members 32 --loss 0.1 --aggregate scan", 3840, 120, false,
     false, 0},
    {"4 leaves, 16 members, no loss", TWO "--members 16 --leaf 4", 4000, 180, true, false, 0},
    {"4 leaves, 16 members, loss 0.1 %", TWO "--members 16 --leaf 4 --loss 0.1", 4000, 120, false,
     false, 0},
    {"4 leaves, 16 members, loss 3 %, reordering",
     TWO "--members 16 --leaf 4 --loss 3 --dup 5 --reorder 20 --rnr 1", 4000, 120, false, false, 0},
    {"4 leaves, 16 members, scan, loss 1 %",
     TWO "--members 16 --leaf 4 --loss 1 --dup 2 --reorder 5 --aggregate scan", 4000, 90, false,
     false, 0},
    {"3 leaves, 33 members, loss 1 %, reordering",
     TWO "--members 33 --leaf 11 --loss 1 --dup 2 --reorder 5", 1000, 36, false, false, 0},
    {"2 leaves, 64 members, loss 1 %, reordering",
     TWO "--members 64 --leaf 32 --loss 1 --dup 2 --reorder 5", 1000, 24, false, false, 0},
    {"roots die and sleep, no loss", DIE, 18000, 600, false, false, 0},
    {"roots die and sleep, loss 1 %", DIE " --loss 1 --dup 1", 18000, 450, false, false, 0},
    {"roots sleep often, loss 1 %", "--sleeps 12 --keep 30 --loss 1", 3000, 180, false, false, 0},
    {"roots die and sleep, loss 3 %, reordering, scan",
     DIE " --loss 3 --dup 3 --reorder 5 --rnr 1 --aggregate scan", 18000, 300, false, false, 0},
    {"4 leaves, roots die and sleep, loss 0.5 %", TWO "--members 12 --leaf 4 --loss 0.5 " DIE, 2000,
     30, false, false, 0},
    {"forged frames, loss, deaths", "--hostile 100 --loss 1 --dup 2 --deaths 1", 6000, 450, false,
     false, 0},
    {"rounds, no loss: it stalls", "--aggregate rounds", 6000, 300, false, false, 0.2},
};
enum { n_scenarios = sizeof scenarios / sizeof scenarios[0] };

static void options_of(const struct scenario *s, uint32_t broadcasts, uint64_t seed,
                       struct sim_options *o)
{
    char text[text_room], *words[words_most] = {"scenarios"};
    int n = 1;

    snprintf(text, sizeof text, "%s", s->options);
    for (char *w = strtok(text, " "); w && n < words_most; w = strtok(NULL, " "))
        words[n++] = w;
    sim_options_default(o);
    if (sim_options_parse(o, n, words) != 0)
        exit(2);
    o->broadcasts = broadcasts;
    o->seed = seed;
}

/* Further conditions on a good outcome: names one that does not hold; NULL: all hold. */
static const char *missing(const struct scenario *s, const struct sim_options *o,
                           const struct sim_outcome *r)
{
    double each = r->done ? (double)r->timeouts / r->done : 0;

    if (!(o->deaths || o->sleeps) && r->done != o->broadcasts)
        return "not all broadcasts are complete";
    if (s->clean && r->timeouts)
        return "time-outs, though nothing was lost";
    if (s->clean && r->at.copies != r->traffic.copies)
        return "more copies than packets and receivers";
    if (s->exact && (r->repeated || r->rnr || r->naks))
        return "packets were repeated or refused without loss";
    if (s->exact && (r->at.controls != r->traffic.controls || r->traffic.controls != o->broadcasts))
        return "not one control for each set";
    if (s->exact && r->sent != r->traffic.packets + r->at.releases)
        return "roots sent more than controls, data and releases";
    /* A link takes 1 to 1.4, so a round trip 4 to 5.6; two would be 8 at least. */
    if (s->exact && r->links >= 2 * round_trip)
        return "more than one round trip from the control to the end";
    if (each < s->stall)
        return "no stall";
    return NULL;
}

/* One run of a scenario, in a process of its own. */
static int run_one(const struct scenario *s, uint32_t broadcasts, uint64_t seed)
{
    struct sim_options o;
    struct sim_outcome r;
    const char *why;
    char again[text_room];

    options_of(s, broadcasts, seed, &o);
    sim_run(&o, &r);
    sim_print(s->name, &r);
    why = sim_good(&r) ? missing(s, &o, &r) : r.first;
    if (why) {
        sim_options_print(&o, again, sizeof again);
        printf("FAILED: %s\n  again: %s\n", why, again);
    }
    fflush(stdout);
    return why != NULL;
}

static int run_scenario(const struct scenario *s, bool brief, uint32_t times)
{
    int failed = 0;

    for (uint32_t seed = 1; seed <= times; seed++)
        failed += run_one(s, brief ? s->brief : s->whole, seed);
    return failed != 0;
}

static int await_one(void)
{
    int status;

    return wait(&status) > 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0);
}

static int run_all(const char *part, bool brief, uint32_t times, long processes)
{
    int failed = 0, running = 0;

    sim_print_heading();
    for (int i = 0; i < n_scenarios; i++) {
        pid_t child;

        if (!strstr(scenarios[i].name, part))
            continue;
        fflush(stdout);
        child = fork();
        if (child == 0)
            _exit(run_scenario(&scenarios[i], brief, times));
        if (child < 0)
            return 1;
        for (running++; running >= processes; running--)
            failed += await_one();
    }
    for (; running; running--)
        failed += await_one();
    return failed;
}

int main(int argc, char **argv)
{
    const char *length = argc > 1 ? argv[1] : "short", *part = argc > 2 ? argv[2] : "";
    bool brief = strcmp(length, "short") == 0, night = strcmp(length, "night") == 0;
    int failed;

    if (!brief && !night && strcmp(length, "whole") != 0) {
        fprintf(stderr, "scenarios %s: it is one of short, whole, night\n", length);
        return 2;
    }
    alarm(minutes * 60);
    failed =
        run_all(part, brief, night ? night_times : 1, brief ? 1 : sysconf(_SC_NPROCESSORS_ONLN));
    printf("%d scenarios failed\n", failed);
    return failed != 0;
}
