/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See unit.h. Owns the file that standard error is diverted to. No lock: tests are single-threaded
 * where they use it. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "settings/settings.h"
#include "unit.h"

enum {
    program_seconds = 120,
    child_seconds = 10, /* a child does one thing and dies */
    heard_max = 16384
};

static int saved_stderr = -1, diverted = -1;
static char heard[heard_max];

/* Address sanitizer: what the library keeps for the incarnation of a process, a test makes many of.
 */
int __lsan_is_turned_off(void);
int __lsan_is_turned_off(void)
{
    return 1;
}

void unit_deadline(void)
{
    const char *wanted = getenv("UNIT_CASE");
    if (wanted)
        cmocka_set_test_filter(wanted);
    alarm(program_seconds);
}

void unit_listen(void)
{
    diverted = memfd_create("heard", MFD_CLOEXEC);
    assert_true(diverted >= 0);
    saved_stderr = dup(STDERR_FILENO);
    dup2(diverted, STDERR_FILENO);
}

static const char *read_all(int fd)
{
    ssize_t n = pread(fd, heard, heard_max - 1, 0);
    heard[n > 0 ? n : 0] = 0;
    close(fd);
    return heard;
}

const char *unit_heard(void)
{
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    return read_all(diverted);
}

/* cmocka's handlers would turn a crash into a long jump into the parent's stack frames. */
static void forget_cmocka(void)
{
    static const int caught[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGABRT};
    const struct rlimit no_core = {0, 0};
    for (size_t i = 0; i < sizeof(caught) / sizeof(caught[0]); i++)
        signal(caught[i], SIG_DFL);
    setrlimit(RLIMIT_CORE, &no_core);
}

int unit_child(void (*fn)(void *), void *arg, const char **said)
{
    int status, fd = memfd_create("said", MFD_CLOEXEC);
    assert_true(fd >= 0);
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        forget_cmocka();
        dup2(fd, STDERR_FILENO);
        alarm(child_seconds);
        fn(arg);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    const char *text = read_all(fd);
    if (said)
        *said = text;
    return status;
}

static void assert_exited(int status, int code, const char *said)
{
    if (!WIFEXITED(status) || WEXITSTATUS(status) != code)
        fail_msg("expected exit %d, got wait status 0x%x; it said: %s", code, status, said);
}

void unit_assert_exit(void (*fn)(void *), void *arg, int code)
{
    const char *said;
    int status = unit_child(fn, arg, &said);
    assert_exited(status, code, said);
}

void unit_assert_exit_or_skip(void (*fn)(void *), void *arg, int code)
{
    const char *said;
    int status = unit_child(fn, arg, &said);
    if (WIFEXITED(status) && WEXITSTATUS(status) == unit_cannot)
        skip();
    assert_exited(status, code, said);
}

void unit_forbid(long number)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};
    assert_int_equal(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    assert_int_equal(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

void unit_assert_panic(void (*fn)(void *), void *arg, const char *text)
{
    const char *said;
    int status = unit_child(fn, arg, &said);
    if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
        fail_msg("expected abort(), got wait status 0x%x; it said: %s", status, said);
    unit_assert_says(said, text);
    assert_int_equal(unit_lines(said), 1);
}

void unit_settings(const char *first, ...)
{
    const char *env[16] = {first};
    size_t n = 0;
    va_list more;
    va_start(more, first);
    while (env[n] && n + 1 < sizeof(env) / sizeof(env[0]))
        env[++n] = va_arg(more, const char *);
    va_end(more);
    assert_int_equal(tk_settings_load((char *const *)env), TK_OK);
}

void unit_assert_says(const char *text, const char *part)
{
    if (!strstr(text, part))
        fail_msg("expected '%s' in: %s", part, text);
}

unsigned unit_lines(const char *text)
{
    unsigned lines = 0;
    for (; *text; text++)
        lines += *text == '\n';
    return lines;
}

struct unit_random unit_random(uint64_t seed)
{
    return (struct unit_random){.state = seed * 2 + 1};
}

unsigned unit_below(struct unit_random *r, unsigned limit)
{
    r->state ^= r->state >> 12;
    r->state ^= r->state << 25;
    r->state ^= r->state >> 27;
    return (unsigned)((r->state * UINT64_C(2685821657736338717)) >> 33) % limit;
}
