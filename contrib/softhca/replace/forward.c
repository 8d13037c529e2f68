/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The host's library behind a replacement: found by absolute path, because its name is now ours,
 * and loaded with the first call that needs it. Owns the handle, written under pthread_once, and
 * the table of the trampolines (trampolines.S), whose entries are only ever replaced by the same
 * value. */
#include "config.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/support.h"
#include "replace/forward.h"

/* The return value of a function that exists nowhere: the one that means failure to its callers. */
enum missing { SHCA_MISSING_ERROR, SHCA_MISSING_NULL, SHCA_MISSING_MINUS, SHCA_MISSING_TEXT };

struct export
{
    const char *name, *version;
    enum missing missing;
    size_t data; /* bytes of a variable, 0: a function */
};

#define SHCA_EXPORT(number, name, version, missing)   [number] = {name, version, missing, 0},
#define SHCA_EXPORT_DATA(number, name, version, size) [number] = {name, version, 0, size},
static const struct export exports[] = {
#include "exports.def"
};

extern void *_Atomic shca_forward_table[];
void *shca_forward_resolve(uint32_t number);

static void *host;

/* ---- finding it ---- */

#if defined(__x86_64__)
#    define MULTIARCH "x86_64-linux-gnu"
#else
#    define MULTIARCH "aarch64-linux-gnu"
#endif

static const char *const places[] = {
    SHCA_HOST_LIBDIR, "/usr/lib/" MULTIARCH, "/lib/" MULTIARCH, "/usr/lib64",
    "/lib64",         "/usr/local/lib",      "/usr/lib",        "/lib",
};

/* Loading ourselves again would forward in a loop. */
static bool is_us(const char *path)
{
    struct stat ours, theirs;
    Dl_info self;

    return dladdr((void *)(uintptr_t)&host, &self) != 0 && stat(self.dli_fname, &ours) == 0 &&
           stat(path, &theirs) == 0 && ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

static void *load_from(const char *path)
{
    return access(path, R_OK) == 0 && !is_us(path) ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
}

static void load_named(const char *path)
{
    const char *why;

    if (is_us(path)) {
        shca_log("SOFTHCA_REAL=%s is the replacement itself; name the host's own %s", path,
                 shca_behind.library);
        return;
    }
    host = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    why = host ? NULL : dlerror();
    if (!host)
        shca_log("SOFTHCA_REAL=%s cannot be loaded (%s); there are no devices of the host", path,
                 why ? why : "no reason given");
}

void *shca_forward_open(const char *library)
{
    char path[4096];
    void *found = NULL;

    for (size_t i = 0; i < sizeof places / sizeof places[0] && !found; i++) {
        snprintf(path, sizeof path, "%s/%s", places[i], library);
        found = load_from(path);
    }
    return found;
}

static void forward_load(void)
{
    /* A forwarded call may come before the settings have been read. */
    const char *named = shca_behind.named ? getenv("SOFTHCA_REAL") : NULL;

    if (named && *named)
        load_named(named);
    else
        host = shca_forward_open(shca_behind.library);
}

/* Provider plug-ins read the host's variables here, while the host's library, loaded privately, may
 * write its own. All of them are zero until a feature is switched on. */
void shca_forward_copy(void)
{
    for (uint32_t i = 0; i < sizeof exports / sizeof exports[0]; i++) {
        const struct export *e = &exports[i];
        const void *theirs = e->data && host ? dlvsym(host, e->name, e->version) : NULL;
        void *ours = atomic_load(&shca_forward_table[i]);

        if (theirs && theirs != ours)
            for (size_t b = 0; b < e->data; b++)
                ((char *)ours)[b] |= ((const char *)theirs)[b];
    }
}

void *shca_forward_host(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;

    pthread_once(&once, forward_load);
    return host;
}

/* ---- the trampolines ---- */

static int answer_error(void)
{
    errno = ENOSYS;
    return ENOSYS;
}

static void *answer_null(void)
{
    errno = ENOSYS;
    return NULL;
}

static long answer_minus(void)
{
    errno = ENOSYS;
    return -1;
}

static const char *answer_text(void)
{
    return "unknown";
}

static void *answer(const struct export *e)
{
    static _Atomic int reported;

    if (!atomic_exchange(&reported, 1))
        shca_log("%s is not available: %s %s%s", e->name,
                 host ? "it is missing in the host's" : "this host has no", shca_behind.library,
                 shca_behind.named ? "; SOFTHCA_REAL can name the host's library" : "");
    switch (e->missing) {
    case SHCA_MISSING_NULL:
        return (void *)(uintptr_t)answer_null;
    case SHCA_MISSING_MINUS:
        return (void *)(uintptr_t)answer_minus;
    case SHCA_MISSING_TEXT:
        return (void *)(uintptr_t)answer_text;
    default:
        return (void *)(uintptr_t)answer_error;
    }
}

void *shca_forward_resolve(uint32_t number)
{
    const struct export *e = &exports[number];
    int saved = errno;
    void *found = shca_behind.own ? shca_behind.own(e->name) : NULL;
    void *library = found ? NULL : shca_forward_host();

    if (library)
        found = dlvsym(library, e->name, e->version);
    if (!found)
        found = answer(e);
    atomic_store(&shca_forward_table[number], found);
    errno = saved;
    return found;
}
