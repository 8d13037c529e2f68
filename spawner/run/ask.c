/* SPDX-License-Identifier: BSD-3-Clause */
/* See ask.h. No state. */
#include "config.h"

#include "ask.h"

#include "common/number.h"
#include "spawner/util/hail.h"
#include "others.h"
#include "spawner/util/log.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Longer than the launcher waits for guards and for gdb. */
enum { ASK_MS = 40000, JOBS_MAX = 16 };

static int choose(const char *question, pid_t *pid)
{
    pid_t pids[JOBS_MAX];
    char list[JOBS_MAX * 12] = "";
    size_t count = hail_find(question, pids, JOBS_MAX), used = 0;
    size_t written = count < JOBS_MAX ? count : JOBS_MAX;
    count += others_find(pids + written, JOBS_MAX - written);
    if (count == 1) {
        *pid = pids[0];
        return 0;
    }
    if (count == 0) {
        log_error("--%s: no job of this user runs on this host", question);
        return EXIT_RUNTIME;
    }
    for (size_t i = 0; i < count && i < JOBS_MAX; i++)
        used += (size_t)snprintf(list + used, sizeof(list) - used, " %d", (int)pids[i]);
    log_error(
        "--%s: %zu jobs of this user run here, name one by the pid of its launcher (under another "
        "launcher: of a rank):%s",
        question, count, list);
    return EXIT_USAGE;
}

static int parse(const char *question, const char *job, pid_t *pid)
{
    uint64_t number;
    if (tk_number_digits(job, 1, (1L << 30) - 1, &number)) {
        *pid = (pid_t)number;
        return 0;
    }
    log_error("--%s %s: not the pid of a gasnetrun_ibv", question, job);
    return EXIT_USAGE;
}

static int print_answer(int fd, pid_t pid)
{
    char text[4096];
    size_t total = 0;
    for (;;) {
        struct pollfd p = {fd, POLLIN, 0};
        if (poll(&p, 1, ASK_MS) == 0)
            break;
        ssize_t n = read(fd, text, sizeof(text));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        total += (size_t)n;
        fwrite(text, 1, (size_t)n, stdout);
    }
    close(fd);
    if (total)
        return 0;
    log_error("--explain: the launcher %d does not answer; is it stopped itself?", (int)pid);
    return EXIT_RUNTIME;
}

int ask_find(const char *question, const char *job, pid_t *pid)
{
    return job ? parse(question, job, pid) : choose(question, pid);
}

int ask_open(const char *question, pid_t pid)
{
    int fd = hail_connect(question, pid);
    if (fd >= 0)
        return fd;
    if (errno == EPERM)
        log_error("--%s %d: that launcher is another user's", question, (int)pid);
    else
        log_error("--%s %d: no gasnetrun_ibv of this user with that pid runs a job on this host",
                  question, (int)pid);
    return -1;
}

int ask_explain(const char *job)
{
    pid_t pid = 0;
    int status = ask_find("explain", job, &pid);
    struct others_job others;
    if (status)
        return status;
    if (others_open(pid, &others)) {
        status = others_explain(&others);
        others_close(&others);
        return status;
    }
    int fd = ask_open("explain", pid);
    return fd < 0 ? EXIT_RUNTIME : print_answer(fd, pid);
}
