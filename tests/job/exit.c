/* SPDX-License-Identifier: BSD-3-Clause */
/* Every cause of the end of a job. Usage: exit SCENARIO; a rank that leaves uses the number of the
 * scenario as its exit code. The other ranks print a line when their SIGQUIT handler runs. In
 * scenarios with threads each rank has THREADS of them. */
#include "config.h"

#include "job.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 4 };

static int scenario;
static volatile int spinning = 1;
static gex_AM_Index_t leave_index, bounce_index, leave_reply_index, count_index;
static volatile unsigned counted;

/* ---- what a rank may do ---- */

static void leave(void)
{
    printf("rank %u leaves", (unsigned)job.rank); /* no newline: gasnet_exit() flushes it */
    gasnet_exit(scenario);
}

static void spin(void)
{
    while (spinning)
        continue;
}

static void poll_forever(void)
{
    for (;;)
        gasnet_AMPoll();
}

static void talk_forever(void)
{
    static char data[100];

    for (;;) {
        gex_Rank_t to = (job.rank + 1) % job.size;

        gex_AM_RequestShort0(job.tm, to, count_index, 0);
        gex_RMA_PutBlocking(job.tm, to, job_remote(to, 0), data, sizeof data, 0);
    }
}

static void on_leave(gex_Token_t token)
{
    (void)token;
    leave();
}

static void on_bounce(gex_Token_t token)
{
    gex_AM_ReplyShort0(token, leave_reply_index, 0);
}

static void on_count(gex_Token_t token)
{
    (void)token;
    counted++;
}

static void register_handlers(void)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)on_leave, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
        {0, (gex_AM_Fn_t)on_bounce, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
        {0, (gex_AM_Fn_t)on_leave, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REPLY, 0, NULL, NULL},
        {0, (gex_AM_Fn_t)on_count, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
    };

    CHECK(gex_EP_RegisterHandlers(job.ep, table, 4) == GASNET_OK);
    leave_index = table[0].gex_index;
    bounce_index = table[1].gex_index;
    leave_reply_index = table[2].gex_index;
    count_index = table[3].gex_index;
}

/* ---- functions that must not, or must, run ---- */

static void on_quit(int signal)
{
    char text[64];
    int size = snprintf(text, sizeof text, "SIGQUIT handler of rank %u\n", (unsigned)job.rank);

    (void)signal;
    if (write(STDERR_FILENO, text, (size_t)size) < 0)
        _exit(3);
}

static void on_quit_leave(int signal)
{
    on_quit(signal);
    gasnet_exit(scenario);
}

static void on_user_signal(int signal)
{
    (void)signal;
    gasnet_exit(scenario);
}

static void at_exit(void)
{
    static const char text[] = "atexit function ran\n";

    if (write(STDERR_FILENO, text, sizeof text - 1) < 0)
        _exit(3);
}

static void leave_at_exit(void)
{
    gasnet_exit(scenario);
}

/* ---- one rank leaves, the others do something else ---- */

static void one_leaves(void (*how)(void), void (*others)(void))
{
    if (job.rank == 0)
        how();
    others();
}

static void interrupt_ourselves(void)
{
    kill(getpid(), SIGINT);
    spin();
}

static void terminate_ourselves(void)
{
    kill(getpid(), SIGTERM);
    spin();
}

static void kill_ourselves(void)
{
    kill(getpid(), SIGKILL);
}

static void crash(void)
{
    volatile int *nowhere = (volatile int *)(uintptr_t)job_number("TEST_NO_SUCH_VARIABLE", 0);

    *nowhere = 1;
}

static void user_signal(void)
{
    signal(SIGUSR1, on_user_signal);
    raise(SIGUSR1);
}

static void vanish(void)
{
    _exit(scenario);
}

static void leave_through_exit(void)
{
    exit(scenario);
}

static void ask_all_to_leave(void)
{
    for (gex_Rank_t to = 0; to < job.size; to++)
        gex_AM_RequestShort0(job.tm, (job.rank + to) % job.size, leave_index, 0);
}

static void ask_another_to_leave(void)
{
    gex_AM_RequestShort0(job.tm, job.size - 1, leave_index, 0);
    poll_forever();
}

static void ask_ourselves_to_leave(void)
{
    gex_AM_RequestShort0(job.tm, job.rank, leave_index, 0);
    poll_forever();
}

static void ask_for_the_last_word(void)
{
    gex_AM_RequestShort0(job.tm, job.size - 1, bounce_index, 0);
    poll_forever();
}

/* Rank 0, which elects the rank that notifies the others, does not poll for a second. */
static void away_for_a_second(void)
{
    if (job.rank == 0) {
        sleep(1);
        fprintf(stderr, "rank 0 is back\n");
    }
    poll_forever();
}

/* ---- threads ---- */

static pthread_barrier_t gathering;
static void (*thread_task)(void);

static void *thread(void *unused)
{
    pthread_barrier_wait(&gathering);
    thread_task();
    return NULL;
}

static void wait_for_threads(void)
{
    static pthread_barrier_t never = {{0}};

    pthread_barrier_init(&never, NULL, THREADS + 2);
    pthread_barrier_wait(&never);
}

/* All threads of all ranks do `others`, but the main thread of rank 0 leaves (or all do). */
static void with_threads(void (*others)(void))
{
    pthread_t id;

    thread_task = others;
    pthread_barrier_init(&gathering, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&id, NULL, thread, NULL) == 0);
    pthread_barrier_wait(&gathering);
    if (job.rank == 0)
        leave();
    others();
}

/* ---- scenarios ---- */

static int run_threads(void)
{
    switch (scenario) {
    case 14:
        with_threads(leave);
        return 1;
    case 15:
        with_threads(wait_for_threads);
        return 1;
    case 16:
        with_threads(spin);
        return 1;
    case 17:
        with_threads(poll_forever);
        return 1;
    case 18:
        with_threads(talk_forever);
        return 1;
    default:
        return 0;
    }
}

static int run_in_handlers(void)
{
    switch (scenario) {
    case 10:
        ask_all_to_leave();
        poll_forever();
        return 1;
    case 11:
        one_leaves(ask_another_to_leave, poll_forever);
        return 1;
    case 12:
        one_leaves(ask_ourselves_to_leave, job_barrier);
        return 1;
    case 13:
        for (int i = 0; i < 100; i++)
            ask_all_to_leave();
        poll_forever();
        return 1;
    case 30:
        one_leaves(ask_for_the_last_word, poll_forever);
        return 1;
    default:
        return 0;
    }
}

static int run_signals(void)
{
    switch (scenario) {
    case 4:
        signal(SIGQUIT, on_quit_leave);
        one_leaves(interrupt_ourselves, job_barrier);
        return 1;
    case 20:
        one_leaves(kill_ourselves, job_barrier);
        return 1;
    case 21:
        one_leaves(crash, job_barrier);
        return 1;
    case 22:
        one_leaves(abort, spin);
        return 1;
    case 23:
        one_leaves(vanish, job_barrier);
        return 1;
    case 25:
        one_leaves(user_signal, job_barrier);
        return 1;
    case 26: /* with the library's own SIGQUIT handler */
        one_leaves(terminate_ourselves, job_barrier);
        return 1;
    default:
        return 0;
    }
}

static int run_plain(void)
{
    switch (scenario) {
    case 1:
        leave();
        return 1;
    case 3:
        one_leaves(leave, job_barrier);
        return 1;
    case 5:
        one_leaves(leave, spin);
        return 1;
    case 8:
        one_leaves(leave_through_exit, job_barrier);
        return 1;
    case 9:
        one_leaves(leave_through_exit, spin);
        return 1;
    case 19: /* not all agree on the code */
        gasnet_exit(job.rank == job.size - 1 ? scenario : 0);
        return 1;
    case 24:
        atexit(leave_at_exit);
        return 1;
    case 31: /* each rank gives another code */
        gasnet_exit(1 + (int)job.rank);
        return 1;
    case 32:
        exit(1 + (int)job.rank);
        return 1;
    case 33:
        if (job.rank == job.size - 1)
            leave();
        away_for_a_second();
        return 1;
    default:
        return 0;
    }
}

/* Between init and attach */
static void run_early(void)
{
    if (scenario == 6 || (scenario == 7 && job.rank == 0))
        leave();
}

int main(int argc, char **argv)
{
    scenario = argc > 1 ? atoi(argv[1]) : 0;
    if (scenario != 26)
        signal(SIGQUIT, on_quit);
    atexit(at_exit);
    if (scenario == 34)
        leave();
    job_start(&argc, &argv, 0);
    printf("rank %u was here\n", (unsigned)job.rank); /* flushed by the exit */
    run_early();
    job_attach(GASNET_PAGESIZE);
    register_handlers();
    job_barrier();
    if (run_plain() || run_in_handlers() || run_signals() || run_threads() || scenario == 2)
        return scenario == 24 ? 0 : scenario;
    fprintf(stderr, "exit: no scenario %d\n", scenario);
    gasnet_exit(111);
}
