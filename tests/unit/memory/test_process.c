/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Effects of settings on the process itself: locked memory, heap, threads and the end of its
 * output. Each in a child process, because none can be undone. */
#include "config.h"

#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "memory/memory.h"
#include "process/thread.h"
#include "settings/settings.h"
#include "gasnet_tools.h"
#include "unit.h"

static rlim_t locked_memory(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_MEMLOCK, &limit);
    return limit.rlim_cur;
}

static void lock_memory(void *setting)
{
    struct rlimit limit = {.rlim_cur = 65536, .rlim_max = 131072};
    setrlimit(RLIMIT_MEMLOCK, &limit);
    unit_settings(setting, NULL);
    tk_process_memory_open();
    exit((int)(locked_memory() >> 16));
}

static void the_locked_memory_limit_is_raised_by_default(void **state)
{
    unit_assert_exit(lock_memory, NULL, 2);
    unit_assert_exit(lock_memory, "GASNET_MAXIMIZE_MEMLOCK=1", 2);
    unit_assert_exit(lock_memory, "GASNET_MAXIMIZE_MEMLOCK=0", 1);
}

static void map_block(void *setting)
{
    unit_settings(setting, NULL);
    tk_process_memory_open();
    char *block = malloc(64u << 20);
    if (!block)
        exit(9);
    int mapped = mallinfo2().hblks > 0;
    free(block);
    exit(mapped);
}

static void malloc_maps_nothing_on_request(void **state)
{
    unit_assert_exit(map_block, NULL, 1);
    unit_assert_exit(map_block, "GASNET_DISABLE_MUNMAP=1", 0);
}

static sem_t done;
static size_t stack_size;
static bool is_deaf;

static void *look(void *unused)
{
    pthread_attr_t attr;
    sigset_t blocked;
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstacksize(&attr, &stack_size);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    is_deaf = sigismember(&blocked, SIGINT) && sigismember(&blocked, SIGUSR1);
    sem_post(&done);
    return NULL;
}

static size_t stack_of(uint64_t least, uint64_t pad)
{
    sem_init(&done, 0, 0);
    assert_int_equal(tk_thread_start(look, least, pad), TK_OK);
    while (sem_wait(&done) != 0)
        continue;
    return stack_size;
}

static void a_thread_has_the_stack_that_was_asked_for(void **state)
{
    size_t usual = stack_of(0, 0);
    assert_true(usual >= 16384);
    assert_int_equal(stack_of(1, 0), usual);
    /* in this order: the stack of an ended thread is used again where it is large enough */
    assert_int_equal(stack_of(0, 65536), usual + 65536);
    assert_int_equal(stack_of(usual + (1 << 20), 0), usual + (1 << 20));
    assert_true(is_deaf);
}

static void start_huge(void *unused)
{
    exit(tk_thread_start(look, UINT64_C(1) << 60, 0) == TK_FAIL ? 0 : 1);
}

static void a_missing_stack_is_reported(void **state)
{
    const char *said;
    assert_int_equal(unit_child(start_huge, NULL, &said), 0);
    assert_int_equal(unit_lines(said), 1);
    unit_assert_says(said, "cannot start a thread: ");
    unit_assert_says(said, "GASNET_THREAD_STACK_MIN");
}

static int synced;

/* In place of the C library's: waiting for all disks is no test. */
void sync(void)
{
    synced++;
}

static void flush(void *setting)
{
    if (setting)
        setenv("GASNET_FS_SYNC", setting, 1);
    gasnett_flush_streams();
    exit(synced);
}

static void file_systems_are_written_on_request(void **state)
{
    unit_assert_exit(flush, NULL, 0);
    unit_assert_exit(flush, "0", 0);
    unit_assert_exit(flush, "1", 1);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_locked_memory_limit_is_raised_by_default),
    cmocka_unit_test(malloc_maps_nothing_on_request),
    cmocka_unit_test(a_thread_has_the_stack_that_was_asked_for),
    cmocka_unit_test(a_missing_stack_is_reported),
    cmocka_unit_test(file_systems_are_written_on_request),
};

UNIT_MAIN(tests)
