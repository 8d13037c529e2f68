/* SPDX-License-Identifier: BSD-3-Clause */
/* The tools in a job: a scenario for each behaviour that depends on the job. Usage: tools SCENARIO.
 * Owned by the one client thread. */
#include "config.h"

#include "job.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gasnet_tools.h"

/* Some keys are queried before the ranks are known. */
static void display(int *argc, char ***argv)
{
    gasnett_getenv_int_withdefault("JOB_EARLY", 3, 0);
    job_start(argc, argv, 0);
    gasnett_getenv_int_withdefault("JOB_EARLY", 3, 0);
    gasnett_getenv_int_withdefault("JOB_LATE", 65536, 1);
    gasnett_getenv_yesno_withdefault("JOB_TRUTH", 0);
    CHECK(gasnett_verboseenv() == (job.rank == 0 && gasnett_getenv("GASNET_VERBOSEENV") != NULL));
    CHECK(gasnett_getenv("JOB_TRUTH") == gasnet_getenv("JOB_TRUTH"));
}

static void die(int *argc, char ***argv)
{
    job_start(argc, argv, 0);
    job_barrier();
    if (job.rank == job.size - 1)
        gasnett_fatalerror("rank %u has had enough", (unsigned)job.rank);
    for (;;)
        gasnet_AMPoll();
}

static void crash(int *argc, char ***argv)
{
    job_start(argc, argv, 0);
    job_barrier();
    if (job.rank == job.size - 1)
        raise(SIGSEGV);
    for (;;)
        gasnet_AMPoll();
}

/* All of them or some, on request. */
static void print(int *argc, char ***argv)
{
    job_start(argc, argv, 0);
    int printed = gasnett_print_backtrace_ifenabled(2) == 0;
    fprintf(stderr, "rank %u: %d\n", (unsigned)job.rank, printed);
}

/* A signal to which the environment may give a meaning. */
static void go_on_after_a_signal(int *argc, char ***argv)
{
    job_start(argc, argv, 0);
    if (job.rank == 1)
        raise(SIGUSR1);
    job_barrier();
    fprintf(stderr, "rank %u went on\n", (unsigned)job.rank);
}

int main(int argc, char **argv)
{
    const char *scenario = argc > 1 ? argv[1] : "";
    if (!strcmp(scenario, "die"))
        die(&argc, &argv);
    else if (!strcmp(scenario, "crash"))
        crash(&argc, &argv);
    else if (!strcmp(scenario, "signal"))
        go_on_after_a_signal(&argc, &argv);
    else if (!strcmp(scenario, "print"))
        print(&argc, &argv);
    else
        display(&argc, &argv);
    job_end();
}
