/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What start-up changes about the memory of the process as a whole, as the settings say. No
 * state. */
#include "config.h"

#include <malloc.h>
#include <sys/resource.h>

#include "memory/memory.h"
#include "settings/settings.h"

/* Buffers and segments are locked by the device: soft limits are low on many hosts where the hard
 * one is not. Where it is too, registration fails later and says so. */
static void raise_locked_memory(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_MEMLOCK, &limit);
}

static void keep_freed_memory(void)
{
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, -1);
}

void tk_process_memory_open(void)
{
    if (tk_settings.maximize_memlock)
        raise_locked_memory();
    if (tk_settings.disable_munmap)
        keep_freed_memory();
}
