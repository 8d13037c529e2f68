/* SPDX-License-Identifier: BSD-3-Clause */
/* The head's loop; see head.h. Owns the sockets to the guard, the policy and the output queue. One
 * thread. */
#include "config.h"

#include "head.h"
#include "input.h"
#include "output.h"
#include "policy.h"
#include "spawner/base/signals.h"
#include "spawner/agent/agent.h"
#include "spawner/base/clock.h"
#include "spawner/base/procinfo.h"
#include "spawner/base/log.h"
#include "spawner/children/children.h"
#include "spawner/guard/guard.h"
#include "spawner/guard/session.h"
#include "spawner/wire/job_frame.h"
#include "spawner/wire/report.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long a job that the user ended waits for a reader that does not read. A job that ended by
 * itself may have printed the result of a week: see GASNET_OUTPUT_TIMEOUT. */
enum { FLUSH_MS = 2000 };

/* The kernel kills the ranks when the guard dies; this bounds the wait for their end. */
enum { SWEEP_MS = 5000 };

/* The guard's loop blocks only in poll(); its longest step is to start a thousand ranks. */
enum { ANSWER_MS = 5000 };

/* Ranks whose state is described when they do not join: all tend to be in the same. */
enum { DESCRIBED_MAX = 8 };

struct head {
    const struct job *job;
    struct agent_set agents;
    struct agent *agent;
    struct wire_channel control, guard_io;
    struct policy policy;
    struct output output;
    struct input input;
    int signals;
    bool ending;     /* the order to kill has gone out */
    bool done;       /* the guard has reported the end of every process */
    int64_t give_up; /* when to stop waiting for the reader of our output: the user wants the end */
    int64_t unread_at;     /* the same, unless something is read meanwhile: the job is over */
    uint64_t seen_written; /* of the output, when unread_at was set */
    pid_t server;          /* the PMIx server, 0 before the guard has reported it */
    bool answered;         /* the guard has taken the order to kill */
    bool abandoned;        /* the guard survives SIGKILL */
    int64_t answer_by;     /* when the guard is taken for stuck */
};

static int signal_pipe = -1;

void head_catch_signals(struct job *job)
{
    signal_pipe = signals_catch(job->ignored);
}

/* Goes through the output queue, because standard error may have no reader either. */
static void head_log(struct head *h, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void head_log(struct head *h, const char *format, ...)
{
    char line[LOG_LINE_MAX];
    va_list args;
    va_start(args, format);
    size_t length = log_format(line, format, args);
    va_end(args);
    output_add(&h->output, STDERR_FILENO, UINT32_MAX, line, length);
}

static void order_end(struct head *h, uint32_t grace_ms)
{
    h->ending = true;
    if (!h->answered && h->answer_by == CLOCK_NEVER)
        h->answer_by = clock_ms() + ANSWER_MS;
    wire_send_number(&h->control, WIRE_KILL, 0, grace_ms);
}

/* Prints the state of the ranks that the job waits for, of the PMIx server and of the guard. */
static void describe_missing(struct head *h)
{
    const struct policy *p = &h->policy;
    char doing[600];
    uint32_t described = 0, more = 0;

    for (uint32_t r = 0; r < p->ranks; r++) {
        if (!policy_is_missing(p, r) || !p->rank[r].pid)
            continue;
        if (described == DESCRIBED_MAX) {
            more++;
            continue;
        }
        procinfo_describe(p->rank[r].pid, h->job->program, doing, sizeof(doing));
        head_log(h, "  rank %u (pid %d): %s", r, p->rank[r].pid, doing);
        described++;
    }
    if (more)
        head_log(h, "  %u more ranks have not joined", more);
    struct rlimit space;
    if (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY)
        head_log(h, "  the address space is limited to %llu MiB a process (ulimit -v)",
                 (unsigned long long)space.rlim_cur >> 20);
    if (h->server) {
        procinfo_describe(h->server, NULL, doing, sizeof(doing));
        head_log(h, "  the PMIx server (pid %d): %s", (int)h->server, doing);
    }
    procinfo_describe(h->agent->pid, NULL, doing, sizeof(doing));
    head_log(h, "  the guard (pid %d): %s", (int)h->agent->pid, doing);
}

static void head_apply_policy(struct head *h)
{
    char text[1024];
    if (!policy_must_end(&h->policy, clock_ms()))
        return;
    if (policy_sentence(&h->policy, log_verbosity() > 0, text, sizeof(text)))
        head_log(h, "%s", text);
    if (h->policy.cause == CAUSE_LATE)
        describe_missing(h);
    order_end(h, h->job->grace_ms);
}

static void take_report(struct head *h, const struct report *r)
{
    struct policy *p = &h->policy;
    int64_t now = clock_ms();

    switch (r->kind) {
    case REPORT_LAUNCHED:
        policy_launched(p, r->rank, (int)r->number);
        if (log_verbosity() > 1)
            head_log(h, "rank %u is pid %u", r->rank, r->number);
        break;
    case REPORT_CONNECTED:
        policy_connected(p, r->rank, now);
        break;
    case REPORT_FINALIZED:
        policy_finalized(p, r->rank);
        break;
    case REPORT_EXITED:
        policy_exited(p, r->rank, (int)r->number, now);
        break;
    default:
        break;
    }
}

static void send_job(struct head *h)
{
    struct bytes packed = {0};
    job_frame_pack(h->job, clock_ms(), &packed);
    wire_send_host(&h->control, 0, WIRE_JOB, 0, 0, bytes_front(&packed), packed.length);
    bytes_free(&packed);
}

static void head_handle_frame(struct head *h, const struct wire_frame *f)
{
    struct policy *p = &h->policy;
    uint32_t number = f->length >= 4 ? wire_number(f->payload) : 0;
    struct unpack u = {f->payload, f->payload + f->length, false};
    int64_t now = clock_ms();

    switch (f->type) {
    case WIRE_HELLO:
        send_job(h);
        break;
    case WIRE_REPORT:
        for (struct report r; report_unpack(&u, &r);)
            take_report(h, &r);
        break;
    case WIRE_ABORT:
        if (f->length >= 4)
            policy_aborted(p, f->rank, (int)number, (const char *)f->payload + 4, f->length - 4,
                           now);
        break;
    case WIRE_OOM_KILLED:
        policy_oom_killed(p, f->rank, (const char *)f->payload, f->length);
        break;
    case WIRE_EXEC_ERROR:
        policy_no_exec(p, f->rank, (int)number, now);
        break;
    case WIRE_FAILED:
        policy_launcher_failed(p, (const char *)f->payload, f->length, now);
        break;
    case WIRE_SERVER:
        h->server = (pid_t)number;
        break;
    case WIRE_ENDING:
        h->answered = true;
        h->answer_by = CLOCK_NEVER;
        break;
    case WIRE_DONE:
        h->done = true;
        break;
    default:
        break;
    }
}

static void head_read_control(struct head *h)
{
    struct wire_frame f;
    wire_fill(&h->control);
    while (wire_next(&h->control, &f))
        head_handle_frame(h, &f);
}

static void head_read_output(struct head *h)
{
    struct wire_frame f;
    wire_fill(&h->guard_io);
    while (wire_next(&h->guard_io, &f))
        if (f.type == WIRE_OUTPUT)
            output_add(&h->output, f.aux, f.rank, f.payload, f.length);
}

/* Ctrl-Z: the ranks are in process groups of their own, so the terminal does not reach them. They
 * get SIGSTOP, whatever their disposition of SIGTSTP, because their output is not read meanwhile.
 */
static void stop_together(struct head *h)
{
    wire_send_number(&h->control, WIRE_SIGNAL, 0, SIGSTOP);
    wire_flush(&h->control);
    int64_t stopped_at = clock_ms();
    raise(SIGSTOP);
    policy_was_stopped(&h->policy, clock_ms() - stopped_at);
    wire_send_number(&h->control, WIRE_SIGNAL, 0, SIGCONT);
}

static void head_handle_signals(struct head *h)
{
    for (int s = signals_next(h->signals); s; s = signals_next(h->signals)) {
        if (s == SIGUSR1 || s == SIGUSR2) {
            wire_send_number(&h->control, WIRE_SIGNAL, 0, (uint32_t)s);
        } else if (s == SIGTSTP) {
            stop_together(h);
        } else if (h->ending && h->give_up != CLOCK_NEVER) {
            h->give_up = clock_ms();
            order_end(h, 0); /* second signal: no grace period */
        } else {
            h->give_up = clock_ms() + FLUSH_MS;
            policy_user_signal(&h->policy, s);
            if (h->ending)
                order_end(h, 0);
        }
    }
}

static void write_output(struct head *h)
{
    unsigned broken = output_write(&h->output);
    if (broken)
        wire_send(&h->control, WIRE_MUTE, (uint16_t)broken, 0, NULL, 0);
}

enum { POLL_CONTROL, POLL_IO, POLL_SIGNALS, POLL_INPUT, POLL_OUTPUT, POLL_COUNT };

static int64_t head_set_up_poll(struct head *h, struct pollfd *p)
{
    bool keep_up = h->output.length < OUTPUT_BACKLOG;
    p[POLL_CONTROL] = (struct pollfd){h->control.ended ? -1 : h->control.fd,
                                      wire_poll_events(&h->control, true), 0};
    short io = wire_poll_events(&h->guard_io, keep_up);
    p[POLL_IO] = (struct pollfd){h->guard_io.ended || !io ? -1 : h->guard_io.fd, io, 0};
    p[POLL_SIGNALS] = (struct pollfd){h->signals, POLLIN, 0};
    p[POLL_INPUT] =
        (struct pollfd){h->done ? -1 : input_waits_for(&h->input, &h->guard_io), POLLIN, 0};
    p[POLL_OUTPUT] = (struct pollfd){output_waits_for(&h->output), POLLOUT, 0};

    int64_t deadline = clock_earlier(policy_deadline(&h->policy), h->input.ask_again);
    deadline = clock_earlier(deadline, h->answer_by);
    return clock_earlier(deadline, clock_earlier(h->give_up, h->unread_at));
}

static void head_serve(struct head *h, const struct pollfd *p)
{
    if (p[POLL_CONTROL].revents)
        head_read_control(h);
    if (p[POLL_IO].revents & (POLLIN | POLLHUP | POLLERR))
        head_read_output(h);
    if (p[POLL_SIGNALS].revents)
        head_handle_signals(h);
    if (p[POLL_INPUT].revents)
        input_forward(&h->input, &h->guard_io);
    if (p[POLL_OUTPUT].revents)
        write_output(h);
}

/* A guard that has not taken the order to end the job is stopped or stuck in the kernel: it is
 * killed, and the kernel kills the ranks and the server with it. One that not even SIGKILL ends is
 * left behind. */
static void watch_guard(struct head *h)
{
    char doing[600];

    if (clock_ms() < h->answer_by)
        return;
    if (!h->abandoned) {
        procinfo_describe(h->agent->pid, NULL, doing, sizeof(doing));
        head_log(h, "the guard (pid %d) does not answer, killing it: %s", (int)h->agent->pid,
                 doing);
        kill(h->agent->pid, SIGKILL);
        h->answer_by = clock_ms() + SWEEP_MS;
        h->abandoned = true;
        return;
    }
    for (uint32_t r = 0; r < h->job->ranks; r++)
        if (h->policy.rank[r].pid && !h->policy.rank[r].exited)
            kill(-h->policy.rank[r].pid, SIGKILL);
    h->answer_by = CLOCK_NEVER;
    h->control.ended = h->guard_io.ended = true;
}

/* The guard has reported everything, or was killed. */
static bool guard_is_gone(const struct head *h)
{
    return h->control.ended;
}

static bool all_is_shown(const struct head *h)
{
    return h->guard_io.ended && !h->output.first;
}

/* The guard waits for the head, and the head for the reader of its output; once the user wants the
 * end, the head stops waiting. */
static void stop_waiting_for_reader(struct head *h)
{
    if (clock_ms() < h->give_up)
        return;
    h->give_up = CLOCK_NEVER;
    output_discard(&h->output);
}

/* No limit while ranks live: they may wait for their reader as long as they like. */
static bool waits_for_reader(const struct head *h)
{
    bool over = h->control.ended || policy_all_gone(&h->policy);
    return h->job->reader_ms && over && h->output.first;
}

/* After the job the reader has reader_ms, and again whenever it has read something. Call it right
 * after poll(): the launcher may have been stopped meanwhile, and the reader must get its chance
 * first. */
static void watch_reader(struct head *h)
{
    if (!waits_for_reader(h)) {
        h->unread_at = CLOCK_NEVER;
    } else if (h->unread_at == CLOCK_NEVER || h->seen_written != h->output.written) {
        h->unread_at = clock_ms() + h->job->reader_ms;
        h->seen_written = h->output.written;
    } else if (clock_ms() >= h->unread_at) {
        output_give_up(&h->output);
        h->unread_at = CLOCK_NEVER;
    }
}

static void report_unread(const struct head *h)
{
    for (unsigned s = STDOUT_FILENO; s <= STDERR_FILENO; s++)
        if (h->output.stream[s].given_up)
            log_error(
                "%zu bytes of standard %s are lost: nobody read them within %g s after the job "
                "(GASNET_OUTPUT_TIMEOUT)",
                h->output.stream[s].unread, s == STDOUT_FILENO ? "output" : "error",
                (double)h->job->reader_ms / 1000);
}

static void head_loop(struct head *h, bool (*is_over)(const struct head *))
{
    struct pollfd p[POLL_COUNT];
    while (!is_over(h)) {
        head_apply_policy(h);
        watch_guard(h);
        stop_waiting_for_reader(h);
        wire_flush(&h->control);
        wire_flush(&h->guard_io);
        int64_t deadline = head_set_up_poll(h, p);
        if (poll(p, POLL_COUNT, clock_poll_timeout(deadline)) > 0)
            head_serve(h, p);
        watch_reader(h);
    }
}

/* The guard was killed: do its work. Its ranks die with it by PDEATHSIG, and their orphans are
 * reparented to the head, which is a sub-reaper too. */
static void stand_in_for_guard(struct head *h)
{
    static const char text[] = "the guard process of the job was killed";

    children_signal_all(SIGKILL, 0);
    children_sweep(clock_ms() + SWEEP_MS);
    if (!h->job->keep)
        session_remove(h->job->session);
    policy_launcher_failed(&h->policy, text, sizeof(text) - 1, clock_ms());
}

static bool start_guard(struct head *h)
{
    if (!agent_set_open(&h->agents, h->job, 1, guard_run)) {
        log_error("out of memory for the guard");
        return false;
    }
    agent_set_start(&h->agents, 0);
    h->agent = agent_set_next(&h->agents);
    if (h->agent->state == AGENT_READY)
        return true;
    log_error("%s", h->agent->why);
    agent_set_close(&h->agents);
    return false;
}

int head_run(const struct job *job)
{
    struct head h = {.job = job,
                     .signals = signal_pipe,
                     .give_up = CLOCK_NEVER,
                     .unread_at = CLOCK_NEVER,
                     .answer_by = CLOCK_NEVER};

    if (!policy_init(&h.policy, job->ranks, job->start_ms, job->began)) {
        log_error("out of memory for %u ranks", job->ranks);
        return EXIT_RUNTIME;
    }
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    output_init(&h.output);
    input_init(&h.input);
    if (!start_guard(&h)) {
        policy_free(&h.policy);
        return EXIT_RUNTIME;
    }
    wire_open(&h.control, h.agent->control, WIRE_ALL);
    wire_open(&h.guard_io, h.agent->output, WIRE_ALL);
    head_loop(&h, guard_is_gone);
    if (!h.done)
        stand_in_for_guard(&h);
    policy_close(&h.policy);
    head_apply_policy(&h);
    head_loop(&h, all_is_shown);
    report_unread(&h);
    wire_close(&h.control);
    wire_close(&h.guard_io);
    if (waitpid(h.agent->pid, NULL, h.abandoned ? WNOHANG : 0) == h.agent->pid)
        agent_set_ended(&h.agents, h.agent->pid, 0);
    agent_set_close(&h.agents);
    int status = policy_status(&h.policy);
    policy_free(&h.policy);
    return status == 0 && h.output.failed ? EXIT_OUTPUT_LOST : status;
}
