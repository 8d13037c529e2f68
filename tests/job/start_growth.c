/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What a rank costs at the start of a job, beside others: the bytes and calls that this process
 * reads, its page faults, those since PMIx_Init() has returned, and its mappings, after a put to
 * the next rank and a barrier. Rank 0 also prints those of the processes of the launcher on this
 * host: bytes moved, the most memory that each had, and CPU time in us, of all and of the guard
 * alone. Counts of the kernel: a rank can't forget one. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "job.h"

static long faults(void)
{
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_minflt;
}

/* libpmix's own function, whose types are as wide. */
int PMIx_Init(void *proc, void *info, size_t count);
static long faults_before;

int PMIx_Init(void *proc, void *info, size_t count)
{
    int rc = ((__typeof__(&PMIx_Init))dlsym(RTLD_NEXT, "PMIx_Init"))(proc, info, count);
    faults_before = faults();
    return rc;
}

/* The number behind a name in a file of a process; 0: there is none. */
static unsigned long number_of(const char *file, int pid, const char *name)
{
    char path[64], line[512];
    unsigned long number = 0;
    snprintf(path, sizeof(path), "/proc/%d/%s", pid, file);
    FILE *in = fopen(path, "re");
    while (in && fgets(line, sizeof(line), in))
        if (!strncmp(line, name, strlen(name)))
            number = strtoul(line + strlen(name), NULL, 10);
    if (in)
        fclose(in);
    return number;
}

static unsigned mappings(void)
{
    char line[512];
    unsigned count = 0;
    FILE *in = fopen("/proc/self/maps", "re");
    CHECK(in != NULL);
    while (fgets(line, sizeof(line), in))
        count++;
    fclose(in);
    return count;
}

/* CPU time of all threads of a process so far, in us. */
static long cpu_us(int pid)
{
    clockid_t clock;
    struct timespec t = {0};
    if (clock_getcpuclockid(pid, &clock) == 0) /* else it has just ended */
        clock_gettime(clock, &t);
    return (long)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* The guard, which is the parent of the ranks, and its child that serves PMIx. */
static void print_launcher(void)
{
    unsigned long moved = 0, kib = 0;
    char path[64], name[64] = "";
    int pid, guard = (int)getppid();
    long us = 0;
    snprintf(path, sizeof(path), "/proc/%d/task/%d/children", guard, guard);
    FILE *children = fopen(path, "re");
    CHECK(children != NULL, "%s can't be read", path);
    for (pid = guard; pid; pid = fscanf(children, "%d", &pid) == 1 ? pid : 0) {
        snprintf(path, sizeof(path), "/proc/%d/comm", pid);
        FILE *comm = fopen(path, "re");
        bool is_launcher =
            comm && fgets(name, sizeof(name), comm) && !strncmp(name, "gasnetrun", 9);
        if (comm)
            fclose(comm);
        if (!is_launcher)
            continue;
        moved += number_of("io", pid, "rchar: ") + number_of("io", pid, "wchar: ");
        us += cpu_us(pid);
        kib += number_of("status", pid, "VmHWM:");
    }
    fclose(children);
    printf("launcher: %lu bytes, %lu KiB, %ld us, %ld guard\n", moved, kib, us, cpu_us(guard));
}

int main(int argc, char **argv)
{
    uint64_t word = 1;
    job_start(&argc, &argv, (size_t)1 << 16);
    gex_Rank_t next = (job.rank + 1) % job.size;
    gex_RMA_PutBlocking(job.tm, next, job_remote(next, 0), &word, sizeof(word), 0);
    job_barrier();
    int pid = (int)getpid();
    unsigned long bytes = number_of("io", pid, "rchar: "), calls = number_of("io", pid, "syscr: ");
    long all = faults();
    printf("rank %u: %lu bytes, %lu reads, %ld faults, %ld own, %u mappings\n", (unsigned)job.rank,
           bytes, calls, all, all - faults_before, mappings());
    if (job.rank == 0)
        print_launcher();
    job_end();
}
