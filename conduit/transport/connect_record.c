/* SPDX-License-Identifier: BSD-3-Clause
 *
 * See connect_record.h. At the end of the job each rank writes its lines: to a file of its own (a
 * '%' in the name), or it appends them to one file that all ranks share, under that file's lock.
 * The file has a temporary name until it is complete; the last rank renames a shared file. A device
 * or a pipe keeps its name. The job finds out at its start that a file can't be written. The rank
 * whose file it is reports that; for a shared file rank 0 does, and the first rank of each other
 * host that lacks the directory. Owns whether the file was refused here; no lock in the process;
 * one thread. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/report.h"
#include "peer/connect_file.h"
#include "peer/peer.h"
#include "settings/settings.h"
#include "topology/topology.h"
#include "transport/connect_record.h"
#include "transport/transport.h"

static bool was_refused; /* at start-up */

bool tk_connect_is_listed(void)
{
    const char *given = tk_getenv("GASNET_CONNECT_STATIC");
    bool is_forbidden = given && *given && !tk_settings.connect_static;
    return tk_settings.connectfile_in[0] && !is_forbidden;
}

bool tk_connect_is_recorded(void)
{
    return tk_settings.connectfile_out[0];
}

bool tk_connect_is_static(void)
{
    return !tk_connect_is_listed() && !tk_connect_is_recorded() &&
           (tk_settings.connect_static || !tk_settings.connect_dynamic);
}

static bool is_shared(void)
{
    return !strchr(tk_settings.connectfile_out, '%');
}

/* A device or a pipe is written directly: renaming a file over it would remove it for all
 * processes. */
static bool is_special(const char *name)
{
    struct stat s;
    return stat(name, &s) == 0 && !S_ISREG(s.st_mode) && !S_ISDIR(s.st_mode);
}

/* Both names, to be freed; false: out of memory. They are equal for a special file. */
static bool names_of(char **name, char **unfinished)
{
    size_t size;
    *unfinished = NULL;
    *name = tk_connect_name(tk_settings.connectfile_out, tk_peers.me);
    if (!*name)
        return false;
    size = strlen(*name) + sizeof(".part");
    *unfinished = malloc(size);
    if (*unfinished)
        snprintf(*unfinished, size, "%s%s", *name, is_special(*name) ? "" : ".part");
    return *unfinished;
}

static void report_unwritable(const char *name, int error)
{
    tk_log_error("GASNET_CONNECTFILE_OUT: %s can't be written: %s; give a file in a directory "
                 "that this user may write to or, where the file system has no locks, one for "
                 "each rank (a per cent sign in its name)",
                 name ? name : tk_settings.connectfile_out, strerror(error));
}

static int open_unfinished(const char *unfinished)
{
    int how = is_special(unfinished) ? O_WRONLY : O_RDWR | O_CREAT;
    return open(unfinished, how | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
}

/* 0, or an errno */
static int lock_whole(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return is_shared() && fcntl(fd, F_SETLKW, &whole) != 0 ? errno : 0;
}

/* Tries to create the file that will be written. Removes what an earlier run left behind, and
 * leaves no file itself. Returns 0 or an errno. */
static int try_file(const char *name, const char *unfinished)
{
    struct stat s;
    if (stat(name, &s) == 0 && S_ISDIR(s.st_mode))
        return EISDIR;
    int fd = open_unfinished(unfinished);
    if (fd < 0)
        return errno;
    int error = lock_whole(fd);
    close(fd);
    return strcmp(name, unfinished) != 0 && unlink(unfinished) != 0 && error == 0 ? errno : error;
}

/* Leaves no file: another rank tries the real name. */
static int try_directory(const char *name)
{
    char *path = strdup(name), *last = path ? strrchr(path, '/') : NULL;
    const char *directory = last == path && last ? "/" : path;
    if (last)
        *last = 0;
    else
        directory = ".";
    int error = path && access(directory, W_OK | X_OK) == 0 ? 0 : errno;
    free(path);
    return error;
}

void tk_connect_record_open(void)
{
    char *name, *unfinished;
    bool is_ours = !is_shared() || tk_peers.me == 0;
    if (!tk_connect_is_recorded())
        return;
    int error = ENOMEM;
    if (names_of(&name, &unfinished))
        error = is_ours ? try_file(name, unfinished) : try_directory(name);
    was_refused = error != 0;
    if (was_refused && is_ours)
        report_unwritable(name, error);
    free(name);
    free(unfinished);
}

static bool was_connected(uint32_t rank)
{
    const struct tk_transport *transport = tk_peer(rank)->transport;
    return transport && transport->demand && transport->demand->is_connected(rank);
}

/* To be freed; NULL: out of memory. */
static char *lines_of_ours(bool with_head)
{
    bool *connected = calloc(tk_peers.size, sizeof(*connected));
    if (!connected)
        return NULL;
    for (uint32_t r = 0; r < tk_peers.size; r++)
        connected[r] = r != tk_peers.me && was_connected(r);
    char *text = tk_connect_format(tk_peers.me, tk_peers.size,
                                   (unsigned)tk_settings.connectfile_base, with_head, connected);
    free(connected);
    return text;
}

static bool write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, text, size);
        if (n < 0)
            return false;
        text += n;
        size -= (size_t)n;
    }
    return true;
}

/* Counts the ranks in the file. -1: it can't be read, see errno. */
static int64_t ranks_in(int fd)
{
    struct stat s;
    if (fstat(fd, &s) != 0)
        return -1;
    char *text = malloc((size_t)s.st_size + 1);
    ssize_t size = text ? pread(fd, text, (size_t)s.st_size, 0) : -1;
    int64_t count = size < 0 ? -1 : (int64_t)tk_connect_count(text, (size_t)size);
    free(text);
    return count;
}

/* The file is open and, if it is shared, locked. 0, or an errno; *is_whole: all other ranks have
 * written. */
static int append(int fd, bool *is_whole)
{
    struct stat s;
    if (fstat(fd, &s) != 0)
        return errno;
    bool counts = is_shared() && S_ISREG(s.st_mode);
    char *text =
        lines_of_ours(S_ISREG(s.st_mode) ? s.st_size == 0 : !is_shared() || tk_peers.me == 0);
    if (!text)
        return ENOMEM;
    bool done = write_all(fd, text, strlen(text));
    free(text);
    int64_t ranks = done && counts ? ranks_in(fd) : 1;
    *is_whole = !counts || ranks == tk_peers.size;
    return done && ranks >= 0 ? 0 : errno;
}

/* 0, or an errno */
static int write_record(const char *name, const char *unfinished)
{
    bool is_whole = false;
    int fd = open_unfinished(unfinished);
    if (fd < 0)
        return errno;
    int error = lock_whole(fd);
    if (error == 0)
        error = append(fd, &is_whole);
    if (error == 0 && is_whole && strcmp(name, unfinished) != 0 && rename(unfinished, name) != 0)
        error = errno;
    if (close(fd) != 0 && error == 0)
        error = errno;
    return error;
}

/* Reported at start-up by this rank, or by the rank that reports for it. */
static bool is_reported(int error)
{
    const uint32_t *host_of = tk_topology.host_of;
    if (!is_shared() || tk_peers.me == 0)
        return was_refused;
    bool is_elsewhere = host_of && host_of[tk_peers.me] != host_of[0];
    return error == ENOLCK || error == EISDIR ||
           (was_refused && (!is_elsewhere || tk_topology.local_rank > 0));
}

void tk_connect_record_write(void)
{
    char *name, *unfinished;
    if (!tk_connect_is_recorded())
        return;
    int error = names_of(&name, &unfinished) ? write_record(name, unfinished) : ENOMEM;
    if (error && !is_reported(error))
        report_unwritable(name, error);
    if (error)
        tk_report_output_lost();
    free(name);
    free(unfinished);
}
