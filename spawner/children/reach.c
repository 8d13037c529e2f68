/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends signals: to the ranks by their process groups, and to the processes that they left behind
 * by /proc, because a sub-reaper becomes the parent of every orphan. Pids are reused, and many jobs
 * of a user run at a time, so each pid is checked to be that of a child: it belongs to no other
 * process until it is reaped. Owns nothing, takes no lock. */
#include "config.h"

#include "children.h"
#include "spawner/util/launcher_clock.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

/* Not reaped; the caller is the only one that reaps. */
static bool is_child(pid_t pid)
{
    siginfo_t info;
    return pid > 0 && waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

bool child_signal(pid_t pid, int signal)
{
    return is_child(pid) && kill(pid, signal) == 0;
}

void children_signal(const pid_t *pids, uint32_t count, int signal)
{
    for (uint32_t r = 0; r < count; r++)
        if (is_child(pids[r]))
            kill(-pids[r], signal);
}

enum { NAMESPACES_MAX = 33 }; /* the kernel nests 32 below the first */

/* The pids of a process, a string of digits or "self", in the namespace of /proc and in each one
 * below it, down to its own. Returns how many there are. */
static unsigned pids_of(const char *process, pid_t pids[NAMESPACES_MAX])
{
    char path[64], line[512], *end;
    unsigned count = 0;
    snprintf(path, sizeof(path), "/proc/%.20s/status", process);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f)) {
        if (strncmp(line, "NSpid:", 6) != 0)
            continue;
        for (char *at = line + 6; count < NAMESPACES_MAX; at = end) {
            long pid = strtol(at, &end, 10);
            if (end == at)
                break;
            pids[count++] = (pid_t)pid;
        }
    }
    if (f)
        fclose(f);
    return count;
}

/* How many namespaces of pids lie between that of /proc and ours: none but in containers that have
 * the /proc of their host. There the pids in /proc are those of other processes here. */
static unsigned namespaces_below_proc(void)
{
    pid_t pids[NAMESPACES_MAX];
    unsigned count = pids_of("self", pids);
    return count ? count - 1 : 0;
}

/* The pid here of a process that /proc has as `listed`; 0 when it is gone. */
static pid_t pid_here(pid_t listed, unsigned below)
{
    pid_t pids[NAMESPACES_MAX];
    char process[16];
    if (!below)
        return listed;
    snprintf(process, sizeof(process), "%d", (int)listed);
    return pids_of(process, pids) > below ? pids[below] : 0;
}

/* The parent of a process by /proc; 0 when it is gone. The name may hold blanks and brackets, so
 * the fields are counted from the last bracket. */
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

bool grandchild_signal(pid_t pid, pid_t parent, int signal)
{
    char process[16];
    snprintf(process, sizeof(process), "%d", (int)pid);
    return pid > 0 && parent > 0 && !namespaces_below_proc() && parent_of(process) == parent &&
           kill(-pid, signal) == 0;
}

/* What is done with each child. */
struct child_visit {
    const pid_t *except;
    size_t except_count;
    int signal;
    pid_t *pids; /* the first of them, up to max */
    size_t max;
    unsigned found;
};

static void visit_child(struct child_visit *v, pid_t pid)
{
    if (pid <= 0) /* gone since it was listed */
        return;
    for (size_t i = 0; i < v->except_count; i++)
        if (v->except[i] == pid)
            return;
    if (v->found < v->max)
        v->pids[v->found] = pid;
    v->found++;
    child_signal(pid, v->signal);
}

/* Reads the kernel's own list of our children; false if the kernel does not keep one. The list may
 * miss a child that appears or exits meanwhile, so a caller that needs all children repeats the
 * call until the list is empty. */
static bool visit_listed(struct child_visit *v)
{
    int listed;
    FILE *f = fopen("/proc/thread-self/children", "re");
    if (!f)
        return false;
    unsigned below = namespaces_below_proc();
    while (fscanf(f, "%d", &listed) == 1)
        visit_child(v, pid_here(listed, below));
    fclose(f);
    return true;
}

static void visit_scanned(struct child_visit *v)
{
    pid_t pids[NAMESPACES_MAX];
    unsigned count = pids_of("self", pids);
    pid_t self = count ? pids[0] : getpid(); /* as /proc has it */
    DIR *d = opendir("/proc");
    if (!d)
        return;
    for (struct dirent *e = readdir(d); e; e = readdir(d))
        if (isdigit((unsigned char)e->d_name[0]) && parent_of(e->d_name) == self)
            visit_child(v, pid_here((pid_t)atol(e->d_name), count ? count - 1 : 0));
    closedir(d);
}

static unsigned visit_children(struct child_visit *v)
{
    if (!visit_listed(v))
        visit_scanned(v);
    return v->found;
}

unsigned children_signal_all(int signal, const pid_t *except, size_t count)
{
    return visit_children(
        &(struct child_visit){.except = except, .except_count = count, .signal = signal});
}

unsigned children_list(pid_t *list, size_t max, const pid_t *except, size_t count)
{
    return visit_children(
        &(struct child_visit){.except = except, .except_count = count, .pids = list, .max = max});
}

/* Waits briefly for the end of a child; briefly, because an orphan may be reparented to us at any
 * time. */
static void children_wait_briefly(const sigset_t *ends)
{
    enum { ROUND_MS = 20 };
    struct timespec most = {0, ROUND_MS * 1000000L};
    sigtimedwait(ends, NULL, &most);
}

bool children_sweep(int64_t deadline)
{
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGCHLD);
    sigprocmask(SIG_BLOCK, &ends, NULL);
    for (;;) {
        pid_t pid = waitpid(-1, NULL, WNOHANG);
        if (pid < 0 && errno == ECHILD)
            return true;
        if (pid != 0)
            continue;
        if (clock_ms() >= deadline)
            return false;
        children_signal_all(SIGKILL, NULL, 0);
        children_wait_briefly(&ends);
    }
}
