/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads that wait for space in a neighbour's ring get it before a thread that happens to run when
 * space becomes free. Rank 1 takes half of a full ring and no more, while one thread of rank 0
 * sends at full speed without waiting, and the others, each with a message to send, sleep. All of
 * them must send their message. Nothing depends on times. */
#include "config.h"

#include "job.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    waiting = 8,
    asleep = 4, /* after so many sleeps a thread has tried for space, and is queued */
    half = 512, /* half of the ring's messages: the space kept for the threads */
    more = 128, /* a ring gives space back by eighths, wherever they end */
    tries_behind = 100000
};

/* In the segment of rank 1. */
static struct shared {
    _Atomic int64_t allowed, taken;
} * receiver;

static struct worker {
    pthread_t id;
    atomic_int tid;
    long switches; /* of the CPU, before it waits */
    atomic_bool is_done;
} workers[waiting];

static gex_AM_Index_t note;

static void on_note(gex_Token_t token)
{
    (void)token;
    atomic_fetch_add(&receiver->taken, 1);
}

/* How often a thread gave its CPU away. */
static long switches_of(int tid)
{
    char path[64], line[128];
    long switches = -1;
    snprintf(path, sizeof(path), "/proc/self/task/%d/status", tid);
    FILE *file = fopen(path, "r");
    CHECK(file, "%s", path);
    while (switches < 0 && fgets(line, sizeof(line), file))
        sscanf(line, "voluntary_ctxt_switches: %ld", &switches);
    fclose(file);
    CHECK(switches >= 0, "%s", path);
    return switches;
}

static void *wait_with_one(void *argument)
{
    struct worker *w = argument;
    int tid = (int)syscall(SYS_gettid);
    w->switches = switches_of(tid);
    atomic_store(&w->tid, tid);
    gex_AM_RequestShort0(job.tm, 1, note, 0);
    atomic_store(&w->is_done, true);
    return NULL;
}

static int send_at_once(void)
{
    return gex_AM_RequestShort0(job.tm, 1, note, GEX_FLAG_IMMEDIATE) == 0;
}

static int count_done(void)
{
    int done = 0;
    for (int i = 0; i < waiting; i++)
        done += atomic_load(&workers[i].is_done);
    return done;
}

static void start_workers(void)
{
    for (int i = 0; i < waiting; i++)
        CHECK(pthread_create(&workers[i].id, NULL, wait_with_one, &workers[i]) == 0);
    for (int i = 0; i < waiting; i++)
        while (!atomic_load(&workers[i].tid) ||
               switches_of(workers[i].tid) < workers[i].switches + asleep)
            usleep(1000);
    CHECK(count_done() == 0, "%d threads found room in a full ring", count_done());
}

static void send_all(void)
{
    int64_t sent = 0, beside = 0;
    job_phase("filling the ring");
    while (send_at_once())
        sent++;
    job_phase("waiting for threads that wait, with %ld messages in the ring", (long)sent);
    start_workers();
    job_phase("sending beside threads that wait");
    atomic_store(&receiver->allowed, half + more);
    for (int i = 0; i < tries_behind; i++)
        beside += send_at_once();
    while (atomic_load(&receiver->taken) < half + more)
        beside += send_at_once();
    for (int i = 0; i < tries_behind; i++)
        beside += send_at_once();
    job_phase("waiting for threads that waited, beside which %ld messages were sent", (long)beside);
    double end = job_seconds() + 60; /* soon, or never */
    while (count_done() < waiting && job_seconds() < end)
        usleep(1000);
    CHECK(count_done() == waiting, "%d of %d threads that waited found room, %ld messages passed",
          count_done(), (int)waiting, (long)beside);
    for (int i = 0; i < waiting; i++)
        CHECK(pthread_join(workers[i].id, NULL) == 0);
    job_phase("sending when nobody waits");
    atomic_store(&receiver->allowed, INT64_MAX);
    while (!send_at_once())
        sched_yield();
    while (atomic_load(&receiver->taken) < sent + beside + waiting + 1)
        sched_yield();
    atomic_store(&receiver->taken, -1);
}

static void receive_all(void)
{
    int64_t taken;
    while ((taken = atomic_load(&receiver->taken)) >= 0)
        if (taken < atomic_load(&receiver->allowed))
            gasnet_AMPoll();
        else
            sched_yield(); /* a thread that wakes up would take the CPU of the one that sends */
}

int main(int argc, char **argv)
{
    void *at = NULL;
    job_start(&argc, &argv, 65536);
    gex_AM_Entry_t entry = {
        0, (gex_AM_Fn_t)on_note, GEX_FLAG_AM_SHORT | GEX_FLAG_AM_REQUEST, 0, NULL, NULL};
    CHECK(gex_EP_RegisterHandlers(job.ep, &entry, 1) == GASNET_OK);
    note = entry.gex_index;
    CHECK(job.size == 2 && job_is_neighbour(1 - job.rank));
    CHECK(gex_Segment_QueryBound(job.tm, 1, NULL, &at, NULL) == 0 && at);
    receiver = at;
    job_barrier();
    if (job.rank == 0) {
        CHECK(gasnet_set_waitmode(GASNET_WAIT_BLOCK) == GASNET_OK);
        send_all();
    } else {
        receive_all();
    }
    job_end();
}
