/* SPDX-License-Identifier: BSD-3-Clause */
/* Reaching processes with signals: the ranks through their process groups, everything they left
 * behind through /proc, because a sub-reaper becomes the parent of every orphan. Owns nothing,
 * takes no lock. */
#include "config.h"

#include "children.h"
#include "spawner/base/clock.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

void children_signal(const pid_t *pids, uint32_t count, int signal)
{
    for (uint32_t r = 0; r < count; r++)
        if (pids[r] > 0)
            kill(-pids[r], signal);
}

/* The parent of a process as /proc tells it; 0 when it is gone. The name may hold blanks and
 * brackets, so the fields are counted from the last bracket. */
static pid_t parent_of(const char *pid)
{
    char path[64], text[512];
    snprintf(path, sizeof(path), "/proc/%.20s/stat", pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    size_t n = fread(text, 1, sizeof(text) - 1, f);
    fclose(f);
    text[n] = 0;
    char *end = strrchr(text, ')');
    int parent = 0;
    return end && sscanf(end + 1, " %*c %d", &parent) == 1 ? parent : 0;
}

unsigned children_signal_all(int signal, pid_t except)
{
    pid_t self = getpid();
    unsigned found = 0;
    DIR *d = opendir("/proc");
    if (!d)
        return 0;
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (!isdigit((unsigned char)e->d_name[0]) || parent_of(e->d_name) != self)
            continue;
        pid_t pid = (pid_t)atol(e->d_name);
        if (pid == except)
            continue;
        found++;
        kill(pid, signal);
    }
    closedir(d);
    return found;
}

bool children_sweep(int64_t deadline)
{
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0 && errno == ECHILD)
            return true;
        if (pid != 0)
            continue;
        if (clock_ms() >= deadline)
            return false;
        children_signal_all(SIGKILL, 0);
        poll(NULL, 0, 1); /* a killed process needs a moment to die; the deadline bounds the wait */
    }
}
