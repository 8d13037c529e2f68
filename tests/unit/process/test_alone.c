/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Detection of a second client thread by the kernel's reports. Each case is a child process, which
 * has one thread. */
#include "config.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process/alone.h"
#include "unit.h"

enum { many_processes = 200 /* more records than fit */ };

static sem_t to_end;

static void *wait_to_end(void *unused)
{
    while (sem_wait(&to_end) != 0)
        continue;
    return NULL;
}

static void check(bool is_so, int code)
{
    if (!is_so)
        _exit(code);
}

static void *look_inside(void *unused)
{
    check(!tk_is_only_inside(), 2);
    return NULL;
}

static void start_thread(pthread_t *thread)
{
    if (pthread_create(thread, NULL, wait_to_end, NULL) != 0)
        _exit(90);
}

static void end_thread(pthread_t thread)
{
    sem_post(&to_end);
    pthread_join(thread, NULL);
}

static void start_process(void)
{
    pid_t child = fork();
    if (child == 0)
        _exit(0);
    check(child > 0 && waitpid(child, NULL, 0) == child, 91);
}

static void be_asked(void)
{
    sem_init(&to_end, 0, 0);
    check(!tk_is_alone(), 1);
    tk_alone_open();
    check(!tk_is_alone(), 92); /* nor does that poll affect later reports */
    tk_alone_accept();
    if (!tk_is_alone())
        _exit(unit_cannot);
}

/* 77: kernel.perf_event_paranoid, or seccomp */
static void run(void (*fn)(void *))
{
    unit_assert_exit_or_skip(fn, NULL, 0);
}

static void start_one(void *unused)
{
    pthread_t thread;
    be_asked();
    check(tk_is_only_inside(), 5);
    start_thread(&thread);
    check(!tk_is_only_inside(), 6); /* without asking */
    check(tk_may_be_only_inside() && !tk_is_alone(), 2);
    check(!tk_is_only_inside() && !tk_may_be_only_inside(), 7);
    tk_alone_accept(); /* too late */
    check(!tk_is_alone(), 3);
    end_thread(thread);
    check(!tk_is_alone(), 4);
}

static void a_client_that_starts_a_thread_is_no_longer_alone(void **state)
{
    run(start_one);
}

static void start_processes(void *unused)
{
    pthread_t thread;
    be_asked();
    for (int i = 0; i < many_processes; i++) {
        start_process();
        check(tk_is_alone(), 2);
    }
    check(system("true") == 0 && tk_is_alone(), 3);
    start_process();
    start_thread(&thread);
    start_process();
    check(!tk_is_alone(), 4);
    end_thread(thread);
}

static void processes_are_no_threads(void **state)
{
    run(start_processes);
}

static void start_many_processes(void)
{
    for (int i = 0; i < many_processes; i++)
        start_process();
}

static void miss_some(void *unused)
{
    pthread_t thread;
    be_asked();
    start_many_processes();
    check(tk_is_alone(), 2);
    start_many_processes();
    check(tk_is_alone(), 3);
    start_thread(&thread);
    start_many_processes();
    check(!tk_is_alone(), 4);
    end_thread(thread);
    start_many_processes();
    check(!tk_is_alone(), 5);
}

static void share(void *unused)
{
    be_asked();
    start_process();
    check(!tk_is_only_inside() && tk_may_be_only_inside(), 2);
    check(tk_is_alone() && tk_is_only_inside(), 3);
    tk_alone_share();
    check(!tk_is_only_inside() && !tk_may_be_only_inside(), 4);
    start_process();
    tk_alone_accept();
    check(tk_is_alone() && !tk_is_only_inside(), 5);
}

static void a_thread_of_the_library_that_takes_locks_counts_for_these(void **state)
{
    run(share);
}

static void look(void *unused)
{
    pthread_t thread;
    be_asked();
    if (pthread_create(&thread, NULL, look_inside, NULL) != 0)
        _exit(90);
    pthread_join(thread, NULL);
}

static void the_new_thread_is_not_the_only_one(void **state)
{
    run(look);
}

static void start_while_events_are_off(void *unused)
{
    pthread_t thread;
    be_asked();
    check(prctl(PR_TASK_PERF_EVENTS_DISABLE) == 0, 92);
    start_thread(&thread);
    check(!tk_is_only_inside() && !tk_is_alone(), 2);
    end_thread(thread);
}

static void a_client_that_disables_its_events_is_watched_all_the_same(void **state)
{
    run(start_while_events_are_off);
}

static void a_client_that_starts_many_processes_stays_alone(void **state)
{
    run(miss_some);
}

static sem_t to_start, has_started;

/* A thread that neither starts in the first one, nor is known. */
static void *start_unseen(void *unused)
{
    pthread_t thread;
    while (sem_wait(&to_start) != 0)
        continue;
    start_thread(&thread);
    sem_post(&has_started);
    pthread_join(thread, NULL);
    return NULL;
}

/* Whether the records alone decide after so many starts; else the thread that they lack is found.
 */
static void start_in_a_ring(size_t processes, bool records_decide)
{
    pthread_t helper;
    be_asked();
    sem_init(&to_start, 0, 0);
    sem_init(&has_started, 0, 0);
    check(pthread_create(&helper, NULL, start_unseen, NULL) == 0, 90);
    tk_alone_accept();
    sem_post(&to_start);
    while (sem_wait(&has_started) != 0)
        continue;
    for (size_t i = 0; i < processes; i++)
        start_process();
    check(tk_is_alone() == records_decide, 2);
    end_thread(helper);
}

enum { record_size = 32 };

static void start_almost_a_ring(void *unused)
{
    start_in_a_ring((size_t)sysconf(_SC_PAGESIZE) / record_size - 2, true);
}

static void start_a_ring(void *unused)
{
    start_in_a_ring((size_t)sysconf(_SC_PAGESIZE) / record_size - 1, false);
}

/* The kernel may be writing the next record, which overwrites the first. */
static void a_record_that_may_be_overwritten_now_is_not_believed(void **state)
{
    run(start_almost_a_ring);
    run(start_a_ring);
}

/* As many threads as before, but one is the client's. */
static void change_ours_for_theirs(void *unused)
{
    pthread_t ours, theirs;
    be_asked();
    start_thread(&ours);
    tk_alone_accept();
    start_many_processes();
    check(tk_is_alone(), 2);
    end_thread(ours);
    start_thread(&theirs);
    start_many_processes();
    check(!tk_is_alone(), 3);
    end_thread(theirs);
}

static void threads_are_not_merely_counted(void **state)
{
    run(change_ours_for_theirs);
}

static void start_ours(void *unused)
{
    pthread_t ours, theirs;
    be_asked();
    start_thread(&ours);
    tk_alone_accept();
    check(tk_is_alone(), 2);
    start_thread(&theirs);
    check(!tk_is_alone(), 3);
    sem_post(&to_end);
    end_thread(ours);
    pthread_join(theirs, NULL);
}

static void threads_of_the_library_do_not_count(void **state)
{
    run(start_ours);
}

static void open_too_late(void *unused)
{
    pthread_t thread;
    sem_init(&to_end, 0, 0);
    start_thread(&thread);
    tk_alone_open();
    check(!tk_is_alone(), 2);
    tk_alone_accept();
    check(!tk_is_alone(), 3);
    end_thread(thread);
}

static void only_the_first_thread_can_be_alone(void **state)
{
    run(open_too_late);
}

static void close_it(void *unused)
{
    be_asked();
    tk_alone_close();
    check(!tk_is_alone(), 3);
    tk_alone_accept();
    check(!tk_is_alone(), 4);
}

static void after_close_no_client_is_alone(void **state)
{
    run(close_it);
}

static void be_forbidden(void *unused)
{
    unit_forbid(SYS_perf_event_open);
    tk_alone_open();
    tk_alone_accept();
    check(!tk_is_alone(), 3);
}

static void without_kernel_reports_no_client_is_alone(void **state)
{
    run(be_forbidden);
}

/* A thread and an event each leave a mapping. Most jobs need neither, and close without accept. */
static unsigned mappings(void)
{
    unsigned count = 0;
    char line[4096];
    FILE *f = fopen("/proc/self/maps", "re");
    while (f && fgets(line, sizeof(line), f))
        count++;
    check(f && count > 0, 90);
    fclose(f);
    return count;
}

static void open_only(void *unused)
{
    unsigned before = mappings();
    tk_alone_open();
    check(mappings() == before, 2);
    tk_alone_close();
    tk_alone_accept(); /* too late */
    check(mappings() == before && !tk_is_alone(), 3);
}

static void nothing_is_recorded_before_it_is_needed(void **state)
{
    unit_assert_exit(open_only, NULL, 0);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(a_client_that_starts_a_thread_is_no_longer_alone),
    cmocka_unit_test(the_new_thread_is_not_the_only_one),
    cmocka_unit_test(a_client_that_disables_its_events_is_watched_all_the_same),
    cmocka_unit_test(processes_are_no_threads),
    cmocka_unit_test(a_thread_of_the_library_that_takes_locks_counts_for_these),
    cmocka_unit_test(a_client_that_starts_many_processes_stays_alone),
    cmocka_unit_test(a_record_that_may_be_overwritten_now_is_not_believed),
    cmocka_unit_test(threads_are_not_merely_counted),
    cmocka_unit_test(threads_of_the_library_do_not_count),
    cmocka_unit_test(only_the_first_thread_can_be_alone),
    cmocka_unit_test(after_close_no_client_is_alone),
    cmocka_unit_test(without_kernel_reports_no_client_is_alone),
    cmocka_unit_test(nothing_is_recorded_before_it_is_needed),
};

UNIT_MAIN(tests)
