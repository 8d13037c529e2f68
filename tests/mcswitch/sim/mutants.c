/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Deliberate faults in the switch, one at a time (doc/multicast.md has the list): a short history
 * of directed.c or the simulator must find each; the switch without a fault passes all of them.
 * usage: mutants [NUMBER] Each run is a process of its own, because a mutant may never end. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/core.h"
#include "directed.h"
#include "sim/options.h"
#include "sim/world.h"

enum { patience = 60, words_most = 32, text_room = 256 };

struct mutant {
    int number;
    const char *what;
    bool by_chance; /* the simulator alone sees it too */
};

static const struct mutant mutants[] = {
    {0, "none", false},
    {1, "a gap is reported at the next number", true},
    {2, "a receiver's NAK is passed on with its own number", true},
    {3, "responses of unlinked receivers count", false},
    {4, "no answer to a repeat that all have", true},
    {5, "a release does not wait", true},
    {6, "a release of one without the lock is acknowledged", true},
    {7, "a repeated control is applied again", true},
    {8, "offsets stay at a new set", true},
    {9, "acknowledgements of what was not sent count", false},
    {10, "the scan's result is not verified", true},
    {12, "finished repeats are not acknowledged again", true},
    {13, "a stolen lock is neither rolled back nor fenced", true},
    {14, "dirty receivers are linked", true},
};
enum { n_mutants = sizeof mutants / sizeof mutants[0] };

/* Options of the simulator's runs; without loss there must be no time-out. */
static const char *const runs[] = {
    "--loss 1 --dup 2 --reorder 5 --keep 40 --broadcasts 150",
    "--deaths 4 --sleeps 12 --keep 30 --loss 1 --broadcasts 300",
    "--aggregate scan --skew 100 --delayed 30 --broadcasts 150",
    "--aggregate scan --pauses 5 --loss 1 --broadcasts 150",
    "--hostile 100 --broadcasts 150",
    "--levels 2 --members 8 --leaf 4 --loss 1 --dup 2 --broadcasts 60",
};
enum { n_runs = sizeof runs / sizeof runs[0] };

static bool simulated(const char *text)
{
    char copy[text_room], *words[words_most] = {"mutants"};
    struct sim_options o;
    struct sim_outcome out;
    int n = 1;

    snprintf(copy, sizeof copy, "%s", text);
    for (char *word = strtok(copy, " "); word && n < words_most; word = strtok(NULL, " "))
        words[n++] = word;
    sim_options_default(&o);
    if (sim_options_parse(&o, n, words) != 0)
        exit(2);
    sim_run(&o, &out);
    if (sim_good(&out) && (o.loss || out.timeouts == 0))
        return true;
    printf("    mcsw-sim %s: %s\n", text, out.first[0] ? out.first : "time-outs without a loss");
    return false;
}

static bool directed(void)
{
    bool good = true;

    for (const struct directed *d = directed_cases; d->name; d++) {
        const char *wrong = d->run();

        if (wrong)
            printf("    %s: %s\n", d->name, wrong);
        good = good && !wrong;
    }
    return good;
}

/* Runs the histories or the simulator; false: an error was found, or the run never ended. */
static bool look(int mutant, const char *run)
{
    int status;
    pid_t child;

    fflush(stdout);
    child = fork();
    if (child == 0) {
        bool good;

        alarm(patience);
        mcsw_mutant = mutant;
        good = run ? simulated(run) : directed();
        fflush(stdout);
        _exit(good ? 0 : 1);
    }
    if (child < 0 || waitpid(child, &status, 0) != child)
        exit(1);
    if (WIFSIGNALED(status))
        printf("    %s: signal %d\n", run ? run : "directed", WTERMSIG(status));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* 0: as it must be. */
static int judge(const struct mutant *m)
{
    bool directed_sees, chance_sees = false;

    printf("M%d %s\n", m->number, m->what);
    directed_sees = !look(m->number, NULL);
    for (int i = 0; i < n_runs && !chance_sees; i++)
        chance_sees = !look(m->number, runs[i]);
    if (m->number == 0)
        return directed_sees || chance_sees;
    if (m->by_chance && !chance_sees)
        printf("FAILED: the simulator does not see M%d\n", m->number);
    else if (!directed_sees && !chance_sees)
        printf("FAILED: nothing sees M%d\n", m->number);
    else
        return 0;
    return 1;
}

int main(int argc, char **argv)
{
    int only = argc > 1 ? atoi(argv[1]) : -1, failed = 0;

    for (int i = 0; i < n_mutants; i++)
        if (only < 0 || mutants[i].number == only)
            failed += judge(&mutants[i]);
    return failed != 0;
}
