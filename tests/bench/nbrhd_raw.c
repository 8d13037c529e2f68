/* SPDX-License-Identifier: BSD-3-Clause */
/* The baseline of the conduit between neighbours: the same two processes and the same memory, by
 * the simplest correct loops over flags. A flag lies in the segment of the rank that waits for it,
 * on lines of its own, and only the peer writes it. Takes the place of raw_open.c and raw_ops.c.
 * One thread; no locks. */
#include "config.h"

#include <sched.h>
#include <string.h>

#include "bench.h"

enum {
    line = 128, /* two lines: the neighbouring one is prefetched, too */
    ring_slots = 1024,
    flood_buffers = 4,
    looks_between_yields = 1 << 14, /* some 10 us */
    ring_slack = 64 /* messages between two words of the receiver about what it took */
};

/* Behind BENCH_RING in each segment. */
struct raw_area {
    _Alignas(line) uint64_t flag;
    _Alignas(line) uint64_t taken;
    _Alignas(line) struct {
        uint64_t sequence;
        char rest[56];
    } slots[ring_slots];
};

static char *local; /* the peer's segment, where we see it */
static struct raw_area *mine, *theirs;
static uint64_t turn, sent, taken;

void bench_raw_open(const char *port)
{
    (void)port;
    void *there = NULL, *here = NULL;
    uintptr_t size = 0;
    gex_Event_Wait(
        gex_EP_QueryBoundSegmentNB(bench_job.tm, bench_job.peer, &there, &here, &size, 0));
    if (!here)
        bench_die("the peer shares no memory with us: GASNET_SUPERNODE_MAXSIZE must not be 1");
    local = here;
    mine = (struct raw_area *)(void *)(bench_job.mine + BENCH_RING);
    theirs = (struct raw_area *)(void *)(local + BENCH_RING);
    memset(mine, 0, sizeof(*mine));
    bench_pin();
    gex_Coll_BarrierBlocking(bench_job.tm, 0);
}

const char *bench_raw_describe(void)
{
    return "shared memory";
}

void bench_raw_close(void)
{
}

static void raise_flag(void)
{
    __atomic_store_n(&theirs->flag, turn, __ATOMIC_RELEASE);
}

/* Waits until *word reaches `value`: the peer may be one turn ahead. Yielding gives a preempted
 * peer its CPU back sooner; a transfer completes long before the first yield. */
static void await(const uint64_t *word, uint64_t value)
{
    for (long looks = 1; __atomic_load_n(word, __ATOMIC_ACQUIRE) < value; looks++)
        if (looks % looks_between_yields == 0)
            sched_yield();
}

static void await_flag(void)
{
    await(&mine->flag, turn);
}

void nbrhd_raw_ping_pong(size_t nbytes, long count)
{
    (void)nbytes;
    for (long i = 0; i < count; i++) {
        turn++;
        if (bench_job.me == 1)
            await_flag();
        raise_flag();
        if (bench_job.me == 0)
            await_flag();
    }
}

/* One copy in each direction: rank 1 sends the received bytes back from the place where they
 * arrived. */
void nbrhd_raw_copies(size_t nbytes, long count)
{
    char *to = local + BENCH_TARGET;
    for (long i = 0; i < count; i++) {
        turn++;
        if (bench_job.me == 1)
            await_flag();
        memcpy(to, bench_job.mine + (bench_job.me == 1 ? BENCH_TARGET : BENCH_SOURCE), nbytes);
        raise_flag();
        if (bench_job.me == 0)
            await_flag();
    }
}

void nbrhd_raw_both(size_t nbytes, long count)
{
    (void)nbytes;
    for (long i = 0; i < count; i++) {
        turn++;
        raise_flag();
        await_flag();
    }
}

/* memcpy must not be taken out of the loop. */
static void keep(void)
{
    __asm__ __volatile__("" ::: "memory");
}

void nbrhd_raw_memcpy(size_t nbytes, long count)
{
    for (long i = 0; bench_job.me == 0 && i < count; i++) {
        memcpy(local + BENCH_TARGET, bench_job.mine + BENCH_SOURCE, nbytes);
        keep();
    }
}

void nbrhd_raw_store(size_t nbytes, long count)
{
    (void)nbytes;
    uint64_t *to = (uint64_t *)(void *)(local + BENCH_TARGET);
    for (long i = 0; bench_job.me == 0 && i < count; i++)
        __atomic_store_n(to, *(uint64_t *)(void *)(bench_job.mine + BENCH_SOURCE),
                         __ATOMIC_RELAXED);
}

void nbrhd_raw_load(size_t nbytes, long count)
{
    (void)nbytes;
    uint64_t *from = (uint64_t *)(void *)(local + BENCH_TARGET);
    for (long i = 0; bench_job.me == 0 && i < count; i++) {
        *(uint64_t *)(void *)(bench_job.mine + BENCH_SOURCE) =
            __atomic_load_n(from, __ATOMIC_RELAXED);
        keep();
    }
}

/* Small transfers: one word says whether the peer shares memory, and memcpy copies a number of
 * bytes that the compiler does not know. The word is read each time, as everything is that another
 * thread may change. */
static uint64_t is_shared = 1;

static inline void check_shared(void)
{
    if (__atomic_load_n(&is_shared, __ATOMIC_RELAXED) != 1)
        bench_die("the peer shares no memory with us any more");
}

void nbrhd_raw_small_put(size_t nbytes, long count)
{
    char *to = local + BENCH_TARGET, *from = bench_job.mine + BENCH_SOURCE;
    size_t at = 0;
    for (long left = bench_job.me == 0 ? count : 0; left > 0; left--) {
        check_shared();
        memcpy(to + at, from + at, nbytes);
        keep();
        at = BENCH_NEXT(at);
    }
}

void nbrhd_raw_small_get(size_t nbytes, long count)
{
    char *from = local + BENCH_TARGET, *to = bench_job.mine + BENCH_SOURCE;
    size_t at = 0;
    for (long left = bench_job.me == 0 ? count : 0; left > 0; left--) {
        check_shared();
        memcpy(to + at, from + at, nbytes);
        keep();
        at = BENCH_NEXT(at);
    }
}

/* Of a value of 1 to 8 bytes; all our CPUs store the low-order byte first. */
void nbrhd_raw_small_value(size_t nbytes, long count)
{
    char *to = local + BENCH_TARGET;
    size_t at = 0;
    for (long left = bench_job.me == 0 ? count : 0; left > 0; left--) {
        uint64_t value = (uint64_t)left;
        check_shared();
        memcpy(to + at, &value, nbytes);
        keep();
        at = BENCH_NEXT(at);
    }
}

void nbrhd_raw_small_load(size_t nbytes, long count)
{
    char *from = local + BENCH_TARGET;
    uint64_t sum = 0;
    size_t at = 0;
    for (long left = bench_job.me == 0 ? count : 0; left > 0; left--) {
        uint64_t value = 0;
        check_shared();
        memcpy(&value, from + at, nbytes);
        keep();
        at = BENCH_NEXT(at);
        sum += value;
    }
    __asm__ __volatile__("" : : "r"(sum));
}

void nbrhd_raw_look(size_t nbytes, long count)
{
    (void)nbytes;
    for (long i = 0; bench_job.me == 0 && i < count; i++)
        if (__atomic_load_n(&mine->flag, __ATOMIC_ACQUIRE) != turn)
            bench_die("a flag was raised that nobody should raise");
}

/* Waits until the receiver has taken all but `behind` messages. */
static void await_taken(uint64_t behind)
{
    for (long looks = 1; sent - __atomic_load_n(&mine->taken, __ATOMIC_ACQUIRE) > behind; looks++)
        if (looks % looks_between_yields == 0)
            sched_yield();
}

static void flood_send(long count)
{
    for (long i = 0; i < count; i++) {
        await_taken(ring_slots - 1);
        uint64_t *slot = &theirs->slots[sent % ring_slots].sequence;
        __atomic_store_n(slot, ++sent, __ATOMIC_RELEASE);
    }
    await_taken(0);
}

/* Reports after each `slack` messages how many it has taken. */
static void flood_receive(long count, long slack)
{
    for (long i = 1; i <= count; i++) {
        await(&mine->slots[taken % ring_slots].sequence, taken + 1);
        taken++;
        if (i % slack == 0 || i == count)
            __atomic_store_n(&theirs->taken, taken, __ATOMIC_RELEASE);
    }
}

/* One sender, one receiver, a cache line for each message. */
void nbrhd_raw_flood(size_t nbytes, long count)
{
    (void)nbytes;
    if (bench_job.me == 0)
        flood_send(count);
    else
        flood_receive(count, ring_slack);
}

static void copy_flood_send(size_t nbytes, long count, uint64_t behind)
{
    for (long i = 0; i < count; i++) {
        await_taken(behind);
        memcpy(local + BENCH_TARGET + sent % flood_buffers * BENCH_SLOT_SIZE,
               bench_job.mine + BENCH_SOURCE, nbytes);
        uint64_t *slot = &theirs->slots[sent % ring_slots].sequence;
        __atomic_store_n(slot, ++sent, __ATOMIC_RELEASE);
    }
    await_taken(0);
}

/* Copies into a few buffers in turn and reuses one when its message has been taken; the receiver
 * looks at the flag alone, a line for each message. */
void nbrhd_raw_copy_flood(size_t nbytes, long count)
{
    if (bench_job.me == 0)
        copy_flood_send(nbytes, count, flood_buffers - 1);
    else
        flood_receive(count, 1);
}

/* The same without waiting for a buffer, so it is not correct: an upper bound, not an aim. */
void nbrhd_raw_careless_flood(size_t nbytes, long count)
{
    if (bench_job.me == 0)
        copy_flood_send(nbytes, count, ring_slots - 1);
    else
        flood_receive(count, ring_slack);
}
