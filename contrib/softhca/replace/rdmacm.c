/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The replacement for librdmacm.so.1. The functions themselves are in our libibverbs.so.1, because
 * both share the state of the process; functions that it lacks are forwarded to the host. Owns
 * nothing. */
#include "config.h"

#include <dlfcn.h>
#include <stddef.h>

#include "replace/forward.h"

static void *from_verbs(const char *name)
{
    void *verbs = dlopen("libibverbs.so.1", RTLD_LAZY | RTLD_LOCAL);

    return verbs ? dlvsym(verbs, name, "SOFTHCA_1") : NULL;
}

const struct shca_behind shca_behind = {"librdmacm.so.1", false, from_verbs};
