/* SPDX-License-Identifier: BSD-3-Clause */
/* Finding the program; see program.h. */
#include "config.h"

#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* 0 or the reason why `path` cannot be run. */
static int program_check(const char *path)
{
    struct stat s;
    if (stat(path, &s) != 0)
        return errno;
    if (S_ISDIR(s.st_mode))
        return EISDIR;
    return access(path, X_OK) == 0 ? 0 : errno;
}

/* The interpreter that the first line of a script names, as execve(2) reads it; false if the file
 * is not a script. */
static bool names_interpreter(const char *path, char *name, size_t size)
{
    char line[256]; /* no kernel reads more of it */
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, line, sizeof(line) - 1);
    if (fd >= 0)
        close(fd);
    if (n < 2 || line[0] != '#' || line[1] != '!')
        return false;
    line[n] = 0;
    char *start = line + 2 + strspn(line + 2, " \t");
    start[strcspn(start, " \t\r\n")] = 0;
    return *start && (size_t)snprintf(name, size, "%s", start) < size;
}

/* The errno of a missing interpreter looks as if the script itself were missing, so the interpreter
 * is checked before anything is started. */
static bool can_interpret(const char *path, char *why, size_t size)
{
    char name[256];
    if (!names_interpreter(path, name, sizeof(name)))
        return true;
    int error = program_check(name);
    if (error)
        snprintf(why, size, "program '%s' cannot be run: its interpreter '%s' (first line, #!): %s",
                 path, name, strerror(error));
    return !error;
}

static bool find_in_path(const char *name, char *path, size_t size)
{
    const char *dirs = getenv("PATH");
    if (!dirs)
        dirs = "/usr/local/bin:/usr/bin:/bin";
    for (;;) {
        size_t n = strcspn(dirs, ":");
        int used = snprintf(path, size, "%.*s%s/%s", (int)n, dirs, n ? "" : ".", name);
        if (used > 0 && (size_t)used < size && program_check(path) == 0)
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
            return can_interpret(path, why, why_size);
        snprintf(why, why_size, "program '%s' was not found in PATH", name);
        return false;
    }
    int error = program_check(name);
    if (!error && (size_t)snprintf(path, path_size, "%s", name) >= path_size)
        error = ENAMETOOLONG;
    if (error)
        snprintf(why, why_size, "program '%s' cannot be run: %s", name, strerror(error));
    return !error && can_interpret(path, why, why_size);
}

bool program_own_directory(char *path, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", path, size - 1);
    if (n <= 0)
        return false;
    path[n] = 0;
    char *slash = strrchr(path, '/');
    if (!slash)
        return false;
    *slash = 0;
    return true;
}

bool program_beside(const char *name, const char *build_folder, char *path, size_t size)
{
    char own[4096];
    if (!program_own_directory(own, sizeof(own)))
        return false;
    if ((size_t)snprintf(path, size, "%s/%s", own, name) < size && program_check(path) == 0)
        return true;
    return (size_t)snprintf(path, size, "%s/../%s/%s", own, build_folder, name) < size &&
           program_check(path) == 0;
}
