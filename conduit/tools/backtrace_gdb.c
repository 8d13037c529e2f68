/* SPDX-License-Identifier: BSD-3-Clause
 *
 * A backtrace by gdb, started to inspect this process. No state, no lock. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "gasnet_tools.h"
#include "tools/tools.h"

enum {
    patience_s = 60, /* gdb reads the symbols of a large program in less */
    look_ns = 10 * 1000000,
    variables_max = 2048
};

extern char **environ;

/* Libraries preloaded into a job's processes must not be loaded into gdb. */
static void clean_environment(char *variables[variables_max])
{
    size_t count = 0;
    for (char **at = environ; at && *at && count < variables_max - 1; at++)
        if (strncmp(*at, "LD_PRELOAD=", 11) != 0)
            variables[count++] = *at;
    variables[count] = NULL;
}

static int gdb_start(pid_t *child, int fd)
{
    char pid[20];
    char *variables[variables_max];
    char *arguments[] = {"gdb", "-nx", "-batch", "-ex", "thread apply all backtrace",
                         "-p",  pid,   NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none;
    snprintf(pid, sizeof(pid), "%d", (int)getpid());
    clean_environment(variables);
    sigemptyset(&none);
    if (posix_spawn_file_actions_init(&files) != 0)
        return 1;
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes,
                               &none); /* this thread's mask blocks the signal being handled */
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
    posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, fd, STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int error = posix_spawnp(child, "gdb", &files, &attributes, arguments, variables);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    return error;
}

static void await(pid_t child)
{
    const struct timespec look = {.tv_nsec = look_ns};
    for (int i = 0; i < patience_s * (1000000000 / look_ns); i++) {
        pid_t done = waitpid(child, NULL, WNOHANG);
        if (done == child || (done < 0 && errno != EINTR))
            return;
        nanosleep(&look, NULL);
    }
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

/* gdb reports success even if it was not allowed to attach. */
static bool has_frames(int fd)
{
    char text[4096 + 1];
    off_t at = 0;
    ssize_t n;
    while ((n = pread(fd, text, sizeof(text) - 1, at)) > 4) {
        text[n] = 0;
        if (strstr(text, "\n#0"))
            return true;
        at += n - 3; /* the pattern may span two reads */
    }
    return false;
}

int tk_tools_backtrace_gdb(int fd)
{
    pid_t child;

    /* Kernels with Yama let only ancestors attach, unless the process allows more. The previous
     * setting can't be read, and resetting it would take the permission from others that need it:
     * softhca's peers copy from this process. */
    prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
    if (gdb_start(&child, fd) != 0)
        return 1;
    await(child);
    return !has_frames(fd);
}
