/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Back-off of a waiting thread: it spins, then yields its CPU, then sleeps (sleep.c). Which of
 * these and for how long depends on the mode the client asked for and on whether ranks, or their
 * threads, outnumber CPUs. Owns the wait mode and the number of threads that wait. No lock.
 *
 * If everything that may end a wait wakes the sleeper, sleeps are long. Space in a queue, memory
 * that others write, and devices that report no events do not wake it: then a thread sleeps for
 * short times that grow. */
#include "config.h"

#include <limits.h>
#include <pthread.h>
#include <sched.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "common/clock.h"
#include "base/thread_own.h"
#include "progress/progress.h"
#include "progress/progress_private.h"
#include "topology/topology.h"
#include "transport/transport.h"

enum {
    spin_alone = 20000,   /* empty polls, about a millisecond: longer than any healthy round trip */
    spin_crowded = 20,    /* long enough for an answer that is already on its way */
    spin_to_block = 1000, /* about the cost of going to sleep and waking up */
    spin_for_space = 200, /* longer than an eighth of a ring takes an idle receiver */
    /* Fewer wake ranks that would have seen the message at their next turn; each more is a turn
     * of this rank among all others, whose caches are cold by then: with 10 a ring of 256 ranks on
     * 2 CPUs took 5 % more CPU time. */
    yield_crowded = 4,
    given_in_crowd = 10,     /* yields of one of too many threads that gave its CPU away */
    stall_check = 1u << 12,  /* empty polls between checks of the clock */
    stall_check_asleep = 64, /* sleeps */
    note_spinning = 1u << 11 /* empty polls: about 0.1 ms */
};

#define FOR_EVER UINT_MAX

/* The shortest is the slack of a kernel timer; the longest bounds the delay of a network message
 * that arrives while nothing has polled for a while. If all transports ring, waking up serves only
 * signals and the end of the job. */
static const uint64_t shortest_sleep = TK_SECOND / 20000, longest_sleep = TK_SECOND / 1000,
                      longest_rung = TK_SECOND / 50;

/* Number of empty polls that spin, then of those that yield the CPU; after them it sleeps. */
struct pace {
    unsigned spins, yields;
};

static const struct pace paces[][2] = {
    /* with a CPU for each rank        with more ranks than CPUs */
    [TK_WAIT_BY_LOAD] = {{spin_alone, FOR_EVER}, {spin_crowded, yield_crowded}},
    [TK_WAIT_SPIN] = {{FOR_EVER, 0}, {spin_crowded, FOR_EVER}},
    [TK_WAIT_BLOCK] = {{0, 0}, {0, 0}},
    [TK_WAIT_SPINBLOCK] = {{spin_to_block, 0}, {spin_crowded, yield_crowded}}};

/* With a CPU for each rank, but not for each thread: see yield_or_sleep(). */
static const struct pace crowded_by_threads = {spin_crowded, FOR_EVER};

/* A yield that takes longer gave the CPU to another thread. On a free CPU it takes less than half a
 * microsecond. */
static const uint64_t yield_given = TK_SECOND / 500000;

/* Set by any thread at any time. */
static tk_counter_t mode = TK_WAIT_BY_LOAD;

void tk_wait_mode(enum tk_wait_mode wanted)
{
    if (wanted == TK_WAIT_BLOCK || wanted == TK_WAIT_SPINBLOCK)
        tk_sleep_expect();
    tk_counter_set(&mode, (int32_t)wanted);
}

/* Counted over all waits: in a busy job each wait is short, but port events must be noticed. */
struct waits {
    unsigned sleeps, empty_polls;
    unsigned kept_awake; /* times in a row */
    unsigned asleep;     /* turns of tk_poll_asleep() */
    int32_t events_seen;
    bool is_counted; /* among waiting_threads */
    unsigned given;  /* yields of this wait that gave the CPU to another thread, and sleeps */
};

static struct waits *this_thread(void)
{
    return tk_thread_own(TK_OWN_BACKOFF, sizeof(struct waits));
}

/* Useless wake-ups of hundreds of ranks are a load of their own: the more ranks a CPU has, the
 * longer they sleep. */
static uint64_t longest_by_ring(void)
{
    enum { most = 5 };
    return longest_rung * tk_min(tk_machine_crowd(), most);
}

/* The same reason kept us awake twice, although the poll in between found nothing: another thread
 * was preempted, perhaps by us, before it could take it. If it happens only once, it arrived after
 * that poll, and we take it. */
static void yield_if_kept_awake(unsigned turn, enum tk_slept slept)
{
    unsigned *times = &this_thread()->kept_awake;
    *times = slept != TK_SLEPT_NOT ? 0 : turn > 1 ? *times + 1 : 1;
    if (*times > 1)
        sched_yield();
}

static void sleep_once(unsigned turn, enum tk_wake_source wake)
{
    bool all_wake = wake == TK_WAKE_BELL && tk_counter_read(&tk_deferred_work_lacks_space) == 0 &&
                    (tk_all_rings() || (tk_all_report() && tk_can_sleep_by_events()));
    uint64_t by_clock = shortest_sleep << tk_min(turn - 1, 5);
    by_clock = by_clock < longest_sleep ? by_clock : longest_sleep;
    struct waits *waits = this_thread();
    enum tk_slept slept =
        tk_sleep_until(wake, waits->events_seen, all_wake ? longest_by_ring() : by_clock, by_clock);
    yield_if_kept_awake(turn, slept);
    waits->sleeps += slept != TK_SLEPT_OUT || !all_wake ? 1 : stall_check_asleep / 4;
    if (waits->sleeps >= stall_check_asleep) {
        waits->sleeps = 0;
        tk_transports_report_stall();
    }
}

TK_PER_THREAD bool tk_wait_is_noted;

/* In each turn from the first yield or sleep on, but rarely while spinning, because it reads the
 * clock. / */
static void note(const struct tk_wait_why *why, unsigned empty, unsigned spins)
{
    if (empty <= spins && empty % note_spinning != 0)
        return;
    tk_wait_note(why, &tk_in_handler, !tk_wait_is_noted);
    tk_wait_is_noted = true;
}

void tk_wait_forget(void)
{
    tk_wait_is_noted = false;
    tk_wait_note_end();
}

/* Threads of the client that have waited at least once, until they end. */
static tk_counter_t waiting_threads;
static pthread_key_t thread_end;
static pthread_once_t thread_end_once = PTHREAD_ONCE_INIT;

static void leave(void *unused)
{
    (void)unused;
    tk_counter_add(&waiting_threads, -1);
}

static void make_key(void)
{
    pthread_key_create(&thread_end, leave);
}

static void __attribute__((noinline)) count_thread(struct waits *waits)
{
    waits->is_counted = true;
    pthread_once(&thread_end_once, make_key);
    pthread_setspecific(thread_end, &waiting_threads);
    tk_counter_add(&waiting_threads, 1);
}

/* Other ranks of the machine are assumed to have as many threads as this one. A thread that spins
 * for a millisecond keeps others from its CPU, of which one would send what it waits for: 8 threads
 * of each of two ranks on 2 CPUs then sent some hundred messages a second. */
static bool are_threads_crowded(void)
{
    return TK_THREADED &&
           (uint32_t)tk_counter_read(&waiting_threads) * tk_machine_ranks() > tk_topology.cpus;
}

static const struct pace *pace_now(void)
{
    int wanted = tk_counter_read(&mode);
    bool may_spin = wanted == TK_WAIT_BY_LOAD || wanted == TK_WAIT_SPIN;
    if (!may_spin || tk_topology.oversubscribed || !are_threads_crowded())
        return &paces[wanted][tk_topology.oversubscribed];
    return wanted == TK_WAIT_SPIN ? &paces[TK_WAIT_SPIN][true] : &crowded_by_threads;
}

/* Some threads may not have waited yet, or only compute: a thread that spins for space in a ring
 * keeps the receiver from its CPU. */
static unsigned spins_of(const struct pace *pace, enum tk_wake_source wake)
{
    const bool yields = TK_THREADED && wake == TK_WAKE_SPACE && pace->yields == FOR_EVER;
    return yields ? (unsigned)tk_min(pace->spins, spin_for_space) : pace->spins;
}

/* Yields as long as the CPU is free, so that a thread that does not compete keeps its latency. On a
 * CPU that others use it sleeps like a rank that has to share: a thread that yields again and again
 * waits for its turn longer than one that wakes up, and takes turns that others need. */
static void yield_or_sleep(struct waits *waits, bool is_first, enum tk_wake_source wake)
{
    if (is_first)
        waits->given = 0;
    if (waits->given < given_in_crowd) {
        uint64_t begin = tk_now();
        sched_yield();
        waits->given += tk_now() - begin > yield_given;
        return;
    }
    tk_sleep_expect();
    waits->given++;
    sleep_once(waits->given - given_in_crowd, wake);
}

void tk_back_off(unsigned empty, enum tk_wake_source wake, const struct tk_wait_why *why)
{
    struct waits *waits = this_thread();
    if (TK_THREADED && !waits->is_counted)
        count_thread(waits);
    const struct pace *pace = pace_now();
    const unsigned spins = spins_of(pace, wake);
    tk_empty_polls = 0;
    note(why, empty, spins);
    if (empty > spins) {
        if (pace == &crowded_by_threads)
            yield_or_sleep(waits, empty == spins + 1, wake);
        else if (empty - spins <= pace->yields)
            sched_yield();
        else
            sleep_once(empty - spins - pace->yields, wake);
    }
    if (++waits->empty_polls % stall_check == 0)
        tk_transports_report_stall();
    if (TK_THREADED)
        waits->events_seen = tk_sleep_events_seen();
}

static void poll_or_sleep(unsigned *turn)
{
    if (TK_THREADED)
        this_thread()->events_seen = tk_sleep_events_seen();
    if (tk_poll()) {
        *turn = 0;
        return;
    }
    note(&(struct tk_wait_why){.kind = TK_WAITS_LAUNCHER, .peer = tk_wait_nobody}, 1, 0);
    sleep_once(++*turn, TK_WAKE_BELL);
}

/* Each job starts and ends with some of these waits, and polls in between must not pay for them. */
void tk_wait_asleep(unsigned *turn)
{
    if (*turn == 0)
        tk_wait_over();
    tk_counter_add(&tk_sleeps_expected, 1);
    poll_or_sleep(turn);
    tk_counter_add(&tk_sleeps_expected, -1);
}

void tk_poll_asleep(void)
{
    tk_wait_asleep(&this_thread()->asleep);
}
