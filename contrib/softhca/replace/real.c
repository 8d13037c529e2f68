/* SPDX-License-Identifier: BSD-3-Clause
 *
 * Calls into the real libraries behind this one. Every public function that gets a handle
 * which is not ours calls its namesake there, so that the host's own devices work as if we were
 * absent. Owns nothing: the dynamic linker caches. */
#include "config.h"

#include <dlfcn.h>

#include "rdmacm/rdmacm.h"

void *shca_real(const char *symbol)
{
    return dlsym(RTLD_NEXT, symbol);
}

void *shca_cm_real(const char *symbol)
{
    return dlsym(RTLD_NEXT, symbol);
}
