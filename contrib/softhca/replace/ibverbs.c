/* SPDX-License-Identifier: BSD-3-Clause
 *
 * How softhca's rooms call the host's libraries in the replacement for libibverbs.so.1. Owns the
 * handle of the host's librdmacm, written under pthread_once. */
#include "config.h"

#include <dlfcn.h>

#include "replace/forward.h"
#include "rdmacm/rdmacm.h"

const struct shca_behind shca_behind = {"libibverbs.so.1", true, NULL};

static void *cm;

void *shca_real(const char *symbol)
{
    void *library = shca_forward_host();

    shca_forward_copy();
    return library ? dlsym(library, symbol) : NULL;
}

static void load_cm(void)
{
    cm = shca_forward_open("librdmacm.so.1");
}

void *shca_cm_real(const char *symbol)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, load_cm);
    return cm ? dlsym(cm, symbol) : NULL;
}
