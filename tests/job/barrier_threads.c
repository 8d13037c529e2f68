/* SPDX-License-Identifier: BSD-3-Clause */
/* Barriers with several threads (PAR): one thread of each rank starts them, several ahead; others
 * wait for them in turn; one only polls. So each of these may advance a barrier. Before a rank
 * starts a barrier it puts the barrier's number to all others; after the barrier all numbers are
 * there. A mutex and a condition protect the events that threads pass on. */
#include "config.h"

#include "job.h"

#include <pthread.h>

enum { WAITERS = 3, AHEAD = 4, BARRIERS = 400, SLOTS = WAITERS * AHEAD };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    gex_Event_t event[SLOTS]; /* of barrier b at b % SLOTS */
    int started, waited[WAITERS];
    int over;
} shared = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int all_waited(void)
{
    int least = shared.waited[0];

    for (int w = 1; w < WAITERS; w++)
        least = shared.waited[w] < least ? shared.waited[w] : least;
    return least;
}

static void hand_over(int b, gex_Event_t event)
{
    pthread_mutex_lock(&shared.lock);
    shared.event[b % SLOTS] = event;
    shared.started = b + 1;
    pthread_cond_broadcast(&shared.changed);
    pthread_mutex_unlock(&shared.lock);
}

static gex_Event_t take_over(int b)
{
    gex_Event_t event;

    pthread_mutex_lock(&shared.lock);
    while (shared.started <= b)
        pthread_cond_wait(&shared.changed, &shared.lock);
    event = shared.event[b % SLOTS];
    pthread_mutex_unlock(&shared.lock);
    return event;
}

static void say_waited(int waiter, int b)
{
    pthread_mutex_lock(&shared.lock);
    shared.waited[waiter] = b + WAITERS;
    pthread_cond_broadcast(&shared.changed);
    pthread_mutex_unlock(&shared.lock);
}

static uint64_t *cell(gex_Rank_t owner, gex_Rank_t from)
{
    return job_remote(owner, from * sizeof(uint64_t));
}

/* Waiter w has barriers w, w + WAITERS ... */
static void *wait_for_some(void *number)
{
    int waiter = (int)(uintptr_t)number;

    for (int b = waiter; b < BARRIERS; b += WAITERS) {
        gex_Event_Wait(take_over(b));
        for (gex_Rank_t from = 0; from < job.size; from++) {
            uint64_t seen = __atomic_load_n(cell(job.rank, from), __ATOMIC_RELAXED);

            CHECK(seen > (uint64_t)b, "barrier %d, rank %u: %u", b, (unsigned)from, (unsigned)seen);
        }
        say_waited(waiter, b);
    }
    return NULL;
}

static void *poll_only(void *unused)
{
    while (!__atomic_load_n(&shared.over, __ATOMIC_RELAXED))
        gasnet_AMPoll();
    return NULL;
}

static void wait_until_not_far_ahead(int b)
{
    pthread_mutex_lock(&shared.lock);
    while (all_waited() + SLOTS - WAITERS < b)
        pthread_cond_wait(&shared.changed, &shared.lock);
    pthread_mutex_unlock(&shared.lock);
}

static void start_all(void)
{
    for (int b = 0; b < BARRIERS; b++) {
        uint64_t number = (uint64_t)b + 1;

        job_phase("barrier %d", b);
        wait_until_not_far_ahead(b);
        for (gex_Rank_t to = 0; to < job.size; to++)
            gex_RMA_PutBlocking(job.tm, to, cell(to, job.rank), &number, sizeof number, 0);
        hand_over(b, gex_Coll_BarrierNB(job.tm, 0));
    }
}

int main(int argc, char **argv)
{
    pthread_t waiters[WAITERS], poller;

    job_start(&argc, &argv, GASNET_PAGESIZE);
    job_barrier(); /* no put before all ranks have cleared their memory */
    for (int w = 0; w < WAITERS; w++) {
        shared.waited[w] = w;
        CHECK(pthread_create(&waiters[w], NULL, wait_for_some, (void *)(uintptr_t)w) == 0);
    }
    CHECK(pthread_create(&poller, NULL, poll_only, NULL) == 0);
    start_all();
    for (int w = 0; w < WAITERS; w++)
        CHECK(pthread_join(waiters[w], NULL) == 0);
    __atomic_store_n(&shared.over, 1, __ATOMIC_RELAXED);
    CHECK(pthread_join(poller, NULL) == 0);
    job_end();
}
