/* SPDX-License-Identifier: BSD-3-Clause
 *
 * segment_cost MIB|max attach|tenth|all|cut|cut-neighbour: all ranks attach a segment and print its
 * cost: "attached N MiB in S ms, P MiB present". Then they touch a part of it, or one truncates its
 * file and touches that. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "job.h"

/* Opens the segment's file: the kernel knows which of its pages are present, while the process's
 * resident pages are only those that it has touched. */
static int segment_file(void)
{
    for (int fd = 3; fd < 1024; fd++) {
        char path[64], target[64] = "";
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        if (readlink(path, target, sizeof(target) - 1) > 0 &&
            !strncmp(target, "/memfd:segment", 14))
            return fd;
    }
    job_fail(__FILE__, __LINE__, "segment_file()", " no file of this process is a segment");
}

static uint64_t present(void)
{
    struct stat file;
    CHECK(fstat(segment_file(), &file) == 0);
    return (uint64_t)file.st_blocks * 512;
}

static double now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void attach(size_t size)
{
    double before = now_ms();
    job_attach(size);
    fprintf(stderr, "attached %zu MiB in %.0f ms, %llu MiB present\n", size >> 20,
            now_ms() - before, (unsigned long long)(present() >> 20));
    job_barrier();
}

/* One byte of each page. */
static void touch(char *base, size_t size)
{
    for (size_t at = 0; at < size; at += GASNET_PAGESIZE)
        *(volatile char *)(base + at) = 1;
}

/* Truncates the file: as on a full file system, the segment has no pages then. */
static void cut(int is_neighbours)
{
    void *owner, *local = job.base;
    gex_Rank_t last = job.size - 1;
    if (is_neighbours)
        CHECK(gex_Segment_QueryBound(job.tm, last, &owner, &local, NULL) == 0 && local);
    job_barrier(); /* what is mapped is as long as the file then */
    if (job.rank == last)
        CHECK(ftruncate(segment_file(), GASNET_PAGESIZE) == 0);
    job_barrier();
    if (job.rank == (is_neighbours ? 0 : last))
        touch(local, (size_t)4 * GASNET_PAGESIZE);
    job_barrier();
}

int main(int argc, char **argv)
{
    const char *size = argc > 1 ? argv[1] : "1", *what = argc > 2 ? argv[2] : "attach";
    job_start(&argc, &argv, 0);
    size_t most = gasnet_getMaxLocalSegmentSize();
    attach(!strcmp(size, "max") ? most : (size_t)atol(size) << 20);
    if (!strcmp(what, "tenth"))
        touch(job.base, job.segment_size / 10);
    else if (!strcmp(what, "all"))
        touch(job.base, job.segment_size);
    else if (!strncmp(what, "cut", 3))
        cut(what[3] != 0);
    job_barrier();
    job_end();
}
