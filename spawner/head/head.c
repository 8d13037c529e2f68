/* SPDX-License-Identifier: BSD-3-Clause */
/* The head's loop; see head.h. Owns the tree of guards, the policy and the output queue. One
 * thread. */
#include "config.h"

#include "devices.h"
#include "fences.h"
#include "hang.h"
#include "head.h"
#include "input.h"
#include "network.h"
#include "output.h"
#include "policy.h"
#include "spawner/util/launcher_clock.h"
#include "spawner/util/log.h"
#include "spawner/util/procinfo.h"
#include "spawner/util/signals.h"
#include "spawner/children/children.h"
#include "spawner/guard/guard.h"
#include "spawner/guard/session.h"
#include "spawner/tree/shape.h"
#include "spawner/tree/tree.h"
#include "spawner/wire/exchange.h"
#include "spawner/wire/report.h"
#include "view.h"

#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long a job that the user ended waits for a reader that does not read. A job that ended by
 * itself may have printed the result of a week: see GASNET_OUTPUT_TIMEOUT. */
enum { FLUSH_MS = 2000 };

/* The kernel kills the ranks when a guard dies; this bounds the wait for their end. */
enum { SWEEP_MS = 5000 };

/* For processes that are about to end by themselves. */
enum { REAP_MS = 2000, REAP_PACE_MS = 1 };

/* Ranks whose state is described when they do not join: usually all are in the same state. */
enum { DESCRIBED_MAX = 8 };

/* The state of a host. */
struct head_host {
    bool said_hello;
    bool done;    /* no process of the job is left there, or the host is lost */
    bool lost;    /* no process has cleaned up there */
    pid_t server; /* the PMIx server, 0 before the guard has reported it */
};

struct head {
    const struct job *job;
    struct tree tree;
    struct pollfd *poll;
    struct head_host *hosts;
    struct hello *hello; /* of each host */
    uint32_t hellos;
    struct policy policy;
    struct fences fences;
    struct output output;
    struct input input;
    struct hang hang;
    struct view view;
    struct collect *collect; /* NULL: no report is wanted */
    int signals;
    bool ending;     /* the order to kill has gone out */
    int64_t give_up; /* when to stop waiting for the reader of our output: the user wants the end */
    int64_t unread_at;     /* the same, unless something is read meanwhile: the job is over */
    uint64_t seen_written; /* of the output, when unread_at was set */
};

static int signal_pipe = -1;

int head_catch_signals(struct job *job)
{
    signal_pipe = signals_catch(job->ignored);
    return signal_pipe;
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

/* For what the user must know, even if nobody reads the output of the ranks any more. */
static void head_show(struct head *h, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void head_show(struct head *h, const char *format, ...)
{
    char line[LOG_LINE_MAX];
    va_list args;
    va_start(args, format);
    size_t length = log_format(line, format, args);
    va_end(args);
    output_show(&h->output, line, length);
}

static void log_lines(void *owner, const char *text, size_t length)
{
    struct head *h = owner;
    output_add(&h->output, STDERR_FILENO, UINT32_MAX, text, length);
}

static bool is_there(void *owner, uint32_t host)
{
    const struct head *h = owner;
    return h->hosts[host].said_hello && !h->hosts[host].done;
}

static void order_end(struct head *h, uint32_t grace_ms)
{
    h->ending = true;
    tree_kill(&h->tree, grace_ms);
}

static bool is_here(const struct head *h, uint32_t host)
{
    return h->job->agent == JOB_AGENT_FORK || h->job->hosts[host].is_virtual;
}

/* The PMIx server and the guard of a host, if they are processes of this one. */
static void describe_host(struct head *h, uint32_t host)
{
    const char *name = h->job->host_count > 1 ? h->job->hosts[host].name : "";
    const char *of = *name ? " of " : "";
    char doing[600];

    if (h->hosts[host].server) {
        procinfo_describe(h->hosts[host].server, NULL, doing, sizeof(doing));
        head_log(h, "  the PMIx server%s%s (pid %d): %s", of, name, (int)h->hosts[host].server,
                 doing);
    }
    for (uint32_t i = 0; i < h->tree.count; i++) {
        const struct tree_branch *b = &h->tree.branches[i];
        if (b->host != host || !b->agent->pid)
            continue;
        procinfo_describe(b->agent->pid, NULL, doing, sizeof(doing));
        head_log(h, "  the guard%s%s (pid %d): %s", of, name, (int)b->agent->pid, doing);
    }
}

static void describe_unready_hosts(struct head *h)
{
    for (uint32_t i = 0, described = 0; i < h->job->host_count && described < DESCRIBED_MAX; i++)
        if (!h->hosts[i].said_hello && !h->hosts[i].lost) {
            head_log(h, "  host %s: its guard has not answered yet", h->job->hosts[i].name);
            described++;
        }
}

/* Prints the state of the ranks that the job waits for, and of the PMIx server and the guard of the
 * first of them. */
static void describe_missing(struct head *h)
{
    const struct policy *p = &h->policy;
    char doing[600];
    uint32_t described = 0, more = 0;

    for (uint32_t r = 0; r < p->ranks; r++) {
        if (!policy_is_missing(p, r) || !p->rank[r].pid || !is_here(h, job_host_of(h->job, r)))
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
    uint32_t host = job_host_of(h->job, p->culprit);
    if (is_here(h, host))
        describe_host(h, host);
    describe_unready_hosts(h);
}

static void head_apply_policy(struct head *h)
{
    char text[1024];
    if (policy_wants_marks(&h->policy))
        tree_send(&h->tree, WIRE_ALL, WIRE_WANT_MARKS, 0, 0, NULL, 0);
    bool must_end = policy_must_end(&h->policy, clock_ms());
    if (!must_end && !policy_is_corrected(&h->policy))
        return;
    if (policy_sentence(&h->policy, log_verbosity() > 0, text, sizeof(text)))
        head_log(h, "%s", text);
    if (!must_end)
        return;
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
        if (log_verbosity() > 1 && r->rank < p->ranks)
            head_log(h, "rank %u is pid %u on %s", r->rank, r->number,
                     h->job->hosts[job_host_of(h->job, r->rank)].name);
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

static void head_fail(struct head *h, const char *text)
{
    policy_launcher_failed(&h->policy, text, strlen(text), clock_ms());
}

/* Where softhca's packets go, unless the user chose a network. */
static void add_network(const struct head *h, struct bytes *settings)
{
    static const char name[] = "SOFTHCA_UDP=";
    char network[64] = "auto";

    if (getenv("SOFTHCA_UDP"))
        return;
    for (uint32_t i = 0; i < h->tree.count; i++)
        if (network_of_socket(h->tree.branches[i].control.fd, network, sizeof(network)))
            break;
    bytes_append(settings, name, sizeof(name) - 1);
    bytes_append(settings, network, strlen(network) + 1);
    log_verbose(1, "softhca reaches other hosts by the network %s", network);
}

/* Ranks may start when all hosts have answered. The device of ranks on other hosts is known only
 * now. */
static void let_go(struct head *h)
{
    struct bytes settings = {0};
    char text[1200];

    if (h->job->agent == JOB_AGENT_SSH) {
        enum devices_choice choice = devices_choose(h->job, h->hello, text, sizeof(text));
        if (choice == DEVICES_REFUSED) {
            head_fail(h, text);
            return;
        }
        if (log_verbosity() > 0)
            head_log(h, "%s", text);
        for (char **s = h->job->softhca_env; choice != DEVICES_PORTS && *s; s++)
            bytes_append(&settings, *s, strlen(*s) + 1);
        if (choice == DEVICES_PACKETS)
            add_network(h, &settings);
    }
    tree_send(&h->tree, WIRE_ALL, WIRE_GO, 0, 0, bytes_front(&settings), settings.length);
    bytes_free(&settings);
}

static void take_hello(struct head *h, const struct wire_frame *f)
{
    struct hello here, *there = &h->hello[f->host];
    char why[500], text[800];

    if (h->hosts[f->host].said_hello)
        return;
    hello_here(&here, HELLO_PORTS_UNKNOWN);
    bool fits = hello_unpack(there, f->payload, f->length);
    if (!fits)
        snprintf(why, sizeof(why), "a message of its guard is damaged");
    else
        fits = hello_fits(&here, there, why, sizeof(why));
    if (!fits) {
        snprintf(text, sizeof(text), "host %s: %s", h->job->hosts[f->host].name, why);
        head_fail(h, text);
        return;
    }
    h->hosts[f->host].said_hello = true;
    if (++h->hellos == h->job->host_count)
        let_go(h);
}

static void take_fence(struct head *h, const struct wire_frame *f)
{
    struct fence_result r;
    if (!fences_add(&h->fences, f->host, f->payload, f->length, &r))
        return;
    const uint8_t *payload = bytes_front(&r.payload);
    if (r.everywhere)
        tree_send(&h->tree, WIRE_ALL, WIRE_FENCE_DONE, 0, 0, payload, r.payload.length);
    for (uint32_t i = 0; !r.everywhere && i < h->job->host_count; i++)
        if (r.takes_part[i])
            tree_send(&h->tree, i, WIRE_FENCE_DONE, 0, 0, payload, r.payload.length);
    bytes_free(&r.payload);
    free(r.takes_part);
}

static void answer_gone(struct head *h, uint32_t asker, uint32_t id)
{
    struct bytes b = {0};
    pack_number(&b, id);
    pack_number(&b, asker);
    pack_number(&b, EXCHANGE_GONE);
    tree_send(&h->tree, asker, WIRE_DMX_REPLY, 0, 0, bytes_front(&b), b.length);
    bytes_free(&b);
}

static void take_request(struct head *h, const struct wire_frame *f)
{
    uint8_t payload[8];

    if (f->length != 4 || f->rank >= h->job->ranks)
        return;
    uint32_t id = wire_number(f->payload), target = job_host_of(h->job, f->rank);
    if (h->hosts[target].done) {
        answer_gone(h, f->host, id);
        return;
    }
    fences_ask(&h->fences, f->host, target, id);
    wire_put_number(payload, id);
    wire_put_number(payload + 4, f->host);
    tree_send(&h->tree, target, WIRE_DMX_REQUEST, 0, f->rank, payload, sizeof(payload));
}

static void take_reply(struct head *h, const struct wire_frame *f)
{
    struct exchange_reply r;
    if (!exchange_unpack_reply(f->payload, f->length, &r) || r.host >= h->job->host_count)
        return;
    fences_answered(&h->fences, r.host, r.id);
    tree_send(&h->tree, r.host, WIRE_DMX_REPLY, 0, 0, f->payload, f->length);
}

static void host_is_over(struct head *h, uint32_t host)
{
    uint32_t asker, id;
    h->hosts[host].done = true;
    while (fences_unanswered(&h->fences, host, &asker, &id))
        answer_gone(h, asker, id);
}

static void host_is_lost(struct head *h, uint32_t first, const char *why, size_t length)
{
    const struct job *job = h->job;
    uint32_t end = shape_end(job->host_count, job->out_degree, first);

    for (uint32_t i = first; i < end; i++) {
        if (h->hosts[i].done)
            continue;
        h->hosts[i].lost = true;
        policy_lost(&h->policy, job->hosts[i].first, job->hosts[i].count);
        host_is_over(h, i);
    }
    policy_launcher_failed(&h->policy, why, length, clock_ms());
}

/* Frames exchanged by PMIx servers; false if it is another frame. */
static bool take_exchange(struct head *h, const struct wire_frame *f)
{
    if (f->type == WIRE_FENCE)
        take_fence(h, f);
    else if (f->type == WIRE_DMX_REQUEST)
        take_request(h, f);
    else if (f->type == WIRE_DMX_REPLY)
        take_reply(h, f);
    else
        return false;
    return true;
}

/* Frames about ranks. */
static void take_of_rank(struct head *h, const struct wire_frame *f)
{
    struct policy *p = &h->policy;
    struct unpack u = {f->payload, f->payload + f->length, false};
    const char *words = (const char *)f->payload;
    uint32_t number = f->length >= 4 ? wire_number(f->payload) : 0;

    switch (f->type) {
    case WIRE_REPORT:
        for (struct report r; report_unpack(&u, &r);)
            take_report(h, &r);
        break;
    case WIRE_ABORT:
        if (f->length >= 4)
            policy_aborted(p, f->rank, (int)number, words + 4, f->length - 4, clock_ms());
        break;
    case WIRE_OOM_KILLED:
        policy_oom_killed(p, f->rank, words, f->length);
        break;
    case WIRE_EXEC_ERROR:
        policy_no_exec(p, f->rank, (int)number, clock_ms());
        break;
    default:
        break;
    }
}

/* A sentence from another host, fit for a terminal. */
static size_t words_of(const struct wire_frame *f, char *text, size_t size)
{
    size_t length = f->length < size - 1 ? f->length : size - 1;
    for (size_t i = 0; i < length; i++)
        text[i] = f->payload[i] < ' ' || f->payload[i] == 0x7f ? ' ' : (char)f->payload[i];
    text[length] = 0;
    return length;
}

static void head_take_control(void *owner, const struct wire_frame *f)
{
    struct head *h = owner;
    char words[1024];
    size_t length = words_of(f, words, sizeof(words));

    switch (f->type) {
    case WIRE_HELLO:
        take_hello(h, f);
        break;
    case WIRE_FAILED:
        if (!policy_launcher_failed(&h->policy, words, length, clock_ms()) && f->aux)
            head_show(h, "%s", words);
        break;
    case WIRE_LOST:
        host_is_lost(h, f->host, words, length);
        break;
    case WIRE_NOTE:
        if (f->aux <= log_verbosity())
            head_log(h, "%s", words);
        break;
    case WIRE_SERVER:
        h->hosts[f->host].server = f->length == 4 ? (pid_t)wire_number(f->payload) : 0;
        break;
    case WIRE_DONE:
        host_is_over(h, f->host);
        break;
    default:
        if (!take_exchange(h, f) && !hang_take(&h->hang, f) && !view_take(&h->view, f))
            take_of_rank(h, f);
        break;
    }
}

static void head_take_output(void *owner, const struct wire_frame *f)
{
    struct head *h = owner;
    if (f->type == WIRE_OUTPUT)
        output_add(&h->output, f->aux, f->rank, f->payload, f->length);
    else if (f->type == WIRE_FILE && h->collect)
        collect_add(h->collect, f);
}

static void head_lost(void *owner, uint32_t host, const char *why)
{
    host_is_lost(owner, host, why, strlen(why));
}

/* That guard may have reaped a rank, whose pid another process has now, without saying so. */
static void head_stuck(void *owner, uint32_t host, pid_t guard)
{
    struct head *h = owner;
    const struct job_host *of = &h->job->hosts[host];

    for (uint32_t r = of->first; r < of->first + of->count; r++)
        if (!h->policy.rank[r].exited)
            grandchild_signal(h->policy.rank[r].pid, guard, SIGKILL);
}

static void head_note(void *owner, const char *words)
{
    head_log(owner, "%s", words);
}

static const struct tree_events head_events = {head_take_control, head_take_output, head_lost,
                                               head_stuck, head_note};

/* Ctrl-Z: the ranks are in process groups of their own, so the terminal does not reach them. They
 * get SIGSTOP, whatever their disposition of SIGTSTP, because their output is not read meanwhile.
 */
static void stop_together(struct head *h)
{
    tree_send_number(&h->tree, WIRE_SIGNAL, SIGSTOP);
    tree_flush(&h->tree);
    int64_t stopped_at = clock_ms();
    raise(SIGSTOP);
    policy_was_stopped(&h->policy, clock_ms() - stopped_at);
    tree_send_number(&h->tree, WIRE_SIGNAL, SIGCONT);
}

static void head_handle_signals(struct head *h)
{
    for (int s = signals_next(h->signals); s; s = signals_next(h->signals)) {
        if (s == SIGUSR1 || s == SIGUSR2) {
            tree_send_number(&h->tree, WIRE_SIGNAL, (uint32_t)s);
        } else if (s == SIGNAL_EXPLAIN) {
            hang_ask(&h->hang);
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
        tree_send(&h->tree, WIRE_ALL, WIRE_MUTE, (uint16_t)broken, 0, NULL, 0);
}

enum { POLL_SIGNALS, POLL_INPUT, POLL_OUTPUT, POLL_HANG, POLL_VIEW, POLL_TREE };

static int head_input(struct head *h)
{
    struct wire_channel *to = tree_input_channel(&h->tree);
    return to && !h->hosts[0].done ? input_waits_for(&h->input, to) : -1;
}

static nfds_t head_set_up_poll(struct head *h, int64_t *deadline)
{
    bool keep_up = h->output.length < OUTPUT_BACKLOG;
    struct pollfd *p = h->poll;

    p[POLL_SIGNALS] = (struct pollfd){h->signals, POLLIN, 0};
    p[POLL_INPUT] = (struct pollfd){head_input(h), POLLIN, 0};
    p[POLL_OUTPUT] = (struct pollfd){output_waits_for(&h->output), POLLOUT, 0};
    p[POLL_HANG] = hang_poll(&h->hang);
    p[POLL_VIEW] = view_poll(&h->view);
    size_t used = tree_poll(&h->tree, p + POLL_TREE, keep_up);
    *deadline = clock_earlier(policy_deadline(&h->policy), h->input.ask_again);
    *deadline = clock_earlier(*deadline, tree_deadline(&h->tree));
    *deadline = clock_earlier(*deadline, hang_deadline(&h->hang));
    *deadline = clock_earlier(*deadline, view_deadline(&h->view));
    *deadline = clock_earlier(*deadline, clock_earlier(h->give_up, h->unread_at));
    return POLL_TREE + (nfds_t)used;
}

static void head_serve(struct head *h, nfds_t count)
{
    const struct pollfd *p = h->poll;

    tree_serve(&h->tree, p + POLL_TREE, count - POLL_TREE);
    if (p[POLL_SIGNALS].revents)
        head_handle_signals(h);
    if (p[POLL_INPUT].revents && tree_input_channel(&h->tree))
        input_forward(&h->input, tree_input_channel(&h->tree));
    if (p[POLL_HANG].revents)
        hang_serve(&h->hang);
    if (p[POLL_VIEW].revents)
        view_serve(&h->view);
    if (p[POLL_OUTPUT].revents)
        write_output(h);
}

/* Every guard has reported everything, or is lost. */
static bool guards_are_gone(const struct head *h)
{
    return tree_is_over(&h->tree);
}

static bool all_is_shown(const struct head *h)
{
    return tree_is_silent(&h->tree) && !h->output.first;
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
    bool over = guards_are_gone(h) || policy_all_gone(&h->policy);
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

/* Explains a status that does not come from a rank. If SIGPIPE ended ranks, the message names
 * SIGPIPE. */
static void report_closed(const struct head *h)
{
    for (unsigned s = STDOUT_FILENO; s <= STDERR_FILENO; s++)
        if (h->output.stream[s].is_closed)
            log_error("standard %s is incomplete: its reader went away before the job had ended",
                      s == STDOUT_FILENO ? "output" : "error");
}

static void head_loop(struct head *h, bool (*is_over)(const struct head *))
{
    int64_t deadline;
    while (!is_over(h)) {
        head_apply_policy(h);
        tree_watch(&h->tree);
        stop_waiting_for_reader(h);
        hang_watch(&h->hang);
        view_watch(&h->view);
        tree_flush(&h->tree);
        nfds_t count = head_set_up_poll(h, &deadline);
        if (poll(h->poll, count, clock_poll_timeout(deadline)) >= 0)
            head_serve(h, count);
        watch_reader(h);
    }
}

/* Guards were killed: do their work. Their ranks die with them by PDEATHSIG, and orphans on this
 * host are reparented to the head, which is a sub-reaper too. */
static void stand_in_for_guards(struct head *h)
{
    bool any_lost = false;
    for (uint32_t i = 0; i < h->job->host_count; i++)
        any_lost |= h->hosts[i].lost;
    if (!any_lost)
        return;
    children_signal_all(SIGKILL, NULL, 0);
    children_sweep(clock_ms() + SWEEP_MS);
    session_remove_hosts(h->job, 0, h->job->host_count);
}

static bool head_prepare(struct head *h)
{
    const struct job *job = h->job;

    h->hosts = calloc(job->host_count, sizeof(*h->hosts));
    h->hello = calloc(job->host_count, sizeof(*h->hello));
    if (!h->hosts || !h->hello || !policy_init(&h->policy, job->ranks, job->start_ms, job->began))
        return false;
    h->policy.job = job;
    h->fences.job = job;
    output_init(&h->output);
    input_init(&h->input);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    if (!tree_grow(&h->tree, job, 0, job->host_count, guard_run, &head_events, h))
        return false;
    if (!h->tree.branches[0].agent->remote)
        input_hand_over(&h->input);
    h->poll = calloc(POLL_TREE + tree_poll_max(&h->tree), sizeof(*h->poll));
    return h->poll != NULL;
}

static bool reap_guard(struct head *h, const struct tree_branch *b)
{
    int how = b->left && !b->agent->remote ? 0 : WNOHANG;
    pid_t pid = b->agent->pid, ended = pid ? waitpid(pid, NULL, how) : 0;
    if (ended) /* now, or by children_sweep() */
        tree_reaped(&h->tree, pid, 0);
    return ended || !pid;
}

/* Guards that have left are zombies for a moment; one that survives SIGKILL is not waited for, and
 * ssh not for long: it may wait for a connection that is cut, or a wrapper may run commands after
 * it. / */
static void reap_guards(struct head *h)
{
    int64_t deadline = clock_ms() + REAP_MS;

    for (uint32_t i = 0; i < h->tree.count; i++) {
        const struct tree_branch *b = &h->tree.branches[i];
        bool is_gone = reap_guard(h, b);
        for (; !is_gone && b->left && clock_ms() < deadline; is_gone = reap_guard(h, b))
            poll(NULL, 0, REAP_PACE_MS);
        if (!is_gone && b->left) {
            children_signal_all(SIGKILL, NULL, 0);
            children_sweep(clock_ms() + SWEEP_MS);
        }
    }
}

static void add_count(char *text, size_t size, const char *name, uint64_t count)
{
    size_t used = strlen(text);
    snprintf(text + used, size - used, " %s %llu", name, (unsigned long long)count);
}

static void report_messages(const struct head *h)
{
    uint64_t frames, bytes;
    tree_count(&h->tree, &frames, &bytes);
    log_verbose(2, "head: %llu messages, %llu bytes", (unsigned long long)frames,
                (unsigned long long)bytes);
    char kinds[400] = "", sizes[400] = "";
    for (uint16_t type = 1; type < WIRE_TYPES; type++) {
        tree_count_kind(&h->tree, (enum wire_type)type, &frames, &bytes);
        if (!wire_name(type) || !frames)
            continue;
        add_count(kinds, sizeof(kinds), wire_name(type), frames);
        if (bytes)
            add_count(sizes, sizeof(sizes), wire_name(type), bytes);
    }
    log_verbose(2, "head: of these%s", kinds);
    log_verbose(2, "head: bytes in them%s", sizes);
}

int head_run(const struct job *job, struct collect *collect)
{
    struct head h = {.job = job,
                     .collect = collect,
                     .signals = signal_pipe,
                     .give_up = CLOCK_NEVER,
                     .unread_at = CLOCK_NEVER};

    if (!head_prepare(&h)) {
        log_error("out of memory for %u ranks on %u hosts", job->ranks, job->host_count);
        return EXIT_RUNTIME;
    }
    h.hang = (struct hang){
        .job = job, .tree = &h.tree, .log = log_lines, .is_there = is_there, .owner = &h};
    hang_open(&h.hang);
    h.view = (struct view){.job = job, .tree = &h.tree, .is_there = is_there, .owner = &h};
    if (collect) {
        h.view.sample = collect->sample;
        h.view.samples = collect->samples;
    }
    view_open(&h.view);
    head_loop(&h, guards_are_gone);
    hang_close(&h.hang);
    view_close(&h.view);
    stand_in_for_guards(&h);
    policy_close(&h.policy);
    head_apply_policy(&h);
    head_loop(&h, all_is_shown);
    report_unread(&h);
    report_messages(&h);
    reap_guards(&h);
    tree_free(&h.tree);
    int status = policy_status(&h.policy);
    if (status == 0)
        report_closed(&h);
    policy_free(&h.policy);
    fences_free(&h.fences);
    free(h.hosts);
    free(h.hello);
    free(h.poll);
    return status == 0 && h.output.failed ? EXIT_OUTPUT_LOST : status;
}
