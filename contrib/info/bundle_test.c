/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The test of a port: starts a job of two processes of this program (bundle_job.c), writes what it
 * prints, and ends it when its time is over. Owns the launcher's process. */
#include "config.h"

#include "contrib/info/bundle.h"
#include "contrib/info/info.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { line_max = 900, lines_max = 200, kill_grace_ms = 10000 };

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* ---- The launcher ---- */

/* Shares no memory between the processes, as if each ran on its own host. Does not use softhca,
 * which would hide that the port does not work. */
static void set_environment(const char *device, int port)
{
    char ports[128];
    setenv("GASNET_QUIET", "1", 1);
    if (!device)
        return;
    snprintf(ports, sizeof(ports), "%s:%d", device, port);
    setenv("GASNET_IBV_PORTS", ports, 1);
    setenv("GASNET_SUPERNODE_MAXSIZE", "1", 1);
    setenv("GASNET_SOFTHCA", "never", 1);
}

static void become_launcher(const char *device, int port, int out)
{
    char own[PATH_MAX], launcher[PATH_MAX];
    int nothing = open("/dev/null", O_RDONLY);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    dup2(nothing, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    set_environment(device, port);
    if (info_programs(own, launcher, sizeof(own)))
        execlp(launcher, launcher, "-n", "2", own, "--bundle-job", (char *)NULL);
    dprintf(STDERR_FILENO, "%s can't be started: %s\n", launcher, strerror(errno));
    _exit(1);
}

static pid_t start(const char *device, int port, int *from)
{
    int ends[2];
    fflush(NULL);
    if (pipe2(ends, O_CLOEXEC))
        return -1;
    pid_t pid = fork();
    if (pid == 0)
        become_launcher(device, port, ends[1]);
    close(ends[1]);
    *from = ends[0];
    if (pid < 0)
        close(ends[0]);
    return pid;
}

/* ---- Output ---- */

struct output {
    char line[line_max];
    size_t length;
    unsigned lines;
};

static void end_line(struct output *output)
{
    output->line[output->length] = 0;
    if (output->length > 0 && output->lines++ < lines_max)
        bundle_fact("line", "%s", output->line);
    output->length = 0;
}

static void take_bytes(struct output *output, const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] == '\n' || output->length == line_max - 1)
            end_line(output);
        if (bytes[i] != '\n')
            output->line[output->length++] = bytes[i];
    }
}

/* Reads until the end of the output; false: the time limit was reached. */
static bool read_output(struct output *output, int from, int64_t deadline)
{
    struct pollfd poll_fd = {.fd = from, .events = POLLIN};
    char bytes[4096];
    for (;;) {
        int64_t left = deadline - now_ms();
        int ready = left > 0 ? poll(&poll_fd, 1, (int)left) : 0;
        if (ready == 0)
            return false;
        ssize_t count = ready > 0 ? read(from, bytes, sizeof(bytes)) : -1;
        if (count > 0)
            take_bytes(output, bytes, (size_t)count);
        else if (count == 0 || errno != EINTR)
            return true;
    }
}

/* SIGTERM lets the launcher end the processes of the job. */
static int end_job(pid_t pid, int from, struct output *output)
{
    int status = 0;
    kill(pid, SIGTERM);
    if (!read_output(output, from, now_ms() + kill_grace_ms))
        kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    return status;
}

static int exit_status(int status)
{
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool bundle_test(const char *device, int port, unsigned seconds)
{
    struct output output = {.length = 0};
    int from, status = 0;
    int64_t begin = now_ms();
    pid_t pid = start(device, port, &from);
    if (pid < 0) {
        bundle_fact("result", "failed");
        bundle_fact("reason", "no process can be started: %s", strerror(errno));
        return false;
    }
    bool is_in_time = read_output(&output, from, begin + (int64_t)seconds * 1000);
    if (is_in_time)
        waitpid(pid, &status, 0);
    else
        status = end_job(pid, from, &output);
    end_line(&output);
    close(from);
    bool is_good = is_in_time && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    bundle_fact("result", "%s", is_good ? "passed" : "failed");
    if (!is_in_time)
        bundle_fact("reason", "not done after %u s", seconds);
    bundle_fact("status", "%d", exit_status(status));
    return is_good;
}
