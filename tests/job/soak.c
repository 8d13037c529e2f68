/* SPDX-License-Identifier: BSD-3-Clause */
/* The program in which soak.sh kills ranks. Usage: soak PHASE: start, barrier, flood, putget or
 * exit. Each rank writes the file SOAK_DIR/ready.RANK, with its pid, when it is in that phase. All
 * phases but exit run without end; in the phase exit ranks leave with code 4. SIGUSR1: exit(3),
 * from the loop if there is one by then; SIGUSR2: _exit(3); SIGRTMIN: gasnet_exit(9) in the
 * handler. One thread. */
#include "config.h"

#include "job.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CODE_OF_EXIT = 3,
    CODE_OF_ALL = 4,
    CODE_OF_ENDER = 9,
    SEGMENT = 1 << 20,
    HALF = SEGMENT / 2
};

static volatile sig_atomic_t in_loop, must_exit;
static gex_AM_Index_t take_index;
static uint64_t random_state;

static void on_exit_wanted(int signal)
{
    (void)signal;
    if (!in_loop)
        exit(CODE_OF_EXIT);
    must_exit = 1;
}

static void on_vanish(int signal)
{
    (void)signal;
    _exit(CODE_OF_EXIT);
}

static void on_end(int signal)
{
    (void)signal;
    gasnet_exit(CODE_OF_ENDER);
}

/* Publishes the file atomically. */
static void be_ready(void)
{
    char path[4200], hidden[4200];
    const char *dir = getenv("SOAK_DIR");
    long rank = job_number("PMIX_RANK", 0);
    CHECK(dir, "SOAK_DIR is not set");
    snprintf(path, sizeof path, "%s/ready.%ld", dir, rank);
    snprintf(hidden, sizeof hidden, "%s/hidden.%ld", dir, rank);
    FILE *file = fopen(hidden, "w");
    CHECK(file, "%s can't be written", hidden);
    fprintf(file, "%d\n", (int)getpid());
    CHECK(fclose(file) == 0 && rename(hidden, path) == 0);
}

/* ---- phases */

static gex_Rank_t somebody(void)
{
    return (gex_Rank_t)(job_random(&random_state) % job.size);
}

static void on_take(gex_Token_t token, void *memory, size_t size)
{
    (void)token, (void)memory, (void)size;
}

static void flood(void)
{
    static char bytes[4000];
    size_t size = job_random(&random_state) % sizeof bytes;
    gex_AM_RequestMedium0(job.tm, somebody(), take_index, bytes, size, GEX_EVENT_NOW, 0);
}

static void put_and_get(void)
{
    static char bytes[HALF];
    size_t size = job_random(&random_state) % sizeof bytes;
    gex_Rank_t other = somebody();
    gex_RMA_PutBlocking(job.tm, other, job_remote(other, 0), bytes, size, 0);
    gex_RMA_GetBlocking(job.tm, bytes, other, job_remote(other, HALF), size, 0);
}

static void leave(void)
{
    usleep((useconds_t)(job_random(&random_state) % 5000));
    gasnet_exit(CODE_OF_ALL);
}

static const struct {
    const char *name;
    void (*step)(void);
} phases[] = {{"start", job_barrier},
              {"barrier", job_barrier},
              {"flood", flood},
              {"putget", put_and_get},
              {"exit", leave}};

static void stay_in(void (*step)(void))
{
    in_loop = 1;
    while (!must_exit)
        step();
    exit(CODE_OF_EXIT);
}

int main(int argc, char **argv)
{
    const char *phase = argc > 1 ? argv[1] : "";
    gex_AM_Entry_t entry = {
        0, (gex_AM_Fn_t)on_take, GEX_FLAG_AM_MEDIUM | GEX_FLAG_AM_REQUEST, 0, NULL, NULL};
    signal(SIGUSR1, on_exit_wanted);
    signal(SIGUSR2, on_vanish);
    signal(SIGRTMIN, on_end);
    if (!strcmp(phase, "start"))
        be_ready();
    job_start(&argc, &argv, SEGMENT);
    CHECK(gex_EP_RegisterHandlers(job.ep, &entry, 1) == GASNET_OK);
    take_index = entry.gex_index;
    random_state = (uint64_t)getpid();
    job_barrier();
    if (strcmp(phase, "start") != 0)
        be_ready();
    job_phase("%s", phase);
    for (size_t i = 0; i < sizeof phases / sizeof phases[0]; i++)
        if (!strcmp(phase, phases[i].name))
            stay_in(phases[i].step);
    CHECK(0, "there is no phase '%s'", phase);
}
