/* SPDX-License-Identifier: BSD-3-Clause */
/* A guard on this host: a fork with two socket pairs. Owns nothing after it returns; no lock. */
#include "config.h"

#include "agent.h"
#include "spawner/base/log.h"
#include "spawner/guard/guard.h"
#include "spawner/base/signals.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool agent_fail(const char *what)
{
    const char *remedy =
        errno == EAGAIN ? " (processes: raise ulimit -u or the cgroup's pids.max)" : "";
    log_error("cannot start the job: %s: %s%s", what, strerror(errno), remedy);
    return false;
}

bool agent_start_local(const struct job *job, struct agent *agent)
{
    int control[2], output[2];

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, control) != 0)
        return agent_fail("socketpair");
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, output) != 0)
        return agent_fail("socketpair");
    pid_t pid = fork();
    if (pid < 0)
        return agent_fail("fork");
    if (pid == 0) {
        close(control[0]);
        close(output[0]);
        signals_forget(); /* the guard sets its own handlers first thing */
        guard_run(job, control[1], output[1]);
    }
    close(control[1]);
    close(output[1]);
    *agent = (struct agent){.pid = pid, .control = control[0], .output = output[0]};
    return true;
}
