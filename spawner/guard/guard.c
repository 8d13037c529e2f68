/* SPDX-License-Identifier: BSD-3-Clause */
/* The guard's loop; see guard.h. It waits for orders of the head, events of the PMIx server, exits
 * of children, and the ranks' output. Owns every process of the job on this host and the session
 * directory. One thread. */
#include "config.h"

#include "guard_private.h"
#include "session.h"
#include "spawner/base/clock.h"
#include "spawner/base/procinfo.h"
#include "spawner/base/log.h"
#include "spawner/children/children.h"
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
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Once no process of the job is left, only a descriptor passed to a process outside of the job can
 * keep a pipe open. */
enum { DRAIN_MS = 1000 };

/* SIGKILL is repeated at this pace, for processes that were forked while it was being sent. */
enum { KILL_AGAIN_MS = 100 };

/* A process that lives longer than this after SIGKILL is uninterruptible and cannot be ended. */
enum { SWEEP_MS = 5000 };

/* The head is gone: no grace period, and the output has no reader. */
static void guard_abandon(struct guard *g) __attribute__((noreturn));

static void guard_abandon(struct guard *g)
{
    children_signal(g->pids, g->count, SIGKILL);
    children_signal_all(SIGKILL, 0);
    children_sweep(clock_ms() + SWEEP_MS);
    if (!g->job->keep)
        session_remove(g->session);
    _exit(EXIT_RUNTIME);
}

static void kill_everything(struct guard *g)
{
    children_signal(g->pids, g->count, SIGKILL);
    children_signal_all(SIGKILL, 0);
    g->deadline = clock_ms() + KILL_AGAIN_MS;
    if (g->patience == CLOCK_NEVER)
        g->patience = clock_ms() + SWEEP_MS;
}

static void end_ranks(struct guard *g, uint32_t grace_ms)
{
    if (g->phase == GUARD_DRAINING)
        return;
    g->killing = true;
    if (grace_ms == 0) {
        kill_everything(g);
        return;
    }
    children_signal(g->pids, g->count, SIGTERM);
    children_signal(g->pids, g->count, SIGCONT); /* a stopped process would not see SIGTERM */
    g->deadline = clock_ms() + grace_ms;
}

static void guard_mute(struct guard *g, uint16_t stream)
{
    /* The ranks get a broken pipe, as they would without the launcher. */
    for (uint32_t i = 0; i < 2 * g->count; i++)
        if (g->pumps[i].stream == stream)
            pump_close(&g->pumps[i], &g->output);
}

static void guard_handle_orders(struct guard *g)
{
    struct wire_frame f;
    while (wire_next(&g->control, &f)) {
        uint32_t number = f.length >= 4 ? wire_number(f.payload) : 0;
        if (f.type == WIRE_KILL) {
            wire_send(&g->control, WIRE_ENDING, 0, 0, NULL, 0);
            end_ranks(g, number);
        }
        if (f.type == WIRE_SIGNAL)
            children_signal(g->pids, g->count, (int)number);
        if (f.type == WIRE_MUTE)
            guard_mute(g, f.aux);
    }
}

static void take_input(struct guard *g)
{
    struct wire_frame f;
    while (wire_next(&g->output, &f))
        if (f.type == WIRE_STDIN)
            feed_put(&g->feed, f.payload, f.length);
}

static void guard_forward(struct guard *g, const struct wire_frame *f)
{
    guard_send_reports(g);
    wire_send(&g->control, f->type, f->aux, f->rank, f->payload, f->length);
}

/* Handles all frames that the server has sent so far; events of ranks are forwarded to the head. */
static void guard_read_server(struct guard *g)
{
    struct wire_frame f;
    bool more = true;
    while (more) {
        more = wire_fill(&g->server);
        while (wire_next(&g->server, &f)) {
            if (f.type == WIRE_ENV)
                guard_keep_env(g, &f);
            else if (f.type == WIRE_READY && g->phase == GUARD_STARTING && !g->killing)
                guard_start_ranks(g);
            else if (f.type == WIRE_CONNECTED)
                guard_report(g, REPORT_CONNECTED, f.rank, 0);
            else if (f.type == WIRE_FINALIZED)
                guard_report(g, REPORT_FINALIZED, f.rank, 0);
            else if (f.type == WIRE_ABORT || f.type == WIRE_FAILED)
                guard_forward(g, &f);
        }
    }
}

static void guard_read_exec_errors(struct guard *g)
{
    struct child_report report;
    while (read(g->exec_report[0], &report, sizeof(report)) == sizeof(report)) {
        guard_send_reports(g);
        wire_send_number(&g->control, WIRE_EXEC_ERROR, report.rank, report.error);
    }
}

static void server_ended(struct guard *g, int status)
{
    g->server_pid = 0;
    if (g->killing || g->phase >= GUARD_CLEANING)
        return;
    if (WIFSIGNALED(status))
        guard_report_failure(g, "the PMIx server process was killed by signal %d",
                             WTERMSIG(status));
    else
        guard_report_failure(g, "the PMIx server process ended with status %d",
                             WEXITSTATUS(status));
}

/* For a rank that was killed by a SIGKILL that the launcher did not send. */
static void guard_report_oom(struct guard *g, uint32_t rank, int status)
{
    char text[1024];
    bool is_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && !g->killing;
    if (!is_killed || !oom_explain(&g->memory, text, sizeof(text)))
        return;
    guard_send_reports(g);
    wire_send(&g->control, WIRE_OOM_KILLED, 0, rank, text, strlen(text));
}

static void child_ended(struct guard *g, pid_t pid, int status)
{
    if (pid == g->server_pid) {
        server_ended(g, status);
        return;
    }
    for (uint32_t i = 0; i < g->count; i++) {
        if (g->pids[i] != pid)
            continue;
        uint32_t rank = g->first + i;
        g->pids[i] = 0;
        g->alive--;
        guard_report_oom(g, rank, status);
        if (WIFEXITED(status) && session_has_mark(g->session, rank))
            guard_report(g, REPORT_FINALIZED, rank, 0);
        guard_report(g, REPORT_EXITED, rank, (uint32_t)status);
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

static bool childless(void)
{
    siginfo_t info;
    return waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 && errno == ECHILD;
}

static void begin_cleaning(struct guard *g)
{
    g->phase = GUARD_CLEANING;
    if (g->server_pid)
        kill(g->server_pid, SIGKILL);
    if (g->killing && g->deadline != CLOCK_NEVER)
        g->deadline = clock_earlier(g->deadline, clock_ms() + g->job->grace_ms);
    else
        g->deadline = clock_ms() + g->job->grace_ms;
    children_signal_all(SIGTERM, g->server_pid);
}

static bool pumps_open(const struct guard *g)
{
    for (uint32_t i = 0; i < 2 * g->count; i++)
        if (g->pumps[i].fd >= 0)
            return true;
    return false;
}

static void guard_finish(struct guard *g) __attribute__((noreturn));

static void guard_finish(struct guard *g)
{
    for (uint32_t i = 0; i < 2 * g->count; i++)
        pump_close(&g->pumps[i], &g->output);
    if (!g->job->keep)
        session_remove(g->session);
    guard_send_reports(g);
    wire_send_now(&g->output, WIRE_OUTPUT_END, 0, 0, NULL, 0);
    wire_send_now(&g->control, WIRE_DONE, 0, 0, NULL, 0);
    _exit(0);
}

/* Time counts only while the head keeps up, so that a user who pages through the output gets all of
 * it. */
static void guard_drain(struct guard *g)
{
    if (g->output.out.length)
        g->deadline = clock_ms() + DRAIN_MS;
    if (clock_ms() >= g->deadline || !pumps_open(g))
        guard_finish(g);
}

/* Gives up a process in an uninterruptible sleep, or one that has changed its user. */
static void leave_unkillable(struct guard *g)
{
    g->patience = CLOCK_NEVER;
    if (g->phase == GUARD_DRAINING || childless())
        return;
    guard_report_failure(g,
                         "processes of the job do not end even by SIGKILL; they are left behind");
    g->phase = GUARD_DRAINING;
    g->deadline = clock_ms() + DRAIN_MS;
}

/* Moves through the phases; each step depends on the present state only. */
static void guard_advance(struct guard *g)
{
    bool late = clock_ms() >= g->deadline;

    if (g->phase == GUARD_STARTING && late && !g->killing) {
        char doing[400];
        procinfo_describe(g->server_pid, NULL, doing, sizeof(doing));
        guard_report_failure(g, "the PMIx server (pid %d) did not start within 60 s; it is %s",
                             (int)g->server_pid, doing);
        g->deadline = CLOCK_NEVER;
    }
    bool over = g->alive == 0 && (g->killing || g->phase == GUARD_RUNNING);
    if (g->phase <= GUARD_RUNNING && over)
        begin_cleaning(g);
    if (clock_ms() >= g->patience)
        leave_unkillable(g);
    if (g->phase == GUARD_CLEANING && childless()) {
        g->phase = GUARD_DRAINING;
        g->deadline = clock_ms() + DRAIN_MS;
    }
    if (g->phase == GUARD_DRAINING)
        guard_drain(g);
    else if (late && (g->killing || g->phase == GUARD_CLEANING))
        kill_everything(g);
}

enum { POLL_CONTROL, POLL_OUTPUT, POLL_SERVER, POLL_SIGNALS, POLL_FEED, POLL_LIFELINE, POLL_PUMPS };

static nfds_t guard_set_up_poll(struct guard *g, struct pollfd *p)
{
    bool slow = g->output.out.length > PUMP_BACKLOG;

    p[POLL_CONTROL] = (struct pollfd){g->control.fd, wire_poll_events(&g->control, true), 0};
    bool want_input = g->phase != GUARD_STARTING && g->feed.queue.length < FEED_BACKLOG;
    p[POLL_OUTPUT] = (struct pollfd){g->output.ended ? -1 : g->output.fd,
                                     wire_poll_events(&g->output, want_input), 0};
    p[POLL_SERVER] = (struct pollfd){g->server.ended ? -1 : g->server.fd, POLLIN, 0};
    p[POLL_SIGNALS] = (struct pollfd){g->signals, POLLIN, 0};
    /* Without data to write, the feed is still polled for its reader to close the pipe. */
    p[POLL_FEED] = (struct pollfd){g->feed.fd, g->feed.queue.length ? POLLOUT : 0, 0};
    p[POLL_LIFELINE] = (struct pollfd){g->lifeline, POLLIN, 0};
    for (uint32_t i = 0; i < 2 * g->count; i++)
        p[POLL_PUMPS + i] = (struct pollfd){slow ? -1 : g->pumps[i].fd, POLLIN, 0};
    return POLL_PUMPS + 2 * (nfds_t)g->count;
}

/* Nothing is sent there, so what can be read is the end of it. */
static bool lifeline_ended(const struct guard *g)
{
    char byte;
    ssize_t n = read(g->lifeline, &byte, 1);
    return n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN);
}

static void guard_serve(struct guard *g, const struct pollfd *p)
{
    if (p[POLL_CONTROL].revents & (POLLIN | POLLHUP)) {
        wire_fill(&g->control);
        guard_handle_orders(g);
    }
    if (p[POLL_OUTPUT].revents & (POLLIN | POLLHUP)) {
        wire_fill(&g->output);
        take_input(g);
    }
    if (p[POLL_SERVER].revents)
        guard_read_server(g);
    if (p[POLL_SIGNALS].revents)
        guard_handle_signals(g);
    if (p[POLL_FEED].revents & POLLERR)
        feed_close(&g->feed);
    if (p[POLL_LIFELINE].revents && lifeline_ended(g))
        guard_abandon(g);
    feed_write(&g->feed);
    for (uint32_t i = 0; i < 2 * g->count; i++)
        if (p[POLL_PUMPS + i].revents && g->pumps[i].fd == p[POLL_PUMPS + i].fd)
            pump_transfer(&g->pumps[i], &g->output);
}

static void guard_loop(struct guard *g, struct pollfd *p) __attribute__((noreturn));

static void guard_loop(struct guard *g, struct pollfd *p)
{
    for (;;) {
        guard_send_reports(g);
        guard_advance(g);
        wire_flush(&g->output);
        wire_flush(&g->control);
        if (g->control.ended)
            guard_abandon(g);
        nfds_t count = guard_set_up_poll(g, p);
        if (poll(p, count, clock_poll_timeout(g->deadline)) >= 0)
            guard_serve(g, p);
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

static void guard_begin(struct guard *g)
{
    if (g->signals < 0 || pipe2(g->exec_report, O_CLOEXEC | O_NONBLOCK) != 0)
        guard_report_failure(g, "the guard cannot start: %s", strerror(errno));
    else if (!session_make(g->session))
        guard_report_failure(
            g,
            "cannot make the session directory %s: %s; set GASNET_TMPDIR to a writable "
            "directory",
            g->session, strerror(errno));
    else
        guard_start_server(g);
}

/* Waits for a frame, while there is nothing to clean up yet if the head goes or breaks the
 * protocol.
 */
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
        if (f.type != WIRE_PING) /* the order to end, or something else that has no sense yet */
            _exit(EXIT_RUNTIME);
        wire_send(&g->control, WIRE_PONG, 0, 0, NULL, 0);
    }
    g->job = job_frame_unpack(f.payload, f.length, f.host, clock_ms(), why, sizeof(why));
    if (!g->job) {
        wire_send_now(&g->control, WIRE_FAILED, 0, 0, why, strlen(why));
        _exit(EXIT_RUNTIME);
    }
    g->control.host = g->output.host = f.host;
    g->first = g->job->hosts[f.host].first;
    g->count = g->job->hosts[f.host].count;
    snprintf(g->session, sizeof(g->session), "%s", g->job->session);
}

static void guard_alloc_tables(struct guard *g)
{
    g->pids = guard_alloc(g->count, sizeof(*g->pids));
    g->envs = guard_alloc(g->count, sizeof(*g->envs));
    g->pumps = guard_alloc(2 * (size_t)g->count, sizeof(*g->pumps));
    for (uint32_t i = 0; i < 2 * g->count; i++)
        g->pumps[i].fd = -1;
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
    guard_detach();
    g->signals = guard_catch_signals();
    oom_open(&g->memory, "");
    send_hello(g, ports);
    guard_receive_job(g);
    guard_alloc_tables(g);
    struct pollfd *p = guard_alloc(POLL_PUMPS + 2 * (size_t)g->count, sizeof(*p));
    guard_begin(g);
    guard_loop(g, p);
}

static struct guard guard_made(int control, int output, int lifeline)
{
    struct guard g = {
        .deadline = CLOCK_NEVER, .patience = CLOCK_NEVER, .feed = {.fd = -1}, .lifeline = lifeline};

    wire_open(&g.control, control, JOB_NO_HOST);
    wire_open(&g.output, output, JOB_NO_HOST);
    return g;
}

void guard_run(int control, int output)
{
    struct guard g = guard_made(control, output, -1);
    guard_live(&g, HELLO_PORTS_UNKNOWN);
}

void guard_run_remote(int control, int output, int lifeline, bool has_port)
{
    struct guard g = guard_made(control, output, lifeline);
    guard_live(&g, has_port ? HELLO_PORTS_ACTIVE : HELLO_PORTS_NONE);
}
