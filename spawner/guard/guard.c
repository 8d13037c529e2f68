/* SPDX-License-Identifier: BSD-3-Clause */
/* The guard's loop; see guard.h. It waits for orders from above, frames of the guards below, events
 * of the PMIx server, exits of children, and the ranks' output. Owns every process of the job on
 * this host and the session directory. One thread. */
#include "config.h"

#include "guard_private.h"
#include "session.h"
#include "there.h"
#include "spawner/util/launcher_clock.h"
#include "spawner/util/log.h"
#include "spawner/util/signal_text.h"
#include "spawner/children/children.h"
#include "spawner/tree/shape.h"
#include "spawner/wire/hello.h"
#include "spawner/wire/job_frame.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

static void guard_read_exec_errors(struct guard *g)
{
    struct child_report report;
    uint8_t number[4];
    while (read(g->exec_report[0], &report, sizeof(report)) == sizeof(report)) {
        wire_put_number(number, report.error);
        guard_send(g, WIRE_EXEC_ERROR, report.rank, number, sizeof(number));
    }
}

/* libpmix was seen to crash with 192 KiB, and with 256 KiB and a large environment. */
static bool stack_is_small(char *text, size_t size)
{
    const rlim_t enough = 512 << 10;
    struct rlimit limit;

    if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= enough)
        return false;
    snprintf(text, size, "libpmix needs more than %llu KiB of stack; raise ulimit -s",
             (unsigned long long)limit.rlim_cur >> 10);
    return true;
}

/* A limit of the user's, a crash of libpmix, or SIGKILL: from the kernel for lack of memory, or
 * from a user. */
static void server_was_killed(struct guard *g, int status)
{
    char name[100], text[500];
    const char *why = "libpmix crashed; with -v -v this shows what it printed before";
    int signal = WTERMSIG(status);

    signal_text(signal, WCOREDUMP(status), name, sizeof(name));
    if (signal == SIGKILL)
        why = oom_explain(&g->memory, text, sizeof(text)) ? text : "sent by another process";
    else if (signal == SIGXFSZ)
        why = "a file of libpmix in the session directory became too large; raise ulimit -f";
    else if ((signal == SIGSEGV || signal == SIGBUS) && stack_is_small(text, sizeof(text)))
        why = text;
    guard_report_failure(g, "the PMIx server process was killed by signal %s: %s", name, why);
}

static void server_ended(struct guard *g, int status)
{
    g->server_pid = 0;
    if (g->killing || g->phase >= GUARD_CLEANING)
        return;
    if (WIFSIGNALED(status))
        server_was_killed(g, status);
    else
        guard_report_failure(g, "the PMIx server process ended with status %d",
                             WEXITSTATUS(status));
}

/* For a rank that was killed by a SIGKILL that the launcher did not send. */
static void guard_report_oom(struct guard *g, uint32_t rank, int status)
{
    char text[1024];
    bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !g->killing;
    if (is_killed && oom_explain(&g->memory, text, sizeof(text)))
        guard_send(g, WIRE_OOM_KILLED, rank, text, strlen(text));
}

static void rank_ended(struct guard *g, uint32_t i, int status)
{
    uint32_t rank = g->first + i;

    g->pids[i] = 0;
    g->alive--;
    guard_report_oom(g, rank, status);
    if (WIFEXITED(status))
        guard_take_mark(g, i);
    guard_report(g, REPORT_EXITED, rank, (uint32_t)status);
    if (status || !g->finalized[i] || !g->alive)
        guard_hurry_reports(g);
}

static void child_ended(struct guard *g, pid_t pid, int status)
{
    if (pid == g->server_pid) {
        server_ended(g, status);
        return;
    }
    if (tree_reaped(&g->tree, pid, status) || guard_stack_ended(g, pid))
        return;
    for (uint32_t i = 0; i < g->count; i++)
        if (g->pids[i] == pid) {
            rank_ended(g, i, status);
            return;
        }
}

/* The last PMIx call of a rank is in the server's socket before the rank can exit (server_send()
 * guarantees it), so after waitpid() the socket is read first, and the policy judges both together.
 */
static void guard_reap(struct guard *g)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        guard_read_server(g);
        guard_read_exec_errors(g);
        child_ended(g, pid, status);
    }
}

static void guard_handle_signals(struct guard *g)
{
    struct signalfd_siginfo s;
    while (read(g->signals, &s, sizeof(s)) == sizeof(s))
        if (s.ssi_signo != SIGCHLD)
            guard_report_failure(g, "the guard process was ended by signal %u", s.ssi_signo);
    guard_reap(g);
}

enum { POLL_CONTROL, POLL_OUTPUT, POLL_SERVER, POLL_SIGNALS, POLL_FEED, POLL_LIFELINE, POLL_PUMPS };

static nfds_t guard_set_up_poll(struct guard *g, struct pollfd *p)
{
    bool slow = g->output.out.length > PUMP_BACKLOG;

    p[POLL_CONTROL] = (struct pollfd){g->control.fd, wire_poll_events(&g->control, true), 0};
    bool want_input = g->phase != GUARD_STARTING && g->feed.queue.length < FEED_BACKLOG;
    p[POLL_OUTPUT] = (struct pollfd){g->output.ended ? -1 : g->output.fd,
                                     wire_poll_events(&g->output, want_input), 0};
    p[POLL_SERVER] =
        (struct pollfd){g->server.ended ? -1 : g->server.fd, wire_poll_events(&g->server, true), 0};
    p[POLL_SIGNALS] = (struct pollfd){g->signals, POLLIN, 0};
    /* Without data to write, the feed is still polled to notice when its reader closes the pipe. */
    p[POLL_FEED] = (struct pollfd){g->feed.fd, g->feed.queue.length ? POLLOUT : 0, 0};
    p[POLL_LIFELINE] = (struct pollfd){g->lifeline, POLLIN, 0};
    for (uint32_t i = 0; i < 2 * g->count; i++)
        p[POLL_PUMPS + i] = (struct pollfd){slow ? -1 : g->pumps[i].fd, POLLIN, 0};
    nfds_t used = POLL_PUMPS + 2 * (nfds_t)g->count;
    return used + tree_poll(&g->tree, p + used, !slow);
}

/* No data is sent on it, so a readable descriptor means end of file. */
static bool lifeline_ended(const struct guard *g)
{
    char byte;
    ssize_t n = read(g->lifeline, &byte, 1);
    return n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
}

static void serve_above(struct guard *g, const struct pollfd *p)
{
    if (p[POLL_CONTROL].revents & (POLLIN | POLLHUP)) {
        if (wire_fill(&g->control))
            g->silent = 0;
        guard_take_orders(g);
    }
    if (p[POLL_OUTPUT].revents & (POLLIN | POLLHUP)) {
        wire_fill(&g->output);
        guard_take_input(g);
    }
}

static void guard_serve(struct guard *g, const struct pollfd *p, nfds_t count)
{
    nfds_t pumps = 2 * (nfds_t)g->count, tree = POLL_PUMPS + pumps;

    serve_above(g, p);
    tree_serve(&g->tree, p + tree, count - tree);
    if (p[POLL_SERVER].revents)
        guard_read_server(g);
    if (p[POLL_SIGNALS].revents)
        guard_handle_signals(g);
    if (p[POLL_FEED].revents & POLLERR)
        feed_close(&g->feed);
    if (p[POLL_LIFELINE].revents && lifeline_ended(g))
        guard_abandon(g);
    feed_write(&g->feed);
    for (nfds_t i = 0; i < pumps; i++)
        if (p[POLL_PUMPS + i].revents && g->pumps[i].fd == p[POLL_PUMPS + i].fd)
            pump_transfer(&g->pumps[i], &g->output);
}

/* Sockets between two hosts do not end when a cable is cut. The process above asks at intervals, so
 * its silence means that the job is lost. On one host the kernel reports its end. */
static void watch_above(struct guard *g)
{
    enum { SILENT_MAX = 4 };
    int64_t now = clock_ms();

    if (now < g->tick_at)
        return;
    bool late = now - g->tick_at > g->job->heartbeat_ms;
    g->tick_at = now + g->job->heartbeat_ms;
    g->silent = late ? 0 : g->silent + 1;
    if (g->silent > SILENT_MAX)
        guard_abandon(g);
}

static int64_t next_deadline(const struct guard *g)
{
    int64_t deadline = clock_earlier(g->deadline, g->tick_at);
    deadline = clock_earlier(deadline, g->stack.deadline);
    if (g->reports.length)
        deadline = clock_earlier(deadline, g->reports_due);
    if (g->phase == GUARD_SENDING && !g->output.out.length)
        deadline = 0; /* the socket took all at once: more of the files is due */
    return clock_earlier(deadline, tree_deadline(&g->tree));
}

static void guard_loop(struct guard *g, struct pollfd *p) __attribute__((noreturn));

static void guard_loop(struct guard *g, struct pollfd *p)
{
    for (;;) {
        guard_send_due_reports(g);
        guard_advance(g);
        tree_watch(&g->tree);
        watch_above(g);
        guard_watch_stack(g);
        wire_flush(&g->output);
        wire_flush(&g->control);
        wire_flush(&g->server);
        tree_flush(&g->tree);
        if (g->control.ended || g->output.ended)
            guard_abandon(g);
        nfds_t count = guard_set_up_poll(g, p);
        if (poll(p, count, clock_poll_timeout(next_deadline(g))) >= 0)
            guard_serve(g, p, count);
    }
}

/* Signals of the terminal are handled by the head; a signal to the guard itself ends the job in
 * order. */
static int guard_catch_signals(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    signal(SIGPIPE, SIG_IGN);
    sigprocmask(SIG_SETMASK, &set, NULL);
    return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Rank 0 reads the user's file or pipe itself, so that unread input is left for others: for the
 * shell whose loop runs jobs. A terminal is relayed, because ranks are in process groups that it
 * stops when they read. */
static int take_input(bool is_forked)
{
    return is_forked && !isatty(STDIN_FILENO)
               ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
               : -1;
}

static void guard_detach(void)
{
    setpgid(0, 0);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_NAME, "gasnetrun-guard");
    /* End of file on the user's files must happen when the head closes them, not when the guard
     * does. */
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, STDIN_FILENO);
    dup2(null, STDOUT_FILENO);
    if (null > STDERR_FILENO)
        close(null);
}

static void *guard_alloc(size_t count, size_t size)
{
    void *memory = calloc(count, size);
    if (!memory) {
        log_error("out of memory for %zu entries", count);
        _exit(EXIT_RUNTIME);
    }
    return memory;
}

/* A guard leaves by _exit(). exit() is the end of one that is out of memory. */
static struct guard *at_exit;
static pid_t at_exit_of; /* not a process that the guard forked */

static void abandon_at_exit(void)
{
    if (getpid() == at_exit_of)
        guard_abandon(at_exit);
}

static void guard_begin(struct guard *g)
{
    at_exit = g;
    at_exit_of = getpid();
    atexit(abandon_at_exit);
    if (g->signals < 0 || pipe2(g->exec_report, O_CLOEXEC | O_NONBLOCK) != 0)
        guard_report_failure(g, "the guard cannot start: %s", strerror(errno));
    else if (g->job->directory && chdir(g->job->directory) != 0)
        guard_report_failure(g, "cannot change to the working directory %s: %s", g->job->directory,
                             strerror(errno));
    else if (!session_make(g->session))
        guard_report_failure(
            g,
            "cannot make the session directory %s: %s; set GASNET_TMPDIR to a writable "
            "directory",
            g->session, strerror(errno));
    else
        guard_start_server(g);
}

/* Waits for a frame, while there is nothing yet to clean up if the head ends or breaks the
 * protocol. / */
static void guard_wait_frame(struct guard *g, struct wire_frame *f)
{
    while (!wire_next(&g->control, f)) {
        struct pollfd p[] = {{g->control.fd, wire_poll_events(&g->control, true), 0},
                             {g->lifeline, POLLIN, 0}};
        if (g->control.ended)
            _exit(EXIT_RUNTIME);
        wire_flush(&g->control);
        if (poll(p, 2, -1) <= 0)
            continue;
        if (p[1].revents && lifeline_ended(g))
            _exit(EXIT_RUNTIME);
        if (p[0].revents)
            wire_fill(&g->control);
    }
}

static void guard_receive_job(struct guard *g)
{
    struct wire_frame f;
    char why[200];

    for (guard_wait_frame(g, &f); f.type != WIRE_JOB; guard_wait_frame(g, &f)) {
        if (f.type != WIRE_PING) /* the order to end, or another frame that makes no sense yet */
            _exit(EXIT_RUNTIME);
        wire_send(&g->control, WIRE_PONG, 0, 0, NULL, 0);
    }
    g->control.host = g->output.host = f.host;
    struct job *job = job_frame_unpack(f.payload, f.length, f.host, clock_ms(), why, sizeof(why));
    /* Only a part of the launcher's environment travels to other hosts; a guard that was forked on
     * the launcher's own host has the rest of it. */
    bool is_far = g->lifeline >= 0, has_part = is_far || (job && job->agent == JOB_AGENT_SSH);
    if (job && has_part && !there_adapt(job, is_far)) {
        snprintf(why, sizeof(why), "out of memory for the environment");
        job = NULL;
    }
    g->job = job;
    if (!g->job) {
        wire_send_now(&g->control, WIRE_FAILED, 0, 0, why, strlen(why));
        _exit(EXIT_RUNTIME);
    }
    g->first = g->job->hosts[f.host].first;
    g->count = g->job->hosts[f.host].count;
    g->end = shape_end(g->job->host_count, g->job->out_degree, f.host);
    if (g->first > 0 && g->input >= 0) {
        close(g->input);
        g->input = -1;
    }
    session_of_host(g->job, f.host, g->session, sizeof(g->session));
    if (g->session_copy && !g->job->keep)
        snprintf(g->session_copy, SESSION_PATH_MAX, "%s", g->session);
}

/* Returns the number of entries for poll(). */
static struct pollfd *guard_alloc_tables(struct guard *g)
{
    uint32_t below = g->end - g->job->host;

    g->pids = guard_alloc(g->count, sizeof(*g->pids));
    g->envs = guard_alloc(g->count, sizeof(*g->envs));
    g->finalized = guard_alloc(g->count, sizeof(*g->finalized));
    g->apart = guard_alloc((size_t)below + 1, sizeof(*g->apart));
    g->pumps = guard_alloc(2 * (size_t)g->count, sizeof(*g->pumps));
    for (uint32_t i = 0; i < 2 * g->count; i++)
        g->pumps[i].fd = -1;
    if (!tree_grow(&g->tree, g->job, g->job->host + 1, g->end, guard_run, &guard_tree_events, g))
        guard_report_failure(g, "out of memory for the guards of %u hosts", below - 1);
    size_t most = POLL_PUMPS + 2 * (size_t)g->count + tree_poll_max(&g->tree);
    return guard_alloc(most, sizeof(struct pollfd));
}

/* Between hosts of a network only, see watch_above(). */
static bool is_watched(const struct job *job)
{
    return job->agent != JOB_AGENT_FORK && !job->hosts[job->host].is_virtual && job->heartbeat_ms;
}

static void send_hello(struct guard *g, enum hello_ports ports)
{
    struct bytes packed = {0};
    struct hello hello;

    hello_here(&hello, ports);
    hello_pack(&hello, &packed);
    wire_send(&g->control, WIRE_HELLO, WIRE_VERSION, 0, bytes_front(&packed), packed.length);
    bytes_free(&packed);
}

static void guard_live(struct guard *g, enum hello_ports ports) __attribute__((noreturn));

static void guard_live(struct guard *g, enum hello_ports ports)
{
    g->input = take_input(g->lifeline < 0);
    guard_detach();
    g->signals = guard_catch_signals();
    oom_open(&g->memory, "");
    send_hello(g, ports);
    guard_receive_job(g);
    if (is_watched(g->job))
        g->tick_at = clock_ms() + g->job->heartbeat_ms;
    struct pollfd *p = guard_alloc_tables(g);
    guard_begin(g);
    guard_take_orders(g); /* frames that arrived together with the job */
    guard_loop(g, p);
}

static struct guard guard_made(int control, int output, int lifeline)
{
    struct guard g = {.deadline = CLOCK_NEVER,
                      .patience = CLOCK_NEVER,
                      .tick_at = CLOCK_NEVER,
                      .reports_due = CLOCK_NEVER,
                      .stack.deadline = CLOCK_NEVER,
                      .files = {.since = time(NULL), .fd = -1},
                      .input = -1,
                      .feed = {.fd = -1},
                      .lifeline = lifeline};

    wire_open(&g.control, control, JOB_NO_HOST);
    wire_open(&g.output, output, JOB_NO_HOST);
    wire_open(&g.server, -1, 0);
    g.server.ended = true;
    return g;
}

void guard_run(int control, int output)
{
    struct guard g = guard_made(control, output, -1);
    guard_live(&g, HELLO_PORTS_UNKNOWN);
}

void guard_run_remote(int control, int output, int lifeline, bool has_port, char *session)
{
    struct guard g = guard_made(control, output, lifeline);
    g.session_copy = session;
    guard_live(&g, has_port ? HELLO_PORTS_ACTIVE : HELLO_PORTS_NONE);
}
