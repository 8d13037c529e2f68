/* SPDX-License-Identifier: BSD-3-Clause */
/* See web.h. Owns the pipe and the child, which ends at the end of the pipe, however we end. */
#include "config.h"

#include "web.h"

#include "program.h"
#include "spawner/util/log.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void run_server(const char *tool, const char *port, int from) __attribute__((noreturn));

static void run_server(const char *tool, const char *port, int from)
{
    dup2(from, STDIN_FILENO);
    execl(tool, "gasnet_report", "--serve", port, (char *)NULL);
    log_error("cannot run %s: %s", tool, strerror(errno));
    _exit(EXIT_RUNTIME);
}

int web_open(struct web *w, uint16_t port)
{
    char tool[4096], number[8];
    int ends[2];
    *w = (struct web){.pid = -1};
    if (!program_beside("gasnet_report", "contrib/report", tool, sizeof(tool))) {
        log_error("--web: gasnet_report is not beside this launcher; install it there");
        return EXIT_RUNTIME;
    }
    snprintf(number, sizeof(number), "%u", port);
    bool has_pipe = pipe2(ends, O_CLOEXEC) == 0;
    if (has_pipe)
        w->pid = fork();
    if (w->pid == 0)
        run_server(tool, number, ends[0]);
    if (w->pid > 0) {
        close(ends[0]);
        w->to = fdopen(ends[1], "w");
    }
    signal(SIGPIPE, SIG_IGN);
    if (w->to)
        return 0;
    log_error("--web: cannot start gasnet_report: %s", strerror(errno));
    return EXIT_RUNTIME;
}

bool web_wait(const struct web *w, int ms)
{
    struct pollfd p = {fileno(w->to), 0, 0}; /* no reader: POLLERR */
    return poll(&p, 1, ms) <= 0;
}

int web_close(struct web *w)
{
    int status = 0;
    fclose(w->to);
    while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_RUNTIME;
}
