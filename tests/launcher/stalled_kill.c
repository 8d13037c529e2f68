/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into the launcher: a guard whose first SIGKILL misses all but the groups of the ranks,
 * and that gets no CPU for 6 s before it reaches the others. */
#include <signal.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUND_MS = 50, STALL_S = 6 }; /* less than the time between two rounds */

static long now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static long begin; /* of the round that misses them; 0: no round yet */

/* The first round, and the one that stalls, miss; the next ones kill. */
static bool is_missed(void)
{
    static bool has_stalled;

    if (!begin)
        return false;
    if (now_ms() - begin < ROUND_MS)
        return true;
    if (has_stalled)
        return false;
    has_stalled = true;
    sleep(STALL_S);
    begin = now_ms();
    return true;
}

int kill(pid_t pid, int signal)
{
    if (signal == SIGKILL && pid < 0 && !begin)
        begin = now_ms();
    if (signal == SIGKILL && pid > 0 && is_missed())
        return 0;
    return (int)syscall(SYS_kill, pid, signal);
}
