/* SPDX-License-Identifier: BSD-3-Clause */
/* A guard on this host: a fork with two socket pairs. Owns nothing after it returns; no lock. */
#include "config.h"

#include "agent_private.h"
#include "spawner/util/signals.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static void fork_fail(struct agent *a, const char *what)
{
    const char *remedy =
        errno == EAGAIN ? " (processes: raise ulimit -u or the cgroup's pids.max)" : "";
    snprintf(a->why, sizeof(a->why), "cannot start the job: %s: %s%s", what, strerror(errno),
             remedy);
    a->state = AGENT_FAILED;
}

/* All files that the parent opened for itself are close-on-exec, but no exec follows here, so they
 * are closed explicitly. A copy of a socket to another guard would hide the end of the parent from
 * that guard. The user's own files are not close-on-exec and stay. */
static void fork_close_files(int control, int output)
{
    DIR *d = opendir("/proc/self/fd");
    if (!d) {
        close_range(STDERR_FILENO + 1, (unsigned)control - 1, 0);
        return;
    }
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        int fd = atoi(e->d_name), flags = fcntl(fd, F_GETFD);
        if (fd > STDERR_FILENO && fd != dirfd(d) && fd != control && fd != output && flags >= 0 &&
            (flags & FD_CLOEXEC))
            close(fd);
    }
    closedir(d);
}

static bool fork_sockets(struct agent *a, int control[2], int output[2])
{
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) != 0) {
        fork_fail(a, "socketpair");
        return false;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, output) != 0) {
        fork_fail(a, "socketpair");
        close(control[0]);
        close(control[1]);
        return false;
    }
    return true;
}

void agent_fork(struct agent_set *s, struct agent *a)
{
    int control[2], output[2];

    if (!fork_sockets(a, control, output))
        return;
    a->pid = fork();
    if (a->pid == 0) {
        signals_forget(); /* the guard sets its own handlers first thing */
        fork_close_files(control[1], output[1]);
        s->guard(control[1], output[1]);
    }
    close(control[1]);
    close(output[1]);
    if (a->pid < 0) {
        a->pid = 0;
        fork_fail(a, "fork");
        close(control[0]);
        close(output[0]);
        return;
    }
    a->state = AGENT_READY;
    a->control = control[0];
    a->output = output[0];
}
