/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The state machine drawn in exit.h. The first thread that leaves RUNNING does the work; others
 * that call stop for good. A signal may have interrupted a thread that holds any lock, malloc's
 * too, so signal handlers only wake a thread of our own that ends the job; the interrupted thread
 * goes on meanwhile. */
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

static atomic_int leaving;
static pthread_t leaver;
static bool network_ready;
static volatile sig_atomic_t final_code, was_asked_for;
static uint64_t notice_at;
static uint32_t next_to_tell;
static pid_t my_pid;
static sem_t signal_came;
static atomic_int asked_to_leave; /* 1 + code of a peer's exit notice */

static double timeout_seconds(void)
{
    double linear =
        tk_settings.exit_timeout_min + tk_settings.exit_timeout_factor * (double)tk_peers.size;
    if (tk_settings.exit_timeout > 0)
        return tk_settings.exit_timeout;
    return linear < tk_settings.exit_timeout_max ? linear : tk_settings.exit_timeout_max;
}

static void watchdog(int signal)
{
    (void)signal;
    _exit(final_code ? final_code : 1);
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

/* Returns when all ranks have come to the end of the job. */
static void leave(int code)
{
    uint64_t now = tk_now();
    final_code = code;
    notice_at = now + grace;
    __atomic_store_n(&tk_verbs_lost_peer, NULL, __ATOMIC_RELEASE);
    start_watchdog();
    gasnett_flush_streams();
    if (tk_bootstrap_fence(serve, now + (uint64_t)(timeout_seconds() * 1e9)) != TK_OK)
        abort_job(code, "not all processes came to the end of the job");
    tk_bootstrap_close();
}

/* Whoever is second: the same thread again (a handler of the client's calls exit()) must not wait
 * for itself. */
static _Noreturn void too_late(void)
{
    if (pthread_equal(leaver, pthread_self()))
        _exit(final_code);
    for (;;)
        pause();
}

/* The interrupted thread may hold any lock: the helper ends the job, this thread goes no further.
 */
static _Noreturn void exit_in_signal(int code)
{
    tk_exit_by_signal(code & 0xff);
    for (;;)
        pause();
}

void tk_exit(int code)
{
    int running = 0;
    if (tk_in_signal)
        exit_in_signal(code);
    if (!atomic_compare_exchange_strong(&leaving, &running, 1))
        too_late();
    leaver = pthread_self();
    leave(code & 0xff);
    _exit(code & 0xff);
}

void tk_exit_failed(void)
{
    int running = 0;
    if (!atomic_compare_exchange_strong(&leaving, &running, 1))
        too_late();
    leaver = pthread_self();
    final_code = 1;
    start_watchdog();
    gasnett_flush_streams();
    abort_job(1, "");
}

static void *end_for_signal(void *unused)
{
    (void)unused;
    while (sem_wait(&signal_came) != 0)
        continue;
    take_alarm(); /* what the signal's handler unblocked is blocked again when it returns */
    leaver = pthread_self();
    gasnett_flush_streams();
    if (was_asked_for)
        _exit(final_code);
    abort_job(final_code, "ended by a signal");
}

static void start_helper(void)
{
    sem_init(&signal_came, 0, 0);
    tk_thread_start(end_for_signal, tk_settings.thread_stack_min, tk_settings.thread_stack_pad);
}

void tk_exit_was_asked_for(void)
{
    was_asked_for = 1;
}

void tk_exit_by_signal(int code)
{
    int running = 0;
    struct timespec while_ending = {.tv_nsec = 300000000};
    if (atomic_compare_exchange_strong(&leaving, &running, 1)) {
        final_code = code;
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
    if (!atomic_load(&leaving))
        tk_bootstrap_close();
}

/* The job's end when the client leaves by exit() or from main. glibc's on_exit() knows the code,
 * atexit() does not. */
static void process_ends(int code, void *unused)
{
    int running = 0;
    (void)unused;
    if (getpid() != my_pid) /* a forked child's exit() is its own affair */
        return;
    if (!tk_settings.catch_exit) {
        leave_alone();
        return;
    }
    if (!atomic_compare_exchange_strong(&leaving, &running, 1))
        too_late();
    leaver = pthread_self();
    leave(code & 0xff);
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
    tk_verbs_lost_peer = lost_peer;
    my_pid = getpid();
    start_helper();
    tk_signals_open();
    on_exit(process_ends, NULL);
}
