/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting one rank. The parent is a process of one thread, so the child may call anything before
 * exec. Owns a word that both share, takes no lock. */
#include "config.h"

#include "bind.h"
#include "children.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_NO_EXEC = 127 };

/* exec resets handlers to the default, but ignored signals and the mask would be inherited. */
static void child_restore_signals(const int *ignored)
{
    sigset_t none;

    for (int s = 1; s < NSIG; s++)
        if (s != SIGKILL && s != SIGSTOP)
            signal(s, SIG_DFL);
    for (; *ignored; ignored++)
        signal(*ignored, SIG_IGN);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Leaves a table of files that is shared with others for one of its own, with those up to `last`
 * only. Before Linux 5.9 with all, which exec closes. */
static bool leave_files(unsigned last)
{
    return syscall(SYS_close_range, last + 1, ~0U, CLOSE_RANGE_UNSHARE) == 0 ||
           unshare(CLONE_FILES) == 0;
}

/* Tried on this process, whose table nobody shares and which has no file of that number: containers
 * may allow clone3() and refuse what a child needs after it. */
static bool can_leave_files(void)
{
    return leave_files(~0U - 1);
}

/* Whether the child has left our files; NULL: there is no memory to share it. One child at a time.
 */
static _Atomic uint32_t *has_left;

static bool prepare_to_wait(void)
{
    if (!has_left) {
        void *page = mmap(NULL, sizeof(*has_left), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        has_left = page == MAP_FAILED ? NULL : page;
    }
    if (has_left)
        atomic_store(has_left, 0);
    return has_left;
}

static void tell_that_it_has_left(void)
{
    atomic_store(has_left, 1);
    syscall(SYS_futex, has_left, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* Not until it has called exec, as CLONE_VFORK would: that may hang on a file system, while signals
 * and limits of time have to be served. */
static void wait_until_it_has_left(pid_t pid)
{
    const struct timespec look = {.tv_nsec = 10000000}; /* whether it has been killed */
    siginfo_t end = {.si_pid = 0};
    while (!atomic_load(has_left) && end.si_pid == 0) {
        syscall(SYS_futex, has_left, FUTEX_WAIT, 0, &look, NULL, 0);
        if (!atomic_load(has_left))
            waitid(P_PID, (id_t)pid, &end, WEXITED | WNOHANG | WNOWAIT);
    }
}

/* The given files may themselves be 0, 1 or 2 in another order, so they move out of the way first.
 */
static void child_place_files(const int fds[3])
{
    int high[3];
    for (int i = 0; i < 3; i++)
        high[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 3);
    for (int i = 0; i < 3; i++)
        dup2(high[i], i);
}

int child_last_inherited(void)
{
    int last = 2;
    struct dirent *entry;
    DIR *dir = opendir("/proc/self/fd");

    while (dir && (entry = readdir(dir)) != NULL) {
        int fd = atoi(entry->d_name), flags = fcntl(fd, F_GETFD);
        if (fd > last && flags >= 0 && !(flags & FD_CLOEXEC))
            last = fd;
    }
    if (dir)
        closedir(dir);
    return dir ? last : INT_MAX - 1;
}

static int last_file(const struct child_image *image, const int fds[3])
{
    int last =
        image->exec_report > image->last_inherited ? image->exec_report : image->last_inherited;
    for (int i = 0; i < 3; i++)
        last = fds[i] > last ? fds[i] : last;
    return last;
}

static void __attribute__((noreturn)) child_failed(const struct child_image *image, uint32_t rank)
{
    struct child_report report = {rank, (uint32_t)errno};
    if (write(image->exec_report, &report, sizeof(report)) < 0)
        _exit(EXIT_NO_EXEC);
    _exit(EXIT_NO_EXEC);
}

static bool is_binary(const char *path)
{
    char magic[4];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool is = fd >= 0 && read(fd, magic, sizeof(magic)) == sizeof(magic) &&
              memcmp(magic, "\177ELF", sizeof(magic)) == 0;
    if (fd >= 0)
        close(fd);
    return is;
}

/* execvpe() gives to the shell what the kernel refuses: good for a script without a first line #!,
 * but of a binary for another machine the shell prints garbage. */
static void exec_program(const struct child_image *image, char *const *env)
{
    execve(image->program, image->argv, env);
    if (errno != ENOEXEC)
        return;
    if (is_binary(image->program))
        errno = ENOEXEC;
    else
        execvpe(image->program, image->argv, env);
}

static void __attribute__((noreturn))
child_exec(const struct child_image *image, uint32_t rank, char *const *env, const int fds[3],
           pid_t parent, bool shares_files)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before PDEATHSIG was set */
        _exit(EXIT_NO_EXEC);
    if (shares_files && !leave_files((unsigned)last_file(image, fds)))
        child_failed(image, rank);
    if (shares_files)
        tell_that_it_has_left();
    setpgid(0, 0);
    child_restore_signals(image->ignored);
    child_place_files(fds);
    setrlimit(RLIMIT_NOFILE, &image->files);
    /* The binding was possible when the plan was made. If the cgroup has changed since, the rank
     * runs unbound; that is not a reason to end a job. */
    if (image->bind)
        bind_apply(image->bind, image->bind_index);
    exec_program(image, env);
    child_failed(image, rank);
}

/* fork(), but the child shares our files until it leaves them. fork() would copy
 * the table of files, and exec close the copies: two for each rank so far, which costs a host of N
 * ranks the square of N. Where the kernel refuses what that takes (seccomp of containers), that
 * price is paid. */
static pid_t fork_with_files(bool *shares_files)
{
    struct clone_args how = {.flags = CLONE_FILES, .exit_signal = SIGCHLD};
    *shares_files = can_leave_files() && prepare_to_wait();
    pid_t pid = *shares_files ? (pid_t)syscall(SYS_clone3, &how, sizeof(how)) : -1;
    *shares_files = *shares_files && (pid >= 0 || errno == EAGAIN || errno == ENOMEM);
    return *shares_files ? pid : fork();
}

pid_t child_start(const struct child_image *image, uint32_t rank, char *const *env,
                  const int fds[3])
{
    bool shares_files;
    pid_t parent = getpid(), pid = fork_with_files(&shares_files);
    if (pid == 0)
        child_exec(image, rank, env, fds, parent, shares_files);
    if (pid > 0 && shares_files)
        wait_until_it_has_left(pid);
    if (pid > 0)
        setpgid(pid, pid); /* both sides do it: kill(-pid) works from now on, whichever ran first */
    return pid;
}
