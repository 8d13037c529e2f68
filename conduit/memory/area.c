/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Areas of shared anonymous memory. They are memfds, so a crash leaves nothing behind and the size
 * of /dev/shm does not matter. No lock: an area belongs to the thread that opened it. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/ranges.h"
#include "base/report.h"
#include "memory/memory.h"
#include "topology/topology.h"

struct tk_area tk_segment_area = {.fd = -1};

static const char *remedy(const char *step, int error)
{
    if (error == EFBIG)
        return "; raise the limit on files (ulimit -f), this memory is one";
    if (error == EMFILE)
        return "; raise the limit on open files (ulimit -n)";
    return strcmp(step, "mmap") ? "" : "; look at ulimit -v";
}

static enum tk_status area_fail(struct tk_area *area, const char *what, const char *step, int error)
{
    tk_log_error("no memory for %s (%zu bytes): %s: %s; this host's processes may use %llu bytes%s",
                 what, area->size, step, strerror(error), (unsigned long long)tk_host_memory(),
                 remedy(step, error));
    tk_area_close(area);
    return TK_FAIL;
}

/* In pieces: a signal ends the call, and the kernel then undoes the interrupted piece. A client
 * with a profiling timer may have one each millisecond. */
static int area_fallocate(int fd, uint64_t offset, uint64_t size)
{
    enum { piece = 2 << 20 };
    for (uint64_t done = 0; done < size;) {
        uint64_t step = tk_min((uint64_t)piece, size - done);
        if (fallocate(fd, 0, (off_t)(offset + done), (off_t)step) == 0)
            done += step;
        else if (errno != EINTR)
            return errno;
    }
    return 0;
}

/* For a large area: populating zeroes pages on several CPUs at a time, which fallocate() does not.
 * Kernels before 5.14 can't populate memory. *call: the call that failed. */
static int area_populate(const struct tk_area *area, uint64_t offset, uint64_t size,
                         const char **call)
{
    enum { large = 64 << 20 };
    *call = "madvise(MADV_POPULATE_WRITE)";
    int error = size < large ? EINVAL : tk_populate((char *)area->base + offset, size);
    if (error != EINVAL)
        return error;
    *call = "fallocate";
    return area_fallocate(area->fd, offset, size);
}

/* Ranks of a host reserve at the same time: between two checks a rank takes at most its share of
 * half of the free memory. */
static uint64_t share_of(uint64_t left)
{
    return left / 2 / tk_machine_ranks() & ~(uint64_t)(tk_page_size() - 1);
}

/* The kernel kills a process instead of refusing pages that it does not have, so the library has to
 * check. */
static enum tk_status area_reserve(struct tk_area *area, const char *what)
{
    enum { least = 256 << 10 /* for other processes meanwhile */ };
    char bound[1400];
    for (size_t done = 0; done < area->size;) {
        uint64_t rest = area->size - done;
        uint64_t left = tk_memory_available(bound, sizeof(bound));
        uint64_t share = share_of(left);
        if (rest > left || share < tk_min(rest, least)) {
            tk_log_error("no memory for %s (%zu bytes): %s leaves %llu bytes, for %u rank(s); ask "
                         "for less, or for more memory",
                         what, area->size, bound, (unsigned long long)left, tk_machine_ranks());
            tk_area_close(area);
            return TK_FAIL;
        }
        uint64_t step = tk_min(rest, share);
        const char *call;
        int error = area_populate(area, done, step, &call);
        if (error)
            return area_fail(area, what, call, error);
        done += step;
    }
    return TK_OK;
}

static enum tk_status area_map(struct tk_area *area, const char *what)
{
    struct stat file;
    void *base = mmap(NULL, area->size, PROT_READ | PROT_WRITE, MAP_SHARED, area->fd, 0);
    if (base == MAP_FAILED)
        return area_fail(area, what, "mmap", errno);
    area->base = base;
    if (fstat(area->fd, &file) != 0)
        return area_fail(area, what, "fstat", errno);
    area->inode = (uint64_t)file.st_ino;
    const struct tk_range range = {base, area->size, what, -1, area->fd};
    tk_range_add(&range);
    return TK_OK;
}

/* Beyond the limit the kernel would send SIGXFSZ. */
static bool may_have_file(size_t size)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           size <= limit.rlim_cur;
}

enum tk_status tk_area_open(struct tk_area *area, const char *what, size_t size, bool reserved)
{
    *area = (struct tk_area){.size = tk_align_up(size, tk_page_size()), .fd = -1};
    area->fd = memfd_create(what, MFD_CLOEXEC);
    if (area->fd < 0)
        return area_fail(area, what, "memfd_create", errno);
    if (!may_have_file(area->size))
        return area_fail(area, what, "ftruncate", EFBIG);
    if (ftruncate(area->fd, (off_t)area->size) != 0)
        return area_fail(area, what, "ftruncate", errno);
    if (area_map(area, what) != TK_OK)
        return TK_FAIL;
    return reserved ? area_reserve(area, what) : TK_OK;
}

enum tk_status tk_area_open_measured(struct tk_area *area, const char *what, size_t size,
                                     uint64_t left)
{
    const char *call;
    if (tk_area_open(area, what, size, false) != TK_OK)
        return TK_FAIL;
    if (area->size > share_of(left))
        return area_reserve(area, what);
    int error = area_populate(area, 0, area->size, &call);
    return error ? area_fail(area, what, call, error) : TK_OK;
}

/* Making 162 pages present and freeing them takes 0.3 ms per rank, and hundreds of ranks start at
 * once. */
enum tk_status tk_area_open_by_need(struct tk_area *area, const char *what, size_t size,
                                    uint64_t left)
{
    enum { plenty = 32 };
    return size <= share_of(left) / plenty ? tk_area_open(area, what, size, false)
                                           : tk_area_open_measured(area, what, size, left);
}

enum tk_status tk_area_grow(struct tk_area *area, const char *what, size_t more)
{
    size_t size = area->size + more;
    if (!may_have_file(size))
        return area_fail(area, what, "ftruncate", EFBIG);
    if (ftruncate(area->fd, (off_t)size) != 0)
        return area_fail(area, what, "ftruncate", errno);
    return TK_OK;
}

uint64_t tk_area_present(const struct tk_area *area)
{
    struct stat file;
    return fstat(area->fd, &file) == 0 ? (uint64_t)file.st_blocks * 512 : 0;
}

void tk_allow_huge_pages(void *base, size_t size)
{
    char what[1400];
    if (size < tk_huge_page_size() ||
        tk_memory_available(what, sizeof(what)) / tk_machine_ranks() < size)
        return;
    madvise(base, size, MADV_HUGEPAGE);
}

static enum tk_status no_huge_pages(struct tk_area *area, const char *what, int error)
{
    tk_log_error("no huge pages for %s (%zu bytes of %zu each): %s; the administrator sets them "
                 "aside (sysctl vm.nr_hugepages=%zu or more), or leave out GASNET_USE_HUGEPAGES",
                 what, area->size, tk_huge_page_size(), strerror(error),
                 area->size / tk_huge_page_size());
    tk_area_close(area);
    return TK_FAIL;
}

enum tk_status tk_area_open_huge(struct tk_area *area, const char *what, size_t size)
{
    *area = (struct tk_area){.size = tk_align_up(size, tk_huge_page_size()), .fd = -1};
    area->fd = memfd_create(what, MFD_CLOEXEC | MFD_HUGETLB);
    if (area->fd < 0 || ftruncate(area->fd, (off_t)area->size) != 0)
        return no_huge_pages(area, what, errno);
    int error = area_fallocate(area->fd, 0, area->size);
    if (error)
        return no_huge_pages(area, what, error);
    return area_map(area, what);
}

void tk_area_unmap(struct tk_area *area)
{
    if (!area->base)
        return;
    tk_range_drop(area->base);
    munmap(area->base, area->size);
    area->base = NULL;
}

void tk_area_close(struct tk_area *area)
{
    tk_area_unmap(area);
    if (area->fd >= 0)
        close(area->fd);
    *area = (struct tk_area){.fd = -1};
}

static const char reach_remedy[] =
    "neighbours must be processes of one user that see each other in /proc: set "
    "GASNET_SUPERNODE_MAXSIZE=1 to do without shared memory (over softhca with SOFTHCA_UDP=auto), "
    "or GASNET_HOST_DETECT to distinguish hosts in another way";

/* In another pid namespace the pid may denote another process, and its descriptor another file: so
 * the inode is compared. */
int tk_area_reach(const struct tk_area_place *place, size_t *size, char *why, size_t why_size)
{
    char path[64];
    struct stat file;
    snprintf(path, sizeof(path), "/proc/%d/fd/%d", place->pid, place->fd);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        int error = errno;
        snprintf(why, why_size, "%s: %s; %s", path, strerror(error),
                 error == EMFILE ? "raise the limit on open files (ulimit -n)" : reach_remedy);
        return -1;
    }
    if (fstat(fd, &file) == 0 && (uint64_t)file.st_ino == place->inode && file.st_size > 0) {
        *size = (size_t)file.st_size;
        return fd;
    }
    close(fd);
    snprintf(why, why_size, "%s is not the file that its owner published; %s", path, reach_remedy);
    return -1;
}
