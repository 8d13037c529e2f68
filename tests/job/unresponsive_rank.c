/* SPDX-License-Identifier: BSD-3-Clause */
/* A job that one process ends while another hangs. Usage: unresponsive_rank WAY: the last rank
 * hangs in that WAY, then rank 0 leaves with code 5; others wait in a barrier. Each rank prints its
 * pid first. In the ways that begin with launcher- rank 0 kills the launcher. One thread, and one
 * that keeps a lock. */
#include "config.h"

#include "job.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CODE = 5, SOON = 100000 /* us: until the others have reached their places */ };

/* ---- being stuck */

static void stop(void)
{
    raise(SIGSTOP);
}

static void spin(void)
{
    for (volatile int forever = 1; forever;)
        continue;
}

static void be_deaf(void)
{
    signal(SIGTERM, SIG_IGN);
    signal(SIGQUIT, SIG_IGN);
    spin();
}

/* Blocks when the reader of the pipe does not read. */
static void print(void)
{
    for (;;)
        printf("rank %u has much to say and nobody listens\n", (unsigned)job.rank);
}

static void poll_forever(void)
{
    for (;;)
        gasnet_AMPoll();
}

/* ---- leaving */

/* Prints the time from which the script measures. */
static void say_when(void)
{
    struct timespec now;
    usleep(SOON);
    clock_gettime(CLOCK_REALTIME, &now);
    fprintf(stderr, "at %lld%06ld\n", (long long)now.tv_sec, now.tv_nsec / 1000);
}

static void leave(void)
{
    say_when();
    gasnet_exit(CODE);
}

/* Has much to flush. */
static void leave_full(void)
{
    enum { MUCH = 4 << 20, LINE = 64 };
    setvbuf(stdout, job_memory(2 * MUCH), _IOFBF, 2 * MUCH);
    for (int i = 0; i < MUCH / LINE; i++)
        printf("%0*d\n", LINE - 1, i);
    leave();
}

/* Another thread holds the lock of the stream that must be flushed. */
static void *keep_output(void *unused)
{
    flockfile(stdout);
    pause();
    return unused;
}

static void leave_locked(void)
{
    pthread_t keeper;
    CHECK(pthread_create(&keeper, NULL, keep_output, NULL) == 0);
    leave();
}

/* ---- the launcher */

/* The parent of a process, and its name. */
static pid_t parent_of(pid_t pid, char name[64])
{
    char path[64], text[512] = "";
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (file) {
        size_t got = fread(text, 1, sizeof text - 1, file);
        text[got] = 0;
        fclose(file);
    }
    char *end = strrchr(text, ')');
    CHECK(end && sscanf(end + 1, " %*c %d", &parent) == 1, "no %s", path);
    *end = 0;
    snprintf(name, 64, "%s", strchr(text, '(') + 1);
    return parent;
}

static pid_t find_launcher(void)
{
    char name[64] = "";
    pid_t pid = getpid(), above = parent_of(pid, name);
    while (strcmp(name, "gasnetrun_ibv") != 0) {
        CHECK(above > 1, "the launcher is not among our ancestors");
        pid = above;
        above = parent_of(pid, name);
    }
    return pid;
}

static void kill_launcher(void)
{
    say_when();
    CHECK(kill(find_launcher(), SIGKILL) == 0);
    job_barrier();
}

/* As a rank that is about to hear of it. */
static void kill_launcher_and_leave(void)
{
    say_when();
    CHECK(kill(find_launcher(), SIGKILL) == 0);
    gasnet_exit(CODE);
}

static const struct {
    const char *name;
    void (*last)(void), (*first)(void);
} ways[] = {
    {"stopped", stop, leave},
    {"spinning", spin, leave},
    {"deaf", be_deaf, leave},
    {"printing", print, leave},
    {"flushing", poll_forever, leave_full},
    {"locked", poll_forever, leave_locked},
    {"launcher-waiting", job_barrier, kill_launcher},
    {"launcher-stopped", stop, kill_launcher},
    {"launcher-deaf", be_deaf, kill_launcher},
    {"launcher-leaving", leave, kill_launcher_and_leave},
};

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    job_start(&argc, &argv, GASNET_PAGESIZE);
    fprintf(stderr, "pid %d\n", (int)getpid());
    job_barrier();
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++)
        if (!strcmp(way, ways[i].name)) {
            if (job.rank == 0)
                ways[i].first();
            else if (job.rank == job.size - 1)
                ways[i].last();
            job_barrier();
        }
    CHECK(0, "it did not end, or '%s' is no way to be stuck", way);
}
