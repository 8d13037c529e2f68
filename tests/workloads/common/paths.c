/* SPDX-License-Identifier: BSD-3-Clause */
/* See paths.h. Nothing is opened, so that a run that does not start leaves no files; a full disk is
 * noticed only at the end. Owns nothing. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "paths.h"

static bool refuse(const char *option, const char *path, const char *text, char *why, size_t size)
{
    snprintf(why, size, "--%s %s can't be written: %s", option, path, text);
    return false;
}

static bool folder_of(const char *path, char *folder, size_t size)
{
    const char *slash = strrchr(path, '/');
    int length = slash ? (slash == path ? 1 : (int)(slash - path)) : 1;
    return snprintf(folder, size, "%.*s", length, slash ? path : ".") < (int)size;
}

bool wl_path_writable(const char *option, const char *path, char *why, size_t size)
{
    char folder[4096];
    struct stat status;
    if (!*path)
        return refuse(option, "''", "that is no name", why, size);
    if (stat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            return refuse(option, path, strerror(EISDIR), why, size);
        return access(path, W_OK) == 0 || refuse(option, path, strerror(errno), why, size);
    }
    if (errno != ENOENT || !folder_of(path, folder, sizeof(folder)))
        return refuse(option, path, strerror(errno), why, size);
    return access(folder, W_OK | X_OK) == 0 || refuse(option, path, strerror(errno), why, size);
}

bool wl_prefix_writable(const char *option, const char *prefix, const char *rest, char *why,
                        size_t size)
{
    char path[4096];
    struct stat status;
    if (!*prefix || prefix[strlen(prefix) - 1] == '/')
        return refuse(option, prefix, "that is no beginning of names", why, size);
    if (stat(prefix, &status) == 0 && !S_ISREG(status.st_mode))
        return refuse(option, prefix,
                      S_ISDIR(status.st_mode) ? "it is a directory, not the beginning of names"
                                              : "it is a device, not the beginning of names",
                      why, size);
    if (snprintf(path, sizeof(path), "%s%s", prefix, rest) >= (int)sizeof(path))
        return refuse(option, prefix, strerror(ENAMETOOLONG), why, size);
    return wl_path_writable(option, path, why, size);
}
