/* SPDX-License-Identifier: BSD-3-Clause */
/* The cost of softhca: each operation compared with the simplest code that does the same without
 * it, alternating in one run; medians. Two processes: the parent measures, the child is its peer.
 * One thread each; no locks. */
#include "config.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/uio.h>

#include "../softhca/harness.h"

#define REPS   15
#define PINGS  5000
#define SMALL  50000
#define LARGE  50
#define WINDOW 16
#define MIB    ((size_t)BUF_BYTES)

/* One cache line each, because two CPUs spin on them. */
struct flag {
    _Alignas(64) _Atomic int turn;
};

static struct flag *flags; /* shared with the peer */
static struct end mapped, plain;
static struct address to_mapped, to_plain;
static pid_t peer;
static int link_fd;
static bool left;
static char *target; /* a second mapping, for memcpy */

/* ---- what is measured: seconds for one ---- */

/* The CPU time of this thread, without that of other programs. */
static double used(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The harness's wait reads the clock, which costs as much as the measured operation. */
static void finish(struct ibv_cq *cq)
{
    struct ibv_wc wc;
    int n;

    while ((n = ibv_poll_cq(cq, 1, &wc)) == 0)
        ;
    CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
}

static double empty_poll(void)
{
    double start = used();

    for (int i = 0; i < SMALL; i++)
        no_wc(mapped.rcq);
    return (used() - start) / SMALL;
}

static double write_8(void)
{
    double start = used();

    for (int i = 0; i < SMALL; i++) {
        CHECK_EQ(post(&mapped, IBV_WR_RDMA_WRITE, 1, 0, 8, IBV_SEND_SIGNALED, &to_mapped, 0), 0);
        finish(mapped.scq);
    }
    return (used() - start) / SMALL;
}

static double write_8_window(void)
{
    double start = used();

    for (int i = 0; i < SMALL; i++) {
        unsigned flag = i % WINDOW == WINDOW - 1 ? IBV_SEND_SIGNALED : 0;

        CHECK_EQ(post(&mapped, IBV_WR_RDMA_WRITE, 1, 0, 8, flag, &to_mapped, 0), 0);
        if (flag)
            finish(mapped.scq);
    }
    return (used() - start) / SMALL;
}

static double large(struct end *e, const struct address *to)
{
    double start = used();

    for (int i = 0; i < LARGE; i++) {
        CHECK_EQ(post(e, IBV_WR_RDMA_WRITE, 1, 0, MIB, IBV_SEND_SIGNALED, to, 0), 0);
        finish(e->scq);
    }
    return (used() - start) / LARGE;
}

static double write_mib(void)
{
    return large(&mapped, &to_mapped);
}

static double write_mib_cma(void)
{
    return large(&plain, &to_plain);
}

static double raw_memcpy(void)
{
    double start = used();

    for (int i = 0; i < LARGE; i++) {
        memcpy(target, mapped.buf, MIB);
        atomic_signal_fence(memory_order_seq_cst); /* each copy counts */
    }
    return (used() - start) / LARGE;
}

static double raw_writev(void)
{
    struct iovec from = {plain.buf, MIB}, to = {(void *)(uintptr_t)to_plain.addr, MIB};
    double start = used();

    for (int i = 0; i < LARGE; i++)
        CHECK_EQ(process_vm_writev(peer, &from, 1, &to, 1, 0), MIB);
    return (used() - start) / LARGE;
}

/* Half a round trip, both processes at work. */
static void pass_flag(int i)
{
    struct flag *mine = &flags[left], *theirs = &flags[!left];

    if (left)
        mine->turn = i + 1;
    for (unsigned turns = 0; theirs->turn != i + 1;)
        if (++turns % 1024 == 0)
            sched_yield();
    if (!left)
        mine->turn = i + 1;
}

static double raw_flags(void)
{
    double start;

    flags[left].turn = 0;
    meet(link_fd);
    start = seconds();
    for (int i = 0; i < PINGS; i++)
        pass_flag(i);
    return (seconds() - start) / PINGS / 2;
}

static void take(void)
{
    finish(mapped.rcq);
    CHECK_EQ(post_recv(&mapped, 1, 4096, 64), 0);
}

static double send_receive(void)
{
    double start;

    meet(link_fd);
    start = seconds();
    for (int i = 0; i < PINGS; i++) {
        if (!left)
            take();
        CHECK_EQ(post_send(&mapped, 1, 0, 8, IBV_SEND_INLINE), 0);
        if (left)
            take();
        finish(mapped.scq);
    }
    return (seconds() - start) / PINGS / 2;
}

/* ---- what is compared ---- */

struct comparison {
    const char *name;
    double (*ours)(void);
    double (*other)(void); /* NULL: the aim is a time */
    double aim;            /* at most: nanoseconds, or times the other's time */
    bool both;             /* the peer takes part */
};

static const struct comparison comparisons[] = {
    {"empty poll, ns", empty_poll, NULL, 15, false},
    {"write 8 B and poll, ns", write_8, NULL, 150, false},
    {"write 8 B, 16 under way, ns each", write_8_window, NULL, 125, false},
    {"send and receive / two flags", send_receive, raw_flags, 3, true},
    {"write 1 MiB / memcpy", write_mib, raw_memcpy, 1 / 0.9, false},
    {"write 1 MiB by CMA / process_vm_writev", write_mib_cma, raw_writev, 1 / 0.9, false},
};
#define COMPARISONS (sizeof comparisons / sizeof comparisons[0])

static int order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median(double *v)
{
    qsort(v, REPS, sizeof *v, order);
    return v[REPS / 2];
}

static void measure(const struct comparison *c)
{
    double ours[REPS], other[REPS], value;

    for (int i = 0; i < REPS; i++) {
        ours[i] = c->ours() * 1e9;
        other[i] = c->other ? c->other() * 1e9 : 1;
    }
    value = median(ours) / median(other);
    if (!left)
        return;
    printf("%-40s %8.2f  aim <= %6.2f: %s", c->name, value, c->aim,
           value <= c->aim ? "met" : "MISSED");
    printf(c->other ? "  (%.0f ns, %.0f ns)\n" : "\n", median(ours), median(other));
}

static void open_both(int fd, pid_t other)
{
    link_fd = fd;
    peer = other;
    deadline(120);
    end_open(&mapped, NULL);
    end_open(&plain, &(struct end_options){.private = true});
    to_mapped = swap_addresses(fd, &mapped);
    to_plain = swap_addresses(fd, &plain);
    connect_to(&mapped, &to_mapped);
    connect_to(&plain, &to_plain);
    memset(mapped.buf, 1, MIB);
    memset(plain.buf, 1, MIB);
    for (int i = 0; i < 16; i++)
        CHECK_EQ(post_recv(&mapped, 1, 4096, 64), 0);
    meet(fd);
}

static void measuring(int fd, pid_t other)
{
    struct end more;

    left = true;
    open_both(fd, other);
    end_buffer(&more, false);
    target = more.buf;
    for (size_t i = 0; i < COMPARISONS; i++)
        measure(&comparisons[i]);
    meet(fd);
    close_two(&mapped, &plain);
}

static void helping(int fd, pid_t other)
{
    open_both(fd, other);
    for (size_t i = 0; i < COMPARISONS; i++)
        if (comparisons[i].both)
            measure(&comparisons[i]);
    meet(fd);
    close_two(&mapped, &plain);
}

int main(void)
{
    char fabric[64];

    snprintf(fabric, sizeof fabric, "bench-%d", (int)getpid());
    setenv("SOFTHCA_FABRIC", fabric, 1);
    setenv("SOFTHCA_ONLY", "1", 1);
    setvbuf(stdout, NULL, _IOLBF, 0);
    flags =
        mmap(NULL, 2 * sizeof *flags, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(flags != MAP_FAILED);
    in_two(measuring, helping);
    return 0;
}
