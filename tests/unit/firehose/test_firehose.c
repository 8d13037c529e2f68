/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The cache of pinned regions over a device that really pins pages: hits, evictions, and that no
 * region remains of memory that was unmapped, however it was unmapped. */
#include "config.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mode.h"
#include "firehose/find.h"
#include "firehose/firehose_private.h"
#include "pinning.h"
#include "process/alone.h"
#include "stats/stats.h"
#include "unit.h"
#include "stats/write.h"

enum { granule = 128 << 10, block = 32 << 10, churn_threads = 4, churn_rounds = 3000 };

static char *map_at(void *where, size_t size)
{
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | (where ? MAP_FIXED : 0);
    char *p = mmap(where, size, PROT_READ | PROT_WRITE, flags, -1, 0);
    assert_ptr_not_equal(p, MAP_FAILED);
    return p;
}

/* Mapped, written, and at the begin of a granule. */
static char *map_granules(size_t count)
{
    char *p = map_at(NULL, (count + 1) * granule);
    p = (char *)(((uintptr_t)p + granule - 1) & ~((uintptr_t)granule - 1));
    memset(p, 'a', count * granule);
    return p;
}

/* Without permission for userfaultfd the cache cannot be tested. */
static void open_cache(const char *first, const char *second)
{
    char text[512];
    unit_settings("GASNET_USE_FIREHOSE=1", first, first ? second : NULL, NULL);
    assert_int_equal(pinning_open(), TK_OK);
    tk_firehose_describe(text, sizeof(text));
    if (strstr(text, "no registration outlives")) {
        tk_firehose_close();
        skip();
    }
}

static void close_cache(void)
{
    tk_firehose_close();
    assert_int_equal(pinning.pins, pinning.unpins);
}

/* After a test that failed. */
static int close_what_is_open(void **state)
{
    if (tk_firehose_is_open())
        tk_firehose_close();
    return 0;
}

/* Held for a moment, as by a transfer. */
static bool use(const void *at, size_t nbytes)
{
    struct tk_pinned *p = tk_firehose_get(at, nbytes);
    if (p)
        tk_firehose_put(p);
    return p;
}

/* As a transfer does. */
static struct tk_pinned *hold_piece(const void *at, size_t nbytes)
{
    if (!tk_firehose_may_get(at, nbytes))
        return NULL;
    return tk_firehose_get_if_worth(at, nbytes, tk_firehose_piece(at, nbytes));
}

/* The device sees `nbytes` bytes that are all `expected`. */
static void assert_sees(const char *at, size_t nbytes, char expected)
{
    static char seen[granule];
    struct tk_pinned *p = hold_piece(at, nbytes);
    assert_non_null(p);
    pinning_read(p, at, seen, nbytes);
    tk_firehose_put(p);
    for (size_t i = 0; i < nbytes; i++)
        if (seen[i] != expected)
            fail_msg("byte %zu is '%c', not '%c'", i, seen[i], expected);
}

static void what_was_pinned_is_found_again(void **state)
{
    static struct tk_stats sum;
    tk_stats_sum(&sum);
    uint64_t found_before = sum.counts[tk_counter_regions_found];
    open_cache(NULL, NULL);
    char *p = map_granules(2);
    assert_true(use(p, block));
    assert_true(use(p, block));
    assert_true(use(p + 4096 + 1, block - 5000));
    assert_int_equal(pinning.pins, 1);
    assert_true(use(p, block + 1));       /* reaches beyond what is there */
    assert_true(use(p + granule, block)); /* another granule */
    assert_int_equal(pinning.pins, 3);
    assert_int_equal(tk_firehose_count().hits, 2);
    assert_int_equal(tk_firehose_count().misses, 3);
    tk_stats_sum(&sum);
    assert_int_equal(sum.counts[tk_counter_regions_found] - found_before, 2);
    close_cache();
}

/* Pages that the client did not name may be read-only, or go away. */
static void no_more_pages_are_pinned_than_were_named(void **state)
{
    open_cache(NULL, NULL);
    char *p = map_granules(1);
    struct tk_pinned *r = tk_firehose_get(p + 5000, 4096);
    assert_int_equal(r->base, (uintptr_t)p + 4096);
    assert_int_equal(r->size, 8192);
    tk_firehose_put(r);
    assert_int_equal(tk_firehose_piece(p + 5000, 2 * granule), granule - 5000);
    r = tk_firehose_get(p + 5000, 2 * granule);
    assert_int_equal(r->base + r->size, (uintptr_t)p + granule);
    tk_firehose_put(r);
    close_cache();
}

static void the_oldest_unused_one_is_evicted(void **state)
{
    open_cache("GASNET_FIREHOSE_MAXVICTIM_R=2", NULL);
    char *p = map_granules(3);
    assert_true(use(p, block));
    assert_true(use(p + granule, block));
    assert_true(use(p, block)); /* now the younger one */
    assert_true(use(p + 2 * granule, block));
    assert_int_equal(pinning.unpins, 1);
    assert_true(use(p, block));
    assert_int_equal(pinning.pins, 3);
    struct tk_pinned *first = tk_firehose_get(p, block);
    struct tk_pinned *second = tk_firehose_get(p + granule, block);
    assert_non_null(second);
    assert_null(tk_firehose_get(p + 2 * granule, block));
    tk_firehose_put(second);
    struct tk_pinned *third = tk_firehose_get(p + 2 * granule, block);
    assert_non_null(third);
    tk_firehose_put(third);
    tk_firehose_put(first);
    assert_int_equal(tk_firehose_count().evictions, 3);
    close_cache();
}

static bool use_if_worth(const void *at)
{
    struct tk_pinned *p = hold_piece(at, block);
    if (p)
        tk_firehose_put(p);
    return p;
}

/* In a cyclic traversal of more memory than fits, the oldest region is always the next to be used:
 * if it is evicted, every lookup misses. A few trials detect that. */
/* As a put on the fast path does. */
static bool find(const void *at, size_t nbytes)
{
    struct tk_pinned *last = tk_firehose_find_last(at, nbytes);
    struct tk_pinned *p = last ? last : tk_firehose_find(at, nbytes);
    if (p && !tk_firehose_put_found(p))
        tk_firehose_put(p);
    return p;
}

/* Not watched: else the kernel would have to be asked here, where the client is not known to have
 * one thread. */
static void what_was_found_last_is_found_without_a_lookup(void **state)
{
    open_cache("GASNET_FIREHOSE_MONITOR=none", NULL);
    char *p = map_granules(2);
    assert_false(find(p, block));
    assert_true(use(p, block));
    assert_true(use(p + granule, block));
    assert_null(tk_firehose_find_last(p, block));
    assert_true(find(p, block));
    for (int i = 0; i < 2; i++) {
        struct tk_pinned *one = tk_firehose_find_last(p, block);
        struct tk_pinned *two = tk_firehose_find_last(p + block - 1, 1);
        assert_non_null(one);
        assert_ptr_equal(one, two);
        assert_null(tk_firehose_find_last(p + block - 1, 2));
        assert_null(tk_firehose_find_last(p - 1, 2));
        assert_null(tk_firehose_find_last(p + granule, block));
        assert_true(tk_firehose_put_found(two));
        assert_true(tk_firehose_put_found(one));
    }
    assert_true(find(p + granule, block));
    assert_null(tk_firehose_find_last(p, block));
    assert_int_equal(tk_firehose_count().hits, 6);
    close_cache();
}

static void what_was_found_last_is_given_up_in_its_turn(void **state)
{
    open_cache("GASNET_FIREHOSE_MAXVICTIM_R=2", "GASNET_FIREHOSE_MONITOR=none");
    char *p = map_granules(3);
    assert_true(use(p, block));
    assert_true(use(p + granule, block));
    assert_true(find(p, block)); /* now the younger one */
    struct tk_pinned *third = tk_firehose_get(p + 2 * granule, block);
    assert_non_null(third);
    assert_false(find(p + granule, block));
    assert_true(find(p, block));
    assert_true(use(p + granule, block)); /* in place of the one found last, which nobody holds */
    assert_false(find(p, block));
    assert_true(find(p + granule, block));
    struct tk_pinned *last = tk_firehose_find_last(p + granule, block);
    assert_null(tk_firehose_get(p, block)); /* both are held */
    assert_false(tk_firehose_put_found(last));
    tk_firehose_put(last);
    tk_firehose_put(third);
    assert_true(use(p, block));
    assert_int_equal(tk_firehose_count().evictions, 3);
    close_cache();
}

static void a_round_through_too_much_still_finds_some(void **state)
{
    enum { space = 8, used = 2 * space, rounds = 40, tries = 6 };
    open_cache("GASNET_FIREHOSE_MAXVICTIM_R=8", NULL);
    char *p = map_granules(used);
    for (int i = 0; i < rounds * used; i++)
        use_if_worth(p + (i % used) * granule);
    assert_true(tk_firehose_count().hits > (uint64_t)rounds * used * 2 / 5);
    assert_true(pinning.pins <= space + tries);
    close_cache();
}

/* A region that is used ten times as often as the others is admitted, however reluctant earlier
 * rounds have made the cache, and although all others are still used. */
static void frequently_used_regions_are_admitted(void **state)
{
    enum { space = 8, used = 2 * space, rounds = 40, later = 400, often = 10 };
    open_cache("GASNET_FIREHOSE_MAXVICTIM_R=8", NULL);
    char *p = map_granules(used + 1);
    for (int i = 0; i < rounds * used; i++)
        use_if_worth(p + (i % used) * granule);
    for (int i = 0; i < later; i++) {
        use_if_worth(p + (i % used) * granule);
        for (int j = 0; j < often; j++)
            use_if_worth(p + used * granule);
    }
    assert_true(use_if_worth(p + used * granule));
    close_cache();
}

/* The cache drops regions that are no longer used. */
static void what_is_not_used_any_more_is_given_up(void **state)
{
    enum { space = 8, rounds = 60 };
    open_cache("GASNET_FIREHOSE_MAXVICTIM_R=8", NULL);
    char *p = map_granules(2 * space);
    for (int i = 0; i < space; i++)
        assert_true(use_if_worth(p + i * granule));
    for (int i = 0; i < rounds * space; i++)
        use_if_worth(p + (space + i % space) * granule);
    for (int i = 0; i < space; i++)
        assert_true(use_if_worth(p + (space + i) * granule));
    assert_int_equal(tk_firehose_count().misses, 2 * space);
    close_cache();
}

static void no_more_memory_is_pinned_than_is_allowed(void **state)
{
    open_cache("GASNET_FIREHOSE_MAXVICTIM_M=256K", "GASNET_FIREHOSE_MAXREGION_SIZE=64K");
    char *p = map_granules(4);
    for (int i = 0; i < 8; i++)
        assert_true(use(p + i * (granule / 2), granule / 2));
    assert_int_equal(tk_firehose_count().pinned, 256 << 10);
    assert_int_equal(tk_firehose_count().pinned_max, 256 << 10);
    close_cache();
}

/* Permanent registrations reduce what is left of GASNET_PHYSMEM_MAX. */
static void memory_registered_for_good_counts(void **state)
{
    open_cache("GASNET_PHYSMEM_MAX=1M", "GASNET_FIREHOSE_MAXVICTIM_R=8");
    char *p = map_granules(1);
    tk_firehose_account_static((1 << 20) - block);
    assert_true(use(p, block));
    assert_false(use(p, block + 1));
    tk_firehose_account_static(block - (1 << 20));
    assert_true(use(p, block + 1));
    close_cache();
}

static void a_refusal_is_answered_by_giving_up_others(void **state)
{
    open_cache(NULL, NULL);
    char *p = map_granules(4);
    pinning.fails_from = 2;
    for (int i = 0; i < 4; i++)
        assert_true(use(p + i * granule, block));
    assert_int_equal(tk_firehose_count().evictions, 2);
    assert_int_equal(pinning.explained, 0);
    close_cache();
}

/* With nothing left to evict the transfer takes another path. One warning is printed; not every
 * transfer asks the device again. */
static void a_permanent_refusal_is_reported_once(void **state)
{
    open_cache(NULL, NULL);
    char *p = map_granules(3);
    pinning.fails_from = 1;
    struct tk_pinned *held = tk_firehose_get(p, block);
    for (int i = 0; i < 10; i++)
        assert_null(tk_firehose_get(p + granule, block));
    assert_int_equal(pinning.explained, 1);
    assert_int_equal(pinning.explained_size, block);
    assert_int_equal(pinning.explained_error, ENOMEM);
    assert_int_equal(tk_firehose_count().refusals, 10);
    tk_firehose_put(held);
    pinning.fails_from = 0;
    int tries = 0;
    while (!use(p + granule, block))
        assert_true(++tries < 20);
    close_cache();
}

/* Others need not be evicted for it, and may still try. */
static void a_refusal_of_one_range_does_not_affect_others(void **state)
{
    open_cache(NULL, NULL);
    char *p = map_granules(2);
    assert_true(use(p, block));
    pinning.fails_from = 1;
    pinning.fails_with = EFAULT;
    assert_false(use(p + granule, block));
    pinning.fails_from = 0;
    assert_true(use(p + granule, block));
    assert_int_equal(pinning.unpins, 0);
    assert_int_equal(pinning.explained, 0);
    close_cache();
}

/* ---- memory that goes away ---- */

static void unmap(char *p)
{
    munmap(p, block);
    map_at(p, block);
}

static void map_over(char *p)
{
    map_at(p, block);
}

static void move_away(char *p)
{
    char *to = map_at(NULL, block);
    assert_ptr_equal(mremap(p, block, block, MREMAP_MAYMOVE | MREMAP_FIXED, to), to);
    munmap(to, block);
    map_at(p, block);
}

static void move_over(char *p)
{
    char *from = map_at(NULL, block);
    assert_ptr_equal(mremap(from, block, block, MREMAP_MAYMOVE | MREMAP_FIXED, p), p);
}

static void discard(char *p)
{
    assert_int_equal(madvise(p, block, MADV_DONTNEED), 0);
}

static void unmap_one_page(char *p)
{
    munmap(p + 8192, 4096);
    map_at(p + 8192, 4096);
}

static void (*const ways_to_lose[])(char *) = {unmap,     map_over, move_away,
                                               move_over, discard,  unmap_one_page};

static void memory_that_went_away_is_forgotten(void **state)
{
    open_cache(NULL, NULL);
    for (size_t i = 0; i < sizeof(ways_to_lose) / sizeof(ways_to_lose[0]); i++) {
        char *p = map_granules(1);
        assert_sees(p, block, 'a');
        ways_to_lose[i](p);
        memset(p, 'b', block);
        assert_sees(p, block, 'b');
        assert_int_equal(tk_firehose_count().invalidations, i + 1);
    }
    close_cache();
}

/* Shows that this test's device detects the error that the test above looks for. */
static void without_a_monitor_the_device_sees_what_is_gone(void **state)
{
    open_cache("GASNET_FIREHOSE_MONITOR=none", NULL);
    for (size_t i = 0; i < sizeof(ways_to_lose) / sizeof(ways_to_lose[0]); i++) {
        char *p = map_granules(1), seen;
        assert_sees(p, block, 'a');
        ways_to_lose[i](p);
        memset(p, 'b', block);
        struct tk_pinned *r = tk_firehose_get(p, block);
        pinning_read(r, p + 8192, &seen, 1);
        assert_int_equal(seen, 'a');
        tk_firehose_put(r);
    }
    close_cache();
}

/* It is unpinned when its holder releases it. */
static void a_region_that_is_held_survives_its_memory(void **state)
{
    open_cache(NULL, NULL);
    char *p = map_granules(1), seen;
    struct tk_pinned *held = tk_firehose_get(p, block);
    unmap(p);
    memset(p, 'b', block);
    assert_sees(p, block, 'b');
    pinning_read(held, p, &seen, 1);
    assert_int_equal(seen, 'a');
    int before = pinning.unpins;
    tk_firehose_put(held);
    assert_int_equal(pinning.unpins, before + 1);
    close_cache();
}

static void many_losses_at_once_are_none_too_many(void **state)
{
    enum { blocks = 600 }; /* more than the table can hold */
    open_cache("GASNET_FIREHOSE_MAXVICTIM_R=1000", NULL);
    char *p = map_granules((blocks + 1) / 4);
    for (int i = 0; i < blocks; i++)
        assert_true(use(p + i * block, 4096));
    for (int i = 0; i < blocks; i++)
        unmap(p + i * block);
    memset(p, 'b', (size_t)blocks * block);
    for (int i = 0; i < blocks; i++)
        assert_sees(p + i * block, 4096, 'b');
    close_cache();
}

/* The kernel would split a partly watched mapping into several, which mremap refuses. */
static void what_is_pinned_can_be_enlarged_and_moved(void **state)
{
    open_cache(NULL, NULL);
    char *p = map_at(NULL, 4 * block), *to = map_at(NULL, 16 * block);
    memset(p, 'a', 4 * block);
    assert_true(use(p + block, block));
    p = mremap(p, 4 * block, 8 * block, MREMAP_MAYMOVE);
    assert_ptr_not_equal(p, MAP_FAILED);
    memset(p, 'b', 8 * block);
    assert_true(use(p + 2 * block, block));
    p = mremap(p, 8 * block, 16 * block, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    assert_ptr_equal(p, to);
    memset(p, 'c', 16 * block);
    assert_sees(p + 2 * block, 100, 'c');
    munmap(p, 16 * block);
    close_cache();
}

/* Pages of files may be taken away by others, without notification. */
static void shared_memory_is_not_kept(void **state)
{
    open_cache(NULL, NULL);
    int fd = memfd_create("shared", MFD_CLOEXEC);
    assert_int_equal(ftruncate(fd, granule), 0);
    char *p = mmap(NULL, granule, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    memset(p, 'a', granule);
    assert_false(use(p, block));
    assert_int_equal(pinning.pins, 0);
    close_cache();
    close(fd);
}

/* ---- without userfaultfd ---- */

static void nothing_is_kept(void *unused)
{
    char text[512];
    unit_forbid(SYS_userfaultfd);
    unit_settings("GASNET_USE_FIREHOSE=1", NULL);
    if (pinning_open() != TK_OK)
        _exit(1);
    char *p = map_granules(8);
    if (use(p, block)) /* as dear as a copy */
        _exit(2);
    if (!use(p, 8 * granule) || pinning.pins != 1 || pinning.unpins != 1)
        _exit(3);
    if (!use(p, 8 * granule) || pinning.pins != 2 || pinning.unpins != 2)
        _exit(4);
    tk_firehose_describe(text, sizeof(text));
    if (!strstr(text, "no registration outlives its transfer: userfaultfd is forbidden here"))
        _exit(5);
}

static void insist_on_userfaultfd(void *unused)
{
    unit_forbid(SYS_userfaultfd);
    unit_settings("GASNET_USE_FIREHOSE=1", "GASNET_FIREHOSE_MONITOR=userfaultfd", NULL);
    _exit(pinning_open() == TK_FAIL ? 7 : 1);
}

static void where_nothing_can_be_watched_nothing_is_kept(void **state)
{
    unit_assert_exit(nothing_is_kept, NULL, 0);
    unit_assert_exit(insist_on_userfaultfd, NULL, 7);
}

/* ---- one thread ---- */

static void forbid_ioctl(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
    struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

static void *sleep_on(void *unused)
{
    pause();
    return NULL;
}

/* The thread that watches has begun, with descriptors of its own. */
static bool is_apart(void)
{
    enum { ms_max = 5000 };
    for (int ms = 0; ms < ms_max && !tk_monitor_events.is_apart; ms++)
        usleep(1000);
    return tk_monitor_events.is_apart;
}

/* 10: it is available and may be used; 11: it was tried and refused.
 */
static void hit(void *with_others)
{
    pthread_t thread;
    tk_alone_open();
    tk_alone_accept();
    unit_settings("GASNET_USE_FIREHOSE=1", NULL);
    if (!tk_is_alone() || pinning_open() != TK_OK)
        _exit(unit_cannot);
    char *p = map_granules(1);
    if (!use(p, block) || !is_apart())
        _exit(unit_cannot);
    if (with_others && pthread_create(&thread, NULL, sleep_on, NULL) != 0)
        _exit(2);
    forbid_ioctl();
    bool may = tk_firehose_may_get(p, block);
    if (may && !use(p, block))
        _exit(3);
    if (may != find(p, block))
        _exit(4);
    syscall(SYS_exit_group, may ? 10 : 11);
}

/* By a client that has one thread. */
static void lose_found(void *unused)
{
    tk_alone_open();
    tk_alone_accept();
    unit_settings("GASNET_USE_FIREHOSE=1", NULL);
    if (!tk_is_alone() || pinning_open() != TK_OK)
        _exit(unit_cannot);
    for (size_t i = 0; i < sizeof(ways_to_lose) / sizeof(ways_to_lose[0]); i++) {
        char *p = map_granules(1), seen;
        if (!use(p, block) || !is_apart())
            _exit(unit_cannot);
        if (!find(p, block) || !tk_firehose_find_last(p, block))
            _exit(3);
        ways_to_lose[i](p);
        memset(p, 'b', block);
        if (find(p, block))
            _exit(4);
        struct tk_pinned *r = tk_firehose_get(p, block);
        if (!r || !find(p, block))
            _exit(5);
        pinning_read(r, p + 8192, &seen, 1);
        if (seen != 'b')
            _exit(6);
    }
    syscall(SYS_exit_group, 10);
}

static void what_was_found_last_is_forgotten_with_its_memory(void **state)
{
    unit_assert_exit_or_skip(lose_found, NULL, 10);
}

static void a_hit_is_no_system_call_where_the_client_has_one_thread(void **state)
{
    unit_assert_exit_or_skip(hit, NULL, 10);
    unit_assert_exit(hit, "with others", 11);
}

/* The descriptor through which the kernel reports unmapped memory. */
static void close_userfaultfd(void)
{
    char name[64], what[64];
    for (int fd = 0; fd < 1024; fd++) {
        snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
        ssize_t size = readlink(name, what, sizeof(what) - 1);
        what[size > 0 ? size : 0] = 0;
        if (strstr(what, "[userfaultfd]"))
            close(fd);
    }
}

static void lose_descriptor(void *unused)
{
    char seen = 0;
    tk_alone_open();
    tk_alone_accept();
    unit_settings("GASNET_USE_FIREHOSE=1", NULL);
    if (pinning_open() != TK_OK)
        _exit(unit_cannot);
    char *p = map_granules(1);
    if (!use(p, block) || !is_apart())
        _exit(unit_cannot);
    close_userfaultfd();
    unmap(p);
    memset(p, 'b', block);
    struct tk_pinned *r = hold_piece(p, block);
    if (r)
        pinning_read(r, p, &seen, 1);
    _exit(seen == 'a' ? 1 : 0);
}

static void a_client_may_close_our_descriptor(void **state)
{
    unit_assert_exit_or_skip(lose_descriptor, NULL, 0);
}

/* ---- several threads ---- */

static void lose(char *p, unsigned how)
{
    if (how == 0) {
        discard(p);
        memset(p, 'x', block);
        assert_sees(p, block, 'x');
    } else if (how == 1) {
        munmap(p + block / 2, block / 2);
        munmap(p, block / 2);
        return;
    }
    munmap(p, block);
}

/* Each thread has its own memory, at addresses that another thread used a moment ago. */
static void *churn(void *arg)
{
    struct unit_random random = unit_random((uintptr_t)arg);
    size_t *wrong = calloc(1, sizeof(*wrong));
    for (int round = 0; round < churn_rounds; round++) {
        char seen[block], *p = map_at(NULL, block);
        uint64_t stamp = (uint64_t)(uintptr_t)arg << 32 | (unsigned)round;
        for (size_t i = 0; i < block; i += sizeof(stamp))
            memcpy(p + i, &stamp, sizeof(stamp));
        struct tk_pinned *r = hold_piece(p, block);
        if (r && tk_firehose_piece(p, block) == block) {
            pinning_read(r, p, seen, block);
            *wrong += memcmp(seen, p, block) != 0;
        }
        if (r)
            tk_firehose_put(r);
        lose(p, unit_below(&random, 6) + 1);
    }
    return wrong;
}

static size_t churn_all(const char *how)
{
    pthread_t threads[churn_threads];
    size_t wrong = 0;
    open_cache(how, "GASNET_FIREHOSE_MAXVICTIM_R=64");
    for (uintptr_t i = 0; i < churn_threads; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)(i + 1)), 0);
    for (int i = 0; i < churn_threads; i++) {
        void *mine;
        pthread_join(threads[i], &mine);
        wrong += *(size_t *)mine;
        free(mine);
    }
    close_cache();
    return wrong;
}

static void threads_never_see_each_others_old_memory(void **state)
{
    if (!TK_THREADED)
        skip();
    assert_int_equal(churn_all("GASNET_FIREHOSE_MONITOR=auto"), 0);
    assert_int_not_equal(churn_all("GASNET_FIREHOSE_MONITOR=none"), 0);
}

/* ---- a device that pages on demand ---- */

static void open_paged(void)
{
    unit_settings("GASNET_USE_FIREHOSE=1", NULL);
    assert_int_equal(pinning_open_paged(), TK_OK);
}

static struct tk_pinned *hold_for_writing(char *at, size_t nbytes)
{
    return tk_firehose_get_for_writing(at, nbytes, tk_firehose_piece(at, nbytes));
}

/* When the next put comes, memory that a get wrote may be read-only or replaced by a read-only
 * mapping. */
static void what_is_paged_is_read_through_regions_of_its_own(void **state)
{
    open_paged();
    char *p = map_granules(1);
    struct tk_pinned *written = hold_for_writing(p + 4096, block);
    struct tk_pinned *read = hold_piece(p + 4096, block);
    assert_non_null(written);
    assert_non_null(read);
    assert_ptr_not_equal(written, read);
    assert_int_equal(pinning.sources, 1);
    assert_int_equal(written->end, (uintptr_t)p + 4096 + block);
    assert_int_equal(read->end, written->end);
    assert_ptr_equal(hold_for_writing(p + 8192, block - 4096), written);
    assert_ptr_equal(hold_piece(p + 8192, block - 4096), read);
    for (int i = 0; i < 2; i++) {
        tk_firehose_put(written);
        tk_firehose_put(read);
    }
    assert_int_equal(pinning.pins, 2);
    close_cache();
}

/* The page tables say what is there. */
static void what_is_paged_is_kept_without_being_watched(void **state)
{
    open_paged();
    char *p = map_granules(1);
    uint64_t queries = tk_firehose_count().queries; /* of other tests */
    assert_true(use(p, block));
    munmap(p, block);
    map_at(p, block);
    assert_true(use(p, block));
    assert_int_equal(pinning.pins, 1);
    assert_int_equal(tk_firehose_count().invalidations, 0);
    assert_int_equal(tk_firehose_count().queries, queries);
    assert_false(tk_monitor_events.runs);
    close_cache();
}

static void what_is_pinned_serves_both_directions(void **state)
{
    open_cache(NULL, NULL);
    char *p = map_granules(1);
    struct tk_pinned *r = hold_piece(p, block);
    assert_ptr_equal(hold_for_writing(p, block), r);
    assert_int_equal(pinning.sources, 0);
    tk_firehose_put(r);
    tk_firehose_put(r);
    close_cache();
}

#define TEST(name) cmocka_unit_test_teardown(name, close_what_is_open)

static const struct CMUnitTest tests[] = {
    TEST(what_was_pinned_is_found_again),
    TEST(no_more_pages_are_pinned_than_were_named),
    TEST(the_oldest_unused_one_is_evicted),
    TEST(what_was_found_last_is_found_without_a_lookup),
    TEST(what_was_found_last_is_given_up_in_its_turn),
    TEST(a_round_through_too_much_still_finds_some),
    TEST(frequently_used_regions_are_admitted),
    TEST(what_is_not_used_any_more_is_given_up),
    TEST(no_more_memory_is_pinned_than_is_allowed),
    TEST(memory_registered_for_good_counts),
    TEST(a_refusal_is_answered_by_giving_up_others),
    TEST(a_permanent_refusal_is_reported_once),
    TEST(a_refusal_of_one_range_does_not_affect_others),
    TEST(memory_that_went_away_is_forgotten),
    TEST(without_a_monitor_the_device_sees_what_is_gone),
    TEST(a_region_that_is_held_survives_its_memory),
    TEST(many_losses_at_once_are_none_too_many),
    TEST(what_is_pinned_can_be_enlarged_and_moved),
    TEST(shared_memory_is_not_kept),
    TEST(where_nothing_can_be_watched_nothing_is_kept),
    TEST(what_was_found_last_is_forgotten_with_its_memory),
    TEST(a_hit_is_no_system_call_where_the_client_has_one_thread),
    TEST(a_client_may_close_our_descriptor),
    TEST(threads_never_see_each_others_old_memory),
    TEST(what_is_paged_is_read_through_regions_of_its_own),
    TEST(what_is_paged_is_kept_without_being_watched),
    TEST(what_is_pinned_serves_both_directions),
};

UNIT_MAIN(tests)
