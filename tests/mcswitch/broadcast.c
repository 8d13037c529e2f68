/* SPDX-License-Identifier: BSD-3-Clause */
/* Broadcasts through mcswitchd with plain verbs, on any device: every member as root to all others
 * and to every subset, while outsiders get nothing; all at once; with the lock kept; and after the
 * switch was killed. Data is checked in every receiver. Started once for each rank:
 *
 *     broadcast RANK RANKS MEETING CONTROLLER [option=value ...]
 *
 * MEETING and CONTROLLER are A.B.C.D:PORT. Options: device, gid, mtu, timeout, retries, most (bytes
 * of the largest), rounds, lease (ms, of the switch: then only failures of members), killed (a file
 * that the script makes when the switch was killed and started again). Rank 0 prints the copies
 * that the switch had to make. */
#include "config.h"

#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "member.h"
#include "star.h"

enum { patience_s = 60, slot_bytes = 64 * 1024 };

static struct member self;
static int rank, ranks;
static uint32_t everybody;
static uint64_t serial[MEMBERS_MOST]; /* the last value of each root's flag word */
static unsigned most_bytes = 100000, rounds = 20;
static unsigned lease; /* ms, of the switch; not 0: only failures are tested */
static const char *controller, *killed;

/* ---- data that is sent, and data that must arrive ---- */

static uint8_t pattern(uint64_t value, uint32_t at)
{
    return (uint8_t)(value * 131 + at * 7 + (at >> 8));
}

static void fill(uint64_t value, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        self.region[MEMBER_SOURCE + i] = pattern(value, i);
}

static void await_flag(int root, uint64_t value)
{
    volatile uint64_t *flag =
        (volatile uint64_t *)(void *)(self.region + MEMBER_FLAGS + 8 * (size_t)root);
    time_t limit = time(NULL) + patience_s;
    struct ibv_wc wc;

    while (*flag != value) { /* some devices make progress only in polls */
        CHECK(ibv_poll_cq(self.cq, 1, &wc) == 0);
        if (time(NULL) >= limit) {
            fprintf(stderr, "rank %d: flag of root %d is %llu, not %llu\n", rank, root,
                    (unsigned long long)*flag, (unsigned long long)value);
            exit(1);
        }
        sched_yield();
    }
    __atomic_thread_fence(__ATOMIC_ACQUIRE);
}

static void check_data(uint32_t offset, uint64_t value, uint32_t bytes)
{
    for (uint32_t i = 0; i < bytes; i++)
        if (self.region[offset + i] != pattern(value, i)) {
            fprintf(stderr, "rank %d: byte %u of broadcast %llu is wrong\n", rank, i,
                    (unsigned long long)value);
            exit(1);
        }
}

/* ---- one broadcast, which all ranks check ---- */

static void one(int root, uint32_t set, unsigned flags, uint32_t bytes, bool release)
{
    static uint8_t before[64];
    uint64_t value = ++serial[root];
    struct broadcast b = {.set = set,
                          .flags = flags,
                          .bytes = bytes,
                          .offset = 0,
                          .value = value,
                          .release = release};

    memcpy(before, self.region, sizeof before);
    if (rank == root) {
        fill(value, bytes);
        member_post(&self, &b);
        CHECK(member_reap(&self) == IBV_WC_SUCCESS);
    }
    if (set & 1u << rank) {
        await_flag(root, value);
        check_data(0, value, bytes);
    }
    star_barrier();
    if (!(set & 1u << rank)) { /* an outsider */
        uint64_t flag;

        memcpy(&flag, self.region + MEMBER_FLAGS + 8 * (size_t)root, sizeof flag);
        CHECK(flag != value);
        CHECK(memcmp(before, self.region, sizeof before) == 0);
    }
    star_barrier(); /* the next one must not have arrived yet */
}

static void each_root(void)
{
    for (int root = 0; root < ranks; root++) {
        uint32_t others = everybody & ~(1u << root);

        for (uint32_t bytes = 8; bytes <= most_bytes; bytes *= 12)
            one(root, others, ACQUIRE | TOPOLOGY | BITMAP, bytes, true);
        one(root, others, ACQUIRE | TOPOLOGY | ADDRESS, 4097, true);
        one(root, everybody, ACQUIRE | TOPOLOGY | BITMAP, 64, true); /* itself too */
    }
}

static void subsets(void)
{
    for (uint32_t set = 1; set <= everybody; set++)
        one((int)(set % (uint32_t)ranks), set, ACQUIRE | TOPOLOGY | BITMAP, 72, true);
}

/* Data and flag alone, and a further topology, while the lock is held; then another root. */
static void kept(void)
{
    uint32_t others = everybody & ~1u;

    one(0, others, ACQUIRE | TOPOLOGY | BITMAP, 64, false);
    for (unsigned i = 0; i < rounds; i++)
        one(0, others, 0, 64 + i, false);
    one(0, 2, TOPOLOGY | BITMAP, 80, false);
    one(0, 2, 0, 80, false);
    one(0, others, TOPOLOGY | BITMAP, 80, true);
    one(1, everybody & ~2u, ACQUIRE | TOPOLOGY | BITMAP, 8, true);
}

/* All members at once, each to its own offset; their devices wait for the lock. */
static void contention(void)
{
    uint32_t others = everybody & ~(1u << rank);
    struct broadcast b = {.set = others,
                          .flags = ACQUIRE | TOPOLOGY | BITMAP,
                          .bytes = 3000,
                          .offset = slot_bytes * (uint32_t)rank,
                          .release = true};

    star_barrier();
    for (unsigned i = 0; i < rounds; i++) {
        b.value = serial[rank] + i + 1;
        fill(b.value, b.bytes);
        member_post(&self, &b);
        CHECK(member_reap(&self) == IBV_WC_SUCCESS);
    }
    for (int root = 0; root < ranks; root++) {
        serial[root] += rounds;
        if (root == rank)
            continue;
        await_flag(root, serial[root]);
        check_data(slot_bytes * (uint32_t)root, serial[root], b.bytes);
    }
    star_barrier();
}

/* ---- failures of members; the last of them ends a process ---- */

/* A root that keeps the lock and is silent for longer than the lease loses it to the next one, is
 * fenced, and takes part again after a repair. */
static void fenced(void)
{
    struct broadcast b = {.bytes = 64, .value = 1};

    one(0, everybody & ~1u, ACQUIRE | TOPOLOGY | BITMAP, 64, false);
    usleep(2000 * lease);
    one(1, everybody & ~2u, ACQUIRE | TOPOLOGY | BITMAP, 640, true);
    if (rank == 0) {
        b.value = serial[0];
        member_post(&self, &b);
        CHECK(member_reap(&self) == IBV_WC_REM_OP_ERR);
    }
    member_await_event(&self, 0, TK_MCSW_MEMBER_FENCED);
    if (rank == 0)
        member_repair(&self, TK_MCSW_REPAIR_SQP);
    star_barrier();
    one(0, everybody & ~1u, ACQUIRE | TOPOLOGY | BITMAP, 64, true);
    one(1, everybody & ~2u, ACQUIRE | TOPOLOGY | BITMAP, 64, true);
}

/* A sender that lists a member with a dirty RQP waits until that is repaired. */
static void dirty(void)
{
    struct broadcast b = {
        .set = 6, .flags = ACQUIRE | TOPOLOGY | BITMAP, .bytes = 500, .release = true};
    struct ibv_wc wc;

    b.value = ++serial[0];
    if (rank == 0) {
        tk_mcsw_mark(&self.client, self.client.place.group, 2, 1000u * patience_s);
        CHECK(tk_mcsw_wait(&self.client) == TK_MCSW_DONE);
        fill(b.value, b.bytes);
        member_post(&self, &b);
        for (int i = 0; i < 50; i++) {
            CHECK(ibv_poll_cq(self.cq, 1, &wc) == 0);
            usleep(1000);
        }
    }
    star_barrier();
    if (rank == 2) {
        member_await_event(&self, 2, TK_MCSW_MEMBER_DIRTY);
        member_repair(&self, TK_MCSW_REPAIR_RQP);
    }
    if (rank == 0)
        CHECK(member_reap(&self) == IBV_WC_SUCCESS);
    else if (rank <= 2) {
        await_flag(0, b.value);
        check_data(0, b.value, b.bytes);
    }
    star_barrier();
}

/* A death is reported to the others, which continue. */
static void dead(void)
{
    struct broadcast b = {.set = 2,
                          .flags = ACQUIRE | TOPOLOGY | BITMAP,
                          .bytes = 100,
                          .value = 4711,
                          .release = true};

    star_barrier();
    if (rank == ranks - 1)
        _exit(0);
    member_await_event(&self, (uint32_t)ranks - 1, TK_MCSW_MEMBER_LEFT);
    if (rank == 0) {
        fill(b.value, b.bytes);
        member_post(&self, &b);
        CHECK(member_reap(&self) == IBV_WC_SUCCESS);
        b.set = 1u << (ranks - 1); /* is no member any more */
        member_post(&self, &b);
        CHECK(member_reap(&self) == IBV_WC_REM_ACCESS_ERR);
    } else if (rank == 1) {
        await_flag(0, b.value);
        check_data(0, b.value, b.bytes);
    }
    member_part(&self);
    member_close(&self);
    exit(0);
}

/* Prints the copies that the switch must have counted without loss. */
static void print_copies(void)
{
    uint64_t all[MEMBERS_MOST], sum = 0;

    star_gather(&self.copies, sizeof self.copies, all);
    for (int i = 0; i < ranks; i++)
        sum += all[i];
    if (rank == 0)
        printf("copies %llu\n", (unsigned long long)sum);
    fflush(stdout);
}

/* The switch is killed: broadcasts fail in time, and nothing hangs. When it is started again,
 * members join it. */
static void after_a_kill(void)
{
    struct broadcast b = {.set = everybody & ~(1u << rank),
                          .flags = ACQUIRE | TOPOLOGY | BITMAP,
                          .bytes = 64,
                          .value = 77,
                          .release = true};

    if (!killed)
        return;
    if (rank == 0) {
        printf("kill me\n");
        fflush(stdout);
        while (access(killed, F_OK) != 0)
            usleep(10000);
    }
    star_barrier();
    member_post(&self, &b);
    CHECK(member_reap(&self) == IBV_WC_RETRY_EXC_ERR);
    /* The connection to the controller has ended too, and that is seen. */
    for (int i = 0; self.client.fd >= 0 && i < patience_s * 100; i++) {
        tk_mcsw_step(&self.client);
        usleep(10000);
    }
    CHECK(self.client.fd < 0);
    star_barrier();
    member_part(&self);
    member_join(&self, controller, rank, ranks);
    each_root();
}

/* ---- the command line ---- */

static void option(struct member_options *o, const char *text)
{
    const char *value = strchr(text, '=');
    size_t n = value ? (size_t)(value - text) : 0;

    CHECK(value);
    value++;
#define IS(name) (n == strlen(name) && strncmp(text, name, n) == 0)
    if (IS("device"))
        o->device = value;
    else if (IS("gid"))
        o->gid_index = atoi(value);
    else if (IS("mtu"))
        o->mtu = (unsigned)atoi(value);
    else if (IS("timeout"))
        o->timeout = (unsigned)atoi(value);
    else if (IS("retries"))
        o->retries = (unsigned)atoi(value);
    else if (IS("most"))
        most_bytes = (unsigned)atoi(value);
    else if (IS("rounds"))
        rounds = (unsigned)atoi(value);
    else if (IS("lease"))
        lease = (unsigned)atoi(value);
    else if (IS("killed"))
        killed = value;
    else
        CHECK(!"a known option");
}

int main(int argc, char **argv)
{
    /* softhca repeats by measured round trips, and gives up after 34 s: no busy host needs longer.
     * Soft-RoCE does not give up with this count. */
    struct member_options o = {.mtu = 1024, .timeout = 20, .retries = 7};

    CHECK(argc >= 5);
    rank = atoi(argv[1]);
    ranks = atoi(argv[2]);
    controller = argv[4];
    CHECK(ranks >= 2 && ranks <= MEMBERS_MOST && rank >= 0 && rank < ranks);
    for (int i = 5; i < argc; i++)
        option(&o, argv[i]);
    CHECK(most_bytes <= MEMBER_DATA);
    alarm(5 * patience_s);
    everybody = ranks == 32 ? UINT32_MAX : (1u << ranks) - 1;
    star_open(argv[3], rank, ranks);
    member_open(&self, &o);
    member_join(&self, controller, rank, ranks);
    if (lease) {
        fenced();
        dirty();
        dead();
    }
    each_root();
    if (ranks <= 5)
        subsets();
    kept();
    contention();
    print_copies();
    after_a_kill();
    star_barrier();
    member_part(&self);
    member_close(&self);
    star_close();
    return 0;
}
