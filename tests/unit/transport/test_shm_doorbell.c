/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The doorbell's promises between two processes, with membarrier(2) and where a filter refuses it:
 * every sleeper is woken, at once and every time; no thread sleeps while a message waits; time-outs
 * end sleeps. test_shm_doorbell_model proves that no memory order loses a wake-up. */
#include "config.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/membarrier.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "base/mode.h"
#include "transport/doorbell.h"
#include "unit.h"

enum {
    rounds = 3000,
    long_patience =
        5 /* seconds: a lost wake-up takes so long, and the test then exceeds its deadline */
};

static struct shared {
    struct tk_doorbell bell[2];
    _Atomic uint32_t count[2]; /* the words that sleepers look at */
    _Atomic uint32_t slept;
} * shared;

static bool refuse_membarrier(void)
{
    struct sock_filter refuse[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = sizeof(refuse) / sizeof(refuse[0]), .filter = refuse};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static int open_bells(void **state)
{
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(shared != MAP_FAILED);
    return 0;
}

static int close_bells(void **state)
{
    return munmap(shared, sizeof(*shared));
}

struct watch {
    int of;
    uint32_t beyond;
};

static bool there_is_more(void *what)
{
    const struct watch *watch = what;
    return atomic_load_explicit(&shared->count[watch->of], memory_order_acquire) > watch->beyond;
}

static bool nothing(void *what)
{
    (void)what;
    return false;
}

static void sleep_until_more(int me, uint32_t beyond)
{
    struct watch watch = {me, beyond};
    while (!there_is_more(&watch))
        if (!tk_doorbell_sleep(&shared->bell[me], there_is_more, &watch,
                               long_patience * TK_SECOND) &&
            !there_is_more(&watch))
            _exit(3);
}

/* Each sleeps until the other has incremented its count, without spinning, so that it needs every
 * wake-up. */
static void ping_pong(int me)
{
    int you = !me;
    tk_doorbell_prepare();
    tk_doorbell_open(&shared->bell[me]);
    atomic_fetch_add(&shared->slept, 1);
    while (atomic_load(&shared->slept) < 2)
        sched_yield();
    tk_doorbell_attach(&shared->bell[you]);
    for (uint32_t i = 0; i < rounds; i++) {
        if (me == 1)
            sleep_until_more(me, i);
        atomic_store_explicit(&shared->count[you], i + 1, memory_order_release);
        tk_doorbell_ring(&shared->bell[you]);
        if (me == 0)
            sleep_until_more(me, i);
    }
}

/* The bits say which of the two may not use membarrier. */
static void ping_pong_with(void *refused)
{
    int mask = *(const int *)refused;
    int status;
    pid_t child = fork();
    if (child == 0) {
        if ((mask & 2) && !refuse_membarrier())
            _exit(4);
        ping_pong(1);
        _exit(0);
    }
    if ((mask & 1) && !refuse_membarrier())
        _exit(4);
    ping_pong(0);
    waitpid(child, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 5);
}

static void every_wake_up_arrives(void **state)
{
    for (int refused = 0; refused < 4; refused++) {
        memset(shared, 0, sizeof(*shared));
        unit_assert_exit(ping_pong_with, &refused, 0);
        bool fenced = shared->bell[0].word & TK_BELL_FENCED;
        assert_true(refused == 0 || fenced);
    }
}

static void what_is_there_keeps_awake(void **state)
{
    struct watch watch = {0, 0};
    tk_doorbell_prepare();
    tk_doorbell_open(&shared->bell[0]);
    shared->count[0] = 1;
    uint64_t before = tk_now();
    assert_true(tk_doorbell_sleep(&shared->bell[0], there_is_more, &watch, 10 * TK_SECOND));
    assert_true(tk_now() - before < 5 * TK_SECOND);
    assert_int_equal(shared->bell[0].word & TK_BELL_ASLEEP, 0);
}

static void patience_ends(void **state)
{
    tk_doorbell_prepare();
    tk_doorbell_open(&shared->bell[0]);
    uint64_t before = tk_now();
    assert_false(tk_doorbell_sleep(&shared->bell[0], nothing, NULL, TK_SECOND / 100));
    assert_true(tk_now() - before >= TK_SECOND / 100);
    assert_int_equal(shared->bell[0].word & TK_BELL_ASLEEP, 0);
}

static void without_sleepers_no_system_call_is_made(void **state)
{
    tk_doorbell_prepare();
    tk_doorbell_open(&shared->bell[0]);
    uint32_t word = shared->bell[0].word;
    tk_doorbell_ring(&shared->bell[0]);
    assert_int_equal(shared->bell[0].word, word);
}

static void wake(int signal_number)
{
    (void)signal_number;
}

static void a_signal_ends_sleep(void **state)
{
    struct sigaction action = {.sa_handler = wake};
    tk_doorbell_prepare();
    tk_doorbell_open(&shared->bell[0]);
    sigaction(SIGUSR1, &action, NULL);
    pid_t parent = getpid(), child = fork();
    if (child == 0) {
        while (!(atomic_load(&shared->bell[0].word) & TK_BELL_ASLEEP))
            sched_yield();
        for (int i = 0; i < 100 && atomic_load(&shared->count[0]) == 0; i++) {
            kill(parent, SIGUSR1);
            usleep(10000);
        }
        _exit(0);
    }
    uint64_t before = tk_now();
    assert_true(tk_doorbell_sleep(&shared->bell[0], nothing, NULL, 20 * TK_SECOND));
    shared->count[0] = 1;
    assert_true(tk_now() - before < 10 * TK_SECOND);
    assert_int_equal(shared->bell[0].word & TK_BELL_ASLEEP, 0);
    waitpid(child, NULL, 0);
}

static void *sleeping_thread(void *arg)
{
    struct watch watch = {0, 0};
    (void)arg;
    atomic_fetch_add(&shared->slept, 1);
    while (!there_is_more(&watch))
        if (!tk_doorbell_sleep(&shared->bell[0], there_is_more, &watch, long_patience * TK_SECOND))
            return "nobody woke a thread";
    return NULL;
}

static void all_threads_are_woken(void **state)
{
    pthread_t threads[4];
    void *failed;
    if (!TK_THREADED)
        skip();
    tk_doorbell_prepare();
    tk_doorbell_open(&shared->bell[0]);
    tk_doorbell_attach(&shared->bell[0]);
    for (int round = 0; round < 50; round++) {
        shared->count[0] = shared->slept = 0;
        for (int i = 0; i < 4; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, sleeping_thread, NULL), 0);
        while (atomic_load(&shared->slept) < 1u + round % 4)
            sched_yield();
        atomic_store_explicit(&shared->count[0], 1, memory_order_release);
        tk_doorbell_ring(&shared->bell[0]);
        for (int i = 0; i < 4; i++) {
            pthread_join(threads[i], &failed);
            assert_null(failed);
        }
    }
}

#define PROMISE(name) cmocka_unit_test_setup_teardown(name, open_bells, close_bells)

static const struct CMUnitTest tests[] = {
    PROMISE(every_wake_up_arrives), PROMISE(what_is_there_keeps_awake),
    PROMISE(patience_ends),         PROMISE(without_sleepers_no_system_call_is_made),
    PROMISE(a_signal_ends_sleep),   PROMISE(all_threads_are_woken),
};

UNIT_MAIN(tests)
