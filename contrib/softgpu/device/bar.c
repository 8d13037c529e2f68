/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What is exported of a device at a time, as its BAR limits it. Each export is an open file
 * description of its own with a lock of it (F_OFD_SETLK) on one byte far behind the file; the
 * kernel drops the lock when the last descriptor and the last mapping of it are gone, in any
 * process, which is when a real device gives the addresses free. Owns the list of exports. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "contrib/softgpu/device/device.h"

struct export
{
    struct export *next;
    const struct sgpu_storage *storage;
    int file;
    off_t mark; /* the byte that is locked */
    uint64_t length;
};

static struct export *exports;

static struct flock byte_lock(short type, off_t byte)
{
    return (struct flock){.l_type = type, .l_whence = SEEK_SET, .l_start = byte, .l_len = 1};
}

static bool is_open(const struct export *e)
{
    struct flock lock = byte_lock(F_WRLCK, e->mark);

    return fcntl(e->file, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

uint64_t sgpu_bar_used(int device)
{
    uint64_t total = 0;

    for (struct export **at = &exports; *at;) {
        struct export *e = *at;

        if (!is_open(e)) {
            *at = e->next;
            free(e);
            continue;
        }
        total += e->storage->device == device ? e->length : 0;
        at = &e->next;
    }
    return total;
}

void sgpu_bar_forget(const struct sgpu_storage *s)
{
    for (struct export **at = &exports; *at;) {
        struct export *e = *at;

        if (e->storage != s) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        free(e);
    }
}

int sgpu_bar_export(const struct sgpu_storage *s, int file, uint64_t offset, uint64_t length)
{
    struct export *e = malloc(sizeof *e);
    struct flock lock;
    char path[64];
    int fd;

    if (!e)
        return -ENOMEM;
    if (sgpu_config.bar > 0 && sgpu_bar_used(s->device) + length > sgpu_config.bar) {
        free(e);
        return -ENOSPC;
    }
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    fd = open(path, O_RDWR | O_CLOEXEC);
    *e = (struct export){exports, s, file, (off_t)((UINT64_C(1) << 61) + sgpu_next_id()), length};
    lock = byte_lock(F_WRLCK, e->mark);
    if (fd < 0 || lseek(fd, (off_t)offset, SEEK_SET) < 0 || fcntl(fd, F_OFD_SETLK, &lock) != 0) {
        int error = -errno;

        if (fd >= 0)
            close(fd);
        free(e);
        return error;
    }
    exports = e;
    return fd;
}
