/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Cases of softgpu's tests: each runs in a process of its own, with options of its own, because the
 * library reads them once and a fork ends it. */
#ifndef SGPU_TEST_CASES_H
#define SGPU_TEST_CASES_H

#include <dirent.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct gpu_case {
    const char *name;
    void (*run)(void);
    const char *options, *faults;
    int signal; /* that ends it; 0: it ends by itself */
};

/* Accesses that must end the process, but without a sanitizer report. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "handle_segv=0";
}

const char *__tsan_default_options(void);
const char *__tsan_default_options(void)
{
    return "handle_segv=0:die_after_fork=0";
}

#ifndef CHECK /* that of softhca's harness */
#    define CHECK(condition)                                                                       \
        do {                                                                                       \
            if (!(condition)) {                                                                    \
                fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                    \
                _exit(1);                                                                          \
            }                                                                                      \
        } while (0)
#endif

/* For results of CUDA and HIP, which are integers */
#define GIVES(number, call)                                                                        \
    do {                                                                                           \
        int got_ = (int)(call);                                                                    \
        if (got_ != (int)(number)) {                                                               \
            fprintf(stderr, "%s:%d: %s gives %d, not %d\n", __FILE__, __LINE__, #call, got_,       \
                    (int)(number));                                                                \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)
#define GOOD(call) GIVES(0, call)

enum { SKIPPED = 77, CASE_SECONDS = 60 };

static inline uint32_t test_random(void)
{
    static uint64_t state = 12345;

    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33);
}

static inline void fill_random(unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        p[i] = (unsigned char)test_random();
}

static inline void sleep_ms(unsigned ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};

    nanosleep(&t, NULL);
}

static inline int count_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    int n = 0;

    while (readdir(d))
        n++;
    closedir(d);
    return n;
}

/* Runs a function in a child and returns its wait status. */
static inline int in_child(void (*run)(void *), void *argument)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        run(argument);
        _exit(0);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    return status;
}

static inline int gpu_case_run(const struct gpu_case *c)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        alarm(CASE_SECONDS);
        setenv("SOFTGPU", c->options ? c->options : "", 1);
        setenv("SOFTGPU_FAULT", c->faults ? c->faults : "", 1);
        c->run();
        _exit(0);
    }
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return 1;
    if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
        printf("%s: skipped\n", c->name);
        return SKIPPED;
    }
    if (c->signal != 0 ? WIFSIGNALED(status) && WTERMSIG(status) == c->signal : status == 0)
        return 0;
    fprintf(stderr, "%s: failed (wait status %#x)\n", c->name, (unsigned)status);
    return 1;
}

static inline int gpu_cases_run(const struct gpu_case *cases, size_t n)
{
    int failed = 0, skipped = 0;

    for (size_t i = 0; i < n; i++) {
        int status = gpu_case_run(&cases[i]);

        failed += status == 1;
        skipped += status == SKIPPED;
    }
    printf("%zu cases, %d failed, %d skipped\n", n, failed, skipped);
    return failed > 0 ? 1 : skipped > 0 ? SKIPPED : 0;
}

#define RUN_CASES(cases) gpu_cases_run(cases, sizeof(cases) / sizeof(cases)[0])

#endif
