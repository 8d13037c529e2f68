/* SPDX-License-Identifier: BSD-3-Clause */
/* The last byte of a transfer is the last to arrive: programs spin on it and use the rest without
 * looking at a completion. Seen in two ways. "spin": one process writes 100 000 times (environment
 * LASTBYTE_TRANSFERS: another number), another spins on the last byte of each and compares every
 * byte the moment it comes, over mapped and over private memory. "steps": transfers are executed
 * instruction by instruction under ptrace, and when the last byte is there all bytes must be. That
 * always finds a copy in the wrong order, which two CPUs see only by chance.
 *
 * Private memory is written by the kernel (process_vm_writev), which cannot be single-stepped:
 * here each such call is looked at on its way. Its last piece must be the last word alone,
 * since the kernel copies the pieces of a call one after the other. "spin" tests that order,
 * "steps" can't. */
#include "config.h"

#include <sched.h>
#include <stdatomic.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "harness.h"

#define LARGEST   65537
#define SLOTS     4
#define SLOT      (LARGEST + 127)
#define PATTERNS  256
#define TRANSFERS (SANITIZED ? 6000 : 100000)

static const size_t sizes[] = {8, 64, 192, 1000, 4100, LARGEST};
#define N_SIZES (sizeof sizes / sizeof sizes[0])

/* ---- spin ---- */

static _Atomic long *seen; /* transfers that the reader has verified */
static long per_size;
static bool private;
static char expected[LARGEST + PATTERNS];

/* Transfer i carries the bytes of this from i % PATTERNS on. At each place the bytes of successive
 * transfers in a slot differ, so a late byte is found. */
static void make_patterns(char *p)
{
    for (size_t k = 0; k < sizeof expected; k++)
        p[k] = (char)(k * 7 + (k >> 8));
}

static const char *pattern_of(long i)
{
    return expected + i % PATTERNS;
}

static size_t slot_at(long i)
{
    static const size_t alignment[SLOTS] = {0, 1, 13, 60};

    return (size_t)(i % SLOTS) * SLOT + alignment[i % SLOTS];
}

static long calls; /* of the function below */

/* Ours comes before the C library's, also for the library under test. */
ssize_t process_vm_writev(pid_t pid, const struct iovec *local, unsigned long n_local,
                          const struct iovec *remote, unsigned long n_remote, unsigned long flags)
{
    const struct iovec *last = &remote[n_remote - 1];
    uintptr_t begin = (uintptr_t)last->iov_base, end = begin + last->iov_len;

    CHECK(last->iov_len > 0 && begin / 8 == (end - 1) / 8);
    calls++;
    return syscall(SYS_process_vm_writev, pid, local, n_local, remote, n_remote, flags);
}

static void open_spinner(int fd, struct end *e, struct address *peer)
{
    deadline(10 * ALARM);
    make_patterns(expected);
    end_open(e, &(struct end_options){.private = private});
    *peer = swap_addresses(fd, e);
    connect_to(e, peer);
}

static void await_reader(long until)
{
    unsigned turns = 0;

    while (atomic_load_explicit(seen, memory_order_acquire) < until)
        if (++turns % 1024 == 0)
            sched_yield();
}

static void spin_left(int fd, pid_t other)
{
    struct address to;
    struct end e;
    long i = 0;

    (void)other;
    open_spinner(fd, &e, &to);
    make_patterns(e.buf);
    for (size_t s = 0; s < N_SIZES; s++) {
        meet(fd);
        for (long k = 0; k < per_size; k++, i++) {
            await_reader(i); /* they do not overlap, so the reader waits when the bytes come */
            CHECK_EQ(post(&e, IBV_WR_RDMA_WRITE, 1, (size_t)(i % PATTERNS), sizes[s],
                          IBV_SEND_SIGNALED, &to, slot_at(i)),
                     0);
            CHECK_EQ(wait_wc(e.scq).status, IBV_WC_SUCCESS);
        }
    }
    CHECK(calls >= (private ? i : 0));
    meet(fd);
    end_close(&e);
}

static void await_last_byte(const char *at, char value)
{
    unsigned turns = 0;

    while (__atomic_load_n(at, __ATOMIC_ACQUIRE) != value)
        if (++turns % 1024 == 0)
            sched_yield();
}

static bool same(const char *at, const char *pattern, size_t from, size_t to)
{
    return from >= to || memcmp(at + from, pattern + from, to - from) == 0;
}

/* A copy in the wrong order stores the first bytes last (they wait until the rest is aligned), or
 * those just before the end: look there while they may still be missing. */
static bool whole(const char *at, const char *pattern, size_t n)
{
    size_t head = n < 8 ? n : 8, tail = n > 128 ? n - 128 : head;

    return same(at, pattern, 0, head) && same(at, pattern, tail, n) &&
           same(at, pattern, head, tail);
}

static void clear_slots(struct end *e, long first, size_t n)
{
    for (long i = first; i < first + SLOTS; i++)
        for (size_t k = 0; k < n; k++)
            e->buf[slot_at(i) + k] = (char)~pattern_of(i)[k];
}

static void spin_right(int fd, pid_t other)
{
    long i = 0, early = 0;
    struct address to;
    struct end e;

    (void)other;
    open_spinner(fd, &e, &to);
    for (size_t s = 0; s < N_SIZES; s++) {
        size_t n = sizes[s];

        clear_slots(&e, i, n);
        meet(fd);
        for (long k = 0; k < per_size; k++, i++) {
            await_last_byte(e.buf + slot_at(i) + n - 1, pattern_of(i)[n - 1]);
            early += !whole(e.buf + slot_at(i), pattern_of(i), n);
            atomic_store_explicit(seen, i + 1, memory_order_release);
        }
    }
    if (early > 0)
        fprintf(stderr, "the last byte came early in %ld of %ld transfers\n", early, i);
    CHECK_EQ(early, 0);
    meet(fd);
    end_close(&e);
}

static void *shared_page(void)
{
    void *p = mmap(NULL, BUF_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    CHECK(p != MAP_FAILED);
    return p;
}

static void spin(void)
{
    const char *number = getenv("LASTBYTE_TRANSFERS");

    deadline(10 * ALARM);
    per_size = ((number ? atol(number) : TRANSFERS) + (long)N_SIZES - 1) / (long)N_SIZES;
    seen = shared_page();
    in_two(spin_left, spin_right);
}

static void spin_mapped(void)
{
    spin();
}

static void spin_private(void)
{
    private = true;
    spin();
}

/* ---- steps ---- */

/* Single steps through instrumented code that waits for other threads would never end. */
#ifdef __SANITIZE_THREAD__
#    define STEPPABLE false
#else
#    define STEPPABLE true
#endif

/* What the stepped process is doing; in memory of both. */
struct stage {
    _Atomic bool posting;
    size_t at, n;
    char target[8192];
};

/* Every short length, and around what copies treat as limits. */
static size_t next_length(size_t n)
{
    return n < 72     ? n + 1
           : n < 300  ? n + 31
           : n < 1000 ? 1000
           : n < 2047 ? 2047
           : n < 4100 ? 4100
                      : 5000;
}

static void stepped(struct stage *t)
{
    struct end a, b;
    struct ibv_mr *mr;
    struct address to;

    deadline(10 * ALARM);
    open_two(&a, &b, NULL);
    to = address_of(&b);
    mr = ibv_reg_mr(b.pd, t->target, sizeof t->target,
                    IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    CHECK(mr != NULL);
    to.addr = (uintptr_t)t->target;
    to.rkey = mr->rkey;
    memset(a.buf, 1, BUF_BYTES);
    CHECK_EQ(ptrace(PTRACE_TRACEME, 0, NULL, NULL), 0);
    for (size_t n = 1; n <= 4100; n = next_length(n)) {
        memset(t->target, 0, sizeof t->target);
        t->n = n;
        t->at = n % 67;
        t->posting = true;
        raise(SIGSTOP);
        CHECK_EQ(post(&a, IBV_WR_RDMA_WRITE, 1, n % 5, n, IBV_SEND_SIGNALED, &to, t->at), 0);
        t->posting = false;
        CHECK_EQ(wait_wc(a.scq).status, IBV_WC_SUCCESS);
    }
    CHECK_EQ(ibv_dereg_mr(mr), 0);
    close_two(&a, &b);
}

static void check_stage(const struct stage *t)
{
    if (t->target[t->at + t->n - 1] != 0 && memchr(t->target + t->at, 0, t->n)) {
        fprintf(stderr, "of %zu bytes the last one was there before all others were\n", t->n);
        CHECK(false);
    }
}

static void step_through(pid_t child, struct stage *t)
{
    int status;

    while (t->posting) {
        CHECK_EQ(ptrace(PTRACE_SINGLESTEP, child, NULL, NULL), 0);
        CHECK_EQ(waitpid(child, &status, 0), child);
        CHECK(WIFSTOPPED(status));
        check_stage(t);
    }
    CHECK(t->target[t->at + t->n - 1] != 0);
}

static void steps(void)
{
    struct stage *t = shared_page();
    pid_t child;
    int status, transfers = 0;

    if (!STEPPABLE)
        return;
    deadline(10 * ALARM);
    child = fork();
    if (child == 0) {
        stepped(t);
        exit(0);
    }
    while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
        step_through(child, t);
        transfers++;
        CHECK_EQ(ptrace(PTRACE_CONT, child, NULL, NULL), 0);
    }
    CHECK_EQ(status, 0);
    CHECK(transfers > 72);
}

int main(int argc, char **argv)
{
    static const struct test_case cases[] = {{"spin_mapped", spin_mapped},
                                             {"spin_private", spin_private},
                                             {"steps", steps},
                                             {NULL, NULL}};

    return run_cases(cases, argc, argv);
}
