/* SPDX-License-Identifier: BSD-3-Clause */
/* Unit tests of the launcher's pure parts: command line, line splitter, exit policy, output
 * queue. */
#include "config.h"

#include "spawner/util/byte_queue.h"
#include "spawner/util/launcher_clock.h"
#include "spawner/guard/oom.h"
#include "spawner/head/output.h"
#include "spawner/head/policy.h"
#include "spawner/iof/lines.h"
#include "spawner/run/options.h"
#include "spawner/server/owner.h"

#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

/* Wait statuses as the kernel makes them. */
#define EXITED(code)   ((code) << 8)
#define KILLED(signal) (signal)

static char why[256];

static bool parse(struct options *o, ...)
{
    static char *argv[16];
    int n = 0;
    va_list words;
    argv[n++] = "gasnetrun_ibv";
    va_start(words, o);
    while ((argv[n] = va_arg(words, char *)))
        n++;
    va_end(words);
    why[0] = 0;
    return options_parse(o, argv, why, sizeof(why));
}

static void options_spellings(void **state)
{
    struct options o;
    assert_true(parse(&o, "-n", "4", "prog", "-n", "7", NULL));
    assert_int_equal(o.ranks, 4);
    assert_string_equal(o.command[0], "prog");
    assert_string_equal(o.command[1], "-n");
    assert_true(parse(&o, "-np3", "-N", "1", "-c2", "-E", "A,B", "--", "-prog", NULL));
    assert_int_equal(o.ranks, 3);
    assert_int_equal(o.hosts, 1);
    assert_int_equal(o.cpus, 2);
    assert_string_equal(o.exported, "A,B");
    assert_string_equal(o.command[0], "-prog");
    assert_true(parse(&o, "-vvl", "-n12", "-spawner=local", "prog", NULL));
    assert_int_equal(o.verbose, 2);
    assert_true(o.label);
    assert_string_equal(o.spawner, "local");
    assert_true(parse(&o, "-t", "-k", "-n", "1", "prog", NULL));
    assert_true(o.dry_run && o.keep);
    assert_int_equal(o.verbose, 1);
    assert_true(parse(&o, "--help", NULL));
    assert_int_equal(o.wish, ACTION_HELP);
}

static void options_mistakes(void **state)
{
    struct options o;
    assert_false(parse(&o, NULL));
    assert_false(parse(&o, "-n", "2", NULL));
    assert_false(parse(&o, "-n", "0", "prog", NULL));
    assert_false(parse(&o, "-n", "-1", "prog", NULL));
    assert_false(parse(&o, "-n", "+1", "prog", NULL));
    assert_false(parse(&o, "-n", "", "prog", NULL));
    assert_false(parse(&o, "-n", "4294967297", "prog", NULL));
    assert_non_null(strstr(why, "4294967297"));
    assert_false(parse(&o, "-n", NULL));
    assert_false(parse(&o, "-n2", "-vq", "prog", NULL));
    assert_non_null(strstr(why, "-vq"));
}

/* --web: a number behind it is a port, and not a job. */
static void options_of_pages(void **state)
{
    struct options o;
    assert_true(parse(&o, "--report", "a.html", "-n", "2", "prog", NULL));
    assert_string_equal(o.report, "a.html");
    assert_int_equal(o.wish, ACTION_RUN);
    assert_true(parse(&o, "--report=b.html", "-n", "2", "prog", "--report", NULL));
    assert_string_equal(o.report, "b.html");
    assert_false(parse(&o, "--report", NULL));
    assert_false(parse(&o, "--report", "a.html", "--top", NULL));
    assert_true(parse(&o, "--top", "--web", NULL));
    assert_true(o.web && o.port == 0 && !o.job);
    assert_true(parse(&o, "--top", "77", "--web", "8080", NULL));
    assert_string_equal(o.job, "77");
    assert_int_equal(o.port, 8080);
    assert_true(parse(&o, "-top", "-web=65535", "77", NULL));
    assert_string_equal(o.job, "77");
    assert_int_equal(o.port, 65535);
    assert_true(parse(&o, "--web", "--top", "77", NULL));
    assert_int_equal(o.port, 0);
    assert_false(parse(&o, "--top", "--web", "65536", NULL));
    assert_false(parse(&o, "--top", "--web=", NULL));
    assert_false(parse(&o, "--top", "--web=x", NULL));
    assert_false(parse(&o, "--top", "--website", NULL));
    assert_false(parse(&o, "--web", "-n", "2", "prog", NULL));
    assert_false(parse(&o, "--top", "--web", "--once", NULL));
}

static void check_ready(struct bytes *ready, const char *wanted)
{
    assert_int_equal(ready->length, strlen(wanted));
    if (ready->length)
        assert_memory_equal(bytes_front(ready), wanted, ready->length);
    bytes_consume(ready, ready->length);
}

static void put(struct lines *l, const char *text, struct bytes *ready)
{
    lines_put(l, text, strlen(text), ready);
}

static void lines_are_whole(void **state)
{
    struct lines l = {.rank = 3};
    struct bytes ready = {0};
    put(&l, "a", &ready);
    check_ready(&ready, "");
    put(&l, "b\n\ncd\nef", &ready);
    check_ready(&ready, "ab\n\ncd\n");
    put(&l, "\n", &ready);
    check_ready(&ready, "ef\n");
    put(&l, "rest", &ready);
    lines_end(&l, &ready);
    check_ready(&ready, "rest");
    lines_end(&l, &ready);
    check_ready(&ready, "");
    bytes_free(&l.held);
    bytes_free(&ready);
}

static void lines_have_labels(void **state)
{
    struct lines l = {.rank = 17, .label = true};
    struct bytes ready = {0};
    put(&l, "a\nb", &ready);
    check_ready(&ready, "[17] a\n");
    put(&l, "c\n\n", &ready);
    check_ready(&ready, "[17] bc\n[17] \n");
    put(&l, "d", &ready);
    lines_end(&l, &ready);
    check_ready(&ready, "[17] d");
    bytes_free(&l.held);
    bytes_free(&ready);
}

/* A label belongs to the beginning of a line, also when the line comes out in pieces. */
static void lines_have_a_limit(void **state)
{
    struct lines l = {.rank = 1, .label = true};
    struct bytes ready = {0};
    char *text = malloc(LINES_MAX + 2);
    memset(text, 'x', LINES_MAX + 1);
    text[LINES_MAX + 1] = 0;
    put(&l, text, &ready);
    assert_int_equal(ready.length, LINES_MAX + 1 + 4);
    bytes_consume(&ready, ready.length);
    put(&l, "y\nz\n", &ready);
    check_ready(&ready, "y\n[1] z\n");
    free(text);
    bytes_free(&l.held);
    bytes_free(&ready);
}

static void raw_lines_do_not_wait(void **state)
{
    struct lines l = {.raw = true};
    struct bytes ready = {0};
    put(&l, "prompt> ", &ready);
    check_ready(&ready, "prompt> ");
    bytes_free(&ready);
}

static struct policy policy;
static char text[512];

static void ranks_join(uint32_t n, uint32_t joined)
{
    assert_true(policy_init(&policy, n, 1000, 0));
    for (uint32_t r = 0; r < n; r++)
        policy_launched(&policy, r, 100 + (int)r);
    for (uint32_t r = 0; r < joined; r++)
        policy_connected(&policy, r, 0);
}

static void verdict(enum policy_cause cause, uint32_t culprit, int status)
{
    assert_true(policy_must_end(&policy, 10000));
    assert_false(policy_must_end(&policy, 10001));
    assert_int_equal(policy.cause, cause);
    assert_int_equal(policy.culprit, culprit);
    assert_int_equal(policy_status(&policy), status);
    assert_true(policy_deadline(&policy) == CLOCK_NEVER);
    policy_free(&policy);
}

static void a_good_job(void **state)
{
    ranks_join(2, 2);
    for (uint32_t r = 0; r < 2; r++) {
        policy_finalized(&policy, r);
        policy_exited(&policy, r, EXITED(0), 5);
        assert_false(policy_must_end(&policy, 5));
    }
    assert_int_equal(policy_status(&policy), 0);
    assert_false(policy_sentence(&policy, true, text, sizeof(text)));
    policy_free(&policy);
}

static void a_rank_killed_for_lack_of_memory_is_named(void **state)
{
    static const char cause[] = "out of memory:\nfull";
    ranks_join(3, 3);
    policy_oom_killed(&policy, 1, cause, sizeof(cause) - 1);
    policy_oom_killed(&policy, 2, "another", 7);
    policy_exited(&policy, 1, KILLED(SIGKILL), 100);
    policy_exited(&policy, 2, KILLED(SIGKILL), 101);
    assert_true(policy_must_end(&policy, 100 + POLICY_WINDOW_MS));
    assert_true(policy_sentence(&policy, false, text, sizeof(text)));
    assert_string_equal(text, "rank 1 (pid 101) was killed by signal 9 (SIGKILL: Killed): out of "
                              "memory: full");
    assert_int_equal(policy_status(&policy), 137);
    policy_free(&policy);

    /* Another rank's death is another cause. */
    ranks_join(3, 3);
    policy_exited(&policy, 0, KILLED(SIGSEGV), 100);
    policy_oom_killed(&policy, 1, cause, sizeof(cause) - 1);
    policy_exited(&policy, 1, KILLED(SIGKILL), 101);
    assert_true(policy_must_end(&policy, 100 + POLICY_WINDOW_MS));
    assert_true(policy_sentence(&policy, false, text, sizeof(text)));
    assert_null(strstr(text, "memory"));
    policy_free(&policy);
}

/* A file system of a few files, below a directory of its own. */
static char fake_root[64];

static void fake_file(const char *name, const char *content)
{
    char path[256];
    snprintf(path, sizeof(path), "%s%s", fake_root, name);
    for (char *c = path + strlen(fake_root) + 1; *c; c++)
        if (*c == '/') {
            *c = 0;
            mkdir(path, 0755);
            *c = '/';
        }
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
}

static void fake_system(void)
{
    strcpy(fake_root, "/tmp/trunkline-unit-XXXXXX");
    assert_non_null(mkdtemp(fake_root));
    fake_file("/proc/vmstat", "nr_free_pages 7\noom_kill 5\n");
}

static void fake_system_ends(void)
{
    char command[128];
    snprintf(command, sizeof(command), "rm -rf '%s'", fake_root);
    assert_int_equal(system(command), 0);
}

static void kills_of_the_cgroup_are_counted_from_the_start(void **state)
{
    struct oom_watch s;
    fake_system();
    fake_file("/proc/self/cgroup", "0::/job/a\n");
    fake_file("/sys/fs/cgroup/job/a/memory.events", "oom 9\noom_kill 3\noom_group_kill 1\n");
    fake_file("/sys/fs/cgroup/job/a/memory.max", "max\n");
    fake_file("/sys/fs/cgroup/job/memory.max", "1000\n");
    fake_file("/sys/fs/cgroup/memory.max", "2000\n");
    oom_open(&s, fake_root);
    assert_false(oom_explain(&s, text, sizeof(text)));
    fake_file("/sys/fs/cgroup/job/a/memory.events", "oom 11\noom_kill 5\noom_group_kill 1\n");
    fake_file("/proc/vmstat", "oom_kill 7\n");
    assert_true(oom_explain(&s, text, sizeof(text)));
    assert_non_null(strstr(text, "out of memory: the kernel killed 2 process(es) of the job's"));
    assert_non_null(strstr(text, "1000 bytes"));
    assert_non_null(strstr(text, "/sys/fs/cgroup/job/memory.max"));
    fake_system_ends();
}

/* In a container the group may be known by a name of outside. */
static void version_1_and_a_group_that_is_not_there(void **state)
{
    struct oom_watch s;
    fake_system();
    fake_file("/proc/self/cgroup", "4:memory:/outside/x\n0::/\n");
    fake_file("/sys/fs/cgroup/memory/memory.oom_control",
              "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
    fake_file("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
    oom_open(&s, fake_root);
    assert_false(oom_explain(&s, text, sizeof(text)));
    fake_file("/sys/fs/cgroup/memory/memory.oom_control",
              "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
    assert_true(oom_explain(&s, text, sizeof(text)));
    assert_string_equal(text, "out of memory: the kernel killed 1 process(es) of the job's cgroup");
    fake_system_ends();
}

static void kills_of_the_host_are_only_a_hint(void **state)
{
    struct oom_watch s;
    fake_system();
    oom_open(&s, fake_root);
    assert_false(oom_explain(&s, text, sizeof(text)));
    fake_file("/proc/vmstat", "nr_free_pages 7\noom_kill 6\n");
    assert_true(oom_explain(&s, text, sizeof(text)));
    assert_non_null(strstr(text, "the host may be out of memory: the kernel killed 1 process(es)"));
    fake_system_ends();
}

static void the_window(void **state)
{
    ranks_join(3, 3);
    policy_exited(&policy, 1, EXITED(3), 100);
    assert_false(policy_must_end(&policy, 100));
    assert_true(policy_deadline(&policy) == 100 + POLICY_WINDOW_MS);
    assert_false(policy_must_end(&policy, 100 + POLICY_WINDOW_MS - 1));
    assert_true(policy_must_end(&policy, 100 + POLICY_WINDOW_MS));
    assert_true(policy_sentence(&policy, false, text, sizeof(text)));
    assert_string_equal(text, "rank 1 (pid 101) exited with status 3; ending the other 2");
    policy_exited(&policy, 0, KILLED(SIGTERM), 101 + POLICY_WINDOW_MS); /* our own doing */
    assert_int_equal(policy_status(&policy), 3);
    policy_free(&policy);
}

/* The same status from all, one after the other: no rank is killed for it. */
static void ranks_that_leave_in_order_have_time(void **state)
{
    ranks_join(2, 2);
    policy_finalized(&policy, 0);
    policy_exited(&policy, 0, EXITED(3), 100);
    assert_true(policy_deadline(&policy) ==
                100 + POLICY_FIRST_LEAVES_MS); /* the other may be stuck */
    policy_finalized(&policy, 1);
    assert_true(policy_deadline(&policy) == 100 + POLICY_LEAVING_MS);
    assert_false(policy_must_end(&policy, 100 + POLICY_LEAVING_MS - 1));
    policy_exited(&policy, 1, EXITED(3), 100 + POLICY_LEAVING_MS - 1);
    assert_true(policy_must_end(&policy, 100 + POLICY_LEAVING_MS - 1));
    assert_false(policy_sentence(&policy, false, text, sizeof(text)));
    assert_int_equal(policy_status(&policy), 3);
    policy_free(&policy);
}

/* Ranks that leave with 0 tell it when they have ended, so the head asks their guards, once. */
static void ranks_that_leave_with_zero_are_asked_for(void **state)
{
    ranks_join(3, 3);
    assert_false(policy_wants_marks(&policy));
    policy_finalized(&policy, 0);
    policy_exited(&policy, 0, EXITED(0), 99);
    assert_false(policy_wants_marks(&policy));
    policy_finalized(&policy, 1);
    policy_exited(&policy, 1, EXITED(3), 100);
    assert_true(policy_wants_marks(&policy));
    assert_false(policy_wants_marks(&policy));
    policy_finalized(&policy, 2);
    assert_true(policy_deadline(&policy) == 100 + POLICY_LEAVING_MS);
    policy_free(&policy);

    ranks_join(2, 2);
    policy_exited(&policy, 0, EXITED(3), 100); /* not in order */
    assert_false(policy_wants_marks(&policy));
    policy_free(&policy);
}

/* The job's, of two ranks that leave in order with these. */
static int status_of_two(int first, int second)
{
    ranks_join(2, 2);
    policy_finalized(&policy, 0);
    policy_finalized(&policy, 1);
    policy_exited(&policy, 0, EXITED(first), 100);
    policy_exited(&policy, 1, EXITED(second), 101);
    assert_true(policy_must_end(&policy, 101));
    int status = policy_status(&policy);
    policy_free(&policy);
    return status;
}

static void of_ranks_that_leave_in_order_the_largest_code_counts(void **state)
{
    assert_int_equal(status_of_two(3, 9), 9);
    assert_int_equal(status_of_two(9, 3), 9);
    assert_int_equal(status_of_two(0, 9), 9);
    ranks_join(2, 2);
    policy_exited(&policy, 0, EXITED(3), 100); /* this rank fails, independently of the other */
    policy_finalized(&policy, 1);
    policy_exited(&policy, 1, EXITED(9), 100);
    assert_int_equal(policy_status(&policy), 3);
    policy_free(&policy);
}

static void no_window_when_no_rank_is_left(void **state)
{
    ranks_join(2, 0);
    policy_exited(&policy, 0, EXITED(1), 0);
    assert_false(policy_must_end(&policy, 0));
    policy_exited(&policy, 1, EXITED(2), 0);
    assert_true(policy_must_end(&policy, 0));
    assert_false(policy_sentence(&policy, false, text, sizeof(text)));
    assert_int_equal(policy_status(&policy), 1);
    policy_free(&policy);
}

/* All is known, as when no rank could be started: the window is over. */
static void no_window_when_nothing_more_will_come(void **state)
{
    ranks_join(2, 0);
    policy_launcher_failed(&policy, "no room", 7, 100);
    assert_false(policy_must_end(&policy, 100));
    policy_close(&policy);
    assert_true(policy_must_end(&policy, 100));
    assert_true(policy_sentence(&policy, false, text, sizeof(text)));
    assert_string_equal(text, "no room");
    policy_free(&policy);
    ranks_join(2, 1);
    policy_close(&policy); /* and all ranks succeeded */
    assert_false(policy_must_end(&policy, 100));
    policy_free(&policy);
}

static void a_death_explains_an_abort(void **state)
{
    ranks_join(3, 3);
    policy_aborted(&policy, 0, 9, "peer lost", 9, 0);
    policy_exited(&policy, 0, EXITED(9), 1);
    policy_exited(&policy, 2, KILLED(SIGSEGV), 2);
    policy_exited(&policy, 1, KILLED(SIGBUS), 3);
    verdict(CAUSE_SIGNAL, 2, 128 + SIGSEGV);
}

static void says_it_lost(uint32_t rank, uint32_t peer, int64_t now)
{
    char words[40];
    int length = snprintf(words, sizeof(words), "peer %u unreachable", (unsigned)peer);
    policy_aborted(&policy, rank, 1, words, (size_t)length, now);
}

/* In either order, and at any moment within that time. */
static void the_end_of_a_lost_rank_explains_the_others(void **state)
{
    ranks_join(3, 3);
    says_it_lost(0, 2, 100);
    assert_true(policy_deadline(&policy) == 100 + POLICY_UNREACHABLE_MS);
    policy_exited(&policy, 0, EXITED(1), 300);
    says_it_lost(1, 0, 310); /* it has gone meanwhile */
    policy_exited(&policy, 1, EXITED(1), 510);
    assert_false(policy_must_end(&policy, 100 + POLICY_UNREACHABLE_MS - 1));
    policy_exited(&policy, 2, EXITED(255), 100 + POLICY_UNREACHABLE_MS - 1);
    assert_true(policy_sentence(&policy, false, text, sizeof(text)));
    assert_non_null(strstr(text, "rank 2 (pid 102) exited with status 255"));
    verdict(CAUSE_EXIT, 2, 255);

    ranks_join(3, 3); /* one rank leaves because of it, and does not report it */
    policy_exited(&policy, 0, EXITED(1), 100);
    says_it_lost(1, 2, 101);
    policy_exited(&policy, 2, KILLED(SIGKILL), 102 + POLICY_WINDOW_MS);
    verdict(CAUSE_SIGNAL, 2, 128 + SIGKILL);

    ranks_join(3, 3);
    policy_exited(&policy, 0, EXITED(1), 100);
    policy_exited(&policy, 2, EXITED(0), 101);
    says_it_lost(1, 2, 102);
    verdict(CAUSE_UNFINISHED, 2, 1);

    ranks_join(3, 3);
    policy_exited(&policy, 2, EXITED(255), 100);
    policy_exited(&policy, 0, EXITED(1), 101);
    says_it_lost(1, 2, 102);
    says_it_lost(0, 1, 103);
    verdict(CAUSE_EXIT, 2, 255);
}

/* The verdict after an abort of rank 0, which has lost rank 2, and the late end of rank 2 */
static void late_end(int wait_status, int64_t after_ms, int status)
{
    static const struct job job = {.grace_ms = 3000};
    const int64_t decided = 100 + POLICY_UNREACHABLE_MS;
    ranks_join(3, 3);
    policy.job = &job;
    says_it_lost(0, 2, 100);
    assert_true(policy_must_end(&policy, decided));
    assert_false(policy_is_corrected(&policy));
    assert_int_equal(policy_status(&policy), 1);
    policy_exited(&policy, 1, KILLED(SIGTERM), decided + 1);
    policy_exited(&policy, 2, wait_status, decided + after_ms);
    assert_false(policy_must_end(&policy, decided + after_ms));
    assert_int_equal(policy_status(&policy), status);
    assert_true(policy_is_corrected(&policy) == (status != 1));
    assert_false(policy_is_corrected(&policy));
    assert_true(policy_sentence(&policy, false, text, sizeof(text)) == (status != 1));
    policy_free(&policy);
}

/* waitpid() returns a killed rank after the decision. */
static void a_late_death_corrects_the_verdict(void **state)
{
    late_end(KILLED(SIGKILL), 2999, 137);
    assert_string_equal(text, "rank 2 (pid 102) was killed by signal 9 (SIGKILL: Killed)");
    late_end(KILLED(SIGSEGV), 1, 139);
    late_end(KILLED(SIGTERM), 1, 1); /* ours */
    late_end(KILLED(SIGKILL), 3000, 1);
    late_end(EXITED(3), 1, 1);

    ranks_join(3, 3); /* it may have crashed because of SIGTERM */
    policy_aborted(&policy, 0, 1, "", 0, 100);
    assert_true(policy_must_end(&policy, 100 + POLICY_WINDOW_MS));
    policy_exited(&policy, 2, KILLED(SIGSEGV), 101 + POLICY_WINDOW_MS);
    assert_int_equal(policy_status(&policy), 1);
    policy_free(&policy);

    static const struct job job = {.grace_ms = 3000};
    for (int hurried = 0; hurried < 2; hurried++) { /* a SIGKILL that is ours or not */
        ranks_join(3, 3);
        policy.job = &job;
        policy_aborted(&policy, 0, 1, "", 0, 100);
        assert_true(policy_must_end(&policy, 100 + POLICY_WINDOW_MS));
        if (hurried)
            policy_user_signal(&policy, SIGINT);
        policy_exited(&policy, 2, KILLED(SIGKILL), 101 + POLICY_WINDOW_MS);
        assert_int_equal(policy_status(&policy), hurried ? 1 : 137);
        policy_free(&policy);
    }
}

static void a_lost_rank_that_lives_is_not_waited_for_long(void **state)
{
    ranks_join(2, 2);
    says_it_lost(0, 1, 100);
    assert_false(policy_must_end(&policy, 100 + POLICY_UNREACHABLE_MS - 1));
    assert_true(policy_must_end(&policy, 100 + POLICY_UNREACHABLE_MS));
    assert_false(policy_sentence(&policy, false, text, sizeof(text))); /* rank 0 reported it */
    assert_true(policy_sentence(&policy, true, text, sizeof(text)));
    policy_free(&policy);

    ranks_join(2, 2); /* the cable is out, and both ranks report it */
    says_it_lost(0, 1, 100);
    says_it_lost(1, 0, 120);
    assert_true(policy_deadline(&policy) == 100 + POLICY_WINDOW_MS);
    verdict(CAUSE_ABORT, 0, 1);

    ranks_join(2, 2); /* nor a rank that says good-bye, nor an invalid message */
    policy_finalized(&policy, 1);
    says_it_lost(0, 1, 100);
    assert_true(policy_deadline(&policy) == 100 + POLICY_WINDOW_MS);
    policy_free(&policy);
    ranks_join(2, 2);
    says_it_lost(0, 2, 100);
    policy_aborted(&policy, 1, 1, "peer 0 unreachable, it seems", 28, 100);
    assert_true(policy_deadline(&policy) == 100 + POLICY_WINDOW_MS);
    policy_free(&policy);
}

static void abort_codes(void **state)
{
    static const struct {
        int code, status;
    } cases[] = {{0, 0}, {1, 1}, {255, 255}, {256, 1}, {-1, 255}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        ranks_join(2, 2);
        policy_aborted(&policy, 1, cases[i].code, "", 0, 0);
        policy_exited(&policy, 1, EXITED(77), 1);
        verdict(CAUSE_ABORT, 1, cases[i].status);
    }
}

static void abort_words_stay_on_one_line(void **state)
{
    ranks_join(2, 2);
    policy_aborted(&policy, 1, 2, "a\nb\x1b\n", 5, 0);
    assert_true(policy_sentence(&policy, false, text, sizeof(text)));
    assert_string_equal(text, "rank 1 (pid 101) aborted the job with status 2: a b");
    policy_free(&policy);
}

static void leaving_without_finalize(void **state)
{
    ranks_join(2, 2);
    policy_exited(&policy, 1, EXITED(0), 0);
    verdict(CAUSE_UNFINISHED, 1, 1);

    ranks_join(2, 2); /* all have joined: START_TIMEOUT no longer applies */
    policy_finalized(&policy, 0);
    policy_exited(&policy, 1, EXITED(0), 0);
    assert_false(policy_must_end(&policy, 10000));
    policy_free(&policy);
}

static void leaving_before_init(void **state)
{
    ranks_join(3, 1);
    policy_exited(&policy, 2, EXITED(0), 0);
    verdict(CAUSE_ABSENT, 2, 1);

    ranks_join(3, 0);
    policy_exited(&policy, 2, EXITED(0), 0);
    assert_false(policy_must_end(&policy, 500));
    policy_connected(&policy, 0, 500);
    assert_true(policy_must_end(&policy, 600));
    assert_int_equal(policy.culprit, 2);
    policy_free(&policy);
}

/* A connection over loopback from a socket of `family` to a listener of `listen_family`; the
 * server's end in `server`. False when this host has no such thing. */
static bool connect_over_loopback(int listen_family, int family, int *client, int *server)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6};
    struct sockaddr_in four = {.sin_family = AF_INET};
    struct sockaddr *any = (struct sockaddr *)&six, *to = (struct sockaddr *)&six;
    socklen_t any_size = sizeof(six), to_size = sizeof(six), size = sizeof(six);
    int listener = socket(listen_family, SOCK_STREAM | SOCK_CLOEXEC, 0), off = 0;
    in_port_t port;

    if (listener < 0)
        return false;
    if (listen_family == AF_INET) {
        any = (struct sockaddr *)&four;
        any_size = sizeof(four);
    } else {
        setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
    }
    bool well = bind(listener, any, any_size) == 0 && listen(listener, 1) == 0 &&
                getsockname(listener, any, &size) == 0;
    port = listen_family == AF_INET ? four.sin_port : six.sin6_port;
    if (family == AF_INET) {
        four = (struct sockaddr_in){AF_INET, port, {htonl(INADDR_LOOPBACK)}, {0}};
        to = (struct sockaddr *)&four;
        to_size = sizeof(four);
    } else {
        six = (struct sockaddr_in6){
            .sin6_family = AF_INET6, .sin6_port = port, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    }
    *client = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    well = well && connect(*client, to, to_size) == 0;
    *server = well ? accept(listener, NULL, NULL) : -1;
    close(listener);
    if (*server < 0)
        close(*client);
    return *server >= 0;
}

static void a_connection_has_an_owner(void **state)
{
    static const int ways[][2] = {{AF_INET, AF_INET}, {AF_INET6, AF_INET6}, {AF_INET6, AF_INET}};
    for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
        int client, server;
        uid_t uid = (uid_t)-1, by_proc = (uid_t)-1;
        if (!connect_over_loopback(ways[i][0], ways[i][1], &client, &server)) {
            assert_int_not_equal(i, 0); /* without IPv6 only the first works */
            continue;
        }
        assert_true(owner_of_peer(server, &uid));
        assert_int_equal(uid, geteuid());
        assert_true(owner_by_proc(server, &by_proc));
        assert_int_equal(by_proc, geteuid());
        /* The owner's, not the caller's. */
        if (geteuid() == 0 && fchown(client, 65534, (gid_t)-1) == 0) {
            assert_true(owner_of_peer(server, &uid));
            assert_int_equal(uid, 65534);
            assert_true(owner_by_proc(server, &by_proc));
            assert_int_equal(by_proc, 65534);
        }
        close(client);
        close(server);
    }
    assert_false(owner_of_peer(STDIN_FILENO, &(uid_t){0}));
}

static void joining_late(void **state)
{
    ranks_join(3, 2);
    assert_false(policy_must_end(&policy, 999));
    assert_true(policy_deadline(&policy) == 1000);
    assert_false(policy_must_end(&policy, 1000)); /* the window */
    assert_true(policy_sentence(&policy, false, text, sizeof(text)));
    assert_non_null(strstr(text, "rank 2 (pid 102) has not joined the job 1 s after the launcher"));
    verdict(CAUSE_LATE, 2, 1);

    ranks_join(3, 3);
    assert_false(policy_must_end(&policy, 5000));
    policy_free(&policy);

    ranks_join(3, 0); /* no rank has joined */
    assert_true(policy_deadline(&policy) == 1000);
    policy_was_stopped(&policy, 300);
    assert_true(policy_deadline(&policy) == 1300);
    assert_false(policy_must_end(&policy, 1299));
    assert_false(policy_must_end(&policy, 1300)); /* the window */
    assert_true(policy_sentence(&policy, false, text, sizeof(text)));
    assert_non_null(strstr(text, "rank 0 (pid 100) and 2 others have not joined the job 1 s"));
    verdict(CAUSE_LATE, 0, 1);

    assert_true(policy_init(&policy, 3, 1000, 0)); /* and no rank was started */
    assert_false(policy_must_end(&policy, 1000));
    assert_true(policy_sentence(&policy, false, text, sizeof(text)));
    assert_non_null(strstr(text, "no rank could be started within 1 s"));
    verdict(CAUSE_LATE, 0, 1);

    assert_true(policy_init(&policy, 3, 0, 0)); /* no limit */
    assert_true(policy_deadline(&policy) == CLOCK_NEVER);
    policy_free(&policy);
}

static void the_user_does_not_wait(void **state)
{
    ranks_join(2, 2);
    policy_exited(&policy, 0, EXITED(1), 5);
    policy_user_signal(&policy, SIGINT);
    assert_true(policy_must_end(&policy, 5));
    assert_int_equal(policy_status(&policy), 130);
    policy_free(&policy);
}

/* The status of the last rank of a job is reported when the rank may not know the reason itself. */
static bool is_reported(bool joined, bool finalized)
{
    ranks_join(1, joined);
    if (finalized)
        policy_finalized(&policy, 0);
    policy_exited(&policy, 0, EXITED(1), 5);
    assert_true(policy_must_end(&policy, 5));
    assert_int_equal(policy_status(&policy), 1);
    bool told = policy_sentence(&policy, false, text, sizeof(text));
    policy_free(&policy);
    return told;
}

static void a_rank_that_ends_silently_is_reported(void **state)
{
    assert_true(is_reported(true, false));
    assert_string_equal(text, "rank 0 (pid 100) exited with status 1 but without PMIx_Finalize");
    assert_false(is_reported(true, true));
    assert_false(is_reported(false, false));
}

static void the_signal_that_ended_the_job_is_reported_unless_typed(void **state)
{
    static const struct {
        int signal;
        bool is_reported;
    } cases[] = {{SIGTERM, true}, {SIGINT, false}, {SIGQUIT, false}, {SIGHUP, false}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        ranks_join(2, 2);
        policy_user_signal(&policy, cases[i].signal);
        assert_true(policy_must_end(&policy, 5));
        assert_true(policy_sentence(&policy, false, text, sizeof(text)) == cases[i].is_reported);
        policy_free(&policy);
    }
}

static void strange_news(void **state)
{
    ranks_join(2, 2);
    policy_exited(&policy, 2, EXITED(1), 0);
    policy_aborted(&policy, UINT32_MAX, 1, "", 0, 0);
    policy_connected(&policy, 2, 0);
    policy_finalized(&policy, 99);
    assert_false(policy_must_end(&policy, 10));
    policy_launcher_failed(&policy, "gone", 4, 20);
    verdict(CAUSE_LAUNCHER, 0, 1);
}

/* Replaces standard output by a pipe during a test. */
static void unfinished_lines_are_separated(void **state)
{
    struct output o;
    int saved = dup(STDOUT_FILENO), ends[2];
    char got[64];
    assert_int_equal(pipe(ends), 0);
    output_init(&o);
    output_add(&o, STDOUT_FILENO, 0, "a", 1);
    output_add(&o, STDOUT_FILENO, 0, "b", 1);
    output_add(&o, STDOUT_FILENO, 1, "c\n", 2);
    output_add(&o, STDOUT_FILENO, 2, "d", 1);
    output_add(&o, 7, 2, "nowhere", 7);
    assert_int_equal(output_waits_for(&o), STDOUT_FILENO);
    fflush(stdout);
    dup2(ends[1], STDOUT_FILENO);
    unsigned broken = output_write(&o);
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(ends[1]);
    assert_int_equal(broken, 0);
    assert_int_equal(o.length, 0);
    assert_int_equal(output_waits_for(&o), -1);
    assert_int_equal(read(ends[0], got, sizeof(got)), 6);
    assert_memory_equal(got, "ab\nc\nd", 6);
    close(ends[0]);
}

static void bytes_keep_order(void **state)
{
    struct bytes b = {0};
    uint8_t next_in = 0, next_out = 0;
    for (int round = 0; round < 2000; round++) {
        for (int i = 0; i < round % 97; i++, next_in++)
            bytes_append(&b, &next_in, 1);
        size_t take = b.length < (size_t)(round % 89) ? b.length : (size_t)(round % 89);
        for (size_t i = 0; i < take; i++, next_out++)
            assert_int_equal(bytes_front(&b)[i], next_out);
        bytes_consume(&b, take);
    }
    bytes_free(&b);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_spellings),
        cmocka_unit_test(options_mistakes),
        cmocka_unit_test(options_of_pages),
        cmocka_unit_test(a_rank_killed_for_lack_of_memory_is_named),
        cmocka_unit_test(kills_of_the_cgroup_are_counted_from_the_start),
        cmocka_unit_test(version_1_and_a_group_that_is_not_there),
        cmocka_unit_test(kills_of_the_host_are_only_a_hint),
        cmocka_unit_test(lines_are_whole),
        cmocka_unit_test(lines_have_labels),
        cmocka_unit_test(lines_have_a_limit),
        cmocka_unit_test(raw_lines_do_not_wait),
        cmocka_unit_test(a_good_job),
        cmocka_unit_test(the_window),
        cmocka_unit_test(ranks_that_leave_in_order_have_time),
        cmocka_unit_test(ranks_that_leave_with_zero_are_asked_for),
        cmocka_unit_test(of_ranks_that_leave_in_order_the_largest_code_counts),
        cmocka_unit_test(no_window_when_no_rank_is_left),
        cmocka_unit_test(no_window_when_nothing_more_will_come),
        cmocka_unit_test(a_death_explains_an_abort),
        cmocka_unit_test(the_end_of_a_lost_rank_explains_the_others),
        cmocka_unit_test(a_late_death_corrects_the_verdict),
        cmocka_unit_test(a_lost_rank_that_lives_is_not_waited_for_long),
        cmocka_unit_test(abort_codes),
        cmocka_unit_test(abort_words_stay_on_one_line),
        cmocka_unit_test(leaving_without_finalize),
        cmocka_unit_test(leaving_before_init),
        cmocka_unit_test(joining_late),
        cmocka_unit_test(a_connection_has_an_owner),
        cmocka_unit_test(the_user_does_not_wait),
        cmocka_unit_test(a_rank_that_ends_silently_is_reported),
        cmocka_unit_test(the_signal_that_ended_the_job_is_reported_unless_typed),
        cmocka_unit_test(strange_news),
        cmocka_unit_test(unfinished_lines_are_separated),
        cmocka_unit_test(bytes_keep_order),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
