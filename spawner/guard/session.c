/* SPDX-License-Identifier: BSD-3-Clause */
/* The session directory; see session.h. Owns nothing in memory, takes no lock. */
#include "config.h"

#include "session.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* libpmix 4.2 was seen to need a little more than 8 MiB for its store and topology; twice that,
 * plus the data that the ranks themselves put. */
enum { SPACE_BASE = 16 << 20, SPACE_PER_RANK = 64 << 10 };

bool session_name(const char *parent, char *path, size_t size)
{
    uint64_t salt = 0;
    if (getrandom(&salt, sizeof(salt), 0) != sizeof(salt))
        return false;
    int n = snprintf(path, size, "%s/gasnetrun-%016llx", parent, (unsigned long long)salt);
    return n > 0 && (size_t)n < size;
}

bool session_of_host(const struct job *job, uint32_t host, char *path, size_t size)
{
    int n = job->host_count == 1 ? snprintf(path, size, "%s", job->session)
                                 : snprintf(path, size, "%s.%u", job->session, host);
    return n > 0 && (size_t)n < size;
}

/* The file of the ranks' slots; -1 with errno. */
static int open_slots(const char *path, int flags)
{
    char name[SESSION_PATH_MAX + sizeof(TK_RANK_SLOTS_NAME) + 1];
    snprintf(name, sizeof(name), "%s/" TK_RANK_SLOTS_NAME, path);
    return open(name, flags | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
}

bool session_make(const char *path)
{
    if (mkdir(path, S_IRWXU) != 0)
        return false;
    int fd = open_slots(path, O_WRONLY | O_CREAT | O_EXCL);
    if (fd < 0) {
        int error = errno;
        rmdir(path);
        errno = error;
        return false;
    }
    close(fd);
    return true;
}

struct tk_rank_slot session_slot(const char *path, unsigned rank)
{
    struct tk_rank_slot slot;
    int fd = open_slots(path, O_RDONLY);
    if (fd < 0 || pread(fd, &slot, sizeof(slot), tk_rank_slot_place(rank)) != sizeof(slot))
        slot = (struct tk_rank_slot){0};
    if (fd >= 0)
        close(fd);
    return slot;
}

bool session_has_space(const char *parent, unsigned ranks)
{
    struct statvfs s;
    if (statvfs(parent, &s) != 0)
        return true;
    unsigned long long room = (unsigned long long)s.f_bavail * s.f_frsize;
    return room >= SPACE_BASE + (unsigned long long)ranks * SPACE_PER_RANK;
}

static int remove_one(const char *path, const struct stat *info, int flag, struct FTW *where)
{
    (void)info, (void)flag, (void)where;
    remove(path);
    return 0;
}

void session_remove(const char *path)
{
    enum { OPEN_DIRECTORIES = 8 };
    struct stat s;
    /* A directory of that name made by another user would be a trap for a root that deletes in it.
     */
    if (lstat(path, &s) != 0 || !S_ISDIR(s.st_mode) || s.st_uid != geteuid() ||
        (s.st_mode & (S_IRWXG | S_IRWXO)))
        return;
    nftw(path, remove_one, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

void session_remove_hosts(const struct job *job, uint32_t first, uint32_t end)
{
    char path[4200];
    for (uint32_t h = first; h < end && !job->keep; h++)
        if (session_of_host(job, h, path, sizeof(path)))
            session_remove(path);
}
