/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The cost of a start: how often each rank queries the PMIx server, and how many neighbours' memory
 * it has mapped after attach and a barrier, how many of libibverbs and librdmacm, how many files
 * the job has made, and how often it makes some system calls that should be made once. Calls of
 * libpmix and libc are counted by wrappers. */
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "job.h"
#include "pmix_calls.h"

static unsigned limits_read, registrations;

/* The function itself. */
#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

int open(const char *path, int flags, ...)
{
    va_list rest;
    va_start(rest, flags);
    mode_t mode = flags & O_CREAT ? va_arg(rest, mode_t) : 0;
    va_end(rest);
    limits_read += !strcmp(path, "/proc/self/cgroup");
    return REAL(open)(path, flags, mode);
}

/* Not all callers pass six, and a sanitizer that sees the others read would object. */
__attribute__((no_sanitize("address"))) long syscall(long number, ...)
{
    long a[6];
    va_list rest;
    va_start(rest, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(rest, long);
    va_end(rest);
    registrations += number == SYS_membarrier && a[0] == MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED;
    return REAL(syscall)(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

enum { files_max = 4096 };

/* Number of mapped files with that name, our own included. A file may be mapped in several
 * pieces. */
static unsigned mapped(const char *name)
{
    static unsigned long inodes[files_max];
    char line[512];
    unsigned count = 0, i;
    unsigned long inode;
    FILE *maps = fopen("/proc/self/maps", "re");
    CHECK(maps != NULL);
    while (fgets(line, sizeof(line), maps)) {
        if (!strstr(line, name) || sscanf(line, "%*s %*s %*s %*s %lu", &inode) != 1)
            continue;
        for (i = 0; i < count && inodes[i] != inode; i++)
            continue;
        if (i == count && count < files_max)
            inodes[count++] = inode;
    }
    fclose(maps);
    return count;
}

/* KiB of our message rings and scratch that are in memory. */
static unsigned long rings_present(void)
{
    char path[64], link[64];
    struct stat file;
    unsigned long kib = 0;
    for (int fd = 3; fd < 256; fd++) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t size = readlink(path, link, sizeof(link) - 1);
        if (size <= 0)
            continue;
        link[size] = 0;
        if (strstr(link, "memfd:message rings") && fstat(fd, &file) == 0)
            kib += (unsigned long)file.st_blocks / 2;
    }
    return kib;
}

/* Tables that ranks of the host share: read-only pieces of the board of their leader. */
static unsigned tables_shared(void)
{
    char line[512];
    unsigned count = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    CHECK(maps != NULL);
    while (fgets(line, sizeof(line), maps))
        count += strstr(line, "memfd:board") && strstr(line, " r--s ");
    fclose(maps);
    return count;
}

/* Counts the files of the launcher, libpmix and all ranks in the job's directory. */
static unsigned in_session(void)
{
    const char *name = getenv("TRUNKLINE_SESSION");
    DIR *directory = name ? opendir(name) : NULL;
    unsigned count = 0;
    CHECK(directory != NULL);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

int main(int argc, char **argv)
{
    job_start(&argc, &argv, (size_t)1 << 16);
    job_barrier();
    printf("rank %u: %u gets, %u puts, %u fences, %u rings, %u segments, %u files, %u limits, "
           "%u registrations, %u tables, %u libraries, %lu KiB\n",
           (unsigned)job.rank, pmix_calls.gets, pmix_calls.puts, pmix_calls.fences,
           mapped("memfd:message rings"), mapped("memfd:segment"), in_session(), limits_read,
           registrations, tables_shared(), mapped("/libibverbs.so") + mapped("/librdmacm.so"),
           rings_present());
    job_end();
}
