/* SPDX-License-Identifier: BSD-3-Clause */
/* watchdog SECONDS COMMAND [ARGS...]: runs a command in a process group of its own, with a
 * deadline, and checks what it leaves behind. Every process that a job starts becomes a child of
 * this process when its parents die, so "nothing is left running" is verified without a search by
 * name. Exit status: the command's (128+signal); 124 when time ran out, after printing what hung;
 * 125 when the command ended but left processes; 126 when it could not be started. Single thread,
 * takes no lock. */
#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { OUT_OF_TIME = 124, LEFTOVERS = 125, NOT_STARTED = 126 };

/* A process that got SIGTERM may take this long, e.g. to unmap a large segment. */
static const double leave_seconds = 4;

/* The largest number of processes that are looked at. */
enum { MAX_FAMILY = 4096 };

struct family {
    int count;
    pid_t pid[MAX_FAMILY];
};

static double now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static size_t read_file(const char *path, char *text, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : read(fd, text, size - 1);

    if (fd >= 0)
        close(fd);
    text[got > 0 ? got : 0] = '\0';
    return got > 0 ? (size_t)got : 0;
}

/* The parent of a process and its state letter; 0 when it is gone. */
static pid_t parent_of(pid_t pid, char *state)
{
    char path[64], text[1024], *after_name;
    int parent = 0;

    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    read_file(path, text, sizeof text);
    after_name = strrchr(text, ')');
    if (!after_name || sscanf(after_name + 1, " %c %d", state, &parent) != 2)
        return 0;
    return parent;
}

static int descends_from_us(pid_t pid)
{
    char state;

    for (int depth = 0; pid > 1 && depth < 64; depth++) {
        pid = parent_of(pid, &state);
        if (pid == getpid())
            return state != 'Z';
    }
    return 0;
}

/* Everything below this process, zombies left out. */
static void find_family(struct family *family)
{
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    char state;

    family->count = 0;
    while (proc && (entry = readdir(proc)) && family->count < MAX_FAMILY) {
        pid_t pid = isdigit((unsigned char)entry->d_name[0]) ? atoi(entry->d_name) : 0;

        if (pid && descends_from_us(pid) && parent_of(pid, &state) && state != 'Z')
            family->pid[family->count++] = pid;
    }
    if (proc)
        closedir(proc);
}

static void describe(pid_t pid)
{
    char path[64], command[512], wait[128], state = '?';
    pid_t parent = parent_of(pid, &state);
    size_t length;

    snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
    length = read_file(path, command, sizeof command);
    for (size_t i = 0; i + 1 < length; i++)
        if (command[i] == '\0')
            command[i] = ' ';
    snprintf(path, sizeof path, "/proc/%d/wchan", (int)pid);
    read_file(path, wait, sizeof wait);
    fprintf(stderr, "watchdog:   pid %d parent %d state %c in %s: %.200s\n", (int)pid, (int)parent,
            state, wait, command);
}

/* Reads a file of one short line; empty if the kernel does not show it. */
static void read_line(const char *task, const char *name, char *line, size_t size)
{
    char path[192];

    snprintf(path, sizeof path, "%s/%s", task, name);
    read_file(path, line, size);
    line[strcspn(line, "\n")] = '\0';
}

/* Prints where a thread is in the kernel: without root only the name of the function in which it
 * waits. */
static void describe_thread(const char *task)
{
    char name[32], call[160], wait[128], stack[2048], state = '?', status[1024], *after_name;

    read_line(task, "comm", name, sizeof name);
    read_line(task, "syscall", call, sizeof call);
    read_line(task, "wchan", wait, sizeof wait);
    read_line(task, "stat", status, sizeof status);
    after_name = strrchr(status, ')');
    if (after_name)
        sscanf(after_name + 1, " %c", &state);
    fprintf(stderr, "watchdog:     thread %s %s state %c in %s, system call %s\n",
            strrchr(task, '/') + 1, name, state, wait, call);
    snprintf(status, sizeof status, "%s/stack", task);
    read_file(status, stack, sizeof stack);
    for (char *line = strtok(stack, "\n"); line; line = strtok(NULL, "\n"))
        fprintf(stderr, "watchdog:       %s\n", line);
}

static void describe_threads(pid_t pid)
{
    char path[64], task[128];
    struct dirent *entry;
    DIR *tasks;

    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    tasks = opendir(path);
    while (tasks && (entry = readdir(tasks)))
        if (isdigit((unsigned char)entry->d_name[0])) {
            snprintf(task, sizeof task, "%s/%.32s", path, entry->d_name);
            describe_thread(task);
        }
    if (tasks)
        closedir(tasks);
}

/* Prints stacks by gdb, which may be missing, and may hang itself. */
static void print_stack(pid_t pid)
{
    char command[256];

    snprintf(command, sizeof command,
             "command -v gdb >/dev/null && timeout -k 1 15 gdb -nx -batch -p %d -ex 'thread apply "
             "all bt 16'"
             " 2>/dev/null </dev/null | grep -E '^(#|Thread)' >&2",
             (int)pid);
    if (system(command) != 0)
        fprintf(stderr, "watchdog:   no stack of pid %d\n", (int)pid);
}

static int is_rank(pid_t pid)
{
    char path[64], *text = malloc(1 << 16);
    int yes = 0;
    size_t length;

    if (!text)
        return 0;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    length = read_file(path, text, 1 << 16);
    for (size_t at = 0; at < length; at += strlen(text + at) + 1)
        yes |= !strncmp(text + at, "PMIX_RANK=", 10);
    free(text);
    return yes;
}

static void print_family(const struct family *family, int stacks)
{
    for (int i = 0; i < family->count; i++) {
        describe(family->pid[i]);
        describe_threads(family->pid[i]);
    }
    for (int i = 0; i < family->count && stacks > 0; i++)
        if (is_rank(family->pid[i])) {
            fprintf(stderr, "watchdog:   stack of pid %d\n", (int)family->pid[i]);
            print_stack(family->pid[i]);
            stacks--;
        }
}

static void reap(pid_t child, int *status, int *ended)
{
    int s;
    pid_t pid;

    while ((pid = waitpid(-1, &s, WNOHANG)) > 0)
        if (pid == child) {
            *status = s;
            *ended = 1;
        }
}

/* Waits for SIGCHLD or a reason to give up; returns the signal, 0 when `deadline` has passed. */
static int wait_for_signal(const sigset_t *set, double deadline)
{
    double left = deadline - now();
    struct timespec t;
    int signal;

    if (left <= 0)
        return 0;
    t.tv_sec = (time_t)left;
    t.tv_nsec = (long)((left - (double)t.tv_sec) * 1e9);
    signal = sigtimedwait(set, NULL, &t);
    return signal > 0 ? signal : (errno == EINTR ? SIGCHLD : 0);
}

/* The pid of one that has ended meanwhile may be another program's. */
static void signal_family(const struct family *family, int signal)
{
    for (int i = 0; i < family->count; i++)
        if (descends_from_us(family->pid[i]))
            kill(family->pid[i], signal);
}

/* `child` is reaped or not; its group may be another program's if it is. */
static void end_family(pid_t child, int is_reaped, const sigset_t *set)
{
    static struct family family;
    double deadline = now() + 2;
    int status, ended = 0;

    find_family(&family);
    if (is_reaped)
        signal_family(&family, SIGTERM);
    else
        kill(-child, SIGTERM);
    for (find_family(&family); family.count && now() < deadline; find_family(&family)) {
        wait_for_signal(set, now() + 0.1);
        reap(child, &status, &ended);
    }
    signal_family(&family, SIGKILL);
    for (int i = 0; i < 20 && family.count; i++) {
        wait_for_signal(set, now() + 0.1);
        reap(child, &status, &ended);
        find_family(&family);
    }
}

/* Returns 0 if all processes that the command started have ended. */
static int leftovers(pid_t child, const sigset_t *set)
{
    static struct family family;
    double deadline = now() + leave_seconds;
    int status, ended = 1;

    for (;;) {
        reap(child, &status, &ended);
        find_family(&family);
        if (!family.count)
            return 0;
        if (now() > deadline)
            break;
        wait_for_signal(set, now() + 0.02);
    }
    fprintf(stderr, "watchdog: %d process(es) still run %g s after the end of the command:\n",
            family.count, leave_seconds);
    print_family(&family, 2);
    end_family(child, 1, set);
    return 1;
}

static pid_t start(char **command, const sigset_t *old)
{
    pid_t child = fork();

    if (child == 0) {
        setpgid(0, 0);
        sigprocmask(SIG_SETMASK, old, NULL);
        execvp(command[0], command);
        fprintf(stderr, "watchdog: %s: %s\n", command[0], strerror(errno));
        _exit(NOT_STARTED);
    }
    if (child > 0)
        setpgid(child, child);
    return child;
}

static int out_of_time(pid_t child, const sigset_t *set, double limit, char **command)
{
    static struct family family;

    find_family(&family);
    fprintf(stderr, "watchdog: %s has not ended within %g s; running:\n", command[0], limit);
    print_family(&family, 3);
    end_family(child, 0, set);
    return OUT_OF_TIME;
}

static int watch(pid_t child, const sigset_t *set, double limit, char **command)
{
    double deadline = now() + limit;
    int status = 0, ended = 0, signal;

    while (!ended) {
        signal = wait_for_signal(set, deadline);
        if (signal == 0)
            return out_of_time(child, set, limit, command);
        if (signal != SIGCHLD) {
            end_family(child, 0, set);
            return 128 + signal;
        }
        reap(child, &status, &ended);
    }
    if (leftovers(child, set))
        return LEFTOVERS;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

int main(int argc, char **argv)
{
    double limit = argc > 2 ? atof(argv[1]) : 0;
    sigset_t set, old;
    pid_t child;

    if (limit <= 0) {
        fprintf(stderr, "usage: watchdog SECONDS COMMAND [ARGS...]\n");
        return 2;
    }
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, &old);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    child = start(argv + 2, &old);
    if (child < 0) {
        perror("watchdog: fork");
        return NOT_STARTED;
    }
    return watch(child, &set, limit, argv + 2);
}
