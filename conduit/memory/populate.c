/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Populates memory before it is registered: the kernel zeroes some GB/s per CPU, and a device
 * driver that pins untouched memory does all of it on one CPU. No state. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>

#include "base/bits.h"
#include "memory/memory.h"
#include "process/alone.h"
#include "topology/topology.h"

#ifndef MADV_POPULATE_WRITE
#    define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

enum {
    piece = 32 << 20, /* some 10 ms: threads finish together, and a huge page lies in one piece */
    threads_max = 16  /* more do not help: memory bandwidth is exhausted */
};

struct job {
    char *base;
    size_t size;
    _Atomic size_t next; /* offset of the next piece not taken by a thread */
    _Atomic int error;
};

static int populate(char *at, size_t size)
{
    while (madvise(at, size, MADV_POPULATE_WRITE) != 0)
        if (errno != EINTR && errno != EAGAIN)
            return errno;
    return 0;
}

static void *work(void *arg)
{
    struct job *job = arg;
    while (atomic_load(&job->error) == 0) {
        size_t at = atomic_fetch_add(&job->next, piece);
        if (at >= job->size)
            break;
        int error = populate(job->base + at, tk_min((size_t)piece, job->size - at));
        if (error)
            atomic_store(&job->error, error);
    }
    return NULL;
}

/* This rank's share of the host's CPUs, at most one thread per piece. */
static unsigned threads_for(size_t size)
{
    size_t cpus = tk_topology.cpus / (tk_machine_ranks() ? tk_machine_ranks() : 1);
    size_t threads = tk_min(tk_min(cpus, (size_t)threads_max), size / piece);
    return threads ? (unsigned)threads : 1;
}

/* Helpers block all signals: these are for the client's threads. If a helper can't be started, the
 * calling thread does its pieces. */
int tk_populate(void *base, size_t size)
{
    pthread_t helper[threads_max];
    sigset_t all, before;
    unsigned helpers = 0, wanted = threads_for(size) - 1;
    uintptr_t start = (uintptr_t)base & ~(uintptr_t)(tk_page_size() - 1);
    struct job job = {.base = (char *)start, .size = (uintptr_t)base + size - start};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool is_alone = tk_is_alone();
    while (helpers < wanted && pthread_create(&helper[helpers], NULL, work, &job) == 0)
        helpers++;
    if (is_alone && helpers > 0)
        tk_alone_accept();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    work(&job);
    for (unsigned i = 0; i < helpers; i++)
        pthread_join(helper[i], NULL);
    return atomic_load(&job.error);
}
