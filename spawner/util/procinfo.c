/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a process; see procinfo.h. Owns nothing, takes no lock. */
#include "config.h"

#include "procinfo.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* More threads, and longer command lines, do not make a message clearer. */
enum { PROCINFO_THREADS = 4, PROCINFO_COMMAND = 120 };

struct known_call {
    long number;
    const char *name;
    bool on_file; /* its first argument is a file descriptor */
};

/* System calls that processes are often blocked in; others are printed by number. */
static const struct known_call known_calls[] = {
    {SYS_read, "read", true},
    {SYS_readv, "readv", true},
    {SYS_write, "write", true},
    {SYS_writev, "writev", true},
    {SYS_recvfrom, "recv", true},
    {SYS_recvmsg, "recvmsg", true},
    {SYS_sendto, "send", true},
    {SYS_sendmsg, "sendmsg", true},
    {SYS_accept, "accept", true},
    {SYS_accept4, "accept4", true},
    {SYS_connect, "connect", true},
    {SYS_ioctl, "ioctl", true},
    {SYS_fcntl, "fcntl", true},
    {SYS_flock, "flock", true},
    {SYS_fsync, "fsync", true},
    {SYS_close, "close", true},
    {SYS_ftruncate, "ftruncate", true},
    {SYS_fallocate, "fallocate", true},
    {SYS_openat, "openat", false},
    {SYS_ppoll, "ppoll", false},
    {SYS_pselect6, "pselect", false},
    {SYS_epoll_pwait, "epoll_wait", true},
    {SYS_futex, "futex", false},
    {SYS_nanosleep, "nanosleep", false},
    {SYS_clock_nanosleep, "clock_nanosleep", false},
    {SYS_wait4, "wait4", false},
    {SYS_waitid, "waitid", false},
    {SYS_rt_sigsuspend, "sigsuspend", false},
    {SYS_rt_sigtimedwait, "sigtimedwait", false},
    {SYS_sched_yield, "sched_yield", false},
    {SYS_restart_syscall, "restart_syscall", false},
    {SYS_execve, "execve", false},
    {SYS_mmap, "mmap", false},
    {SYS_munmap, "munmap", false},
    {SYS_madvise, "madvise", false},
    {SYS_exit_group, "exit_group", false},
/* Calls that newer architectures do not have. */
#ifdef SYS_poll
    {SYS_poll, "poll", false},
    {SYS_select, "select", false},
    {SYS_pause, "pause", false},
    {SYS_epoll_wait, "epoll_wait", true},
    {SYS_open, "open", false},
#endif
};

struct procinfo_text {
    char *at;
    size_t left;
};

static void procinfo_add(struct procinfo_text *t, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void procinfo_add(struct procinfo_text *t, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->at, t->left, format, args);
    va_end(args);
    size_t used = n < 0 ? 0 : (size_t)n;
    if (used >= t->left)
        used = t->left ? t->left - 1 : 0;
    t->at += used;
    t->left -= used;
}

/* The whole of a small file, with a 0 behind it; false when it cannot be read. */
static bool procinfo_read(const char *path, char *content, size_t size, size_t *length)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, content, size - 1);
    if (fd >= 0)
        close(fd);
    *length = n > 0 ? (size_t)n : 0;
    content[*length] = 0;
    return n >= 0;
}

static void add_file(struct procinfo_text *t, pid_t pid, unsigned long fd)
{
    char path[64], target[128];
    snprintf(path, sizeof(path), "/proc/%d/fd/%lu", (int)pid, fd);
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    if (n > 0)
        procinfo_add(t, " of %.*s", (int)n, target);
}

/* The content of /proc/PID/task/TID/syscall: "running", or the number and the arguments. */
static void add_call(struct procinfo_text *t, pid_t pid, const char *content)
{
    long number;
    unsigned long first;
    int fields = sscanf(content, "%ld %lx", &number, &first);
    if (fields < 1 || number < 0)
        return;
    for (size_t i = 0; i < sizeof(known_calls) / sizeof(*known_calls); i++) {
        if (known_calls[i].number != number)
            continue;
        procinfo_add(t, " in %s", known_calls[i].name);
        if (known_calls[i].on_file && fields == 2)
            add_file(t, pid, first);
        return;
    }
    procinfo_add(t, " in system call %ld", number);
}

static const char *state_name(char state)
{
    switch (state) {
    case 'R':
        return "running";
    case 'S':
    case 'I':
        return "sleeping";
    case 'D':
        return "in an uninterruptible sleep";
    case 'T':
        return "stopped";
    case 't':
        return "stopped by a debugger";
    case 'Z':
    case 'X':
        return "dead";
    default:
        return "in an unknown state";
    }
}

/* False when the thread is gone. */
static bool add_thread(struct procinfo_text *t, pid_t pid, const char *tid)
{
    char path[96], content[1024], state;
    size_t length;

    snprintf(path, sizeof(path), "/proc/%d/task/%.20s/stat", (int)pid, tid);
    if (!procinfo_read(path, content, sizeof(content), &length))
        return false;
    /* The name may hold blanks and brackets, so the fields are counted from the last bracket. */
    const char *end = strrchr(content, ')');
    if (!end || sscanf(end + 1, " %c", &state) != 1)
        return false;
    procinfo_add(t, "%s", state_name(state));
    snprintf(path, sizeof(path), "/proc/%d/task/%.20s/syscall", (int)pid, tid);
    if (state != 'R' && procinfo_read(path, content, sizeof(content), &length))
        add_call(t, pid, content);
    if (state != 'D')
        return true;
    snprintf(path, sizeof(path), "/proc/%d/task/%.20s/wchan", (int)pid, tid);
    if (procinfo_read(path, content, sizeof(content), &length) && length > 1)
        procinfo_add(t, " (%.60s)", content);
    return true;
}

static unsigned add_threads(struct procinfo_text *t, pid_t pid)
{
    char path[64];
    unsigned threads = 0;

    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *d = opendir(path);
    if (!d)
        return 0;
    for (struct dirent *e = readdir(d); e && threads < PROCINFO_THREADS; e = readdir(d)) {
        if (!isdigit((unsigned char)e->d_name[0]))
            continue;
        if (threads)
            procinfo_add(t, ", another thread is ");
        threads += add_thread(t, pid, e->d_name);
    }
    closedir(d);
    return threads;
}

static void add_command(struct procinfo_text *t, pid_t pid)
{
    char path[64], content[PROCINFO_COMMAND + 1];
    size_t length;

    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    if (!procinfo_read(path, content, sizeof(content), &length))
        return;
    while (length && !content[length - 1])
        length--;
    for (size_t i = 0; i < length; i++)
        if ((unsigned char)content[i] < ' ')
            content[i] = ' ';
    if (length)
        procinfo_add(t, "; command: %.*s%s", (int)length, content,
                     length == PROCINFO_COMMAND ? "..." : "");
}

/* Between fork and exec a process runs our own executable. */
static bool runs_our_code(pid_t pid)
{
    char path[64];
    struct stat ours, its;
    snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
    return stat("/proc/self/exe", &ours) == 0 && stat(path, &its) == 0 &&
           ours.st_dev == its.st_dev && ours.st_ino == its.st_ino;
}

void procinfo_describe(pid_t pid, const char *program, char *procinfo_text, size_t size)
{
    struct procinfo_text t = {procinfo_text, size};

    if (!size)
        return;
    procinfo_text[0] = 0;
    if (!add_threads(&t, pid)) {
        procinfo_add(&t, "gone, or not readable in /proc");
        return;
    }
    if (program && runs_our_code(pid))
        procinfo_add(&t, "; has not begun to execute %s", program);
    else if (program)
        add_command(&t, pid);
}
