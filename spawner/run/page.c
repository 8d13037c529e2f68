/* SPDX-License-Identifier: BSD-3-Clause */
/* See page.h. Owns the file that the user named, and what was collected for it. */
#include "config.h"

#include "page.h"

#include "common/report_file.h"
#include "environ.h"
#include "program.h"
#include "spawner/util/log.h"
#include "spawner/util/signals.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* "/dev/fd/" and a number */
enum { FILE_NAME = 24 };

static bool open_file(struct page *p)
{
    enum { FLAGS = O_WRONLY | O_CLOEXEC | O_NOCTTY };
    p->fd = open(p->name, FLAGS | O_CREAT | O_EXCL, 0666);
    p->is_new = p->fd >= 0;
    if (p->is_new || errno != EEXIST)
        return p->is_new;
    p->fd = open(p->name, FLAGS | O_NONBLOCK); /* a pipe without a reader is an error */
    if (p->fd >= 0)
        fcntl(p->fd, F_SETFL, O_WRONLY);
    return p->fd >= 0;
}

/* A new file is made only to see that it can be: one of a launcher that is killed would be left
 * behind, empty. */
static bool try_file(struct page *p)
{
    if (!open_file(p))
        return false;
    if (p->is_new) {
        unlink(p->name);
        close(p->fd);
        p->fd = -1;
    }
    return true;
}

static void page_close(struct page *p, bool is_written)
{
    collect_close(&p->collect);
    samples_close(&p->samples);
    if (p->fd < 0)
        return;
    if (p->is_new && !is_written)
        unlink(p->name);
    close(p->fd);
}

int page_open(struct page *p, const char *name, const struct job *job, const char *parent)
{
    *p = (struct page){.name = name};
    if (!program_beside("gasnet_report", "contrib/report", p->tool, sizeof(p->tool))) {
        log_error("--report %s: gasnet_report is not beside this launcher; install it there", name);
        return EXIT_RUNTIME;
    }
    if (!tk_report_is_replaceable(name, false)) {
        log_error(
            "--report %s: this file is not a report: it is not replaced; name another one, or "
            "remove it",
            name);
        return EXIT_USAGE;
    }
    if (!try_file(p)) {
        log_error("--report %s: cannot write it: %s; name a file that you can write", name,
                  strerror(errno));
        return EXIT_USAGE;
    }
    if (collect_open(&p->collect, job, parent)) {
        p->samples = (struct samples){.parent = parent, .full = SAMPLES_BYTES, .period_ms = 1000};
        p->collect.sample = samples_take;
        p->collect.samples = &p->samples;
        return 0;
    }
    page_close(p, false);
    log_error("out of memory for the report of %u ranks", job->ranks);
    return EXIT_RUNTIME;
}

/* ---- what is missing in it */

/* Where the user's own setting keeps files from us; "" elsewhere. */
static const char *why_of(const char *name, char *text, size_t size)
{
    const char *value = environ_value(name);
    if (value && !strchr(value, '%'))
        snprintf(text, size, ": %s=%s has no %% for the rank", name, value);
    else
        *text = 0;
    return text;
}

static uint32_t count_missing(const struct page *p, uint32_t *first)
{
    uint32_t missing = 0;
    for (uint32_t r = p->collect.job->ranks; r-- > 0;)
        if (!p->collect.has_stats[r]) {
            *first = r;
            missing++;
        }
    return missing;
}

static void report_missing(const struct page *p)
{
    char stats[600] = "", trace[600] = "", why[500];
    uint32_t first = 0, missing = count_missing(p, &first);
    if (missing == p->collect.job->ranks)
        snprintf(stats, sizeof(stats), "statistics%s",
                 why_of("GASNET_STATSFILE", why, sizeof(why)));
    else if (missing)
        snprintf(stats, sizeof(stats), "statistics of %u rank%s (first: %u), which wrote none",
                 missing, missing == 1 ? "" : "s", first);
    why_of("GASNET_TRACEFILE", why, sizeof(why));
    if (!p->collect.has_trace)
        snprintf(trace, sizeof(trace), "%sa time line%s", *stats ? "; " : "",
                 *why ? why : ", for which the program must be linked with a trace twin");
    if (*stats || *trace)
        log_info("the report %s lacks %s%s", p->name, stats, trace);
}

/* ---- the tool */

/* The words of its command line: options, a name for each collected file, NULL. */
struct tool_command {
    char title[256];
    char **words;
    char *names;
    size_t files;
};

static void add_file(struct tool_command *c, size_t *used, int fd)
{
    char *name = c->names + FILE_NAME * *used;
    snprintf(name, FILE_NAME, "/dev/fd/%d", fd);
    c->words[(*used)++] = name;
}

static bool make_command(const struct page *p, struct tool_command *c)
{
    const char *const options[] = {"gasnet_report", "-o", "-", "--title", c->title};
    enum { OPTIONS = sizeof(options) / sizeof(*options) };
    const struct collect *from = &p->collect;
    const char *slash = strrchr(from->job->program, '/');
    size_t most = OPTIONS + 1 + (size_t)from->job->host_count * JOB_FILES, used = 0;
    c->words = calloc(most + 1, sizeof(*c->words));
    c->names = calloc(most, FILE_NAME);
    if (!c->words || !c->names)
        return false;
    snprintf(c->title, sizeof(c->title), "Report of %s", slash ? slash + 1 : from->job->program);
    while (used < OPTIONS) {
        c->words[used] = (char *)options[used];
        used++;
    }
    for (uint32_t i = 0; i < from->job->host_count; i++)
        for (unsigned kind = 0; kind < JOB_FILES; kind++)
            if (from->hosts[i].fd[kind] >= 0)
                add_file(c, &used, from->hosts[i].fd[kind]);
    if (p->samples.file)
        add_file(c, &used, fileno(p->samples.file));
    c->files = used - OPTIONS;
    return true;
}

static void keep_open(int fd)
{
    if (fd >= 0)
        fcntl(fd, F_SETFD, 0);
}

static pid_t start_tool(const struct page *p, const struct tool_command *c, int to)
{
    const struct collect *from = &p->collect;
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    unsetenv("LD_PRELOAD");   /* softhca, which is for ranks */
    signal(SIGTSTP, SIG_IGN); /* a launcher that waits would wait for a stopped tool */
    dup2(to, STDOUT_FILENO);
    if (p->samples.file)
        keep_open(fileno(p->samples.file));
    for (uint32_t i = 0; i < from->job->host_count; i++)
        for (unsigned kind = 0; kind < JOB_FILES; kind++)
            keep_open(from->hosts[i].fd[kind]);
    execv(p->tool, c->words);
    log_error("cannot run %s: %s", p->tool, strerror(errno));
    _exit(EXIT_RUNTIME);
}

static bool ends_job(int signal)
{
    return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

/* Returns its status as waitpid() gives it. The first signal that the user sends ends it: the job
 * is over, and this is all that is waited for. */
static int await_tool(pid_t pid, int signals, bool *is_interrupted)
{
    enum { PACE_MS = 10 };
    int status = 0;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        struct pollfd p = {signals, POLLIN, 0};
        if (poll(&p, 1, PACE_MS) > 0 && ends_job(signals_next(signals))) {
            *is_interrupted = true;
            kill(pid, SIGKILL);
        }
    }
    return status;
}

/* Writes the page to the file `to`. */
static bool run_tool(const struct page *p, const struct tool_command *c, int signals, int to)
{
    pid_t pid = start_tool(p, c, to);
    bool is_interrupted = false;
    int status = pid < 0 ? 0 : await_tool(pid, signals, &is_interrupted);
    if (pid < 0)
        log_error("cannot start gasnet_report: %s", strerror(errno));
    else if (WIFSIGNALED(status) && is_interrupted)
        log_error("there is no report in %s: a signal ended it before it was whole", p->name);
    else if (WIFSIGNALED(status))
        log_error("there is no report in %s: gasnet_report was killed by signal %d", p->name,
                  WTERMSIG(status));
    else if (WEXITSTATUS(status) != 0)
        log_error("there is no report in %s: gasnet_report failed, for the reason above (it writes "
                  "to a file in %s)",
                  p->name, p->collect.parent);
    return pid >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* A signal ends it too. */
static bool write_all(int fd, const char *bytes, size_t length)
{
    while (length > 0) {
        ssize_t n = write(fd, bytes, length);
        if (n <= 0)
            return false;
        bytes += n;
        length -= (size_t)n;
    }
    return true;
}

/* From a file without a name to FILE, which stays as it was until the page is whole. Devices and
 * pipes have no length. */
static bool copy_page(struct page *p, int from)
{
    static char bytes[1 << 16];
    bool is_good = (p->fd >= 0 || open_file(p)) && (ftruncate(p->fd, 0) == 0 || errno == EINVAL) &&
                   lseek(from, 0, SEEK_SET) == 0;
    ssize_t n = 0;
    while (is_good && (n = read(from, bytes, sizeof(bytes))) > 0)
        is_good = write_all(p->fd, bytes, (size_t)n);
    is_good &= n >= 0;
    if (!is_good)
        log_error("--report %s: cannot write it: %s", p->name, strerror(errno));
    return is_good;
}

static bool make_page(struct page *p, const struct tool_command *c, int signals)
{
    int to = collect_file(p->collect.parent);
    if (to < 0)
        log_error("cannot make the report in a file in %s: %s", p->collect.parent, strerror(errno));
    bool is_made = to >= 0 && run_tool(p, c, signals, to) && copy_page(p, to);
    if (to >= 0)
        close(to);
    return is_made;
}

int page_write(struct page *p, int status, int signals)
{
    struct tool_command command = {0};
    bool is_written = false;
    if (!make_command(p, &command)) {
        log_error("out of memory for the report");
    } else if (!command.files) {
        char why[500];
        log_error("there is no report in %s: no rank wrote statistics or a trace%s", p->name,
                  why_of("GASNET_STATSFILE", why, sizeof(why)));
    } else if (make_page(p, &command, signals)) {
        is_written = true;
        report_missing(p);
    }
    page_close(p, is_written);
    free(command.words);
    free(command.names);
    return status == 0 && (!is_written || p->collect.failed) ? EXIT_OUTPUT_LOST : status;
}
