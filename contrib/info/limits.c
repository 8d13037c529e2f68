/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What the kernel and the administrator allow: each fact with its consequence for jobs. No
 * state. */
#include "config.h"

#include "contrib/info/info.h"
#include "firehose/firehose_private.h"
#include "memory/memory.h"
#include "settings/settings.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

static const uint64_t mega = 1u << 20;

enum {
    memlock_least = 64 << 20, /* message buffers of a process with some hundred peers */
    files_least = 1024        /* a process has one or two open for each neighbour */
};

static void print_limit(const char *name, rlim_t limit, bool in_bytes)
{
    if (limit == RLIM_INFINITY)
        info_fact(name, "unlimited");
    else if (in_bytes)
        info_fact(name, "%" PRIu64 " MiB", (uint64_t)limit / mega);
    else
        info_fact(name, "%" PRIu64, (uint64_t)limit);
}

static bool has_device(void)
{
    DIR *directory = opendir("/sys/class/infiniband");
    const struct dirent *entry = NULL;
    while (directory && (entry = readdir(directory)) && entry->d_name[0] == '.')
        ;
    if (directory)
        closedir(directory);
    return entry != NULL;
}

/* The library raises the soft limit by itself (GASNET_MAXIMIZE_MEMLOCK). */
static void look_at_memlock(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit))
        return;
    print_limit("locked memory", limit.rlim_max, true);
    if (limit.rlim_max == RLIM_INFINITY)
        info_finding(INFO_GOOD, "locked memory is not limited");
    else if (!has_device())
        info_finding(INFO_GOOD, "locked memory is limited, but no device of this host pins memory");
    else if (limit.rlim_max < memlock_least)
        info_finding(
            INFO_WRONG,
            "locked memory is limited to %" PRIu64 " KiB (ulimit -Hl): devices can't "
            "register message buffers; set 'hard memlock unlimited' in "
            "/etc/security/limits.d, and LimitMEMLOCK=infinity for daemons that start jobs",
            (uint64_t)limit.rlim_max >> 10);
    else
        info_finding(INFO_ADVICE,
                     "locked memory is limited to %" PRIu64 " MiB (ulimit -Hl): segments and "
                     "registered memory of a process must fit; unlimited is usual on clusters",
                     (uint64_t)limit.rlim_max / mega);
}

static void look_at_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return;
    print_limit("open files", limit.rlim_max, false);
    if (limit.rlim_max < files_least)
        info_finding(INFO_WRONG,
                     "only %" PRIu64 " files can be open (ulimit -Hn): jobs with many processes on "
                     "a host fail; allow at least %d",
                     (uint64_t)limit.rlim_max, files_least);
    else
        info_finding(INFO_GOOD, "%" PRIu64 " files can be open", (uint64_t)limit.rlim_max);
}

static void look_at_memory(void)
{
    char tightest[64] = "";
    uint64_t left = tk_memory_available(tightest, sizeof(tightest));
    info_fact("memory", "%" PRIu64 " MiB", tk_host_memory() / mega);
    if (left != UINT64_MAX)
        info_fact("memory left", "%" PRIu64 " MiB, by %s", left / mega, tightest);
    info_fact("page, huge page", "%zu KiB, %zu KiB", tk_page_size() >> 10,
              tk_huge_page_size() >> 10);
}

static void look_at_userfaultfd(void)
{
    bool is_open = tk_monitor_open("auto") == TK_OK;
    const char *reason = tk_monitor_reason();
    bool can_watch = is_open && !*reason;
    info_fact("userfaultfd", "%s", can_watch ? "usable" : reason);
    if (can_watch)
        info_finding(INFO_GOOD, "memory outside of segments stays registered while it exists");
    else
        info_finding(INFO_ADVICE,
                     "no registration on the fly outlives its transfer, which makes large puts and "
                     "gets outside of segments slower: %s",
                     reason);
    if (is_open)
        tk_monitor_close();
}

static void look_at_pidfd(void)
{
    int fd = (int)syscall(SYS_pidfd_open, getpid(), 0);
    info_fact("pidfd", "%s", fd >= 0 ? "usable" : strerror(errno));
    if (fd >= 0)
        close(fd);
    if (fd >= 0)
        info_finding(INFO_GOOD, "the end of a neighbour is seen at once (pidfd)");
    else
        info_finding(INFO_ADVICE,
                     "the end of a neighbour is found by looking, not at once: the "
                     "kernel has no pidfd_open (before Linux 5.3), or it is forbidden");
}

static void look_at_memfd(void)
{
    int fd = (int)syscall(SYS_memfd_create, "trunkline_info", 0);
    int error = errno;
    if (fd >= 0)
        close(fd);
    info_fact("shared memory (memfd)", "%s", fd >= 0 ? "usable" : strerror(error));
    if (fd >= 0)
        info_finding(INFO_GOOD, "processes of a host can share memory");
    else
        info_finding(INFO_WRONG,
                     "memfd_create is refused (%s): no job can have segments; look at "
                     "the container's seccomp profile",
                     strerror(error));
}

/* Yama: 0 all processes of the user, 1 descendants, 2 with CAP_SYS_PTRACE, 3 no process. */
static void look_at_ptrace(void)
{
    char line[32];
    bool is_read = info_read_line("/proc/sys/kernel/yama/ptrace_scope", line, sizeof(line));
    long scope = is_read ? strtol(line, NULL, 10) : 0;
    info_fact("ptrace", "%s", is_read ? line : "not restricted by Yama");
    if (scope >= 2 && geteuid() != 0)
        info_finding(INFO_ADVICE,
                     "kernel.yama.ptrace_scope is %ld: neither gdb nor GASNET_BACKTRACE can show "
                     "where a process that hangs is; 1 is enough",
                     scope);
    else
        info_finding(INFO_GOOD, "debuggers may look at the processes of a job");
}

static void look_at_directory(void)
{
    const char *named = getenv("GASNET_TMPDIR"), *usual = getenv("TMPDIR");
    const char *path = named && *named ? named : usual && *usual ? usual : "/tmp";
    bool can_write = access(path, W_OK | X_OK) == 0;
    int error = errno;
    info_fact("temporary files", "%s", path);
    if (can_write)
        info_finding(INFO_GOOD, "%s can be written to", path);
    else
        info_finding(INFO_WRONG,
                     "%s, where the launcher makes its directory, can't be written to: "
                     "%s; set GASNET_TMPDIR",
                     path, strerror(error));
}

static void look_at_clock(void)
{
    char line[64];
    static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    if (!info_read_line(path, line, sizeof(line)))
        return;
    info_fact("clock", "%s", line);
    if (!strcmp(line, "hpet") || !strcmp(line, "acpi_pm"))
        info_finding(INFO_ADVICE,
                     "the kernel's clock is %s, which takes a microsecond to read; look into dmesg "
                     "for why tsc was given up",
                     line);
}

static void look_at_cpus(void)
{
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    info_fact("CPUs", "%ld", online);
}

void info_limits(void)
{
    info_section("This host");
    look_at_cpus();
    look_at_memory();
    look_at_memlock();
    look_at_files();
    look_at_memfd();
    look_at_userfaultfd();
    look_at_pidfd();
    look_at_ptrace();
    look_at_directory();
    look_at_clock();
}
