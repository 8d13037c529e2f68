/* SPDX-License-Identifier: BSD-3-Clause */
/* deny_syscalls [CALL...] [ENOSYS CALL...] -- COMMAND [ARGS...]: runs a command for which the
 * kernel refuses some system calls with EPERM, others as if it did not know them, as containers do.
 * Exit status: the command's; 77 when filters are not allowed, 2 for wrong usage. */
#include "config.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    unsigned number;
} calls[] = {
    {"clone3", SYS_clone3},
    {"close_range", SYS_close_range},
    {"memfd_create", SYS_memfd_create},
    {"perf_event_open", SYS_perf_event_open},
    {"pidfd_open", SYS_pidfd_open},
    {"process_vm_readv", SYS_process_vm_readv},
    {"process_vm_writev", SYS_process_vm_writev},
    {"unshare", SYS_unshare},
    {"userfaultfd", SYS_userfaultfd},
};

enum { CALLS = sizeof calls / sizeof calls[0], MOST = 2 + 2 * CALLS };

/* Adds a filter that refuses a call of that name; 0: there is no such call. */
static unsigned short refuse(struct sock_filter *at, const char *name, unsigned error)
{
    for (size_t i = 0; i < CALLS; i++) {
        if (strcmp(calls[i].name, name) != 0)
            continue;
        at[0] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1);
        at[1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error);
        return 2;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct sock_filter code[MOST] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    struct sock_fprog filter = {.len = 1, .filter = code};
    unsigned error = EPERM;
    int i = 1;

    for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
        bool is_call = strcmp(argv[i], "ENOSYS") != 0;
        unsigned short added = 0;
        if (is_call && filter.len + 3 <= MOST)
            added = refuse(&code[filter.len], argv[i], error);
        else if (!is_call)
            error = ENOSYS;
        if (is_call && !added)
            return 2;
        filter.len += added;
    }
    code[filter.len++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    if (i + 1 >= argc)
        return 2;
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) != 0)
        return 77;
    execvp(argv[i + 1], argv + i + 1);
    perror(argv[i + 1]);
    return 2;
}
