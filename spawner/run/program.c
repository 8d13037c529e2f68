/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the program; see program.h. */
#include "config.h"

#include "program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* 0 or the reason why `path` cannot be run. */
static int check(const char *path)
{
    struct stat s;
    if (stat(path, &s) != 0)
        return errno;
    if (S_ISDIR(s.st_mode))
        return EISDIR;
    return access(path, X_OK) == 0 ? 0 : errno;
}

static bool find_in_path(const char *name, char *path, size_t size)
{
    const char *dirs = getenv("PATH");
    if (!dirs)
        dirs = "/usr/local/bin:/usr/bin:/bin";
    for (;;) {
        size_t n = strcspn(dirs, ":");
        int used = snprintf(path, size, "%.*s%s/%s", (int)n, dirs, n ? "" : ".", name);
        if (used > 0 && (size_t)used < size && check(path) == 0)
            return true;
        if (!dirs[n])
            return false;
        dirs += n + 1;
    }
}

bool program_find(const char *name, char *path, size_t path_size, char *why, size_t why_size)
{
    if (!strchr(name, '/')) {
        if (*name && find_in_path(name, path, path_size))
            return true;
        snprintf(why, why_size, "program '%s' was not found in PATH", name);
        return false;
    }
    int error = check(name);
    if (!error && (size_t)snprintf(path, path_size, "%s", name) >= path_size)
        error = ENAMETOOLONG;
    if (error)
        snprintf(why, why_size, "program '%s' cannot be run: %s", name, strerror(error));
    return !error;
}
