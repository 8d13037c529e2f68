/* SPDX-License-Identifier: BSD-3-Clause */
/* Starting one rank. The parent is a process of one thread, so the child may call anything before
 * exec. Owns nothing, takes no lock. */
#include "config.h"

#include "bind.h"
#include "children.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
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

static void child_exec(const struct child_image *image, uint32_t rank, char *const *env,
                       const int fds[3], pid_t parent) __attribute__((noreturn));

static void child_exec(const struct child_image *image, uint32_t rank, char *const *env,
                       const int fds[3], pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) /* it died before PDEATHSIG was set */
        _exit(EXIT_NO_EXEC);
    setpgid(0, 0);
    child_restore_signals(image->ignored);
    child_place_files(fds);
    setrlimit(RLIMIT_NOFILE, &image->files);
    /* The binding was possible when the plan was made. If the cgroup has changed since, the rank
     * runs unbound; that is not a reason to end a job. */
    if (image->bind)
        bind_apply(image->bind, image->bind_index);
    execvpe(image->program, image->argv, env);

    struct child_report report = {rank, (uint32_t)errno};
    if (write(image->exec_report, &report, sizeof(report)) < 0)
        _exit(EXIT_NO_EXEC);
    _exit(EXIT_NO_EXEC);
}

pid_t child_start(const struct child_image *image, uint32_t rank, char *const *env,
                  const int fds[3])
{
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        child_exec(image, rank, env, fds, parent);
    if (pid > 0)
        setpgid(pid, pid); /* both sides do it: kill(-pid) works from now on, whichever ran first */
    return pid;
}
