/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Access to another process: its descriptors, opened through /proc/<pid>/fd, and its segment. The
 * kernel allows this to the same user only; what is found is validated before use, because any user
 * may put a name into the registry. Owns nothing, takes no lock. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fabric/fabric.h"

int shca_open_of(uint32_t pid, int fd, int flags)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/%u/fd/%d", pid, fd);
    return open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
}

/* The cause of a refusal is outside both programs, so it is reported here, once. */
static void segment_explain(uint32_t pid)
{
    static _Atomic int reported;
    int e = errno;

    if ((e == EACCES || e == EPERM) && !atomic_exchange(&reported, 1))
        shca_log(
            "the kernel does not let this process open /proc/%u/fd of its peer on fabric %s "
            "(%s): that process is not dumpable, because it changed its user, has file "
            "capabilities or called prctl(PR_SET_DUMPABLE, 0); prctl(PR_SET_DUMPABLE, 1) there "
            "before it opens the device allows it",
            pid, shca_config.fabric, strerror(e));
}

/* Opening can have side effects (a terminal, a device): check the link's name first, since the
 * registry may be wrong. */
static bool is_segment(uint32_t pid, int fd)
{
    static const char expected[] = "/memfd:softhca";
    char path[64], target[64];
    ssize_t n;

    snprintf(path, sizeof path, "/proc/%u/fd/%d", pid, fd);
    n = readlink(path, target, sizeof target);
    if (n < 0)
        segment_explain(pid);
    return n >= (ssize_t)sizeof expected - 1 && memcmp(target, expected, sizeof expected - 1) == 0;
}

/* root may open everybody's: the owner must be the user of this fabric. */
static bool has_form(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
           (uint64_t)st.st_size == shca.seg->size;
}

static bool agrees(const struct shca_segment *s, uint32_t slot, uint32_t pid)
{
    return s->magic == SHCA_MAGIC && s->slot == slot && s->pid == pid &&
           strncmp(s->fabric, shca_config.fabric, sizeof s->fabric) == 0;
}

static int open_segment(uint32_t pid, int remote_fd, int flags)
{
    int fd = is_segment(pid, remote_fd) ? shca_open_of(pid, remote_fd, flags) : -1;

    if (fd >= 0 && !has_form(fd)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

static void *map_shared(void *wish, size_t size, int fd)
{
    return mmap(wish, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
}

/* The range that the kernel maps around a page at its first read begins at a multiple of 16 pages
 * of our addresses, so the segment must begin at such an address too. The address range below is
 * nearly always free, since the kernel allocates downwards; if not, the kernel chooses any
 * address. */
static void *map_at_multiple(size_t size, int fd)
{
    void *at = map_shared(NULL, size, fd);
    uintptr_t past = (uintptr_t)at & (SHCA_FAULT_AROUND - 1);

    if (at == MAP_FAILED || past == 0)
        return at;
    munmap(at, size);
    return map_shared((char *)at - past, size, fd);
}

struct shca_segment *shca_segment_map(uint32_t slot, uint32_t pid, int remote_fd)
{
    size_t size = (size_t)shca.seg->size;
    int fd = open_segment(pid, remote_fd, O_RDWR);
    struct shca_segment *s;

    if (fd < 0)
        return NULL;
    s = map_at_multiple(size, fd);
    close(fd);
    if (s == MAP_FAILED)
        return NULL;
    if (agrees(s, slot, pid))
        return s;
    munmap(s, size);
    return NULL;
}

static bool read_head(int fd, uint32_t slot, uint32_t pid, struct shca_segment *head)
{
    return pread(fd, head, sizeof *head, 0) == (ssize_t)sizeof *head && agrees(head, slot, pid);
}

bool shca_segment_peek(uint32_t slot, uint32_t pid, int remote_fd, struct shca_segment *head)
{
    int fd = open_segment(pid, remote_fd, O_RDONLY);
    bool ok = fd >= 0 && read_head(fd, slot, pid, head);

    if (fd >= 0)
        close(fd);
    return ok;
}

bool shca_segment_peek_settled(uint32_t slot, uint32_t pid, int remote_fd,
                               struct shca_segment *head)
{
    int fd = open_segment(pid, remote_fd, O_RDONLY);
    bool ok = fd >= 0 && read_head(fd, slot, pid, head) && atomic_load(&head->settled) &&
              read_head(fd, slot, pid, head);

    if (fd >= 0)
        close(fd);
    return ok;
}
