/* SPDX-License-Identifier: BSD-3-Clause */
/* Exit from awkward places: signal handlers that interrupt anything, functions of
 * atexit(), two threads at once, messages that come while leaving; and dying: crashes, errors that
 * are fatal. Usage: exit_contexts WAY CODE; the last rank (all ranks, if WAY says so) leaves in
 * that WAY with the CODE, the others wait in a barrier. A rank that gets SIGQUIT prints it. Owned
 * by the main thread but for what the threads of some ways do. */
#include "config.h"

#include "job.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

#include "gasnet_tools.h"

enum {
    THREADS = 3,
    SOON = 20000 /* us: until the program has reached the call that is interrupted */
};

static int code;
static volatile sig_atomic_t has_quit;
static gex_AM_Index_t leave_index, spin_index;
static gex_HSL_t lock = GEX_HSL_INITIALIZER;

/* ---- notification ---- */

static void tell(const char *what)
{
    char text[80];
    int size = snprintf(text, sizeof text, "%s of rank %u\n", what, (unsigned)job.rank);

    if (write(STDERR_FILENO, text, (size_t)size) < 0)
        _exit(3);
}

static void on_quit(int signal)
{
    const char *quit_code = getenv("TEST_QUIT_CODE"), *how = getenv("TEST_QUIT_BY");

    (void)signal;
    tell("SIGQUIT handler");
    if (!quit_code)
        return;
    if (how && !strcmp(how, "exit"))
        exit(atoi(quit_code));
    if (how && !strcmp(how, "thread"))
        has_quit = 1;
    while (how && !strcmp(how, "thread"))
        usleep(1000);
    gasnet_exit(atoi(quit_code));
}

/* Of the last rank the status is worse than what all have agreed on. */
static void end_late(int status)
{
    if (job.rank == job.size - 1)
        _exit(status);
    usleep(800000); /* POLICY_FIRST_LEAVES_MS is 500 */
    tell("late end");
}

static void at_exit(void)
{
    const char *late_status = getenv("TEST_LATE_STATUS");

    tell("atexit function");
    if (late_status)
        end_late(atoi(late_status));
    while (getenv("TEST_LATE_ATEXIT"))
        pause();
}

/* ---- leaving ---- */

static void leave(void)
{
    gasnet_exit(code);
}

static void on_leave(gex_Token_t token)
{
    (void)token;
    leave();
}

static void on_alarm(int signal)
{
    (void)signal;
    leave();
}

static void on_alarm_exit(int signal)
{
    (void)signal;
    exit(code);
}

static void alarm_soon(void (*handler)(int))
{
    struct itimerval soon = {.it_value = {0, SOON}};

    signal(SIGALRM, handler);
    setitimer(ITIMER_REAL, &soon, NULL);
}

static void spin(void)
{
    for (volatile int forever = 1; forever;)
        continue;
}

static void on_spin(gex_Token_t token)
{
    (void)token;
    spin();
}

/* ---- interrupted while doing something ---- */

static void alarm_poll(void)
{
    alarm_soon(on_alarm);
    for (;;)
        gasnet_AMPoll();
}

static void alarm_handler(void)
{
    alarm_soon(on_alarm);
    gex_AM_RequestShort0(job.tm, job.rank, spin_index, 0);
    alarm_poll();
}

static void alarm_hsl(void)
{
    alarm_soon(on_alarm);
    gex_HSL_Lock(&lock);
    spin();
}

static void alarm_memory(void)
{
    alarm_soon(on_alarm);
    for (size_t size = 1;; size = size % 100000 + 777)
        free(job_memory(size));
}

static void alarm_print(void)
{
    alarm_soon(on_alarm);
    for (;;)
        printf("rank %u prints\n", (unsigned)job.rank);
}

static void alarm_exit(void)
{
    alarm_soon(on_alarm_exit);
    for (;;)
        gasnet_AMPoll();
}

static void alarm_abort(void)
{
    signal(SIGABRT, on_alarm);
    abort();
}

/* Endless puts and messages: at some moment each lock of the library is held. */
static void talk(void)
{
    static char data[64];
    gex_Rank_t to = (job.rank + 1) % job.size;

    for (;;) {
        gex_RMA_PutBlocking(job.tm, to, job_remote(to, 0), data, sizeof data, 0);
        gasnet_AMPoll();
    }
}

static void alarm_talk(void)
{
    alarm_soon(on_alarm);
    talk();
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

static void start_threads(void (*task)(void))
{
    pthread_t id;

    thread_task = task;
    pthread_barrier_init(&gathering, NULL, THREADS + 1);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&id, NULL, thread, NULL) == 0);
    pthread_barrier_wait(&gathering);
}

/* All at the same moment. */
static void threads_leave(void)
{
    start_threads(leave);
    leave();
}

static void threads_talk(void)
{
    alarm_soon(on_alarm);
    start_threads(talk);
    talk();
}

/* Threads that are not joined do not keep a process alive. */
static void threads_stay(void)
{
    start_threads(spin);
    exit(code);
}

/* A thread that leaves when the SIGQUIT handler has set a flag; the last rank leaves without
 * one. */
static void look_for_quit(void)
{
    while (!has_quit)
        usleep(1000);
    gasnet_exit((int)job_number("TEST_QUIT_CODE", 0));
}

static void thread_heeds_quit(void)
{
    pthread_t id;

    if (job.rank == job.size - 1)
        leave();
    thread_task = look_for_quit;
    pthread_barrier_init(&gathering, NULL, 1);
    CHECK(pthread_create(&id, NULL, thread, NULL) == 0);
    job_barrier();
}

/* ---- other ways ---- */

static void by_atexit(void)
{
    atexit(leave);
    exit(code + 1); /* the first code counts: exit() leaves before earlier atexit() functions run */
}

static void by_messages(void)
{
    for (int i = 0; i < 20; i++)
        for (gex_Rank_t to = 0; to < job.size; to++)
            gex_AM_RequestShort0(job.tm, to, leave_index, 0);
    for (;;)
        gasnet_AMPoll();
}

static void by_raise(void)
{
    signal(SIGUSR1, on_alarm);
    raise(SIGUSR1);
}

/* Rank VICTIM uses no network; the others leave as usual. */
static void by_raise_among_leaving(void)
{
    if (job.rank == (gex_Rank_t)job_number("VICTIM", 0))
        by_raise();
    leave();
}

/* The codes rise with the ranks. */
static void with_own_codes(void)
{
    code += (int)job.rank;
    by_raise_among_leaving();
}

/* Rank VICTIM uses no network; the last rank leaves with a larger code, and the others poll. */
static void by_raise_among_pollers(void)
{
    if (job.rank == (gex_Rank_t)job_number("VICTIM", 0))
        by_raise();
    if (job.rank == job.size - 1) {
        code++;
        leave();
    }
    for (;;)
        gasnet_AMPoll();
}

/* The last rank leaves alone (GASNET_CATCH_EXIT=0), then rank 0 ends the job. */
static void behind_one_that_left(void)
{
    if (job.rank == job.size - 1)
        exit(0);
    usleep(200000);
    if (job.rank == 0)
        leave();
    for (;;)
        gasnet_AMPoll();
}

static void by_exit(void)
{
    exit(code);
}

static void by_sigint(void)
{
    raise(SIGINT);
    spin();
}

static void by_sigterm(void)
{
    raise(SIGTERM);
    spin();
}

/* The code is the signal's number. */
static void by_signal(void)
{
    kill(getpid(), code);
    spin();
}

/* The last rank leaves; the others never poll. */
static void among_blind(void)
{
    if (job.rank == job.size - 1)
        leave();
    spin();
}

/* The last rank vanishes while the others put to it. */
static void vanish_among_talkers(void)
{
    static char data[64];
    gex_Rank_t last = job.size - 1;

    if (job.rank == last)
        _exit(code);
    for (;;)
        gex_RMA_PutBlocking(job.tm, last, job_remote(last, 0), data, sizeof data, 0);
}

static void by_kill(void)
{
    kill(getpid(), SIGKILL);
}

static void by_underscore_exit(void)
{
    _exit(code);
}

/* ---- dying ---- */

static void fatal(void)
{
    gasnett_fatalerror("rank %u has had enough", (unsigned)job.rank);
}

static void backtrace_and_leave(void)
{
    gasnett_print_backtrace_ifenabled(STDERR_FILENO);
    leave();
}

static void segv(void)
{
    *(volatile int *)(uintptr_t)job_number("TEST_NO_SUCH_VARIABLE", 0) = 1;
}

static int use_all_stack(volatile const char *last)
{
    volatile char next[1000];
    next[0] = last[0];
    return last[0] == '.' ? 0 : use_all_stack(next) + next[0];
}

static void overflow(void)
{
    exit(use_all_stack(""));
}

/* Memory of a file that ends before it. */
static void bus(void)
{
    int fd = memfd_create("empty", 0);
    volatile char *beyond = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

    CHECK(fd >= 0 && (void *)beyond != MAP_FAILED);
    *beyond = 1;
}

static void fpe(void)
{
    raise(SIGFPE); /* dividing by zero is no error on every processor */
}

static void ill(void)
{
    raise(SIGILL);
}

/* ---- choice ---- */

static const struct {
    const char *name;
    void (*go)(void);
    bool all;
} ways[] = {
    {"alarm-poll", alarm_poll, false},
    {"alarm-handler", alarm_handler, false},
    {"alarm-hsl", alarm_hsl, false},
    {"alarm-memory", alarm_memory, false},
    {"alarm-print", alarm_print, false},
    {"alarm-exit", alarm_exit, false},
    {"alarm-abort", alarm_abort, false},
    {"alarm-talk", alarm_talk, false},
    {"alarm-all", alarm_talk, true},
    {"threads-leave", threads_leave, false},
    {"threads-leave-all", threads_leave, true},
    {"threads-talk", threads_talk, false},
    {"threads-stay", threads_stay, false},
    {"threads-stay-all", threads_stay, true},
    {"atexit", by_atexit, false},
    {"atexit-all", by_atexit, true},
    {"messages-all", by_messages, true},
    {"raise", by_raise, false},
    {"raise-among-leaving", by_raise_among_leaving, true},
    {"raise-with-own-codes", with_own_codes, true},
    {"raise-among-pollers", by_raise_among_pollers, true},
    {"behind-one-that-left", behind_one_that_left, true},
    {"exit-all", by_exit, true},
    {"sigint", by_sigint, false},
    {"sigterm-all", by_sigterm, true},
    {"signal", by_signal, false},
    {"leave-among-blind", among_blind, true},
    {"vanish-among-talkers", vanish_among_talkers, true},
    {"leave-thread-heeds-quit", thread_heeds_quit, true},
    {"kill", by_kill, false},
    {"_exit", by_underscore_exit, false},
    {"_exit-all", by_underscore_exit, true},
    {"leave", leave, false},
    {"leave-all", leave, true},
    {"fatal", fatal, false},
    {"backtrace", backtrace_and_leave, false},
    {"abort", abort, false},
    {"segv", segv, false},
    {"overflow", overflow, false},
    {"bus", bus, false},
    {"fpe", fpe, false},
    {"ill", ill, false},
};

static void go(const char *way)
{
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (!strcmp(ways[i].name, way)) {
            printf("rank %u was here", (unsigned)job.rank); /* no newline: an exit flushes it */
            if (ways[i].all || job.rank == job.size - 1)
                ways[i].go();
            job_barrier();
            return;
        }
    fprintf(stderr, "leave: there is no way '%s'\n", way);
    gasnet_exit(111);
}

static void register_handlers(void)
{
    gex_AM_Entry_t table[] = {
        {0, (gex_AM_Fn_t)on_leave, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
        {0, (gex_AM_Fn_t)on_spin, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL},
    };

    CHECK(gex_EP_RegisterHandlers(job.ep, table, 2) == GASNET_OK);
    leave_index = table[0].gex_index;
    spin_index = table[1].gex_index;
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    bool early = !strncmp(way, "early-", 6); /* between init and attach */

    code = argc > 2 ? atoi(argv[2]) : 0;
    if (!getenv("TEST_NO_QUIT_HANDLER"))
        signal(SIGQUIT, on_quit);
    atexit(at_exit);
    job_start(&argc, &argv, early ? 0 : GASNET_PAGESIZE);
    register_handlers();
    job_barrier();
    go(early ? way + 6 : way);
    return code;
}
