/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Back-off of a waiting thread: it spins, then yields its CPU, then sleeps on the doorbell that
 * neighbours ring (transport/doorbell.h). Which of these and for how long depends on the mode the
 * client asked for and on whether ranks outnumber CPUs. Owns the wait mode. No lock.
 *
 * A network rings no doorbell: a thread that may be waiting for it sleeps for short times that
 * grow. The device could interrupt (completion channels), but one thread cannot sleep on a file and
 * on a doorbell, mixed jobs need both, and arming, interrupt and acknowledgement cost more than a
 * short sleep. Threads that wait for memory written by others sleep in the same way. */
#include "config.h"

#include <limits.h>
#include <sched.h>

#include "base/atomic.h"
#include "base/bits.h"
#include "base/clock.h"
#include "progress/progress.h"
#include "progress/progress_private.h"
#include "topology/topology.h"
#include "transport/doorbell.h"
#include "transport/transport.h"

enum {
    spin_alone = 20000,   /* empty polls, about a millisecond: longer than any healthy round trip */
    spin_crowded = 20,    /* long enough for an answer that is already on its way */
    spin_to_block = 1000, /* about what going to sleep and being woken costs */
    yield_crowded = 10,
    stall_check = 1u << 12, /* empty polls between checks of the clock */
    stall_check_asleep = 64 /* sleeps */
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

/* Set by any thread at any time. */
static tk_counter_t mode = TK_WAIT_BY_LOAD;

/* Without neighbours only threads of this process ring, and they fence. */
static struct tk_doorbell lone = {TK_BELL_FENCED};
static struct tk_doorbell *bell = &lone;

/* PAR: counts events by threads of this process that other threads may wait for. A thread reads the
 * count before it last checks its condition and sleeps, so either the count changes or the bell
 * rings. */
static tk_counter_t local_event_seq;
static TK_PER_THREAD int32_t local_event_seq_seen;
static tk_counter_t some_slept;

void tk_wait_mode(enum tk_wait_mode wanted)
{
    tk_counter_set(&mode, (int32_t)wanted);
}

void tk_progress_bell(struct tk_doorbell *own)
{
    bell = own ? own : &lone;
}

void tk_wake_own_threads(void)
{
    if (tk_counter_read(&some_slept) == 0)
        return;
    tk_counter_add(&local_event_seq, 1);
    tk_doorbell_ring(bell);
}

/* Over all waits: in a busy job each wait is short, and ports still go down and come back. */
static TK_PER_THREAD unsigned sleeps, polls_in_vain;

static bool is_over(void *what)
{
    return tk_counter_read(&local_event_seq) != local_event_seq_seen ||
           tk_has_come(*(const enum tk_wake_source *)what);
}

/* Wake-ups of hundreds of ranks for nothing are a load of their own: the more of them a CPU has,
 * the longer they sleep. */
static uint64_t longest_by_ring(void)
{
    enum { few = 8, most = 5 };
    unsigned crowd = tk_topology.cpus ? tk_machine_ranks() / tk_topology.cpus / few : 0;
    return longest_rung * tk_min(tk_max(crowd, 1), most);
}

static void sleep_once(unsigned turn, enum tk_wake_source wake)
{
    bool will_ring = wake == TK_WAKE_BELL && tk_all_rings() &&
                     tk_counter_read(&tk_deferred_work_lacks_space) == 0;
    uint64_t nsec = longest_by_ring();
    if (!will_ring) {
        nsec = shortest_sleep << tk_min(turn - 1, 5);
        nsec = nsec < longest_sleep ? nsec : longest_sleep;
    }
    if (tk_counter_read(&some_slept) == 0)
        tk_counter_set(&some_slept, 1);
    tk_doorbell_sleep(bell, is_over, &wake, nsec);
    if (++sleeps % stall_check_asleep == 0)
        tk_transports_report_stall();
}

void tk_back_off(unsigned empty, enum tk_wake_source wake)
{
    const struct pace *pace = &paces[tk_counter_read(&mode)][tk_topology.oversubscribed];
    tk_empty_polls = 0;
    if (empty > pace->spins) {
        if (empty - pace->spins <= pace->yields)
            sched_yield();
        else
            sleep_once(empty - pace->spins - pace->yields, wake);
    }
    if (++polls_in_vain % stall_check == 0)
        tk_transports_report_stall();
    if (TK_THREADED)
        local_event_seq_seen = tk_counter_read(&local_event_seq);
}

void tk_progress_ring(void)
{
    tk_doorbell_ring(bell);
}

void tk_wait_asleep(unsigned *turn)
{
    if (TK_THREADED)
        local_event_seq_seen = tk_counter_read(&local_event_seq);
    if (tk_poll())
        *turn = 0;
    else
        sleep_once(++*turn, TK_WAKE_BELL);
}

void tk_poll_asleep(void)
{
    static TK_PER_THREAD unsigned turn;
    tk_wait_asleep(&turn);
}
