/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state machine drawn in exit.h. The first thread that leaves RUNNING does the work; others
 * that call stop for good. A signal may have interrupted a thread that holds any lock, malloc's
 * too, so signal handlers, the client's as well, only wake a thread of our own that ends the job.
 */
#include "config.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/report.h"
#include "base/thread.h"
#include "bootstrap/bootstrap.h"
#include "exit/exit.h"
#include "exit/exit_private.h"
#include "message/message.h"
#include "progress/progress.h"
#include "settings/settings.h"
#include "tools/public.h"
#include "transport/verbs/verbs.h"

/* How long all may take to come before those that did not are told: a collective exit is over long
 * before. */
static const uint64_t grace = TK_SECOND / 10;

/* What PMIx and flushing may take on top of the deadline before the watchdog strikes, in whole
 * seconds. */
enum { watchdog_margin = 3 };

/* The same for streams that an interrupted thread may have kept for itself, when nothing else is
 * left to do. */
enum { last_flush = 1 };

static atomic_int leaving;
static pthread_t leaver;
static bool network_ready;
static volatile sig_atomic_t final_code, was_asked_for, is_told;
static uint64_t notice_at, deadline;
static uint32_t next_to_tell;
static bool fence_is_pending;
static pid_t my_pid;
static sem_t signal_came;
static bool helper_runs, is_handed_over;
static atomic_int asked_to_leave; /* 1 + code of a peer's exit notice */

static double timeout_seconds(void)
{
    double linear =
        tk_settings.exit_timeout_min + tk_settings.exit_timeout_factor * (double)tk_peers.size;
    if (tk_settings.exit_timeout > 0)
        return tk_settings.exit_timeout;
    return linear < tk_settings.exit_timeout_max ? linear : tk_settings.exit_timeout_max;
}

/* Once the launcher knows the code, 0 is no lie any more. */
static void watchdog(int signal)
{
    (void)signal;
    _exit(final_code || is_told ? final_code : 1);
}

/* Some thread must take the alarm, and the client's may all block it. */
static void take_alarm(void)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void start_watchdog(void)
{
    struct sigaction action = {.sa_handler = watchdog};
    sigaction(SIGALRM, &action, NULL);
    take_alarm();
    alarm((unsigned)timeout_seconds() + watchdog_margin);
}

/* One exit notice to each peer, as far as there is room: the rest with the next poll. */
static void tell_peers(void)
{
    while (network_ready && next_to_tell < tk_peers.size) {
        int32_t code = final_code;
        struct tk_peer *peer = tk_peer(next_to_tell);
        if (peer->rank != tk_peers.me &&
            tk_internal_send(peer, TK_CONTROL, TK_HANDLER_EXIT, 1, &code) == TK_BUSY)
            return;
        next_to_tell++;
    }
}

static void serve(void)
{
    if (!network_ready)
        return;
    tk_poll();
    if (tk_now() > notice_at)
        tell_peers();
}

/* After asking the launcher to end the job, give it the time to do so: a rank that is killed is no
 * new failure to it, one that exits may be. When it was the launcher's own SIGTERM that brought us
 * here, going soon is what it waits for. */
static _Noreturn void abort_job(int code, const char *why)
{
    tk_bootstrap_abort(code, why);
    if (!tk_bootstrap.alone)
        usleep(200000);
    _exit(code);
}

/* A client's signal handler that calls exit() would find this thread in the middle of it. What ends
 * or explains a process that is stuck still gets through. */
static void hold_signals(sigset_t *before)
{
    static const int let_through[] = {SIGALRM, SIGTERM, SIGSEGV, SIGBUS, SIGFPE,
                                      SIGILL,  SIGABRT, SIGTRAP, SIGCONT};
    sigset_t held;
    sigfillset(&held);
    for (size_t i = 0; i < sizeof(let_through) / sizeof(let_through[0]); i++)
        sigdelset(&held, let_through[i]);
    pthread_sigmask(SIG_BLOCK, &held, before);
}

static void begin(void)
{
    uint64_t now = tk_now();
    tk_quit_is_done = 1;
    notice_at = now + grace;
    deadline = now + (uint64_t)(timeout_seconds() * 1e9);
    __atomic_store_n(&tk_lost_peer, NULL, __ATOMIC_RELEASE);
    start_watchdog();
}

static void part(enum tk_status fence)
{
    fence_is_pending = false;
    if (fence != TK_OK)
        abort_job(final_code, "not all processes came to the end of the job");
    tk_bootstrap_close();
}

/* Returns when all ranks have come to the end of the job. */
static void leave(void)
{
    begin();
    gasnett_flush_streams();
    fence_is_pending = true;
    part(tk_bootstrap_fence(serve, deadline));
}

/* No handler of the client's runs in here: each could call gasnet_exit() again, one on top of the
 * other. */
static void serve_quietly(void)
{
    if (!network_ready)
        return;
    tk_reap();
    if (tk_now() > notice_at)
        tell_peers();
}

/* Whoever is second. The same thread again (a message that was served while leaving, a function of
 * atexit()) must not wait for itself: it goes on with what it is in the middle of, unless that was
 * interrupted just anywhere. */
static _Noreturn void too_late(bool is_interrupted)
{
    if (pthread_equal(leaver, pthread_self())) {
        if (fence_is_pending && !is_interrupted)
            part(tk_bootstrap_fence_rest(serve_quietly, deadline));
        _exit(final_code);
    }
    for (;;)
        pause();
}

static bool claim(int code)
{
    int running = 0;
    if (!atomic_compare_exchange_strong(&leaving, &running, 1))
        return false;
    final_code = code;
    return true;
}

/* By the thread that will do the work. A signal handler that ran between these lines and left too
 * would find a leaver that is not known yet, and stop this thread for good, before any watchdog. */
static bool claim_to_leave(int code)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    bool is_first = claim(code);
    if (is_first)
        leaver = pthread_self();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return is_first;
}

/* A stream that this thread was interrupted in lets it in again, but nobody else. */
static void flush_own(FILE *stream)
{
    if (ftrylockfile(stream) != 0)
        return;
    fflush_unlocked(stream);
    funlockfile(stream);
}

/* What the interrupted thread holds, it holds for ever, so the helper does what is to be done, and
 * without the network: others hear of the end from the launcher. */
static _Noreturn void exit_interrupted(int code)
{
    if (!claim_to_leave(code))
        too_late(true);
    begin();
    flush_own(stdout);
    flush_own(stderr);
    if (!helper_runs)
        _exit(code);
    is_handed_over = true;
    sem_post(&signal_came);
    for (;;)
        pause();
}

/* The SIGQUIT handler of the client's that a terminating signal of ours came with. */
static _Noreturn void exit_in_signal(int code)
{
    tk_exit_by_signal(code & 0xff);
    for (;;)
        pause();
}

void tk_exit(int code)
{
    sigset_t before;
    if (tk_in_signal)
        exit_in_signal(code);
    if (tk_is_interrupted())
        exit_interrupted(code & 0xff);
    if (!claim_to_leave(code & 0xff))
        too_late(false);
    hold_signals(&before);
    leave();
    _exit(code & 0xff);
}

void tk_exit_failed(void)
{
    if (!claim_to_leave(1))
        too_late(false);
    start_watchdog();
    if (network_ready)
        tk_signal_quit();
    gasnett_flush_streams();
    abort_job(1, "");
}

static _Noreturn void flush_at_last(void)
{
    is_told = 1;
    alarm(last_flush);
    gasnett_flush_streams();
    _exit(final_code);
}

/* SIGTERM has come: the verdict over the job stands. */
static void look_for_verdict(void)
{
    if (was_asked_for)
        flush_at_last();
}

/* All ranks may have left by their signal handlers, at the same alarm for example: then it is an
 * orderly end. */
static _Noreturn void leave_for_another(void)
{
    if (tk_bootstrap_fence(look_for_verdict, notice_at) == TK_OK)
        tk_bootstrap_close();
    else
        tk_bootstrap_abort(final_code, "");
    flush_at_last();
}

static void *end_for_signal(void *unused)
{
    (void)unused;
    while (sem_wait(&signal_came) != 0)
        continue;
    take_alarm(); /* what the signal's handler unblocked is blocked again when it returns */
    leaver = pthread_self();
    if (is_handed_over)
        leave_for_another();
    gasnett_flush_streams();
    if (was_asked_for)
        _exit(final_code);
    abort_job(final_code, "ended by a signal");
}

static void start_helper(void)
{
    sem_init(&signal_came, 0, 0);
    helper_runs = tk_thread_start(end_for_signal, tk_settings.thread_stack_min,
                                  tk_settings.thread_stack_pad) == TK_OK;
}

void tk_exit_was_asked_for(void)
{
    was_asked_for = 1;
}

void tk_exit_by_signal(int code)
{
    struct timespec while_ending = {.tv_nsec = 300000000};
    if (claim(code)) {
        start_watchdog();
    } else if (!was_asked_for) {
        return;
    }
    sem_post(&signal_came);
    /* The client should not go on as if nothing had happened; but it must after a while, if it
     * holds a lock that our helper wants. */
    nanosleep(&while_ending, NULL);
}

static void lost_peer(uint32_t peer)
{
    (void)peer;
    tk_exit_failed();
}

/* In a handler: nothing may be done here but remember it. */
static void exit_notice(struct tk_peer *from, const int32_t *args)
{
    (void)from;
    atomic_store(&asked_to_leave, 1 + (args[0] & 0xff));
    tk_counter_add(&tk_work_wanted, 1); /* for good */
}

/* By one thread: a client's SIGQUIT handler runs once. */
static void answer_notice(void)
{
    static atomic_flag answered = ATOMIC_FLAG_INIT;
    int asked = atomic_load_explicit(&asked_to_leave, memory_order_relaxed);
    if (!asked || atomic_load(&leaving) || atomic_flag_test_and_set(&answered))
        return;
    tk_signal_quit();
    next_to_tell = tk_peers.size; /* whoever told us tells the others too */
    tk_exit(asked - 1);
}

/* GASNET_CATCH_EXIT=0: the others go on. The launcher must hear that this was meant, or it takes a
 * rank that is gone for one that failed. */
static void leave_alone(void)
{
    if (!atomic_load(&leaving) && !tk_is_interrupted())
        tk_bootstrap_close();
}

/* The job's end when the client leaves by exit() or from main. glibc's on_exit() knows the code,
 * atexit() does not. */
static void process_ends(int code, void *unused)
{
    sigset_t before;
    (void)unused;
    if (getpid() != my_pid) /* a forked child's exit() is its own affair */
        return;
    if (!tk_settings.catch_exit) {
        leave_alone();
        return;
    }
    if (tk_in_signal || tk_is_interrupted())
        tk_exit(code);
    if (!claim_to_leave(code & 0xff))
        too_late(false);
    hold_signals(&before);
    leave();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    /* What was registered before start-up, destructors of C++ among it, has its turn now. */
}

void tk_exit_network_ready(void)
{
    network_ready = tk_peers.size > 1;
}

void tk_exit_open(void)
{
    tk_internal_register(TK_HANDLER_EXIT, exit_notice);
    tk_progress_add(answer_notice);
    tk_lost_peer = lost_peer;
    my_pid = getpid();
    start_helper();
    tk_signals_open();
    on_exit(process_ends, NULL);
}
