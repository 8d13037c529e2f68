/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See threads.h. Each thread serves, pauses as its pace requires (thread_pace.h), and sleeps
 * (sleep.c) until a device or a neighbour wakes it. Owns the list of threads; only a thread itself
 * writes its entry. No lock. */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "base/report.h"
#include "op/threads.h"
#include "process/alone.h"
#include "process/thread.h"
#include "progress/progress.h"
#include "progress/progress_private.h"
#include "progress/thread_pace.h"
#include "progress/threads.h"
#include "settings/settings.h"
#include "transport/transport.h"

/* Of sleeps that only the clock ends: ports are checked then. */
static const uint64_t shortest_patience = TK_SECOND / 50, longest_patience = TK_SECOND;

struct progress_thread {
    const char *device;
    unsigned role;
    uint64_t idle; /* ns to keep polling after an event */
    struct tk_thread_pace pace;
    uint64_t patience;
    uint64_t began;
    _Atomic uint64_t awake, wakes, rests; /* ns in which it did not sleep; how often each */
    _Atomic bool runs;
    pthread_t self;
};

static struct progress_thread *threads;
static unsigned count;
static const struct tk_device_events *events;
static tk_counter_t stops;
static _Atomic unsigned kept;    /* roles whose queues are left to the threads */
static _Atomic unsigned claimed; /* those that ever were */
static TK_PER_THREAD bool is_ours;

static bool is_mode(unsigned role, const char *mode)
{
    const char *set = role == TK_DEVICE_RECEIVES ? tk_settings.rcv_thread_poll_mode
                                                 : tk_settings.snd_thread_poll_mode;
    return strcasecmp(set, mode) == 0;
}

/* ---- the thread ---- */

static void block_signals(void)
{
    static const int let_through[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP};
    sigset_t all;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof(let_through) / sizeof(let_through[0]); i++)
        sigdelset(&all, let_through[i]);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
}

static _Noreturn void park(void)
{
    for (;;)
        pause();
}

/* Only if these queues were taken and not returned yet. */
static void give_back(unsigned role)
{
    if (atomic_fetch_and(&kept, ~role) & role)
        events->give_back(role);
}

/* The queues of its role, as GASNET_..._POLL_MODE says. A thread that was started late, or by the
 * client, may arrive after all were told to stop. */
static void claim_queues(const struct progress_thread *t)
{
    if (!events || is_mode(t->role, "serialized"))
        return;
    events->insist(t->role);
    if (!is_mode(t->role, "exclusive") || atomic_fetch_or(&claimed, t->role) & t->role)
        return;
    events->keep(t->role);
    atomic_fetch_or(&kept, t->role);
    if (tk_counter_read(&stops) != 0)
        give_back(t->role);
}

static void enter(struct progress_thread *t)
{
    block_signals();
    is_ours = true;
    tk_thread_exempt();
    t->self = pthread_self();
    pthread_setname_np(t->self, t->role == TK_DEVICE_RECEIVES ? "tk-receive" : "tk-send");
    t->began = tk_now();
    t->patience = shortest_patience;
    tk_thread_pace_wake(&t->pace, t->began);
    claim_queues(t);
    atomic_store_explicit(&t->runs, true, memory_order_release);
}

static bool serve_once(const struct progress_thread *t)
{
    if (t->role == TK_DEVICE_RECEIVES)
        return tk_poll();
    bool any = tk_reap();
    if (any)
        tk_wake_own_threads();
    return any;
}

/* Until nothing arrived for `idle` ns, or it has to pause. */
static void serve(const struct progress_thread *t)
{
    uint64_t most = tk_thread_pace_most(&t->pace), now = tk_now(), last = now, begin = now;
    do {
        bool any = serve_once(t);
        if (!any && t->idle == 0)
            return;
        now = tk_now();
        if (any)
            last = now;
    } while (now - last < t->idle + (t->idle == 0) && now - begin < most &&
             tk_counter_read(&stops) == 0);
}

static void nap(uint64_t nsec)
{
    const struct timespec rest = {.tv_sec = (time_t)(nsec / TK_SECOND),
                                  .tv_nsec = (long)(nsec % TK_SECOND)};
    nanosleep(&rest, NULL);
}

static void count_one(_Atomic uint64_t *counter, uint64_t by)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + by,
                          memory_order_relaxed);
}

/* Counts sleeps that an event ended; a time-out does not count against the rate. */
static void rest_and_sleep(struct progress_thread *t, uint64_t awake)
{
    uint64_t rest = tk_thread_pace_rest(&t->pace, tk_now(), awake);
    bool found = false;
    if (rest > 0 && tk_counter_read(&stops) == 0) {
        nap(rest);
        count_one(&t->rests, 1);
    }
    for (; !found && tk_counter_read(&stops) == 0; t->patience *= 2) {
        if (t->patience > longest_patience)
            t->patience = longest_patience;
        uint64_t begin = tk_now(), slept = tk_sleep_in_thread(t->role, t->patience, &found);
        tk_thread_pace_wake(&t->pace, begin + slept);
        if (!found)
            tk_transports_report_stall();
    }
    t->patience = shortest_patience;
    count_one(&t->wakes, 1);
}

static void *run(void *which)
{
    struct progress_thread *t = which;
    enter(t);
    while (tk_counter_read(&stops) == 0) {
        serve(t);
        uint64_t awake = tk_now() - t->pace.woke;
        count_one(&t->awake, awake);
        rest_and_sleep(t, awake);
    }
    park();
}

/* ---- all of them ---- */

static void add(unsigned role, const char *device)
{
    bool receives = role == TK_DEVICE_RECEIVES;
    struct progress_thread *t = &threads[count++];
    tk_alone_share();
    *t = (struct progress_thread){
        .device = device,
        .role = role,
        .idle = (uint64_t)(receives ? tk_settings.rcv_thread_idle : tk_settings.snd_thread_idle)};
    tk_thread_pace_open(
        &t->pace, (uint64_t)(receives ? tk_settings.rcv_thread_rate : tk_settings.snd_thread_rate),
        receives ? (uint64_t)tk_settings.rcv_thread_load : 0);
}

static void find_events(void)
{
    for (unsigned i = 0; i < tk_transports.count; i++)
        if (tk_transports.at[i]->events && tk_transports.at[i]->events->is_open())
            events = tk_transports.at[i]->events;
}

static void warn_of(bool is_set, const char *name)
{
    if (is_set)
        tk_log_warn("%s=1 has no effect here: only libraries for GASNET_PAR have such threads "
                    "(they define %.17s)",
                    name, name);
}

void tk_progress_threads_open(void)
{
    if (!TK_THREADED) {
        warn_of(tk_settings.rcv_thread, "GASNET_RCV_THREAD");
        warn_of(tk_settings.snd_thread, "GASNET_SND_THREAD");
        return;
    }
    find_events();
    unsigned devices = events ? events->devices() : 0;
    threads = calloc(2 * devices + 1, sizeof(*threads));
    if (!threads)
        tk_panic("out of memory for %u threads", 2 * devices + 1);
    for (unsigned i = 0; i < devices && tk_settings.rcv_thread; i++)
        add(TK_DEVICE_RECEIVES, events->name(i));
    for (unsigned i = 0; i < devices && tk_settings.snd_thread; i++)
        add(TK_DEVICE_SENDS, events->name(i));
    if (devices == 0 && tk_transports.count > 0 && tk_settings.rcv_thread)
        add(TK_DEVICE_RECEIVES, "shm");
}

unsigned tk_progress_threads_count(void)
{
    return count;
}

struct tk_progress_thread_info tk_progress_thread(unsigned number)
{
    struct progress_thread *t = &threads[number];
    return (struct tk_progress_thread_info){
        .device = t->device, .roles = t->role, .run = run, .argument = t};
}

void tk_progress_threads_start(void)
{
    for (unsigned i = 0; i < count; i++)
        if (tk_thread_start_with(run, &threads[i], tk_settings.thread_stack_min,
                                 tk_settings.thread_stack_pad) != TK_OK)
            tk_panic("%s can't be had without its thread", threads[i].role == TK_DEVICE_RECEIVES
                                                               ? "GASNET_RCV_THREAD=1"
                                                               : "GASNET_SND_THREAD=1");
}

bool tk_progress_threads_receive(void)
{
    return count > 0 && tk_settings.rcv_thread;
}

/* The calling thread returns the queues, because a thread of the library may be in a handler for
 * long. */
void tk_progress_threads_stop(void)
{
    if (count == 0)
        return;
    tk_counter_set(&stops, 1);
    for (unsigned role = TK_DEVICE_RECEIVES; role <= TK_DEVICE_SENDS; role++)
        give_back(role);
    tk_progress_ring();
}

bool tk_is_progress_thread(void)
{
    return is_ours;
}

static double cpu_seconds(const struct progress_thread *t)
{
    clockid_t clock;
    struct timespec used = {.tv_sec = 0};
    if (pthread_getcpuclockid(t->self, &clock) == 0)
        clock_gettime(clock, &used);
    return (double)used.tv_sec + (double)used.tv_nsec / 1e9;
}

void tk_progress_threads_report(void)
{
    for (unsigned i = 0; i < count; i++) {
        struct progress_thread *t = &threads[i];
        const char *what = t->role == TK_DEVICE_RECEIVES ? "receive" : "send";
        if (!atomic_load_explicit(&t->runs, memory_order_acquire)) {
            tk_log_info("%s thread of %s: never started", what, t->device);
            continue;
        }
        double lived = (double)(tk_now() - t->began) / 1e9, cpu = cpu_seconds(t);
        tk_log_info("%s thread of %s: %llu wake-ups in %.3f s (%.1f a second), %llu rests, awake "
                    "%.2f %% of the time, CPU %.3f s (%.2f %%)",
                    what, t->device, (unsigned long long)t->wakes, lived, (double)t->wakes / lived,
                    (unsigned long long)t->rests, (double)t->awake / lived / 1e7, cpu,
                    cpu / lived * 100);
    }
}
