/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Pages of registered memory, as the device of this process would fault them in. Owns nothing; no
 * lock: the kernel's page tables are the state. */
#include "config.h"

#include <sys/mman.h>
#include <unistd.h>

#include "fabric/fabric.h"

#ifndef MADV_POPULATE_WRITE /* Linux 5.14 */
#    define MADV_POPULATE_READ  22
#    define MADV_POPULATE_WRITE 23
#endif

/* Returns 0 or an errno; the content is kept. */
static int populate(uint64_t addr, uint64_t length, int advice)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), start = addr & ~(page - 1);

    return madvise((void *)(uintptr_t)start, addr + length - start, advice) == 0 ? 0 : errno;
}

/* A kernel that can't populate returns EINVAL for every page; a kernel that can returns it for
 * pages without the right. */
static bool kernel_populates(void)
{
    char own;

    return populate((uintptr_t)&own, 1, MADV_POPULATE_WRITE) != EINVAL;
}

int shca_pages_pin(uint64_t addr, uint64_t length)
{
    int e = populate(addr, length, MADV_POPULATE_WRITE);

    return e == 0 || e == EINVAL ? 0 : ENOMEM;
}

bool shca_page_written(const void *at)
{
    return populate((uintptr_t)at, 1, MADV_POPULATE_WRITE) == 0;
}

bool shca_page_writable(const void *at)
{
    return populate((uintptr_t)at, 1, MADV_POPULATE_WRITE) != EINVAL || !kernel_populates();
}

bool shca_pages_fault(uint64_t addr, uint64_t length, uint32_t access)
{
    int e = populate(addr, length,
                     access & IBV_ACCESS_LOCAL_WRITE ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);

    return e == 0 || (e == EINVAL && !kernel_populates());
}
