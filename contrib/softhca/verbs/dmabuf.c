/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Regions in the memory of accelerators: by dma-buf, and by address where the accelerator's
 * stand-in offers peer memory. Such memory has no mapping at the address that programs see; the
 * region is a second mapping of it, which stands for the HCA's path to the device over PCIe. Owns
 * these mappings: each belongs to one region. */
#include "config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/dmabuf_standin.h"
#include "verbs/verbs.h"

/* TK_DEVICE_READS_FUNCTION */
SHCA_PUBLIC uint64_t softhca_device_reads(void);

struct view {
    char *map;
    size_t bytes;
    char *base; /* the first exported byte */
};

static bool is_standin(int fd)
{
    static const char expected[] = TK_DMABUF_LINK;
    char path[64], target[64];
    ssize_t n;

    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    n = readlink(path, target, sizeof target);
    return n >= (ssize_t)sizeof expected - 1 && memcmp(target, expected, sizeof expected - 1) == 0;
}

/* Maps `length` bytes at `offset` from the beginning of the exported range. Returns 0, or the
 * errno that the kernel's registration returns: EBADF no descriptor, EINVAL no dma-buf or beyond
 * its end. */
static int view_open(struct view *v, int fd, uint64_t offset, size_t length)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), in_page;
    off_t begin = lseek(fd, 0, SEEK_CUR);
    struct stat st;

    if (begin < 0 || fstat(fd, &st) != 0)
        return EBADF;
    if (!is_standin(fd) || length == 0 || __builtin_add_overflow(begin, offset, &begin) ||
        begin > st.st_size || length > (uint64_t)(st.st_size - begin))
        return EINVAL;
    in_page = (size_t)begin & (page - 1);
    v->bytes = (length + in_page + page - 1) & ~(page - 1);
    v->map = mmap(NULL, v->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, begin - (off_t)in_page);
    if (v->map == MAP_FAILED)
        return ENOMEM;
    v->base = v->map + in_page;
    return 0;
}

static struct ibv_mr *register_view(struct ibv_pd *pd, int fd, uint64_t offset, size_t length,
                                    uint64_t iova, unsigned access)
{
    struct view v;
    struct ibv_mr *mr = NULL;
    int e = access & IBV_ACCESS_ON_DEMAND ? EOPNOTSUPP : view_open(&v, fd, offset, length);

    if (e == 0 && !(mr = shca_mr_register(pd, v.base, length, iova, access))) {
        e = errno;
        munmap(v.map, v.bytes);
    }
    if (!mr) {
        errno = e;
        return NULL;
    }
    shca_container(mr, struct shca_mr, mr)->view = v.map;
    shca_container(mr, struct shca_mr, mr)->view_bytes = v.bytes;
    return mr;
}

SHCA_PUBLIC struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length,
                                             uint64_t iova, int fd, int access)
{
    typedef struct ibv_mr *fn(struct ibv_pd *, uint64_t, size_t, uint64_t, int, int);

    if (!shca_owns(pd->context))
        SHCA_PASS(fn, "ibv_reg_dmabuf_mr", NULL, pd, offset, length, iova, fd, access);
    if (shca_config.no_dmabuf) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    return register_view(pd, fd, offset, length, iova, (unsigned)access);
}

/* The program loads vendors' libraries, often with RTLD_LOCAL: they can be found only by name. */
static tk_peermem_export peer_memory_of(const char *name)
{
    void *library = dlopen(name, RTLD_LAZY | RTLD_NOLOAD), *found;

    if (!library)
        return NULL;
    found = dlsym(library, TK_PEERMEM_FUNCTION);
    dlclose(library);
    return (tk_peermem_export)(uintptr_t)found;
}

/* A program may have loaded several libraries: each knows its own memory. Returns 0, or the errno
 * of the last one. */
static int export_peer_memory(const void *addr, size_t length, int *fd, off_t *offset)
{
    static const char *const names[] = {"libcuda.so.1", "libamdhip64.so.6", "libamdhip64.so.5",
                                        "libze_loader.so.1"};
    int e = EFAULT;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        tk_peermem_export export = peer_memory_of(names[i]);
        int answer = export ? export(addr, length, fd, offset) : EFAULT;

        if (answer == 0)
            return 0;
        e = answer == ENOMEM ? ENOMEM : e;
    }
    return e;
}

struct ibv_mr *shca_mr_register_peer(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova,
                                     unsigned access)
{
    struct ibv_mr *mr;
    off_t offset;
    int fd, e;

    e = export_peer_memory(addr, length, &fd, &offset);
    if (e != 0) {
        errno = e;
        return NULL;
    }
    mr = register_view(pd, fd, 0, length, iova, access);
    e = errno;
    close(fd);
    errno = e;
    return mr;
}

SHCA_PUBLIC uint64_t softhca_device_reads(void)
{
    return shca.seg ? atomic_load(&shca.seg->device_reads) : 0;
}
