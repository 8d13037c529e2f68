/* SPDX-License-Identifier: BSD-3-Clause */
/* Preloaded into the launcher: the exec of rank TEST_HUNG_RANK never returns and minds no signal
 * but SIGKILL, as on a file system that hangs. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int is_hung(char *const env[])
{
    char rank[32];
    const char *hung = getenv("TEST_HUNG_RANK");
    snprintf(rank, sizeof(rank), "PMIX_RANK=%s", hung ? hung : "none");
    while (*env && strcmp(*env, rank) != 0)
        env++;
    return *env != NULL;
}

__attribute__((visibility("default"))) int execve(const char *path, char *const argv[],
                                                  char *const env[])
{
    sigset_t all;
    sigfillset(&all);
    if (is_hung(env))
        sigprocmask(SIG_SETMASK, &all, NULL);
    while (is_hung(env))
        pause();
    return (int)syscall(SYS_execve, path, argv, env);
}
