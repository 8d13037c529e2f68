/* SPDX-License-Identifier: BSD-3-Clause */
/* The exit policy; see policy.h. Owns its table of ranks; no system call, no lock. */
#include "config.h"

#include "policy.h"
#include "spawner/util/launcher_clock.h"
#include "spawner/util/log.h"
#include "spawner/util/signal_text.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

bool policy_init(struct policy *p, uint32_t ranks, int64_t start_ms, int64_t began)
{
    *p = (struct policy){.ranks = ranks,
                         .running = ranks,
                         .start_ms = start_ms,
                         .late_at = start_ms ? began + start_ms : CLOCK_NEVER,
                         .decide_at = CLOCK_NEVER};
    p->rank = calloc(ranks, sizeof(*p->rank));
    return p->rank != NULL;
}

/* A rank changes between two calls, with -1 and 1. The head asks after each frame, so it must not
 * look at all ranks: while a million ranks of 4000 hosts exit that took it 10 s. */
static void policy_count(struct policy *p, const struct policy_rank *rank, int sign)
{
    bool is_running = !rank->exited && !rank->finalized;
    p->running += (uint32_t)(sign * is_running);
    p->joined += (uint32_t)(sign * (is_running && rank->connected));
    p->awaited += (uint32_t)(sign * (is_running && rank->unreachable && !rank->aborted));
}

void policy_free(struct policy *p)
{
    free(p->rank);
}

/* If one window has two causes, the cause that explains the other wins: an abort is often only the
 * reaction to another rank's end, and a failure of the launcher explains everything. */
static int policy_weight(enum policy_cause cause)
{
    switch (cause) {
    case CAUSE_NONE:
        return 0;
    case CAUSE_ABORT:
        return 1;
    case CAUSE_LAUNCHER:
    case CAUSE_NO_EXEC:
        return 3;
    case CAUSE_USER:
        return 4;
    default:
        return 2;
    }
}

/* A rank that ends because another rank ended is not the cause. If two ended, the rank that the
 * others could no longer reach ended first, in whatever order the exits were seen. */
static bool policy_explains(const struct policy *p, enum policy_cause cause, uint32_t rank)
{
    if (policy_weight(cause) != policy_weight(p->cause))
        return policy_weight(cause) > policy_weight(p->cause);
    bool of_ranks = policy_weight(cause) == policy_weight(CAUSE_EXIT);
    return of_ranks && p->rank[rank].unreachable && !p->rank[p->culprit].unreachable;
}

static bool policy_blame(struct policy *p, enum policy_cause cause, uint32_t rank, int code,
                         int64_t now)
{
    if (p->decided || !policy_explains(p, cause, rank))
        return false;
    if (p->cause == CAUSE_NONE)
        p->decide_at = now + POLICY_WINDOW_MS;
    p->cause = cause;
    p->culprit = rank;
    p->code = code;
    p->core = false;
    p->text[0] = 0;
    return true;
}

static void policy_copy_text(char *to, size_t size, const char *text, size_t length)
{
    if (length >= size)
        length = size - 1;
    for (size_t i = 0; i < length; i++) /* it goes into one line of a terminal */
        to[i] = (unsigned char)text[i] < ' ' ? ' ' : text[i];
    to[length] = 0;
    while (length && to[length - 1] == ' ')
        to[--length] = 0;
}

static void policy_quote(struct policy *p, const char *text, size_t length)
{
    policy_copy_text(p->text, sizeof(p->text), text, length);
}

void policy_launched(struct policy *p, uint32_t rank, int pid)
{
    if (rank >= p->ranks)
        return;
    p->launched += !p->rank[rank].pid;
    p->rank[rank].pid = pid;
}

void policy_connected(struct policy *p, uint32_t rank, int64_t now)
{
    if (rank >= p->ranks)
        return;
    policy_count(p, &p->rank[rank], -1);
    p->rank[rank].connected = true;
    policy_count(p, &p->rank[rank], 1);
    if (p->any_absent)
        policy_blame(p, CAUSE_ABSENT, p->absent, 0, now);
}

void policy_finalized(struct policy *p, uint32_t rank)
{
    if (rank >= p->ranks)
        return;
    policy_count(p, &p->rank[rank], -1);
    p->rank[rank].finalized = true;
    policy_count(p, &p->rank[rank], 1);
}

/* The library passes "peer 3 unreachable" to PMIx_Abort when it has lost a peer
 * (conduit/exit/exit.c) and has printed why. */
static bool is_accusation(const char *text, size_t length, unsigned *peer)
{
    char copy[40];
    int end = 0;
    if (length >= sizeof(copy))
        return false;
    memcpy(copy, text, length);
    copy[length] = 0;
    return sscanf(copy, "peer %u unreachable%n", peer, &end) == 1 && end && !copy[end];
}

static void judge_end(struct policy *p, uint32_t rank, int64_t now);

void policy_aborted(struct policy *p, uint32_t rank, int code, const char *text, size_t length,
                    int64_t now)
{
    unsigned peer;
    if (rank >= p->ranks || p->rank[rank].aborted)
        return;
    policy_count(p, &p->rank[rank], -1);
    p->rank[rank].aborted = true;
    p->rank[rank].abort_code = code;
    policy_count(p, &p->rank[rank], 1);
    if (policy_blame(p, CAUSE_ABORT, rank, code, now))
        policy_quote(p, text, length);
    if (!is_accusation(text, length, &peer) || peer >= p->ranks)
        return;
    policy_count(p, &p->rank[peer], -1);
    p->rank[peer].unreachable = true;
    policy_count(p, &p->rank[peer], 1);
    if (p->rank[peer].exited)
        judge_end(p, peer, now);
}

static void exited_zero(struct policy *p, uint32_t rank, int64_t now)
{
    struct policy_rank *self = &p->rank[rank];

    if (self->finalized)
        return;
    if (self->connected) {
        if (p->running > 0) /* joined or not: it may be about to enter a fence */
            policy_blame(p, CAUSE_UNFINISHED, rank, 0, now);
        return;
    }
    if (!p->any_absent)
        p->absent = rank;
    p->any_absent = true;
    if (p->joined > 0) /* these may still communicate */
        policy_blame(p, CAUSE_ABSENT, rank, 0, now);
}

/* If ranks leave in order, the job gets the largest of their statuses, in whatever order the exits
 * are seen: some ranks may not have learnt it. */
static void left_with(struct policy *p, uint32_t rank, int code, int64_t now)
{
    bool both_in_order =
        p->cause == CAUSE_EXIT && p->rank[p->culprit].finalized && p->rank[rank].finalized;

    if (!both_in_order || p->decided) {
        policy_blame(p, CAUSE_EXIT, rank, code, now);
    } else if (code > p->code) {
        p->code = code;
        p->culprit = rank;
    }
}

/* Only the first counts: its end frees memory. */
void policy_oom_killed(struct policy *p, uint32_t rank, const char *text, size_t length)
{
    if (p->oom_text[0])
        return;
    p->oom_rank = rank;
    policy_copy_text(p->oom_text, sizeof(p->oom_text), text, length);
}

/* Whether the rank was dying before the decision: a process gives its devices back, which its peers
 * notice, before waitpid() returns it, and on a busy host longer before than the window lasts. The
 * launcher sends SIGTERM, and SIGKILL when the grace is over, so an earlier SIGKILL is not its own.
 * Another signal counts if others had lost the rank: SIGTERM may also make it crash. */
static bool was_dying(const struct policy *p, uint32_t rank, int signal, int64_t now)
{
    int64_t grace = p->job ? p->job->grace_ms : 0;
    bool is_own = signal == SIGKILL || (p->rank[rank].unreachable && signal != SIGTERM);
    return p->decided && !p->hurried && is_own && now < p->decided_at + grace &&
           policy_explains(p, CAUSE_SIGNAL, rank);
}

static void policy_correct(struct policy *p, uint32_t rank, int signal)
{
    p->cause = CAUSE_SIGNAL;
    p->culprit = rank;
    p->code = signal;
    p->corrected = true;
}

static void killed(struct policy *p, uint32_t rank, int wait_status, int64_t now)
{
    int signal = WTERMSIG(wait_status);
    if (was_dying(p, rank, signal, now))
        policy_correct(p, rank, signal);
    else if (!policy_blame(p, CAUSE_SIGNAL, rank, signal, now))
        return;
    p->core = WCOREDUMP(wait_status);
}

/* Judges a rank that has exited; called again when others report that they had lost it before. */
static void judge_end(struct policy *p, uint32_t rank, int64_t now)
{
    int wait_status = p->rank[rank].wait_status;
    if (p->rank[rank].aborted)
        return; /* what it does after PMIx_Abort does not matter */
    if (WIFSIGNALED(wait_status)) {
        killed(p, rank, wait_status, now);
    } else if (WEXITSTATUS(wait_status) != 0) {
        left_with(p, rank, WEXITSTATUS(wait_status), now);
    } else {
        exited_zero(p, rank, now);
    }
}

void policy_exited(struct policy *p, uint32_t rank, int wait_status, int64_t now)
{
    if (rank >= p->ranks || p->rank[rank].exited)
        return;
    policy_count(p, &p->rank[rank], -1);
    p->rank[rank].exited = true;
    p->rank[rank].wait_status = wait_status;
    p->exited++;
    judge_end(p, rank, now);
}

void policy_no_exec(struct policy *p, uint32_t rank, int error, int64_t now)
{
    policy_blame(p, CAUSE_NO_EXEC, rank, error, now);
}

bool policy_launcher_failed(struct policy *p, const char *text, size_t length, int64_t now)
{
    if (!policy_blame(p, CAUSE_LAUNCHER, 0, 0, now))
        return false;
    policy_quote(p, text, length);
    return true;
}

void policy_lost(struct policy *p, uint32_t first, uint32_t count)
{
    for (uint32_t r = first; r - first < count && r < p->ranks; r++) {
        if (p->rank[r].exited)
            continue;
        p->launched += !p->rank[r].pid;
        policy_count(p, &p->rank[r], -1);
        p->rank[r].exited = true;
        p->exited++;
    }
}

void policy_user_signal(struct policy *p, int signal)
{
    p->hurried = true;
    if (policy_blame(p, CAUSE_USER, 0, signal, 0))
        p->decide_at = 0; /* the user does not wait for a window */
}

void policy_was_stopped(struct policy *p, int64_t ms)
{
    if (p->late_at != CLOCK_NEVER)
        p->late_at += ms;
}

bool policy_is_missing(const struct policy *p, uint32_t rank)
{
    return !p->rank[rank].connected && !p->rank[rank].exited;
}

static void look_for_late_ranks(struct policy *p, int64_t now)
{
    if (now < p->late_at || p->cause != CAUSE_NONE)
        return;
    p->late_at = CLOCK_NEVER;
    for (uint32_t r = 0; r < p->ranks; r++)
        if (policy_is_missing(p, r)) {
            policy_blame(p, CAUSE_LATE, r, 0, now);
            return;
        }
}

static bool first_leaves_in_order(const struct policy *p)
{
    return p->cause == CAUSE_EXIT && p->rank[p->culprit].finalized;
}

bool policy_wants_marks(struct policy *p)
{
    bool wants = !p->has_asked && !p->decided && first_leaves_in_order(p) && p->running > 0;
    p->has_asked |= wants;
    return wants;
}

/* Whether a rank that others have lost is expected to exit soon. A rank that aborted too has only
 * lost others itself. */
static bool end_is_expected(const struct policy *p)
{
    return policy_weight(p->cause) <= policy_weight(CAUSE_EXIT) && p->awaited > 0;
}

static int64_t end_of_window(const struct policy *p)
{
    int64_t first_end = p->decide_at - POLICY_WINDOW_MS;
    if (end_is_expected(p))
        return first_end + POLICY_UNREACHABLE_MS;
    if (!first_leaves_in_order(p))
        return p->decide_at;
    return first_end + (p->running == 0 ? POLICY_LEAVING_MS : POLICY_FIRST_LEAVES_MS);
}

void policy_close(struct policy *p)
{
    p->closed = true;
}

bool policy_must_end(struct policy *p, int64_t now)
{
    look_for_late_ranks(p, now);
    if (p->decided || p->cause == CAUSE_NONE)
        return false;
    if (now < end_of_window(p) && p->exited < p->ranks && !p->closed)
        return false;
    p->decided = true;
    p->decided_at = now;
    p->remaining = p->ranks - p->exited;
    return true;
}

bool policy_is_corrected(struct policy *p)
{
    bool corrected = p->corrected;
    p->corrected = false;
    return corrected;
}

int64_t policy_deadline(const struct policy *p)
{
    if (p->decided)
        return CLOCK_NEVER;
    return p->cause == CAUSE_NONE ? p->late_at : end_of_window(p);
}

bool policy_all_gone(const struct policy *p)
{
    bool all_launched = p->launched >= p->ranks || p->decided;
    return p->launched > 0 && p->exited >= p->launched && all_launched;
}

int policy_status(const struct policy *p)
{
    switch (p->cause) {
    case CAUSE_NONE:
        return 0;
    case CAUSE_SIGNAL:
    case CAUSE_USER:
        return 128 + p->code;
    case CAUSE_ABORT:
        /* exit(256) must not look like success */
        return p->code && !(p->code & 0xff) ? EXIT_RUNTIME : p->code & 0xff;
    case CAUSE_EXIT:
        return p->code;
    case CAUSE_NO_EXEC:
        return EXIT_USAGE;
    default:
        return EXIT_RUNTIME;
    }
}

struct place {
    char text[80];
};

/* The host of a process, printed after its pid; empty if there is only one host. */
static struct place place_of(const struct policy *p, uint32_t rank)
{
    struct place place = {""};
    if (p->job && p->job->host_count > 1 && rank < p->ranks)
        snprintf(place.text, sizeof(place.text), " on %.70s",
                 p->job->hosts[job_host_of(p->job, rank)].name);
    return place;
}

/* A rank that left in order, or never joined, chose its status. One that joined and then exited
 * without PMIx_Finalize may have been ended by a watchdog of a library or container, so the user is
 * informed. */
static bool exit_sentence(const struct policy *p, bool wordy, char *text, size_t size)
{
    const struct policy_rank *culprit = &p->rank[p->culprit];
    bool broke_away = culprit->connected && !culprit->finalized;
    if (!p->remaining && !broke_away && !wordy)
        return false;
    int n = snprintf(text, size, "rank %u (pid %d%s) exited with status %d", p->culprit,
                     culprit->pid, place_of(p, p->culprit).text, p->code);
    if (n < 0 || (size_t)n >= size)
        return true;
    if (p->remaining)
        snprintf(text + n, size - (size_t)n, "; ending the other %u", p->remaining);
    else if (broke_away)
        snprintf(text + n, size - (size_t)n, " but without PMIx_Finalize");
    return true;
}

static bool abort_sentence(const struct policy *p, bool wordy, char *text, size_t size)
{
    unsigned peer;
    if (!wordy && (!p->text[0] || is_accusation(p->text, strlen(p->text), &peer)))
        return false;
    snprintf(text, size, "rank %u (pid %d%s) aborted the job with status %d%s%s", p->culprit,
             p->rank[p->culprit].pid, place_of(p, p->culprit).text, p->code, p->text[0] ? ": " : "",
             p->text);
    return true;
}

static void late_sentence(const struct policy *p, char *text, size_t size)
{
    double seconds = (double)p->start_ms / 1000;
    uint32_t more = 0;

    for (uint32_t r = 0; r < p->ranks; r++)
        more += r != p->culprit && policy_is_missing(p, r);
    char others[32] = "has";
    if (more)
        snprintf(others, sizeof(others), "and %u other%s have", more, more == 1 ? "" : "s");
    if (p->launched)
        snprintf(text, size,
                 "rank %u (pid %d%s) %s not joined the job %g s after the launcher was started; "
                 "ending the job (GASNET_START_TIMEOUT sets the limit)",
                 p->culprit, p->rank[p->culprit].pid, place_of(p, p->culprit).text, others,
                 seconds);
    else
        snprintf(text, size,
                 "no rank could be started within %g s: the PMIx server is not ready; ending the "
                 "job (GASNET_START_TIMEOUT sets the limit)",
                 seconds);
}

/* The user who typed it knows, and a closed terminal (SIGHUP) shows nothing. */
static bool is_of_terminal(int signal)
{
    return signal == SIGINT || signal == SIGQUIT || signal == SIGHUP;
}

static void signal_sentence(const struct policy *p, char *text, size_t size)
{
    char name[100];
    bool is_oom = p->oom_text[0] && p->oom_rank == p->culprit && p->code == SIGKILL;

    signal_text(p->code, p->core, name, sizeof(name));
    snprintf(text, size, "rank %u (pid %d%s) was killed by signal %s%s%s", p->culprit,
             p->rank[p->culprit].pid, place_of(p, p->culprit).text, name, is_oom ? ": " : "",
             is_oom ? p->oom_text : "");
}

/* run/ has seen that the program is on the launcher's host. */
static void exec_sentence(const struct policy *p, char *text, size_t size)
{
    const char *hint = "";

    if (p->job && p->job->host_count > 1) {
        if (p->code == ENOENT)
            hint = "; it must have the same path on all hosts";
        snprintf(text, size, "host %s: the program %s cannot be executed: %s%s",
                 p->job->hosts[job_host_of(p->job, p->culprit)].name, p->job->program,
                 strerror(p->code), hint);
        return;
    }
    if (p->code == ENOENT)
        hint = ": it is there, but the loader that it names is not (readelf -l shows its name)";
    snprintf(text, size, "the program cannot be executed: %s%s", strerror(p->code), hint);
}

bool policy_sentence(const struct policy *p, bool wordy, char *text, size_t size)
{
    uint32_t r = p->culprit;
    int pid = r < p->ranks ? p->rank[r].pid : 0;
    struct place place = place_of(p, r);

    switch (p->cause) {
    case CAUSE_NONE:
        return false;
    case CAUSE_ABORT:
        return abort_sentence(p, wordy, text, size);
    case CAUSE_EXIT:
        return exit_sentence(p, wordy, text, size);
    case CAUSE_SIGNAL:
        signal_sentence(p, text, size);
        return true;
    case CAUSE_UNFINISHED:
        snprintf(text, size,
                 "rank %u (pid %d%s) exited with status 0 but without PMIx_Finalize while other "
                 "ranks still run; "
                 "ending the job",
                 r, pid, place.text);
        return true;
    case CAUSE_ABSENT:
        snprintf(text, size,
                 "rank %u (pid %d%s) exited with status 0 before it joined the job, while other "
                 "ranks wait for it; "
                 "ending the job",
                 r, pid, place.text);
        return true;
    case CAUSE_LATE:
        late_sentence(p, text, size);
        return true;
    case CAUSE_NO_EXEC:
        exec_sentence(p, text, size);
        return true;
    case CAUSE_LAUNCHER:
        snprintf(text, size, "%s", p->text);
        return true;
    case CAUSE_USER:
        snprintf(text, size, "got signal %d (%s), ending %u ranks", p->code, strsignal(p->code),
                 p->remaining);
        return wordy || !is_of_terminal(p->code);
    }
    return false;
}
