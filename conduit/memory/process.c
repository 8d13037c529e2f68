/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Changes that start-up makes to the memory of the whole process, as the settings say. No state. */
#include "config.h"

#include <malloc.h>
#include <sys/resource.h>

#include "memory/memory.h"
#include "settings/settings.h"

/* The device locks buffers and segments: many hosts have a low soft limit and an unlimited hard
 * one. If the hard limit is low too, registration fails later and reports it. */
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
