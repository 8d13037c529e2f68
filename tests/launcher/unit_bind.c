/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of the plan that binds ranks to CPUs, on machines that hwloc makes up, and of what a
 * start of a process costs; and that signals go to children only. */
#include "config.h"

#include "spawner/children/bind.h"
#include "spawner/children/children.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static struct bind_plan plan;
static char why[500], text[200];

/* Two sockets, each with three cores of two threads: CPUs 0-1, 2-3 ... 10-11. */
static const char two_sockets[] = "pack:2 core:3 pu:2";

static void on(const char *machine)
{
    bind_free(&plan);
    assert_int_equal(hwloc_topology_init(&plan.topology), 0);
    assert_int_equal(hwloc_topology_set_synthetic(plan.topology, machine), 0);
    assert_int_equal(hwloc_topology_load(plan.topology), 0);
}

static void only(const char *cpus)
{
    hwloc_cpuset_t set = hwloc_bitmap_alloc();
    hwloc_bitmap_list_sscanf(set, cpus);
    assert_int_equal(hwloc_topology_restrict(plan.topology, set, 0), 0);
    hwloc_bitmap_free(set);
}

static void gives(enum job_bind bind, uint32_t cpus, uint32_t ranks, const char *wanted)
{
    size_t used = 0;
    char one[64];
    if (!bind_make(&plan, bind, cpus, ranks, why, sizeof(why)))
        fail_msg("%s", why);
    for (uint32_t i = 0; i < ranks; i++) {
        bind_describe(&plan, i, one, sizeof(one));
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? " " : "", one);
    }
    assert_string_equal(text, wanted);
}

static void fails(enum job_bind bind, uint32_t cpus, uint32_t ranks, const char *sentence)
{
    assert_false(bind_make(&plan, bind, cpus, ranks, why, sizeof(why)));
    if (strncmp(why, sentence, strlen(sentence)) != 0)
        fail_msg("'%s'", why);
}

static void each_rank_gets_whole_cores(void **state)
{
    on(two_sockets);
    gives(JOB_BIND_CORE, 0, 3, "0-1 2-3 4-5");
    on(two_sockets);
    gives(JOB_BIND_CORE, 2, 6, "0-1 2-3 4-5 6-7 8-9 10-11");
    on(two_sockets);
    gives(JOB_BIND_CORE, 3, 3, "0-3 4-7 8-11");
    on("core:4 pu:1");
    gives(JOB_BIND_CORE, 2, 2, "0-1 2-3");
}

static void a_socket_is_shared_by_its_ranks(void **state)
{
    on(two_sockets);
    gives(JOB_BIND_SOCKET, 0, 3, "0-5 0-5 6-11");
    on(two_sockets);
    gives(JOB_BIND_SOCKET, 3, 4, "0-5 0-5 6-11 6-11");
    on("core:4 pu:1"); /* without a socket: the machine */
    gives(JOB_BIND_SOCKET, 0, 2, "0-3 0-3");
    on(two_sockets);
    gives(JOB_BIND_SOCKET, 0, 1, "0-5");
}

/* The CPUs that a cgroup or taskset leaves. */
static void cpus_that_may_not_be_used_are_not_there(void **state)
{
    on(two_sockets);
    only("1,4-6");
    gives(JOB_BIND_CORE, 1, 3, "1 4-5 6");
    on(two_sockets);
    only("1,4-6");
    gives(JOB_BIND_SOCKET, 0, 2, "1,4-5 6");
    on(two_sockets);
    only("1,4-6");
    fails(JOB_BIND_CORE, 1, 4, "4 processes with 1 CPU each need more than the 3 cores (4 CPUs)");
}

static void too_many_are_one_sentence(void **state)
{
    on(two_sockets);
    fails(JOB_BIND_CORE, 0, 7, "7 processes with 1 CPU each need more than the 6 cores (12 CPUs)");
    on(two_sockets);
    fails(JOB_BIND_CORE, 3, 4, "4 processes with 3 CPUs each");
    on(two_sockets);
    fails(JOB_BIND_SOCKET, 4, 4,
          "2 processes with 4 CPUs each do not fit socket 0, of which 6 CPUs");
    on(two_sockets);
    only("0");
    fails(JOB_BIND_CORE, 2, 1, "1 process with 2 CPUs each need more than the 1 core (1 CPUs)");
}

/* On the machine of this test. */
static void the_process_is_bound(void **state)
{
    cpu_set_t before, after;
    bind_free(&plan);
    assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
    assert_true(bind_load(&plan, why, sizeof(why)));
    assert_int_equal(hwloc_get_nbobjs_by_type(plan.topology, HWLOC_OBJ_PU), CPU_COUNT(&before));
    assert_true(bind_make(&plan, JOB_BIND_CORE, 1, 1, why, sizeof(why)));
    assert_true(bind_apply(&plan, 0));
    assert_int_equal(sched_getaffinity(0, sizeof(after), &after), 0);
    assert_int_equal(CPU_COUNT(&after), hwloc_bitmap_weight(plan.sets[0]));
    bind_free(&plan);
    assert_true(bind_load(&plan, why, sizeof(why))); /* what taskset has set counts */
    assert_int_equal(hwloc_get_nbobjs_by_type(plan.topology, HWLOC_OBJ_PU), CPU_COUNT(&after));
    assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
}

/* Microseconds of CPUs that children which have ended took. */
static long took(void)
{
    struct rusage u;
    assert_int_equal(getrusage(RUSAGE_CHILDREN, &u), 0);
    return (u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1000000L + u.ru_utime.tv_usec +
           u.ru_stime.tv_usec;
}

/* The least that one start took. */
static long least_start(const struct child_image *image, const int fds[3])
{
    enum { starts = 10 };
    char *const env[] = {NULL};
    long least = 0;
    for (int i = 0; i < starts; i++) {
        long before = took();
        int status;
        pid_t pid = child_start(image, 0, env, fds);
        assert_true(pid > 0);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_int_equal(status, 0);
        long now = took() - before;
        least = i == 0 || now < least ? now : least;
    }
    return least;
}

/* The guard has two pipes for each rank. A child of fork() copies and closes them all: 16000 took
 * several times as long as the rest of a start. */
static void a_start_costs_the_same_however_many_files_are_open(void **state)
{
    enum { many = 16000 };
    struct rlimit limit;
    static const int none[] = {0};
    char *const argv[] = {"true", NULL};
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), last = null;
    const int fds[] = {null, null, null};
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    struct child_image image = {
        .program = "/bin/true", .argv = argv, .files = limit, .ignored = none, .exec_report = null};
    limit.rlim_cur = limit.rlim_max;
    if (limit.rlim_max < many + 64 || setrlimit(RLIMIT_NOFILE, &limit) != 0)
        skip();
    long few = least_start(&image, fds);
    for (int i = 0; i < many; i++)
        assert_true((last = fcntl(null, F_DUPFD_CLOEXEC, 3)) >= 0);
    long much = least_start(&image, fds);
    print_message("%ld us with few files, %ld with %d\n", few, much, many);
    assert_true(much < 2 * few);
    for (int fd = null; fd <= last; fd++)
        close(fd);
    setrlimit(RLIMIT_NOFILE, &image.files);
}

/* A child that waits for a signal, in a process group of its own. */
static pid_t waiting_child(void)
{
    pid_t pid = fork();
    if (pid == 0)
        for (alarm(60);;)
            pause();
    assert_true(pid > 0 && setpgid(pid, pid) == 0);
    return pid;
}

static int end_of(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WTERMSIG(status);
}

/* Not to a process that has the pid of a former child. Our child stands for it in a child of ours.
 */
static void signals_go_to_children_only(void **state)
{
    pid_t child = waiting_child(), other = fork();
    int status;
    if (other == 0) {
        children_signal(&child, 1, SIGKILL);
        _exit(child_signal(child, 0) || grandchild_signal(child, getpid(), 0));
    }
    assert_int_equal(waitpid(other, &status, 0), other);
    assert_int_equal(status, 0);
    assert_false(child_signal(0, 0));
    assert_false(child_signal(-1, 0));
    assert_true(child_signal(child, SIGTERM));
    assert_int_equal(end_of(child), SIGTERM);
    assert_false(child_signal(child, 0));
}

static void groups_of_children_get_signals(void **state)
{
    pid_t pids[] = {0, waiting_child(), -1, waiting_child()};
    children_signal(pids, 4, SIGTERM);
    assert_int_equal(end_of(pids[1]), SIGTERM);
    assert_int_equal(end_of(pids[3]), SIGTERM);
    pids[1] = waiting_child();
    assert_false(grandchild_signal(pids[1], pids[3], SIGKILL));
    assert_true(grandchild_signal(pids[1], getpid(), SIGTERM));
    assert_int_equal(end_of(pids[1]), SIGTERM);
}

/* A kernel that keeps no list of children; the names of all other files are as they are. */
static bool lacks_list;

__attribute__((visibility("default"))) FILE *fopen(const char *path, const char *mode)
{
    int fd;
    if (lacks_list && strcmp(path, "/proc/thread-self/children") == 0) {
        errno = ENOENT;
        return NULL;
    }
    assert_int_equal(*mode, 'r');
    fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? NULL : fdopen(fd, mode);
}

/* The exit status is 0 if our one child is found, and gets the signal. */
static int find_and_end_child(void)
{
    pid_t child = waiting_child(), found = 0;
    int status;
    bool is_found = children_list(&found, 1, NULL, 0) == 1 && found == child &&
                    children_signal_all(SIGTERM, NULL, 0) == 1;
    if (!is_found)
        kill(child, SIGKILL);
    return waitpid(child, &status, 0) == child && is_found ? 0 : 1;
}

static void children_are_found(void **state)
{
    assert_int_equal(find_and_end_child(), 0);
    lacks_list = true;
    assert_int_equal(find_and_end_child(), 0);
    lacks_list = false;
}

/* As in a container that has the /proc of its host: pids differ. */
static void children_are_found_by_the_proc_of_others(void **state)
{
    int status;
    for (int round = 0; round < 2; round++) {
        pid_t first, outside = fork();
        lacks_list = round > 0;
        if (outside == 0) {
            if (unshare(CLONE_NEWPID) != 0)
                _exit(77);
            if ((first = fork()) == 0)
                _exit(find_and_end_child());
            _exit(waitpid(first, &status, 0) == first && status == 0 ? 0 : 1);
        }
        assert_int_equal(waitpid(outside, &status, 0), outside);
        lacks_list = false;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
            skip(); /* this user may not */
        assert_int_equal(status, 0);
    }
}

static int tear_down(void **state)
{
    bind_free(&plan);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_rank_gets_whole_cores),
        cmocka_unit_test(a_socket_is_shared_by_its_ranks),
        cmocka_unit_test(cpus_that_may_not_be_used_are_not_there),
        cmocka_unit_test(too_many_are_one_sentence),
        cmocka_unit_test(the_process_is_bound),
        cmocka_unit_test(a_start_costs_the_same_however_many_files_are_open),
        cmocka_unit_test(signals_go_to_children_only),
        cmocka_unit_test(groups_of_children_get_signals),
        cmocka_unit_test(children_are_found),
        cmocka_unit_test(children_are_found_by_the_proc_of_others),
    };
    return cmocka_run_group_tests(tests, NULL, tear_down);
}
