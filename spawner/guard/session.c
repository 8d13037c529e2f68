/* SPDX-License-Identifier: BSD-3-Clause */
/* The session directory; see session.h. Owns nothing in memory, takes no lock. */
#include "config.h"

#include "session.h"
#include "spawner/base/say.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* libpmix 4.2 was seen to need a little more than 8 MiB for its store and topology; twice that, and
 * what the ranks themselves put. */
enum { ROOM_BASE = 16 << 20, ROOM_PER_RANK = 64 << 10 };

bool session_make(const char *parent, char *path, size_t size)
{
    if ((size_t)snprintf(path, size, "%s/gasnetrun-XXXXXX", parent) >= size)
        errno = ENAMETOOLONG;
    else if (mkdtemp(path))
        return true;
    say("cannot make a session directory in %s: %s; set GASNET_TMPDIR to a writable directory",
        parent, strerror(errno));
    return false;
}

bool session_has_room(const char *path, unsigned ranks)
{
    struct statvfs s;
    if (statvfs(path, &s) != 0)
        return true;
    unsigned long long room = (unsigned long long)s.f_bavail * s.f_frsize;
    return room >= ROOM_BASE + (unsigned long long)ranks * ROOM_PER_RANK;
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
    nftw(path, remove_one, OPEN_DIRECTORIES, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}
