/* SPDX-License-Identifier: BSD-3-Clause */
/* A guard on another host; see remote.h. */
#include "config.h"

#include "guard.h"
#include "remote.h"
#include "spawner/util/launcher_clock.h"
#include "session.h"
#include "spawner/util/log.h"
#include "spawner/children/children.h"
#include "spawner/wire/dial.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The line is sent together with the command. */
enum { SECRET_MS = 30000 };

/* The kernel kills the ranks when the guard dies; this bounds the wait for processes that they
 * left. */
enum { SWEEP_MS = 5000 };

/* Reads a line of standard input, and not a byte more. */
static bool read_line(char *line, size_t size)
{
    int64_t deadline = clock_ms() + SECRET_MS;
    size_t used = 0;

    while (used < size - 1 && clock_ms() < deadline) {
        struct pollfd p = {STDIN_FILENO, POLLIN, 0};
        if (poll(&p, 1, clock_poll_timeout(deadline)) <= 0)
            continue;
        if (read(STDIN_FILENO, line + used, 1) != 1)
            return false;
        if (line[used] == '\n') {
            line[used] = 0;
            return true;
        }
        used++;
    }
    return false;
}

/* "SECRET MILLISECONDS" */
static bool read_secret(struct auth_secret *secret, uint32_t *ms)
{
    char line[AUTH_SECRET_TEXT + 32];
    bool is_read = read_line(line, sizeof(line));
    char *blank = is_read ? strchr(line, ' ') : NULL;

    if (blank) {
        *blank = 0;
        *ms = (uint32_t)strtoul(blank + 1, NULL, 10);
        is_read = auth_secret_parse(secret, line);
    }
    explicit_bzero(line, sizeof(line));
    return is_read && blank;
}

/* The address that ssh came from is one of the launcher's, if no third host is between. */
static const char *ssh_came_from(char *text, size_t size)
{
    const char *all = getenv("SSH_CONNECTION");
    size_t n = all ? strcspn(all, " ") : 0;

    if (!n || n >= size)
        return NULL;
    memcpy(text, all, n);
    text[n] = 0;
    return text;
}

static int remote_fail(const char *addresses, const char *why)
{
    if (*why) /* else no process reads the report any more */
        log_error("it cannot connect to %s, the launcher: %s; if a firewall is between, "
                  "GASNET_MASTERIP may name an address that is open",
                  strncmp(addresses, "@,", 2) ? addresses : addresses + 2, why);
    return EXIT_RUNTIME;
}

static bool call_back(struct dial *d, int *control, int *output, char *why, size_t size)
{
    *control = dial_connect(d, AUTH_CONTROL, why, size);
    if (*control < 0)
        return false;
    *output = dial_connect(d, AUTH_OUTPUT, why, size);
    return *output >= 0;
}

/* On this host no other process would clean up after a killed guard: its ranks die with it, but
 * processes that they started in sessions of their own become children of this process. */
static int keep_house(pid_t guard, const char *session)
{
    int status = 0;

    while (waitpid(guard, &status, 0) < 0 && errno == EINTR)
        continue;
    children_sweep(clock_ms() + SWEEP_MS);
    if (!WIFEXITED(status) && *session)
        session_remove(session);
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_RUNTIME;
}

/* The guard is a child, so that the parent is left when the guard is killed; if the parent is
 * killed, the guard ends the job. Returns in the parent. */
static int run_guard(int control, int output, bool (*has_port)(void))
{
    pid_t self = getpid();
    char *session =
        mmap(NULL, SESSION_PATH_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NAME, "gasnetrun-keep");
    pid_t guard = session == MAP_FAILED ? -1 : fork();
    if (guard == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != self)
            _exit(EXIT_RUNTIME);
        int lifeline = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        guard_run_remote(control, output, lifeline, has_port(), session);
    }
    if (guard < 0) {
        log_error("cannot start the guard: %s", strerror(errno));
        return EXIT_RUNTIME;
    }
    close(control);
    close(output);
    return keep_house(guard, session);
}

int remote_run(const char *addresses, const char *host, bool (*has_port)(void))
{
    struct auth_secret secret;
    struct dial d = {.secret = &secret, .lifeline = STDIN_FILENO};
    char why[300] = "", first[64], *end;
    uint32_t ms = 0;
    int control, output;

    d.host = (uint32_t)strtoul(host, &end, 10);
    if (!*host || *end || isatty(STDIN_FILENO)) {
        log_error("--guard: only the launcher itself uses this, over ssh");
        return EXIT_USAGE;
    }
    if (!read_secret(&secret, &ms)) {
        log_error("--guard: no secret on standard input; does GASNET_SSH_CMD pass it on?");
        return EXIT_RUNTIME;
    }
    d.deadline = clock_ms() + ms;
    if (!dial_parse(&d, addresses, ssh_came_from(first, sizeof(first)), why, sizeof(why)) ||
        !call_back(&d, &control, &output, why, sizeof(why)))
        return remote_fail(addresses, why);
    explicit_bzero(&secret, sizeof(secret));
    return run_guard(control, output, has_port);
}
